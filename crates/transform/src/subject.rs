//! The input of a skill: a candidate, its kernel, and the recorded call that runs it.

use model::analysis::types::{KernelAnalysis, infer};
use model::api::TritonTarget;
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};
use model::kernel::{Kernel, Module};
use protocol::{LaunchRecord, Workload, WorkloadSource};
use rules::Edit;
use workload::{launch_of_candidate, numbers_of_comment};

use super::candidate::{Candidate, edits_between};
use super::launch_params::{self, Knob};
use super::proposal::Proposal;

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
    pub(crate) fn records(&self) -> impl Iterator<Item = &'a LaunchRecord> + use<'a> {
        let (workload, kernel) = (self.workload, self.kernel);
        workload.launches.iter().filter(|launch| launch.kernel == kernel.name)
    }

    /// Whether the kernel or a helper that it calls uses `tl.dot`.
    pub(crate) fn has_product(&self) -> bool {
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
    pub(crate) fn member(&self, call: &Call) -> Option<String> {
        self.candidate.module.language_member(self.kernel, &call.func)
    }

    /// The operand of a transposition: `k` of `tl.trans(k)`, `k.T` and `k.trans()`.
    pub(crate) fn untransposed<'e>(&self, expr: &'e Expr) -> Option<&'e Expr> {
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
    pub(crate) fn facts_of_any_launch(&self) -> Option<KernelAnalysis> {
        self.facts_of(self.candidate.module.clone())
    }

    /// The same analysis of another version of the file.
    pub(crate) fn facts_of(&self, mut alone: Module) -> Option<KernelAnalysis> {
        let at = alone.kernels.iter().position(|other| other.name == self.kernel.name)?;
        alone.launches.iter_mut().for_each(|launch| launch.args.clear());
        alone.kernels[at].params.iter_mut().for_each(|param| param.default = None);
        alone.kernels[at].autotune = None;
        Some(infer(&alone, &self.candidate.text, self.target, at, false))
    }

    /// The edits that bring this candidate to the text that `of` makes of another version of it, `text`.
    pub(crate) fn edits_through(
        &self,
        text: &str,
        of: impl FnOnce(&Subject<'_>) -> Option<Vec<Edit>>,
    ) -> Option<Vec<Edit>> {
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
    pub(crate) fn single_turns(&self, is_meant: impl Fn(&Knob) -> bool) -> Vec<Proposal> {
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

/// The knobs of the kernel. `None` where the launch was recorded by itself and no comment describes it.
fn knobs_of(candidate: &Candidate, original: &str, kernel: &Kernel, workload: &Workload) -> Option<Vec<Knob>> {
    if workload.source != WorkloadSource::Launch {
        return Some(launch_params::knobs(&candidate.module, &candidate.text, kernel, &workload.entry));
    }
    // Launches elsewhere in the file are not measured.
    let own = launch_of_candidate(workload, original, &candidate.text);
    Some(launch_params::knobs_of_comment(kernel, &numbers_of_comment(&candidate.text, &own)?))
}
