//! Types that cross the pipe between the server and its workers, and the frames they travel in.
//!
//! Shared by both halves of the package. A frame is a length (`u32`, little endian) and that many bytes of JSON.

pub mod runner;
pub mod sizes;
mod workload;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use workload::{
    Data, EntryPoint, Kind, LaunchRecord, RecordConfig, Reference, Source, TensorSpec, Value, Workload,
};

/// Version of this protocol; both sides must agree.
pub const PROTOCOL: u32 = 2;

/// No frame is larger: a longer length means that the stream is not ours.
const MAX_FRAME: usize = 64 << 20;

/// Environment variable with the path of the [`RecordConfig`] when a command runs under the recorder.
pub const RECORD_ENV: &str = "WARPSMITH_RECORD";

/// Environment variable that names a simulated device: kernels run in Triton's interpreter, times come from a formula.
/// For tests; its results say "simulated".
pub const FAKE_DEVICE_ENV: &str = "WARPSMITH_FAKE_DEVICE";

/// What the server asks of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Judge a candidate. Answered by [`Reply::Verdict`] with the same id.
    Evaluate {
        /// Chosen by the server.
        id: u64,
        /// What to judge.
        job: Box<Job>,
    },
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// First frame: the worker has imported what it needs.
    Ready {
        /// [`PROTOCOL`] of the worker.
        protocol: u32,
        /// Where it runs.
        environment: Environment,
    },
    /// The worker cannot work at all; it ends.
    Unfit {
        /// Why, and what to do.
        reason: String,
    },
    /// The verdict on a candidate.
    Verdict {
        /// Id of the request.
        id: u64,
        /// The verdict.
        verdict: Verdict,
    },
}

/// Versions and device of a worker or a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Python's version.
    pub python: String,
    /// Torch's version.
    pub torch: String,
    /// Triton's version.
    pub triton: String,
    /// Name of the device.
    pub device: String,
    /// Version of the CUDA driver interface, such as 13.0; empty when simulated.
    pub driver: String,
}

/// One candidate against the original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The file as it was.
    pub original: PathBuf,
    /// The file with the candidate's change.
    pub candidate: PathBuf,
    /// The folder of the user's file, for its imports.
    pub folder: PathBuf,
    /// The entry call.
    pub workload: Workload,
    /// What to do.
    pub plan: Plan,
    /// A file whose lock makes the device exclusive.
    pub lock: PathBuf,
    /// Seconds after which the candidate's process is killed.
    pub limit: f64,
}

/// How much of the judgement to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seeds of the inputs on which outputs are compared.
    pub seeds: Vec<u64>,
    /// Sizes to replace in shapes and integer arguments, old and new, before the inputs are made.
    pub resize: Vec<(i64, i64)>,
    /// Interleaved pairs of a first, rough timing; 0 for none.
    pub rough: usize,
    /// Further pairs, when the rough ratio is above [`Self::contender`].
    pub full: usize,
    /// The ratio (original over candidate) above which the full timing is done.
    pub contender: f64,
}

/// A judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Verdict {
    /// The candidate is out.
    Refused {
        /// The kind of failure.
        reason: Reason,
        /// What was seen.
        evidence: String,
    },
    /// Every check passed.
    Accepted(Evidence),
}

/// Why a candidate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The file could not be loaded or the entry is missing.
    Load,
    /// Compiling, launching or running raised.
    Run,
    /// An output differs from the original's.
    Output,
    /// An argument was changed that the original leaves alone, or left alone that it changes.
    Mutation,
    /// The process died or was killed by a limit.
    Died,
    /// The original itself failed: nothing can be said about the candidate.
    Original,
}

/// What was measured of an accepted candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Checks that passed, in words.
    pub checks: Vec<String>,
    /// Times of original and candidate in milliseconds, device events, cold L2, interleaved.
    pub pairs: Vec<(f64, f64)>,
    /// The same without flushing the L2, mean of a run of calls by wall clock with a full synchronise.
    pub wall: Option<(f64, f64)>,
    /// Seconds spent on loading, compiling, waiting for the device, checking, timing.
    pub stages: Vec<(String, f64)>,
}

/// Writes one frame.
///
/// # Errors
/// What the stream says.
pub fn write_frame(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| io::Error::other("frame too large"))?;
    let mut frame = Vec::with_capacity(body.len() + 4);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame)?;
    stream.flush()
}

/// Reads one frame; `None` at the end of the stream.
///
/// # Errors
/// What the stream says, and [`io::ErrorKind::InvalidData`] for what is not a frame of ours.
pub fn read_frame<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "frame too large"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_pipe_and_strangers_are_refused() {
        let mut pipe = Vec::new();
        let sent = Reply::Unfit { reason: "no torch 😀".to_owned() };
        write_frame(&mut pipe, &sent).unwrap();
        let mut stream = pipe.as_slice();
        assert_eq!(read_frame::<Reply>(&mut stream).unwrap(), Some(sent));
        assert_eq!(read_frame::<Reply>(&mut stream).unwrap(), None);
        assert!(read_frame::<Reply>(&mut &b"print a verdict\n"[..]).is_err());
        assert!(read_frame::<Reply>(&mut &pipe[..9]).is_err());
    }
}
