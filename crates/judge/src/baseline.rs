//! The baseline of a workload: the original's results on each trial, computed once and compared with every candidate.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::Workload;
use protocol::runner::{CallOutput, Coarse, ComparerRequest, EntryCall, Inputs, LaunchVariant, Reuse, Weights};

use super::bench::Bench;
use super::devices::memory;
use super::large_call::Large;
use super::locks::{lock, lock_first};
use super::machine_code_cache::MachineCodeCache;
use super::memory_checker::{Tool, ToolReport};
use super::original::Original;
use super::precise_original::{Finer, NO_REFERENCE, PreciseOriginal};
use super::timed_block::block_bytes;
use super::undecided::{Undecided, UndecidedCause};

use super::call_needs::Needs;
use super::trials::{Trial, trials};
use super::verdict::{Counted, Reason};

/// The most processes that compile an original while candidates wait for it.
pub(super) const MOST: usize = 12;
/// How many runs the original makes on inputs that are moved by their rounding error.
const JITTERED: u64 = 2;
/// Results of one workload may take up to one part in this many of the device's memory. Further results are
/// computed again for each candidate.
const SHARE_KEPT: u64 = 4;
/// The same limit in bytes, where the driver does not report the size of the device's memory.
const KEPT: u64 = 4 << 30;

/// The original with one workload, and what is known about its results.
pub(super) struct Baseline {
    pub(super) original: Original,
    pub(super) trials: Vec<Trial>,
    known: Vec<Mutex<TrialState>>,
    habits: Mutex<Option<Arc<Habits>>>,
    pub(super) needs: Mutex<Option<Needs>>,
    /// A call with more elements than 32 bits can count, or why there is none.
    pub(super) large: Mutex<Option<Result<Arc<Large>, String>>>,
    /// The arguments that the original reads as tf32: every trial gives them values that tf32 represents.
    coarse: Mutex<Coarse>,
    /// The type in which the original calculates when its inputs have it, as far as that is known.
    pub(super) follows: Mutex<Option<&'static str>>,
    /// The original that runs at a higher precision, if it is another file than the user's.
    pub(super) lifted: Mutex<PreciseOriginal>,
    /// The same, loaded before it is known whether it will be used.
    pub(super) lifted_ahead: Mutex<Option<Arc<Original>>>,
    /// What the memory checker found in the original, for each tool.
    pub(super) checked: [Mutex<Option<ToolReport>>; Tool::ALL.len()],
    /// The kernels that the device runs in the recorded call, once they were listed; the inner `None` means that the
    /// driver cannot list them.
    pub(super) kernels: Mutex<Option<Option<Vec<String>>>>,
    /// Measurements by the machine code of candidates.
    pub(super) machine_code: MachineCodeCache,
    /// The work of the recorded call, once it was counted; the inner `None` means that it cannot be counted.
    pub(super) counted: Mutex<Option<Option<Counted>>>,
    /// The other launches that give the same results for the recorded call, once they were needed.
    pub(super) variants: Mutex<Option<Arc<Vec<LaunchVariant>>>>,
    kept: Mutex<u64>,
    /// How many parts of the trials have been compiled ahead.
    pub(super) prepared: Mutex<usize>,
    /// Held by the thread that computes ahead what candidates will need.
    pub(super) prefetching: Mutex<()>,
}

/// The slots of the original's runs on one trial.
pub(super) struct ReferenceSlots {
    pub(super) original: u32,
    pub(super) reference: Option<Finer>,
    pub(super) jittered: Vec<u32>,
    /// The run on equal inputs with another memory layout.
    pub(super) relocated: Option<u32>,
}

/// The state of a trial.
#[derive(Default)]
enum TrialState {
    #[default]
    Nothing,
    /// The run failed. The next caller receives the reason, and the callers after it try again.
    Failed(Undecided),
    /// The original accepts the trial, but its results were too large to be kept.
    Takes,
    Known(TrialBaseline),
}

/// The original's behaviour on a trial.
#[derive(Clone)]
pub(super) enum TrialBaseline {
    /// The trial cannot be used, for this reason.
    Skipped(String),
    /// The trial is not run, since another one shows more.
    Needless,
    /// The results with which candidates are compared.
    Ready(Arc<Ready>),
}

/// The original's results on a trial.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) original: u32,
    pub(super) reference: Option<u32>,
    pub(super) jittered: Vec<u32>,
    pub(super) is_exact: bool,
    pub(super) ran: CallOutput,
    /// The names of results in which the original itself leaves elements unwritten.
    pub(super) unwritten: Vec<String>,
    /// The shortest time that the original took.
    pub(super) took: Duration,
    /// Whether the results are kept for the next candidate.
    pub(super) is_kept: bool,
    /// The slots of its results with other launches, once they were needed.
    pub(super) variants: Mutex<Option<Vec<u32>>>,
}

impl Ready {
    /// The slots of all results that the comparer holds for the trial.
    pub(super) fn slots(&self) -> Vec<u32> {
        let varied = lock(&self.variants).clone().unwrap_or_default();
        [self.original].into_iter().chain(self.reference).chain(self.jittered.iter().copied()).chain(varied).collect()
    }

    /// The request to compare results on inputs for which nothing else is known, by the error level that is known here.
    pub(super) fn by_level(&self, original: u32, candidate: u32) -> ComparerRequest {
        ComparerRequest::Compare {
            original,
            candidate,
            reference: None,
            jittered: Vec::new(),
            holds_nan: false,
            exact: false,
            level: Some((self.original, self.reference, self.jittered.clone())),
            variants: Vec::new(),
            terms: None,
        }
    }
}

/// Properties of the original that only several calls show.
pub(super) struct Habits {
    /// Whether a call overwrites the results of the call before.
    pub(super) overwrites: bool,
    /// Whether its results differ when its kernels are replaced by nothing.
    pub(super) needs_kernels: bool,
    /// Whether none of its results shows what its kernels compute, whatever its arguments are.
    pub(super) is_unseen: bool,
    /// Its results on tensors with partly new contents, as far as it accepts them.
    pub(super) partly: Vec<(Reuse, u32)>,
}

impl Baseline {
    /// Ends the processes of the original; the next call starts new ones.
    pub(super) fn end(&self) {
        self.original.end();
        if let Some(lifted) = self.lifted() {
            lifted.end();
        }
        *lock(&self.lifted_ahead) = None;
    }

    pub(super) fn new(
        (file, folder): (&Path, &Path),
        text: &str,
        workload: Workload,
        seed: u64,
        weights: Weights,
    ) -> Self {
        let trials = trials(&workload, text, seed);
        let known = trials.iter().map(|_| Mutex::default()).collect();
        let original = Original::new(file, folder, workload, weights);
        let (habits, needs, large, coarse, follows, lifted, lifted_ahead, checked, kernels) = Default::default();
        let (counted, variants, kept, prepared, prefetching) = Default::default();
        let machine_code = MachineCodeCache::of(&original.workload);
        Self {
            original,
            trials,
            known,
            habits,
            needs,
            large,
            coarse,
            follows,
            lifted,
            lifted_ahead,
            checked,
            kernels,
            machine_code,
            counted,
            variants,
            kept,
            prepared,
            prefetching,
        }
    }

    /// The original's behaviour on a trial, computed now if it is not known yet. A thread that holds the device must
    /// not call this: it waits for the device while it holds a lock.
    pub(super) fn known(&self, bench: &Bench, at: usize) -> Result<TrialBaseline, Undecided> {
        let mut found = lock_first(&self.known[at]);
        match &*found {
            TrialState::Known(known) => Ok(known.clone()),
            TrialState::Failed(why) => {
                let why = why.clone();
                *found = TrialState::Nothing;
                Err(why)
            }
            TrialState::Nothing | TrialState::Takes => self.find(bench, at, &mut found),
        }
    }

    /// Runs the recorded call before a candidate needs it. The first candidate that asks receives a failure, since
    /// finding it out may have taken long.
    pub(super) fn prefetch_recorded_call(&self, bench: &Bench) {
        let mut found = lock_first(&self.known[0]);
        if matches!(*found, TrialState::Nothing)
            && let Err(why) = self.find(bench, 0, &mut found)
        {
            *found = TrialState::Failed(why);
        }
    }

    /// Makes the next caller that needs the recorded call try again what failed before.
    pub(super) fn forget_failure(&self) {
        let mut found = lock_first(&self.known[0]);
        if matches!(*found, TrialState::Failed(_)) {
            *found = TrialState::Nothing;
        }
    }

    /// Whether the recorded call has been computed or is being computed.
    pub(super) fn is_asked(&self) -> bool {
        !matches!(self.known[0].try_lock().as_deref(), Ok(TrialState::Nothing))
    }

    /// Bytes of device memory that the original needs for the recorded call, if that is known already.
    pub(super) fn device_memory(&self) -> u64 {
        self.if_known(|ready| ready.ran.device_memory)
    }

    /// Bytes that the results of a block of timed calls take, if that is known already.
    pub(super) fn results(&self) -> u64 {
        self.if_known(|ready| block_bytes(&ready.ran.results))
    }

    fn if_known(&self, of: impl FnOnce(&Ready) -> u64) -> u64 {
        match self.known[0].try_lock().as_deref() {
            Ok(TrialState::Known(TrialBaseline::Ready(ready))) => of(ready),
            _ => 0,
        }
    }

    /// Whether the original accepts a trial, for callers that do not need the results. Otherwise as [`Self::known`].
    pub(super) fn takes(&self, bench: &Bench, at: usize) -> Result<bool, Undecided> {
        let mut found = lock_first(&self.known[at]);
        let known = match &*found {
            TrialState::Takes => return Ok(true),
            TrialState::Known(known) => known.clone(),
            TrialState::Nothing | TrialState::Failed(_) => self.find(bench, at, &mut found)?,
        };
        let TrialBaseline::Ready(ready) = known else { return Ok(false) };
        if !ready.is_kept {
            bench.drop_slots(ready.slots())?;
        }
        Ok(true)
    }

    fn find(&self, bench: &Bench, at: usize, found: &mut TrialState) -> Result<TrialBaseline, Undecided> {
        for &better in &self.trials[at].unless {
            if self.takes(bench, better)? {
                *found = TrialState::Known(TrialBaseline::Needless);
                return Ok(TrialBaseline::Needless);
            }
        }
        let is_first = at == 0;
        let first = match is_first {
            true => None,
            false => match self.known(bench, 0)? {
                TrialBaseline::Ready(first) => Some(first),
                TrialBaseline::Skipped(_) | TrialBaseline::Needless => None,
            },
        };
        let known = std::thread::scope(|scope| {
            let ahead = is_first.then(|| scope.spawn(|| self.lift_ahead(bench)));
            self.prepare(bench, at, (MOST, &|| true))?;
            // An autotuner must not choose while others use the device.
            let tunes = is_first && *lock(&self.original.tunes);
            if let (true, Some(ahead)) = (tunes, ahead) {
                let _ = ahead.join();
            }
            let _turn = bench.use_device(tunes)?;
            self.find_out(bench, &self.trials[at], first.as_deref())
        });
        // A process that is not used ends here.
        *lock(&self.lifted_ahead) = None;
        let mut known = known?;
        if let (true, TrialBaseline::Skipped(why)) = (is_first, &known) {
            let why = format!("the original itself fails: {why}");
            return Err(Undecided::new(UndecidedCause::Call, why));
        }
        let bytes = match &known {
            TrialBaseline::Ready(ready) => ready.ran.results.rough_bytes() * 6,
            TrialBaseline::Skipped(_) | TrialBaseline::Needless => 0,
        };
        *found = TrialState::Takes;
        let most = memory().map_or(KEPT, |memory| memory.size / SHARE_KEPT);
        let mut kept = lock(&self.kept);
        if is_first || *kept + bytes <= most {
            *kept += bytes;
            if let TrialBaseline::Ready(ready) = &mut known
                && let Some(ready) = Arc::get_mut(ready)
            {
                ready.is_kept = true;
            }
            *found = TrialState::Known(known.clone());
        }
        Ok(known)
    }

    /// Computes the original's behaviour on a trial. The caller holds the device; `first` holds the results of the
    /// recorded call.
    fn find_out(&self, bench: &Bench, trial: &Trial, first: Option<&Ready>) -> Result<TrialBaseline, Undecided> {
        if trial.needs_reference() && lock(&self.follows).is_none() {
            return Ok(TrialBaseline::Skipped(NO_REFERENCE.to_owned()));
        }
        let call = |inputs: Inputs| self.call(inputs, false);
        let mut took: Option<Duration> = None;
        let (ran, original) =
            match self.original.run(bench, &EntryCall { watch: true, ..call(trial.inputs.clone()) })? {
                Ok(kept) => kept,
                Err(why) => return Ok(TrialBaseline::Skipped(why)),
            };
        let is_recorded = std::ptr::eq(trial, &raw const self.trials[0]);
        if is_recorded {
            self.must_repeat(bench, trial, &ran, original)?;
        }
        let mut jittered = Vec::new();
        for seed in 1..=JITTERED {
            let moved = Inputs { jitter: Some(seed), ..trial.inputs.clone() };
            let since = Instant::now();
            if let Ok((_, slot)) = self.original.run(bench, &call(moved))? {
                jittered.push(slot);
                took = Some(took.unwrap_or(Duration::MAX).min(since.elapsed()));
            }
        }
        // In another type the random number generator draws other numbers.
        let mut reference = if ran.drawn.is_empty() { self.reference(bench, trial, &ran)? } else { None };
        if is_recorded && ran.drawn.is_empty() {
            reference = self.best_reference(bench, (trial, &ran), (original, &jittered), reference)?;
        }
        if is_recorded
            && reference.is_none()
            && lock(&self.coarse).tensors.is_empty()
            && let Some(coarse) = self.find_coarse(bench, trial, &ran, original)?
        {
            // The trial is repeated with inputs that the original reads completely.
            *lock(&self.coarse) = coarse;
            bench.drop_slots([original].into_iter().chain(jittered).collect())?;
            return self.find_out(bench, trial, first);
        }
        let alike = match trial.reason {
            // An original that assumes dense tensors gives no reference for others, and one that reads next to its
            // tensors gives none for other sizes; a second run with another memory layout shows both.
            Reason::Layout => Some(Inputs { dense: true, ..trial.inputs.clone() }),
            Reason::Sizes => Some(Inputs { unmarked: true, ..trial.inputs.clone() }),
            _ => None,
        };
        let alike = match alike {
            Some(inputs) => self.original.run(bench, &call(inputs))?.ok().map(|(_, slot)| slot),
            None => None,
        };
        let slots = ReferenceSlots { original, reference, jittered, relocated: alike };
        self.assess_reference(bench, (trial, first), (ran, took.unwrap_or_default()), slots)
    }

    /// The properties of the original that only several calls show, computed now if they are not known yet.
    pub(super) fn traits(&self, bench: &Bench) -> Result<Arc<Habits>, Undecided> {
        let mut known = lock_first(&self.habits);
        if let Some(habits) = known.as_ref() {
            return Ok(Arc::clone(habits));
        }
        let _shared = bench.shared();
        let overwrites = match self.original.run_twice(bench, &self.sequence())? {
            Some([one, other]) => {
                let ask = ComparerRequest::Changed { one, other };
                let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
                bench.drop_slots(vec![one, other])?;
                found.iter().any(|one| one.path.starts_with("result"))
            }
            None => true,
        };
        let needs_kernels = self.needs_kernels(bench, &self.trials[0])?;
        let is_unseen = needs_kernels == Some(false) && {
            // Other contents may show what these do not.
            let others = self.trials.iter().filter(|trial| trial.reason == Reason::Values);
            let mut others = others.map(|trial| self.needs_kernels(bench, trial));
            others.all(|needs| matches!(needs, Ok(None | Some(false))))
        };
        let needs_kernels = needs_kernels == Some(true);
        let mut partly = Vec::new();
        for reuse in [Reuse::Middle, Reuse::Few] {
            if let Some([before, slot]) = self.original.run_twice(bench, &self.sequence_with(reuse))? {
                bench.drop_slots(vec![before])?;
                partly.push((reuse, slot));
            }
        }
        Ok(Arc::clone(known.insert(Arc::new(Habits { overwrites, needs_kernels, is_unseen, partly }))))
    }

    /// Whether the results differ when the kernels are replaced by nothing; `None` if the original launches none, or
    /// fails.
    fn needs_kernels(&self, bench: &Bench, trial: &Trial) -> Result<Option<bool>, Undecided> {
        let call = self.call(trial.inputs.clone(), false);
        let Ok((ran, one)) = self.original.run(bench, &EntryCall { watch: true, ..call.clone() })? else {
            return Ok(None);
        };
        let mut slots = vec![one];
        let mut needs = None;
        if !ran.launches.is_empty()
            && let Ok((_, other)) = self.original.run(bench, &EntryCall { ghost: true, ..call })?
        {
            slots.push(other);
            let ask = ComparerRequest::Changed { one, other };
            needs = Some(!bench.compare(|comparer| Ok(comparer.differences(&ask)?))?.is_empty());
        }
        bench.drop_slots(slots)?;
        Ok(needs)
    }

    /// Two calls: the recorded one, and another one, after which the first call's results are read again.
    pub(super) fn sequence(&self) -> [EntryCall; 2] {
        let inputs = |at: usize| self.trials[at].inputs.clone();
        [self.call(inputs(0), false), EntryCall { previous: true, ..self.call(inputs(1), false) }]
    }

    /// Two calls: a call, and another one on its tensors, whose contents are partly new.
    pub(super) fn sequence_with(&self, reuse: Reuse) -> [EntryCall; 2] {
        let inputs = self.trials[1].inputs.clone();
        let moved = Inputs { seed: inputs.seed ^ 0x5555, ..inputs.clone() };
        [self.call(inputs, false), EntryCall { reuse, ..self.call(moved, false) }]
    }

    /// The inputs, adjusted to what the original reads of them.
    pub(super) fn inputs(&self, inputs: Inputs) -> Inputs {
        // While the coarse arguments are being searched for, the inputs carry their own.
        if inputs.coarse.tensors.is_empty() { Inputs { coarse: lock(&self.coarse).clone(), ..inputs } } else { inputs }
    }

    /// The call of a trial.
    pub(super) fn call(&self, inputs: Inputs, ghost: bool) -> EntryCall {
        EntryCall {
            inputs: self.inputs(inputs),
            poison: true,
            ghost,
            gradients: self.original.workload.gradients,
            export: true,
            ..EntryCall::default()
        }
    }
}
