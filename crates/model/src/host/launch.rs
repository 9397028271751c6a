//! Launches that host code makes.

use super::value::HostValue;
use super::{HostLaunch, HostNumber, Runner, State};
use crate::analysis::launches::{ArgumentSource, passed};
use crate::analysis::types::access::pointers;
use crate::kernel::Launch;
use crate::kernel::ast::ExprKind;

impl<'a> Runner<'a> {
    /// Notes what the launch `module.launches[at]` passes.
    pub(super) fn launch(&mut self, at: usize, state: &mut State<'a>) {
        let module = self.module;
        let launch = &module.launches[at];
        let kernel = launch.kernel.as_deref().and_then(|name| module.kernel(name));
        let mut args = Vec::with_capacity(launch.args.len());
        for arg in &launch.args {
            let value = match &arg.value.kind {
                ExprKind::Starred(inner) => {
                    self.value(inner, state);
                    HostValue::Unknown
                }
                _ => self.value(&arg.value, state),
            };
            args.push(value);
        }
        // A parameter that a kernel dereferences is a tensor.
        if let Some(kernel) = kernel {
            for name in pointers(self.module, kernel) {
                if let ArgumentSource::Argument(expr) = passed(launch, kernel, name)
                    && let Some(at) = launch.args.iter().position(|arg| arg.value.span == expr.span)
                    && let Some(id) = self.as_tensor(&args[at].clone(), expr.as_name(), state)
                {
                    args[at] = HostValue::Tensor(id);
                }
            }
        }
        let grid = self.grid(launch, state);
        let tensors: Vec<usize> = args.iter().filter_map(HostValue::tensor).collect();
        let storages = tensors.iter().map(|id| self.run.tensors[*id].storage);
        let unset = storages.clone().filter(|storage| !state.written.contains(storage)).collect();
        state.written.extend(storages);
        self.run.launches.push(HostLaunch {
            launch: at,
            span: launch.span,
            args,
            grid,
            unset,
            is_repeated: self.loops > 0,
        });
    }

    fn grid(&mut self, launch: &'a Launch, state: &mut State<'a>) -> Option<Vec<HostNumber>> {
        let value = match self.value(&launch.grid, state) {
            HostValue::Lambda(at) => {
                let (params, body) = self.lambdas[at];
                let mut inner = state.clone();
                for name in params {
                    inner.names.insert(name, HostValue::Unknown);
                }
                self.value(body, &mut inner)
            }
            value => value,
        };
        let HostValue::Tuple(items) = value else { return None };
        Some(items.iter().map(HostValue::number).collect())
    }
}
