//! A built-in rewrite, as a search sees it.

use base::rng::Rng;

use super::proposal::Proposal;
use super::step::StepSize;
use super::subject::Subject;

/// A built-in rewrite: proposes changes of a candidate.
pub trait Skill: Sync {
    /// The name under which users see the skill, which is the name of its file.
    fn name(&self) -> &'static str;

    /// What the skill does, and why that may be faster; in Markdown.
    fn about(&self) -> &'static str;

    /// Whether the skill makes small steps, which keep the structure of the candidate, or large ones.
    fn step(&self) -> StepSize;

    /// Whether the skill changes nothing but numbers (tile sizes and launch options).
    fn turns_numbers(&self) -> bool {
        false
    }

    /// Whether the rewritten kernel still works for all its other launches and callers.
    fn keeps_contract(&self) -> bool {
        false
    }

    /// Whether the skill helps only where calls differ in size: a single call has its own best numbers.
    fn is_for_sizes(&self) -> bool {
        false
    }

    /// Whether the skill gains a few percent at most: all its proposals together weigh less than one untried proposal
    /// of another kind.
    fn is_fine(&self) -> bool {
        false
    }

    /// Whether the skill's proposals exclude each other: no small step leads from a candidate with one of them to
    /// another.
    fn parts_ways(&self) -> bool {
        false
    }

    /// The skill's proposals for a candidate. They may be a random sample of all that are possible.
    fn turns(&self, subject: &Subject<'_>, chance: &mut Rng) -> Vec<Proposal>;
}
