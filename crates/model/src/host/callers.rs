//! The code of a file that calls functions which launch kernels, and running these functions where they are called.

use super::value::HostValue;
use super::{Runner, State};
use crate::analysis::launches::global;
use crate::kernel::ast::{Call, Expr, ExprKind};
use crate::kernel::{HostFunction, Module};
use crate::syntax::Source;

/// Calls that are nested deeper than this are not followed.
const MAX_CALLS: u32 = 4;

/// The functions of a file from which a kernel can be reached, and the block under `if __name__ == "__main__":`.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    functions: Vec<HostFunction>,
}

impl Callers {
    /// The callers in `source`, of which `module` is the model.
    #[must_use]
    pub fn of(module: &Module, source: &Source) -> Self {
        let main = Module::main_block(source).into_iter();
        let mut functions: Vec<HostFunction> = main.chain(module.hosts.iter().cloned()).collect();
        // A function that launches nothing may call one that does, also through others.
        for _ in 0..MAX_CALLS {
            let names: Vec<String> = functions.iter().map(|function| function.name.clone()).collect();
            let is_known = |name: &str| names.iter().any(|known| known == name);
            let calls = |text: &str| names.iter().any(|name| text.contains(&format!("{name}(")));
            let classes: Vec<&str> =
                functions.iter().filter_map(|of| of.qualname.split_once('.')).map(|of| of.0).collect();
            let mut new = Vec::new();
            for plain in module.functions.iter().filter(|plain| !is_known(&plain.name)) {
                let text = source.slice(plain.span);
                if calls(text) || classes.iter().any(|class| text.contains(&format!("{class}.apply("))) {
                    new.extend(Module::function_around(source, plain.name_span.start));
                }
            }
            if new.is_empty() {
                break;
            }
            functions.extend(new);
        }
        Self { functions }
    }

    /// The code that runs by itself: the main block, then functions that need no arguments.
    pub(super) fn entries(&self) -> impl Iterator<Item = &HostFunction> {
        let is_entry = |function: &&HostFunction| {
            !function.qualname.contains('.') && function.params.len() == function.defaults.len()
        };
        self.functions.iter().filter(is_entry)
    }

    fn named(&self, qualname: &str) -> Option<&HostFunction> {
        let mut found = self.functions.iter().filter(|function| function.qualname == qualname);
        let function = found.next()?;
        found.next().is_none().then_some(function)
    }
}

impl<'a> Runner<'a> {
    /// Runs the function that `call` calls; `None` when it is not one of the callers.
    pub(super) fn called_in_place(&mut self, call: &'a Call, state: &mut State<'a>) -> Option<HostValue> {
        let callers = self.callers.filter(|_| self.calls < MAX_CALLS && !call.has_star())?;
        if state.names.contains_key(call.func.first_name()?) {
            return None;
        }
        let (function, context) = self.callee(callers, &call.func)?;
        let params = function.params.get(context..)?;
        let mut names = State::default();
        for (name, default) in &function.defaults {
            let value = self.value(default, &mut State::default());
            names.names.insert(name, value);
        }
        for (at, arg) in call.args.iter().enumerate() {
            let value = self.value(&arg.value, state);
            let param = match &arg.keyword {
                Some((name, _)) => params.iter().find(|param| *param == name),
                None => params.get(at),
            };
            names.names.insert(param?, value);
        }
        for param in &function.params {
            names.names.entry(param).or_default();
        }
        names.written.clone_from(&state.written);
        let (host, returned) = (std::mem::replace(&mut self.host, function), self.returned.take());
        self.calls += 1;
        self.body(&function.body, &mut names);
        self.calls -= 1;
        self.host = host;
        state.written.extend(names.written);
        Some(std::mem::replace(&mut self.returned, returned).unwrap_or_default())
    }

    /// The function that an expression names, and how many of its first parameters the caller does not pass.
    fn callee(&self, callers: &'a Callers, func: &Expr) -> Option<(&'a HostFunction, usize)> {
        match func.dotted()?.as_slice() {
            [name] => match callers.named(name) {
                Some(function) => Some((function, 0)),
                // `layer_norm = LayerNorm.apply`
                None => match &global(self.module, name)?.kind {
                    ExprKind::Attribute { value, name, .. } if name == "apply" => {
                        Some((callers.named(&format!("{}.forward", value.as_name()?))?, 1))
                    }
                    _ => None,
                },
            },
            // `LayerNorm.apply(…)` of a `torch.autograd.Function` calls `forward(ctx, …)`.
            [class, "apply"] => Some((callers.named(&format!("{class}.forward"))?, 1)),
            _ => None,
        }
    }
}
