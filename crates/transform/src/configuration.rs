//! Draws all tile sizes and launch options anew at once.

use base::rng::Rng;

use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

/// The number of configurations that are drawn.
const DRAWN: usize = 24;
/// The probability that a number stays as it is, one of which is drawn for each configuration.
const STAYS: [f64; 3] = [0.3, 0.6, 0.8];
/// The steps of a number that changes, with their frequencies: a tile is too small more often than too large.
const STEPS: [isize; 8] = [1, 1, 1, 2, 2, -1, -1, -2];

/// Draws configurations around the current one: each number stays, or moves one or two steps up or down.
pub(super) struct Configuration;

impl Skill for Configuration {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn about(&self) -> &'static str {
        "All tile sizes and launch options sampled again, near those of one of the best candidates."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, chance: &mut Rng) -> Vec<Proposal> {
        let present = subject.present();
        let mut draw = || {
            let least = STAYS[chance.below(3) as usize];
            let drawn = subject.knobs.iter().map(|knob| {
                let stays = chance.uniform() < least;
                let distance = STEPS[chance.below(STEPS.len() as u64) as usize];
                if stays { knob.current } else { knob.step(distance).unwrap_or(knob.current) }
            });
            drawn.collect()
        };
        let settings: Vec<Vec<i64>> = (0..DRAWN).map(|_| draw()).filter(|setting| *setting != present).collect();
        settings.iter().map(|setting| subject.turn("configuration", setting)).collect()
    }
}
