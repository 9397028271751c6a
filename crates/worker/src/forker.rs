//! The forker: a warm parent process that has imported torch and Triton and has no CUDA context. It forks runners and
//! comparers on the judge's request.
#![expect(unsafe_code, reason = "processes and descriptors are handled by system calls")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use fence::{LinuxFeatures, process_tree};
use protocol::descriptor_passing::receive;
use protocol::runner::{ChildRole, ExceptionCause, ExitCause, ForkerReply, ForkerRequest};
use protocol::{PROTOCOL, RuntimeVersions, is_simulated, read_frame, write_frame};

use super::bytecode::{import_later, kept};
use super::errors::{cause, describe};
use super::python_modules::helper;
use super::sandbox::Readable;
use super::supervisor::{self, SupervisorReport};
use super::torch_free;

/// How long supervisors may take to end their children after the judge has gone.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A child process, as the forker sees it.
struct Child {
    id: u64,
    /// The process id of its supervisor.
    supervisor: i32,
    /// The socket to its supervisor.
    leash: UnixStream,
}

/// Forks children as requested on the stream `fd`, until the judge closes it.
#[pyfunction]
pub(super) fn forker(py: Python<'_>, fd: i32) -> PyResult<()> {
    // SAFETY: the server hands this descriptor to us alone.
    let control = unsafe { UnixStream::from_raw_fd(fd) };
    set_close_on_exec(fd);
    let imported = kept(py, || environment(py));
    let warm = imported.and_then(|environment| Ok((environment, Readable::of(py)?)));
    let (environment, readable) = match warm {
        Ok(warm) => warm,
        Err(error) => {
            let reason = format!("{error}; install what is missing in the interpreter {}", executable(py));
            return Ok(write_frame(&mut &control, &ForkerReply::Unfit { reason })?);
        }
    };
    // Frozen objects are skipped by the garbage collector in each child, so their memory stays shared.
    py.import("gc")?.call_method0("freeze")?;
    supervisor::adopt_orphans();
    let unfenced = LinuxFeatures::running().missing();
    write_frame(&mut &control, &ForkerReply::Ready { protocol: PROTOCOL, environment, unfenced })?;
    let mut forker = Forker { control, children: Vec::new(), readable, folders: Vec::new() };
    let served = forker.serve(py);
    forker.end();
    served
}

struct Forker {
    control: UnixStream,
    children: Vec<Child>,
    readable: Readable,
    /// Folders that are removed in the end.
    folders: Vec<PathBuf>,
}

impl Forker {
    fn serve(&mut self, py: Python<'_>) -> PyResult<()> {
        loop {
            let ready = py.detach(|| self.wait());
            py.check_signals()?;
            if ready[0] {
                match receive::<ForkerRequest>(&self.control)? {
                    None => return Ok(()),
                    Some((ForkerRequest::Spawn { id, role }, Some(socket))) => self.spawn(py, id, &role, socket)?,
                    Some((ForkerRequest::Spawn { id, .. }, None)) => {
                        self.unstarted(id, "no socket came along", ExceptionCause::default())?
                    }
                    Some((ForkerRequest::Kill { id }, _)) => self.kill(id),
                    Some((ForkerRequest::Owns { folder }, _)) => self.folders.push(folder),
                }
            }
            // Children that were spawned just now are at the end of the list.
            let ended: Vec<u64> =
                ready[1..].iter().zip(&self.children).filter(|(ready, _)| **ready).map(|(_, child)| child.id).collect();
            for id in ended {
                self.take_leave(id)?;
            }
        }
    }

    /// Waits for a request of the judge or the end of a child; returns for each descriptor whether it is ready.
    fn wait(&self) -> Vec<bool> {
        let all = std::iter::once(&self.control).chain(self.children.iter().map(|child| &child.leash));
        let entry = |stream: &UnixStream| libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<libc::pollfd> = all.map(entry).collect();
        // SAFETY: the pointer and the length are of one vector.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        polled.into_iter().map(|entry| entry.revents != 0).collect()
    }

    fn spawn(&mut self, py: Python<'_>, id: u64, role: &ChildRole, socket: OwnedFd) -> PyResult<()> {
        match supervisor::spawn(py, role, socket, &self.readable) {
            Ok((supervisor, leash)) => {
                self.children.push(Child { id, supervisor, leash });
                Ok(())
            }
            Err(error) => self.unstarted(id, &describe(py, &error), cause(py, &error)),
        }
    }

    fn unstarted(&self, id: u64, why: &str, cause: ExceptionCause) -> PyResult<()> {
        Ok(self.say(id, SupervisorReport::unstarted(why.to_owned(), cause))?)
    }

    /// Closes the socket to the supervisor, which then ends the child and reports it.
    fn kill(&self, id: u64) {
        for child in self.children.iter().filter(|child| child.id == id) {
            let _ = child.leash.shutdown(std::net::Shutdown::Write);
        }
    }

    fn take_leave(&mut self, id: u64) -> PyResult<()> {
        let Some(at) = self.children.iter().position(|child| child.id == id) else { return Ok(()) };
        let mut child = self.children.remove(at);
        let told = read_frame::<SupervisorReport>(&mut child.leash);
        let lost = || SupervisorReport { how: ExitCause::Killed, output: String::new() };
        let ended = told.ok().flatten().unwrap_or_else(lost);
        // The supervisor has ended or is about to end.
        let mut status = 0;
        // SAFETY: the supervisor is our child and not yet taken leave of; the pointer is of a local.
        unsafe { libc::waitpid(child.supervisor, &raw mut status, 0) };
        drop(child);
        self.end_strays();
        Ok(self.say(id, ended)?)
    }

    fn say(&self, id: u64, ended: SupervisorReport) -> io::Result<()> {
        let SupervisorReport { how, output } = ended;
        write_frame(&mut &self.control, &ForkerReply::Ended { id, how, output })
    }

    /// Ends processes that a supervisor could not end.
    fn end_strays(&self) {
        for pid in process_tree::children(std::process::id().cast_signed()) {
            if self.children.iter().all(|child| child.supervisor != pid) {
                // SAFETY: the process is our child and not a supervisor.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                let mut status = 0;
                // SAFETY: as above; the pointer is of a local.
                unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
            }
        }
    }

    /// Releases all children, waits for their supervisors, and removes the children's folders.
    fn end(&mut self) {
        for child in &self.children {
            let _ = child.leash.shutdown(std::net::Shutdown::Write);
        }
        let deadline = Instant::now() + END_LIMIT;
        while !self.children.is_empty() && Instant::now() < deadline {
            while let Some((pid, _)) = supervisor::next_dead() {
                self.children.retain(|child| child.supervisor != pid);
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        self.end_strays();
        for folder in &self.folders {
            // The judge may have removed it already.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn set_close_on_exec(fd: i32) {
    // SAFETY: no pointers.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

fn environment(py: Python<'_>) -> PyResult<RuntimeVersions> {
    let version = |module: &str| -> PyResult<String> { py.import(module)?.getattr("__version__")?.extract() };
    let python: String = py.import("platform")?.call_method0("python_version")?.extract()?;
    let is_torch_free = torch_free::missing_torch(py)?.is_some();
    let torch = if is_torch_free { String::new() } else { version("torch")? };
    let triton = version("triton")?;
    // These are imported here, so that no child has to import them.
    let of_torch: &[&str] = if is_torch_free { &[] } else { &["torch._subclasses.fake_tensor", "torch._dynamo"] };
    for warm in ["triton.language", "triton.runtime", "triton.compiler"].iter().chain(of_torch) {
        py.import(*warm)?;
    }
    import_later(py);
    if is_simulated() {
        // For processes that compile nothing.
        helper(py, "_warpsmith_interpreter", include_str!("interpreter.py"))?.getattr("hasten")?.call0()?;
        return Ok(RuntimeVersions { python, torch, triton, ..RuntimeVersions::default() });
    }
    // Triton hashes its own files, which takes 0.4 s in each process that compiles. The function is in another module
    // in older versions.
    for module in ["triton.runtime.cache", "triton.compiler.compiler"] {
        if let Ok(key) = py.import(module).and_then(|module| module.getattr("triton_key")) {
            key.call0()?;
            break;
        }
    }
    Ok(RuntimeVersions { python, torch, triton, ..RuntimeVersions::default() })
}

fn executable(py: Python<'_>) -> String {
    py.import("sys").and_then(|sys| sys.getattr("executable")?.extract()).unwrap_or_else(|_| "python3".to_owned())
}
