//! The choice of the next candidate: a change by a skill that was not tried yet.

mod by_model;
mod crossed;
mod polish;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use base::rng::Chance;
use config::SearchSettings;
use judge::Profiles;
use model::api::Target;
use model::syntax::normal_form;
use protocol::Workload;
use rules::Edit;
use transform::Step;
use transform::candidate::{Candidate, Change, describe};
use transform::knobs::Knob;
use transform::{SKILLS, Skill, Subject, Turn, has_word};
use workload::reaches;

use self::crossed::CROSSED;
use self::polish::keep_near;
use super::choice::{CHOICE, Calls};
use super::gains::Gains;
use super::journal::Made;
use super::memory::Memory;
use super::pool::pool;
use super::surrogate::{Point, Surrogate};
use super::tree::{By, Fate, Id, ROOT, Tree};

/// Temperature of the softmax over the estimates of the kernel regression: the smaller it is, the more they decide.
const KEENNESS: f64 = 0.05;
/// The logarithm of speedup that a refused candidate counts as.
const WORTHLESS: f64 = -1.0;
/// Least weight of changes to a kernel that takes almost no time, relative to one that takes an equal share of it.
const LEAST_SHARE: f64 = 0.1;

/// The problem of a search: the original, the kernels and their calls.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// The text of the user's file.
    pub(super) original: &'a str,
    pub(super) kernels: &'a [String],
    /// The calls that are measured during the search, at least one; the first has the greatest weight.
    pub(super) calls: &'a [Workload],
    pub(super) settings: &'a SearchSettings,
    /// Whether kernels may be restructured.
    pub(super) rewrites: bool,
    /// Kernels that are used elsewhere, with their users: a change must keep what they do for any launch.
    pub(super) shared: &'a BTreeMap<String, String>,
    /// The release of Triton that compiles candidates.
    pub(super) target: Target,
}

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
pub(super) struct Proposal {
    pub(super) id: Id,
    pub(super) text: String,
}

/// The state of a search: the tree, the candidates of its nodes, and what was tried.
pub(super) struct Search<'a> {
    field: Field<'a>,
    pub(super) tree: Tree,
    candidates: HashMap<Id, Candidate>,
    points: HashMap<Id, Point>,
    /// The base of each candidate, and the kind of change that made it.
    made: HashMap<Id, (Id, String)>,
    tried: HashSet<String>,
    /// Changes of each candidate that were made or lead to a known text: a look-up is cheaper than applying them.
    made_of: HashMap<Id, HashSet<Vec<Edit>>>,
    gains: Gains,
    /// Kinds of changes that bring little, and the structures that they make.
    fine: HashSet<String>,
    trifles: HashSet<String>,
    /// The lessons of earlier searches.
    pub(super) memory: Memory,
    /// Share of the call's time that each of several kernels takes, where it was counted.
    shares: BTreeMap<String, f64>,
    surrogate: Surrogate,
    chance: Chance,
    /// For each structure that was given the numbers of the fastest candidate, the speedup of that candidate.
    crossed: HashMap<Id, f64>,
    /// The structure of each candidate, without what any other may have as well.
    ways: HashMap<Id, BTreeSet<String>>,
    /// Kinds of small changes that make a structure of their own.
    parting: HashSet<String>,
    /// Candidates with the machine code of another one.
    twins: HashSet<Id>,
    /// The results of each correct candidate on each call.
    pub(super) calls: BTreeMap<Id, Calls>,
    /// Number of measured candidates when a choice was last looked for.
    pub(super) looked_at: usize,
}

impl<'a> Search<'a> {
    /// The node of the original file.
    pub(super) const FIRST: Id = 1;

    /// Begins with the original file, at speedup 1. `None` where no skill has a proposal and no model is asked.
    pub(super) fn new(field: Field<'a>, seed: u64, asks_models: bool) -> Option<Self> {
        let mut tree = Tree::new(field.settings);
        let first = tree.begin(ROOT, Step::Large);
        tree.finish(first, Fate::Right(1.0));
        let candidates = HashMap::from([(first, Candidate::original(field.original))]);
        let tried = HashSet::from([key(field.original)]);
        let (points, made, made_of, gains, fine, memory, surrogate, crossed, twins, calls) = Default::default();
        let (ways, parting, trifles) = (HashMap::from([(first, BTreeSet::new())]), HashSet::new(), HashSet::new());
        let (chance, looked_at, shares) = (Chance::new(seed), 0, BTreeMap::new());
        let mut search = Self {
            field,
            tree,
            candidates,
            points,
            made,
            tried,
            made_of,
            gains,
            fine,
            trifles,
            memory,
            shares,
            surrogate,
            chance,
            crossed,
            ways,
            parting,
            twins,
            calls,
            looked_at,
        };
        search.points.insert(first, search.point(first));
        search.surrogate.finish(&search.points[&first], Some(0.0));
        let is_open =
            asks_models || [Step::Small, Step::Large].iter().any(|&step| !search.turns(first, step).is_empty());
        is_open.then_some(search)
    }

    /// The next candidate; `None` when the skills have no proposal at present.
    pub(super) fn propose(&mut self) -> Option<Proposal> {
        if let Some(proposal) = self.crossed() {
            return Some(proposal);
        }
        if self.chance.share() < self.field.settings.polish
            && let Some(proposal) = self.polish()
        {
            return Some(proposal);
        }
        loop {
            let (at, step) = self.tree.select(By::Skills, &mut self.chance)?;
            let bases = if step == Step::Small { vec![at] } else { self.bases(at) };
            let Some((base, kind, candidate)) = self.turn(&bases, step, Pick::Any) else {
                self.tree.spend(at, step);
                continue;
            };
            return Some(self.put((at, step), base, kind, candidate));
        }
    }

    /// A small step from a candidate that is still being judged, for a place that would otherwise be idle.
    pub(super) fn propose_ahead(&mut self) -> Option<Proposal> {
        for at in self.tree.open_ahead() {
            if let Some((base, kind, candidate)) = self.turn(&[at], Step::Small, Pick::Any) {
                return Some(self.put((at, Step::Small), base, kind, candidate));
            }
            self.tree.spend(at, Step::Small);
        }
        None
    }

    /// Adds a candidate below a node, made from `base` by a kind of change.
    pub(super) fn put(&mut self, (at, step): (Id, Step), base: Id, kind: String, candidate: Candidate) -> Proposal {
        let (id, text) = (self.tree.begin(at, step), candidate.text.clone());
        self.tried.insert(key(&text));
        self.place((id, step), base, kind, candidate);
        Proposal { id, text }
    }

    pub(super) fn is_tried(&self, candidate: &Candidate) -> bool {
        self.tried.contains(&key(&candidate.text))
    }

    /// The journal's entry about the origin of a candidate.
    pub(super) fn made(&self, id: Id) -> Made {
        let (node, (base, kind)) = (self.tree.node(id), self.made[&id].clone());
        let Candidate { text, changes, .. } = self.candidates[&id].clone();
        Made { id, parent: node.parent, step: node.step, base, kind, changes, text }
    }

    /// The text of a candidate's base.
    pub(super) fn base(&self, id: Id) -> &str {
        &self.candidates[&self.made[&id].0].text
    }

    /// Restores a candidate of an earlier part of the run. They must come in the order in which they were made.
    pub(super) fn make_again(&mut self, made: Made) -> Option<Proposal> {
        let Made { id, parent, step, base, kind, changes, text } = made;
        let fits = id == self.tree.len() && parent < id && self.candidates.contains_key(&base);
        if !fits || self.tree.begin(parent, step) != id {
            return None;
        }
        self.tried.insert(key(&text));
        self.place((id, step), base, kind, Candidate::changed(&text, changes));
        Some(Proposal { id, text })
    }

    fn place(&mut self, (id, step): (Id, Step), base: Id, kind: String, candidate: Candidate) {
        let way = self.way(step, base, &kind, &candidate);
        self.ways.insert(id, way);
        self.candidates.insert(id, candidate);
        self.made.insert(id, (base, kind));
        let point = self.point(id);
        self.surrogate.begin(&point);
        self.points.insert(id, point);
    }

    /// The bases of a large step. The user's own version is always among them.
    fn bases(&mut self, from: Id) -> Vec<Id> {
        let mut pool = pool(&self.tree, from, self.field.settings, &mut self.chance);
        if !pool.contains(&Self::FIRST) {
            pool.push(Self::FIRST);
        }
        pool
    }

    fn turns(&mut self, base: Id, step: Step) -> Vec<Turn> {
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
                        self.fine.extend(kinds);
                        self.trifles.extend(turns[from..].iter().flat_map(|turn| structures(&turn.changes)));
                    }
                    (_, true) => self.parting.extend(kinds),
                    _ => {}
                }
            }
        }
        turns
    }

    /// Draws a change of one of these bases that gives an untried candidate. Refused candidates are no bases,
    /// because skills cannot repair them.
    fn turn(&mut self, bases: &[Id], step: Step, pick: Pick) -> Option<(Id, String, Candidate)> {
        let here = if step == Step::Small { self.remembered(bases[0]) } else { Gains::default() };
        let mut turns: Vec<(Id, f64, Turn)> = Vec::new();
        for &base in bases {
            if matches!(self.tree.node(base).fate, Some(Fate::Uncompiled | Fate::Wrong)) {
                continue;
            }
            let mut known = self.turns(base, step);
            let made = self.made_of.get(&base);
            let is_left = |turn: &Turn| made.is_none_or(|made| !made.contains(&turn.edits));
            match pick {
                Pick::Near => keep_near(&mut known, is_left),
                Pick::Unknown => self.keep_unknown(&mut known, base),
                Pick::Any => {}
            }
            // Each kind has one weight however many changes it has; all kinds that bring little count as one.
            let of = |turn: &Turn, fine: &HashSet<String>| match fine.contains(&turn.kind) {
                true => String::new(),
                false => turn.kind.clone(),
            };
            let mut counts: HashMap<String, f64> = HashMap::new();
            known.iter().for_each(|turn| *counts.entry(of(turn, &self.fine)).or_default() += 1.0);
            let point = &self.points[&base];
            // A change that brings little is estimated to be as fast as its base.
            let of_base = self.surrogate.hope(point);
            for turn in known.into_iter().filter(is_left) {
                let (expected, is_fine) = (self.memory.expected(&turn.kind), self.fine.contains(&turn.kind));
                let hope = if is_fine { of_base } else { self.surrogate.hope(&turned(point, &turn.changes)) };
                let weight = self.gains.weight(&turn.kind, is_fine, &here, expected) * self.share(&turn.kind);
                turns.push((base, weight * (hope / KEENNESS).exp() / counts[&of(&turn, &self.fine)], turn));
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
    fn share(&self, kind: &str) -> f64 {
        let share = kind.split_once(": ").and_then(|(kernel, _)| self.shares.get(kernel));
        share.map_or(1.0, |share| (share * self.shares.len() as f64).max(LEAST_SHARE))
    }

    /// Stores what was counted for the original's kernels.
    pub(super) fn counted(&mut self, profiles: &Profiles) {
        self.memory.counted(profiles);
        let all: f64 = profiles.values().map(|profile| profile.milliseconds).sum();
        if all > 0.0 {
            self.shares = profiles.iter().map(|(kernel, one)| (kernel.clone(), one.milliseconds / all)).collect();
        }
    }

    /// The gains of the small steps on a branch and beside it.
    fn remembered(&self, from: Id) -> Gains {
        let mut here = Gains::default();
        let branch = self.tree.branch(from);
        let beside = branch.iter().flat_map(|&at| &self.tree.node(at).children);
        for &id in beside.filter(|&&id| self.tree.node(id).step == Step::Small) {
            if let Some((kind, gain)) = self.gain(id) {
                here.add(&kind, gain);
            }
        }
        here
    }

    /// The kind of change that made a candidate, and its gain; `None` until the results of it and of its base are
    /// known.
    fn gain(&self, id: Id) -> Option<(String, f64)> {
        let (base, kind) = self.made.get(&id)?;
        self.tree.node(*base).fate?;
        let before = self.tree.node(*base).speedup().unwrap_or(1.0);
        let gain = match self.tree.node(id).fate? {
            Fate::Right(speedup) => (speedup / before).ln().clamp(-1.0, 1.0),
            // A refused candidate is a loss, too.
            Fate::Uncompiled | Fate::Wrong => WORTHLESS,
        };
        Some((kind.clone(), gain))
    }

    /// Records the result of a candidate.
    pub(super) fn finish(&mut self, id: Id, fate: Fate) {
        self.tree.finish(id, fate);
        let brought: Vec<_> = self.known_with(id).into_iter().filter_map(|id| self.gain(id)).collect();
        brought.iter().for_each(|(kind, gain)| self.gains.add(kind, *gain));
        let worth = self.tree.node(id).speedup().map_or(WORTHLESS, |speedup| speedup.max(0.1).ln());
        self.surrogate.finish(&self.points[&id], Some(worth));
    }

    /// A candidate and its children: a child that was judged before its base has a known gain only now.
    fn known_with(&self, id: Id) -> Vec<Id> {
        [&[id], self.tree.node(id).children.as_slice()].concat()
    }

    /// Whether its base is still being judged.
    pub(super) fn is_ahead(&self, id: Id) -> bool {
        self.made.get(&id).is_some_and(|(base, _)| self.tree.node(*base).fate.is_none())
    }

    /// Stores the gain of a candidate that has just been judged, for later searches.
    pub(super) fn learn(&mut self, id: Id) {
        for id in self.known_with(id) {
            // Later searches could not choose these kinds.
            if let Some((kind, gain)) = self.gain(id).filter(|(kind, _)| kind != CHOICE && kind != CROSSED) {
                self.memory.learn(&kind, gain, self.tree.node(id).speedup().is_none());
            }
        }
    }

    /// The point of a candidate for the kernel regression.
    fn point(&self, id: Id) -> Point {
        let numbers = self.numbers(id).into_iter().map(|(name, number)| (name, (number.max(1) as f64).log2()));
        let structures = structure(&self.candidates[&id]).into_iter().filter(|what| !self.trifles.contains(what));
        numbers.chain(structures.map(|what| (what, 0.0))).collect()
    }

    /// The numbers of all kernels of a candidate, by their names.
    fn numbers(&self, id: Id) -> Vec<(String, i64)> {
        let of = |subject: Subject<'_>| {
            let kernel = &subject.kernel.name;
            let number = |knob: &Knob| (self.field.name(kernel, &knob.name), knob.current);
            subject.knobs.iter().map(number).collect::<Vec<_>>()
        };
        subjects(self.field, &self.candidates[&id]).into_iter().flat_map(of).collect()
    }

    /// Removes a candidate that could not be judged. It is not tried again.
    pub(super) fn forget(&mut self, id: Id) {
        self.surrogate.finish(&self.points[&id], None);
        self.tree.forget(id);
    }

    /// Stores the results of a correct candidate on each call, and whether it has the machine code of another one.
    pub(super) fn measured(&mut self, id: Id, calls: Calls, is_twin: bool) {
        if is_twin {
            self.twins.insert(id);
        }
        if !calls.is_empty() {
            self.calls.insert(id, calls);
        }
    }

    pub(super) fn field(&self) -> Field<'a> {
        self.field
    }

    pub(super) fn candidate(&self, id: Id) -> &Candidate {
        &self.candidates[&id]
    }
}

impl Field<'_> {
    /// A name within one of several kernels is qualified by the kernel's name.
    fn name(&self, kernel: &str, name: &str) -> String {
        if self.kernels.len() == 1 { name.to_owned() } else { format!("{kernel}: {name}") }
    }

    fn of_kernel(&self, kernel: &str, mut turn: Turn) -> Turn {
        turn.kind = self.name(kernel, &turn.kind);
        for change in &mut turn.changes {
            if let Change::Number { name, .. } | Change::Chosen { name, .. } | Change::Structure(name) = change {
                *name = self.name(kernel, name);
            }
        }
        turn
    }
}

/// The kernels of a candidate as skills see them, if they exist and are launched by something that can be changed.
fn subjects<'a>(field: Field<'a>, candidate: &'a Candidate) -> Vec<Subject<'a>> {
    let Field { original, calls, target, .. } = field;
    let subject = |kernel: &str| Some(Subject::new(candidate, original, kernel, calls.first()?)?.with_target(target));
    launched(field, candidate).into_iter().filter_map(subject).collect()
}

/// The kernels of a candidate that the call launches: those of the original, and their replacements.
fn launched<'a>(field: Field<'a>, candidate: &'a Candidate) -> Vec<&'a str> {
    let mut kernels: Vec<&str> = field.kernels.iter().map(String::as_str).collect();
    let all = candidate.module.kernels.iter().map(|kernel| kernel.name.as_str());
    let new: Vec<&str> = all.filter(|name| !has_word(field.original, name)).collect();
    let Some(call) = field.calls.first().filter(|_| !new.is_empty()) else { return kernels };
    let is_reached = |kernel: &str| reaches(&candidate.text, &call.entry, kernel);
    kernels.retain(|kernel| is_reached(kernel));
    if kernels.len() < field.kernels.len() || field.kernels.is_empty() {
        kernels.extend(new.into_iter().filter(|kernel| is_reached(kernel)));
    }
    kernels
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
fn turned(point: &Point, changes: &[Change]) -> Point {
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
