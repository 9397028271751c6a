//! What a runner is asked, one request after the other: files to load, and what to do with them.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use pyo3::prelude::*;

use protocol::runner::{Fence, Raised, RunnerReply, RunnerRequest, Sealed};
use protocol::{Source, Workload, is_simulated, read_frame, write_frame};

use super::export::Outlet;
use super::guard::Guard;
use super::runner::{Runner, raised};
use super::timing::Timer;
use super::{chance, draft, nodes, poison, raw, ready, shim, tuning, watch};

/// Of the driver: how many connections to the device a process has, through which its streams launch side by side.
const CONNECTIONS_ENV: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// What of a file stays for the next one in the same process: memory that the comparer has opened, and what times are measured with.
#[derive(Default)]
pub(super) struct Left {
    pub(super) outlet: Option<Outlet>,
    pub(super) timer: Option<Timer>,
}

/// Serves the judge until it closes the stream.
pub(super) fn run(py: Python<'_>, stream: UnixStream, fence: &Fence) {
    // The judge has gone, or our own machinery fails: either way the process ends, and the judge hears of that.
    let _ = serve(py, stream, fence);
}

fn serve(py: Python<'_>, stream: UnixStream, fence: &Fence) -> PyResult<()> {
    let mut served = Served { stream, fence };
    let mut next = read_frame(&mut served.stream)?;
    let (mut left, mut is_first) = (Left::default(), true);
    while let Some(RunnerRequest::Load { file, folder, workload, is_candidate, weights }) = next {
        if is_first {
            prepare(py, &workload)?;
        } else {
            forget(py)?;
        }
        is_first = false;
        let (guard, before, since) = (Guard::new(py)?, allocations(py), Instant::now());
        let whose = (is_candidate, weights);
        let runner = match Runner::load(py, (&file, &folder), &workload, whose, fence, left) {
            Ok(runner) => runner,
            Err(error) => return served.say(RunnerReply::Raised(raised(py, &error, &file)), 0),
        };
        let has_own_weights = workload.source == Source::KernelBench && runner.weights.is_none();
        let (takes_memory, seconds) = (allocations(py) > before, since.elapsed().as_secs_f64());
        served.say(RunnerReply::Loaded { tampered: guard.changed(), has_own_weights, takes_memory, seconds }, 0)?;
        (next, left) = served.until_another(runner, &guard, &file)?;
    }
    Ok(())
}

/// How often this process has taken memory of the device, as far as torch knows.
fn allocations(py: Python<'_>) -> u64 {
    if is_simulated() || raw::is_raw(py) {
        return 0;
    }
    py.import("torch").and_then(|torch| ready::allocations(&torch)).unwrap_or_default()
}

/// Imports what is needed and puts itself in front of what tells of a file.
fn prepare(py: Python<'_>, workload: &Workload) -> PyResult<()> {
    for ours in [shim, chance, super::replay::helpers, super::values::contents] {
        ours(py)?;
    }
    if !raw::is_raw(py) {
        poison(py)?;
    }
    if workload.source == Source::KernelBench {
        super::weights(py)?;
        // It says what candidates are called with.
        let _ = super::models::load(py, &workload.file);
        if !workload.gradients {
            // Forward alone: what a kernel computes has no history, and need not have the one of torch's operators.
            py.import("torch")?.call_method1("set_grad_enabled", (false,))?;
        }
    }
    watch::install(py)
}

/// Forgets what the process has kept of the file before.
fn forget(py: Python<'_>) -> PyResult<()> {
    tuning::forget();
    // Its kernels and tensors refer to each other.
    py.import("gc")?.call_method0("collect")?;
    if is_simulated() || raw::is_raw(py) {
        return Ok(());
    }
    py.import("torch.cuda")?.call_method0("reset_peak_memory_stats").map(drop)
}

/// The judge's end of a runner.
struct Served<'a> {
    stream: UnixStream,
    fence: &'a Fence,
}

impl Served<'_> {
    fn say(&mut self, reply: RunnerReply, held: u64) -> PyResult<()> {
        Ok(write_frame(&mut self.stream, &Sealed { token: self.fence.token, reply, held })?)
    }

    /// Does what is asked of a file, until another one is to be loaded or nobody asks any more.
    fn until_another<'py>(
        &mut self,
        mut runner: Runner<'py, '_>,
        guard: &Guard<'py>,
        file: &Path,
    ) -> PyResult<(Option<RunnerRequest>, Left)> {
        let py = runner.py;
        while let Some(request) = read_frame(&mut self.stream)? {
            let mut large = false;
            let reply = match request {
                RunnerRequest::Load { .. } => return Ok((Some(request), runner.leave(file))),
                RunnerRequest::Compile { inputs, chosen, drafts } => Ok(runner.compile(&inputs, &chosen, drafts)),
                RunnerRequest::Run(call) => {
                    let ran = runner.call(&call, guard).map(|ran| RunnerReply::Ran(Box::new(ran)));
                    large |= call.tail.is_some();
                    ran
                }
                RunnerRequest::Measure(timing) => runner.measure(&timing, guard),
                RunnerRequest::Probe(wanted) => runner.probe(&wanted).map(RunnerReply::Probed),
                RunnerRequest::Copy => runner.copy_rate().map(RunnerReply::Copied),
                RunnerRequest::Release => runner.release().map(|()| RunnerReply::Released),
            };
            let is_early = runner.making.take();
            let failed = |error| RunnerReply::Raised(Raised { is_early, ..raised(py, &error, file) });
            let reply = reply.unwrap_or_else(failed);
            // Others need the memory; an error keeps what it went through. After some errors there is nothing to be given back.
            let released = if large { runner.release() } else { Ok(()) };
            let held = runner.held();
            self.say(reply, held.taken)?;
            released?;
            // After an error of the device this fails as everything does.
            let _ = runner.trim(held);
        }
        Ok((None, Left::default()))
    }
}

/// Starts the device, before the process is fenced in, and tells torch how much of its memory it may take.
pub(super) fn warm(py: Python<'_>, fence: &Fence) -> PyResult<()> {
    if is_simulated() {
        return Ok(());
    }
    if draft::play(py)? {
        return Ok(());
    }
    if let (Some(device), false) = (&fence.compiles, raw::is_raw(py)) {
        nodes::close_all();
        py.import("torch")?.call_method1("set_num_threads", (1,))?;
        return draft::compile_only(py, device);
    }
    nodes::close_others();
    if !fence.streams {
        py.import("os")?.getattr("environ")?.call_method1("setdefault", (CONNECTIONS_ENV, "1"))?;
    }
    if raw::is_raw(py) {
        return raw::start(py, true);
    }
    let (torch, cuda) = (py.import("torch")?, py.import("torch.cuda")?);
    torch.call_method1("zeros", (1,))?.call_method0("cuda")?;
    cuda.call_method0("synchronize")?;
    // Many processes share the cores.
    torch.call_method1("set_num_threads", (1,))?;
    // Triton's own helper is compiled once for all, not in each process anew.
    let _ =
        py.import("triton.runtime").and_then(|runtime| runtime.getattr("driver")?.getattr("active")?.getattr("utils"));
    if fence.device_memory > 0 {
        let total: u64 = cuda.call_method1("mem_get_info", (0,))?.get_item(1)?.extract()?;
        let share = (fence.device_memory as f64 / total as f64).min(1.0);
        cuda.call_method1("set_per_process_memory_fraction", (share,))?;
    }
    Ok(())
}
