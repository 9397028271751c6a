//! Changes one launch option at a time (`num_warps` or `num_stages`).

use base::rng::Rng;

use super::launch_params::Knob;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;

/// Changes `num_warps` or `num_stages`, or adds the option where the launch does not set it.
pub(super) struct LaunchOptions;

impl Skill for LaunchOptions {
    fn name(&self) -> &'static str {
        "launch_options"
    }

    fn about(&self) -> &'static str {
        "`num_warps` and `num_stages`, also where the launch leaves them out or works them out."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        subject.single_turns(Knob::is_option)
    }
}
