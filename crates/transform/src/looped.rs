//! Splits a row that is in one tile into several tiles, which loops process.

mod memory;
mod parts;
mod row;
mod text;
mod write;

use base::rng::Rng;
use model::kernel::Launch;
use model::kernel::ast::{argument, has_star};
use protocol::{ArgumentValue, WorkloadSource};
use rules::Edit;

use super::candidate::Change;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::written::certain;

use parts::Home;
use row::Row;

/// The tile sizes that are tried first; the launch then has a number that other skills can change.
const TILES: [i64; 4] = [1024, 2048, 4096, 8192];

/// Makes loops over the row of a kernel that has `BLOCK = next_power_of_2(n)` and `cols = tl.arange(0, BLOCK)`, the
/// opposite of [`super::single_tile`]: one loop for each sum, maximum or minimum of the row that later work depends on,
/// which accumulates a tile of partial results, and one loop for the stores. Each loop loads and computes again what it
/// needs. Long rows then do not spill registers, fewer lanes are idle where the length is not a power of two, and more
/// programs fit on a multiprocessor; the second pass reads from the cache.
///
/// The kernel is read as a list of statements ([`parts`]), each of which either does not depend on the row, and stays
/// where it is, or works on elements of the row ([`row`]), and moves to the loops that need it ([`write`]). Only
/// elementwise work and those reductions are supported; all loads and stores along the row must be masked by
/// `cols < n`, and no parameter may be both loaded from and stored to. Lanes beyond the end of the row are excluded
/// from reductions: for a kernel that includes them this changes the result, which the judge finds. The same holds for
/// a kernel whose tile is shorter than its row.
pub(super) struct Looped;

impl Skill for Looped {
    fn name(&self) -> &'static str {
        "looped"
    }

    fn about(&self) -> &'static str {
        "Loops over the row, where it is in one tile: long rows do not fit into the registers of a program."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let Some((block, kernel)) = looped(subject) else { return Vec::new() };
        let turn = |tile: i64| {
            let (edits, change) = with_tile(subject, block, tile)?;
            let structure = Change::Structure("loops over the row".to_owned());
            let edits = kernel.iter().cloned().chain(edits).collect();
            Some(Proposal { kind: "looped".to_owned(), edits, changes: vec![structure, change] })
        };
        let most = most(subject, block);
        TILES.into_iter().filter(|&tile| most.is_none_or(|most| tile < most)).filter_map(turn).collect()
    }
}

/// The parameter that is the tile size, and the edits of the kernel.
fn looped<'a>(subject: &Subject<'a>) -> Option<(&'a str, Vec<Edit>)> {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let is_plain = kernel.plain
        && kernel.autotune.is_none()
        && kernel.heuristics.as_ref().is_some_and(Vec::is_empty)
        && !kernel.has_error
        && !module.called_in_kernels().contains(&kernel.name);
    let row = Row::of(subject).filter(|_| is_plain)?;
    let home = Home::of(&row)?;
    Some((row.block, write::edits(&row, &home)?))
}

/// The size of the tile in the recorded call.
fn most(subject: &Subject<'_>, block: &str) -> Option<i64> {
    let of = subject.records();
    let passed = of.flat_map(|launch| launch.keywords.iter().chain(&launch.arguments));
    let numbers = passed.filter(|(name, _)| name == block).filter_map(|(_, value)| match value {
        ArgumentValue::Int(number) => Some(*number),
        _ => None,
    });
    numbers.max()
}

/// The edits that pass another tile size in all launches.
fn with_tile(subject: &Subject<'_>, block: &str, tile: i64) -> Option<(Vec<Edit>, Change)> {
    if subject.workload.source == WorkloadSource::Launch {
        let at = subject.knobs.iter().position(|knob| knob.name == block && knob.current > tile)?;
        let mut setting = subject.present();
        setting[at] = tile;
        let Proposal { edits, mut changes, .. } = subject.turn("", &setting);
        return Some((edits, changes.pop()?));
    }
    let module = &subject.candidate.module;
    let at = subject.kernel.params.iter().position(|param| param.name == block)?;
    let launches: Vec<&Launch> = module.launches_of(&subject.kernel.name).collect();
    let (mut edits, mut from) = (Vec::new(), None);
    for launch in &launches {
        let is_open = launch.has_error || has_star(&launch.args);
        let passed = argument(&launch.args, block, Some(at)).filter(|_| !is_open)?;
        from = certain(module, launch, passed).or(from);
        edits.push(Edit { span: passed.span, text: tile.to_string() });
    }
    let name = block.to_owned();
    let change = match from {
        Some(from) => Change::Number { name, from, to: tile },
        None => Change::Chosen { name, to: tile },
    };
    (!edits.is_empty() && from.is_none_or(|from| from > tile)).then_some((edits, change))
}

#[cfg(test)]
mod tests;
