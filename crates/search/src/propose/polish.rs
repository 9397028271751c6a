//! Polishing: steps from the fastest candidate, and from the fastest of other structures, since a slightly slower
//! one may have more potential.

use std::collections::{BTreeSet, HashSet};

use transform::Turn;
use transform::candidate::{Candidate, Change};

use super::{Pick, Proposal, Search, structure};
use crate::tree::{Id, Step};

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

impl Search<'_> {
    /// A step from the fastest candidate of a structure; `None` before something is faster than the original.
    pub(super) fn polish(&mut self) -> Option<Proposal> {
        let is_large = self.chance.share() < self.field.settings.polish_large;
        let large = if is_large { self.polish_by(Step::Large, Pick::Unknown, 1) } else { None };
        large.or_else(|| self.polish_by(Step::Small, Pick::Near, OF_EACH))
    }

    /// A step of this kind from one of the `first` candidates of a structure.
    fn polish_by(&mut self, step: Step, pick: Pick, first: usize) -> Option<Proposal> {
        let mut ways = self.near_the_fastest();
        let mut weights = vec![1.0; ways.len()];
        if let Some(first) = weights.first_mut() {
            *first = FASTEST;
        }
        while !ways.is_empty() {
            let drawn = self.chance.weighted(&weights);
            weights.remove(drawn);
            for at in ways.remove(drawn).into_iter().take(first) {
                if let Some((base, kind, candidate)) = self.turn(&[at], step, pick) {
                    return Some(self.put((at, step), base, kind, candidate));
                }
            }
        }
        None
    }

    /// Keeps the kinds of structural changes that were not applied to a base of the same structure that is hardly
    /// slower.
    pub(super) fn keep_unknown(&self, turns: &mut Vec<Turn>, at: Id) {
        let least = self.tree.node(at).speedup().unwrap_or(1.0) / ANEW;
        let is_like = |base: &Id| {
            self.ways[base] == self.ways[&at] && self.tree.node(*base).speedup().is_some_and(|speed| speed > least)
        };
        let large =
            self.made.iter().filter(|(id, (base, _))| self.tree.node(**id).step == Step::Large && is_like(base));
        let known: HashSet<&str> = large.map(|(_, (_, kind))| kind.as_str()).collect();
        let builds = |turn: &Turn| turn.changes.iter().any(|change| matches!(change, Change::Structure(_)));
        turns.retain(|turn| builds(turn) && !known.contains(turn.kind.as_str()));
    }

    /// The fastest candidates of each structure, the fastest structure first.
    pub(super) fn near_the_fastest(&self) -> Vec<Vec<Id>> {
        // Candidates with the same machine code count as one.
        let ranked = self.tree.ranked().into_iter().filter(|(id, _)| !self.twins.contains(id));
        let mut ranked = ranked.take_while(|(id, _)| *id != Self::FIRST).peekable();
        let least = ranked.peek().map_or(f64::INFINITY, |(_, fastest)| fastest * NEAR);
        let mut ways: Vec<Vec<Id>> = Vec::new();
        for (id, _) in ranked.take_while(|(_, speed)| *speed >= least) {
            let own = &self.ways[&id];
            match ways.iter().position(|way| is_same(&self.ways[&way[0]], own)) {
                Some(at) if ways[at].len() < OF_EACH => ways[at].push(id),
                None if ways.len() < WAYS => ways.push(vec![id]),
                _ => {}
            }
        }
        ways
    }

    /// The structure of a candidate: what large steps have changed, and small steps that exclude others.
    pub(super) fn way(&self, step: Step, base: Id, kind: &str, candidate: &Candidate) -> BTreeSet<String> {
        let mut way = self.ways[&base].clone();
        if step == Step::Large || self.parting.contains(kind) {
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
pub(super) fn keep_near(turns: &mut Vec<Turn>, is_left: impl Fn(&Turn) -> bool) {
    let mut nearer = HashSet::new();
    turns.retain(|turn| {
        let is_step = turn.kind.ends_with(" up") || turn.kind.ends_with(" down");
        let number = turn.changes.last().and_then(Change::number).map(str::to_owned);
        !is_step || is_left(turn) && nearer.insert((turn.kind.clone(), number))
    });
}
