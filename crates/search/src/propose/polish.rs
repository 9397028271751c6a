//! Steps from the fastest, and from the fastest of those that are built in another way: what is a little slower may have more left.

use std::collections::{BTreeSet, HashSet};

use transform::Turn;
use transform::candidate::{Candidate, Change};

use super::{Pick, Proposal, Search, structure};
use crate::tree::{Id, Step};

/// So many ways are polished, and of each so many candidates, the next where nobody knows a step from the last.
const WAYS: usize = 3;
const OF_EACH: usize = 3;
/// How often the fastest way is polished, for each time that another one is.
const FASTEST: f64 = 2.0;
/// The others must be so near to the fastest.
const NEAR: f64 = 0.9;
/// Large steps are made once more where that which they begin with has become so many times as fast.
const ANEW: f64 = 1.1;

impl Search<'_> {
    /// A step from the fastest of a way to build the kernel; none before something is faster than the file as it is.
    pub(super) fn polish(&mut self) -> Option<Proposal> {
        let is_large = self.chance.share() < self.field.settings.polish_large;
        let large = if is_large { self.polish_by(Step::Large, Pick::Unknown, 1) } else { None };
        large.or_else(|| self.polish_by(Step::Small, Pick::Near, OF_EACH))
    }

    /// Such a step from one of the first few of a way.
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

    /// Leaves kinds of turns that build something otherwise and were not made of what is built like this one and hardly slower.
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

    /// The fastest candidates of each way, the fastest way first.
    pub(super) fn near_the_fastest(&self) -> Vec<Vec<Id>> {
        // Those of one machine code are one.
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

    /// How a candidate is built: what the large steps have made otherwise, and those small ones that exclude others.
    pub(super) fn way(&self, step: Step, base: Id, kind: &str, candidate: &Candidate) -> BTreeSet<String> {
        let mut way = self.ways[&base].clone();
        if step == Step::Large || self.parting.contains(kind) {
            let before = structure(&self.candidates[&base]);
            way.extend(structure(candidate).into_iter().filter(|what| !before.contains(what)));
        }
        way
    }
}

/// Whether one has all that the other has: what it lacks may be added.
fn is_same(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    one.is_subset(other) || other.is_subset(one)
}

/// Leaves of the turns of each number the next step in either direction that nobody has made: one that was stepped over may be the best.
pub(super) fn keep_near(turns: &mut Vec<Turn>, is_left: impl Fn(&Turn) -> bool) {
    let mut nearer = HashSet::new();
    turns.retain(|turn| {
        let is_step = turn.kind.ends_with(" up") || turn.kind.ends_with(" down");
        let number = turn.changes.last().and_then(Change::number).map(str::to_owned);
        !is_step || is_left(turn) && nearer.insert((turn.kind.clone(), number))
    });
}
