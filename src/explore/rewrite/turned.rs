//! For the tests of skills: what one makes of a text.

use super::{Skill, Subject};
use crate::chance::Chance;
use crate::explore::candidate::Candidate;
use crate::protocol::Workload;
use crate::rules::apply_edits;

/// The text after each of a skill's turns of the kernel `k`, which `run` launches.
pub(super) fn turned_by(skill: &dyn Skill, text: &str) -> Vec<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    let turns = skill.turns(&subject, &mut Chance::new(1));
    turns.iter().map(|turn| apply_edits(text, &turn.edits)).collect()
}
