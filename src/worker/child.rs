//! The forked child: loads both versions, checks one against the other, times them in turn.
#![expect(unsafe_code, reason = "file locks are system calls")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyTuple};

use super::compare::{Leaf, difference, identical, leaves, noise};
use super::compile::{Mode, compile_ahead, install, set_mode};
use super::replay::{Arguments, Replay, callable, flat_view};
use super::serve::{News, Report};
use super::timing::{Span, Timer};
use super::{describe, shim};
use crate::protocol::runner::Inputs;
use crate::protocol::{Evidence, FAKE_DEVICE_ENV, Job, Reason, Verdict};

/// Input sets with contents and addresses of their own that timed calls go round, while they take less than this
/// many elements together.
const ROTATION: usize = 4;
const ROTATION_ELEMENTS: i64 = 2 << 30;
/// The wall-clock run takes about this long for each version.
const WALL_MS: f64 = 20.0;
/// Calls before anything is timed.
const WARM_UP: usize = 3;

/// Why judging stopped early.
enum Stop {
    Refused(Reason, String),
    Python(Reason, PyErr),
}

impl From<PyErr> for Stop {
    /// Errors of the judge's own machinery count against the original: nothing can be said about the candidate.
    fn from(error: PyErr) -> Self {
        Self::Python(Reason::Original, error)
    }
}

fn blame<T>(reason: Reason, result: PyResult<T>) -> Result<T, Stop> {
    result.map_err(|error| Stop::Python(reason, error))
}

/// Judges one candidate; whatever happens, there is a verdict.
pub(super) fn judge(py: Python<'_>, job: &Job, report: &mut Report) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| Judge::run(py, job, report))) {
        Ok(Ok(evidence)) => Verdict::Accepted(evidence),
        Ok(Err(Stop::Refused(reason, evidence))) => Verdict::Refused { reason, evidence },
        Ok(Err(Stop::Python(reason, error))) => Verdict::Refused { reason, evidence: describe(py, &error) },
        Err(_) => {
            Verdict::Refused { reason: Reason::Original, evidence: "the worker panicked; please report it".to_owned() }
        }
    }
}

struct Judge<'py, 'a> {
    py: Python<'py>,
    job: &'a Job,
    replay: Replay<'py, 'a>,
    original: Bound<'py, PyAny>,
    candidate: Bound<'py, PyAny>,
    simulated: bool,
    noise: Vec<f64>,
    evidence: Evidence,
    since: Instant,
}

impl<'py, 'a> Judge<'py, 'a> {
    fn run(py: Python<'py>, job: &'a Job, report: &mut Report) -> Result<Evidence, Stop> {
        let simulated = std::env::var_os(FAKE_DEVICE_ENV).is_some_and(|name| !name.is_empty());
        py.import("sys")?.getattr("path")?.call_method1("insert", (0, job.folder.to_string_lossy().as_ref()))?;
        let since = Instant::now();
        let device = if simulated { "cpu" } else { "cuda" };
        let module = blame(Reason::Original, load(py, &job.original))?;
        let original = blame(Reason::Original, callable(py, &module, &job.workload, device, false))?;
        let replay = blame(Reason::Original, Replay::new(py, &module, &job.workload, device))?;
        let module = blame(Reason::Load, load(py, &job.candidate))?;
        let candidate = blame(Reason::Load, callable(py, &module, &job.workload, device, true))?;
        install(py)?;
        let mut judge = Judge {
            py,
            job,
            replay,
            original,
            candidate,
            simulated,
            noise: Vec::new(),
            evidence: Evidence::default(),
            since,
        };
        judge.lap("load");
        if !simulated {
            judge.compile();
        }
        let told = |result: std::io::Result<()>| result.map_err(PyErr::from);
        told(report.send(News::Waiting))?;
        let _exclusive = py.detach(|| exclusive(&job.lock)).map_err(PyErr::from)?;
        told(report.send(News::Running))?;
        judge.lap("wait");
        judge.check()?;
        judge.lap("check");
        judge.time()?;
        judge.lap("time");
        Ok(judge.evidence)
    }

    fn lap(&mut self, stage: &str) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.evidence.stages.push((stage.to_owned(), seconds));
        self.since = Instant::now();
    }

    /// Compiles both side by side with other children, without the device. What fails here fails again, with its real
    /// error, when the entry runs.
    fn compile(&mut self) {
        for (name, entry) in [("original", &self.original), ("candidate", &self.candidate)] {
            if compile_ahead(self.py, &self.replay, &self.inputs(0), entry).is_err() {
                self.evidence.checks.push(format!("{name} not compiled ahead"));
            }
        }
        self.lap("compile");
    }

    fn call(&self, entry: &Bound<'py, PyAny>, inputs: &Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        entry.call(inputs.args.clone(), Some(&inputs.kwargs))
    }

    /// Runs an entry with every unwritten allocation filled with NaN or a sentinel.
    fn call_poisoned(&self, entry: &Bound<'py, PyAny>, inputs: &Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fill =
            PyCFunction::new_closure(self.py, None, None, |args: &Bound<'_, PyTuple>, _| poison(&args.get_item(0)?))?;
        let mode = shim(self.py)?.getattr("poison_mode")?.call1((fill,))?;
        mode.call_method0("__enter__")?;
        let out = self.call(entry, inputs);
        mode.call_method1("__exit__", (self.py.None(), self.py.None(), self.py.None()))?;
        out
    }

    fn synchronize(&self) -> PyResult<()> {
        if !self.simulated {
            self.replay.torch.getattr("cuda")?.call_method0("synchronize")?;
        }
        Ok(())
    }

    fn inputs(&self, seed: u64) -> Inputs {
        Inputs { seed, resize: self.job.plan.resize.clone(), ..Inputs::default() }
    }

    fn cloned(&self, from: &Arguments<'py>) -> PyResult<Arguments<'py>> {
        self.replay.copy(from, &self.inputs(0), &|flat| flat.call_method0("clone"))
    }

    /// Compares results and changed arguments on each seed. The candidate runs first: it cannot find the original's
    /// results in freed memory.
    fn check(&mut self) -> Result<(), Stop> {
        for (at, &seed) in self.job.plan.seeds.iter().enumerate() {
            let pristine = self.replay.arguments(&self.inputs(seed))?;
            let (mine, theirs) = (self.cloned(&pristine)?, self.cloned(&pristine)?);
            let out = blame(Reason::Run, self.call_poisoned(&self.candidate, &mine))?;
            blame(Reason::Run, self.synchronize())?;
            if let Some(what) = mine.overrun()? {
                return Err(Stop::Refused(Reason::Mutation, what));
            }
            let expected = blame(Reason::Original, self.call_poisoned(&self.original, &theirs))?;
            blame(Reason::Original, self.synchronize())?;
            let expected = results(&expected, &theirs)?;
            if at == 0 {
                self.noise = self.measure_noise(&pristine, &expected)?;
            }
            self.check_mutation(&pristine, &mine, &theirs)?;
            let difference = difference(&expected, &results(&out, &mine)?, &self.noise)?;
            if let Some(what) = difference {
                return Err(Stop::Refused(Reason::Output, what));
            }
        }
        self.evidence
            .checks
            .push(format!("{} sets of fresh inputs agree with the original", self.job.plan.seeds.len()));
        self.evidence.checks.push("every output element is written (allocations were poisoned)".to_owned());
        self.evidence.checks.push("only the arguments that the original changes are changed".to_owned());
        Ok(())
    }

    /// How far the original's own results move when its inputs move by their rounding error.
    fn measure_noise(&self, pristine: &Arguments<'py>, expected: &[Leaf<'py>]) -> Result<Vec<f64>, Stop> {
        let jittered = self.replay.copy(pristine, &self.inputs(0), &jitter)?;
        let out = blame(Reason::Original, self.call(&self.original, &jittered))?;
        Ok(noise(expected, &results(&out, &jittered)?)?)
    }

    fn check_mutation(
        &self,
        before: &Arguments<'py>,
        mine: &Arguments<'py>,
        theirs: &Arguments<'py>,
    ) -> Result<(), Stop> {
        for (id, before) in before.tensors.iter().enumerate() {
            let before = flat_view(before)?;
            if identical(&before, &flat_view(&theirs.tensors[id])?)?
                && !identical(&before, &flat_view(&mine.tensors[id])?)?
            {
                let what = format!("tensor argument {id} is changed; the original leaves it alone");
                return Err(Stop::Refused(Reason::Mutation, what));
            }
        }
        Ok(())
    }

    /// Interleaved timing, and a comparison of what the timed calls returned.
    fn time(&mut self) -> Result<(), Stop> {
        let plan = &self.job.plan;
        if plan.rough == 0 {
            return Ok(());
        }
        let timer = Timer::new(self.simulated)?;
        set_mode(if self.simulated { Mode::Watch } else { Mode::Plain });
        let sets = self.input_sets()?;
        for set in sets.iter().cycle().take(WARM_UP) {
            blame(Reason::Original, self.call(&self.original, &set.0))?;
            blame(Reason::Run, self.call(&self.candidate, &set.1))?;
        }
        timer.synchronize()?;
        let mut pairs = self.pairs(&timer, &sets, plan.rough)?;
        if plan.full > 0 && median_ratio(&pairs) > plan.contender {
            pairs.extend(self.pairs(&timer, &sets, plan.full)?);
            if !self.simulated {
                self.evidence.wall = Some(self.wall(&timer, &sets, &pairs)?);
            }
        }
        self.evidence.pairs = pairs;
        Ok(())
    }

    /// Inputs for the original and equal ones for the candidate, several times with other contents.
    fn input_sets(&self) -> Result<Vec<(Arguments<'py>, Arguments<'py>)>, Stop> {
        let mut sets = Vec::new();
        let mut elements = 0;
        for seed in 0..ROTATION as u64 {
            let theirs = self.replay.arguments(&self.inputs(seed.wrapping_add(0x5eed_0000)))?;
            let mine = self.cloned(&theirs)?;
            for tensor in &theirs.tensors {
                elements += 2 * tensor.call_method0("numel")?.extract::<i64>()?;
            }
            sets.push((theirs, mine));
            if elements > ROTATION_ELEMENTS {
                break;
            }
        }
        Ok(sets)
    }

    /// `count` pairs, each version first in half of them.
    fn pairs(
        &self,
        timer: &Timer,
        sets: &[(Arguments<'py>, Arguments<'py>)],
        count: usize,
    ) -> Result<Vec<(f64, f64)>, Stop> {
        let mut spans: Vec<(Span, Span)> = Vec::with_capacity(count);
        for at in 0..count {
            let (theirs, mine) = &sets[at % sets.len()];
            self.restore(theirs, mine)?;
            let (mut expected, mut out) = (None, None);
            let mut original = || -> Result<Span, Stop> {
                blame(Reason::Original, self.timed(timer, &self.original, theirs, &mut expected))
            };
            let mut candidate = || blame(Reason::Run, self.timed(timer, &self.candidate, mine, &mut out));
            let pair = if at % 2 == 0 {
                let first = original()?;
                (first, candidate()?)
            } else {
                let first = candidate()?;
                (original()?, first)
            };
            spans.push(pair);
            if at + 1 == count || at == count / 2 {
                self.check_timed(expected, out, theirs, mine)?;
            }
        }
        blame(Reason::Run, timer.synchronize())?;
        spans.into_iter().map(|(a, b)| Ok((a.milliseconds()?, b.milliseconds()?))).collect()
    }

    fn timed(
        &self,
        timer: &Timer,
        entry: &Bound<'py, PyAny>,
        inputs: &Arguments<'py>,
        out: &mut Option<Bound<'py, PyAny>>,
    ) -> PyResult<Span> {
        timer.flush(self.py)?;
        timer.measure(self.py, || {
            *out = Some(self.call(entry, inputs)?);
            Ok(())
        })
    }

    /// What a timed call returned is checked like any other: a shortcut taken only when timed is seen.
    fn check_timed(
        &self,
        expected: Option<Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyAny>>,
        theirs: &Arguments<'py>,
        mine: &Arguments<'py>,
    ) -> Result<(), Stop> {
        let (Some(expected), Some(out)) = (expected, out) else { return Ok(()) };
        match difference(&results(&expected, theirs)?, &results(&out, mine)?, &self.noise)? {
            Some(what) => Err(Stop::Refused(Reason::Output, format!("in a timed call: {what}"))),
            None => Ok(()),
        }
    }

    /// When the entry changes its arguments, both versions start each pair from equal ones.
    fn restore(&self, theirs: &Arguments<'py>, mine: &Arguments<'py>) -> Result<(), Stop> {
        for &id in &self.job.workload.mutated {
            let (Some(from), Some(to)) = (theirs.tensors.get(id), mine.tensors.get(id)) else { continue };
            flat_view(to)?.call_method1("copy_", (flat_view(from)?,))?;
        }
        Ok(())
    }

    /// Mean time of back-to-back calls by the wall clock: sees work on other streams, which events do not.
    fn wall(
        &self,
        timer: &Timer,
        sets: &[(Arguments<'py>, Arguments<'py>)],
        pairs: &[(f64, f64)],
    ) -> Result<(f64, f64), Stop> {
        let slowest = pairs.iter().map(|pair| pair.0.max(pair.1)).fold(0.001, f64::max);
        let calls = (WALL_MS / slowest).ceil().clamp(5.0, 500.0) as usize;
        let run = |entry: &Bound<'py, PyAny>, mine: bool| -> PyResult<f64> {
            timer.synchronize()?;
            let start = Instant::now();
            for at in 0..calls {
                let set = &sets[at % sets.len()];
                self.call(entry, if mine { &set.1 } else { &set.0 })?;
            }
            timer.synchronize()?;
            Ok(start.elapsed().as_secs_f64() * 1000.0 / calls as f64)
        };
        Ok((blame(Reason::Original, run(&self.original, false))?, blame(Reason::Run, run(&self.candidate, true))?))
    }
}

fn median_ratio(pairs: &[(f64, f64)]) -> f64 {
    let mut ratios: Vec<f64> = pairs.iter().map(|(original, candidate)| original / candidate).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(0.0)
}

/// What a call returned, and its tensor arguments afterwards.
fn results<'py>(out: &Bound<'py, PyAny>, inputs: &Arguments<'py>) -> PyResult<Vec<Leaf<'py>>> {
    let mut all = leaves(out, "result")?;
    for (id, tensor) in inputs.tensors.iter().enumerate() {
        all.extend(leaves(tensor, &format!("tensor argument {id} afterwards"))?);
    }
    Ok(all)
}

/// Moves floats by up to one unit in the last place; other types stay.
fn jitter<'py>(flat: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !flat.call_method0("is_floating_point")?.extract::<bool>()? {
        return flat.call_method0("clone");
    }
    let torch = flat.py().import("torch")?;
    let dtype = flat.getattr("dtype")?;
    let eps: f64 = torch.call_method1("finfo", (&dtype,))?.getattr("eps")?.extract()?;
    let wide = flat.call_method0("double")?;
    let factor =
        torch.call_method1("rand_like", (&wide,))?.call_method1("sub", (0.5,))?.call_method1("mul", (2.0 * eps,))?;
    wide.call_method1("mul", (factor.call_method1("add", (1.0,))?,))?.call_method1("to", (dtype,))
}

/// NaN for floats, a sentinel for integers.
fn poison(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let dtype = tensor.getattr("dtype")?;
    let torch = tensor.py().import("torch")?;
    if tensor.call_method0("is_floating_point")?.extract()? || tensor.call_method0("is_complex")?.extract()? {
        tensor.call_method1("fill_", (f64::NAN,))?;
    } else if dtype.eq(torch.getattr("bool")?)? {
        tensor.call_method1("fill_", (true,))?;
    } else {
        let max: u64 = torch.call_method1("iinfo", (dtype,))?.getattr("max")?.extract()?;
        tensor.call_method1("fill_", (max - max / 8,))?;
    }
    Ok(())
}

/// A file, which is loaded under a name of its own.
fn load<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyAny>> {
    let name = format!("warpsmith_{}", path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("file"));
    let util = py.import("importlib.util")?;
    let spec = util.call_method1("spec_from_file_location", (&name, path))?;
    let module = util.call_method1("module_from_spec", (&spec,))?;
    py.import("sys")?.getattr("modules")?.set_item(&name, &module)?;
    spec.getattr("loader")?.call_method1("exec_module", (&module,))?;
    Ok(module)
}

/// Holds the device for this process alone while it lives.
fn exclusive(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    // SAFETY: the descriptor is open; each process opens the file itself, so the lock is its own.
    while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(file)
}
