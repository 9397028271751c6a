//! A runner: it calls the entry of a file as the judge requests. The judge trusts none of its replies.

use std::cell::Cell;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use protocol::runner::{
    CallOutput, EntryCall, Fence, Inputs, Layout, PythonException, Reuse, RunnerReply, Tail, Tuned, Weights,
};
use protocol::{SimulatedGpu, Workload, is_simulated};

use super::compile::{Hooks, LaunchMode, compile_ahead, take_launches, take_symbols};
use super::errors::{DeviceMemoryError, cause, describe};
use super::launch::callable;
use super::models::{EntryCallable, load_as};
use super::python_modules::{generators, kernels, poison, shim, varied};
use super::replay::{Replay, ReplayedArguments};
use super::result_export::{CallResults, Exporter, ResultSink};
use super::runner_requests::CarriedState;
use super::seeds::mixed;
use super::tamper_check::TamperCheck;
use super::timing::{Timer, synchronize};
use super::torch_memory::{TorchMemory, free, is_scarce, release};
use super::tuning::{TunerMode, Tuners, is_open, tuned};
use super::{evasion, launch_compilation, torch_free};

pub(super) struct Runner<'py, 'a> {
    pub(super) py: Python<'py>,
    pub(super) replay: Replay<'py, 'a>,
    entry: Bound<'py, PyAny>,
    pub(super) weights: Option<Bound<'py, PyAny>>,
    /// `None` if the weights are never moved; inside, the seed of the last move.
    moved: Option<Cell<Option<u64>>>,
    pub(super) exporter: Exporter<'py>,
    pub(super) timer: Option<Timer>,
    pub(super) simulated: bool,
    threads: Bound<'py, PyAny>,
    threads_before: usize,
    /// The results of the previous call, which keep its memory from being reused.
    last: Option<CallResults<'py>>,
    pub(super) kept: Vec<Vec<ReplayedArguments<'py>>>,
    /// Whether arguments are being made at present.
    pub(super) making: Cell<bool>,
    /// The least time that launching one call takes, in milliseconds, once it is known.
    pub(super) launching: Cell<Option<f64>>,
}

impl<'py, 'a> Runner<'py, 'a> {
    pub(super) fn load(
        py: Python<'py>,
        (file, folder): (&Path, &Path),
        workload: &'a Workload,
        (is_candidate, weights): (bool, Weights),
        fence: &Fence,
        left: CarriedState,
    ) -> PyResult<Self> {
        let simulated = is_simulated();
        // Tensors without contents on a missing device fail where they are indexed.
        let device = if simulated || SimulatedGpu::here().is_some() { "cpu" } else { "cuda" };
        let threads = py.import("_thread")?.getattr("_count")?;
        let threads_before = threads.call0()?.extract()?;
        let new = || {
            if simulated { ResultSink::File(fence.scratch.clone()) } else { ResultSink::Device { address: 0, size: 0 } }
        };
        let outlet = left.outlet.unwrap_or_else(new);
        let exporter = Exporter::new(py, outlet, fence.results)?;
        let (places, folder) = (py.import("sys")?.getattr("path")?, folder.to_string_lossy());
        // The previous file may have been loaded from the same folder.
        if !places.get_item(0).and_then(|first| first.eq(folder.as_ref()))? {
            places.call_method1("insert", (0, folder.as_ref()))?;
        }
        let module = module(py, file)?;
        let replay = Replay::new(py, &module, workload, device)?;
        let EntryCallable { call: entry, weights: set } =
            callable(py, &module, workload, device, is_candidate, weights)?;
        let moved = weights.are_moved.then(Cell::default);
        let weights = set;
        let (timer, last, kept, making, launching) = (left.timer, None, Vec::new(), Cell::default(), Cell::default());
        Ok(Self {
            py,
            replay,
            entry,
            weights,
            moved,
            exporter,
            timer,
            simulated,
            threads,
            threads_before,
            last,
            kept,
            making,
            launching,
        })
    }

    /// Ends the use of a file; returns what the next file can use again.
    pub(super) fn leave(self, file: &Path) -> CarriedState {
        let modules = self.py.import("sys").and_then(|sys| sys.getattr("modules"));
        let _ = modules.and_then(|modules| modules.del_item(module_name(file)));
        CarriedState { outlet: Some(self.exporter.outlet), timer: self.timer }
    }

    pub(super) fn compile(&self, file: &Path, inputs: &Inputs, chosen: &[Tuned], drafts: bool) -> RunnerReply {
        launch_compilation::want(drafts);
        launch_compilation::take_code();
        let ahead = || -> PyResult<()> {
            let hooks = Hooks::install(self.py, LaunchMode::CompileOnly)?;
            let tuners = Tuners::install(self.py, TunerMode::Compile, chosen)?;
            let compiled = compile_ahead(self.py, &self.replay, inputs, &self.entry);
            tuners.remove()?;
            hooks.remove()?;
            compiled
        };
        let failed = ahead().err().map(|error| raised(self.py, &error, file));
        let code = launch_compilation::take_code().filter(|_| failed.is_none());
        RunnerReply::Compiled { failed, tunes: is_open(), code, drafts: launch_compilation::take() }
    }

    /// Sets the weights, so that equal inputs come with equal weights.
    pub(super) fn reset_weights(&self, inputs: &Inputs) -> PyResult<()> {
        let (Some(weights), Some(last)) = (&self.weights, &self.moved) else { return Ok(()) };
        if last.replace(Some(inputs.seed)) != Some(inputs.seed) {
            weights.call_method1("set", (mixed(inputs.seed),))?;
        }
        Ok(())
    }

    /// Seeds the random number generators that are used by default, so that equal inputs come with equal random
    /// numbers.
    pub(super) fn seed(&self, inputs: &Inputs) -> PyResult<()> {
        generators(self.py)?.getattr("seed")?.call1((mixed(inputs.seed),)).map(drop)
    }

    pub(super) fn invoke(&self, arguments: &ReplayedArguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.entry.call(arguments.args.clone(), Some(&arguments.kwargs))
    }

    pub(super) fn synchronize(&self) -> PyResult<()> {
        match &self.replay.torch {
            _ if self.simulated => Ok(()),
            Some(torch) => torch.getattr("cuda")?.call_method0("synchronize").map(drop),
            None => synchronize(),
        }
    }

    /// Makes the arguments: new ones, or those of the previous call with new contents if requested.
    fn arguments(&mut self, call: &EntryCall) -> PyResult<ReplayedArguments<'py>> {
        let fresh = self.replay.arguments(&call.inputs)?;
        if let Some(Tail { alone: true, .. }) = call.tail {
            let part = self.replay.arguments(&Inputs { resize: Vec::new(), ..call.inputs.clone() })?;
            part.take_last(&fresh)?;
            return Ok(part);
        }
        let Some(last) = self.last.take().filter(|_| call.reuse != Reuse::Nothing) else { return Ok(fresh) };
        last.arguments.refill(&fresh, call.reuse, call.inputs.seed)?;
        Ok(last.arguments)
    }

    pub(super) fn call(&mut self, call: &EntryCall, guard: &TamperCheck<'py>) -> PyResult<CallOutput> {
        if let Some(tail) = &call.tail {
            self.make_room(tail.room)?;
        }
        let before = if call.previous { self.last.take() } else { None };
        self.making.set(true);
        let arguments = self.arguments(call)?;
        self.reset_weights(&call.inputs)?;
        self.making.set(false);
        let mode = match (call.ghost, call.watch || self.simulated) {
            (true, _) => Some(LaunchMode::Ghost),
            (false, true) => Some(LaunchMode::Watch),
            (false, false) => None,
        };
        let hooks = mode.map(|mode| Hooks::install(self.py, mode)).transpose()?;
        let is_tuned = call.watch || !call.chosen.is_empty();
        let way = match (call.forced, call.settled) {
            (_, true) => TunerMode::Settled,
            (true, false) => TunerMode::Forced,
            (false, false) => TunerMode::Launch,
        };
        let tuners = is_tuned.then(|| Tuners::install(self.py, way, &call.chosen)).transpose()?;
        let met = PyDict::new(self.py);
        let has_torch = self.replay.torch.is_some();
        let watching =
            (call.watch && has_torch).then(|| shim(self.py)?.getattr("watch_mode")?.call1((&met,))).transpose()?;
        let poisoning = (call.poison && has_torch).then(|| self.poisoning()).transpose()?;
        let listing = (call.list && has_torch && !self.simulated).then(|| kernels(self.py)).transpose()?;
        let variant = call.variant.map(|variant| varied(self.py, variant)).transpose()?;
        let modes: Vec<_> = listing.iter().chain(&watching).chain(&poisoning).chain(&variant).collect();
        self.seed(&call.inputs)?;
        let states = generators(self.py)?.getattr("states")?.call0()?;
        let mut seen = evasion::CallObservation::default();
        let outcome = within(&modes, || {
            evasion::begin();
            let ran = self.invoke_with_gradients(&arguments, call);
            seen = evasion::end();
            ran
        });
        let (launches, symbols) = (take_launches(), take_symbols());
        if let Some(tuners) = tuners {
            tuners.remove()?;
        }
        if let Some(hooks) = hooks {
            hooks.remove()?;
        }
        let (out, gradients) = outcome?;
        let drawn = generators(self.py)?.getattr("drawn")?.call1((states,))?.extract()?;
        self.synchronize()?;
        let overrun = arguments.overrun()?;
        let results = CallResults { out, arguments, gradients };
        let given = std::slice::from_ref(before.as_ref().unwrap_or(&results));
        self.exporter.tail = call.tail.map(|tail| (tail.size, tail.last));
        let exported = self.exporter.export(given, call.export);
        self.exporter.tail = None;
        let exported = exported?.pop().unwrap_or_default();
        let ran = CallOutput {
            results: exported,
            launches,
            symbols,
            tuned: if is_tuned { tuned(self.py)? } else { Vec::new() },
            operators: operators(&met)?,
            kernels: listing.map(|listing| listing.getattr("names")?.extract()).transpose()?.flatten(),
            drawn,
            threads: self.threads.call0()?.extract::<usize>()?.saturating_sub(self.threads_before),
            started: seen.started,
            children: children(),
            device_memory: self.device_memory()?,
            overrun,
            tampered: [guard.changed(), seen.evaded].concat(),
        };
        self.last = Some(results);
        Ok(ran)
    }

    fn invoke_with_gradients(
        &self,
        arguments: &ReplayedArguments<'py>,
        call: &EntryCall,
    ) -> PyResult<(Bound<'py, PyAny>, Gradients<'py>)> {
        let out = self.invoke(arguments)?;
        let gradients = if call.gradients { self.gradients(&out, arguments, &call.inputs)? } else { Vec::new() };
        Ok((out, gradients))
    }

    /// A context manager that fills memory that torch allocates and leaves uninitialized.
    pub(super) fn poisoning(&self) -> PyResult<Bound<'py, PyAny>> {
        let fill = poison(self.py)?.getattr("poison")?;
        shim(self.py)?.getattr("poison_mode")?.call1((fill,))
    }

    /// Gradients of the tensor arguments that require one, for the same random gradients of the results in every call.
    pub(super) fn gradients(
        &self,
        out: &Bound<'py, PyAny>,
        arguments: &ReplayedArguments<'py>,
        given: &Inputs,
    ) -> PyResult<Gradients<'py>> {
        let layout = if given.layout == Layout::Transposed && !given.dense { "transposed" } else { "dense" };
        let wants = |tensor: &Bound<'py, PyAny>| tensor.getattr("requires_grad")?.extract::<bool>();
        let mut wanted = Vec::new();
        for (id, tensor) in arguments.tensors.iter().enumerate() {
            if wants(tensor)? {
                wanted.push((id, tensor.clone()));
            }
        }
        let inputs: Vec<_> = wanted.iter().map(|(_, tensor)| tensor).collect();
        let found =
            shim(self.py)?.getattr("gradients")?.call1((out, inputs, self.replay.device, given.seed, layout))?;
        Ok(wanted.iter().map(|(id, _)| *id).zip(found.extract::<Vec<Bound<'py, PyAny>>>()?).collect())
    }

    /// Releases all device memory that is not in use.
    pub(super) fn release(&mut self) -> PyResult<()> {
        (self.last, self.kept) = (None, Vec::new());
        self.py.import("gc")?.call_method0("collect")?;
        match &self.replay.torch {
            Some(torch) if !self.simulated => release(torch),
            _ => Ok(()),
        }
    }

    /// The device memory that torch holds, where there are torch and a device.
    pub(super) fn held(&self) -> TorchMemory {
        let torch = self.replay.torch.as_ref().filter(|_| !self.simulated);
        torch.and_then(|torch| TorchMemory::by(torch).ok()).unwrap_or_default()
    }

    /// Releases the memory that torch holds unused, where it is much and little is left for other processes. A busy
    /// process cannot be asked for that from outside.
    pub(super) fn trim(&self, held: TorchMemory) -> PyResult<()> {
        let Some(torch) = self.replay.torch.as_ref().filter(|_| held.taken > 0) else { return Ok(()) };
        if held.is_large(torch)? && is_scarce(torch)? { release(torch) } else { Ok(()) }
    }

    fn make_room(&mut self, room: u64) -> PyResult<()> {
        self.release()?;
        if self.simulated {
            return Ok(());
        }
        // Without torch these modes cannot be entered.
        let Some(torch) = &self.replay.torch else { return Ok(()) };
        let free = free(torch)?;
        if free >= room {
            Ok(())
        } else {
            Err(DeviceMemoryError::new_err(format!("out of memory: {free} bytes are free, {room} are needed")))
        }
    }

    fn device_memory(&self) -> PyResult<u64> {
        match &self.replay.torch {
            _ if self.simulated => Ok(0),
            Some(torch) => torch.getattr("cuda")?.call_method0("max_memory_allocated")?.extract(),
            None => Ok(torch_free::most_taken()),
        }
    }
}

/// Gradients with the index of their argument.
pub(super) type Gradients<'py> = Vec<(usize, Bound<'py, PyAny>)>;

/// Runs `work` inside context managers.
pub(super) fn within<T>(modes: &[&Bound<'_, PyAny>], work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    for mode in modes {
        mode.call_method0("__enter__")?;
    }
    let outcome = work();
    for mode in modes.iter().rev() {
        mode.call_method1("__exit__", (mode.py().None(), mode.py().None(), mode.py().None()))?;
    }
    outcome
}

/// Loads a file as a module with a name of its own.
fn module<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyAny>> {
    load_as(py, &module_name(path), path)
}

fn module_name(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("file");
    format!("warpsmith_{}", stem.replace(|letter: char| !letter.is_alphanumeric(), "_"))
}

fn operators(seen: &Bound<'_, PyDict>) -> PyResult<Vec<(String, u64)>> {
    seen.iter().map(|(name, most)| Ok((name.extract()?, most.extract()?))).collect()
}

/// The number of processes below this one.
fn children() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    tasks.flatten().map(|task| of(task).split_whitespace().count()).sum()
}

/// An exception with the innermost line of the loaded file.
pub(super) fn raised(py: Python<'_>, error: &PyErr, file: &Path) -> PythonException {
    let line = || -> PyResult<Option<usize>> {
        let frames = py.import("traceback")?.call_method1("extract_tb", (error.traceback(py),))?;
        let mut line = None;
        for frame in frames.try_iter()? {
            let frame = frame?;
            if Path::new(&frame.getattr("filename")?.extract::<String>()?) == file {
                line = frame.getattr("lineno")?.extract()?;
            }
        }
        Ok(line)
    };
    let (text, line) = (describe(py, error), line().unwrap_or_default());
    PythonException { text, line, cause: cause(py, error), is_early: false }
}
