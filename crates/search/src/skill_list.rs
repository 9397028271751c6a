//! The built-in skills, as listings show them.

use serde::Serialize;

/// A built-in skill (source transformation), as listings show it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SkillFacts {
    /// Its identifier, which is also the name of its source file: `rows_per_program`.
    pub name: &'static str,
    /// Whether it restructures the kernel or draws all launch parameters anew; a small skill changes one thing.
    pub is_large: bool,
    /// What the skill does and why that may be faster, in Markdown.
    pub about: &'static str,
}

/// All skills, in the order in which the search asks them.
pub fn skills() -> impl Iterator<Item = SkillFacts> {
    let facts = |skill: &&dyn transform::Skill| SkillFacts {
        name: skill.name(),
        is_large: skill.step() == transform::StepSize::Large,
        about: skill.about(),
    };
    transform::SKILLS.iter().map(facts)
}
