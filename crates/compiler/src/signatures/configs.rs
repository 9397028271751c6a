//! The settings of each configuration of an autotuner, including configurations that comprehensions create.

use std::collections::BTreeMap;

use model::analysis::launches::global;
use model::analysis::tuning::{Template, Tuner};
use model::api::Version;
use model::kernel::ast::{Expr, ExprKind};
use model::kernel::{Kernel, Module};

use super::constant::Constant;
use super::launch_parameters::of_top_level;
use super::variants::{ConstantBindings, OPTIONS};

/// The greatest number of configurations that are read from one comprehension.
const MAX: usize = 1024;
/// The number of leading arguments of `triton.Config` whose order is the same in all releases.
const ORDERED: usize = 4;

/// The configurations of an autotuner.
#[derive(Debug, Default)]
pub(super) struct Setups {
    /// The configurations that can be evaluated.
    pub(super) all: Vec<Setup>,
    /// The number of configurations that cannot be evaluated.
    pub(super) unread: usize,
}

/// The settings of one configuration.
#[derive(Debug)]
pub(super) struct Setup {
    /// The index of the call that creates it, among [`Tuner::configs`].
    pub(super) config: usize,
    /// The meta-parameters of the kernel.
    pub(super) meta: BTreeMap<String, Constant>,
    pub(super) options: BTreeMap<String, i64>,
    /// The label of the configuration.
    pub(super) label: String,
    /// Whether the autotuner certainly tries it, and all of its settings are known.
    pub(super) is_sure: bool,
    /// Whether something runs before the launch.
    pub(super) has_hook: bool,
}

/// The default of `num_stages` in `triton.Config` for a version of Triton.
pub(crate) fn usual_stages(triton: Version) -> i64 {
    if triton.series() < (3, 3) { 2 } else { 3 }
}

/// The settings of an autotuner's configurations. `stages` is the default of `num_stages`.
pub(super) fn of(module: &Module, kernel: &Kernel, tuner: &Tuner<'_>, stages: i64) -> Setups {
    let mut found = Setups::default();
    for (at, template) in tuner.configs.iter().enumerate() {
        let Some(rounds) = rounds(module, template) else {
            found.unread += 1;
            continue;
        };
        for values in rounds {
            match setup(module, kernel, template, &values, stages) {
                Some(setup) => {
                    let is_sure = setup.is_sure && !tuner.may_prune();
                    found.all.push(Setup { config: at, is_sure, ..setup });
                }
                None => found.unread += 1,
            }
        }
    }
    found
}

fn setup(
    module: &Module,
    kernel: &Kernel,
    template: &Template<'_>,
    values: &ConstantBindings,
    stages: i64,
) -> Option<Setup> {
    let mut options = BTreeMap::from([("num_warps".to_owned(), 4), ("num_stages".to_owned(), stages)]);
    let mut label = Vec::new();
    let (mut meta, mut is_sure) = (BTreeMap::new(), template.is_sure);
    match &template.call.argument("kwargs", Some(0))?.kind {
        ExprKind::Dict { items, open: false } => {
            for (key, value) in items {
                let ExprKind::Str(name) = &key.kind else { return None };
                let value = of_top_level(module, value, values)?;
                label.push(format!("{name}={}", text(&value)));
                // A name that is no parameter of the kernel is a launch option.
                match (kernel.param(name), &value) {
                    (Some(_), _) => _ = meta.insert(name.clone(), value),
                    (None, Constant::Int(value)) if OPTIONS.contains(&name.as_str()) => {
                        options.insert(name.clone(), *value);
                    }
                    (None, _) => is_sure = false,
                }
            }
        }
        _ => return None,
    }
    for (at, name) in OPTIONS.iter().enumerate() {
        let position = Some(at + 1).filter(|at| *at < ORDERED);
        let Some(value) = template.call.argument(name, position).filter(|value| value.kind != ExprKind::None) else {
            continue;
        };
        let Constant::Int(value) = of_top_level(module, value, values)? else { return None };
        label.push(format!("{name}={value}"));
        options.insert((*name).to_owned(), value);
    }
    let is_known = |name: &str| matches!(name, "kwargs" | "pre_hook") || OPTIONS.contains(&name);
    is_sure &= template.call.args.iter().all(|arg| arg.keyword.as_ref().is_none_or(|(name, _)| is_known(name)));
    is_sure &=
        template.call.args.iter().filter(|arg| arg.keyword.is_none()).count() <= ORDERED && !template.call.has_star();
    let has_hook = template.call.argument("pre_hook", None).is_some();
    Some(Setup { config: 0, meta, options, label: label.join(", "), is_sure, has_hook })
}

/// The values of names in each iteration of the comprehensions around a configuration; one iteration without any.
fn rounds(module: &Module, template: &Template<'_>) -> Option<Vec<ConstantBindings>> {
    let mut rounds = vec![ConstantBindings::new()];
    for (target, iter) in &template.clauses {
        let mut next = Vec::new();
        for round in &rounds {
            for item in items(module, iter, round)? {
                let mut values = round.clone();
                bind(target, item, &mut values)?;
                next.push(values);
            }
            if next.len() > MAX {
                return None;
            }
        }
        rounds = next;
    }
    Some(rounds)
}

/// Binds a name, or the names of a tuple.
fn bind(target: &Expr, value: Constant, values: &mut ConstantBindings) -> Option<()> {
    match (&target.kind, value) {
        (ExprKind::Name(name), value) => _ = values.insert(name.clone(), value),
        (ExprKind::Tuple(names) | ExprKind::List(names), Constant::Tuple(parts)) if names.len() == parts.len() => {
            names.iter().zip(parts).try_for_each(|(name, part)| bind(name, part, values))?;
        }
        _ => return None,
    }
    Some(())
}

/// The items over which a clause iterates.
fn items(module: &Module, iter: &Expr, values: &ConstantBindings) -> Option<Vec<Constant>> {
    let iter =
        iter.as_name().filter(|name| !values.contains_key(*name)).and_then(|name| global(module, name)).unwrap_or(iter);
    if let Some(call) = iter.as_call().filter(|call| call.func.as_name() == Some("range")) {
        let number = |at: usize| match of_top_level(module, &call.args.get(at)?.value, values)? {
            Constant::Int(value) => Some(value),
            _ => None,
        };
        let (start, end, step) = match call.args.len() {
            1 => (0, number(0)?, 1),
            2 => (number(0)?, number(1)?, 1),
            3 => (number(0)?, number(1)?, number(2)?),
            _ => return None,
        };
        let step = usize::try_from(step).ok().filter(|step| *step > 0)?;
        return Some((start..end).step_by(step).take(MAX).map(Constant::Int).collect());
    }
    match &iter.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            items.iter().map(|item| of_top_level(module, item, values)).collect()
        }
        _ => None,
    }
}

/// A value as Python writes it.
pub(super) fn text(value: &Constant) -> String {
    match value {
        Constant::None => "None".to_owned(),
        Constant::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Constant::Int(value) => value.to_string(),
        Constant::Float(value) => format!("{value:?}"),
        Constant::Str(text) => format!("'{text}'"),
        Constant::Dtype(name) => format!("tl.{name}"),
        Constant::Tuple(items) => format!("({})", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Constant::Dict(_) => "{…}".to_owned(),
    }
}
