//! The interface between the search and the models: where a model makes a step, what it sees, and how its
//! candidates join the tree.

use llm::prompt::Pooled;
use transform::candidate::{Candidate, Change};

use super::super::tree::{CandidateId, Proposer, StepSize};
use super::{PendingCandidate, SearchState};

/// Prefix of the kinds of a model's candidates.
const BY_MODEL: &str = "model ";
/// Greatest number of changed lines that a description counts.
const FEW: usize = 30;

impl SearchState<'_> {
    /// Selects the node and the step for a model. The node counts as under judgement until [`SearchState::finish_model_step`].
    pub(crate) fn place_for_model(&mut self) -> Option<(CandidateId, StepSize)> {
        let (at, step) = self.tree.select(Proposer::Model, &mut self.chance)?;
        // Without a kernel there is nothing for a small step to change.
        let is_bare = at == Self::FIRST && self.field.kernels.is_empty();
        let step = if is_bare { StepSize::Large } else { step };
        self.tree.ask(at, step);
        Some((at, step))
    }

    /// Notes that the model has answered, or will not answer.
    pub(crate) fn answered(&mut self, at: CandidateId, step: StepSize) {
        self.tree.finish_model_step(at, step);
    }

    /// The pool of a large step from a node, the fastest first; `shown` makes the excerpt of a file.
    pub(crate) fn pooled(&mut self, at: CandidateId, shown: impl Fn(&str) -> String) -> Vec<Pooled> {
        let pool = self.bases(at);
        let speedup = |id: CandidateId| self.tree.node(id).speedup().unwrap_or(1.0);
        pool.into_iter().map(|id| Pooled { text: shown(&self.candidates[&id].text), speedup: speedup(id) }).collect()
    }

    /// Adds a model's candidate at its place; `None` where an equal one was tried.
    pub(crate) fn take(
        &mut self,
        place: (CandidateId, StepSize),
        base: CandidateId,
        text: &str,
        (operator, model): (&str, &str),
    ) -> Option<PendingCandidate> {
        let what = Change::Structure(format!("{} by {model}", extent(&self.candidates[&base].text, text)));
        let changes = self.candidates[&base].changes.iter().cloned().chain([what]).collect();
        let candidate = Candidate::changed(text, changes);
        if self.is_tried(&candidate) {
            return None;
        }
        Some(self.put(place, base, format!("{BY_MODEL}{operator}"), candidate))
    }

    /// Whether a model has made a candidate.
    pub(crate) fn is_by_model(&self, id: CandidateId) -> bool {
        self.made.get(&id).is_some_and(|(_, kind)| kind.starts_with(BY_MODEL))
    }

    /// How often a candidate was repaired already.
    pub(crate) fn repairs(&self, id: CandidateId) -> u32 {
        let (mut count, mut at) = (0, id);
        while let Some((base, kind)) = self.made.get(&at)
            && kind == "model repair"
        {
            (count, at) = (count + 1, *base);
        }
        count
    }
}

/// The extent of a model's change in words. The model's own description is left out, because this text appears
/// beside measured results.
fn extent(before: &str, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    match diff.iter_all_changes().filter(|change| change.tag() == similar::ChangeTag::Insert).count() {
        0 => "fewer lines".to_owned(),
        1 => "1 line".to_owned(),
        some if some <= FEW => format!("{some} lines"),
        _ => "rewritten".to_owned(),
    }
}
