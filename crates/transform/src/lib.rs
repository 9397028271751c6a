//! Skills: the built-in rewrites of a kernel, which need no language model. Each skill is one file.
//!
//! A skill reads a candidate and proposes changes of it. It does not decide whether a change is correct or faster: the
//! judge does.

mod autotuned;
pub mod by_size;
pub mod candidate;
mod configuration;
mod descriptors;
mod dot_inputs;
mod dot_precision;
mod even_sizes;
mod eviction;
mod exp2;
mod full_iterations;
mod fused_launches;
mod grid_tiles;
mod grouped_order;
mod guard;
mod heuristic;
mod hoisted_loads;
mod launch_options;
pub mod launch_params;
mod launched;
mod lift;
mod lines;
mod loads;
mod longest_first;
mod loop_options;
mod looped;
mod masked;
mod names;
mod narrow_offsets;
pub mod one_configuration;
mod parameter;
mod persistent;
mod pointwise;
mod product_tiles;
mod programs_per_sm;
mod reaching;
mod recomputed;
mod rounds;
mod rows_per_program;
mod single_tile;
mod split;
mod step;
mod summed_atomics;
mod swapped_factors;
mod tile_sizes;
#[cfg(test)]
mod turned;
mod two_dimensional;
mod unmasked;
mod unroll;
mod untuned;
mod widened;
mod written;

use std::collections::BTreeSet;

use base::rng::Rng;
use candidate::{Candidate, Change, edits_between};
use model::analysis::types::{KernelAnalysis, infer};
use model::api::TritonTarget;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module};
use protocol::{LaunchRecord, Workload, WorkloadSource};
use rules::Edit;
pub use step::StepSize;
use workload::{launch_of_candidate, numbers_of_comment};

use launch_params::Knob;

/// A proposal: one change of a candidate's source.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The kind under which experience with such proposals is collected, such as `num_warps up`.
    pub kind: String,
    /// The edits of the candidate's source.
    pub edits: Vec<Edit>,
    /// The same change in the form that reports describe.
    pub changes: Vec<Change>,
}

impl Proposal {
    /// A proposal that changes the structure of the kernel; `None` where there are no edits.
    fn of_structure(kind: &str, what: &str, edits: Vec<Edit>) -> Option<Self> {
        let changes = vec![Change::Structure(what.to_owned())];
        (!edits.is_empty()).then(|| Self { kind: kind.to_owned(), edits, changes })
    }
}

/// A built-in rewrite: proposes changes of a candidate.
pub trait Skill: Sync {
    /// The name under which users see the skill, which is the name of its file.
    fn name(&self) -> &'static str;

    /// What the skill does, and why that may be faster; in Markdown.
    fn about(&self) -> &'static str;

    /// Whether the skill makes small steps, which keep the structure of the candidate, or large ones.
    fn step(&self) -> StepSize;

    /// Whether the skill changes nothing but numbers (tile sizes and launch options).
    fn turns_numbers(&self) -> bool {
        false
    }

    /// Whether the rewritten kernel still works for all its other launches and callers.
    fn keeps_contract(&self) -> bool {
        false
    }

    /// Whether the skill helps only where calls differ in size: a single call has its own best numbers.
    fn is_for_sizes(&self) -> bool {
        false
    }

    /// Whether the skill gains a few percent at most: all its proposals together weigh less than one untried proposal
    /// of another kind.
    fn is_fine(&self) -> bool {
        false
    }

    /// Whether the skill's proposals exclude each other: no small step leads from a candidate with one of them to
    /// another.
    fn parts_ways(&self) -> bool {
        false
    }

    /// The skill's proposals for a candidate. They may be a random sample of all that are possible.
    fn turns(&self, subject: &Subject<'_>, chance: &mut Rng) -> Vec<Proposal>;
}

/// All built-in skills.
pub const SKILLS: &[&dyn Skill] = &[
    &tile_sizes::TileSizes,
    &launch_options::LaunchOptions,
    &loop_options::LoopOptions,
    &programs_per_sm::Resident,
    &eviction::Eviction,
    &hoisted_loads::HoistedLoads,
    &exp2::Exp2,
    &dot_inputs::DotInputs,
    &dot_precision::DotPrecision,
    &widened::Widened,
    &swapped_factors::SwappedFactors,
    &even_sizes::EvenSizes,
    &narrow_offsets::NarrowOffsets,
    &configuration::Configuration,
    &product_tiles::ProductTiles,
    &rows_per_program::RowsPerProgram,
    &two_dimensional::TwoDimensional,
    &single_tile::SingleTile,
    &looped::Looped,
    &recomputed::Recomputed,
    &one_configuration::OneConfiguration,
    &autotuned::Autotuned,
    &grouped_order::GroupedOrder,
    &longest_first::LongestFirst,
    &unroll::RoundsAtOnce,
    &persistent::Persistent,
    &summed_atomics::SummedAtomics,
    &descriptors::Descriptors,
    &full_iterations::WholeRounds,
    &split::SplitLoop,
    &fused_launches::FusedLaunches,
];

/// The input of a skill: a candidate, its kernel, and the recorded call that runs it.
pub struct Subject<'a> {
    /// The numbers of the launch that can be changed.
    pub knobs: Vec<Knob>,
    /// The candidate to change.
    pub candidate: &'a Candidate,
    /// The kernel of the candidate.
    pub kernel: &'a Kernel,
    /// The recorded call that launches it.
    pub workload: &'a Workload,
    /// The release of Triton that candidates are compiled with.
    pub target: TritonTarget,
}

impl<'a> Subject<'a> {
    /// The subject for the kernel `name` of a candidate made from `original` and run as in the workload. `None` where
    /// the candidate no longer has that kernel, or where nothing that can be changed calls it.
    pub fn new(candidate: &'a Candidate, original: &str, name: &str, workload: &'a Workload) -> Option<Self> {
        let kernel = candidate.module.kernel(name)?;
        let mut knobs = knobs_of(candidate, original, kernel, workload)?;
        knobs.iter_mut().for_each(|knob| knob.began_with(&candidate.changes));
        Some(Self { knobs, candidate, kernel, workload, target: TritonTarget::newest() })
    }

    /// The same subject, compiled with another release of Triton.
    pub fn with_target(self, target: TritonTarget) -> Self {
        Self { target, ..self }
    }

    /// The launches of the kernel inside the call, as they were recorded.
    fn records(&self) -> impl Iterator<Item = &'a LaunchRecord> + use<'a> {
        let (workload, kernel) = (self.workload, self.kernel);
        workload.launches.iter().filter(|launch| launch.kernel == kernel.name)
    }

    /// Whether the kernel or a helper that it calls uses `tl.dot`.
    fn has_product(&self) -> bool {
        let module = &self.candidate.module;
        let mut seen: Vec<&Kernel> = vec![self.kernel];
        let mut at = 0;
        while let Some(kernel) = seen.get(at).copied() {
            let mut found = false;
            walk_expressions(&kernel.body, &mut |expr| {
                let Some(call) = expr.as_call() else { return };
                found |= module.language_member(kernel, &call.func).as_deref() == Some("dot");
                let helper = call.func.as_name().and_then(|name| module.kernel(name));
                seen.extend(helper.filter(|helper| !seen.iter().any(|known| known.name == helper.name)));
            });
            if found {
                return true;
            }
            at += 1;
        }
        false
    }

    /// The member of `triton.language` that is called, if it is one.
    fn member(&self, call: &Call) -> Option<String> {
        self.candidate.module.language_member(self.kernel, &call.func)
    }

    /// The operand of a transposition: `k` of `tl.trans(k)`, `k.T` and `k.trans()`.
    fn untransposed<'e>(&self, expr: &'e Expr) -> Option<&'e Expr> {
        match &expr.kind {
            ExprKind::Attribute { value, name, .. } if name == "T" => Some(value),
            ExprKind::Call(call) => match (&call.func.kind, call.args.as_slice()) {
                (ExprKind::Attribute { value, name, .. }, []) if name == "trans" => Some(value),
                (_, [one]) if self.member(call).as_deref() == Some("trans") => Some(&one.value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The analysis of the kernel without the numbers that launches pass, as these may change later.
    fn facts_of_any_launch(&self) -> Option<KernelAnalysis> {
        self.facts_of(self.candidate.module.clone())
    }

    /// The same analysis of another version of the file.
    fn facts_of(&self, mut alone: Module) -> Option<KernelAnalysis> {
        let at = alone.kernels.iter().position(|other| other.name == self.kernel.name)?;
        alone.launches.iter_mut().for_each(|launch| launch.args.clear());
        alone.kernels[at].params.iter_mut().for_each(|param| param.default = None);
        alone.kernels[at].autotune = None;
        Some(infer(&alone, &self.candidate.text, self.target, at, false))
    }

    /// The edits that bring this candidate to the text that `of` makes of another version of it, `text`.
    fn edits_through(&self, text: &str, of: impl FnOnce(&Subject<'_>) -> Option<Vec<Edit>>) -> Option<Vec<Edit>> {
        let candidate = Candidate::original(text);
        let other = Subject::new(&candidate, text, &self.kernel.name, self.workload)?.with_target(self.target);
        Some(edits_between(&self.candidate.text, &candidate.text_with(&of(&other)?)))
    }

    /// The proposal that gives the knobs these values.
    pub fn turn(&self, kind: impl Into<String>, setting: &launch_params::Setting) -> Proposal {
        let (edits, changes) =
            (launch_params::edits(&self.knobs, setting), launch_params::changes(&self.knobs, setting));
        Proposal { kind: kind.into(), edits, changes }
    }

    /// Proposals that move one knob one or two choices up or down.
    fn single_turns(&self, is_meant: impl Fn(&Knob) -> bool) -> Vec<Proposal> {
        let mut turns = Vec::new();
        for (at, knob) in self.knobs.iter().enumerate().filter(|(_, knob)| is_meant(knob)) {
            for distance in [1, -1, 2, -2] {
                let Some(value) = knob.step(distance) else { continue };
                let mut setting = self.present();
                setting[at] = value;
                let direction = if distance > 0 { "up" } else { "down" };
                turns.push(self.turn(format!("{} {direction}", knob.name), &setting));
            }
        }
        turns
    }

    /// Whether a proposal changes the kernel itself, and not only its launch or the decorators that choose its numbers.
    pub fn is_changed_by(&self, turn: &Proposal) -> bool {
        let kernel = self.kernel;
        // Callers that pass numbers to a kernel without an autotuner can no longer do so when it gets one.
        let start = if kernel.autotune.is_some() { kernel.name_span.start } else { kernel.span.start };
        turn.edits.iter().any(|edit| edit.span.end > start && edit.span.start <= kernel.span.end)
    }

    /// The values of the knobs in the candidate's source.
    pub fn present(&self) -> launch_params::Setting {
        self.knobs.iter().map(|knob| knob.current).collect()
    }
}

/// A name that does not occur in a text: `base`, followed by underscores as needed.
fn fresh(text: &str, base: &str) -> String {
    let mut name = base.to_owned();
    while has_word(text, &name) {
        name.push('_');
    }
    name
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether a name occurs in a text as a whole word.
pub fn has_word(text: &str, name: &str) -> bool {
    text.split(|letter| !is_of_word(letter)).any(|word| word == name)
}

/// The names that a kernel's body assigns.
fn assigned(kernel: &Kernel) -> BTreeSet<&str> {
    let mut assigned = BTreeSet::new();
    walk_statements(&kernel.body, &mut |stmt| {
        for target in stmt.targets() {
            target.walk(&mut |expr| assigned.extend(expr.as_name()));
        }
    });
    assigned
}

/// The first statement of a kernel that is not a string, such as a docstring.
fn first_statement(kernel: &Kernel) -> Option<&Stmt> {
    let is_text = |stmt: &&Stmt| matches!(&stmt.kind, StmtKind::Expr(value) if matches!(value.kind, ExprKind::Str(_)));
    kernel.body.iter().find(|stmt| !is_text(stmt))
}

/// The indentation of the statement at `at`; `None` where something else precedes it on its line.
fn indent_of(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n')? + 1;
    Some(&text[line..at]).filter(|before| before.trim().is_empty())
}

/// The knobs of the kernel. `None` where the launch was recorded by itself and no comment describes it.
fn knobs_of(candidate: &Candidate, original: &str, kernel: &Kernel, workload: &Workload) -> Option<Vec<Knob>> {
    if workload.source != WorkloadSource::Launch {
        return Some(launch_params::knobs(&candidate.module, &candidate.text, kernel, &workload.entry));
    }
    // Launches elsewhere in the file are not measured.
    let own = launch_of_candidate(workload, original, &candidate.text);
    Some(launch_params::knobs_of_comment(kernel, &numbers_of_comment(&candidate.text, &own)?))
}
