//! Changes one launch option at a time (`num_warps` or `num_stages`).

use base::rng::Chance;

use super::knobs::Knob;
use super::{Skill, Subject, Turn};
use crate::Step;

/// Turns `num_warps` or `num_stages`, which are written where the launch leaves them out.
pub(super) struct LaunchOptions;

impl Skill for LaunchOptions {
    fn name(&self) -> &'static str {
        "launch_options"
    }

    fn about(&self) -> &'static str {
        "`num_warps` and `num_stages`, also where the launch leaves them out or works them out."
    }

    fn step(&self) -> Step {
        Step::Small
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Chance) -> Vec<Turn> {
        subject.single_turns(Knob::is_option)
    }
}
