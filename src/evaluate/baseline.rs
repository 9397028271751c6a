//! What the original does on each trial, found out once and compared with every candidate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::bench::{Bench, holds_device, lock};
use super::beyond::Large;
use super::devices::memory;
use super::floor::Needs;
use super::original::Original;
use super::sanitizer::{Found, Tool};
use super::trials::{Trial, trials};
use super::verdict::Reason;
use crate::protocol::runner::{Call, ComparerReply, ComparerRequest, Exported, Inputs, Leaf, LeafValue, Ran, Reuse};
use crate::protocol::{Workload, is_simulated};

/// Runs of the original on inputs moved by their rounding error.
const JITTERED: u64 = 2;
/// Of the device's memory this part may hold results of one workload; beyond, they are found out again for each candidate.
const SHARE_KEPT: u64 = 4;
/// Bytes of results that are kept where the device does not tell how much memory it has.
const KEPT: u64 = 4 << 30;

/// Types of a run at a higher precision, the best first.
const WIDE: [&str; 2] = ["float64", "float32"];

/// The original with one workload.
pub(super) struct Baseline {
    pub(super) original: Original,
    pub(super) trials: Vec<Trial>,
    known: Mutex<Vec<Option<Known>>>,
    habits: Mutex<Option<Arc<Habits>>>,
    pub(super) needs: Mutex<Option<Needs>>,
    /// A large call, or why there is none.
    pub(super) large: Mutex<Option<Result<Arc<Large>, String>>>,
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
    reference: Option<u32>,
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
        let (habits, needs, large, checked, kept, is_prepared) = Default::default();
        Self { original, trials, known, habits, needs, large, checked, kept, is_prepared }
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
        let mut known = self.find_out(bench, &self.trials[at], &first)?;
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

    fn find_out(&self, bench: &Bench, trial: &Trial, first: &[String]) -> Result<Known, Undecided> {
        let _shared = bench.shared();
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
        let mut reference = None;
        for wide in WIDE {
            let widened = Inputs { widen: Some(wide.to_owned()), ..trial.inputs.clone() };
            if let Ok((wider, slot)) = self.original.run(bench, &Call { poison: false, ..call(widened) })? {
                if is_alike(&wider.results, &ran.results) {
                    reference = Some(slot);
                    break;
                }
                bench.drop_slots(vec![slot])?;
            }
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

    fn stand(
        &self,
        bench: &Bench,
        (trial, first): (&Trial, &[String]),
        (mut ran, took): (Ran, Duration),
        Slots { original, reference, jittered, dense }: Slots,
    ) -> Result<Known, Undecided> {
        let ask = ComparerRequest::Stand { original, reference, jittered: jittered.clone(), dense };
        let (is_credible, is_exact) = match bench.compare(|comparer| Ok(comparer.ask(&ask)?))? {
            ComparerReply::Standing { is_credible, is_exact } => (is_credible, is_exact),
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

    /// The call of a trial.
    pub(super) fn call(&self, inputs: Inputs, ghost: bool) -> Call {
        Call {
            inputs,
            poison: true,
            ghost,
            gradients: self.original.workload.gradients,
            export: true,
            ..Call::default()
        }
    }
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
