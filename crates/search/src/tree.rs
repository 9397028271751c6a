//! The search tree: it selects the candidate to continue from, and whether by a small or a large step.
//!
//! The search uses upper confidence bounds in AdaExplore's shape (arXiv 2604.16625): any node may be selected,
//! since expanding a node has a score of its own, which competes with the score of its best child. Candidates under
//! judgement count as visits without reward, so that selections made in parallel spread over the tree.

use serde::{Deserialize, Serialize};
pub(crate) use transform::Step;

use base::rng::Chance;
use config::SearchSettings;

/// The number of a node, which is its index in [`Tree::nodes`].
pub(super) type Id = usize;

/// The root, which holds no candidate; its children are new beginnings.
pub(super) const ROOT: Id = 0;

/// The result of judging a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fate {
    /// It does not compile.
    Uncompiled,
    /// It compiles, but its results are wrong.
    Wrong,
    /// It is correct; the number is its speedup over the original.
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
    /// Number, sum and maximum of the rewards of this node and all nodes below it.
    visits: usize,
    total: f64,
    greatest: f64,
    /// Number of nodes under judgement in this subtree, this node included.
    pending: usize,
    /// Steps for which the skills have no proposal left.
    spent: Vec<Step>,
    /// Steps that a model is being asked for.
    asked: Vec<Step>,
    /// Whether the node is excluded from further steps.
    closed: bool,
}

/// The kind of proposer that makes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The built-in skills, which may run out of proposals.
    Skills,
    /// A language model.
    Model,
}

/// All candidates of a search, as a tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    settings: SearchSettings,
}

/// The reward of a candidate: 0 when it does not compile, more when it compiles, and more again, growing with the
/// speedup, when it is correct.
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

    /// The speedup over the original, if the candidate is correct.
    pub(super) fn speedup(&self) -> Option<f64> {
        if let Some(Fate::Right(speedup)) = self.fate { Some(speedup) } else { None }
    }
}

impl Tree {
    pub(super) fn new(settings: &SearchSettings) -> Self {
        Self { nodes: vec![Node::new(ROOT, Step::Large)], settings: settings.clone() }
    }

    /// Number of nodes, the root included; this is the number that the next node gets.
    pub(super) fn len(&self) -> Id {
        self.nodes.len()
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    /// All correct candidates with their speedups, the fastest first.
    pub(super) fn ranked(&self) -> Vec<(Id, f64)> {
        let all = self.nodes.iter().enumerate();
        let mut right: Vec<(Id, f64)> = all.filter_map(|(id, node)| Some((id, node.speedup()?))).collect();
        right.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        right
    }

    /// Selects the node to continue from and the kind of step; `None` when no node has a step left for this
    /// proposer.
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

    /// The kind of step to make from a node: large with probability `settings.large` where both are possible.
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

    /// Whether this kind of step may be made from a node.
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

    /// Whether a node has made fewer small steps than it may. Steps under judgement and steps that a model is asked
    /// for count as well.
    fn has_small_left(&self, at: Id) -> bool {
        let node = &self.nodes[at];
        let steps = node.children.iter().map(|&child| self.nodes[child].step).chain(node.asked.iter().copied());
        steps.filter(|step| *step == Step::Small).count() < self.settings.small_steps
    }

    fn can_expand(&self, at: Id, by: By) -> bool {
        self.is_open(at, Step::Small, by) || self.is_open(at, Step::Large, by)
    }

    /// Whether a node in this subtree can be expanded.
    fn is_alive(&self, at: Id, by: By) -> bool {
        self.can_expand(at, by) || self.nodes[at].children.iter().any(|&child| self.is_alive(child, by))
    }

    /// The value of a node: a blend of the greatest and the mean reward, where pending nodes count as visits
    /// without reward.
    fn value(&self, at: Id) -> f64 {
        let node = &self.nodes[at];
        let visits = (node.visits + node.pending).max(1) as f64;
        self.settings.greatest * node.greatest + (1.0 - self.settings.greatest) * node.total / visits
    }

    fn visits(&self, at: Id) -> f64 {
        (self.nodes[at].visits + self.nodes[at].pending).max(1) as f64
    }

    /// The child with the best upper confidence bound, with its score; children under judgement are left out.
    fn best_child(&self, at: Id, by: By) -> Option<(f64, Id)> {
        let around = self.visits(at).ln();
        let is_open = |child: Id| self.nodes[child].fate.is_some() && self.is_alive(child, by);
        let open = self.nodes[at].children.iter().filter(|&&child| is_open(child));
        let scored = open.map(|&child| {
            (self.value(child) + self.settings.exploration * (around / self.visits(child)).sqrt(), child)
        });
        // Of equal scores, the first child wins.
        scored.fold(
            None,
            |best: Option<(f64, Id)>, one| if best.is_none_or(|best| one.0 > best.0) { Some(one) } else { best },
        )
    }

    /// Candidates under judgement from which a small step may be made as if they were correct. A candidate that was
    /// itself made this way is left out, since most of its steps would be wasted.
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

    /// Children of a refused candidate that are still being judged and have lost their point.
    pub(super) fn lost(&self, id: Id) -> Vec<Id> {
        let node = &self.nodes[id];
        let is_bad = matches!(node.fate, Some(Fate::Uncompiled | Fate::Wrong));
        let is_flying = |&child: &Id| is_bad && self.nodes[child].fate.is_none();
        node.children.iter().copied().filter(is_flying).collect()
    }

    /// The score of expanding a node; `None` where it cannot be expanded.
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

    /// Excludes a node from further steps, because its text is no basis for other candidates.
    pub(super) fn close(&mut self, id: Id) {
        self.nodes[id].closed = true;
    }

    /// Notes that a model is being asked for a step. Until it answers, the place counts as under judgement.
    pub(super) fn ask(&mut self, at: Id, step: Step) {
        self.nodes[at].asked.push(step);
        self.path(at).into_iter().for_each(|above| self.nodes[above].pending += 1);
    }

    /// Notes that the model has answered, or will not answer.
    pub(super) fn answered(&mut self, at: Id, step: Step) {
        let asked = &mut self.nodes[at].asked;
        if let Some(place) = asked.iter().position(|one| *one == step) {
            asked.swap_remove(place);
        }
        self.path(at).into_iter().for_each(|above| self.nodes[above].pending -= 1);
    }

    /// Notes that the skills have no proposal left for a step.
    pub(super) fn spend(&mut self, at: Id, step: Step) {
        self.nodes[at].spent.push(step);
    }

    /// Adds a candidate that is about to be judged.
    pub(super) fn begin(&mut self, parent: Id, step: Step) -> Id {
        let id = self.nodes.len();
        self.nodes.push(Node::new(parent, step));
        self.nodes[parent].children.push(id);
        for above in self.path(id) {
            self.nodes[above].pending += 1;
        }
        id
    }

    /// Records the result of a candidate and passes its reward up to the root.
    pub(super) fn finish(&mut self, id: Id, fate: Fate) {
        let reward = reward(fate, &self.settings);
        self.nodes[id].fate = Some(fate);
        for above in self.path(id) {
            let node = &mut self.nodes[above];
            (node.pending, node.visits) = (node.pending - 1, node.visits + 1);
            (node.total, node.greatest) = (node.total + reward, node.greatest.max(reward));
        }
    }

    /// Removes a candidate that could not be judged through no fault of its own.
    pub(super) fn forget(&mut self, id: Id) {
        for above in self.path(id) {
            self.nodes[above].pending -= 1;
        }
        let (parent, step) = (self.nodes[id].parent, self.nodes[id].step);
        self.nodes[parent].children.retain(|&child| child != id);
        // Nothing speaks against its children, so they move up to its parent.
        for child in std::mem::take(&mut self.nodes[id].children) {
            (self.nodes[child].parent, self.nodes[child].step) = (parent, step);
            self.nodes[parent].children.push(child);
        }
    }

    /// The node and its ancestors, the root last.
    pub(super) fn path(&self, id: Id) -> Vec<Id> {
        let mut path = vec![id];
        let mut at = id;
        while at != ROOT {
            at = self.nodes[at].parent;
            path.push(at);
        }
        path
    }

    /// The start of a node's component: the large step from which the node follows by small steps. For nodes below
    /// no large step it is the root.
    pub(super) fn component(&self, id: Id) -> Id {
        let mut at = id;
        while at != ROOT && self.nodes[at].step == Step::Small {
            at = self.nodes[at].parent;
        }
        at
    }

    /// The nodes that a small step takes into account: those from the last large step on, at most `settings.memory`
    /// of them, the latest last.
    pub(super) fn branch(&self, id: Id) -> Vec<Id> {
        let from = self.component(id);
        let mut branch = self.path(id);
        branch.truncate(branch.iter().position(|&at| at == from).map_or(0, |at| at + 1));
        branch.truncate(self.settings.memory);
        branch.reverse();
        branch
    }

    /// The fastest correct candidate of each component, as (start of the component, candidate, speedup).
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
