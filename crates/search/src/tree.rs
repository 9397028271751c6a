//! The search tree: it selects the candidate to continue from, and whether by a small or a large step.
//!
//! The search uses upper confidence bounds in AdaExplore's shape (arXiv 2604.16625): any node may be selected,
//! since expanding a node has a score of its own, which competes with the score of its best child. Candidates under
//! judgement count as visits without reward, so that selections made in parallel spread over the tree.

use serde::{Deserialize, Serialize};
pub(crate) use transform::StepSize;

use base::rng::Rng;
use config::SearchSettings;

/// The number of a node, which is its index in [`Tree::nodes`].
pub(super) type CandidateId = usize;

/// The root, which holds no candidate; its children are new beginnings.
pub(super) const ROOT: CandidateId = 0;

/// The result of judging a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CandidateResult {
    /// It does not compile.
    Uncompiled,
    /// It compiles, but its results are wrong.
    Wrong,
    /// It is correct; the number is its speedup over the original.
    Right(f64),
}

/// A node of the tree.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    pub(super) parent: CandidateId,
    pub(super) step: StepSize,
    pub(super) children: Vec<CandidateId>,
    /// `None` while it is being judged.
    pub(super) result: Option<CandidateResult>,
    /// Number, sum and maximum of the rewards of this node and all nodes below it.
    visits: usize,
    total: f64,
    greatest: f64,
    /// Number of nodes under judgement in this subtree, this node included.
    pending: usize,
    /// Steps for which the skills have no proposal left.
    spent: Vec<StepSize>,
    /// Steps that a model is being asked for.
    asked: Vec<StepSize>,
    /// Whether the node is excluded from further steps.
    closed: bool,
}

/// The kind of proposer that makes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proposer {
    /// The built-in skills, which may run out of proposals.
    Skills,
    /// A language model.
    Model,
}

/// All candidates of a search, as a tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<TreeNode>,
    settings: SearchSettings,
}

/// The reward of a candidate: 0 when it does not compile, more when it compiles, and more again, growing with the
/// speedup, when it is correct.
pub(super) fn reward(fate: CandidateResult, settings: &SearchSettings) -> f64 {
    match fate {
        CandidateResult::Uncompiled => 0.0,
        CandidateResult::Wrong => settings.reward_compiled,
        CandidateResult::Right(speedup) => {
            let (least, most) = (settings.least_speedup, settings.most_speedup);
            let share = (speedup.clamp(least, most) - least) / (most - least);
            settings.reward_right + (settings.reward_most - settings.reward_right) * share
        }
    }
}

impl TreeNode {
    fn new(parent: CandidateId, step: StepSize) -> Self {
        let (children, spent, asked) = Default::default();
        let (visits, pending, total, greatest, result, closed) = Default::default();
        Self { parent, step, children, result, visits, total, greatest, pending, spent, asked, closed }
    }

    /// The speedup over the original, if the candidate is correct.
    pub(super) fn speedup(&self) -> Option<f64> {
        if let Some(CandidateResult::Right(speedup)) = self.result { Some(speedup) } else { None }
    }
}

impl Tree {
    pub(super) fn new(settings: &SearchSettings) -> Self {
        Self { nodes: vec![TreeNode::new(ROOT, StepSize::Large)], settings: settings.clone() }
    }

    /// Number of nodes, the root included; this is the number that the next node gets.
    pub(super) fn len(&self) -> CandidateId {
        self.nodes.len()
    }

    pub(super) fn node(&self, id: CandidateId) -> &TreeNode {
        &self.nodes[id]
    }

    /// All correct candidates with their speedups, the fastest first.
    pub(super) fn ranked(&self) -> Vec<(CandidateId, f64)> {
        let all = self.nodes.iter().enumerate();
        let mut right: Vec<(CandidateId, f64)> = all.filter_map(|(id, node)| Some((id, node.speedup()?))).collect();
        right.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        right
    }

    /// Selects the node to continue from and the kind of step; `None` when no node has a step left for this
    /// proposer.
    pub(super) fn select(&self, by: Proposer, chance: &mut Rng) -> Option<(CandidateId, StepSize)> {
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
    fn step(&self, at: CandidateId, by: Proposer, chance: &mut Rng) -> Option<StepSize> {
        let is_open = |step: StepSize| self.is_open(at, step, by);
        let wants_large = chance.uniform() < self.settings.large;
        match (is_open(StepSize::Small), is_open(StepSize::Large)) {
            (true, true) => Some(if wants_large { StepSize::Large } else { StepSize::Small }),
            (true, false) => Some(StepSize::Small),
            (false, true) => Some(StepSize::Large),
            (false, false) => None,
        }
    }

    /// Whether this kind of step may be made from a node.
    fn is_open(&self, at: CandidateId, step: StepSize, by: Proposer) -> bool {
        let node = &self.nodes[at];
        if node.closed || by == Proposer::Skills && node.spent.contains(&step) || at != ROOT && node.result.is_none() {
            return false;
        }
        match step {
            StepSize::Large => true,
            StepSize::Small => at != ROOT && self.has_small_left(at),
        }
    }

    /// Whether a node has made fewer small steps than it may. Steps under judgement and steps that a model is asked
    /// for count as well.
    fn has_small_left(&self, at: CandidateId) -> bool {
        let node = &self.nodes[at];
        let steps = node.children.iter().map(|&child| self.nodes[child].step).chain(node.asked.iter().copied());
        steps.filter(|step| *step == StepSize::Small).count() < self.settings.small_steps
    }

    fn can_expand(&self, at: CandidateId, by: Proposer) -> bool {
        self.is_open(at, StepSize::Small, by) || self.is_open(at, StepSize::Large, by)
    }

    /// Whether a node in this subtree can be expanded.
    fn is_alive(&self, at: CandidateId, by: Proposer) -> bool {
        self.can_expand(at, by) || self.nodes[at].children.iter().any(|&child| self.is_alive(child, by))
    }

    /// The value of a node: a blend of the greatest and the mean reward, where pending nodes count as visits
    /// without reward.
    fn value(&self, at: CandidateId) -> f64 {
        let node = &self.nodes[at];
        let visits = (node.visits + node.pending).max(1) as f64;
        self.settings.greatest * node.greatest + (1.0 - self.settings.greatest) * node.total / visits
    }

    fn visits(&self, at: CandidateId) -> f64 {
        (self.nodes[at].visits + self.nodes[at].pending).max(1) as f64
    }

    /// The child with the best upper confidence bound, with its score; children under judgement are left out.
    fn best_child(&self, at: CandidateId, by: Proposer) -> Option<(f64, CandidateId)> {
        let around = self.visits(at).ln();
        let is_open = |child: CandidateId| self.nodes[child].result.is_some() && self.is_alive(child, by);
        let open = self.nodes[at].children.iter().filter(|&&child| is_open(child));
        let scored = open.map(|&child| {
            (self.value(child) + self.settings.exploration * (around / self.visits(child)).sqrt(), child)
        });
        // Of equal scores, the first child wins.
        scored.fold(
            None,
            |best: Option<(f64, CandidateId)>, one| {
                if best.is_none_or(|best| one.0 > best.0) { Some(one) } else { best }
            },
        )
    }

    /// Candidates under judgement from which a small step may be made as if they were correct. A candidate that was
    /// itself made this way is left out, since most of its steps would be wasted.
    pub(super) fn open_ahead(&self) -> Vec<CandidateId> {
        let is_open = |&id: &CandidateId| {
            let node = &self.nodes[id];
            let parent = &self.nodes[node.parent];
            node.result.is_none()
                && parent.children.contains(&id)
                && (node.parent == ROOT || parent.result.is_some())
                && !node.closed
                && !node.spent.contains(&StepSize::Small)
                && self.has_small_left(id)
        };
        (ROOT + 1..self.nodes.len()).filter(is_open).collect()
    }

    /// Children of a refused candidate that are still being judged and have lost their point.
    pub(super) fn pending_descendants(&self, id: CandidateId) -> Vec<CandidateId> {
        let node = &self.nodes[id];
        let is_bad = matches!(node.result, Some(CandidateResult::Uncompiled | CandidateResult::Wrong));
        let is_flying = |&child: &CandidateId| is_bad && self.nodes[child].result.is_none();
        node.children.iter().copied().filter(is_flying).collect()
    }

    /// The score of expanding a node; `None` where it cannot be expanded.
    fn expansion(&self, at: CandidateId, by: Proposer) -> Option<f64> {
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
    pub(super) fn close(&mut self, id: CandidateId) {
        self.nodes[id].closed = true;
    }

    /// Notes that a model is being asked for a step. Until it answers, the place counts as under judgement.
    pub(super) fn ask(&mut self, at: CandidateId, step: StepSize) {
        self.nodes[at].asked.push(step);
        self.path(at).into_iter().for_each(|above| self.nodes[above].pending += 1);
    }

    /// Notes that the model has answered, or will not answer.
    pub(super) fn finish_model_step(&mut self, at: CandidateId, step: StepSize) {
        let asked = &mut self.nodes[at].asked;
        if let Some(place) = asked.iter().position(|one| *one == step) {
            asked.swap_remove(place);
        }
        self.path(at).into_iter().for_each(|above| self.nodes[above].pending -= 1);
    }

    /// Notes that the skills have no proposal left for a step.
    pub(super) fn spend(&mut self, at: CandidateId, step: StepSize) {
        self.nodes[at].spent.push(step);
    }

    /// Adds a candidate that is about to be judged.
    pub(super) fn begin(&mut self, parent: CandidateId, step: StepSize) -> CandidateId {
        let id = self.nodes.len();
        self.nodes.push(TreeNode::new(parent, step));
        self.nodes[parent].children.push(id);
        for above in self.path(id) {
            self.nodes[above].pending += 1;
        }
        id
    }

    /// Records the result of a candidate and passes its reward up to the root.
    pub(super) fn finish(&mut self, id: CandidateId, fate: CandidateResult) {
        let reward = reward(fate, &self.settings);
        self.nodes[id].result = Some(fate);
        for above in self.path(id) {
            let node = &mut self.nodes[above];
            (node.pending, node.visits) = (node.pending - 1, node.visits + 1);
            (node.total, node.greatest) = (node.total + reward, node.greatest.max(reward));
        }
    }

    /// Removes a candidate that could not be judged through no fault of its own.
    pub(super) fn forget(&mut self, id: CandidateId) {
        for above in self.path(id) {
            self.nodes[above].pending -= 1;
        }
        let (parent, step) = (self.nodes[id].parent, self.nodes[id].step);
        self.nodes[parent].children.retain(|&child| child != id);
        // No result is against its children, so they move up to its parent.
        for child in std::mem::take(&mut self.nodes[id].children) {
            (self.nodes[child].parent, self.nodes[child].step) = (parent, step);
            self.nodes[parent].children.push(child);
        }
    }

    /// The node and its ancestors, the root last.
    pub(super) fn path(&self, id: CandidateId) -> Vec<CandidateId> {
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
    pub(super) fn component(&self, id: CandidateId) -> CandidateId {
        let mut at = id;
        while at != ROOT && self.nodes[at].step == StepSize::Small {
            at = self.nodes[at].parent;
        }
        at
    }

    /// The nodes that a small step takes into account: those from the last large step on, at most `settings.memory`
    /// of them, the latest last.
    pub(super) fn branch(&self, id: CandidateId) -> Vec<CandidateId> {
        let from = self.component(id);
        let mut branch = self.path(id);
        branch.truncate(branch.iter().position(|&at| at == from).map_or(0, |at| at + 1));
        branch.truncate(self.settings.memory);
        branch.reverse();
        branch
    }

    /// The fastest correct candidate of each component, as (start of the component, candidate, speedup).
    pub(super) fn best_of_components(&self) -> Vec<(CandidateId, CandidateId, f64)> {
        let mut best: Vec<(CandidateId, CandidateId, f64)> = Vec::new();
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
