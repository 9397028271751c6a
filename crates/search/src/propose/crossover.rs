//! Combination of one candidate's structure with the launch parameters of the fastest, since each alone may be
//! slow.

use transform::candidate::Candidate;
use transform::{Proposal, Subject};

use super::{PendingCandidate, SearchState, structure};
use crate::search_space::subjects;
use crate::tree::{CandidateId, StepSize};

/// The name of this kind of change in reports.
pub(super) const CROSSED: &str = "numbers of the fastest";
/// A structure qualifies if it keeps this share of its base's speed.
const LEFT: f64 = 0.9;
/// Factor by which the fastest must be faster than the structure, and than the last candidate whose numbers it was
/// given.
const AHEAD: f64 = 1.2;

impl SearchState<'_> {
    /// A restructured candidate that lost no speed, with the numbers of the fastest candidate, if that has another
    /// structure.
    pub(super) fn propose_crossed(&mut self) -> Option<PendingCandidate> {
        let ranked = self.tree.ranked();
        let (fastest, speed) = *ranked.first()?;
        let built = structure(&self.candidates[&fastest]);
        for (at, own) in ranked {
            let last = self.crossed_speedups.get(&at).copied().unwrap_or(own);
            if speed < AHEAD * last.max(own)
                || !self.is_built_otherwise(at, own)
                || structure(&self.candidates[&at]) == built
            {
                continue;
            }
            self.crossed_speedups.insert(at, speed);
            let numbers = self.numbers(fastest);
            if let Some(candidate) = self.with_numbers(at, &numbers).filter(|one| !self.is_tried(one)) {
                return Some(self.put((at, StepSize::Small), at, CROSSED.to_owned(), candidate));
            }
        }
        None
    }

    fn is_built_otherwise(&self, at: CandidateId, speed: f64) -> bool {
        let Some((base, _)) = self.made.get(&at) else { return false };
        let before = self.tree.node(*base).speedup().unwrap_or(1.0);
        let is_new = || structure(&self.candidates[&at]) != structure(&self.candidates[base]);
        self.tree.node(at).step == StepSize::Large && speed >= LEFT * before && is_new()
    }

    /// A candidate with these numbers, as far as it has parameters of the same names.
    fn with_numbers(&self, at: CandidateId, numbers: &[(String, i64)]) -> Option<Candidate> {
        let base = &self.candidates[&at];
        let mut made: Option<Candidate> = None;
        for kernel in subjects(self.field, base).iter().map(|subject| subject.kernel.name.clone()) {
            // Each kernel is changed in the text that the last change has left.
            let present = made.as_ref().unwrap_or(base);
            let all = subjects(self.field, present);
            let Some(subject) = all.iter().find(|subject| subject.kernel.name == kernel) else { continue };
            let Some(turn) = self.turn_to(subject, numbers) else { continue };
            made = Some(present.with(&turn.edits, &turn.changes));
        }
        made
    }

    fn turn_to(&self, subject: &Subject<'_>, numbers: &[(String, i64)]) -> Option<Proposal> {
        let kernel = &subject.kernel.name;
        let of =
            |name: &str| numbers.iter().find(|(known, _)| *known == self.field.name(kernel, name)).map(|(_, to)| *to);
        let setting =
            subject.knobs.iter().map(|knob| of(&knob.name).filter(|to| knob.takes(*to)).unwrap_or(knob.current));
        let setting: Vec<i64> = setting.collect();
        if setting == subject.present() {
            return None;
        }
        let turn = subject.turn(CROSSED, &setting);
        let is_free = !self.field.shared.contains_key(kernel) || !subject.is_changed_by(&turn);
        is_free.then(|| self.field.of_kernel(kernel, turn))
    }
}
