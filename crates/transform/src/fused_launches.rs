//! Fuses two kernels that a function launches one right after the other, so that the intermediate values stay in
//! registers.

mod flat;
mod form;
mod host;
mod launch;
mod names;
mod pair;
mod roots;
mod side;
mod sweep;
#[cfg(test)]
mod tests;
mod tile;
mod write;

use base::rng::Rng;
use model::kernel::ast::Stmt;
use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::candidate::Change;
use super::lines::{line_end, lines_of};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, has_word, indent_of};

use launch::Called;
use pair::{Pair, pairs};
use write::{Fusion, FusionKind};

/// Fuses two kernels that are launched one after the other into a new kernel beside them, with one launch in place of
/// two. Where both have the same tiles (the same grid, and the same offsets at the memory between them), the second
/// body follows the first. Otherwise one of the kernels must be elementwise, and processes the tiles of the other.
pub(super) struct FusedLaunches;

impl Skill for FusedLaunches {
    fn name(&self) -> &'static str {
        "fused_launches"
    }

    fn about(&self) -> &'static str {
        "One kernel instead of two that a function launches one right after the other, where the second reads what the first has written: it stays in registers, and is written to memory only if it is used later. The two have the same tiles, or one of them works on each element alone and takes the tiles of the other (a sum before a norm, an activation behind a product)."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn keeps_contract(&self) -> bool {
        // Both original kernels stay in the file.
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let turn = |edits| {
            let changes = vec![Change::Structure("one kernel for two launches".to_owned())];
            Proposal { kind: "fused_launches".to_owned(), edits, changes }
        };
        let edits =
            |pair: &Pair<'_>| -> Vec<Vec<Edit>> { ways(pair).iter().filter_map(|&way| fused(pair, way)).collect() };
        pairs(subject).iter().flat_map(edits).map(turn).collect()
    }
}

/// The ways in which two kernels may be fused.
fn ways(pair: &Pair<'_>) -> &'static [FusionKind] {
    let (grid, other) = (pair.first.grid(), pair.second.grid());
    let is_same = |between: &pair::Between<'_>| {
        let store = &between.store;
        between.loads.iter().all(|load| {
            let is_within = match (&store.mask, &load.mask) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(stored), Some(loaded)) => loaded.implies(stored),
            };
            is_within && load.is_outer && store.is_outer && load.pointer.address() == store.pointer.address()
        })
    };
    if grid.is_some() && grid == other && pair.between.iter().all(is_same) {
        &[FusionKind::SameTiles]
    } else {
        &[FusionKind::AtStore, FusionKind::AtLoad]
    }
}

/// The fused kernel beside the others, and its launch.
fn fused(pair: &Pair<'_>, way: FusionKind) -> Option<Vec<Edit>> {
    let text = pair.around.text;
    let (fusion, body) = Fusion::of(pair, way)?;
    let called = Called::of(&fusion.names, &body)?;
    let owner = fusion.names.owner;
    let (first, second) = (&pair.first, &pair.second);
    let short = |name: &str| name.strip_suffix("_kernel").unwrap_or(name).to_owned();
    let name = fresh(text, &format!("{}_{}_fused", short(&first.kernel.name), short(&second.kernel.name)));
    let decorators = text.get(owner.kernel.span.start..owner.kernel.def_span.start)?;
    let later = [first, second].into_iter().map(|side| side.kernel.span.end).max()?;
    let definition = format!("\n\n\n{decorators}{}:\n{}", called.definition(&name), body.trim_end());
    let at = line_end(text, later);
    let mut edits = vec![Edit { span: Span::new(at, at), text: definition }];

    let grid = text.get(owner.launch.grid.span.start..owner.launch.grid.span.end)?;
    let indent = indent_of(text, second.launch.span.start)?;
    let launch = called.launch(&format!("{name}[{grid}]"), indent);
    edits.push(without(text, pair.stmt)?);
    edits.push(Edit { span: second.launch.span, text: launch });
    // Memory that nothing uses any more is not allocated.
    for between in pair.between.iter().filter(|between| !between.is_kept) {
        let allocation = pair.around.allocation(between.tensor)?;
        let gone = without(text, allocation.stmt)?;
        let mut all = edits.clone();
        all.push(gone.clone());
        let host = pair.around.host.span;
        let own: Vec<Edit> =
            all.iter().filter(|edit| host.start <= edit.span.start && edit.span.end <= host.end + 1).cloned().collect();
        let moved = own.into_iter().map(|edit| Edit {
            span: Span::new(edit.span.start - host.start, edit.span.end - host.start),
            text: edit.text,
        });
        let rest = apply_edits(text.get(host.start..)?, &moved.collect::<Vec<_>>());
        let end = rest.len() - (text.len() - host.end);
        let is_plain = allocation.stmt.targets().iter().all(|target| target.as_name() == Some(between.tensor));
        if is_plain && !has_word(&rest[..end], between.tensor) {
            edits.push(gone);
        }
    }
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    Some(edits)
}

/// The edit that removes the lines of a statement.
fn without(text: &str, stmt: &Stmt) -> Option<Edit> {
    let lines = lines_of(text, stmt)?;
    let end = (lines.end + 1).min(text.len());
    Some(Edit { span: Span::new(lines.start, end), text: String::new() })
}
