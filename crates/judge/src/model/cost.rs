//! The time that a launch may take: a model of bandwidth, computing, occupancy and waves.
//!
//! It is there to rank candidates. Its constants are of the kind that a data sheet or a textbook gives; none is fitted.

use model::analysis::occupancy::{Limits, Usage};

use super::gpu::Gpu;
use super::run::UNKNOWN;
use super::work::Work;

/// Nanoseconds until a load comes back from the memory.
const LATENCY: f64 = 650.0;
/// Nanoseconds until a program does something.
const START: f64 = 400.0;
/// Nanoseconds of an exchange between the lanes of a warp, and between warps.
const EXCHANGE: (f64, f64) = (25.0, 70.0);
/// Nanoseconds of a launch.
const LAUNCH: f64 = 2500.0;
/// What is reached of the memory's bandwidth at best.
const REACHED: f64 = 0.92;
/// Bytes a clock that the L2 gives to one multiprocessor.
const FROM_L2: f64 = 42.0;
/// Lanes of functions in a multiprocessor.
const SPECIAL: f64 = 16.0;
/// Of what lanes could do, so much is reached.
const ISSUED: f64 = 0.6;
/// How much of what a program asks for again is no longer in the L2, when what all of them go through meanwhile is as large as that.
const MISSED: f64 = 0.5;
/// The same of what others have asked for, most of them just now.
const MISSED_OF_OTHERS: f64 = 0.1;
/// How what bounds a time adds up: the greater, the less.
const OVERLAP: f64 = 4.0;

/// What a compiled kernel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Taken {
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Bytes of a thread's stack: what did not fit into registers.
    pub(super) stack: u32,
    /// Bytes of shared memory of a program.
    pub(super) shared: u32,
    pub(super) warps: u32,
    /// Rounds of a loop whose loads are under way at once.
    pub(super) stages: u32,
}

/// The time of a launch, and what it is made of, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Time {
    pub(super) memory: f64,
    pub(super) l2: f64,
    pub(super) lanes: f64,
    pub(super) tensor: f64,
    /// What each program waits for, one after the other.
    pub(super) waits: f64,
    pub(super) total: f64,
    /// Bytes that cross the line to the memory.
    pub(super) bytes: f64,
}

/// The time of so many programs, each of which does as much as `each`. `sizes` are the bytes behind the parameters, where they are
/// known. `None` for what cannot be launched.
pub(super) fn time(each: &Work, programs: f64, taken: Taken, sizes: &[Option<f64>], gpu: &Gpu) -> Option<Time> {
    let limits = Limits::of(gpu.capability)?;
    let usage = Usage { registers: taken.registers, shared: taken.shared, warps: taken.warps };
    let blocks = f64::from(limits.occupancy(usage)?.blocks);
    let multiprocessors = f64::from(gpu.multiprocessors);
    let at_once = programs.min(multiprocessors * blocks);
    // The last ones are alone on their multiprocessors.
    let of_one = (programs / multiprocessors).ceil();
    let waves = (programs / (multiprocessors * blocks)).ceil();
    let stages = f64::from(taken.stages.max(1));

    let loaded: f64 = each.loaded.values().sum();
    let stored: f64 = each.stored.values().sum();
    let in_flight = at_once * (loaded / each.rounds.max(1.0)).max(1.0) * stages;
    let reached = (gpu.bandwidth * REACHED).min((in_flight / LATENCY).max(1.0));
    let bytes = dram(each, programs, at_once, sizes, gpu);
    let memory = bytes / if loaded > 0.0 { reached } else { gpu.bandwidth * REACHED };
    let l2 = (loaded + stored) * programs / (FROM_L2 * multiprocessors.min(programs) * gpu.clock);

    let spilled = 1.0 + f64::from(taken.stack) / 256.0;
    let busy = (f64::from(taken.warps) * at_once / multiprocessors.min(programs) / 8.0).min(1.0);
    let issue = each.simple / (gpu.lanes * ISSUED);
    let lanes_of_one = issue.max(each.special / SPECIAL) * spilled / gpu.clock;
    let lanes = lanes_of_one * of_one / busy.max(0.125);
    let tensor = of_one * tensor(each, taken, gpu);

    let exchange = if taken.warps > 1 { EXCHANGE.1 } else { EXCHANGE.0 };
    let alone = START + each.rounds * LATENCY / stages + each.exchanges * exchange;
    let waits = waves * alone * spilled;

    let bounds = [memory, l2, lanes, tensor, waits];
    let total = bounds.iter().map(|bound| bound.powf(OVERLAP)).sum::<f64>().powf(1.0 / OVERLAP) + LAUNCH;
    Some(Time { memory, l2, lanes, tensor, waits, total, bytes })
}

/// Nanoseconds of one program's products on the tensor cores of its multiprocessor.
fn tensor(each: &Work, taken: Taken, gpu: &Gpu) -> f64 {
    let side = each.rows_of_product.max(16.0);
    // Small tiles leave the units waiting for shared memory, and Hopper's large instructions take 64 rows and four warps.
    let by_tile = (side / 128.0).min(1.0).sqrt();
    let is_small = gpu.capability >= 90 && (side < 64.0 || taken.warps < 4);
    let reached = 0.85 * by_tile * if is_small { 0.6 } else { 1.0 } * if taken.stages > 1 { 1.0 } else { 0.6 };
    let rate = |bits: u32| if bits == 0 { 0.7 } else { 1.0 } * rate(bits, gpu);
    each.multiplied.iter().map(|(&bits, &count)| count / (rate(bits) * reached) / gpu.clock).sum()
}

/// Multiplications and additions a clock of one multiprocessor on factors of so many bits; of 0 they are taken as they are, in fp32.
pub(super) fn rate(bits: u32, gpu: &Gpu) -> f64 {
    match bits {
        0 | 64 => gpu.lanes,
        8 if gpu.capability >= 89 => gpu.tensor * 2.0,
        1..=16 => gpu.tensor,
        // Factors in fp32 are taken as tf32.
        _ => gpu.tensor / 2.0,
    }
}

/// Bytes that cross the line to the memory: everything once, and of what is asked for again as much as the L2 has lost.
fn dram(each: &Work, programs: f64, at_once: f64, sizes: &[Option<f64>], gpu: &Gpu) -> f64 {
    let cache = gpu.l2 * 1_048_576.0;
    let size = |of: &usize| sizes.get(*of).copied().flatten().filter(|_| *of != UNKNOWN);
    let whole: f64 =
        each.loaded.iter().map(|(of, bytes)| (bytes * programs).min(size(of).unwrap_or(f64::INFINITY))).sum();
    let own: f64 = each.loaded.values().sum::<f64>() - each.again.values().sum::<f64>();
    let full = ((own * at_once).min(whole) / cache).min(1.0);
    let loads = each.loaded.iter().map(|(of, bytes)| {
        let again = each.again.get(of).copied().unwrap_or(0.0);
        let first = (bytes - again) * programs;
        let once = first.min(size(of).unwrap_or(first));
        once + (first - once) * MISSED_OF_OTHERS * full + again * programs * MISSED * full
    });
    // What is stored again in the same place before it leaves the L2 is written once.
    let stores = each.stored.iter().map(|(of, bytes)| {
        let all = bytes * programs;
        all.min(size(of).unwrap_or(all))
    });
    loads.sum::<f64>() + stores.sum::<f64>()
}
