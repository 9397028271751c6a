//! The server's handle of a forker: a warm process in the user's interpreter that forks runners and comparers.

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
use protocol::descriptor_passing::send_with;
use protocol::runner::{ChildRole, ExitCause, ForkerReply, ForkerRequest};
use protocol::{
    BYTECODE_ENV, NODE_ENV, PLAYED_ENV, PROTOCOL, RuntimeVersions, SimulatedGpu, is_simulated, read_frame, write_frame,
};

use super::module::{ModuleError, bootstrap, cache_folder, unpack};
use super::orphans::{MARK_ENV, end_marked, mark};
use super::process_exit::end_within;

/// The time limit for the imports of torch and Triton.
const START_LIMIT: Duration = Duration::from_secs(180);
/// The time limit for a forker to end its children and itself after its pipe is closed.
const END_LIMIT: Duration = Duration::from_secs(6);
/// The delay before an abandoned forker is ended, if this process continues.
const TOLD_AFTER: Duration = Duration::from_millis(300);

/// Why a forker or one of its children cannot be started or used.
#[derive(Debug, thiserror::Error)]
pub enum ForkerError {
    /// The worker module is missing or cannot be unpacked.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The interpreter cannot be started.
    #[error("cannot start {python}: {source}; set `python` in warpsmith.toml to the project's interpreter")]
    Start {
        /// The interpreter.
        python: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The forker reports that it cannot work, for this reason.
    #[error("{0}")]
    Unfit(String),
    /// The start was cancelled before the forker was ready.
    #[error("the worker was cancelled while it imported torch and Triton")]
    Cancelled,
    /// The imports exceeded their time limit.
    #[error("the worker did not import torch and Triton within {} s; is the interpreter on a slow disk?", START_LIMIT.as_secs())]
    Slow,
    /// The forker ended; the text is the last part of its output.
    #[error("the worker process ended{0}")]
    Ended(String),
    /// No socket can be created for another child.
    #[error("cannot make a socket for another process: {0}; raise the limit of open files (`ulimit -n`)")]
    Socket(io::Error),
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildExit {
    /// The kind of end.
    pub cause: ExitCause,
    /// The last part of its output.
    pub output: String,
}

/// The device on which the children of a forker compute.
#[derive(Clone, Debug)]
pub enum ComputeDevice {
    /// All devices that are visible to this process.
    Devices,
    /// One device, by its index among those that are visible to this process.
    Device(usize),
    /// One device, by its UUID and its device file instead of its index.
    Node {
        /// The UUID, in the form of `CUDA_VISIBLE_DEVICES`.
        uuid: String,
        /// The number of its device file.
        node: u32,
    },
    /// A GPU that the machine does not have, for which the children only compile.
    Played(SimulatedGpu),
}

/// A running forker, shared by several threads. When dropped, it ends with all processes that it started.
#[derive(Debug)]
pub struct Forker {
    /// The process; taken when dropped.
    process: Option<std::process::Child>,
    shared: Arc<Shared>,
    /// The output of the forker, in an unnamed file that disappears however this process ends.
    log: File,
    environment: RuntimeVersions,
    unfenced: Vec<String>,
    next: AtomicU64,
    /// The value of [`MARK_ENV`] in the environment of all its descendants.
    mark: String,
}

/// A child of a forker. When dropped, it is killed with all processes that it started.
#[derive(Debug)]
pub struct Child {
    /// The child's id.
    pub id: u64,
    /// The socket that the child serves.
    pub stream: UnixStream,
    ends: Receiver<ChildExit>,
    ended: Option<ChildExit>,
    shared: Arc<Shared>,
}

/// The state that children share with their forker.
#[derive(Debug)]
struct Shared {
    control: Mutex<UnixStream>,
    /// Whether this process no longer waits for the end of the forker and its children.
    is_left: AtomicBool,
    /// The receivers of the children's ends by id; `None` once the forker is gone.
    listeners: Mutex<Option<HashMap<u64, Sender<ChildExit>>>>,
}

impl Forker {
    /// Whether the forker has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        lock(&self.shared.listeners).is_none()
    }

    /// Starts a forker and waits until its imports are done. `waiting` is called periodically and returns whether to
    /// continue.
    ///
    /// # Errors
    /// Returns [`ForkerError`] when the forker cannot start, lacks a package, or is cancelled.
    pub fn start(python: &Path, on: &ComputeDevice, waiting: &dyn Fn() -> bool) -> Result<Self, ForkerError> {
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
            // Its own process group keeps Ctrl-C from it; this process handles Ctrl-C and ends it.
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
        let (environment, unfenced) = (RuntimeVersions::default(), Vec::new());
        let (process, next) = (Some(process), AtomicU64::new(0));
        let mut forker = Self { process, shared, log, environment, unfenced, next, mark };
        (forker.environment, forker.unfenced) = forker.await_ready(&first, waiting)?;
        Ok(forker)
    }

    fn await_ready(
        &self,
        first: &Receiver<ForkerReply>,
        waiting: &dyn Fn() -> bool,
    ) -> Result<(RuntimeVersions, Vec<String>), ForkerError> {
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

    /// The software versions and the device of the forker.
    #[must_use]
    pub fn environment(&self) -> &RuntimeVersions {
        &self.environment
    }

    /// The actions of runners that the sandbox cannot prevent on this system, as text.
    #[must_use]
    pub fn unfenced(&self) -> &[String] {
        &self.unfenced
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, std::process::Child::id)
    }

    /// Stops waiting for the end of the children, and of the forker when it is dropped. They end with this process, or
    /// shortly after the drop. Ending many processes that use a device keeps the driver busy for seconds, and this
    /// process could not end during that time.
    pub fn abandon_children(&self) {
        self.shared.is_left.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::abandon_children`] was called.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.shared.is_left()
    }

    /// Asks the forker to remove a folder after it and its children have ended.
    ///
    /// # Errors
    /// Returns [`ForkerError::Ended`] when the forker is gone.
    pub fn owns(&self, folder: &Path) -> Result<(), ForkerError> {
        let request = ForkerRequest::Owns { folder: folder.to_owned() };
        write_frame(&mut &*lock(&self.shared.control), &request).map_err(|_| self.gone())
    }

    /// Forks a child.
    ///
    /// # Errors
    /// Returns [`ForkerError`] when the forker is gone or there are too many open files. If the fork itself fails, the
    /// child's end is [`ExitCause::Unstarted`].
    pub fn spawn(&self, role: ChildRole) -> Result<Child, ForkerError> {
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

    /// Ends a child and all processes that it started; its [`Child::wait`] then returns.
    pub fn kill(&self, id: u64) {
        self.shared.kill(id);
    }

    fn gone(&self) -> ForkerError {
        const SHOWN: usize = 1500;
        let length = self.log.metadata().map_or(0, |meta| meta.len());
        let start = length.saturating_sub(4 * SHOWN as u64);
        let mut log = vec![0; (length - start) as usize];
        // Another process may write to the file at the same time, so this reads at an offset and does not seek.
        let read = self.log.read_at(&mut log, start).unwrap_or(0);
        let log = String::from_utf8_lossy(&log[..read]);
        let log = log.trim();
        let tail: String = log.chars().skip(log.chars().count().saturating_sub(SHOWN)).collect();
        ForkerError::Ended(if tail.is_empty() { String::new() } else { format!("; it printed last:\n{tail}") })
    }
}

impl Drop for Forker {
    /// Closes the pipe, so that the forker ends its children. A forker that does not end is killed; the supervisors of
    /// its children then end them.
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        let (shared, mark) = (Arc::clone(&self.shared), std::mem::take(&mut self.mark));
        let (is_left, was_gone) = (shared.is_left(), self.is_gone());
        let finish = move || {
            end(process, &shared);
            if was_gone {
                // The supervisors of its children may have been killed together with it.
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
    /// Waits for the end of the child; `None` if it has not ended within the time.
    ///
    /// # Errors
    /// Returns [`ForkerError::Ended`] when the forker is gone, and the child with it.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<ChildExit>, ForkerError> {
        if self.ended.is_none() {
            self.ended = match self.ends.recv_timeout(timeout) {
                Ok(ended) => Some(ended),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(ForkerError::Ended(String::new())),
            };
        }
        Ok(self.ended.clone())
    }

    /// Whether [`Forker::abandon_children`] was called: the child then ends with its forker.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.shared.is_left()
    }

    /// Ends the child and all processes that it started; [`Self::wait`] then returns.
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
            return; // The child ends with all others, soon.
        }
        // If the forker is gone, it has ended the child already.
        let _ = write_frame(&mut &*lock(&self.control), &ForkerRequest::Kill { id });
    }
}

/// The environment variables of a forker, without secrets, so that its children find none in its memory either.
fn variables(on: &ComputeDevice) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passes)).collect();
    let mut set = |name: &str, value: OsString| variables.push((name.into(), value));
    set("TRITON_CACHE_DIR", cache_folder().join("triton").into());
    // Importing torch's compiler creates a folder, which would otherwise stay in the folder for temporary files.
    set("TORCHINDUCTOR_CACHE_DIR", cache_folder().join("inductor").into());
    set(BYTECODE_ENV, cache_folder().join("bytecode").into());
    // Counting the devices must not create a CUDA context in the process that forks.
    set("PYTORCH_NVML_BASED_CUDA_CHECK", "1".into());
    if is_simulated() {
        set("TRITON_INTERPRET", "1".into());
    }
    match on {
        ComputeDevice::Devices => {}
        ComputeDevice::Device(device) => {
            set("CUDA_VISIBLE_DEVICES", visible(std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(), *device).into());
        }
        ComputeDevice::Node { uuid, node } => {
            set("CUDA_VISIBLE_DEVICES", uuid.into());
            set(NODE_ENV, node.to_string().into());
        }
        ComputeDevice::Played(gpu) => set(PLAYED_ENV, serde_json::to_string(gpu).unwrap_or_default().into()),
    }
    variables
}

/// The name of a device by its index among those in this process's `CUDA_VISIBLE_DEVICES`.
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
                    // The receiver is gone if the child was dropped.
                    let _ = listener.map(|listener| listener.send(ChildExit { cause: how, output }));
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
    fn inductor_caches_below_the_cache_folder() {
        let folder = cache_folder().join("inductor").into_os_string();
        assert!(variables(&ComputeDevice::Devices).contains(&("TORCHINDUCTOR_CACHE_DIR".into(), folder)));
    }

    #[test]
    fn a_device_with_a_file_is_selected_by_uuid_and_node() {
        let variables = variables(&ComputeDevice::Node { uuid: "GPU-abc".to_owned(), node: 3 });
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
