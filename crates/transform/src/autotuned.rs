//! Adds an autotuner to a kernel that has none.

mod grid;
mod kind;
mod neighbours;
mod numbers;
mod proof;

use base::rng::Rng;
use model::kernel::ast::{Expr, ExprKind, Stmt};
use model::kernel::{HostFunction, Launch};
use model::syntax::Span;
use protocol::{ArgumentValue, LaunchRecord, WorkloadSource};
use rules::Edit;

use super::candidate::Change;
use super::names::in_expr;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::subject_launch::{only_launch, passed};
use super::words::indent_of;
use super::written::{bindings, only_value, word_count};

use grid::TiledGrid;
use neighbours::neighbours;
use numbers::LaunchNumbers;
use proof::{TileProof, prove};

/// Functions and methods that allocate a tensor to which nothing else refers.
const MAKERS: [&str; 10] = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "new_empty",
    "new_full",
    "new_zeros",
    "ones_like",
    "zeros",
    "zeros_like",
];

/// Lets `@triton.autotune` choose, for each size, between the current configuration and its neighbours. The choice for
/// other sizes is never judged, so each configuration must be correct: tile sizes vary only where the kernel computes
/// the same with any of them. A kernel that would compute something else when it runs twice on the same tensors gets no
/// autotuner.
pub(super) struct Autotuned;

impl Skill for Autotuned {
    fn name(&self) -> &'static str {
        "autotuned"
    }

    fn about(&self) -> &'static str {
        "`@triton.autotune` for a kernel that has none: a few configurations around the present numbers, of which each size gets the fastest. The launch no longer passes them, and the grid is counted by what was chosen."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn is_for_sizes(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        turn(subject).into_iter().collect()
    }
}

fn turn(subject: &Subject<'_>) -> Option<Proposal> {
    let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
    let launch = only_launch(subject).filter(|_| is_simple(subject))?;
    let host = &module.hosts[launch.host?];
    let mut numbers = LaunchNumbers::of(subject, launch, host)?;
    let all = TiledGrid::of(subject, launch, host, &numbers.tiles)?;
    // A tile that divides nothing may be the size of something.
    let is_in_grid = |at: usize| all.of_grid() & 1 << at != 0;
    let tiles = numbers.tiles.into_iter().enumerate();
    numbers.tiles =
        tiles.filter(|(at, tile)| is_in_grid(*at) || proof::counts(subject, tile.name)).map(|(_, tile)| tile).collect();
    let grid = TiledGrid::of(subject, launch, host, &numbers.tiles)?;
    let tiles: Vec<&str> = numbers.tiles.iter().map(|tile| tile.name).collect();
    let found = prove(subject, &tiles, &grid.axes)?;
    if !is_apart(subject, launch, host, &found) {
        return None;
    }
    let key = key(subject, launch, host, found.sizes);
    let settings = neighbours(&numbers, grid.of_grid(), found.may_grow);
    if key.is_empty() || settings.len() < 3 {
        return None;
    }
    let triton = *module.imports.aliases_of("triton").first()?;
    let configs: Vec<String> = settings.iter().map(|setting| setting.written(triton, &numbers)).collect();
    let named = |number: &numbers::LaunchNumber<'_>| {
        let at = numbers.tiles.iter().position(|tile| tile == number);
        at.and_then(|at| grid.named.get(at).copied()).unwrap_or_default()
    };
    let mut edits = numbers.removed(subject, launch, host, named)?;
    edits.push(decorator(subject, text, triton, &configs, &key)?);
    edits.extend(grid.edits);
    let what = format!("autotuned: {} configurations by {}", configs.len(), key.join(", "));
    Some(Proposal { kind: "autotuned".to_owned(), edits, changes: vec![Change::Structure(what)] })
}

/// Whether the launch is the only use of the kernel, as far as this file shows.
fn is_simple(subject: &Subject<'_>) -> bool {
    let &Subject { kernel, candidate, workload, .. } = subject;
    let is_called = candidate.module.called_in_kernels().contains(&kernel.name);
    let is_plain = kernel.plain && kernel.heuristics.is_some() && kernel.autotune.is_none() && !kernel.nested;
    let is_known = candidate.module.kernel(&kernel.name).is_some() && kernel.params.iter().all(|param| !param.variadic);
    // One occurrence is its definition, the other its launch.
    let is_own = word_count(&candidate.text, &kernel.name) == 2;
    workload.source != WorkloadSource::Launch && is_plain && is_known && is_own && !kernel.has_error && !is_called
}

/// Whether the kernel writes only to memory that the host function allocates itself and that the kernel does not read.
fn is_apart(subject: &Subject<'_>, launch: &Launch, host: &HostFunction, found: &TileProof) -> bool {
    let passed = passed(subject, launch);
    let params = || subject.kernel.params.iter().enumerate().take(64);
    let of = |bits: u64| params().filter(move |(at, _)| bits & 1 << at != 0).map(|(_, param)| param.name.as_str());
    let value = |param: &str| passed.iter().find(|(name, _)| *name == param).map(|(_, arg)| &arg.value);
    let written: Option<Vec<&str>> = of(found.stored).map(|param| made(host, value(param)?)).collect();
    let Some(written) = written else { return false };
    let is_other =
        |param: &str| value(param).is_some_and(|value| !written.iter().any(|written| is_part(host, value, written)));
    !written.is_empty() && of(found.loaded).all(is_other)
}

/// The name of `value`, if it is a tensor that the host function allocates.
fn made<'a>(host: &HostFunction, value: &'a Expr) -> Option<&'a str> {
    let name = value.as_name().filter(|name| !host.params.iter().any(|param| param == name))?;
    let call = only_value(&host.body, name)?.as_call()?;
    let (ExprKind::Name(maker) | ExprKind::Attribute { name: maker, .. }) = &call.func.kind else { return None };
    MAKERS.contains(&maker.as_str()).then_some(name)
}

/// Whether an expression of the host may be a part of a tensor, directly or through names.
fn is_part(host: &HostFunction, expr: &Expr, tensor: &str) -> bool {
    let mut names = in_expr(expr);
    let mut open: Vec<&str> = names.iter().copied().collect();
    while let Some(name) = open.pop() {
        for expr in bindings(&host.body, name).into_iter().flat_map(Stmt::exprs) {
            open.extend(in_expr(expr).into_iter().filter(|other| names.insert(other)));
        }
    }
    names.contains(tensor)
}

/// The parameters for the sizes that a launch passes: those recorded as integers, without strides.
fn key(subject: &Subject<'_>, launch: &Launch, host: &HostFunction, sizes: Vec<String>) -> Vec<String> {
    let text = subject.candidate.text.as_str();
    let passed = passed(subject, launch);
    let is_size = |size: &String| {
        let Some((_, arg)) = passed.iter().find(|(param, _)| param == size) else { return false };
        let value = arg.value.as_name().and_then(|name| only_value(&host.body, name)).unwrap_or(&arg.value);
        let is_stride = text.get(value.span.start..value.span.end).is_none_or(|text| text.contains("stride"));
        let is_fixed = matches!(value.kind, ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None);
        !is_stride && !is_fixed && is_integer(subject, size)
    };
    let mut key = sizes;
    key.retain(is_size);
    let place = |name: &String| subject.kernel.params.iter().position(|param| param.name == *name);
    key.sort_by_key(place);
    key
}

fn is_integer(subject: &Subject<'_>, param: &str) -> bool {
    let of_kernel = |launch: &&LaunchRecord| launch.kernel == subject.kernel.name;
    let mut recorded = subject.workload.launches.iter().filter(of_kernel);
    recorded.all(|launch| {
        let mut passed = launch.keywords.iter().chain(&launch.arguments).filter(|(name, _)| name == param);
        passed.all(|(_, value)| matches!(value, ArgumentValue::Int(_)))
    })
}

/// The `@triton.autotune` decorator, to be placed above all other decorators.
fn decorator(subject: &Subject<'_>, text: &str, triton: &str, configs: &[String], key: &[String]) -> Option<Edit> {
    let at = subject.kernel.decorators.first()?.expr.span.start;
    let indent = indent_of(text, text[..at].rfind('@')?)?;
    let configs: String = configs.iter().map(|config| format!("{indent}        {config},\n")).collect();
    let key = key.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    // The text goes after the `@` of the first decorator, which the new decorator takes over.
    let text = format!(
        "{triton}.autotune(\n{indent}    configs=[\n{configs}{indent}    ],\n{indent}    key=[{key}],\n{indent})\n{indent}@"
    );
    Some(Edit { span: Span::new(at, at), text })
}

#[cfg(test)]
mod tests;
