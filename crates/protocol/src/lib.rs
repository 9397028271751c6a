//! Types that cross the pipe between the server and its workers, and the frames they travel in.
//!
//! Shared by both halves of the package. A frame is a length (`u32`, little endian) and that many bytes of JSON.

mod drafted;
mod fresh;
mod grid;
mod inputs;
pub mod passing;
mod probing;
mod results;
pub mod runner;
pub mod sizes;
mod tuning;
mod workload;

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use drafted::{Drafted, Drafts, PLAYED_ENV, Parameter, Played};
pub use grid::Grid;
pub use workload::{
    Data, EntryPoint, FailedLaunch, Kind, LaunchRecord, RecordConfig, Reference, Source, TensorSpec, Value, Workload,
};

/// Version of this protocol; both sides must agree.
pub const PROTOCOL: u32 = 20;

/// No frame is larger: a longer length means that the stream is not ours.
pub const MAX_FRAME: usize = 64 << 20;

/// Environment variable with the path of the [`RecordConfig`] when a command runs under the recorder.
pub const RECORD_ENV: &str = "WARPSMITH_RECORD";

/// Environment variable that names a simulated device: kernels run in Triton's interpreter, times come from a formula.
/// For tests; its results say "simulated".
pub const FAKE_DEVICE_ENV: &str = "WARPSMITH_FAKE_DEVICE";

/// Environment variable with the number of the one device file that processes on a device are to open.
pub const NODE_ENV: &str = "WARPSMITH_DEVICE_NODE";

/// Environment variable with the folder for compiled modules of torch and Triton, where nobody keeps them.
pub const BYTECODE_ENV: &str = "WARPSMITH_BYTECODE";

/// Whether a type, by its name in torch, holds floats.
#[must_use]
pub fn is_float(dtype: &str) -> bool {
    dtype.starts_with("float") || dtype.starts_with("bfloat")
}

/// Whether [`FAKE_DEVICE_ENV`] names a device.
#[must_use]
pub fn is_simulated() -> bool {
    std::env::var_os(FAKE_DEVICE_ENV).is_some_and(|name| !name.is_empty())
}

/// Versions and device of a worker or a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Python's version.
    pub python: String,
    /// Torch's version; empty where there is no torch.
    pub torch: String,
    /// Triton's version.
    pub triton: String,
    /// Name of the device.
    pub device: String,
    /// Version of the CUDA driver interface, such as 13.0; empty when simulated.
    pub driver: String,
}

/// Writes one frame.
///
/// # Errors
/// Returns an error when the stream cannot be written.
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
    use super::runner::ForkerReply;
    use super::*;

    #[test]
    fn frames_survive_the_pipe_and_strangers_are_refused() {
        let mut pipe = Vec::new();
        let sent = ForkerReply::Unfit { reason: "no torch 😀".to_owned() };
        write_frame(&mut pipe, &sent).unwrap();
        let mut stream = pipe.as_slice();
        assert_eq!(read_frame::<ForkerReply>(&mut stream).unwrap(), Some(sent));
        assert_eq!(read_frame::<ForkerReply>(&mut stream).unwrap(), None);
        assert!(read_frame::<ForkerReply>(&mut &b"print a verdict\n"[..]).is_err());
        assert!(read_frame::<ForkerReply>(&mut &pipe[..9]).is_err());
    }
}
