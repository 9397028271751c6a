//! Helpers for the tests of skills: the texts that a skill proposes.

use base::rng::Rng;
use model::api::{TritonTarget, Version};
use protocol::Workload;
use rules::apply_edits;

use super::SKILLS;
use super::candidate::Candidate;
use super::skill::Skill;
use super::subject::Subject;

/// The texts after each proposal of a skill for the kernel `k`, which `run` launches.
pub(super) fn turned_by(skill: &dyn Skill, text: &str) -> Vec<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    let turns = skill.turns(&subject, &mut Rng::new(1));
    turns.iter().map(|turn| apply_edits(text, &turn.edits)).collect()
}

/// Kernels as users write them: each skill in a file's `# skills:` line must have a proposal for one of its kernels.
#[test]
fn skills_have_proposals_for_the_idioms_that_name_them() {
    let target = TritonTarget::of(Version { major: 3, minor: 6, patch: 0 });
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/idioms");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let after = |mark: &str| text.split(mark).nth(1).unwrap().lines().next().unwrap().to_owned();
        let entry = after("entry=").split_whitespace().next().unwrap().to_owned();
        let candidate = Candidate::original(&text);
        let workload = Workload { entry, ..Workload::default() };
        let can = |skill: &dyn Skill| {
            candidate.module.kernels.iter().any(|kernel| {
                let subject = Subject::new(&candidate, &text, &kernel.name, &workload).unwrap().with_target(target);
                !skill.turns(&subject, &mut Rng::new(1)).is_empty()
            })
        };
        for name in after("# skills:").split_whitespace() {
            let skill = SKILLS.iter().find(|skill| skill.name() == name).unwrap();
            assert!(can(*skill), "{name} can do nothing with {}", path.display());
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}
