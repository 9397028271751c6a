//! Polishing: steps from the fastest candidate, and from the fastest of other structures, since a slightly slower
//! one may have more potential.

use std::collections::{BTreeSet, HashSet};

use transform::Proposal;
use transform::candidate::{Candidate, Change};

use super::{PendingCandidate, Pick, SearchState, structure};
use crate::tree::{CandidateId, StepSize};

/// Number of structures that are polished, and of candidates of each. The next candidate is taken when there is no
/// step left from the last.
const WAYS: usize = 3;
const OF_EACH: usize = 3;
/// Weight of the fastest structure relative to each other one.
const FASTEST: f64 = 2.0;
/// Share of the fastest speedup that another structure must reach.
const NEAR: f64 = 0.9;
/// A large step is repeated when its base has become faster by this factor.
const ANEW: f64 = 1.1;

impl SearchState<'_> {
    /// A step from the fastest candidate of a structure; `None` before something is faster than the original.
    pub(super) fn polish(&mut self) -> Option<PendingCandidate> {
        let is_large = self.chance.uniform() < self.field.settings.polish_large;
        let large = if is_large { self.polish_by(StepSize::Large, Pick::Unknown, 1) } else { None };
        large.or_else(|| self.polish_by(StepSize::Small, Pick::Near, OF_EACH))
    }

    /// A step of this kind from one of the `first` candidates of a structure.
    fn polish_by(&mut self, step: StepSize, pick: Pick, first: usize) -> Option<PendingCandidate> {
        let mut ways = self.fastest_by_structure();
        let mut weights = vec![1.0; ways.len()];
        if let Some(first) = weights.first_mut() {
            *first = FASTEST;
        }
        while !ways.is_empty() {
            let drawn = self.chance.weighted(&weights);
            weights.remove(drawn);
            for at in ways.remove(drawn).into_iter().take(first) {
                if let Some((base, kind, candidate)) = self.draw_proposal(&[at], step, pick) {
                    return Some(self.put((at, step), base, kind, candidate));
                }
            }
        }
        None
    }

    /// Keeps the kinds of structural changes that were not applied to a base of the same structure that is hardly
    /// slower.
    pub(super) fn keep_unknown(&self, turns: &mut Vec<Proposal>, at: CandidateId) {
        let least = self.tree.node(at).speedup().unwrap_or(1.0) / ANEW;
        let is_like = |base: &CandidateId| {
            self.structures[base] == self.structures[&at]
                && self.tree.node(*base).speedup().is_some_and(|speed| speed > least)
        };
        let large =
            self.made.iter().filter(|(id, (base, _))| self.tree.node(**id).step == StepSize::Large && is_like(base));
        let known: HashSet<&str> = large.map(|(_, (_, kind))| kind.as_str()).collect();
        let builds = |turn: &Proposal| turn.changes.iter().any(|change| matches!(change, Change::Structure(_)));
        turns.retain(|turn| builds(turn) && !known.contains(turn.kind.as_str()));
    }

    /// The fastest candidates of each structure, the fastest structure first.
    pub(super) fn fastest_by_structure(&self) -> Vec<Vec<CandidateId>> {
        // Candidates with the same machine code count as one.
        let ranked = self.tree.ranked().into_iter().filter(|(id, _)| !self.twins.contains(id));
        let mut ranked = ranked.take_while(|(id, _)| *id != Self::FIRST).peekable();
        let least = ranked.peek().map_or(f64::INFINITY, |(_, fastest)| fastest * NEAR);
        let mut ways: Vec<Vec<CandidateId>> = Vec::new();
        for (id, _) in ranked.take_while(|(_, speed)| *speed >= least) {
            let own = &self.structures[&id];
            match ways.iter().position(|way| is_same(&self.structures[&way[0]], own)) {
                Some(at) if ways[at].len() < OF_EACH => ways[at].push(id),
                None if ways.len() < WAYS => ways.push(vec![id]),
                _ => {}
            }
        }
        ways
    }

    /// The structure of a candidate: what large steps have changed, and small steps that exclude others.
    pub(super) fn structure_of(
        &self,
        step: StepSize,
        base: CandidateId,
        kind: &str,
        candidate: &Candidate,
    ) -> BTreeSet<String> {
        let mut way = self.structures[&base].clone();
        if step == StepSize::Large || self.structural_kinds.contains(kind) {
            let before = structure(&self.candidates[&base]);
            way.extend(structure(candidate).into_iter().filter(|what| !before.contains(what)));
        }
        way
    }
}

/// Whether one structure contains the other, so that the missing part may be added.
fn is_same(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    one.is_subset(other) || other.is_subset(one)
}

/// Keeps, for each number and direction, only the next step that was not made, because a value that was skipped may
/// be the best.
pub(super) fn keep_next_steps(turns: &mut Vec<Proposal>, is_left: impl Fn(&Proposal) -> bool) {
    let mut nearer = HashSet::new();
    turns.retain(|turn| {
        let is_step = turn.kind.ends_with(" up") || turn.kind.ends_with(" down");
        let number = turn.changes.last().and_then(Change::number).map(str::to_owned);
        !is_step || is_left(turn) && nearer.insert((turn.kind.clone(), number))
    });
}
