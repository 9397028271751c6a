//! The tree of candidates: which one to go on from, and by a small or a large step.
//!
//! A search for upper confidence bounds in AdaExplore's shape (arXiv 2604.16625): what is selected may be any node, since to expand one
//! has a score of its own, which is held against its best child's. Candidates that are still being judged count as visits that
//! brought nothing, so that those who choose beside each other choose other places.

use serde::{Deserialize, Serialize};
pub(crate) use transform::Step;

use base::rng::Chance;
use config::SearchSettings;

/// A candidate in the tree, by its place in [`Tree::nodes`].
pub(super) type Id = usize;

/// The root, which holds no candidate: its children begin anew.
pub(super) const ROOT: Id = 0;

/// What came of judging a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fate {
    /// It does not compile.
    Uncompiled,
    /// It compiles, and is wrong.
    Wrong,
    /// It is right, and so many times as fast as the original.
    Right(f64),
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) parent: Id,
    pub(super) step: Step,
    pub(super) children: Vec<Id>,
    /// `None` while it is being judged.
    pub(super) fate: Option<Fate>,
    /// Rewards of it and of what came of it.
    visits: usize,
    total: f64,
    greatest: f64,
    /// How many below it, and itself, are being judged.
    pending: usize,
    /// Steps of which no skill knows another one.
    spent: Vec<Step>,
    /// Steps that models are asked for.
    asked: Vec<Step>,
    /// Whether nobody goes on from it.
    closed: bool,
}

/// Who makes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The built-in skills, which may know no other one.
    Skills,
    /// A language model.
    Model,
}

/// All candidates of a search.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    settings: SearchSettings,
}

/// What a candidate is worth, by how far it came.
pub(super) fn reward(fate: Fate, settings: &SearchSettings) -> f64 {
    match fate {
        Fate::Uncompiled => 0.0,
        Fate::Wrong => settings.reward_compiled,
        Fate::Right(speedup) => {
            let (least, most) = (settings.least_speedup, settings.most_speedup);
            let share = (speedup.clamp(least, most) - least) / (most - least);
            settings.reward_right + (settings.reward_most - settings.reward_right) * share
        }
    }
}

impl Node {
    fn new(parent: Id, step: Step) -> Self {
        let (children, spent, asked) = Default::default();
        let (visits, pending, total, greatest, fate, closed) = Default::default();
        Self { parent, step, children, fate, visits, total, greatest, pending, spent, asked, closed }
    }

    /// How fast it is, if it is right.
    pub(super) fn speedup(&self) -> Option<f64> {
        if let Some(Fate::Right(speedup)) = self.fate { Some(speedup) } else { None }
    }
}

impl Tree {
    pub(super) fn new(settings: &SearchSettings) -> Self {
        Self { nodes: vec![Node::new(ROOT, Step::Large)], settings: settings.clone() }
    }

    /// How many nodes there have been: the number of the next one.
    pub(super) fn len(&self) -> Id {
        self.nodes.len()
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    /// All candidates that are right, the fastest first.
    pub(super) fn ranked(&self) -> Vec<(Id, f64)> {
        let all = self.nodes.iter().enumerate();
        let mut right: Vec<(Id, f64)> = all.filter_map(|(id, node)| Some((id, node.speedup()?))).collect();
        right.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        right
    }

    /// From where to go on next, and how; `None` when they know no other step from anywhere.
    pub(super) fn select(&self, by: By, chance: &mut Chance) -> Option<(Id, Step)> {
        let mut at = ROOT;
        loop {
            let below = self.best_child(at, by);
            let own = self.expansion(at, by);
            match (own, below) {
                (Some(own), Some((score, child))) if own <= score => at = child,
                (None, Some((_, child))) => at = child,
                (Some(_), _) => return Some((at, self.step(at, by, chance)?)),
                (None, None) => return None,
            }
        }
    }

    /// The step that is made from a node that can be expanded.
    fn step(&self, at: Id, by: By, chance: &mut Chance) -> Option<Step> {
        let is_open = |step: Step| self.is_open(at, step, by);
        let wants_large = chance.share() < self.settings.large;
        match (is_open(Step::Small), is_open(Step::Large)) {
            (true, true) => Some(if wants_large { Step::Large } else { Step::Small }),
            (true, false) => Some(Step::Small),
            (false, true) => Some(Step::Large),
            (false, false) => None,
        }
    }

    /// Whether such a step may be made from a node.
    fn is_open(&self, at: Id, step: Step, by: By) -> bool {
        let node = &self.nodes[at];
        if node.closed || by == By::Skills && node.spent.contains(&step) || at != ROOT && node.fate.is_none() {
            return false;
        }
        match step {
            Step::Large => true,
            Step::Small => at != ROOT && self.has_small_left(at),
        }
    }

    /// Whether a node has made fewer small steps than it may. Those that were made with others meanwhile count as well.
    fn has_small_left(&self, at: Id) -> bool {
        let node = &self.nodes[at];
        let steps = node.children.iter().map(|&child| self.nodes[child].step).chain(node.asked.iter().copied());
        steps.filter(|step| *step == Step::Small).count() < self.settings.small_steps
    }

    fn can_expand(&self, at: Id, by: By) -> bool {
        self.is_open(at, Step::Small, by) || self.is_open(at, Step::Large, by)
    }

    /// Whether there is something to be expanded at a node or below it.
    fn is_alive(&self, at: Id, by: By) -> bool {
        self.can_expand(at, by) || self.nodes[at].children.iter().any(|&child| self.is_alive(child, by))
    }

    /// What is known of a node: between the greatest and the mean reward, of which pending ones bring none.
    fn value(&self, at: Id) -> f64 {
        let node = &self.nodes[at];
        let visits = (node.visits + node.pending).max(1) as f64;
        self.settings.greatest * node.greatest + (1.0 - self.settings.greatest) * node.total / visits
    }

    fn visits(&self, at: Id) -> f64 {
        (self.nodes[at].visits + self.nodes[at].pending).max(1) as f64
    }

    /// The child that is best to go on below, with its score; none that is still being judged.
    fn best_child(&self, at: Id, by: By) -> Option<(f64, Id)> {
        let around = self.visits(at).ln();
        let is_open = |child: Id| self.nodes[child].fate.is_some() && self.is_alive(child, by);
        let open = self.nodes[at].children.iter().filter(|&&child| is_open(child));
        let scored = open.map(|&child| {
            (self.value(child) + self.settings.exploration * (around / self.visits(child)).sqrt(), child)
        });
        // Of equals the first.
        scored.fold(
            None,
            |best: Option<(f64, Id)>, one| if best.is_none_or(|best| one.0 > best.0) { Some(one) } else { best },
        )
    }

    /// Candidates that are being judged and may be gone on from by small steps, as if they were right. Not from what was made so itself: most
    /// of that would be for nothing.
    pub(super) fn open_ahead(&self) -> Vec<Id> {
        let is_open = |&id: &Id| {
            let node = &self.nodes[id];
            let parent = &self.nodes[node.parent];
            node.fate.is_none()
                && parent.children.contains(&id)
                && (node.parent == ROOT || parent.fate.is_some())
                && !node.closed
                && !node.spent.contains(&Step::Small)
                && self.has_small_left(id)
        };
        (ROOT + 1..self.nodes.len()).filter(is_open).collect()
    }

    /// What was made of a candidate that has turned out to be nothing to go on from, and is being judged still.
    pub(super) fn lost(&self, id: Id) -> Vec<Id> {
        let node = &self.nodes[id];
        let is_bad = matches!(node.fate, Some(Fate::Uncompiled | Fate::Wrong));
        let is_flying = |&child: &Id| is_bad && self.nodes[child].fate.is_none();
        node.children.iter().copied().filter(is_flying).collect()
    }

    /// The score of expanding a node; `None` where that cannot be done.
    fn expansion(&self, at: Id, by: By) -> Option<f64> {
        if !self.can_expand(at, by) {
            return None;
        }
        let children = &self.nodes[at].children;
        let count = children.len() + self.nodes[at].asked.len();
        if count == 0 {
            return Some(f64::INFINITY);
        }
        let best = children.iter().map(|&child| self.value(child)).fold(0.0, f64::max);
        let weight = self.settings.exploration * self.settings.expansion;
        Some(best + weight * (self.visits(at).ln() / (count * count) as f64).sqrt())
    }

    /// Nobody goes on from a node: its text is nothing to build upon.
    pub(super) fn close(&mut self, id: Id) {
        self.nodes[id].closed = true;
    }

    /// Takes note that a model is asked for a step: as long as it thinks, the place counts like one that is being judged.
    pub(super) fn ask(&mut self, at: Id, step: Step) {
        self.nodes[at].asked.push(step);
        self.path(at).into_iter().for_each(|above| self.nodes[above].pending += 1);
    }

    /// The model has answered, or will not.
    pub(super) fn answered(&mut self, at: Id, step: Step) {
        let asked = &mut self.nodes[at].asked;
        if let Some(place) = asked.iter().position(|one| *one == step) {
            asked.swap_remove(place);
        }
        self.path(at).into_iter().for_each(|above| self.nodes[above].pending -= 1);
    }

    /// Takes note of a step that no skill knows another one of.
    pub(super) fn spend(&mut self, at: Id, step: Step) {
        self.nodes[at].spent.push(step);
    }

    /// A candidate that is going to be judged.
    pub(super) fn begin(&mut self, parent: Id, step: Step) -> Id {
        let id = self.nodes.len();
        self.nodes.push(Node::new(parent, step));
        self.nodes[parent].children.push(id);
        for above in self.path(id) {
            self.nodes[above].pending += 1;
        }
        id
    }

    /// What came of it.
    pub(super) fn finish(&mut self, id: Id, fate: Fate) {
        let reward = reward(fate, &self.settings);
        self.nodes[id].fate = Some(fate);
        for above in self.path(id) {
            let node = &mut self.nodes[above];
            (node.pending, node.visits) = (node.pending - 1, node.visits + 1);
            (node.total, node.greatest) = (node.total + reward, node.greatest.max(reward));
        }
    }

    /// Takes back one of which nothing came, through no fault of its own.
    pub(super) fn forget(&mut self, id: Id) {
        for above in self.path(id) {
            self.nodes[above].pending -= 1;
        }
        let (parent, step) = (self.nodes[id].parent, self.nodes[id].step);
        self.nodes[parent].children.retain(|&child| child != id);
        // Nothing is known against what was made of it: that takes its place.
        for child in std::mem::take(&mut self.nodes[id].children) {
            (self.nodes[child].parent, self.nodes[child].step) = (parent, step);
            self.nodes[parent].children.push(child);
        }
    }

    /// A node and all above it, up to the root.
    pub(super) fn path(&self, id: Id) -> Vec<Id> {
        let mut path = vec![id];
        let mut at = id;
        while at != ROOT {
            at = self.nodes[at].parent;
            path.push(at);
        }
        path
    }

    /// The large step that a node comes from by small ones: that is its component. The root's is the root.
    pub(super) fn component(&self, id: Id) -> Id {
        let mut at = id;
        while at != ROOT && self.nodes[at].step == Step::Small {
            at = self.nodes[at].parent;
        }
        at
    }

    /// What a small step sees: the nodes from the last large step on, the last few of them, the latest last.
    pub(super) fn branch(&self, id: Id) -> Vec<Id> {
        let from = self.component(id);
        let mut branch = self.path(id);
        branch.truncate(branch.iter().position(|&at| at == from).map_or(0, |at| at + 1));
        branch.truncate(self.settings.memory);
        branch.reverse();
        branch
    }

    /// The fastest that is right of each component, by the large step that it begins with.
    pub(super) fn best_of_components(&self) -> Vec<(Id, Id, f64)> {
        let mut best: Vec<(Id, Id, f64)> = Vec::new();
        for (id, speedup) in self.ranked() {
            let component = self.component(id);
            if best.iter().all(|(of, ..)| *of != component) {
                best.push((component, id, speedup));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests;
