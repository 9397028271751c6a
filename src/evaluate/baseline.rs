//! What the original does on each trial, found out once and compared with every candidate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::bench::{Bench, holds_device, lock};
use super::beyond::Large;
use super::devices::memory;
use super::floor::{Needs, width};
use super::original::Original;
use super::sanitizer::{Found, Tool};
use super::trials::{Trial, trials};
use super::verdict::Reason;
use crate::protocol::runner::{
    Call, Coarse, ComparerReply, ComparerRequest, Exported, Inputs, Leaf, LeafValue, Ran, Reuse, Values,
};
use crate::protocol::{Workload, is_simulated};

/// Runs of the original on inputs moved by their rounding error.
const JITTERED: u64 = 2;
/// Of the device's memory this part may hold results of one workload; beyond, they are found out again for each candidate.
const SHARE_KEPT: u64 = 4;
/// Bytes of results that are kept where the device does not tell how much memory it has.
const KEPT: u64 = 4 << 30;

/// Types of which a run of the original may be more exact.
const WIDE: [&str; 2] = ["float64", "float32"];
/// So many arguments are tried with fewer bits.
const SINGLES: usize = 8;

/// The original with one workload.
pub(super) struct Baseline {
    pub(super) original: Original,
    pub(super) trials: Vec<Trial>,
    known: Mutex<Vec<Option<Known>>>,
    habits: Mutex<Option<Arc<Habits>>>,
    pub(super) needs: Mutex<Option<Needs>>,
    /// A large call, or why there is none.
    pub(super) large: Mutex<Option<Result<Arc<Large>, String>>>,
    /// The arguments that it takes for numbers of tf32: no trial gives them others.
    coarse: Mutex<Coarse>,
    /// In which type its own arithmetic is done when its inputs are given in it, as far as that is known.
    follows: Mutex<Option<&'static str>>,
    /// What a checker of memory finds in it.
    pub(super) checked: Mutex<BTreeMap<Tool, Found>>,
    kept: Mutex<u64>,
    is_prepared: Mutex<bool>,
}

/// What is known of the original on a trial.
#[derive(Clone)]
pub(super) enum Known {
    /// It says nothing: why.
    Skipped(String),
    /// Candidates are compared with this.
    Ready(Arc<Ready>),
}

/// Results of the original on a trial.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) original: u32,
    pub(super) reference: Option<u32>,
    pub(super) jittered: Vec<u32>,
    pub(super) is_exact: bool,
    pub(super) ran: Ran,
    /// Results of which the original leaves elements unwritten itself.
    pub(super) unwritten: Vec<String>,
    /// How long the original took, at best.
    pub(super) took: Duration,
    /// Whether the results stay for the next candidate.
    pub(super) is_kept: bool,
}

/// What the original does that no single call shows.
pub(super) struct Habits {
    /// A call overwrites the results of the one before.
    pub(super) overwrites: bool,
    /// With its kernels replaced by nothing its results are others.
    pub(super) needs_kernels: bool,
    /// Its results on tensors some of whose contents are new, as far as it takes them.
    pub(super) partly: Vec<(Reuse, u32)>,
}

/// Results of the original's runs for one trial.
struct Slots {
    original: u32,
    reference: Option<(&'static str, u32)>,
    jittered: Vec<u32>,
    dense: Option<u32>,
}

/// Why nothing can be said of a candidate.
pub(super) struct Undecided(pub(super) String);

impl<E: std::error::Error> From<E> for Undecided {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Baseline {
    pub(super) fn new(file: &Path, folder: &Path, workload: Workload, seed: u64) -> Self {
        let trials = trials(&workload, seed);
        let known = Mutex::new(trials.iter().map(|_| None).collect());
        let original = Original::new(file, folder, workload);
        let (habits, needs, large, coarse, follows, checked, kept, is_prepared) = Default::default();
        Self { original, trials, known, habits, needs, large, coarse, follows, checked, kept, is_prepared }
    }

    /// What is known of a trial, found out now if it was not. Not for whoever uses the device already: finding out waits for
    /// the device with a lock taken.
    pub(super) fn known(&self, bench: &Bench, at: usize) -> Result<Known, Undecided> {
        debug_assert!(!holds_device(), "the device is asked for after what is known of the original");
        let mut all = lock(&self.known);
        if let Some(known) = &all[at] {
            return Ok(known.clone());
        }
        let is_first = at == 0;
        let first = match all.first() {
            Some(Some(Known::Ready(first))) => first.unwritten.clone(),
            _ => Vec::new(),
        };
        let mut known = {
            let _shared = bench.shared();
            self.find_out(bench, &self.trials[at], &first)?
        };
        if let (true, Known::Skipped(why)) = (is_first, &known) {
            return Err(Undecided(format!("the original itself fails: {why}")));
        }
        let bytes = match &known {
            Known::Ready(ready) => ready.ran.results.rough_bytes() * 6,
            Known::Skipped(_) => 0,
        };
        let most = memory().map_or(KEPT, |memory| memory.size / SHARE_KEPT);
        let mut kept = lock(&self.kept);
        if is_first || *kept + bytes <= most {
            *kept += bytes;
            if let Known::Ready(ready) = &mut known
                && let Some(ready) = Arc::get_mut(ready)
            {
                ready.is_kept = true;
            }
            all[at] = Some(known.clone());
        }
        Ok(known)
    }

    /// Has the original compiled for all trials, by several processes at once: one after the other each would be met by a call
    /// for which the first candidate waits.
    pub(super) fn prepare(&self, bench: &Bench) -> Result<(), Undecided> {
        let mut is_prepared = lock(&self.is_prepared);
        if *is_prepared || is_simulated() {
            return Ok(());
        }
        let trials = self.trials.iter().enumerate().filter(|(at, trial)| *at == 0 || trial.specializes);
        let wide = |inputs: &Inputs, wide: Option<&str>| Inputs { widen: wide.map(str::to_owned), ..inputs.clone() };
        let all: Vec<Inputs> = trials
            .flat_map(|(_, trial)| [None, Some(WIDE[0]), Some(WIDE[1])].map(|to| wide(&trial.inputs, to)))
            .collect();
        self.original.compile(bench, &all)?;
        *is_prepared = true;
        Ok(())
    }

    /// For whoever uses the device.
    fn find_out(&self, bench: &Bench, trial: &Trial, first: &[String]) -> Result<Known, Undecided> {
        let call = |inputs: Inputs| self.call(inputs, false);
        let mut took: Option<Duration> = None;
        let (ran, original) = match self.original.run(bench, &Call { watch: true, ..call(trial.inputs.clone()) })? {
            Ok(kept) => kept,
            Err(why) => return Ok(Known::Skipped(format!("the original refuses it: {why}"))),
        };
        let mut jittered = Vec::new();
        for seed in 1..=JITTERED {
            let moved = Inputs { jitter: Some(seed), ..trial.inputs.clone() };
            let since = Instant::now();
            if let Ok((_, slot)) = self.original.run(bench, &call(moved))? {
                jittered.push(slot);
                took = Some(took.unwrap_or(Duration::MAX).min(since.elapsed()));
            }
        }
        let reference = self.reference(bench, trial, &ran)?;
        let is_recorded = std::ptr::eq(trial, &raw const self.trials[0]);
        if is_recorded
            && reference.is_none()
            && lock(&self.coarse).tensors.is_empty()
            && let Some(coarse) = self.find_coarse(bench, trial, &ran, original)?
        {
            // Once more, with inputs of which it takes all.
            *lock(&self.coarse) = coarse;
            bench.drop_slots([original].into_iter().chain(jittered).collect())?;
            return self.find_out(bench, trial, first);
        }
        if let (true, Some((wide, _))) = (is_recorded, reference) {
            *lock(&self.follows) = self.follows(bench, trial, wide, original)?.then_some(wide);
        }
        let dense = match trial.reason {
            // What takes its tensors for dense says nothing about others.
            Reason::Layout => {
                let inputs = Inputs { dense: true, ..trial.inputs.clone() };
                match self.original.run(bench, &call(inputs))? {
                    Ok((_, slot)) => Some(slot),
                    Err(_) => None,
                }
            }
            _ => None,
        };
        let slots = Slots { original, reference, jittered, dense };
        self.stand(bench, (trial, first), (ran, took.unwrap_or_default()), slots)
    }

    /// A run at a higher precision, and at which.
    fn reference(&self, bench: &Bench, trial: &Trial, ran: &Ran) -> Result<Option<(&'static str, u32)>, Undecided> {
        // What nothing is wider in would be the same run again.
        for wide in WIDE.iter().filter(|wide| is_widened(&ran.results, wide)) {
            let widened = Inputs { widen: Some((*wide).to_owned()), ..trial.inputs.clone() };
            if let Ok((wider, slot)) = self.original.run(bench, &Call { poison: false, ..self.call(widened, false) })? {
                if is_alike(&wider.results, &ran.results) {
                    return Ok(Some((wide, slot)));
                }
                bench.drop_slots(vec![slot])?;
            }
        }
        Ok(None)
    }

    /// Whether it calculates in the wider type of its inputs. One that does not equals its run on them without being exact.
    fn follows(&self, bench: &Bench, trial: &Trial, wide: &str, original: u32) -> Result<bool, Undecided> {
        let finer = Inputs { widen: Some(wide.to_owned()), jitter: Some(1), ..trial.inputs.clone() };
        let Ok((_, slot)) = self.original.run(bench, &Call { poison: false, ..self.call(finer, false) })? else {
            return Ok(false);
        };
        let ask = ComparerRequest::Stand { original, reference: Some(slot), jittered: Vec::new(), dense: None };
        let standing = bench.compare(|comparer| Ok(comparer.ask(&ask)?))?;
        bench.drop_slots(vec![slot])?;
        Ok(matches!(standing, ComparerReply::Standing { is_finer: true, .. }))
    }

    /// The arguments of which it takes the upper bits alone: its results are the same, bit by bit, without the others. That is so
    /// of products in tf32. Candidates that take all bits would be more exact than the original, and nobody could say so.
    fn find_coarse(&self, bench: &Bench, trial: &Trial, ran: &Ran, original: u32) -> Result<Option<Coarse>, Undecided> {
        for rounds in [false, true] {
            let mut tensors = Vec::new();
            for (at, path) in singles(&ran.results, &self.original.workload.mutated) {
                let coarse = Coarse { tensors: vec![at], rounds };
                let call = self.call(Inputs { coarse, ..trial.inputs.clone() }, false);
                let Ok((_, other)) = self.original.run(bench, &call)? else { continue };
                let ask = ComparerRequest::Changed { one: original, other };
                let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
                bench.drop_slots(vec![other])?;
                // It was another argument, and led to nothing else.
                let is_other = found.iter().any(|one| one.path == path);
                if is_other && found.iter().all(|one| one.path == path) {
                    tensors.push(at);
                }
            }
            if !tensors.is_empty() {
                return Ok(Some(Coarse { tensors, rounds }));
            }
        }
        Ok(None)
    }

    fn stand(
        &self,
        bench: &Bench,
        (trial, first): (&Trial, &[String]),
        (mut ran, took): (Ran, Duration),
        Slots { original, reference, jittered, dense }: Slots,
    ) -> Result<Known, Undecided> {
        let follows = lock(&self.follows).is_some_and(|wide| reference.is_some_and(|(at, _)| at == wide));
        let reference = reference.map(|(_, slot)| slot);
        let ask = ComparerRequest::Stand { original, reference, jittered: jittered.clone(), dense };
        let (is_credible, is_exact) = match bench.compare(|comparer| Ok(comparer.ask(&ask)?))? {
            ComparerReply::Standing { is_credible, is_exact, is_whole, .. } => {
                // Sums of small integers are exact in any order.
                let is_whole = is_whole && trial.inputs.values == Values::Integers;
                (is_credible, is_exact && (follows || is_whole))
            }
            _ => (false, false),
        };
        bench.drop_slots(dense.into_iter().collect())?;
        let unwritten =
            bench.compare(|comparer| Ok(comparer.differences(&ComparerRequest::Unwritten { slot: original })?))?;
        let unwritten: Vec<String> = unwritten.into_iter().map(|one| one.path).collect();
        let skip = |bench: &Bench, why: &str| {
            let slots = [original].into_iter().chain(reference).chain(jittered.iter().copied()).collect();
            bench.drop_slots(slots)?;
            Ok(Known::Skipped(why.to_owned()))
        };
        let may_fail = !matches!(trial.reason, Reason::Output);
        if may_fail && ran.overrun.is_some() {
            return skip(bench, "the original writes beside its arguments");
        }
        if matches!(trial.reason, Reason::Sizes | Reason::Layout) {
            if unwritten.iter().any(|path| !first.contains(path)) {
                return skip(bench, "the original leaves results unwritten");
            }
            if !is_credible {
                return skip(bench, "the original's results are not credible there");
            }
        }
        ran.results.buffer = None;
        let is_kept = false;
        Ok(Known::Ready(Arc::new(Ready { original, reference, jittered, is_exact, ran, unwritten, took, is_kept })))
    }

    /// What the original does that no single call shows, found out now if it was not. `None` if it does not take the calls.
    pub(super) fn habits(&self, bench: &Bench) -> Result<Arc<Habits>, Undecided> {
        debug_assert!(!holds_device(), "the device is asked for after what is known of the original");
        let mut known = lock(&self.habits);
        if let Some(habits) = known.as_ref() {
            return Ok(Arc::clone(habits));
        }
        let _shared = bench.shared();
        let [first, second] = self.sequence();
        let overwrites = match (self.original.run(bench, &first)?, self.original.run(bench, &second)?) {
            (Ok((_, one)), Ok((_, other))) => {
                let ask = ComparerRequest::Changed { one, other };
                let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
                bench.drop_slots(vec![one, other])?;
                found.iter().any(|one| one.path.starts_with("result"))
            }
            _ => true,
        };
        let call = self.sequence()[0].clone();
        let both = (self.original.run(bench, &call)?, self.original.run(bench, &Call { ghost: true, ..call })?);
        let needs_kernels = match both {
            (Ok((_, one)), Ok((_, other))) => {
                let ask = ComparerRequest::Changed { one, other };
                let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
                bench.drop_slots(vec![one, other])?;
                !found.is_empty()
            }
            _ => false,
        };
        let mut partly = Vec::new();
        for reuse in [Reuse::Middle, Reuse::Few] {
            if let Some(slot) = self.original.run_after(bench, &self.sequence_with(reuse))? {
                partly.push((reuse, slot));
            }
        }
        Ok(Arc::clone(known.insert(Arc::new(Habits { overwrites, needs_kernels, partly }))))
    }

    /// Two calls: the recorded one, and another, after which the results of the first are looked at again.
    pub(super) fn sequence(&self) -> [Call; 2] {
        let inputs = |at: usize| self.trials[at].inputs.clone();
        [self.call(inputs(0), false), Call { previous: true, ..self.call(inputs(1), false) }]
    }

    /// Two calls: one, and another on its tensors, some of whose contents are new.
    pub(super) fn sequence_with(&self, reuse: Reuse) -> [Call; 2] {
        let inputs = self.trials[1].inputs.clone();
        let moved = Inputs { seed: inputs.seed ^ 0x5555, ..inputs.clone() };
        [self.call(inputs, false), Call { reuse, ..self.call(moved, false) }]
    }

    /// Inputs as the original takes them.
    pub(super) fn inputs(&self, inputs: Inputs) -> Inputs {
        // While it is looked for, they say it themselves.
        if inputs.coarse.tensors.is_empty() { Inputs { coarse: lock(&self.coarse).clone(), ..inputs } } else { inputs }
    }

    /// The call of a trial.
    pub(super) fn call(&self, inputs: Inputs, ghost: bool) -> Call {
        Call {
            inputs: self.inputs(inputs),
            poison: true,
            ghost,
            gradients: self.original.workload.gradients,
            export: true,
            ..Call::default()
        }
    }
}

/// Whether an argument has floats narrower than these.
fn is_widened(results: &Exported, wide: &str) -> bool {
    results.leaves.iter().any(|leaf| match &leaf.value {
        LeafValue::Tensor { dtype, .. } if leaf.path.starts_with("argument") => {
            (dtype.starts_with("float") || dtype.starts_with("bfloat")) && width(dtype) < width(wide)
        }
        _ => false,
    })
}

/// Arguments in single precision that the call leaves alone, by number and path.
fn singles(results: &Exported, mutated: &[usize]) -> Vec<(usize, String)> {
    let single = |leaf: &Leaf| match &leaf.value {
        LeafValue::Tensor { dtype, .. } if dtype == "float32" => {
            let at: usize = leaf.path.strip_prefix("argument ")?.parse().ok()?;
            (!mutated.contains(&at)).then(|| (at, leaf.path.clone()))
        }
        _ => None,
    };
    results.leaves.iter().filter_map(single).take(SINGLES).collect()
}

/// Whether results have the same leaves and shapes.
fn is_alike(one: &Exported, other: &Exported) -> bool {
    let shape = |value: &LeafValue| match value {
        LeafValue::Tensor { shape, .. } => Some(shape.clone()),
        LeafValue::Plain { .. } => None,
    };
    let is_same = |(a, b): (&Leaf, &Leaf)| shape(&a.value) == shape(&b.value);
    one.leaves.len() == other.leaves.len() && one.leaves.iter().zip(&other.leaves).all(is_same)
}
