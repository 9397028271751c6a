//! A worker process in the user's interpreter, seen from the server.

#![expect(unsafe_code, reason = "the worker's end of the pipe is handed over before it starts")]

use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::module::{ModuleError, bootstrap, cache_folder, unpack};
use crate::protocol::{Environment, PROTOCOL, Reply, Request, read_frame, write_frame};

/// How long the imports of torch and Triton may take.
const START_LIMIT: Duration = Duration::from_secs(180);
/// How long a worker may take to end once its pipe is closed.
const END_LIMIT: Duration = Duration::from_secs(3);

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The module is missing.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The interpreter does not start.
    #[error("cannot start {python}: {source}; set `python` in warpsmith.toml to the project's interpreter")]
    Start {
        /// The interpreter.
        python: String,
        /// What the system said.
        source: io::Error,
    },
    /// The worker says that it cannot work.
    #[error("{0}")]
    Unfit(String),
    /// It ended.
    #[error("the worker process ended{0}")]
    Ended(String),
}

/// A running worker. Ends with everything that it started when dropped.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    stream: UnixStream,
    replies: Receiver<Reply>,
    log: tempfile::NamedTempFile,
    environment: Environment,
}

impl Worker {
    /// Starts a worker and waits until it has imported what it needs; `waiting` is asked now and then whether to go on.
    ///
    /// # Errors
    /// [`WorkerError`] when it cannot start, lacks a package, or is not wanted any more.
    pub fn start(python: &Path, waiting: &dyn Fn() -> bool) -> Result<Self, WorkerError> {
        let module = unpack()?;
        let start = |source| WorkerError::Start { python: python.display().to_string(), source };
        let (mine, theirs) = UnixStream::pair().map_err(start)?;
        let log = tempfile::NamedTempFile::new().map_err(start)?;
        let fd = theirs.as_raw_fd();
        let mut command = Command::new(python);
        command
            .arg("-c")
            .arg(bootstrap(&module, &format!("serve({fd})")))
            .stdin(Stdio::null())
            // Standard output may be the language server's protocol.
            .stdout(log.reopen().map_err(start)?)
            .stderr(log.reopen().map_err(start)?)
            .env("TRITON_CACHE_DIR", cache_folder().join("triton"))
            // A count of devices must not make a context in the parent that forks.
            .env("PYTORCH_NVML_BASED_CUDA_CHECK", "1");
        if simulated() {
            command.env("TRITON_INTERPRET", "1");
        }
        // SAFETY: only a system call between fork and exec; the descriptor lives until the process is started.
        unsafe {
            command.pre_exec(move || {
                if libc::fcntl(fd, libc::F_SETFD, 0) == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
            });
        }
        let process = command.spawn().map_err(start)?;
        drop(theirs);
        let replies = listen(mine.try_clone().map_err(start)?);
        let mut worker = Self { process, stream: mine, replies, log, environment: Environment::default() };
        worker.environment = worker.await_ready(waiting)?;
        Ok(worker)
    }

    fn await_ready(&mut self, waiting: &dyn Fn() -> bool) -> Result<Environment, WorkerError> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match self.replies.recv_timeout(Duration::from_millis(50)) {
                Ok(Reply::Ready { protocol: PROTOCOL, environment }) => return Ok(environment),
                Ok(Reply::Ready { protocol, .. }) => {
                    return Err(WorkerError::Unfit(format!("the worker speaks protocol {protocol}, not {PROTOCOL}")));
                }
                Ok(Reply::Unfit { reason }) => return Err(WorkerError::Unfit(reason)),
                Ok(Reply::Verdict { .. }) => {}
                Err(RecvTimeoutError::Timeout) if waiting() && Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => return Err(WorkerError::Ended(" before it was ready".to_owned())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// Versions of what the worker runs on.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`WorkerError::Ended`] when the worker is gone.
    pub fn send(&mut self, request: &Request) -> Result<(), WorkerError> {
        write_frame(&mut self.stream, request).map_err(|_| self.ended())
    }

    /// The next reply; `None` when none came in time.
    ///
    /// # Errors
    /// [`WorkerError::Ended`] when the worker is gone.
    pub fn receive(&self, timeout: Duration) -> Result<Option<Reply>, WorkerError> {
        match self.replies.recv_timeout(timeout) {
            Ok(reply) => Ok(Some(reply)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn ended(&self) -> WorkerError {
        const SHOWN: usize = 1500;
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        let log = log.trim();
        let tail: String = log.chars().skip(log.chars().count().saturating_sub(SHOWN)).collect();
        WorkerError::Ended(if tail.is_empty() { String::new() } else { format!("; it printed last:\n{tail}") })
    }
}

impl Drop for Worker {
    /// Closing the pipe lets the worker end its children's process groups; a worker that does not is killed, and the
    /// kernel kills its children with it.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether a simulated device was asked for (tests).
#[must_use]
pub fn simulated() -> bool {
    std::env::var_os(crate::protocol::FAKE_DEVICE_ENV).is_some_and(|name| !name.is_empty())
}

fn listen(mut stream: UnixStream) -> Receiver<Reply> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        while let Ok(Some(reply)) = read_frame(&mut stream) {
            if sender.send(reply).is_err() {
                return;
            }
        }
    });
    receiver
}
