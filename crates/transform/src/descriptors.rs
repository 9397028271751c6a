//! Replaces pointers and masks of a product's tiles by tensor descriptors.

mod bounded;
mod host;
mod numbers;
mod tile;
mod words;
mod wrapped;

use base::rng::Rng;
use model::analysis::types::KernelAnalysis;
use model::api::Lookup;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use crate::candidate::Change;
use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::statements::assigned;
use crate::step::StepSize;
use crate::subject::Subject;
use crate::words::{fresh, indent_of};

use host::Host;
use numbers::Numbers;
use tile::{Axis, Tile, tile_of};
use words::Words;

/// Loads the tiles of a product through tensor descriptors, where the pointers and masks of the loads describe the same
/// tiles or where the sizes are multiples of the tiles. On Hopper and later GPUs one thread then has the whole tile
/// copied into shared memory, without registers for addresses and masks. A descriptor requires contiguous rows that
/// begin at multiples of 16 bytes. Each call checks that, and a constexpr of the kernel keeps the former loads for
/// other tensors.
pub(super) struct Descriptors;

impl Skill for Descriptors {
    fn name(&self) -> &'static str {
        "descriptors"
    }

    fn about(&self) -> &'static str {
        "Tensor descriptors for the tiles of a product, where pointers and masks say the same, or the sizes that tiles divide where there are no masks (Triton 3.3 and later). They ask for contiguous rows that begin at multiples of 16 bytes: the launch asks for that at each call, and otherwise the kernel keeps its former code."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let changes = vec![Change::Structure("tensor descriptors".to_owned())];
        let edits = wrapped::unwrapped(subject)
            .and_then(|text| subject.edits_through(&text, bounded_or_not))
            .or_else(|| bounded_or_not(subject));
        edits.map(|edits| Proposal { kind: "descriptors".to_owned(), edits, changes }).into_iter().collect()
    }
}

/// A statement that loads a tile.
struct Loaded<'a> {
    stmt: &'a Stmt,
    load: &'a Expr,
    tile: Tile,
    /// The axis along which elements are contiguous in memory.
    inner: usize,
    /// The name of the descriptor.
    name: String,
}

impl Loaded<'_> {
    /// The axes in the order of the descriptor.
    fn axes(&self) -> [&Axis; 2] {
        [&self.tile.axes[1 - self.inner], &self.tile.axes[self.inner]]
    }
}

/// The edits, after masks are added to loads that have none.
fn bounded_or_not(subject: &Subject<'_>) -> Option<Vec<Edit>> {
    bounded::bounded(subject).and_then(|text| subject.edits_through(&text, described)).or_else(|| described(subject))
}

fn described(subject: &Subject<'_>) -> Option<Vec<Edit>> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let is_plain =
        kernel.plain && !kernel.has_error && !kernel.nested && subject.workload.source != WorkloadSource::Launch;
    let is_there = |name: &str| matches!(subject.target.lookup(name), Lookup::Found(_));
    let can = is_there("triton.language.make_tensor_descriptor") && is_there("triton.set_allocator");
    if !is_plain || !can || text.contains("set_allocator") || !subject.has_product() {
        return None;
    }
    let host = Host::of(subject)?;
    let numbers = Numbers::of(subject);
    let facts = numbers.facts(subject)?;
    let all = loaded(subject, &facts, &host);
    let assigned = assigned(kernel);
    let words = Words { subject, loops: &facts.loops, assigned, numbers: numbers.names };
    let first = all.first()?;
    let switch = fresh(text, "DESCRIPTORS");
    let (mut edits, mut made, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    for it in &all {
        edits.push(words.branch(it, &switch)?);
        let line = words.descriptor(it)?;
        if !made.contains(&line) {
            asked.extend(host.conditions(it)?);
            made.push(line);
        }
    }
    let home = kernel
        .body
        .iter()
        .find(|stmt| stmt.span.start <= first.stmt.span.start && first.stmt.span.end <= stmt.span.end)?;
    let indent = indent_of(text, home.span.start)?;
    let deeper = format!("{indent}{}", words.step()?);
    let lines: String =
        made.iter().map(|line| format!("\n{deeper}{}", line.replace('\n', &format!("\n{deeper}")))).collect();
    let at = Span::new(home.span.start, home.span.start);
    edits.push(Edit { span: at, text: format!("if {switch}:{lines}\n{indent}") });
    edits.extend(host.edits(&switch, &asked)?);
    Some(edits)
}

/// The statements `name = … tl.load(…) …` whose tiles are known.
fn loaded<'a>(subject: &'a Subject<'a>, facts: &KernelAnalysis, host: &Host<'_>) -> Vec<Loaded<'a>> {
    let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
    let mut found: Vec<Loaded<'a>> = Vec::new();
    walk_statements(&subject.kernel.body, &mut |stmt| {
        let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return };
        let mut loads = Vec::new();
        value.walk(&mut |expr| {
            let of = |func| module.language_member(subject.kernel, func);
            if expr.as_call().is_some_and(|call| of(&call.func).as_deref() == Some("load")) {
                loads.push(expr);
            }
        });
        let [load] = loads.as_slice() else { return };
        let mut of_load = facts.accesses.iter().filter(|access| access.span == load.span);
        let (Some(access), None, [target]) = (of_load.next(), of_load.next(), targets.as_slice()) else { return };
        let fills = load.as_call().and_then(|call| call.argument("other", Some(2)));
        let Some(tile) = tile_of(subject, facts, access, load).filter(|_| fills.is_none_or(is_zero)) else { return };
        let Some(inner) = host.inner(&tile).filter(|_| target.as_name().is_some()) else { return };
        let plain = tile.base.strip_suffix("_ptr").unwrap_or(&tile.base).to_lowercase();
        let mut it = Loaded { stmt, load, tile, inner, name: fresh(text, &format!("{plain}_tiles")) };
        // Loads that differ only in the position share a descriptor.
        let shape =
            |it: &Loaded<'_>| it.axes().map(|axis| (axis.stride.clone(), axis.length.clone(), axis.size.clone()));
        let mut same = found.iter().filter(|other| other.tile.base == it.tile.base);
        match same.find(|other| shape(other) == shape(&it)) {
            Some(other) => it.name.clone_from(&other.name),
            None => {
                while found.iter().any(|other| other.name == it.name) {
                    it.name.push('_');
                }
            }
        }
        found.push(it);
    });
    found
}

fn is_zero(expr: &Expr) -> bool {
    expr.as_int() == Some(0) || matches!(expr.kind, ExprKind::Float(value) if value == 0.0)
}

#[cfg(test)]
mod tests;
