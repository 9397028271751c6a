//! A performance model that predicts the time of launches on a GPU that this machine does not have. It ranks
//! candidates; its times are no claims.

mod arithmetic;
mod cost;
mod coverage;
mod gpu;
mod predictor;
mod simulated_value;
mod simulation;
mod ttir;
mod work;

use std::collections::BTreeMap;

pub use gpu::Gpu;
pub(super) use predictor::Predictor;

use super::verdict::Counted;
use cost::{LaunchResources, Time};
use coverage::TensorTraffic;
use protocol::{CompiledLaunch, CompiledLaunches, KernelArgument};
use simulation::{LaunchArgument, ProgramPosition};
use work::Work;

/// The number of programs of a grid that are traced as a sample.
const SAMPLED: i64 = 8;

/// The predicted time and work of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CallPrediction {
    pub(super) milliseconds: f64,
    pub(super) counted: Counted,
    coverage: Option<TensorTraffic>,
}

impl CallPrediction {
    /// A description of what the original touches and this call does not.
    fn lacks(&self, original: &Self) -> Option<String> {
        self.coverage.as_ref()?.missing(original.coverage.as_ref()?)
    }
}

/// Predicts a call that makes these launches; of an autotuner's configurations the fastest counts.
///
/// # Errors
/// Returns a description of a kernel that cannot be launched on the GPU, or that the model does not understand.
pub(super) fn predict(drafts: &CompiledLaunches, gpu: &Gpu) -> Result<CallPrediction, String> {
    let mut all = Vec::new();
    let mut choices: BTreeMap<u64, Result<Launch, String>> = BTreeMap::new();
    for draft in &drafts.launches {
        let one = launch(draft, gpu);
        match draft.choice {
            None => all.push(one?),
            Some(choice) => {
                let best = choices.entry(choice).or_insert_with(|| one.clone());
                if let Ok(one) = one
                    && best.as_ref().is_ok_and(|best| one.time.total < best.time.total) | best.is_err()
                {
                    *best = Ok(one);
                }
            }
        }
    }
    for one in choices.into_values() {
        all.push(one?);
    }
    let milliseconds = all.iter().map(|one| one.time.total / 1e6).sum();
    Ok(CallPrediction { milliseconds, counted: counted(&all, gpu), coverage: TensorTraffic::of(drafts, &all) })
}

/// The work of all launches together.
fn counted(launches: &[Launch], gpu: &Gpu) -> Counted {
    let mut products: BTreeMap<u32, f64> = BTreeMap::new();
    let (mut bytes, mut floats) = (0.0, 0.0);
    for Launch { time, work, programs, .. } in launches {
        bytes += time.bytes;
        floats += work.floats * programs;
        for (&bits, &count) in &work.multiplied {
            *products.entry(bits).or_default() += 2.0 * count * programs;
        }
    }
    let operations = floats + products.values().sum::<f64>();
    let most = products.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).filter(|(_, most)| *most > floats);
    let rate = cost::rate(most.map_or(0, |(bits, _)| bits), gpu);
    let peak = 2e9 * rate * gpu.clock * f64::from(gpu.multiprocessors);
    Counted { bytes, operations, peak, bandwidth: gpu.bandwidth * 1e9 }
}

/// A launch with its predicted time.
#[derive(Clone, Debug, Default)]
struct Launch {
    time: Time,
    /// The work of each program.
    work: Work,
    programs: f64,
    parameters: Vec<KernelArgument>,
    memories: Vec<u64>,
}

/// Predicts one launch.
fn launch(draft: &CompiledLaunch, gpu: &Gpu) -> Result<Launch, String> {
    let count = |at: usize| draft.grid.get(at).copied().unwrap_or(1).max(1);
    let grid = [count(0), count(1), count(2)];
    let programs: i64 = grid.iter().product();
    if draft.grid.contains(&0) {
        return Ok(Launch::default());
    }
    let functions = ttir::parse(&draft.text);
    let arguments: Vec<LaunchArgument> = draft.parameters.iter().map(argument).collect();
    let not_understood = || format!("what `{}` does is not understood by the model", draft.kernel);
    let samples = samples(programs);
    let mut each = Work::default();
    for (at, weight) in &samples {
        let place = ProgramPosition { program: [at % grid[0], at / grid[0] % grid[1], at / grid[0] / grid[1]], grid };
        let one = simulation::work(&functions, &draft.kernel, &arguments, place).ok_or_else(not_understood)?;
        each.add(&one, *weight);
    }
    let sizes: Vec<Option<f64>> = draft.parameters.iter().map(size).collect();
    let CompiledLaunch { registers, stack, shared, warps, stages, .. } = *draft;
    let taken = LaunchResources { registers, stack, shared, warps, stages };
    let lacks = || format!("out of resource: `{}` takes more shared memory or registers than there are", draft.kernel);
    let time = cost::time(&each, programs as f64, taken, &sizes, gpu).ok_or_else(lacks)?;
    tracing::debug!(kernel = draft.kernel, ?grid, ?taken, ?time, "a launch was predicted");
    let (parameters, memories) = (draft.parameters.clone(), draft.memories.clone());
    Ok(Launch { time, work: each, programs: programs as f64, parameters, memories })
}

/// A sample of programs from all parts of the grid, each with the share of all programs that it represents. The offset
/// inside its part differs from part to part: in a grid with several axes, equal distances would sample the same
/// position of one axis.
fn samples(programs: i64) -> Vec<(i64, f64)> {
    // The constant of the second of Roberts' sequences.
    const ROBERTS: f64 = 0.569_840_290_998_053;
    let count = programs.min(SAMPLED);
    let place = |part: i64| if count < SAMPLED { 0.0 } else { ((part as f64 + 0.5) * ROBERTS).fract() };
    let at = |part: i64| ((part as f64 + place(part)) / count as f64 * programs as f64) as i64;
    (0..count).map(|part| (at(part).min(programs - 1), 1.0 / count as f64)).collect()
}

fn argument(parameter: &KernelArgument) -> LaunchArgument {
    match *parameter {
        KernelArgument::Int(value) => LaunchArgument::Int(value),
        KernelArgument::Tensor { offset, .. } => LaunchArgument::Pointer(offset),
        KernelArgument::Other => LaunchArgument::Other,
    }
}

fn size(parameter: &KernelArgument) -> Option<f64> {
    match *parameter {
        KernelArgument::Tensor { bytes, .. } => Some(bytes),
        KernelArgument::Int(_) | KernelArgument::Other => None,
    }
}

#[cfg(test)]
mod tests;
