//! One call in a process of its own that a checker of the device's memory watches from outside.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pyo3::prelude::*;

use protocol::runner::{Alone, Watched, Weights};

use super::bytecode::kept;
use super::runner::Runner;
use super::sandbox::{Readable, enter};
use super::serve::{Left, warm};
use super::tuning::{Tuners, Way};
use super::{failed, raw};

/// Becomes the checker. Returns only why it cannot.
pub(super) fn become_checker(watched: &Watched) -> PyErr {
    let Some((program, arguments)) = watched.command.split_first() else { return failed("nothing to start") };
    let error = Command::new(program).args(arguments).envs(watched.variables.iter().cloned()).exec();
    failed(format!("{program}: {error}"))
}

/// Takes the device for as long as this process is there: at once, or when nobody has it alone any more.
fn beside_others(py: Python<'_>, device: &Path) -> PyResult<()> {
    let file = File::options().create(true).truncate(false).write(true).open(device)?;
    py.detach(|| file.lock_shared())?;
    // To give memory back at the end uses the device, too.
    std::mem::forget(closed_last(file));
    Ok(())
}

/// No descriptor of a process is above this one, but those of whoever has nearly as many as there may be.
const ABOVE_OTHERS: libc::c_int = 900;

/// The same file behind all others: a process that is killed closes them in their order, and the device is in use until its own are closed. An
/// autotuner that began to measure before found the first of its configurations slow.
#[expect(unsafe_code, reason = "only system calls know descriptors above others")]
fn closed_last(file: File) -> File {
    // SAFETY: a descriptor of this process is copied; where that fails, nothing is.
    let copy = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, ABOVE_OTHERS) };
    // SAFETY: it is new, and nobody else's.
    if copy < 0 { file } else { unsafe { File::from_raw_fd(copy) } }
}

/// How often it is looked whether it is known what to call.
const GLANCE: Duration = Duration::from_millis(5);

/// What the file at `path` describes, once it is there: who starts before that is needed waits.
fn described(py: Python<'_>, path: &Path) -> PyResult<Alone> {
    // The folder goes with who would ask.
    let may_come = || path.parent().is_some_and(Path::exists);
    py.detach(|| {
        while !path.exists() && may_come() {
            std::thread::sleep(GLANCE);
        }
    });
    serde_json::from_slice(&std::fs::read(path)?).map_err(failed)
}

/// Makes the call that the file at `path` describes, once, behind the fence if it is to be.
#[pyfunction]
pub(super) fn checked(py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
    kept(py, || {
        // Torch, too, where it is there.
        raw::missing_torch(py)?;
        ["triton.language", "triton.runtime", "triton.compiler"]
            .iter()
            .try_for_each(|module| py.import(*module).map(drop))
    })?;
    let readable = Readable::of(py)?;
    let job = described(py, &path)?;
    beside_others(py, &job.device)?;
    // What the checker needs of sockets, it has by then; the fence closes them as for everybody.
    warm(py, &job.fence)?;
    if job.unfenced && !job.is_candidate {
        std::fs::create_dir_all(&job.fence.scratch)?;
        std::env::set_current_dir(&job.fence.scratch)?;
    } else {
        enter(py, &job.fence, &readable)?;
    }
    let workload = &job.workload;
    let whose = (job.is_candidate, Weights::default());
    let runner = Runner::load(py, (&job.file, &job.folder), workload, whose, &job.fence, Left::default())?;
    let arguments = runner.replay.arguments(&job.inputs)?;
    runner.seed(&job.inputs)?;
    Tuners::install(py, Way::Each, &job.chosen)?;
    let out = runner.invoke(&arguments)?;
    if workload.gradients {
        runner.gradients(&out, &arguments, &job.inputs)?;
    }
    runner.synchronize()
}
