//! The request loop of a runner: it loads files and handles the requests for each.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use pyo3::prelude::*;

use protocol::runner::{
    AuthenticatedReply, CallOutput, ExceptionCause, Fence, PythonException, RunnerReply, RunnerRequest,
};
use protocol::{Workload, WorkloadSource, is_simulated, read_frame, write_frame};

use super::python_modules::{generators, poison, shim};
use super::result_export::ResultSink;
use super::runner::{Runner, raised};
use super::tamper_check::TamperCheck;
use super::timing::Timer;
use super::{device_files, evasion, launch_compilation, torch_free, torch_memory, tuning};

/// The driver's environment variable for the number of a process's connections to the device, through which streams
/// launch in parallel.
const CONNECTIONS_ENV: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// What the next file in the same process takes over from a file: the memory that the comparer has opened, and the
/// timer.
#[derive(Default)]
pub(super) struct CarriedState {
    pub(super) outlet: Option<ResultSink>,
    pub(super) timer: Option<Timer>,
}

/// Serves the judge until it closes the stream.
pub(super) fn run(py: Python<'_>, stream: UnixStream, fence: &Fence) {
    // Whether the judge has gone or our own code fails: the process ends, and the judge learns of that.
    let _ = serve(py, stream, fence);
}

fn serve(py: Python<'_>, stream: UnixStream, fence: &Fence) -> PyResult<()> {
    let mut served = Served { stream, fence };
    let mut next = read_frame(&mut served.stream)?;
    let (mut left, mut is_first) = (CarriedState::default(), true);
    while let Some(RunnerRequest::Load { file, folder, workload, is_candidate, weights }) = next {
        if is_first {
            prepare(py, &workload)?;
        } else {
            forget(py)?;
        }
        is_first = false;
        let (guard, before, since) = (TamperCheck::new(py)?, allocations(py), Instant::now());
        let whose = (is_candidate, weights);
        evasion::begin();
        let runner = match Runner::load(py, (&file, &folder), &workload, whose, fence, left) {
            Ok(runner) => runner,
            Err(error) => return served.say(RunnerReply::Raised(raised(py, &error, &file)), 0),
        };
        let has_own_weights = workload.source == WorkloadSource::KernelBench && runner.weights.is_none();
        let (takes_memory, seconds) = (allocations(py) > before, since.elapsed().as_secs_f64());
        let tampered = [guard.changed(), evasion::end().evaded].concat();
        served.say(RunnerReply::Loaded { tampered, has_own_weights, takes_memory, seconds }, 0)?;
        (next, left) = served.until_another(runner, &guard, &file)?;
    }
    Ok(())
}

/// How often this process has allocated device memory, as counted by torch.
fn allocations(py: Python<'_>) -> u64 {
    if is_simulated() || torch_free::is_active(py) {
        return 0;
    }
    py.import("torch").and_then(|torch| torch_memory::allocations(&torch)).unwrap_or_default()
}

/// Imports the needed modules, and installs the hooks that observe a file.
fn prepare(py: Python<'_>, workload: &Workload) -> PyResult<()> {
    for ours in [shim, generators, super::replay::helpers, super::values::contents] {
        ours(py)?;
    }
    if !torch_free::is_active(py) {
        poison(py)?;
    }
    if workload.source == WorkloadSource::KernelBench {
        super::python_modules::weights(py)?;
        // The original's file determines the arguments of candidates.
        let _ = super::models::load(py, &workload.file);
        if !workload.gradients {
            // Gradients are off: the results of a kernel have no autograd history, and need not have that of torch's
            // operators.
            py.import("torch")?.call_method1("set_grad_enabled", (false,))?;
        }
    }
    evasion::install(py)
}

/// Forgets what the process has kept of the previous file.
fn forget(py: Python<'_>) -> PyResult<()> {
    tuning::forget();
    // Its kernels and tensors have reference cycles.
    py.import("gc")?.call_method0("collect")?;
    if is_simulated() || torch_free::is_active(py) {
        return Ok(());
    }
    py.import("torch.cuda")?.call_method0("reset_peak_memory_stats").map(drop)
}

/// The reply for a call that has returned. Results that cannot be read may be fake tensors that the file has kept.
fn reply_of(py: Python<'_>, ran: CallOutput) -> RunnerReply {
    match ran.results.unread().filter(|_| keeps_fake_tensors(py)) {
        Some(text) => {
            let cause = ExceptionCause::FakeTensor;
            RunnerReply::Raised(PythonException { text, cause, ..PythonException::default() })
        }
        None => RunnerReply::Ran(Box::new(ran)),
    }
}

/// Whether the file keeps fake tensors, which exist only while its kernels are compiled ahead. It may have cached them
/// or what belongs to them, so that later calls with real tensors fail.
fn keeps_fake_tensors(py: Python<'_>) -> bool {
    let kept = || -> PyResult<bool> {
        let modules = py.import("sys")?.getattr("modules")?;
        let module = modules.call_method1("get", ("torch._subclasses.fake_tensor",))?;
        if module.is_none() {
            return Ok(false);
        }
        let (class, gc) = (module.getattr("FakeTensor")?, py.import("gc")?);
        gc.call_method0("collect")?;
        for value in gc.call_method0("get_objects")?.try_iter()? {
            if value?.get_type().is(&class) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    kept().unwrap_or(false)
}

/// The judge's end of a runner.
struct Served<'a> {
    stream: UnixStream,
    fence: &'a Fence,
}

impl Served<'_> {
    fn say(&mut self, reply: RunnerReply, held: u64) -> PyResult<()> {
        Ok(write_frame(&mut self.stream, &AuthenticatedReply { token: self.fence.token, reply, held })?)
    }

    /// Handles requests for a file, until another file is to be loaded or the stream ends.
    fn until_another<'py>(
        &mut self,
        mut runner: Runner<'py, '_>,
        guard: &TamperCheck<'py>,
        file: &Path,
    ) -> PyResult<(Option<RunnerRequest>, CarriedState)> {
        let py = runner.py;
        while let Some(request) = read_frame(&mut self.stream)? {
            let mut large = false;
            let reply = match request {
                RunnerRequest::Load { .. } => return Ok((Some(request), runner.leave(file))),
                RunnerRequest::Compile { inputs, chosen, drafts } => Ok(runner.compile(file, &inputs, &chosen, drafts)),
                RunnerRequest::Run(call) => {
                    let ran = runner.call(&call, guard).map(|ran| reply_of(py, ran));
                    large |= call.tail.is_some();
                    ran
                }
                RunnerRequest::Measure(timing) => runner.measure(&timing, guard),
                RunnerRequest::Probe(wanted) => runner.probe(&wanted).map(RunnerReply::Probed),
                RunnerRequest::Copy => runner.copy_rate().map(RunnerReply::Copied),
                RunnerRequest::Release => runner.release().map(|()| RunnerReply::Released),
            };
            let is_early = runner.making.take();
            let failed = |error| {
                let mut exception = PythonException { is_early, ..raised(py, &error, file) };
                if exception.cause == ExceptionCause::Code && keeps_fake_tensors(py) {
                    exception.cause = ExceptionCause::FakeTensor;
                }
                RunnerReply::Raised(exception)
            };
            let reply = reply.unwrap_or_else(failed);
            // Other processes need the memory; an exception keeps the frames and thus the tensors alive. After some
            // errors nothing can be released.
            let released = if large { runner.release() } else { Ok(()) };
            let held = runner.held();
            self.say(reply, held.taken)?;
            released?;
            // After an error of the device this fails like every call.
            let _ = runner.trim(held);
        }
        Ok((None, CarriedState::default()))
    }
}

/// Initializes the device before the fence is put up, and sets the share of device memory that torch may use.
pub(super) fn warm(py: Python<'_>, fence: &Fence) -> PyResult<()> {
    if is_simulated() {
        return Ok(());
    }
    if launch_compilation::simulate_gpu(py)? {
        return Ok(());
    }
    if let (Some(device), false) = (&fence.compiles, torch_free::is_active(py)) {
        device_files::close_all();
        py.import("torch")?.call_method1("set_num_threads", (1,))?;
        return launch_compilation::compile_only(py, device);
    }
    device_files::close_others();
    if !fence.streams {
        py.import("os")?.getattr("environ")?.call_method1("setdefault", (CONNECTIONS_ENV, "1"))?;
    }
    if torch_free::is_active(py) {
        return torch_free::start(py, true);
    }
    let (torch, cuda) = (py.import("torch")?, py.import("torch.cuda")?);
    torch.call_method1("zeros", (1,))?.call_method0("cuda")?;
    cuda.call_method0("synchronize")?;
    // Many processes share the cores.
    torch.call_method1("set_num_threads", (1,))?;
    // Triton's launcher helper is compiled once for all processes.
    let _ =
        py.import("triton.runtime").and_then(|runtime| runtime.getattr("driver")?.getattr("active")?.getattr("utils"));
    if fence.device_memory > 0 {
        let total: u64 = cuda.call_method1("mem_get_info", (0,))?.get_item(1)?.extract()?;
        let share = (fence.device_memory as f64 / total as f64).min(1.0);
        cuda.call_method1("set_per_process_memory_fraction", (share,))?;
    }
    Ok(())
}
