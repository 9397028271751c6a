//! The warm parent: torch and Triton imported, no CUDA context. It forks a child for each candidate and answers for it.
#![expect(unsafe_code, reason = "processes, pipes and signals are system calls")]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::{child, failed};
use crate::protocol::{Environment, Job, PROTOCOL, Reason, Reply, Request, Verdict, read_frame, write_frame};

/// What a child may print before it is cut off in the evidence.
const OUTPUT_SHOWN: u64 = 2000;
/// A child may wait for the device for this many times its limit: others hold it for at most the limit each.
const MAX_WAITING: f64 = 64.0;

/// A child that judges one candidate.
struct Child {
    id: u64,
    pid: i32,
    /// Only frames with this token are the child's own; a candidate that finds the pipe does not know it.
    token: u64,
    pipe: File,
    received: Vec<u8>,
    verdict: Option<Verdict>,
    output: File,
    deadline: Instant,
    limit: f64,
}

/// What a child tells its parent, with the token that only the two know.
#[derive(Serialize, Deserialize)]
struct Sealed {
    token: u64,
    news: News,
}

#[derive(Serialize, Deserialize)]
pub(super) enum News {
    /// It waits for the device: its clock stands still.
    Waiting,
    /// It has the device: its clock starts anew.
    Running,
    /// It is done.
    Verdict(Box<Verdict>),
}

/// The child's end of its pipe.
pub(super) struct Report {
    pipe: File,
    token: u64,
}

impl Report {
    pub(super) fn send(&mut self, news: News) -> std::io::Result<()> {
        write_frame(&mut self.pipe, &Sealed { token: self.token, news })
    }
}

/// Serves requests on the stream `fd` until the server closes it.
#[pyfunction]
pub(super) fn serve(py: Python<'_>, fd: i32) -> PyResult<()> {
    die_with_parent();
    // SAFETY: the server hands this descriptor to us alone.
    let mut stream = unsafe { UnixStream::from_raw_fd(fd) };
    let environment = match environment(py) {
        Ok(environment) => environment,
        Err(error) => {
            let reason = format!("{error}; install what is missing in the interpreter {}", executable(py));
            return Ok(write_frame(&mut stream, &Reply::Unfit { reason })?);
        }
    };
    write_frame(&mut stream, &Reply::Ready { protocol: PROTOCOL, environment })?;
    let mut children: Vec<Child> = Vec::new();
    let served = serve_requests(py, &mut stream, &mut children);
    for child in &mut children {
        child.kill();
    }
    served
}

fn serve_requests(py: Python<'_>, stream: &mut UnixStream, children: &mut Vec<Child>) -> PyResult<()> {
    loop {
        let readable = wait(py, stream.as_raw_fd(), children)?;
        if readable.contains(&stream.as_raw_fd()) {
            match read_frame(stream)? {
                None => return Ok(()),
                Some(Request::Evaluate { id, job }) => {
                    children.push(spawn(py, id, &job, stream.as_raw_fd(), children)?)
                }
            }
        }
        let mut at = 0;
        while at < children.len() {
            let ended = readable.contains(&children[at].pipe.as_raw_fd()) && children[at].drain();
            let late = Instant::now() >= children[at].deadline;
            if ended || late {
                let mut child = children.swap_remove(at);
                let verdict = child.finish(late && !ended);
                write_frame(stream, &Reply::Verdict { id: child.id, verdict })?;
            } else {
                at += 1;
            }
        }
    }
}

/// Waits for the server, a child or a deadline; returns the readable descriptors.
fn wait(py: Python<'_>, server: RawFd, children: &[Child]) -> PyResult<Vec<RawFd>> {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> =
        std::iter::once(server).chain(children.iter().map(|child| child.pipe.as_raw_fd())).map(entry).collect();
    let left = children.iter().map(|child| child.deadline.saturating_duration_since(Instant::now())).min();
    let timeout = left.map_or(-1, |left| i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX));
    py.detach(|| {
        // SAFETY: the pointer and the length are of one vector.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    });
    py.check_signals()?;
    Ok(polled.into_iter().filter(|entry| entry.revents != 0).map(|entry| entry.fd).collect())
}

fn spawn(py: Python<'_>, id: u64, job: &Job, server: RawFd, siblings: &[Child]) -> PyResult<Child> {
    let (mine, theirs) = pipe()?;
    let output = memory_file()?;
    let token = random()?;
    let pid: i32 = py.import("os")?.call_method0("fork")?.extract()?;
    if pid == 0 {
        // SAFETY: these descriptors belong to the parent; the child ends by `_exit` and never drops their owners.
        unsafe {
            libc::close(server);
            siblings.iter().for_each(|sibling| {
                libc::close(sibling.pipe.as_raw_fd());
            });
            libc::setpgid(0, 0);
            libc::dup2(output.as_raw_fd(), 1);
            libc::dup2(output.as_raw_fd(), 2);
        }
        die_with_parent();
        let mut report = Report { pipe: File::from(theirs), token };
        let verdict = child::judge(py, job, &mut report);
        let sent = report.send(News::Verdict(Box::new(verdict)));
        // SAFETY: ends the process without running the parent's exit handlers in the child.
        unsafe { libc::_exit(i32::from(sent.is_err())) };
    }
    // SAFETY: also done by the child; whoever is first wins.
    unsafe { libc::setpgid(pid, pid) };
    let deadline = Instant::now() + Duration::from_secs_f64(job.limit);
    Ok(Child {
        id,
        pid,
        token,
        pipe: File::from(mine),
        received: Vec::new(),
        verdict: None,
        output,
        deadline,
        limit: job.limit,
    })
}

impl Child {
    /// Reads what is there; true when the child is done or the pipe has ended.
    fn drain(&mut self) -> bool {
        let mut chunk = [0; 1 << 16];
        match self.pipe.read(&mut chunk) {
            Ok(0) | Err(_) => true,
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
                self.hear();
                // A process that the candidate left behind may hold the pipe open: the verdict ends it too.
                self.verdict.is_some()
            }
        }
    }

    /// Takes whole frames off what was received; those without the token are somebody else's.
    fn hear(&mut self) {
        let mut rest = self.received.as_slice();
        while let Ok(Some(sealed)) = read_frame::<Sealed>(&mut rest) {
            if sealed.token == self.token {
                let from_now = |seconds| Instant::now() + Duration::from_secs_f64(seconds);
                match sealed.news {
                    News::Waiting => self.deadline = from_now(self.limit * MAX_WAITING),
                    News::Running => self.deadline = from_now(self.limit),
                    News::Verdict(verdict) => self.verdict = Some(*verdict),
                }
            }
            let read = self.received.len() - rest.len();
            self.received.drain(..read);
            rest = self.received.as_slice();
        }
    }

    fn finish(&mut self, late: bool) -> Verdict {
        let died = self.kill();
        self.verdict.take().unwrap_or_else(|| {
            let what = if late { format!("killed after {} s", self.limit) } else { died };
            Verdict::Refused { reason: Reason::Died, evidence: format!("{what}{}", self.last_output()) }
        })
    }

    /// Ends the child with everything that it started; says how it had ended.
    fn kill(&mut self) -> String {
        // A child that has closed its pipe is about to be a zombie: give it a moment to show its own status.
        for _ in 0..50 {
            if let Some(status) = self.reap(libc::WNOHANG) {
                self.kill_group();
                return status;
            }
            if self.verdict.is_some() || Instant::now() >= self.deadline {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        self.kill_group();
        self.reap(0).unwrap_or_default()
    }

    fn kill_group(&self) {
        // SAFETY: the group is the child's own.
        unsafe { libc::killpg(self.pid, libc::SIGKILL) };
    }

    fn reap(&self, flags: i32) -> Option<String> {
        let mut status = 0;
        // SAFETY: waits for our own child.
        if unsafe { libc::waitpid(self.pid, &raw mut status, flags) } <= 0 {
            return None;
        }
        Some(if libc::WIFSIGNALED(status) {
            format!("the process was killed by signal {}", libc::WTERMSIG(status))
        } else {
            format!("the process ended with status {} and no verdict", libc::WEXITSTATUS(status))
        })
    }

    fn last_output(&mut self) -> String {
        let mut tail = Vec::new();
        let length = self.output.metadata().map_or(0, |meta| meta.len());
        let start = SeekFrom::Start(length.saturating_sub(OUTPUT_SHOWN));
        if self.output.seek(start).and_then(|_| self.output.read_to_end(&mut tail)).is_err() || tail.is_empty() {
            return String::new();
        }
        format!("; it printed last:\n{}", String::from_utf8_lossy(&tail).trim_end())
    }
}

fn environment(py: Python<'_>) -> PyResult<Environment> {
    let version = |module: &str| -> PyResult<String> { py.import(module)?.getattr("__version__")?.extract() };
    let python: String = py.import("platform")?.call_method0("python_version")?.extract()?;
    let (torch, triton) = (version("torch")?, version("triton")?);
    // Imported now, so that no child pays for them.
    for warm in ["triton.language", "triton.runtime", "triton.compiler", "torch._subclasses.fake_tensor"] {
        py.import(warm)?;
    }
    Ok(Environment { python, torch, triton, ..Environment::default() })
}

fn executable(py: Python<'_>) -> String {
    py.import("sys").and_then(|sys| sys.getattr("executable")?.extract()).unwrap_or_else(|_| "python3".to_owned())
}

/// The kernel ends this process when its parent ends, however that happens.
fn die_with_parent() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

fn pipe() -> PyResult<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both; on success both are ours.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// A file without a name for what a child prints.
fn memory_file() -> PyResult<File> {
    // SAFETY: the name is a C string; on success the descriptor is ours.
    unsafe {
        let fd = libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(std::io::Error::last_os_error().into()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

fn random() -> PyResult<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).map_err(failed)?;
    Ok(u64::from_le_bytes(bytes))
}
