//! A bench: one device with the processes, the locks and the known originals that judging on it needs.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use model::analysis::occupancy;
use protocol::runner::{ComparerRequest, Fence, Weights};
use protocol::{RuntimeVersions, SimulatedGpu, Workload, is_simulated};
use runtime::python::{ComputeDevice, Forker, ForkerError, cache_folder, state_folder};

use super::baseline::Baseline;
use super::busy_time::{BusyGuard, BusyTime};
use super::candidate_process::CandidateProcess;
use super::child_processes::{ComparerProcess, DeviceProcesses};
use super::devices::predicted;
use super::limits::{CandidateLimits, SHARE};
use super::locks::{Held, holds_device, lock};
use super::model::Gpu;
use super::tool_process::ToolProcess;
use super::undecided::{Undecided, UndecidedCause};

use super::semaphore::{CountingSemaphore, SemaphorePermit};
use super::verdict::Verdict;

/// The most candidates that share the device: it serves one process at a time, and the more there are, the longer each
/// waits.
const PLACES: usize = 6;
/// The most processes for several candidates that start at once. The driver creates one context at a time, and the
/// first process should not wait for the last.
const STARTING: usize = 4;

/// How many times the original's memory a candidate may use.
const TIMES_MORE: f64 = 1.5;

/// How old the list of launcher stubs may be.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A process that has judged candidates of an original and is free for another one.
pub(super) type IdleProcess = (Arc<Baseline>, CandidateProcess);

/// A device with everything that judging on it needs. Several candidates can be judged at once; they are timed one
/// after the other.
pub struct Bench {
    pub(super) forker: Arc<Forker>,
    /// The Python interpreter.
    pub(super) python: PathBuf,
    pub(super) limits: CandidateLimits,
    /// The seed of the inputs' contents. The proposer of a candidate does not know it.
    pub(super) seed: u64,
    /// The seed of a model's weights, from which [`Self::seed`] cannot be derived.
    weights: u64,
    environment: RuntimeVersions,
    /// The device's UUID: [`super::Device::uuid`].
    pub(super) uuid: String,
    scratch: tempfile::TempDir,
    comparer: Mutex<Option<ComparerProcess>>,
    device: RwLock<()>,
    /// Held for reading by candidates that share the device's memory, and for writing by one that is judged without
    /// them because memory ran out.
    alone: RwLock<()>,
    is_alone: AtomicBool,
    /// A counting semaphore for candidates that share the device.
    places: CountingSemaphore,
    /// A counting semaphore for processes that start and will judge several candidates.
    pub(super) starting: CountingSemaphore,
    pub(super) meter: BusyTime,
    lock: PathBuf,
    /// The device's copy rate in bytes per second, once it was measured; the inner `None` means that it could not be.
    pub(super) rate: Mutex<Option<Option<f64>>>,
    baselines: Mutex<HashMap<String, Arc<Baseline>>>,
    next: AtomicU64,
    /// Folders of launcher stubs, and when they were listed.
    launchers: Mutex<Option<(Instant, Vec<PathBuf>)>>,
    pub(super) shared_processes: Arc<DeviceProcesses>,
    pub(super) idle_processes: Mutex<Vec<IdleProcess>>,
    /// Memory checkers that have started, for each of [`super::sanitizer::Tool::ALL`].
    pub(super) checkers: [Mutex<Option<ToolProcess>>; 2],
}

impl Bench {
    /// Starts the processes for a device, given by its index among those that CUDA shows; `waiting` is called now and
    /// then and returns whether to go on.
    ///
    /// # Errors
    /// Returns a [`ForkerError`] that names what is missing.
    pub fn start(
        python: &Path,
        device: Option<usize>,
        limits: CandidateLimits,
        waiting: &dyn Fn() -> bool,
    ) -> Result<Self, ForkerError> {
        let (since, (on, own)) = (Instant::now(), super::devices::one(device));
        let mut bench = Self::without_comparer(python, &on, limits, waiting)?;
        bench.comparer = Mutex::new(Some(ComparerProcess::start(&bench.forker, &bench.shared_processes)?));
        tracing::debug!(seconds = since.elapsed().as_secs_f64(), "a judge is ready");
        if let Some(own) = own {
            (bench.environment.device, bench.uuid) = (own.name, own.uuid);
        }
        // The name is not the device's index, which differs between processes that see different devices. A simulated
        // device belongs to one process, unless others have the same state folder.
        let folder = if is_simulated() { state_folder() } else { cache_folder() };
        bench.lock = folder.join(format!("device-{}.lock", bench.uuid));
        bench.environment.driver = super::drivers().cuda.unwrap_or_default();
        Ok(bench)
    }

    /// Starts the processes that compile for a GPU that this machine does not have. Nothing runs on it.
    pub(super) fn start_simulated(
        python: &Path,
        gpu: &Gpu,
        limits: CandidateLimits,
        waiting: &dyn Fn() -> bool,
    ) -> Result<Self, ForkerError> {
        let (name, capability, multiprocessors) = (gpu.name.to_owned(), gpu.capability, gpu.multiprocessors);
        let shared = occupancy::MultiprocessorLimits::of(capability).map_or(48 << 10, |limits| limits.shared_of_block);
        let on = ComputeDevice::Played(SimulatedGpu { name, capability, multiprocessors, shared });
        let mut bench = Self::without_comparer(python, &on, limits, waiting)?;
        bench.environment.device = predicted(gpu.name);
        if bench.environment.torch.is_empty() {
            return Err(ForkerError::Unfit(format!("predicting needs torch in {}", python.display())));
        }
        Ok(bench)
    }

    fn without_comparer(
        python: &Path,
        on: &ComputeDevice,
        limits: CandidateLimits,
        waiting: &dyn Fn() -> bool,
    ) -> Result<Self, ForkerError> {
        let forker = Arc::new(Forker::start(python, on, waiting)?);
        let scratch = tempfile::tempdir()
            .map_err(|error| ForkerError::Unfit(format!("cannot make a scratch folder: {error}; set TMPDIR")))?;
        forker.owns(scratch.path())?;
        let seed = u64::from_le_bytes(random());
        let (shared_processes, comparer, rate, baselines, next, launchers, uuid, lock, idle_processes, checkers) =
            Default::default();
        Ok(Self {
            environment: forker.environment().clone(),
            uuid,
            forker,
            python: python.to_owned(),
            limits,
            seed,
            weights: u64::from_le_bytes(random()),
            scratch,
            comparer,
            device: RwLock::new(()),
            alone: RwLock::new(()),
            is_alone: AtomicBool::new(false),
            places: CountingSemaphore::new(PLACES),
            starting: CountingSemaphore::new(STARTING),
            meter: BusyTime::default(),
            lock,
            rate,
            baselines,
            next,
            launchers,
            shared_processes,
            idle_processes,
            checkers,
        })
    }

    /// Cancels all judgements, which then end undecided. After a call with `false` new candidates are judged again.
    /// Processes that wait for another candidate are left to [`Self::end_idle_processes`].
    pub fn abandon(&self, unwanted: bool) {
        self.shared_processes.unwanted.store(unwanted, Ordering::Relaxed);
    }

    /// Cancels all judgements for good, without waiting until all processes have ended.
    pub(super) fn leave(&self) {
        self.forker.abandon_children();
        self.abandon(true);
    }

    /// Whether the forker, from which all other processes come, has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.forker.is_gone()
    }

    /// The versions of the software, and the device.
    #[must_use]
    pub fn environment(&self) -> &RuntimeVersions {
        &self.environment
    }

    /// The parts of the fence around candidates that this system lacks, as text.
    #[must_use]
    pub fn unfenced(&self) -> &[String] {
        self.forker.unfenced()
    }

    /// The permissions of a runner, with a scratch folder of its own.
    pub(super) fn fence(&self, name: &str, trusted: bool, mut readable: Vec<PathBuf>) -> Result<Fence, Undecided> {
        let scratch = self.private(name)?;
        // Kernels of the user's own file are kept. A candidate could leave wrong kernels for others, so it has a folder
        // of its own.
        let kernels = if trusted { cache_folder().join("triton") } else { scratch.join("kernels") };
        std::fs::create_dir_all(&kernels)?;
        if !trusted {
            readable.push(cache_folder().join("triton"));
            self.lend_launchers(&kernels);
        }
        Ok(Fence {
            scratch,
            kernels,
            readable,
            memory: self.limits.memory,
            streams: true,
            processes: self.limits.processes,
            output: self.limits.output,
            token: self.secret(),
            ..Fence::default()
        })
    }

    /// Bytes of device memory that a candidate may use when the original needs `original` bytes; 0 where the driver
    /// does not report the device's memory.
    pub(super) fn device_memory(&self, original: u64) -> u64 {
        match (self.limits.device_memory, super::devices::memory()) {
            (0, Some(memory)) => {
                let share = (memory.size as f64 * SHARE).max(original as f64 * TIMES_MORE);
                (share as u64).min(memory.size)
            }
            (0, None) => 0,
            (limit, _) => limit,
        }
    }

    /// Judges while other candidates are judged. Where memory ran out, which others may have taken, it judges once more
    /// without them.
    pub(super) fn judge_anew_alone(&self, judge: impl Fn() -> Verdict) -> Verdict {
        let verdict = {
            let _beside = self.alone.read().unwrap_or_else(PoisonError::into_inner);
            judge()
        };
        if !verdict.outcome.lacks_memory() {
            return verdict;
        }
        tracing::debug!("memory ran out: a candidate is judged once more without others");
        let _alone = self.alone.write().unwrap_or_else(PoisonError::into_inner);
        self.is_alone.store(true, Ordering::Relaxed);
        self.make_room();
        // Memory that is not free now belongs to other programs.
        let free = super::devices::free(&self.uuid).unwrap_or(u64::MAX);
        let mut verdict = judge();
        self.is_alone.store(false, Ordering::Relaxed);
        verdict.outcome = verdict.outcome.if_there_was(free, self.device_memory(0));
        verdict
    }

    /// Ends the processes of all originals, which hold device memory for their next calls.
    fn make_room(&self) {
        self.end_idle_processes();
        let known: Vec<_> = lock(&self.baselines).values().cloned().collect();
        known.iter().for_each(|baseline| baseline.end());
        // Unneeded results are forgotten while others run; a comparer that does not answer is started again.
        let _ = self.drop_slots(Vec::new());
    }

    /// Whether no other candidate uses the device's memory.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Relaxed)
    }

    /// A folder that fenced processes cannot access.
    pub(super) fn private(&self, name: &str) -> std::io::Result<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.scratch.path().join(format!("{name}-{number}"));
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Links the launcher stubs of the common folder of kernels into another one, to be read only: each stub takes a C
    /// compiler half a second.
    fn lend_launchers(&self, kernels: &Path) {
        let mut known = lock(&self.launchers);
        if known.as_ref().is_none_or(|(looked, _)| looked.elapsed() > LOOK_AGAIN) {
            let folders = std::fs::read_dir(cache_folder().join("triton")).into_iter().flatten().flatten();
            let holds = |folder: &PathBuf| {
                let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
                files.map(|file| file.file_name()).any(|name| name.to_string_lossy().starts_with("__triton_launcher"))
            };
            *known = Some((Instant::now(), folders.map(|folder| folder.path()).filter(holds).collect()));
        }
        for folder in known.iter().flat_map(|(_, folders)| folders) {
            if let Some(name) = folder.file_name() {
                // A stub that cannot be linked is compiled.
                let _ = std::os::unix::fs::symlink(folder, kernels.join(name));
            }
        }
    }

    /// The baseline of an original with a workload.
    pub(super) fn baseline(
        &self,
        (file, folder): (&Path, &Path),
        workload: &Workload,
        moves_weights: bool,
    ) -> Result<Arc<Baseline>, Undecided> {
        let text = std::fs::read(file).map_err(|error| {
            Undecided::new(UndecidedCause::Other, format!("{} cannot be read: {error}", file.display()))
        })?;
        let key = format!("{}{moves_weights}{}", blake3::hash(&text), serde_json::to_string(workload)?);
        let mut all = self.baselines.lock().unwrap_or_else(PoisonError::into_inner);
        let weights = Weights { seed: self.weights, are_moved: moves_weights };
        let make = || {
            let text = String::from_utf8_lossy(&text);
            Arc::new(Baseline::new((file, folder), &text, workload.clone(), self.seed, weights))
        };
        Ok(Arc::clone(all.entry(key).or_insert_with(make)))
    }

    /// Sends a request to the comparer, which is restarted if it has ended.
    pub(super) fn compare<T>(
        &self,
        ask: impl FnOnce(&mut ComparerProcess) -> Result<T, Undecided>,
    ) -> Result<T, Undecided> {
        let start = || {
            // The original's results were lost with the comparer.
            lock(&self.baselines).clear();
            Ok(ComparerProcess::start(&self.forker, &self.shared_processes)?)
        };
        ask_or_restart(&mut lock(&self.comparer), ComparerProcess::is_gone, start, ask)
    }

    /// A random number that candidates do not know.
    pub(super) fn secret(&self) -> u64 {
        u64::from_le_bytes(random())
    }

    /// Makes the comparer forget results.
    pub(super) fn drop_slots(&self, slots: Vec<u32>) -> Result<(), Undecided> {
        self.compare(|comparer| Ok(comparer.ask(&ComparerRequest::Drop { slots })?))?;
        Ok(())
    }

    /// Acquires the device for shared use.
    pub(super) fn shared(&self) -> Shared<'_> {
        let held = Held::new();
        let place = self.places.take();
        let bench = self.device.read().unwrap_or_else(PoisonError::into_inner);
        // Without the lock file the device is shared within this process only.
        let file = self.machine().ok().filter(|file| file.lock_shared().is_ok());
        Shared { _bench: bench, _machine: file, _place: place, _held: held, _use: self.meter.begin() }
    }

    /// Acquires the device, for exclusive or for shared use.
    pub(super) fn use_device(&self, alone: bool) -> Result<DeviceGuard<'_>, Undecided> {
        Ok(if alone {
            DeviceGuard::Alone { _held: self.exclusive()? }
        } else {
            DeviceGuard::Beside { _held: self.shared() }
        })
    }

    /// Waits while a thread holds the device exclusively. A process that starts on a device allocates memory, which
    /// interrupts calls that are being timed. The caller must hold no lock that the timing thread may need.
    pub(super) fn wait_for_quiet(&self) {
        debug_assert!(!holds_device(), "a thread that uses the device waits for it");
        let _bench = self.device.read().unwrap_or_else(PoisonError::into_inner);
        // Without the lock file only this process is waited for.
        let _ = self.machine().and_then(|file| file.lock_shared());
    }

    fn machine(&self) -> std::io::Result<File> {
        self.lock.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        File::options().create(true).truncate(false).write(true).open(&self.lock)
    }

    /// The lock file of the device, for processes that acquire the device themselves later.
    pub(super) fn lock_file(&self) -> PathBuf {
        self.lock.clone()
    }

    /// Acquires the device exclusively among all judges of this machine.
    pub(super) fn exclusive(&self) -> Result<Exclusive<'_>, Undecided> {
        let (held, since) = (Held::new(), Instant::now());
        let bench = self.device.write().unwrap_or_else(PoisonError::into_inner);
        let file = self.machine()?;
        file.lock()?;
        tracing::debug!(seconds = since.elapsed().as_secs_f64(), "waited to have the device alone");
        Ok(Exclusive { _bench: bench, _machine: file, _held: held, _use: self.meter.begin() })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Processes that still run write into the folder, and their parent removes it when they have ended.
        self.scratch.disable_cleanup(self.forker.is_left());
    }
}

fn restarted() -> Undecided {
    Undecided::new(UndecidedCause::ResultsLost, "the comparing process had ended and was started again")
}

/// Asks a process, or starts it again if it has ended. The new one is not asked: it numbers results from the beginning, so
/// a number of the former one's may be that of other results there.
fn ask_or_restart<P, T>(
    process: &mut Option<P>,
    is_gone: impl FnOnce(&mut P) -> bool,
    start: impl FnOnce() -> Result<P, Undecided>,
    ask: impl FnOnce(&mut P) -> Result<T, Undecided>,
) -> Result<T, Undecided> {
    if process.as_mut().is_none_or(is_gone) {
        *process = Some(start()?);
        return Err(restarted());
    }
    process.as_mut().map_or_else(|| Err(restarted()), ask)
}

/// A guard: the device is held exclusively until it is dropped.
pub(super) struct Exclusive<'a> {
    _bench: RwLockWriteGuard<'a, ()>,
    _machine: File,
    _held: Held,
    _use: BusyGuard<'a>,
}

/// A guard: the device is shared until it is dropped.
pub(super) struct Shared<'a> {
    _bench: RwLockReadGuard<'a, ()>,
    _machine: Option<File>,
    _place: SemaphorePermit,
    _held: Held,
    _use: BusyGuard<'a>,
}

/// A guard of the device, exclusive or shared.
pub(super) enum DeviceGuard<'a> {
    Alone { _held: Exclusive<'a> },
    Beside { _held: Shared<'a> },
}

fn random() -> [u8; 8] {
    let mut bytes = [0; 8];
    // Without `/dev/urandom` the time serves as the seed: a candidate cannot choose it.
    let read = File::open("/dev/urandom").and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    if read.is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bytes = now.map_or(1, |now| now.as_nanos() as u64).to_le_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_comparer_does_not_get_the_pending_request() {
        let mut process = Some("former");
        let ask = |process: &mut Option<&'static str>, is_gone: bool| {
            ask_or_restart(process, |_| is_gone, || Ok("new"), |asked| Ok(*asked)).map_err(|undecided| undecided.cause)
        };
        assert_eq!(ask(&mut process, false), Ok("former"));
        assert_eq!(ask(&mut process, true), Err(UndecidedCause::ResultsLost));
        assert_eq!(ask(&mut process, false), Ok("new"));
        assert_eq!(ask(&mut None, false), Err(UndecidedCause::ResultsLost));
    }
}
