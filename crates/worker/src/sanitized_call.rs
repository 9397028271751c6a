//! One call in a process of its own, which a checker of device memory observes from outside.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pyo3::prelude::*;

use protocol::runner::{IsolatedCall, WatchedProgram, Weights};

use super::bytecode::kept;
use super::errors::failed;
use super::runner::Runner;
use super::runner_requests::{CarriedState, warm};
use super::sandbox::{Readable, enter};
use super::torch_free;
use super::tuning::{TunerMode, Tuners};

/// Replaces this process by the checker. Returns only on failure, with the error.
pub(super) fn become_checker(watched: &WatchedProgram) -> PyErr {
    let Some((program, arguments)) = watched.command.split_first() else { return failed("nothing to start") };
    let error = Command::new(program).args(arguments).envs(watched.variables.iter().cloned()).exec();
    failed(format!("{program}: {error}"))
}

/// Locks the device for shared use for the life of this process: at once, or when no process holds it exclusively any
/// more.
fn beside_others(py: Python<'_>, device: &Path) -> PyResult<()> {
    let file = File::options().create(true).truncate(false).write(true).open(device)?;
    py.detach(|| file.lock_shared())?;
    // Releasing the memory at the end uses the device as well.
    std::mem::forget(closed_last(file));
    Ok(())
}

/// A descriptor number above those of nearly all processes.
const ABOVE_OTHERS: libc::c_int = 900;

/// Duplicates the file to a high descriptor. A process that is killed closes its descriptors in order, and uses the
/// device until the driver's are closed; an autotuner that began to measure earlier found its first configuration slow.
#[expect(unsafe_code, reason = "only system calls know descriptors above others")]
fn closed_last(file: File) -> File {
    // SAFETY: a descriptor of this process is copied; where that fails, nothing is.
    let copy = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, ABOVE_OTHERS) };
    // SAFETY: the descriptor is new, and nothing else owns it.
    if copy < 0 { file } else { unsafe { File::from_raw_fd(copy) } }
}

/// How often to check whether the call has been described.
const GLANCE: Duration = Duration::from_millis(5);

/// Reads the description in the file at `path`, and waits until the file exists: the process may start before its call
/// is known.
fn described(py: Python<'_>, path: &Path) -> PyResult<IsolatedCall> {
    // The folder is removed when the requesting process ends.
    let may_come = || path.parent().is_some_and(Path::exists);
    py.detach(|| {
        while !path.exists() && may_come() {
            std::thread::sleep(GLANCE);
        }
    });
    serde_json::from_slice(&std::fs::read(path)?).map_err(failed)
}

/// Makes the call that the file at `path` describes, once, behind the fence if the description has one.
#[pyfunction]
pub(super) fn checked(py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
    kept(py, || {
        // Where torch is installed it is imported as well.
        torch_free::missing_torch(py)?;
        ["triton.language", "triton.runtime", "triton.compiler"]
            .iter()
            .try_for_each(|module| py.import(*module).map(drop))
    })?;
    let readable = Readable::of(py)?;
    let job = described(py, &path)?;
    beside_others(py, &job.device)?;
    // The checker has opened its sockets by then, which the fence forbids later.
    warm(py, &job.fence)?;
    if job.unfenced && !job.is_candidate {
        std::fs::create_dir_all(&job.fence.scratch)?;
        std::env::set_current_dir(&job.fence.scratch)?;
    } else {
        enter(py, &job.fence, &readable)?;
    }
    let workload = &job.workload;
    let whose = (job.is_candidate, Weights::default());
    let runner = Runner::load(py, (&job.file, &job.folder), workload, whose, &job.fence, CarriedState::default())?;
    let arguments = runner.replay.arguments(&job.inputs)?;
    runner.seed(&job.inputs)?;
    Tuners::install(py, TunerMode::Each, &job.chosen)?;
    let out = runner.invoke(&arguments)?;
    if workload.gradients {
        runner.gradients(&out, &arguments, &job.inputs)?;
    }
    runner.synchronize()
}
