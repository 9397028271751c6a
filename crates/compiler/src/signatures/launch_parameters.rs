//! The arguments that the launches of a file and the configurations of autotuned kernels pass.

use std::collections::{BTreeSet, HashMap};

use model::analysis::constants::integer;
use model::analysis::launches::{ArgumentSource, global, passed};
use model::host::{Callers, HostLaunch, HostNumber, HostRun, HostValue};
use model::kernel::ast::{Call, Expr, ExprKind};
use model::kernel::{Config, Launch, Module, Param};
use model::syntax::Source;

use super::constant::Constant;
use super::{Given, Givens, Launching};

/// The greatest number of configurations of a kernel that are used.
const CONFIGS: usize = 4;

/// The greatest depth to which names and calls are followed.
const DEEP: usize = 8;

/// The facts about parameters in one launch.
#[derive(Clone, Debug, Default)]
pub(super) struct LaunchGivens {
    /// The known types and values of parameters.
    pub(super) givens: Givens,
    /// Parameters that get a tensor.
    pub(super) tensors: BTreeSet<String>,
    /// Parameters that get a Boolean.
    pub(super) flags: BTreeSet<String>,
}

/// The distinct launches of the file: those that the file's own code makes, with the sizes and types that it passes,
/// and those that only others make.
pub(super) fn sites(module: &Module, launch: &Launching<'_>, text: &str) -> Vec<LaunchGivens> {
    let kernel = launch.kernel;
    let mut sites: Vec<LaunchGivens> = Vec::new();
    let is_of_kernel = |call: &Launch| call.kernel.as_ref() == Some(&kernel.name) && !call.has_error;
    if !module.launches.iter().any(is_of_kernel) {
        return sites;
    }
    let source = Source::parse(text);
    let (called, alone) =
        (HostRun::of_callers(module, text, &Callers::of(module, &source)), HostRun::all(module, &source));
    for (at, call) in module.launches.iter().enumerate().filter(|(_, call)| is_of_kernel(call)) {
        let defaults = defaults(module, launch, call);
        let of = |run: &HostRun| -> Vec<LaunchGivens> {
            run.launches_at(at).map(|made| seen_in_run(module, launch, run, made, defaults.clone())).collect()
        };
        let mut found: Vec<LaunchGivens> = called.iter().flat_map(of).collect();
        if found.is_empty() {
            found = alone.iter().flat_map(|run| of(run)).collect();
        }
        if found.is_empty() {
            found.push(defaults);
        }
        for site in found {
            if sites.iter().all(|known| known.givens != site.givens) {
                sites.push(site);
            }
        }
    }
    sites
}

/// The parameters that a launch leaves out, with their defaults.
fn defaults(module: &Module, launch: &Launching<'_>, call: &Launch) -> LaunchGivens {
    let mut site = LaunchGivens::default();
    // A configuration or heuristic may give a compile-time parameter anything else.
    for param in launch.kernel.params.iter().filter(|param| !param.constexpr) {
        if passed(call, launch.kernel, &param.name) == ArgumentSource::Omitted
            && let Some(default) = &param.default
            && let Some(given) = of_default(module, launch, param, default)
        {
            site.givens.insert(param.name.clone(), given);
        }
    }
    site
}

/// What is known of a launch, with the facts of a run of its caller.
fn seen_in_run(
    module: &Module,
    launch: &Launching<'_>,
    run: &HostRun,
    launched: &HostLaunch,
    mut site: LaunchGivens,
) -> LaunchGivens {
    for param in &launch.kernel.params {
        let Some(value) = launched.value(module, launch.kernel, &param.name) else { continue };
        if let Some(given) = of_value(launch, param, run, value) {
            site.givens.insert(param.name.clone(), given);
        } else if value.tensor().is_some() {
            site.tensors.insert(param.name.clone());
        } else if matches!(value, HostValue::Bool(_)) {
            site.flags.insert(param.name.clone());
        }
    }
    site
}

/// The type or value of a parameter that gets a value of host code.
fn of_value(launch: &Launching<'_>, param: &Param, run: &HostRun, value: &HostValue) -> Option<Given> {
    if let HostValue::Number(number) = value {
        // Of several calls, the first counts.
        if let Some(number) = number.choices().iter().find_map(HostNumber::known) {
            return launch.integer(param, number, None);
        }
        return (!param.constexpr)
            .then(|| Given::Type(super::annotated(param).unwrap_or_else(|| "i32".to_owned()), false));
    }
    if param.constexpr || *value == HostValue::None {
        return constant(value).map(Given::Constant);
    }
    let word = match value {
        HostValue::Tensor(id) => return Some(launch.pointer(param, run.tensor(*id).dtype?.signature())),
        HostValue::Bool(_) => "i1",
        HostValue::Float => "fp32",
        _ => return None,
    };
    Some(Given::Type(super::annotated(param).unwrap_or_else(|| word.to_owned()), false))
}

/// A value of host code that the compiler can know.
fn constant(value: &HostValue) -> Option<Constant> {
    match value {
        HostValue::None => Some(Constant::None),
        HostValue::Bool(truth) => truth.map(Constant::Bool),
        HostValue::Number(number) => Constant::integer(number.known()?),
        HostValue::Text(text) => (!text.contains('\\')).then(|| Constant::Str(text.to_string())),
        HostValue::Dtype(dtype) => dtype.map(Constant::dtype),
        HostValue::Tuple(items) => items.iter().map(constant).collect::<Option<_>>().map(Constant::Tuple),
        _ => None,
    }
}

/// The known parameters, with each of the first configurations and with the defaults of parameters that are set nowhere
/// else.
pub(super) fn configured(module: &Module, launch: &Launching<'_>, known: &Givens) -> Vec<Givens> {
    let kernel = launch.kernel;
    let configs = kernel.autotune.as_ref().map(|autotune| autotune.configs.as_deref());
    if kernel.heuristics.is_none() {
        return vec![known.clone()];
    }
    let mut with_configs: Vec<Givens> = match configs {
        None => vec![known.clone()],
        // A list of configurations that is built elsewhere may set any parameter.
        Some(None) => return vec![known.clone()],
        Some(Some(configs)) => configs.iter().take(CONFIGS).map(|config| with_config(module, known, config)).collect(),
    };
    with_configs.iter_mut().for_each(|givens| fill_defaults(module, launch, givens));
    with_configs
}

/// Adds the defaults of parameters that are set nowhere else.
pub(super) fn fill_defaults(module: &Module, launch: &Launching<'_>, givens: &mut Givens) {
    let Some(heuristics) = &launch.kernel.heuristics else { return };
    for param in launch.kernel.params.iter().filter(|param| !heuristics.contains(&param.name)) {
        if let (Some(default), false) = (&param.default, givens.contains_key(&param.name))
            && let Some(given) = of_default(module, launch, param, default)
        {
            givens.insert(param.name.clone(), given);
        }
    }
}

fn with_config(module: &Module, known: &Givens, config: &Config) -> Givens {
    let mut givens = known.clone();
    for (name, value) in &config.meta {
        if let (Some(value), false) = (of_top_level(module, value, &HashMap::new()), givens.contains_key(name)) {
            givens.insert(name.clone(), Given::Constant(value));
        }
    }
    givens
}

fn of_default(module: &Module, launch: &Launching<'_>, param: &Param, default: &Expr) -> Option<Given> {
    let value = of_top_level(module, default, &HashMap::new())?;
    Some(match value {
        Constant::Int(value) => return launch.integer(param, value.into(), None),
        Constant::Bool(_) if !param.constexpr => Given::Type("i1".to_owned(), false),
        Constant::Float(_) if !param.constexpr => Given::Type("fp32".to_owned(), false),
        value => Given::Constant(value),
    })
}

/// The settings of the first configuration, including one that a comprehension creates.
pub(super) fn tuned(module: &Module, launch: &Launching<'_>) -> HashMap<String, Constant> {
    let Some(autotune) = &launch.kernel.autotune else { return HashMap::new() };
    let none = HashMap::new();
    if let Some(config) = autotune.configs.iter().flatten().next() {
        let values = config.meta.iter();
        return values.filter_map(|(name, value)| Some((name.clone(), of_top_level(module, value, &none)?))).collect();
    }
    let decorators = launch.kernel.decorators.iter().filter(|of| of.expr.span == autotune.span);
    let configs = decorators.filter_map(|decorator| decorator.expr.as_call()?.argument("configs", Some(0))).next();
    configs.map_or_else(HashMap::new, |configs| first_of(module, configs, 0))
}

/// The settings of the first of several configurations.
fn first_of(module: &Module, configs: &Expr, depth: usize) -> HashMap<String, Constant> {
    let next = |configs: &Expr| if depth > DEEP { HashMap::new() } else { first_of(module, configs, depth + 1) };
    match &configs.kind {
        ExprKind::Name(name) => global(module, name).map_or_else(HashMap::new, next),
        ExprKind::Binary { left, .. } => next(left),
        ExprKind::IfExp { body, .. } => next(body),
        ExprKind::List(items) => items.first().map_or_else(HashMap::new, next),
        ExprKind::Call(call) if call.func.dotted().is_some_and(|path| path.last() == Some(&"list")) => {
            call.args.first().map_or_else(HashMap::new, |arg| next(&arg.value))
        }
        ExprKind::Call(call) => of_config(module, call, &HashMap::new()),
        ExprKind::Comprehension { element, clauses, .. } => {
            let mut values = HashMap::new();
            for (target, iter) in clauses {
                if let (Some(name), Some(item)) = (target.as_name(), first_item(module, iter))
                    && let Some(value) = of_top_level(module, item, &values)
                {
                    values.insert(name.to_owned(), value);
                }
            }
            element.as_call().map_or_else(HashMap::new, |call| of_config(module, call, &values))
        }
        _ => HashMap::new(),
    }
}

fn of_config(module: &Module, call: &Call, values: &HashMap<String, Constant>) -> HashMap<String, Constant> {
    let Some(ExprKind::Dict { items, .. }) = call.argument("kwargs", Some(0)).map(|arg| &arg.kind) else {
        return HashMap::new();
    };
    let pair = |(key, value): &(Expr, Expr)| match &key.kind {
        ExprKind::Str(name) => Some((name.clone(), of_top_level(module, value, values)?)),
        _ => None,
    };
    items.iter().filter_map(pair).collect()
}

fn first_item<'a>(module: &'a Module, iter: &'a Expr) -> Option<&'a Expr> {
    let mut iter = iter;
    for _ in 0..DEEP {
        match &iter.kind {
            ExprKind::Name(name) => iter = global(module, name)?,
            ExprKind::IfExp { body, .. } => iter = body,
            ExprKind::Binary { left, .. } => iter = left,
            ExprKind::List(items) | ExprKind::Tuple(items) => return items.first(),
            _ => return None,
        }
    }
    None
}

/// The value of an expression of the top level.
pub(super) fn of_top_level(module: &Module, expr: &Expr, values: &HashMap<String, Constant>) -> Option<Constant> {
    let mut expr = expr;
    for _ in 0..DEEP {
        match &expr.kind {
            ExprKind::Name(name) => match values.get(name) {
                Some(value) => return Some(value.clone()),
                None => expr = global(module, name)?,
            },
            _ => break,
        }
    }
    let named = |name: &str| match values.get(name) {
        Some(Constant::Int(value)) => Some((*value).into()),
        _ => integer(global(module, name)?, &|_| None),
    };
    Constant::of_expr(expr).or_else(|| Constant::integer(integer(expr, &named)?))
}
