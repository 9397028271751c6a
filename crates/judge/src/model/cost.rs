//! A cost model for the time of a launch: bandwidth, arithmetic, occupancy and waves.
//!
//! It ranks candidates. Its constants come from data sheets and textbooks; none is fitted.

use model::analysis::occupancy::{BlockUsage, MultiprocessorLimits};

use super::gpu::Gpu;
use super::simulation::UNKNOWN;
use super::work::Work;

/// Latency of a load from device memory, in nanoseconds.
const LATENCY: f64 = 650.0;
/// Nanoseconds from the start of a program to its first work.
const START: f64 = 400.0;
/// Nanoseconds of an exchange between the lanes of a warp, and of one between warps.
const EXCHANGE: (f64, f64) = (25.0, 70.0);
/// Nanoseconds of a launch.
const LAUNCH: f64 = 2500.0;
/// The share of the memory bandwidth that is reached at best.
const REACHED: f64 = 0.92;
/// Bytes per clock that the L2 cache delivers to one multiprocessor.
const FROM_L2: f64 = 42.0;
/// Special function lanes of a multiprocessor.
const SPECIAL: f64 = 16.0;
/// The share of the lanes' peak rate that is reached.
const ISSUED: f64 = 0.6;
/// The share of a program's repeated loads that miss the L2 cache, when the data that all programs read meanwhile is as
/// large as the cache.
const MISSED: f64 = 0.5;
/// The same share for data that other programs have loaded, most of it recently.
const MISSED_OF_OTHERS: f64 = 0.1;
/// The exponent of the norm that combines the bounds of the time: the greater it is, the more the bounds overlap.
const OVERLAP: f64 = 4.0;

/// The resources of a compiled kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LaunchResources {
    /// Registers per thread.
    pub(super) registers: u32,
    /// Bytes of stack per thread: values that are spilled from registers.
    pub(super) stack: u32,
    /// Bytes of shared memory per program.
    pub(super) shared: u32,
    pub(super) warps: u32,
    /// Pipeline stages: loop rounds whose loads are in flight at once.
    pub(super) stages: u32,
}

/// The time of a launch and its components, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Time {
    pub(super) memory: f64,
    pub(super) l2: f64,
    pub(super) lanes: f64,
    pub(super) tensor: f64,
    /// The latencies that each program waits for, one after the other.
    pub(super) waits: f64,
    pub(super) total: f64,
    /// Bytes of traffic with the device memory.
    pub(super) bytes: f64,
}

/// The time of a launch with `programs` programs, each of which does the work `each`. `sizes` are the bytes of the
/// parameters' tensors, where they are known. Returns `None` for a kernel that cannot be launched.
pub(super) fn time(
    each: &Work,
    programs: f64,
    taken: LaunchResources,
    sizes: &[Option<f64>],
    gpu: &Gpu,
) -> Option<Time> {
    let limits = MultiprocessorLimits::of(gpu.capability)?;
    let usage = BlockUsage { registers: taken.registers, shared: taken.shared, warps: taken.warps };
    let blocks = f64::from(limits.occupancy(usage)?.blocks);
    let multiprocessors = f64::from(gpu.multiprocessors);
    let at_once = programs.min(multiprocessors * blocks);
    // The programs of the last wave have their multiprocessors to themselves.
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

/// Nanoseconds that the matrix products of one program take on the tensor cores of its multiprocessor.
fn tensor(each: &Work, taken: LaunchResources, gpu: &Gpu) -> f64 {
    let side = each.rows_of_product.max(16.0);
    // Small tiles make the tensor cores wait for shared memory, and Hopper's large instructions take 64 rows and four
    // warps.
    let by_tile = (side / 128.0).min(1.0).sqrt();
    let is_small = gpu.capability >= 90 && (side < 64.0 || taken.warps < 4);
    let reached = 0.85 * by_tile * if is_small { 0.6 } else { 1.0 } * if taken.stages > 1 { 1.0 } else { 0.6 };
    let rate = |bits: u32| if bits == 0 { 0.7 } else { 1.0 } * rate(bits, gpu);
    each.multiplied.iter().map(|(&bits, &count)| count / (rate(bits) * reached) / gpu.clock).sum()
}

/// Multiply-adds per clock of one multiprocessor on factors with this many bits; 0 bits mean fp32 without tensor
/// cores.
pub(super) fn rate(bits: u32, gpu: &Gpu) -> f64 {
    match bits {
        0 | 64 => gpu.lanes,
        8 if gpu.capability >= 89 => gpu.tensor * 2.0,
        1..=16 => gpu.tensor,
        // Factors in fp32 are read as tf32.
        _ => gpu.tensor / 2.0,
    }
}

/// Bytes of traffic with the device memory: all data once, and the part of the repeated loads that misses the L2 cache.
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
    // Repeated stores to the same place are written once while it is in the L2 cache.
    let stores = each.stored.iter().map(|(of, bytes)| {
        let all = bytes * programs;
        all.min(size(of).unwrap_or(all))
    });
    loads.sum::<f64>() + stores.sum::<f64>()
}
