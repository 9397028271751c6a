//! Skills: the built-in rewrites of a kernel, which need no language model. Each skill is one file.
//!
//! A skill reads a candidate and proposes changes of it. It does not decide whether a change is correct or faster: the
//! judge does.

mod autotuned;
pub mod by_size;
pub mod candidate;
mod conditional_tile;
mod configuration;
mod descriptors;
mod dot_inputs;
mod dot_precision;
mod even_sizes;
mod eviction;
mod exp2;
mod full_iterations;
mod fused_launches;
mod grid_tiles;
mod grouped_order;
mod guard;
mod heuristic;
mod hoisted_loads;
mod launch_options;
pub mod launch_params;
mod launched;
mod lift;
mod lines;
mod loads;
mod longest_first;
mod loop_options;
mod looped;
mod masked;
mod names;
mod narrow_offsets;
pub mod one_configuration;
mod parameter;
mod persistent;
mod pointwise;
mod product_tiles;
mod programs_per_sm;
mod proposal;
mod reaching;
mod recomputed;
mod rounds;
mod rows_per_program;
mod single_tile;
mod skill;
mod split;
mod statements;
mod step;
mod subject;
mod subject_launch;
mod summed_atomics;
mod swapped_factors;
mod tile_sizes;
#[cfg(test)]
mod turned;
mod two_dimensional;
mod unmasked;
mod unroll;
mod untuned;
mod widened;
mod words;
mod written;

pub use proposal::Proposal;
pub use skill::Skill;
pub use step::StepSize;
pub use subject::Subject;
pub use words::has_word;

/// All built-in skills.
pub const SKILLS: &[&dyn Skill] = &[
    &tile_sizes::TileSizes,
    &launch_options::LaunchOptions,
    &loop_options::LoopOptions,
    &programs_per_sm::Resident,
    &eviction::Eviction,
    &hoisted_loads::HoistedLoads,
    &exp2::Exp2,
    &dot_inputs::DotInputs,
    &dot_precision::DotPrecision,
    &widened::Widened,
    &swapped_factors::SwappedFactors,
    &even_sizes::EvenSizes,
    &narrow_offsets::NarrowOffsets,
    &configuration::Configuration,
    &product_tiles::ProductTiles,
    &rows_per_program::RowsPerProgram,
    &two_dimensional::TwoDimensional,
    &single_tile::SingleTile,
    &looped::Looped,
    &recomputed::Recomputed,
    &one_configuration::OneConfiguration,
    &autotuned::Autotuned,
    &grouped_order::GroupedOrder,
    &longest_first::LongestFirst,
    &unroll::RoundsAtOnce,
    &persistent::Persistent,
    &summed_atomics::SummedAtomics,
    &descriptors::Descriptors,
    &full_iterations::WholeRounds,
    &split::SplitLoop,
    &fused_launches::FusedLaunches,
];
