//! The choice of the parts of a prompt that are left out, the least informative first.

use super::quoting::{IncludedParts, line, times};
use super::{Operator, PromptContext};
use crate::numbered_text::one_line;

/// The number of characters that describe a part that is left out.
const TOLD: usize = 60;

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionalPart {
    Pooled(usize),
    Attempt(usize),
    Skill(usize),
    Rule(usize),
}

/// The parts in the order in which they are left out: versions from the slowest on, attempts from the oldest on, then
/// the least relevant methods and rules.
pub(super) fn parts(operator: Operator, context: &PromptContext<'_>) -> Vec<OptionalPart> {
    let pool = (0..context.pool.len()).rev().map(OptionalPart::Pooled).filter(|_| shows_pool(operator));
    let branch = (0..context.branch.len()).map(OptionalPart::Attempt).filter(|_| operator != Operator::Large);
    let skills = (0..context.skills.len()).rev().map(OptionalPart::Skill);
    pool.chain(branch).chain(skills).chain((0..context.rules.len()).rev().map(OptionalPart::Rule)).collect()
}

fn shows_pool(operator: Operator) -> bool {
    matches!(operator, Operator::Large | Operator::Write)
}

/// A choice of all parts that an operator uses.
pub(super) fn all(operator: Operator, context: &PromptContext<'_>) -> IncludedParts {
    IncludedParts {
        pool: vec![shows_pool(operator); context.pool.len()],
        // A large step starts without the attempts of a branch.
        branch: vec![operator != Operator::Large; context.branch.len()],
        skills: vec![true; context.skills.len()],
        rules: vec![true; context.rules.len()],
    }
}

impl IncludedParts {
    /// Includes a part or leaves it out.
    pub(super) fn set(&mut self, part: OptionalPart, kept: bool) {
        match part {
            OptionalPart::Pooled(at) => self.pool[at] = kept,
            OptionalPart::Attempt(at) => self.branch[at] = kept,
            OptionalPart::Skill(at) => self.skills[at] = kept,
            OptionalPart::Rule(at) => self.rules[at] = kept,
        }
    }
}

/// The least number of bytes that a part takes.
pub(super) fn least(part: OptionalPart, context: &PromptContext<'_>) -> usize {
    match part {
        OptionalPart::Pooled(at) => context.pool[at].text.trim_end_matches('\n').len(),
        OptionalPart::Attempt(at) => context.branch[at].change.trim_end_matches('\n').len(),
        OptionalPart::Skill(at) => line(&context.skills[at]).len(),
        OptionalPart::Rule(at) => line(&context.rules[at]).len(),
    }
}

/// The description of a part.
pub(super) fn describe(part: OptionalPart, context: &PromptContext<'_>) -> String {
    let short = |text: &str| one_line(&line(text), TOLD);
    match part {
        OptionalPart::Pooled(at) => format!("a version that is {} as fast", times(context.pool[at].speedup)),
        OptionalPart::Attempt(at) => format!("an attempt: {}", short(&context.branch[at].change)),
        OptionalPart::Skill(at) => format!("a method: {}", short(&context.skills[at])),
        OptionalPart::Rule(at) => format!("a rule: {}", short(&context.rules[at])),
    }
}
