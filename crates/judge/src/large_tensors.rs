//! A call with more elements than 32 bits can count, for candidates that are about to be offered.
//!
//! No run at a higher precision is possible at such sizes. The reference is the last part of the original's results,
//! which must equal what the original computes from the last part of its arguments alone. That holds for originals
//! whose rows do not mix and whose offsets do not overflow; for others this check is skipped.

use std::time::Duration;

use protocol::runner::{EntryCall, Inputs, LeafValue, Tail};
use protocol::{TensorContents, TensorSpec, Workload, is_simulated};

use super::baseline::{Baseline, Ready, TrialBaseline};
use super::bench::Bench;
use super::case::Case;
use super::devices::memory;
use super::large_call::Large;
use super::limits::SHARE;
use super::locks::lock_first;
use super::stop_reason::{Stop, in_trial};
use super::time_floor::width;
use super::undecided::Undecided;
use super::verdict::Reason;

/// The number of elements that signed 32-bit integers can count.
const COUNTABLE: i64 = 1 << 31;
/// For tests on a simulated device: another number of elements.
const COUNTABLE_ENV: &str = "WARPSMITH_FAKE_COUNTABLE";
/// The time limit of the original. Others wait for the device meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most sizes that are tried until the original is right.
const TRIED: usize = 2;
/// The factor by which the free memory must exceed the known need.
const SPARE: f64 = 1.25;
/// Bytes of memory per element that generating the contents takes.
const MAKING: f64 = 12.0;
/// Bytes of memory that are assumed where the driver does not report the device's memory.
const MEMORY: u64 = 256 << 30;

/// A size of a call, and the size that replaces it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Growth {
    old: i64,
    new: i64,
    /// Bytes of device memory that the call needs.
    room: f64,
}

impl Baseline {
    /// A large call on which the original is right, or why there is none; computed now if it is not known yet. As for
    /// [`Self::known`], the caller must not hold the device.
    fn large(&self, bench: &Bench) -> Result<Result<std::sync::Arc<Large>, String>, Undecided> {
        let TrialBaseline::Ready(level) = self.known(bench, 0)? else {
            return Ok(Err("the original fails".to_owned()));
        };
        let mut known = lock_first(&self.large);
        if let Some(large) = known.as_ref() {
            return Ok(large.clone());
        }
        let mut why = "no size of the call can be made so large".to_owned();
        for growth in growths(&self.original.workload, &level, countable()).into_iter().take(TRIED) {
            match self.grown(bench, &level, growth)? {
                Ok(large) => return Ok(known.insert(Ok(std::sync::Arc::new(large))).clone()),
                Err(reason) => why = reason,
            }
        }
        Ok(known.insert(Err(why)).clone())
    }

    fn grown(&self, bench: &Bench, level: &Ready, growth: Growth) -> Result<Result<Large, String>, Undecided> {
        let Growth { old, new, room } = growth;
        let inputs = Inputs { resize: vec![(old, new)], ..self.trials[0].inputs.clone() };
        let call = |alone| {
            let tail = Some(Tail { size: new, last: old, alone, room: room as u64 });
            EntryCall { tail, ..self.call(inputs.clone(), false) }
        };
        // No other program may run out of memory because of this call.
        let _exclusive = bench.exclusive()?;
        bench.drop_slots(Vec::new())?;
        if let Some(lifted) = self.lifted() {
            lifted.end();
        }
        let found = self.credible(bench, level, (&call(false), &call(true)));
        // Offsets that overflow may have written anywhere in its process.
        self.original.end();
        let original = match found? {
            Ok(original) => original,
            Err(why) => return Ok(Err(why)),
        };
        let name = format!("sizes {old} → {new}, beyond 2³¹ elements");
        Ok(Ok(Large { name, call: call(false), original }))
    }

    /// The slot of the last part of the original's results, if the original is right.
    fn credible(
        &self,
        bench: &Bench,
        level: &Ready,
        (whole, part): (&EntryCall, &EntryCall),
    ) -> Result<Result<u32, String>, Undecided> {
        let original = match self.original.run_within(bench, whole, PATIENCE)? {
            Ok((_, slot)) => slot,
            Err(why) => return Ok(Err(why)),
        };
        let alone = match self.original.run_within(bench, part, PATIENCE)? {
            Ok((_, slot)) => slot,
            Err(why) => return Ok(Err(why)),
        };
        let ask = level.by_level(alone, original);
        let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
        bench.drop_slots(vec![alone])?;
        if found.is_empty() {
            return Ok(Ok(original));
        }
        bench.drop_slots(vec![original])?;
        Ok(Err("the original's results are not credible there".to_owned()))
    }
}

impl Case<'_> {
    /// Checks the large call: overflowing offsets show in tensors with more elements than 32 bits can count.
    pub(super) fn beyond(&mut self) -> Result<(), Stop> {
        if countable() == i64::MAX {
            return Ok(());
        }
        let large = match self.baseline.clone().large(self.bench)? {
            Ok(large) => large,
            Err(why) => {
                self.passed("beyond 2³¹ elements", format!("not tried: {why}"));
                return Ok(());
            }
        };
        let TrialBaseline::Ready(level) = self.baseline.known(self.bench, 0)? else { return Ok(()) };
        let _exclusive = self.bench.exclusive()?;
        self.bench.drop_slots(Vec::new())?;
        let (ran, slot) = match self.run(&large.call) {
            Ok(ran) => ran,
            // The candidate may tune itself anew for such a size, or need more scratch memory than there is.
            Err(Stop::Refused(reason @ (Reason::Time | Reason::DeviceMemory | Reason::Memory), ..))
                if self.bench.is_alone() || reason != Reason::DeviceMemory =>
            {
                self.passed("beyond 2³¹ elements", format!("not tried to the end: {}", reason.name()));
                return Ok(());
            }
            Err(stop) => return Err(in_trial(stop, &large.name)),
        };
        self.compare_by_level((large.original, slot), &ran.results, &level, (Reason::Sizes, &large.name))?;
        self.bench.drop_slots(vec![slot])?;
        self.passed("beyond 2³¹ elements", format!("{}: the last part agrees with the original's", large.name));
        Ok(())
    }
}

fn countable() -> i64 {
    if !is_simulated() {
        return COUNTABLE;
    }
    std::env::var(COUNTABLE_ENV).ok().and_then(|most| most.parse().ok()).unwrap_or(i64::MAX)
}

/// The sizes to enlarge: the outermost size of the greatest tensors, so that one of them has more than `most` elements.
fn growths(workload: &Workload, level: &Ready, most: i64) -> Vec<Growth> {
    if !workload.is_resizable() {
        return Vec::new();
    }
    let specs = workload.specs();
    let arguments = specs.iter().map(|spec| (spec.shape.clone(), width(&spec.dtype)));
    let results = level.ran.results.leaves.iter().filter_map(|leaf| match &leaf.value {
        LeafValue::Tensor { dtype, shape, shares: None, .. } => Some((shape.clone(), width(dtype))),
        _ => None,
    });
    let tensors: Vec<(Vec<i64>, f64)> = arguments.chain(results).collect();
    let mut by_size: Vec<&(Vec<i64>, f64)> = tensors.iter().collect();
    by_size.sort_by_key(|(shape, _)| std::cmp::Reverse(shape.iter().product::<i64>()));
    let mut olds: Vec<i64> = Vec::new();
    for (shape, _) in by_size {
        if let Some(&old) = shape.iter().find(|&&size| size != 1)
            && old > 1
            && !olds.contains(&old)
        {
            olds.push(old);
        }
    }
    let is_fit = |old: &i64| {
        tensors.iter().all(|(shape, _)| shape.iter().filter(|&size| size == old).count() <= 1)
            && specs.iter().any(|spec| spec.shape.contains(old))
            && specs.iter().all(|spec| !ends_at(spec, *old))
    };
    olds.into_iter().filter(is_fit).filter_map(|old| growth(&tensors, level, old, most)).collect()
}

fn growth(tensors: &[(Vec<i64>, f64)], level: &Ready, old: i64, most: i64) -> Option<Growth> {
    let rest = |shape: &[i64]| shape.iter().filter(|&&size| size != old).product::<i64>();
    let grown = tensors.iter().filter(|(shape, _)| shape.contains(&old));
    let step = grown.map(|(shape, _)| rest(shape)).max().filter(|&step| step > 0)?;
    // All of the last part lies beyond the countable elements.
    let new = most / step + 1 + old;
    let elements = |shape: &[i64]| rest(shape) as f64 * if shape.contains(&old) { new as f64 } else { 1.0 };
    let bytes: f64 = tensors.iter().map(|(shape, width)| elements(shape) * width).sum();
    let making = tensors.iter().map(|(shape, _)| elements(shape) * MAKING).fold(0.0, f64::max);
    let seen = level.ran.device_memory as f64 * new as f64 / old as f64;
    let room = SPARE * (bytes + making).max(seen);
    // A size that occurs elsewhere already would grow there as well.
    let is_new = !tensors.iter().any(|(shape, _)| shape.contains(&new));
    let memory = memory().map_or(MEMORY, |memory| memory.size);
    (is_new && room < memory as f64 * SHARE).then_some(Growth { old, new, room })
}

/// Whether the integers in a tensor may be offsets at which parts of this size end.
fn ends_at(spec: &TensorSpec, size: i64) -> bool {
    match &spec.data {
        TensorContents::Integers(values) => values.contains(&size),
        TensorContents::Range { high, .. } => *high == size,
        TensorContents::Normal { .. } | TensorContents::Floats(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ArgumentValue;

    fn workload(shapes: &[&[i64]]) -> Workload {
        let tensor = |(id, shape): (usize, &&[i64])| {
            let (shape, stride) = (shape.to_vec(), protocol::sizes::contiguous(shape));
            ArgumentValue::Tensor(TensorSpec {
                id,
                storage: id,
                shape,
                stride,
                dtype: "float32".to_owned(),
                ..TensorSpec::default()
            })
        };
        Workload { args: shapes.iter().enumerate().map(tensor).collect(), ..Workload::default() }
    }

    fn sizes(workload: &Workload) -> Vec<(i64, i64)> {
        growths(workload, &Ready::default(), COUNTABLE).into_iter().map(|growth| (growth.old, growth.new)).collect()
    }

    #[test]
    fn the_outermost_size_grows_beyond_32_bit_counts() {
        assert_eq!(sizes(&workload(&[&[8192, 3000]])), [(8192, COUNTABLE / 3000 + 1 + 8192)]);
        // The rows of a weight are no rows of the input, and a size of 1 cannot grow.
        assert_eq!(
            sizes(&workload(&[&[1, 4096, 512], &[512]])),
            [(4096, COUNTABLE / 512 + 1 + 4096), (512, COUNTABLE / 4096 + 1 + 512)]
        );
        // Two equal sizes, a size of zero, and a length that integers in another tensor contain.
        assert_eq!(sizes(&workload(&[&[512, 512]])), []);
        assert_eq!(sizes(&workload(&[&[0, 512]])), []);
        let mut ends = workload(&[&[64, 512], &[2]]);
        let ArgumentValue::Tensor(spec) = &mut ends.args[1] else { panic!() };
        spec.data = TensorContents::Integers(vec![0, 64]);
        assert_eq!(sizes(&ends), [(2, COUNTABLE + 3)]);
    }

    #[test]
    fn the_memory_of_a_large_call_is_estimated() {
        let [growth] = growths(&workload(&[&[8192, 3000]]), &Ready::default(), COUNTABLE)[..] else { panic!() };
        // The argument alone has 8.6 GB, and generating it takes three times as much.
        assert!((43e9..44e9).contains(&growth.room), "{growth:?}");
        assert_eq!(growths(&workload(&[&[2, 1 << 20], &[2, 1 << 40]]), &Ready::default(), COUNTABLE), []);
    }
}
