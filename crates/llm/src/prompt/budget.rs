//! The choice of the parts of a prompt that are left out, the least informative first.

use super::shown::{Choice, line, times};
use super::{Context, Operator};
use crate::lines::one_line;

/// The number of characters that describe a part that is left out.
const TOLD: usize = 60;

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Pooled(usize),
    Attempt(usize),
    Skill(usize),
    Rule(usize),
}

/// The parts in the order in which they are left out: versions from the slowest on, attempts from the oldest on, then
/// the least relevant methods and rules.
pub(super) fn parts(operator: Operator, context: &Context<'_>) -> Vec<Part> {
    let pool = (0..context.pool.len()).rev().map(Part::Pooled).filter(|_| shows_pool(operator));
    let branch = (0..context.branch.len()).map(Part::Attempt).filter(|_| operator != Operator::Large);
    let skills = (0..context.skills.len()).rev().map(Part::Skill);
    pool.chain(branch).chain(skills).chain((0..context.rules.len()).rev().map(Part::Rule)).collect()
}

fn shows_pool(operator: Operator) -> bool {
    matches!(operator, Operator::Large | Operator::Write)
}

/// A choice of all parts that an operator uses.
pub(super) fn all(operator: Operator, context: &Context<'_>) -> Choice {
    Choice {
        pool: vec![shows_pool(operator); context.pool.len()],
        // A large step starts without the attempts of a branch.
        branch: vec![operator != Operator::Large; context.branch.len()],
        skills: vec![true; context.skills.len()],
        rules: vec![true; context.rules.len()],
    }
}

impl Choice {
    /// Includes a part or leaves it out.
    pub(super) fn set(&mut self, part: Part, kept: bool) {
        match part {
            Part::Pooled(at) => self.pool[at] = kept,
            Part::Attempt(at) => self.branch[at] = kept,
            Part::Skill(at) => self.skills[at] = kept,
            Part::Rule(at) => self.rules[at] = kept,
        }
    }
}

/// The least number of bytes that a part takes.
pub(super) fn least(part: Part, context: &Context<'_>) -> usize {
    match part {
        Part::Pooled(at) => context.pool[at].text.trim_end_matches('\n').len(),
        Part::Attempt(at) => context.branch[at].change.trim_end_matches('\n').len(),
        Part::Skill(at) => line(&context.skills[at]).len(),
        Part::Rule(at) => line(&context.rules[at]).len(),
    }
}

/// The description of a part.
pub(super) fn told(part: Part, context: &Context<'_>) -> String {
    let short = |text: &str| one_line(&line(text), TOLD);
    match part {
        Part::Pooled(at) => format!("a version that is {} as fast", times(context.pool[at].speedup)),
        Part::Attempt(at) => format!("an attempt: {}", short(&context.branch[at].change)),
        Part::Skill(at) => format!("a method: {}", short(&context.skills[at])),
        Part::Rule(at) => format!("a rule: {}", short(&context.rules[at])),
    }
}
