//! The values that launches and configurations of a file pass for a kernel's parameters.

use super::constants::integer;
use crate::kernel::ast::{Expr, ExprKind, StmtKind, has_star, walk_expressions, walk_statements};
use crate::kernel::{Config, Kernel, Launch, Module};
use crate::syntax::Span;

/// The way in which a launch sets a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentSource<'a> {
    /// By an argument.
    Argument(&'a Expr),
    /// The launch does not pass it: its default, a configuration or a heuristic sets it.
    Omitted,
    /// Not known, because of `*args` or `**kwargs`.
    Unknown,
}

/// Whether the host certainly launches `kernel`, here or from another file, and no kernel of the file calls it. Then its
/// parameters are numbers and pointers, and those without `constexpr` are run-time values.
#[must_use]
pub fn certainly_launched(module: &Module, kernel: &Kernel) -> bool {
    let known = module.kernel(&kernel.name).is_some_and(|found| found.span == kernel.span);
    let tuned = kernel.autotune.is_some() || kernel.heuristics.as_ref().is_none_or(|names| !names.is_empty());
    known
        && !module.called_in_kernels().contains(kernel.name.as_str())
        && (tuned || module.launches_of(&kernel.name).next().is_some() || is_entry_point(module, kernel))
}

/// Whether a kernel that the file does not launch has the form of one that another file launches: it finds its own part of the work,
/// writes its results to memory, and returns nothing.
fn is_entry_point(module: &Module, kernel: &Kernel) -> bool {
    let (mut finds_part, mut writes, mut returns) = (false, false, false);
    walk_expressions(&kernel.body, &mut |expr| {
        if let Some(call) = expr.as_call()
            && let Some(member) = module.language_member(kernel, &call.func)
        {
            finds_part |= member == "program_id";
            writes |= member == "store" || member.starts_with("atomic_");
        }
    });
    walk_statements(&kernel.body, &mut |stmt| returns |= matches!(&stmt.kind, StmtKind::Return(Some(_))));
    finds_part && writes && !returns
}

/// The way in which `launch` sets the parameter `name` of `kernel`.
#[must_use]
pub fn passed<'a>(launch: &'a Launch, kernel: &Kernel, name: &str) -> ArgumentSource<'a> {
    let by_keyword = |arg: &&crate::kernel::ast::Arg| arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name);
    if let Some(arg) = launch.args.iter().find(by_keyword) {
        return ArgumentSource::Argument(&arg.value);
    }
    if has_star(&launch.args) {
        return ArgumentSource::Unknown;
    }
    let positional = launch.args.iter().filter(|arg| arg.keyword.is_none());
    let at = kernel.params.iter().position(|param| param.name == name);
    match at.and_then(|at| positional.clone().nth(at)) {
        Some(arg) => ArgumentSource::Argument(&arg.value),
        None => ArgumentSource::Omitted,
    }
}

/// One way in which the file runs a kernel: a launch, a configuration of `@triton.autotune`, or both together.
#[derive(Clone, Copy, Debug)]
pub struct LaunchVariant<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    launch: Option<&'a Launch>,
    config: Option<&'a Config>,
}

/// Every way in which the file runs `kernel`; empty when none of them is certain.
#[must_use]
pub fn settings<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<LaunchVariant<'a>> {
    if !kernel.plain || !certainly_launched(module, kernel) {
        return Vec::new();
    }
    let launches: Vec<Option<&Launch>> = module.launches_of(&kernel.name).filter(|l| !l.has_error).map(Some).collect();
    let configs: Vec<Option<&Config>> = match &kernel.autotune {
        Some(autotune) => autotune.configs.iter().flatten().map(Some).collect(),
        None => Vec::new(),
    };
    let or_none = |len: usize| usize::from(len == 0);
    let launches: Vec<_> = launches.iter().copied().chain(std::iter::repeat_n(None, or_none(launches.len()))).collect();
    let configs: Vec<_> = configs.iter().copied().chain(std::iter::repeat_n(None, or_none(configs.len()))).collect();
    launches
        .into_iter()
        .flat_map(|launch| configs.iter().map(move |&config| LaunchVariant { module, kernel, launch, config }))
        .collect()
}

impl LaunchVariant<'_> {
    /// The integer that the parameter `name` certainly has, with the span of the expression that sets it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<(i128, Span)> {
        if !self.kernel.heuristics.as_ref().is_some_and(|names| names.iter().all(|set| set != name)) {
            return None;
        }
        let in_config = self.config.and_then(|config| config.meta.iter().find(|(meta, _)| meta == name));
        if let Some((_, value)) = in_config {
            return Some((host_integer(self.module, None, value)?, value.span));
        }
        // A list of configurations from elsewhere may set any parameter that a launch omits.
        let tuned_elsewhere = self.kernel.autotune.as_ref().is_some_and(|autotune| autotune.configs.is_none());
        match self.launch.map(|launch| (launch, passed(launch, self.kernel, name))) {
            Some((launch, ArgumentSource::Argument(value))) => {
                Some((host_integer(self.module, Some(launch), value)?, value.span))
            }
            Some((_, ArgumentSource::Omitted)) if !tuned_elsewhere => {
                let default = self.kernel.param(name)?.default.as_ref()?;
                Some((host_integer(self.module, None, default)?, default.span))
            }
            _ => None,
        }
    }
}

impl<'a> LaunchVariant<'a> {
    /// The launch, if this setting has one.
    #[must_use]
    pub fn launch(&self) -> Option<&'a Launch> {
        self.launch
    }

    /// The configuration, if the kernel's configurations are listed in the file.
    #[must_use]
    pub fn config(&self) -> Option<&'a Config> {
        self.config
    }

    /// The integer that a launch option such as `num_stages` certainly has, with the span that sets it. It is
    /// `default`, without a span, when neither launch nor configuration sets it.
    #[must_use]
    pub fn option(&self, name: &str, default: i128) -> Option<(i128, Option<Span>)> {
        let is_tuned_elsewhere = self.kernel.autotune.is_some() && self.config.is_none();
        if is_tuned_elsewhere || self.launch.is_none() && self.config.is_none() {
            return None;
        }
        if let Some((_, value)) = self.config.and_then(|config| config.options.iter().find(|(known, _)| known == name))
        {
            return Some((host_integer(self.module, None, value)?, Some(value.span)));
        }
        match self.launch.map(|launch| (launch, passed(launch, self.kernel, name))) {
            Some((_, ArgumentSource::Unknown)) => None,
            Some((launch, ArgumentSource::Argument(value))) => {
                Some((host_integer(self.module, Some(launch), value)?, Some(value.span)))
            }
            _ => Some((default, None)),
        }
    }
}

/// Whether two expressions are the same name or the same number.
#[must_use]
pub fn same(left: &Expr, right: &Expr) -> bool {
    match (left.as_name(), left.as_int()) {
        (Some(name), _) => right.as_name() == Some(name),
        (_, Some(value)) => right.as_int() == Some(value),
        _ => false,
    }
}

/// Whether some launch passes the same expression for two parameters of `kernel`.
#[must_use]
pub(crate) fn passed_alike(module: &Module, kernel: &Kernel, left: &str, right: &str) -> bool {
    module.launches_of(&kernel.name).any(|launch| match (passed(launch, kernel, left), passed(launch, kernel, right)) {
        (ArgumentSource::Argument(left), ArgumentSource::Argument(right)) => same(left, right),
        _ => false,
    })
}

/// Whether a host function that launches `kernel` checks that a size is a multiple of a value that it passes for a
/// compile-time parameter. Then masks may be redundant.
#[must_use]
pub fn promises_full_tiles(module: &Module, kernel: &Kernel) -> bool {
    promises_full_tiles_of(module, kernel, None)
}

/// The same for the tiles whose size is the parameter `block`; for any parameter where that is `None`.
#[must_use]
pub fn promises_full_tiles_of(module: &Module, kernel: &Kernel, block: Option<&str>) -> bool {
    let launches = module.launches.iter().filter(|launch| launch.target.mentions(&kernel.name));
    launches.filter_map(|launch| Some((launch, module.hosts.get(launch.host?)?))).any(|(launch, host)| {
        let passed: Vec<&Expr> = kernel
            .params
            .iter()
            .filter(|param| param.constexpr && block.is_none_or(|block| block == param.name))
            .filter_map(|param| match passed(launch, kernel, &param.name) {
                ArgumentSource::Argument(value) => Some(value),
                ArgumentSource::Omitted | ArgumentSource::Unknown => None,
            })
            .collect();
        let mut promised = false;
        walk_statements(&host.body, &mut |stmt| {
            let tests: Vec<&Expr> = match &stmt.kind {
                StmtKind::Assert(parts) => parts.iter().collect(),
                StmtKind::If { branches, .. } => branches
                    .iter()
                    .filter(|(_, body)| body.iter().any(|stmt| matches!(stmt.kind, StmtKind::Raise)))
                    .map(|(test, _)| test)
                    .collect(),
                _ => Vec::new(),
            };
            for test in tests {
                test.walk(&mut |expr| {
                    if let ExprKind::Binary { op, right, .. } = &expr.kind {
                        promised |= op == "%" && passed.iter().any(|value| same(value, right));
                    }
                });
            }
        });
        promised
    })
}

/// The integer that an expression of host code certainly has. Understands literals, names that the function around the
/// launch binds once, and integers of the top level.
fn host_integer(module: &Module, launch: Option<&Launch>, expr: &Expr) -> Option<i128> {
    let host = launch.and_then(|launch| launch.host).and_then(|host| module.hosts.get(host));
    integer(expr, &|name| {
        if let Some(host) = host {
            if host.params.iter().any(|param| param == name) {
                return None;
            }
            let mut bindings = Vec::new();
            walk_statements(&host.body, &mut |stmt| match &stmt.kind {
                StmtKind::Assign { targets, value, .. } if targets.iter().any(|target| target.mentions(name)) => {
                    bindings.push(if targets.len() == 1 && targets[0].as_name().is_some() {
                        value.as_ref()
                    } else {
                        None
                    });
                }
                StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } if target.mentions(name) => {
                    bindings.push(None);
                }
                StmtKind::Definition { name: defined, .. } if defined == name => bindings.push(None),
                _ => {}
            });
            match bindings.as_slice() {
                [] if host.qualname.contains("<locals>") => return None,
                [] => {}
                [Some(value)] => return integer(value, &|_| None),
                _ => return None,
            }
        }
        global_integer(module, name)
    })
}

/// The value that the top level certainly binds to `name`.
#[must_use]
pub fn global<'a>(module: &'a Module, name: &str) -> Option<&'a Expr> {
    let mut of_name = module.globals.iter().filter(|global| global.name == name);
    let global = of_name.next()?;
    (of_name.next().is_none() && !module.uncertain.contains(name)).then_some(&global.value)
}

fn global_integer(module: &Module, name: &str) -> Option<i128> {
    integer(global(module, name)?, &|_| None)
}
