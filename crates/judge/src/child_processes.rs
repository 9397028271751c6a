//! Connections to the judge's processes: runners and the comparer.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use protocol::runner::{
    AuthenticatedReply, ChildRole, Compared, ComparerFailure, ComparerReply, ComparerRequest, Difference, ExitCause,
    ExportedResults, Fence, PythonException, RunnerReply, RunnerRequest, Weights,
};
use protocol::{MAX_FRAME, Workload, write_frame};
use runtime::python::{Child, ChildExit, Forker, ForkerError};

use super::locks::lock;
use super::undecided::Undecided;

/// The time limit of one request to the comparer.
const COMPARER_LIMIT: Duration = Duration::from_secs(120);
/// How long to wait for the forker's report of an end that was noticed otherwise.
const END_LIMIT: Duration = Duration::from_secs(10);

/// How often a waiting thread checks whether its result is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

/// Why a runner does not answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunnerGone {
    /// The process ended: how, and the last part of its output.
    Ended(ExitCause, String),
    /// The process did not answer within this time.
    Late(Duration),
    /// The process sent data that is no valid reply.
    Garbage,
    /// The request was cancelled.
    Unwanted,
    /// The parent of all processes is gone, for this reason.
    Lost(String),
}

/// State that all processes of a device share.
#[derive(Default)]
pub(super) struct DeviceProcesses {
    /// Set when all requests are cancelled.
    pub(super) unwanted: AtomicBool,
    next: AtomicU64,
    /// Runners that have ended, whose buffers the comparer may still have open.
    left: Mutex<Vec<u64>>,
}

/// A process that runs one file.
pub(super) struct RunnerProcess {
    /// The number that distinguishes its results from those of other runners.
    pub(super) number: u64,
    child: Child,
    token: u64,
    /// The name in the log.
    name: String,
    ties: Arc<DeviceProcesses>,
}

impl Drop for RunnerProcess {
    fn drop(&mut self) {
        lock(&self.ties.left).push(self.number);
    }
}

impl RunnerProcess {
    /// Starts a runner behind `fence`.
    pub(super) fn start(forker: &Forker, fence: Fence, ties: &Arc<DeviceProcesses>) -> Result<Self, ForkerError> {
        let token = fence.token;
        let name = fence.scratch.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let child = forker.spawn(ChildRole::Runner(Box::new(fence)))?;
        let number = ties.next.fetch_add(1, Ordering::Relaxed);
        Ok(Self { number, child, token, name, ties: Arc::clone(ties) })
    }

    /// Sends a request and waits for the reply, for at most `limit`.
    pub(super) fn ask(&mut self, request: &RunnerRequest, limit: Duration) -> Result<RunnerReply, RunnerGone> {
        let since = Instant::now();
        let answer = self.ask_unlogged(request, limit);
        let (seconds, is_answered) = (since.elapsed().as_secs_f64(), answer.is_ok());
        let held = answer.as_ref().map_or(0, |sealed| sealed.held);
        tracing::debug!(process = self.name, request = name(request), seconds, is_answered, held, "a runner was asked");
        answer.map(|sealed| sealed.reply)
    }

    fn ask_unlogged(&mut self, request: &RunnerRequest, limit: Duration) -> Result<AuthenticatedReply, RunnerGone> {
        // A failed write is reported as the end of the process.
        if write_frame(&mut self.child.stream, request).is_err() {
            return Err(self.end());
        }
        match read_within::<AuthenticatedReply>(&mut self.child.stream, Instant::now() + limit, &self.ties.unwanted) {
            Ok(sealed) if sealed.token == self.token => Ok(sealed),
            Ok(_) => Err(self.stop(RunnerGone::Garbage)),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::InvalidData => self.stop(RunnerGone::Garbage),
                io::ErrorKind::TimedOut => self.stop(RunnerGone::Late(limit)),
                io::ErrorKind::Interrupted => self.stop(RunnerGone::Unwanted),
                _ => self.end(),
            }),
        }
    }

    fn stop(&mut self, why: RunnerGone) -> RunnerGone {
        if self.child.is_left() {
            return why;
        }
        self.child.kill();
        match (why, self.child.wait(END_LIMIT)) {
            // A limit that the process exceeded is a better reason than a late or broken reply.
            (
                _,
                Ok(Some(ChildExit {
                    cause: how @ (ExitCause::MemoryLimit | ExitCause::ProcessLimit | ExitCause::OutputLimit),
                    output,
                })),
            ) => RunnerGone::Ended(how, output),
            (why, _) => why,
        }
    }

    /// How the process ended. The caller knows that it has ended.
    fn end(&mut self) -> RunnerGone {
        if self.child.is_left() {
            return RunnerGone::Unwanted;
        }
        let mut end = self.child.wait(Duration::from_secs(1));
        if !matches!(end, Ok(Some(_))) {
            self.child.kill();
            end = self.child.wait(END_LIMIT);
        }
        match end {
            Ok(Some(ChildExit { cause: how, output })) => RunnerGone::Ended(how, output),
            Ok(None) => RunnerGone::Garbage,
            Err(error) => RunnerGone::Lost(error.to_string()),
        }
    }

    /// Loads a file.
    pub(super) fn load(
        &mut self,
        file: &Path,
        folder: &Path,
        workload: &Workload,
        (is_candidate, weights): (bool, Weights),
        limit: Duration,
    ) -> Result<Result<LoadedFile, PythonException>, RunnerGone> {
        let (file, folder) = (file.to_owned(), folder.to_owned());
        let request = RunnerRequest::Load { file, folder, workload: Box::new(workload.clone()), is_candidate, weights };
        match self.ask(&request, limit)? {
            RunnerReply::Loaded { tampered, has_own_weights, takes_memory, seconds } => {
                let took = Duration::try_from_secs_f64(seconds).unwrap_or(limit);
                Ok(Ok(LoadedFile { tampered, has_own_weights, takes_memory, took }))
            }
            RunnerReply::Raised(raised) => Ok(Err(raised)),
            _ => Err(RunnerGone::Garbage),
        }
    }
}

/// The properties of a loaded file: see [`RunnerReply::Loaded`].
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedFile {
    pub(super) tampered: Vec<String>,
    pub(super) has_own_weights: bool,
    pub(super) takes_memory: bool,
    pub(super) took: Duration,
}

/// The process that compares results.
pub(super) struct ComparerProcess {
    child: Child,
    next: u32,
    ties: Arc<DeviceProcesses>,
}

/// Why the comparer could not compare.
#[derive(Debug, thiserror::Error)]
pub(super) enum ComparerError {
    /// The comparer ran out of device memory.
    #[error("the device's memory does not suffice to compare results")]
    Memory,
    /// It holds no results in a slot: its process was started again meanwhile.
    #[error("results were lost: {0}")]
    MissingSlot(String),
    /// All judgements are cancelled.
    #[error("stopped")]
    Cancelled,
    /// Another reason, which is no fault of the candidate.
    #[error("results cannot be compared: {0}")]
    Other(String),
}

impl ComparerProcess {
    /// Starts the comparer.
    pub(super) fn start(forker: &Forker, ties: &Arc<DeviceProcesses>) -> Result<Self, ForkerError> {
        let child = forker.spawn(ChildRole::Comparer)?;
        Ok(Self { child, next: 0, ties: Arc::clone(ties) })
    }

    /// Whether the process has ended.
    pub(super) fn is_gone(&mut self) -> bool {
        !matches!(self.child.wait(Duration::ZERO), Ok(None))
    }

    /// Keeps a runner's results in a new slot, whose number is returned.
    pub(super) fn keep(&mut self, owner: u64, results: &ExportedResults) -> Result<u32, Undecided> {
        self.keep_all(owner, vec![results.clone()])?;
        Ok(self.next)
    }

    /// Keeps the results of several calls of a runner, each in a slot of its own.
    pub(super) fn keep_all(&mut self, owner: u64, results: Vec<ExportedResults>) -> Result<Vec<u32>, Undecided> {
        let owners = std::mem::take(&mut *lock(&self.ties.left));
        if !owners.is_empty() {
            self.ask(&ComparerRequest::Leave { owners })?;
        }
        let kept: Vec<_> = (self.next + 1..).zip(results).collect();
        let slots: Vec<u32> = kept.iter().map(|(slot, _)| *slot).collect();
        self.next += u32::try_from(slots.len()).unwrap_or(u32::MAX);
        if !kept.is_empty() {
            self.ask(&ComparerRequest::Keep { owner, kept })?;
        }
        Ok(slots)
    }

    /// Sends a request and waits for the reply.
    pub(super) fn ask(&mut self, request: &ComparerRequest) -> Result<ComparerReply, ComparerError> {
        if self.child.is_left() {
            return Err(ComparerError::Cancelled);
        }
        let since = Instant::now();
        let asked = write_frame(&mut self.child.stream, request).and_then(|()| {
            let (until, unwanted) = (Instant::now() + COMPARER_LIMIT, AtomicBool::new(false));
            read_within::<Compared>(&mut self.child.stream, until, &unwanted)
        });
        let (seconds, is_answered) = (since.elapsed().as_secs_f64(), asked.is_ok());
        let held = asked.as_ref().map_or(0, |compared| compared.held);
        tracing::debug!(request = name(request), seconds, is_answered, held, "the comparer was asked");
        match asked.map(|compared| compared.reply) {
            Ok(ComparerReply::Failed { cause, why }) => Err(match cause {
                ComparerFailure::DeviceMemory => ComparerError::Memory,
                ComparerFailure::MissingSlot => ComparerError::MissingSlot(why),
                ComparerFailure::Other => ComparerError::Other(why),
            }),
            Ok(reply) => Ok(reply),
            Err(error) => {
                let end = self.child.wait(Duration::from_secs(1)).ok().flatten();
                Err(ComparerError::Other(
                    end.map_or_else(|| error.to_string(), |end| format!("it {}: {}", end.cause, end.output)),
                ))
            }
        }
    }

    /// Sends a request whose reply is a list of differences.
    pub(super) fn differences(&mut self, request: &ComparerRequest) -> Result<Vec<Difference>, ComparerError> {
        match self.ask(request)? {
            ComparerReply::Differences(found) => Ok(found),
            _ => Err(ComparerError::Other("the answer is to another question".to_owned())),
        }
    }
}

/// The name of a request's variant, for the log, without formatting the rest of the request.
fn name(request: &impl std::fmt::Debug) -> String {
    struct Head(String);
    impl std::fmt::Write for Head {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let name = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            self.0.push_str(name);
            if name.len() == text.len() { Ok(()) } else { Err(std::fmt::Error) }
        }
    }
    let mut head = Head(String::new());
    // The writer fails on purpose after the name.
    let _ = std::fmt::Write::write_fmt(&mut head, format_args!("{request:?}"));
    head.0
}

/// Reads one frame, which must arrive completely by `deadline`.
fn read_within<T: DeserializeOwned>(
    stream: &mut UnixStream,
    deadline: Instant,
    unwanted: &AtomicBool,
) -> io::Result<T> {
    let mut length = [0; 4];
    fill(stream, &mut length, deadline, unwanted)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no frame of ours"));
    }
    let mut body = vec![0; length];
    fill(stream, &mut body, deadline, unwanted)?;
    serde_json::from_slice(&body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn fill(stream: &mut UnixStream, mut into: &mut [u8], deadline: Instant, unwanted: &AtomicBool) -> io::Result<()> {
    while !into.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if unwanted.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        stream.set_read_timeout(Some(left.min(GLANCE)))?;
        match stream.read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => into = &mut into[count..],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The reason why a process has ended, as text.
pub(super) fn how(gone: &RunnerGone) -> String {
    match gone {
        RunnerGone::Ended(how, output) if output.is_empty() => format!("the process {how}"),
        RunnerGone::Ended(how, output) => format!("the process {how}; it printed last:\n{output}"),
        RunnerGone::Lost(why) => why.clone(),
        RunnerGone::Late(limit) => format!("no answer after {} s", limit.as_secs()),
        RunnerGone::Unwanted => "it was stopped".to_owned(),
        RunnerGone::Garbage => "its pipe received data that is not a valid answer".to_owned(),
    }
}

/// The last line of an error, which names the exception.
pub(super) fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn requests_are_named_by_their_variant() {
        assert_eq!(name(&RunnerRequest::Copy), "Copy");
        assert_eq!(name(&ComparerRequest::Drop { slots: vec![1, 2] }), "Drop");
    }

    #[test]
    fn incomplete_frames_time_out_and_invalid_ones_differ_from_an_end() {
        let read = |sent: &[u8], is_open: bool| {
            let (mut mine, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(sent).unwrap();
            let _open = is_open.then_some(theirs);
            read_within::<u64>(&mut mine, Instant::now() + Duration::from_millis(30), &AtomicBool::new(false))
                .map_err(|error| error.kind())
        };
        assert_eq!(read(b"\x02\0\0\x0042", true), Ok(42));
        assert_eq!(read(b"\x02\0\0\x004", true), Err(io::ErrorKind::TimedOut));
        assert_eq!(read(b"\x02\0\0\x00no", true), Err(io::ErrorKind::InvalidData));
        assert_eq!(read(b"accepted! speedup 100", true), Err(io::ErrorKind::InvalidData));
        assert_eq!(read(b"", false), Err(io::ErrorKind::UnexpectedEof));
    }
}
