//! Changes one tile size at a time.

use base::rng::Rng;

use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

/// Changes one tile size that the kernel takes as a constexpr and that is a power of two in the source: half, double, a
/// quarter, four times.
pub(super) struct TileSizes;

impl Skill for TileSizes {
    fn name(&self) -> &'static str {
        "tile_sizes"
    }

    fn about(&self) -> &'static str {
        "A tile size twice or half as large, or four times: any number that the kernel takes as a constant and that is a power of two. Where no mask limits a tile, a larger one is used only for sizes that it divides: `128 if n % 128 == 0 else 64`."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        subject.single_turns(|knob| !knob.is_option())
    }
}
