//! The choice of the next candidate: a change by a skill that was not tried yet.

mod crossover;
mod local_search;
mod model_proposals;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use base::rng::Rng;
use judge::Profiles;
use model::syntax::normal_form;
use rules::Edit;
use transform::StepSize;
use transform::candidate::{Candidate, Change, describe};
use transform::launch_params::Knob;
use transform::{Proposal, SKILLS, Skill, Subject};

use self::crossover::CROSSED;
use self::local_search::keep_next_steps;
use super::bandit::ProposalGains;
use super::call_measurements::CallMeasurements;
use super::journal::CandidateMade;
use super::kernel_regression::{FeaturePoint, KernelRegression};
use super::representative_pool::pool;
use super::search_lessons::SearchLessons;
use super::search_space::{SearchSpace, subjects};
use super::tree::{CandidateId, CandidateResult, Proposer, ROOT, Tree};

/// Temperature of the softmax over the estimates of the kernel regression: the smaller it is, the more they decide.
const TEMPERATURE: f64 = 0.05;
/// The kind of change that chooses between two versions by the size of a call.
pub(super) const CHOICE: &str = "choice by size";
/// The logarithm of speedup that a refused candidate counts as.
const WRONG_WORTH: f64 = -1.0;
/// Least weight of changes to a kernel that takes almost no time, relative to one that takes an equal share of it.
const MIN_TIME_SHARE: f64 = 0.1;

/// The set of changes that one is drawn from.
#[derive(Clone, Copy, PartialEq)]
enum Pick {
    Any,
    /// For numbers, only the next step in each direction.
    Near,
    /// Only changes of structure that were not tried on a similar base.
    Unknown,
}

/// A candidate in the tree that is about to be judged.
pub(super) struct PendingCandidate {
    pub(super) id: CandidateId,
    pub(super) text: String,
}

/// The state of a search: the tree, the candidates of its nodes, and what was tried.
pub(super) struct SearchState<'a> {
    field: SearchSpace<'a>,
    pub(super) tree: Tree,
    candidates: HashMap<CandidateId, Candidate>,
    points: HashMap<CandidateId, FeaturePoint>,
    /// The base of each candidate, and the kind of change that made it.
    made: HashMap<CandidateId, (CandidateId, String)>,
    tried: HashSet<String>,
    /// Changes of each candidate that were made or lead to a known text: a look-up is cheaper than applying them.
    made_of: HashMap<CandidateId, HashSet<Vec<Edit>>>,
    gains: ProposalGains,
    /// Kinds of changes that bring little, and the structures that they make.
    low_gain_kinds: HashSet<String>,
    low_gain_structures: HashSet<String>,
    /// The lessons of earlier searches.
    pub(super) memory: SearchLessons,
    /// Share of the call's time that each of several kernels takes, where it was counted.
    device_time_shares: BTreeMap<String, f64>,
    regression: KernelRegression,
    chance: Rng,
    /// For each structure that was given the numbers of the fastest candidate, the speedup of that candidate.
    crossed_speedups: HashMap<CandidateId, f64>,
    /// The structure of each candidate, without what any other may have as well.
    structures: HashMap<CandidateId, BTreeSet<String>>,
    /// Kinds of small changes that make a structure of their own.
    structural_kinds: HashSet<String>,
    /// Candidates with the machine code of another one.
    twins: HashSet<CandidateId>,
    /// The results of each correct candidate on each call.
    pub(super) calls: BTreeMap<CandidateId, CallMeasurements>,
    /// Number of measured candidates when a choice was last looked for.
    pub(super) looked_at: usize,
}

impl<'a> SearchState<'a> {
    /// The node of the original file.
    pub(super) const FIRST: CandidateId = 1;

    /// Begins with the original file, at speedup 1. `None` where no skill has a proposal and no model is asked.
    pub(super) fn new(field: SearchSpace<'a>, seed: u64, asks_models: bool) -> Option<Self> {
        let mut tree = Tree::new(field.settings);
        let first = tree.begin(ROOT, StepSize::Large);
        tree.finish(first, CandidateResult::Right(1.0));
        let candidates = HashMap::from([(first, Candidate::original(field.original))]);
        let tried = HashSet::from([key(field.original)]);
        let (points, made, made_of, gains, low_gain_kinds, memory, regression, crossed_speedups, twins, calls) =
            Default::default();
        let (structures, structural_kinds, low_gain_structures) =
            (HashMap::from([(first, BTreeSet::new())]), HashSet::new(), HashSet::new());
        let (chance, looked_at, device_time_shares) = (Rng::new(seed), 0, BTreeMap::new());
        let mut search = Self {
            field,
            tree,
            candidates,
            points,
            made,
            tried,
            made_of,
            gains,
            low_gain_kinds,
            low_gain_structures,
            memory,
            device_time_shares,
            regression,
            chance,
            crossed_speedups,
            structures,
            structural_kinds,
            twins,
            calls,
            looked_at,
        };
        search.points.insert(first, search.point(first));
        search.regression.finish(&search.points[&first], Some(0.0));
        let is_open =
            asks_models || [StepSize::Small, StepSize::Large].iter().any(|&step| !search.turns(first, step).is_empty());
        is_open.then_some(search)
    }

    /// The next candidate; `None` when the skills have no proposal at present.
    pub(super) fn propose(&mut self) -> Option<PendingCandidate> {
        if let Some(proposal) = self.propose_crossed() {
            return Some(proposal);
        }
        if self.chance.uniform() < self.field.settings.polish
            && let Some(proposal) = self.polish()
        {
            return Some(proposal);
        }
        loop {
            let (at, step) = self.tree.select(Proposer::Skills, &mut self.chance)?;
            let bases = if step == StepSize::Small { vec![at] } else { self.bases(at) };
            let Some((base, kind, candidate)) = self.draw_proposal(&bases, step, Pick::Any) else {
                self.tree.spend(at, step);
                continue;
            };
            return Some(self.put((at, step), base, kind, candidate));
        }
    }

    /// A small step from a candidate that is still being judged, for a place that would otherwise be idle.
    pub(super) fn propose_ahead(&mut self) -> Option<PendingCandidate> {
        for at in self.tree.open_ahead() {
            if let Some((base, kind, candidate)) = self.draw_proposal(&[at], StepSize::Small, Pick::Any) {
                return Some(self.put((at, StepSize::Small), base, kind, candidate));
            }
            self.tree.spend(at, StepSize::Small);
        }
        None
    }

    /// Adds a candidate below a node, made from `base` by a kind of change.
    pub(super) fn put(
        &mut self,
        (at, step): (CandidateId, StepSize),
        base: CandidateId,
        kind: String,
        candidate: Candidate,
    ) -> PendingCandidate {
        let (id, text) = (self.tree.begin(at, step), candidate.text.clone());
        self.tried.insert(key(&text));
        self.place((id, step), base, kind, candidate);
        PendingCandidate { id, text }
    }

    pub(super) fn is_tried(&self, candidate: &Candidate) -> bool {
        self.tried.contains(&key(&candidate.text))
    }

    /// The journal's entry about the origin of a candidate.
    pub(super) fn made_record(&self, id: CandidateId) -> CandidateMade {
        let (node, (base, kind)) = (self.tree.node(id), self.made[&id].clone());
        let Candidate { text, changes, .. } = self.candidates[&id].clone();
        CandidateMade { id, parent: node.parent, step: node.step, base, kind, changes, text }
    }

    /// The text of a candidate's base.
    pub(super) fn base(&self, id: CandidateId) -> &str {
        &self.candidates[&self.made[&id].0].text
    }

    /// Restores a candidate of an earlier part of the run. They must come in the order in which they were made.
    pub(super) fn recreate(&mut self, made: CandidateMade) -> Option<PendingCandidate> {
        let CandidateMade { id, parent, step, base, kind, changes, text } = made;
        let fits = id == self.tree.len() && parent < id && self.candidates.contains_key(&base);
        if !fits || self.tree.begin(parent, step) != id {
            return None;
        }
        self.tried.insert(key(&text));
        self.place((id, step), base, kind, Candidate::changed(&text, changes));
        Some(PendingCandidate { id, text })
    }

    fn place(&mut self, (id, step): (CandidateId, StepSize), base: CandidateId, kind: String, candidate: Candidate) {
        let way = self.structure_of(step, base, &kind, &candidate);
        self.structures.insert(id, way);
        self.candidates.insert(id, candidate);
        self.made.insert(id, (base, kind));
        let point = self.point(id);
        self.regression.begin(&point);
        self.points.insert(id, point);
    }

    /// The bases of a large step. The user's own version is always among them.
    fn bases(&mut self, from: CandidateId) -> Vec<CandidateId> {
        let mut pool = pool(&self.tree, from, self.field.settings, &mut self.chance);
        if !pool.contains(&Self::FIRST) {
            pool.push(Self::FIRST);
        }
        pool
    }

    fn turns(&mut self, base: CandidateId, step: StepSize) -> Vec<Proposal> {
        let mut turns = Vec::new();
        for subject in subjects(self.field, &self.candidates[&base]) {
            let has_sizes = self.field.calls.len() > 1;
            let is_allowed = |skill: &&&dyn Skill| {
                (self.field.rewrites || skill.turns_numbers()) && (has_sizes || !skill.is_for_sizes())
            };
            let skills = SKILLS.iter().filter(|skill| skill.step() == step).filter(is_allowed);
            let is_shared = self.field.shared.contains_key(&subject.kernel.name);
            for skill in skills {
                let mut own = skill.turns(&subject, &mut self.chance);
                own.retain(|turn| !is_shared || skill.keeps_contract() || !subject.is_changed_by(turn));
                let own = own.into_iter().map(|turn| self.field.of_kernel(&subject.kernel.name, turn));
                let from = turns.len();
                turns.extend(own);
                let kinds = turns[from..].iter().map(|turn| turn.kind.clone());
                match (skill.is_fine(), skill.parts_ways()) {
                    (true, _) => {
                        self.low_gain_kinds.extend(kinds);
                        self.low_gain_structures
                            .extend(turns[from..].iter().flat_map(|turn| structures(&turn.changes)));
                    }
                    (_, true) => self.structural_kinds.extend(kinds),
                    _ => {}
                }
            }
        }
        turns
    }

    /// Draws a change of one of these bases that gives an untried candidate. Refused candidates are no bases,
    /// because skills cannot repair them.
    fn draw_proposal(
        &mut self,
        bases: &[CandidateId],
        step: StepSize,
        pick: Pick,
    ) -> Option<(CandidateId, String, Candidate)> {
        let here = if step == StepSize::Small { self.remembered(bases[0]) } else { ProposalGains::default() };
        let mut turns: Vec<(CandidateId, f64, Proposal)> = Vec::new();
        for &base in bases {
            if matches!(self.tree.node(base).result, Some(CandidateResult::Uncompiled | CandidateResult::Wrong)) {
                continue;
            }
            let mut known = self.turns(base, step);
            let made = self.made_of.get(&base);
            let is_left = |turn: &Proposal| made.is_none_or(|made| !made.contains(&turn.edits));
            match pick {
                Pick::Near => keep_next_steps(&mut known, is_left),
                Pick::Unknown => self.keep_unknown(&mut known, base),
                Pick::Any => {}
            }
            // Each kind has one weight however many changes it has; all kinds that bring little count as one.
            let of = |turn: &Proposal, fine: &HashSet<String>| match fine.contains(&turn.kind) {
                true => String::new(),
                false => turn.kind.clone(),
            };
            let mut counts: HashMap<String, f64> = HashMap::new();
            known.iter().for_each(|turn| *counts.entry(of(turn, &self.low_gain_kinds)).or_default() += 1.0);
            let point = &self.points[&base];
            // A change that brings little is estimated to be as fast as its base.
            let of_base = self.regression.ucb(point);
            for turn in known.into_iter().filter(is_left) {
                let (expected, is_fine) = (self.memory.expected(&turn.kind), self.low_gain_kinds.contains(&turn.kind));
                let hope = if is_fine { of_base } else { self.regression.ucb(&feature_point(point, &turn.changes)) };
                let weight =
                    self.gains.weight(&turn.kind, is_fine, &here, expected) * self.time_share_factor(&turn.kind);
                turns.push((
                    base,
                    weight * (hope / TEMPERATURE).exp() / counts[&of(&turn, &self.low_gain_kinds)],
                    turn,
                ));
            }
        }
        while !turns.is_empty() {
            let weights: Vec<f64> = turns.iter().map(|(_, weight, _)| *weight).collect();
            let (base, _, turn) = turns.swap_remove(self.chance.weighted(&weights));
            let from = &self.candidates[&base];
            let is_new = self.tried.insert(key(&from.text_with(&turn.edits)));
            let made = is_new.then(|| from.with(&turn.edits, &turn.changes));
            self.made_of.entry(base).or_default().insert(turn.edits);
            if let Some(made) = made {
                return Some((base, turn.kind, made));
            }
        }
        None
    }

    /// The weight of a change from its kernel's share of the time. A kernel with a small share may still delay the
    /// others.
    fn time_share_factor(&self, kind: &str) -> f64 {
        let share = kind.split_once(": ").and_then(|(kernel, _)| self.device_time_shares.get(kernel));
        share.map_or(1.0, |share| (share * self.device_time_shares.len() as f64).max(MIN_TIME_SHARE))
    }

    /// Stores what was counted for the original's kernels.
    pub(super) fn counted(&mut self, profiles: &Profiles) {
        self.memory.counted(profiles);
        let all: f64 = profiles.values().map(|profile| profile.milliseconds).sum();
        if all > 0.0 {
            self.device_time_shares =
                profiles.iter().map(|(kernel, one)| (kernel.clone(), one.milliseconds / all)).collect();
        }
    }

    /// The gains of the small steps on a branch and beside it.
    fn remembered(&self, from: CandidateId) -> ProposalGains {
        let mut here = ProposalGains::default();
        let branch = self.tree.branch(from);
        let beside = branch.iter().flat_map(|&at| &self.tree.node(at).children);
        for &id in beside.filter(|&&id| self.tree.node(id).step == StepSize::Small) {
            if let Some((kind, gain)) = self.gain(id) {
                here.add(&kind, gain);
            }
        }
        here
    }

    /// The kind of change that made a candidate, and its gain; `None` until the results of it and of its base are
    /// known.
    fn gain(&self, id: CandidateId) -> Option<(String, f64)> {
        let (base, kind) = self.made.get(&id)?;
        self.tree.node(*base).result?;
        let before = self.tree.node(*base).speedup().unwrap_or(1.0);
        let gain = match self.tree.node(id).result? {
            CandidateResult::Right(speedup) => (speedup / before).ln().clamp(-1.0, 1.0),
            // A refused candidate is a loss, too.
            CandidateResult::Uncompiled | CandidateResult::Wrong => WRONG_WORTH,
        };
        Some((kind.clone(), gain))
    }

    /// Records the result of a candidate.
    pub(super) fn finish(&mut self, id: CandidateId, fate: CandidateResult) {
        self.tree.finish(id, fate);
        let brought: Vec<_> = self.known_with(id).into_iter().filter_map(|id| self.gain(id)).collect();
        brought.iter().for_each(|(kind, gain)| self.gains.add(kind, *gain));
        let worth = self.tree.node(id).speedup().map_or(WRONG_WORTH, |speedup| speedup.max(0.1).ln());
        self.regression.finish(&self.points[&id], Some(worth));
    }

    /// A candidate and its children: a child that was judged before its base has a known gain only now.
    fn known_with(&self, id: CandidateId) -> Vec<CandidateId> {
        [&[id], self.tree.node(id).children.as_slice()].concat()
    }

    /// Whether its base is still being judged.
    pub(super) fn is_ahead(&self, id: CandidateId) -> bool {
        self.made.get(&id).is_some_and(|(base, _)| self.tree.node(*base).result.is_none())
    }

    /// Stores the gain of a candidate that has just been judged, for later searches.
    pub(super) fn learn(&mut self, id: CandidateId) {
        for id in self.known_with(id) {
            // Later searches could not choose these kinds.
            if let Some((kind, gain)) = self.gain(id).filter(|(kind, _)| kind != CHOICE && kind != CROSSED) {
                self.memory.learn(&kind, gain, self.tree.node(id).speedup().is_none());
            }
        }
    }

    /// The point of a candidate for the kernel regression.
    fn point(&self, id: CandidateId) -> FeaturePoint {
        let numbers = self.numbers(id).into_iter().map(|(name, number)| (name, (number.max(1) as f64).log2()));
        let structures =
            structure(&self.candidates[&id]).into_iter().filter(|what| !self.low_gain_structures.contains(what));
        numbers.chain(structures.map(|what| (what, 0.0))).collect()
    }

    /// The numbers of all kernels of a candidate, by their names.
    fn numbers(&self, id: CandidateId) -> Vec<(String, i64)> {
        let of = |subject: Subject<'_>| {
            let kernel = &subject.kernel.name;
            let number = |knob: &Knob| (self.field.name(kernel, &knob.name), knob.current);
            subject.knobs.iter().map(number).collect::<Vec<_>>()
        };
        subjects(self.field, &self.candidates[&id]).into_iter().flat_map(of).collect()
    }

    /// Removes a candidate that could not be judged. It is not tried again.
    pub(super) fn forget(&mut self, id: CandidateId) {
        self.regression.finish(&self.points[&id], None);
        self.tree.forget(id);
    }

    /// Stores the results of a correct candidate on each call, and whether it has the machine code of another one.
    pub(super) fn measured(&mut self, id: CandidateId, calls: CallMeasurements, is_twin: bool) {
        if is_twin {
            self.twins.insert(id);
        }
        if !calls.is_empty() {
            self.calls.insert(id, calls);
        }
    }

    pub(super) fn field(&self) -> SearchSpace<'a> {
        self.field
    }

    pub(super) fn candidate(&self, id: CandidateId) -> &Candidate {
        &self.candidates[&id]
    }
}

/// The structure of a candidate, as the descriptions of its structural changes.
fn structure(candidate: &Candidate) -> BTreeSet<String> {
    structures(&candidate.changes).collect()
}

fn structures(changes: &[Change]) -> impl Iterator<Item = String> {
    let built = changes.iter().filter(|change| matches!(change, Change::Structure(_) | Change::Choice { .. }));
    built.map(|change| describe(std::slice::from_ref(change)))
}

/// The point after some changes.
fn feature_point(point: &FeaturePoint, changes: &[Change]) -> FeaturePoint {
    let mut point = point.clone();
    for change in changes {
        match change {
            Change::Number { name, to, .. } | Change::Chosen { name, to } => {
                point.insert(name.clone(), ((*to).max(1) as f64).log2())
            }
            // A new structure is far from all known points.
            Change::Structure(what) => point.insert(what.clone(), 0.0),
            Change::Choice { .. } => point.insert(describe(std::slice::from_ref(change)), 0.0),
        };
    }
    point
}

/// A key that equal candidates share.
fn key(text: &str) -> String {
    // Comments may describe how a kernel is launched.
    let said: Vec<&str> = text.lines().filter(|line| line.contains("warpsmith:")).collect();
    normal_form(text) + &said.join("\n")
}

#[cfg(test)]
mod tests;
