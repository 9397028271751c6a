//! A forker in the user's interpreter, seen from the server: runners and comparers come from it.

#![expect(unsafe_code, reason = "the forker's end of the pipe is handed over before it starts")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fence::passes;
use protocol::passing::send_with;
use protocol::runner::{End, ForkerReply, ForkerRequest, Role};
use protocol::{
    BYTECODE_ENV, Environment, NODE_ENV, PLAYED_ENV, PROTOCOL, Played, is_simulated, read_frame, write_frame,
};

use super::ending::end_within;
use super::module::{ModuleError, bootstrap, cache_folder, unpack};
use super::strays::{MARK_ENV, end_marked, mark};

/// How long the imports of torch and Triton may take.
const START_LIMIT: Duration = Duration::from_secs(180);
/// How long a forker may take to end its children and itself once its pipe is closed.
const END_LIMIT: Duration = Duration::from_secs(6);
/// After how long a forker that nobody waits for is told, by a process that goes on.
const TOLD_AFTER: Duration = Duration::from_millis(300);

/// Why there is no forker, or no child of it.
#[derive(Debug, thiserror::Error)]
pub enum ForkerError {
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
    /// It says that it cannot work.
    #[error("{0}")]
    Unfit(String),
    /// It was not wanted any more before it was ready.
    #[error("the worker was cancelled while it imported torch and Triton")]
    Cancelled,
    /// It did not get ready.
    #[error("the worker did not import torch and Triton within {} s; is the interpreter on a slow disk?", START_LIMIT.as_secs())]
    Slow,
    /// It ended.
    #[error("the worker process ended{0}")]
    Ended(String),
    /// There is no socket for another child.
    #[error("cannot make a socket for another process: {0}; raise the limit of open files (`ulimit -n`)")]
    Socket(io::Error),
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// How.
    pub how: End,
    /// The end of what it printed.
    pub output: String,
}

/// What the children of a forker compute on.
#[derive(Clone, Debug)]
pub enum On {
    /// The devices that this process sees.
    Devices,
    /// The device of that number alone, counted among those that this process sees.
    Device(usize),
    /// One device alone, whose number among others nobody needs.
    Node {
        /// As `CUDA_VISIBLE_DEVICES` names it.
        uuid: String,
        /// The number of its file.
        node: u32,
    },
    /// A GPU that is not there, for which they compile.
    Played(Played),
}

/// A running forker, for several threads at once. Ends with everything that it started when dropped.
#[derive(Debug)]
pub struct Forker {
    /// Taken when dropped.
    process: Option<std::process::Child>,
    shared: Arc<Shared>,
    /// What it prints. Without a name: whatever ends this process, nothing is left.
    log: File,
    environment: Environment,
    unfenced: Vec<String>,
    next: AtomicU64,
    /// What all that comes from it has in its environment.
    mark: String,
}

/// A child of a forker. Killed with everything that it started when dropped.
#[derive(Debug)]
pub struct Child {
    /// Its number.
    pub id: u64,
    /// What it serves.
    pub stream: UnixStream,
    ends: Receiver<Ended>,
    ended: Option<Ended>,
    shared: Arc<Shared>,
}

/// What the children need of their forker.
#[derive(Debug)]
struct Shared {
    control: Mutex<UnixStream>,
    /// Whether nobody waits for the end of the forker and its children.
    is_left: AtomicBool,
    /// Whom to tell of a child's end; `None` once the forker is gone.
    listeners: Mutex<Option<HashMap<u64, Sender<Ended>>>>,
}

impl Forker {
    /// Whether it has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        lock(&self.shared.listeners).is_none()
    }

    /// Starts a forker and waits until it has imported what it needs; `waiting` is asked now and then whether to go on.
    ///
    /// # Errors
    /// [`ForkerError`] when it cannot start, lacks a package, or is not wanted any more.
    pub fn start(python: &Path, on: &On, waiting: &dyn Fn() -> bool) -> Result<Self, ForkerError> {
        let (module, mark) = (unpack()?, mark());
        let start = |source| ForkerError::Start { python: python.display().to_string(), source };
        let (mine, theirs) = UnixStream::pair().map_err(start)?;
        let log = tempfile::tempfile().map_err(start)?;
        let fd = theirs.as_raw_fd();
        let mut command = Command::new(python);
        command
            .arg("-c")
            .arg(bootstrap(&module, &format!("forker({fd})")))
            .stdin(Stdio::null())
            // Ctrl-C is for whoever has started it, who ends it.
            .process_group(0)
            // Standard output may be the language server's protocol.
            .stdout(log.try_clone().map_err(start)?)
            .stderr(log.try_clone().map_err(start)?)
            .env_clear()
            .envs(variables(on))
            .env(MARK_ENV, &mark);
        // SAFETY: only a system call between fork and exec; the descriptor lives until the process is started.
        unsafe {
            command.pre_exec(move || {
                if libc::fcntl(fd, libc::F_SETFD, 0) == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
            });
        }
        let process = command.spawn().map_err(start)?;
        drop(theirs);
        let heard = mine.try_clone().map_err(start)?;
        let (control, listeners) = (Mutex::new(mine), Mutex::new(Some(HashMap::new())));
        let shared = Arc::new(Shared { control, is_left: AtomicBool::new(false), listeners });
        let first = listen(heard, Arc::clone(&shared));
        let (environment, unfenced) = (Environment::default(), Vec::new());
        let (process, next) = (Some(process), AtomicU64::new(0));
        let mut forker = Self { process, shared, log, environment, unfenced, next, mark };
        (forker.environment, forker.unfenced) = forker.await_ready(&first, waiting)?;
        Ok(forker)
    }

    fn await_ready(
        &self,
        first: &Receiver<ForkerReply>,
        waiting: &dyn Fn() -> bool,
    ) -> Result<(Environment, Vec<String>), ForkerError> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match first.recv_timeout(Duration::from_millis(50)) {
                Ok(ForkerReply::Ready { protocol: PROTOCOL, environment, unfenced }) => {
                    return Ok((environment, unfenced));
                }
                Ok(ForkerReply::Ready { protocol, .. }) => {
                    return Err(ForkerError::Unfit(format!("the worker speaks protocol {protocol}, not {PROTOCOL}")));
                }
                Ok(ForkerReply::Unfit { reason }) => return Err(ForkerError::Unfit(reason)),
                Ok(ForkerReply::Ended { .. }) => {}
                Err(RecvTimeoutError::Timeout) if !waiting() => return Err(ForkerError::Cancelled),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => return Err(ForkerError::Slow),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            }
        }
    }

    /// Versions of what it runs on.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Parts of the fence that this system does not have, in words: what a runner can do all the same.
    #[must_use]
    pub fn unfenced(&self) -> &[String] {
        &self.unfenced
    }

    /// The number of the process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, std::process::Child::id)
    }

    /// From now on nobody waits for its children, nor for itself when it is dropped. They are ended when this process
    /// ends, or a moment after the drop: ending many that use a device keeps its driver busy for seconds, in which this
    /// process could not end either.
    pub fn hurry(&self) {
        self.shared.is_left.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits for it and its children any more.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.shared.is_left()
    }

    /// Has it remove a folder once it and its children have ended.
    ///
    /// # Errors
    /// [`ForkerError::Ended`] when the forker is gone.
    pub fn owns(&self, folder: &Path) -> Result<(), ForkerError> {
        let request = ForkerRequest::Owns { folder: folder.to_owned() };
        write_frame(&mut &*lock(&self.shared.control), &request).map_err(|_| self.gone())
    }

    /// Forks a child.
    ///
    /// # Errors
    /// [`ForkerError`] when the forker is gone, or there are too many open files. A child that could not be forked says
    /// so by its end.
    pub fn spawn(&self, role: Role) -> Result<Child, ForkerError> {
        let (stream, theirs) = UnixStream::pair().map_err(ForkerError::Socket)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, ends) = channel();
        match lock(&self.shared.listeners).as_mut() {
            Some(listeners) => listeners.insert(id, sender),
            None => return Err(self.gone()),
        };
        let request = ForkerRequest::Spawn { id, role };
        send_with(&lock(&self.shared.control), &request, theirs.as_fd()).map_err(|_| self.gone())?;
        Ok(Child { id, stream, ends, ended: None, shared: Arc::clone(&self.shared) })
    }

    /// Ends a child with everything that it started; its [`Child::wait`] hears of it.
    pub fn kill(&self, id: u64) {
        self.shared.kill(id);
    }

    fn gone(&self) -> ForkerError {
        const SHOWN: usize = 1500;
        let length = self.log.metadata().map_or(0, |meta| meta.len());
        let start = length.saturating_sub(4 * SHOWN as u64);
        let mut log = vec![0; (length - start) as usize];
        // Elsewhere in the file it may be written at the same time.
        let read = self.log.read_at(&mut log, start).unwrap_or(0);
        let log = String::from_utf8_lossy(&log[..read]);
        let log = log.trim();
        let tail: String = log.chars().skip(log.chars().count().saturating_sub(SHOWN)).collect();
        ForkerError::Ended(if tail.is_empty() { String::new() } else { format!("; it printed last:\n{tail}") })
    }
}

impl Drop for Forker {
    /// Closing the pipe lets the forker end its children; one that does not is killed, and their keepers end them then.
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        let (shared, mark) = (Arc::clone(&self.shared), std::mem::take(&mut self.mark));
        let (is_left, was_gone) = (shared.is_left(), self.is_gone());
        let finish = move || {
            end(process, &shared);
            if was_gone {
                // Whoever ended it may have ended the keepers of its children with it.
                end_marked(&mark);
            }
        };
        if !is_left {
            return finish();
        }
        std::thread::spawn(move || {
            std::thread::sleep(TOLD_AFTER);
            finish();
        });
    }
}

fn end(process: std::process::Child, shared: &Shared) {
    let _ = lock(&shared.control).shutdown(Shutdown::Both);
    end_within(process, END_LIMIT);
}

impl Child {
    /// How it ended; `None` when it has not within the time.
    ///
    /// # Errors
    /// [`ForkerError::Ended`] when the forker is gone, and the child with it.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Ended>, ForkerError> {
        if self.ended.is_none() {
            self.ended = match self.ends.recv_timeout(timeout) {
                Ok(ended) => Some(ended),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(ForkerError::Ended(String::new())),
            };
        }
        Ok(self.ended.clone())
    }

    /// Whether nobody waits for it and its forker any more: it ends with that.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.shared.is_left()
    }

    /// Ends it with everything that it started; [`Self::wait`] hears of it.
    pub fn kill(&self) {
        self.shared.kill(self.id);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
        }
    }
}

impl Shared {
    fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    fn kill(&self, id: u64) {
        if self.is_left() {
            return; // with all others, soon
        }
        // A forker that is gone has ended it already.
        let _ = write_frame(&mut &*lock(&self.control), &ForkerRequest::Kill { id });
    }
}

/// The environment of a forker: no secrets, so that its children find none in its memory either.
fn variables(on: &On) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passes)).collect();
    let mut set = |name: &str, value: OsString| variables.push((name.into(), value));
    set("TRITON_CACHE_DIR", cache_folder().join("triton").into());
    // To import torch's compiler makes a folder, which would stay in the one for temporary files.
    set("TORCHINDUCTOR_CACHE_DIR", cache_folder().join("inductor").into());
    set(BYTECODE_ENV, cache_folder().join("bytecode").into());
    // A count of devices must not make a context in the parent that forks.
    set("PYTORCH_NVML_BASED_CUDA_CHECK", "1".into());
    if is_simulated() {
        set("TRITON_INTERPRET", "1".into());
    }
    match on {
        On::Devices => {}
        On::Device(device) => {
            set("CUDA_VISIBLE_DEVICES", visible(std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(), *device).into());
        }
        On::Node { uuid, node } => {
            set("CUDA_VISIBLE_DEVICES", uuid.into());
            set(NODE_ENV, node.to_string().into());
        }
        On::Played(gpu) => set(PLAYED_ENV, serde_json::to_string(gpu).unwrap_or_default().into()),
    }
    variables
}

/// The device of that number among those that `CUDA_VISIBLE_DEVICES` lets this process see.
fn visible(listed: Option<&str>, device: usize) -> String {
    let name = listed.and_then(|listed| listed.split(',').nth(device)).map(str::trim).filter(|name| !name.is_empty());
    name.map_or_else(|| device.to_string(), str::to_owned)
}

fn listen(mut stream: UnixStream, shared: Arc<Shared>) -> Receiver<ForkerReply> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        while let Ok(Some(reply)) = read_frame(&mut stream) {
            match reply {
                ForkerReply::Ended { id, how, output } => {
                    let listener = lock(&shared.listeners).as_mut().and_then(|listeners| listeners.remove(&id));
                    // Whoever dropped the child does not want to know.
                    let _ = listener.map(|listener| listener.send(Ended { how, output }));
                }
                first => {
                    let _ = sender.send(first);
                }
            }
        }
        *lock(&shared.listeners) = None;
    });
    receiver
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_among_temporary_files() {
        let folder = cache_folder().join("inductor").into_os_string();
        assert!(variables(&On::Devices).contains(&("TORCHINDUCTOR_CACHE_DIR".into(), folder)));
    }

    #[test]
    fn a_device_by_its_file_is_named_whatever_its_number() {
        let variables = variables(&On::Node { uuid: "GPU-abc".to_owned(), node: 3 });
        assert!(variables.contains(&("CUDA_VISIBLE_DEVICES".into(), "GPU-abc".into())));
        assert!(variables.contains(&(NODE_ENV.into(), "3".into())));
    }

    #[test]
    fn devices_are_counted_among_the_visible_ones() {
        assert_eq!(visible(None, 2), "2");
        assert_eq!(visible(Some("3, 5"), 1), "5");
        assert_eq!(visible(Some("GPU-abc"), 0), "GPU-abc");
        assert_eq!(visible(Some(""), 0), "0");
    }
}
