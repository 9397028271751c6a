//! The supervisor of one child: it enforces the child's limits, counts and ends the processes that the child starts, and
//! reports how the child ended.
//!
//! The supervisor is a process between the forker and the child. Orphans of the child are re-parented to the supervisor, so
//! that each process belongs to exactly one child. Only our own code runs here.
#![expect(unsafe_code, reason = "processes, signals and descriptors are handled by system calls")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use fence::process_tree;
use protocol::descriptor_passing::{receive, send_with};
use protocol::runner::{ChildRole, ExceptionCause, ExitCause, Fence};
use protocol::write_frame;

use super::errors::{cause, describe};
use super::sandbox::{self, Readable};
use super::{comparer, runner_requests, sanitized_call};

/// How often the limits are checked.
const WATCH: Duration = Duration::from_millis(20);
/// The number of characters that are kept of a child's output.
const OUTPUT_SHOWN: usize = 4000;
/// A process that the kernel cannot end within this time, for example because a driver blocks it, is left to the
/// forker.
const END_LIMIT: Duration = Duration::from_secs(30);
/// The number of threads that torch, the driver and the compiler may start, besides a few per core.
const HELPERS: u64 = 64;

/// The supervisor's only report to the forker.
#[derive(Serialize, Deserialize)]
pub(super) struct SupervisorReport {
    pub(super) how: ExitCause,
    pub(super) output: String,
}

impl SupervisorReport {
    /// The report of a child that never ran.
    pub(super) fn unstarted(why: String, cause: ExceptionCause) -> Self {
        Self { how: ExitCause::Unstarted { why, cause }, output: String::new() }
    }
}

/// The child's report to its supervisor before it runs anything; the descriptor for answering comes along.
#[derive(Serialize, Deserialize)]
enum Prepared {
    Ready,
    Failed { why: String, cause: ExceptionCause },
}

/// Forks a child with its supervisor. Returns the supervisor's process id and the socket to the supervisor: it delivers the report
/// of the end, and closing it ends the child.
pub(super) fn spawn(
    py: Python<'_>,
    role: &ChildRole,
    socket: OwnedFd,
    readable: &Readable,
) -> PyResult<(i32, UnixStream)> {
    let (leash, theirs) = UnixStream::pair()?;
    let pid = fork(py)?;
    if pid != 0 {
        return Ok((pid, leash));
    }
    let guarded = std::panic::AssertUnwindSafe(|| {
        close_others(&[theirs.as_raw_fd(), socket.as_raw_fd()]);
        keep(py, role, socket, readable, &theirs)
    });
    let ended = match std::panic::catch_unwind(guarded) {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => SupervisorReport::unstarted(describe(py, &error), cause(py, &error)),
        Err(_) => SupervisorReport::unstarted("its supervisor failed".to_owned(), ExceptionCause::default()),
    };
    let sent = write_frame(&mut &theirs, &ended);
    // SAFETY: ends the process without running the forker's exit handlers.
    unsafe { libc::_exit(i32::from(sent.is_err())) }
}

/// Forks through Python, so that Python's hooks for forks run.
fn fork(py: Python<'_>) -> PyResult<i32> {
    py.import("os")?.call_method0("fork")?.extract()
}

/// Makes the kernel re-parent orphans below this process to it.
pub(super) fn adopt_orphans() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

fn keep(
    py: Python<'_>,
    role: &ChildRole,
    socket: OwnedFd,
    readable: &Readable,
    leash: &UnixStream,
) -> PyResult<SupervisorReport> {
    // SAFETY: no pointers.
    unsafe { libc::setpgid(0, 0) };
    adopt_orphans();
    let ends = Ends::watch()?;
    let output = memory_file()?;
    let (setup, theirs) = UnixStream::pair()?;
    let supervisor = std::process::id();
    let pid = fork(py)?;
    if pid == 0 {
        ends.unwatch();
        become_child(py, role, socket, readable, theirs, &output, supervisor);
    }
    drop((socket, theirs));
    let mut kept = ChildTree { pid, ends, output, fence: None, listener: None, inherited: 0 };
    let how = match receive::<Prepared>(&setup) {
        Ok(Some((Prepared::Failed { why, cause }, _))) => ExitCause::Unstarted { why, cause },
        Ok(Some((Prepared::Ready, listener))) => {
            let fence = match role {
                ChildRole::Runner(fence) => Some(&**fence),
                ChildRole::Watched(watched) => Some(&watched.fence),
                ChildRole::Comparer => None,
            };
            if fence.is_some() {
                kept.inherited = process_tree::usage_of(pid).unwrap_or_default().memory;
                (kept.fence, kept.listener) = (fence, listener);
            }
            kept.attend(leash)
        }
        // The child ended before it reported anything.
        _ => kept.attend(leash),
    };
    kept.end_all();
    let how = if kept.is_output_full() { ExitCause::OutputLimit } else { how };
    Ok(SupervisorReport { how, output: tail(&mut kept.output) })
}

/// Runs the child; never returns.
fn become_child(
    py: Python<'_>,
    role: &ChildRole,
    socket: OwnedFd,
    readable: &Readable,
    setup: UnixStream,
    output: &File,
    supervisor: u32,
) -> ! {
    let guarded = std::panic::AssertUnwindSafe(move || -> PyResult<()> {
        leave_family(output, supervisor)?;
        close_others(&[socket.as_raw_fd(), setup.as_raw_fd()]);
        prepare(py, role, readable, &setup)?;
        // The child must not keep the descriptor that prepared it.
        drop(setup);
        match role {
            ChildRole::Runner(fence) => runner_requests::run(py, UnixStream::from(socket), fence),
            ChildRole::Comparer => comparer::run(py, UnixStream::from(socket)),
            ChildRole::Watched(watched) => return Err(sanitized_call::become_checker(watched)),
        }
        Ok(())
    });
    let is_fine = matches!(std::panic::catch_unwind(guarded), Ok(Ok(())));
    let sys = py.import("sys");
    for stream in ["stdout", "stderr"] {
        let _ = sys.as_ref().map(|sys| sys.getattr(stream).and_then(|stream| stream.call_method0("flush")));
    }
    // SAFETY: flushes the buffers of C, and ends without running the forker's exit handlers.
    unsafe {
        libc::fflush(ptr::null_mut());
        libc::_exit(i32::from(!is_fine));
    }
}

/// Puts the child behind the fence, if it has one, and reports to the supervisor.
fn prepare(py: Python<'_>, role: &ChildRole, readable: &Readable, setup: &UnixStream) -> PyResult<()> {
    let fenced = match role {
        // The driver opens sockets when it starts, which the fence forbids later.
        ChildRole::Runner(fence) => runner_requests::warm(py, fence).and_then(|()| sandbox::enter(py, fence, readable)),
        ChildRole::Comparer | ChildRole::Watched(_) => Ok(None),
    };
    match fenced {
        Ok(Some(listener)) => send_with(setup, &Prepared::Ready, listener.as_fd())?,
        Ok(None) => write_frame(&mut &*setup, &Prepared::Ready)?,
        Err(error) => {
            let why = format!("its fence could not be put up: {error}");
            write_frame(&mut &*setup, &Prepared::Failed { why, cause: cause(py, &error) })?;
            return Err(error);
        }
    }
    // Line buffering keeps the output even if the process dies in the next line.
    let lines = PyDict::new(py);
    lines.set_item("line_buffering", true)?;
    lines.set_item("errors", "backslashreplace")?;
    for stream in ["stdout", "stderr"] {
        py.import("sys")?.getattr(stream)?.call_method("reconfigure", (), Some(&lines))?;
    }
    Ok(())
}

/// Gives the child its own session, makes it end with its supervisor, and sends its output into the file.
fn leave_family(output: &File, supervisor: u32) -> io::Result<()> {
    let nothing = File::open("/dev/null")?;
    // SAFETY: the descriptors are open; no pointers besides.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if u32::try_from(libc::getppid()) != Ok(supervisor) {
            libc::_exit(1);
        }
        libc::setsid();
        for (from, to) in [(&nothing, 0), (output, 1), (output, 2)] {
            if libc::dup2(from.as_raw_fd(), to) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// A child with all processes below it.
struct ChildTree<'f> {
    pid: i32,
    ends: Ends,
    output: File,
    fence: Option<&'f Fence>,
    listener: Option<OwnedFd>,
    /// Bytes of memory that the child inherited from the forker.
    inherited: u64,
}

impl ChildTree<'_> {
    /// Watches the child until it ends, exceeds a limit, or is no longer wanted.
    fn attend(&mut self, leash: &UnixStream) -> ExitCause {
        let mut looked = Instant::now();
        loop {
            let watched = self.fence.is_some().then_some(WATCH);
            let listener = self.listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            let [held, ended, asked] = wait([leash.as_raw_fd(), self.ends.0.as_raw_fd(), listener], watched);
            if ended != 0
                && let Some(end) = self.reap()
            {
                return end;
            }
            if held != 0 {
                return ExitCause::Killed;
            }
            if asked & libc::POLLIN != 0 {
                if let Some(end) = self.answer() {
                    return end;
                }
            } else if asked != 0 {
                self.listener = None;
            }
            if watched.is_some() && looked.elapsed() >= WATCH {
                if let Some(end) = self.passed_limit() {
                    return end;
                }
                looked = Instant::now();
            }
        }
    }

    /// Reaps ended processes; returns how the child itself ended, if it did.
    fn reap(&mut self) -> Option<ExitCause> {
        self.ends.drain();
        let mut end = None;
        while let Some((pid, status)) = next_dead() {
            if pid == self.pid {
                end = Some(if libc::WIFSIGNALED(status) {
                    ExitCause::Signal(libc::WTERMSIG(status))
                } else {
                    ExitCause::Status(libc::WEXITSTATUS(status))
                });
            }
        }
        end
    }

    /// Handles a descendant that wants to start another process and waits for permission.
    fn answer(&mut self) -> Option<ExitCause> {
        let (fence, listener) = (self.fence?, self.listener.as_ref()?);
        // SAFETY: the structures are zero where the kernel requires that; the pointers are to local variables.
        unsafe {
            let mut asked: libc::seccomp_notif = zeroed();
            if libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) != 0 {
                // The asking process has ended.
                return None;
            }
            if self.below() > fence.processes {
                return Some(ExitCause::ProcessLimit);
            }
            let mut answer: libc::seccomp_notif_resp = zeroed();
            answer.id = asked.id;
            answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer);
        }
        None
    }

    /// The number of processes, including the child.
    fn below(&self) -> u64 {
        process_tree::descendants(std::process::id().cast_signed()).len() as u64
    }

    fn passed_limit(&self) -> Option<ExitCause> {
        let fence = self.fence?;
        let usage = process_tree::usage(&process_tree::descendants(std::process::id().cast_signed()), self.inherited);
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let threads = fence.processes + HELPERS + 4 * cores;
        if fence.memory > 0 && usage.memory > fence.memory {
            Some(ExitCause::MemoryLimit)
        } else if fence.processes > 0 && (usage.processes > fence.processes + 1 || usage.threads > threads) {
            Some(ExitCause::ProcessLimit)
        } else {
            self.is_output_full().then_some(ExitCause::OutputLimit)
        }
    }

    fn is_output_full(&self) -> bool {
        let most = self.fence.map_or(0, |fence| fence.output);
        most > 0 && self.output.metadata().is_ok_and(|meta| meta.len() >= most)
    }

    /// Ends the child and all processes below it, until none is left.
    fn end_all(&mut self) {
        let deadline = Instant::now() + END_LIMIT;
        while has_children() && Instant::now() < deadline {
            for pid in process_tree::descendants(std::process::id().cast_signed()) {
                // SAFETY: the process is below us, or just ended and waits for us or its parent there.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            wait([self.ends.0.as_raw_fd(), -1, -1], Some(Duration::from_millis(5)));
            self.ends.drain();
            while next_dead().is_some() {}
        }
    }
}

/// The next ended child of this process: its process id and status.
pub(super) fn next_dead() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the pointer is to a local variable.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

fn has_children() -> bool {
    // SAFETY: the structure is plain data, for which zero is valid; no child is reaped.
    unsafe {
        let mut info: libc::siginfo_t = zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Waits until one of the descriptors is ready, for at most `most`; returns the events of each.
fn wait(fds: [RawFd; 3], most: Option<Duration>) -> [i16; 3] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let timeout = most.map_or(-1, |most| i32::try_from(most.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: the pointer and the length describe one array.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    polled.map(|entry| entry.revents)
}

/// A descriptor that reports ended children.
struct Ends(OwnedFd);

impl Ends {
    fn watch() -> io::Result<Self> {
        Self::mask(libc::SIG_BLOCK);
        // SAFETY: the set is a local variable; on success the descriptor is ours.
        unsafe {
            let set = Self::set();
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(OwnedFd::from_raw_fd(fd))) }
        }
    }

    /// Restores normal signal delivery in a child.
    fn unwatch(&self) {
        Self::mask(libc::SIG_UNBLOCK);
    }

    fn mask(how: i32) {
        let set = Self::set();
        // SAFETY: the set is a local variable.
        unsafe { libc::pthread_sigmask(how, &raw const set, ptr::null_mut()) };
    }

    fn set() -> libc::sigset_t {
        // SAFETY: the set is cleared before it is used.
        unsafe {
            let mut set = zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            set
        }
    }

    fn drain(&self) {
        let mut buffer = [0_u8; 1024];
        // SAFETY: the pointer and the length describe one array; the descriptor does not block.
        while unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
    }
}

/// Closes all descriptors above the standard ones, except these.
fn close_others(kept: &[RawFd]) {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.cast_unsigned()).collect();
    kept.sort_unstable();
    let mut from = 3;
    for fd in kept.into_iter().chain([u32::MAX]) {
        if from < fd {
            close_range(from, fd - 1);
        }
        from = fd.saturating_add(1);
    }
}

fn close_range(first: u32, last: u32) {
    // SAFETY: the code that owned these descriptors does not run any more in this process.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    // Linux before 5.9 lacks the system call.
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<u32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| (first..=last).contains(fd)) {
        // SAFETY: as above.
        unsafe { libc::close(fd.cast_signed()) };
    }
}

/// An anonymous file in memory for a child's output.
fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string; on success the descriptor is ours.
    unsafe {
        let fd = libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

fn tail(output: &mut File) -> String {
    let length = output.metadata().map_or(0, |meta| meta.len());
    let mut bytes = Vec::new();
    let start = length.saturating_sub(4 * OUTPUT_SHOWN as u64);
    if output.seek(SeekFrom::Start(start)).and_then(|_| output.read_to_end(&mut bytes)).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    text.chars().skip(text.chars().count().saturating_sub(OUTPUT_SHOWN)).collect()
}
