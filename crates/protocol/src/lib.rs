//! The messages between the server and its worker processes, and the frames that carry them.
//!
//! The server and the worker module both use this crate. A frame is a length in bytes (`u32`, little endian), followed
//! by that many bytes of JSON.

mod comparer;
mod compiled_launches;
pub mod descriptor_passing;
mod grid;
mod inputs;
mod probes;
mod record_config;
mod results;
pub mod runner;
pub mod sizes;
mod tuning;
mod varied_contents;
mod workload;

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use compiled_launches::{CompiledLaunch, CompiledLaunches, KernelArgument, PLAYED_ENV, SimulatedGpu};
pub use grid::GridExpr;
pub use record_config::{EntryPoint, RecordConfig};
pub use workload::{
    ArgumentValue, FailedLaunch, FloatDistribution, LaunchRecord, Reference, TensorContents, TensorSpec, Workload,
    WorkloadSource,
};

/// The version of this protocol; both sides must have the same.
pub const PROTOCOL: u32 = 22;

/// The greatest length of a frame's JSON in bytes; a greater length means that the stream does not carry frames.
pub const MAX_FRAME: usize = 64 << 20;

/// The environment variable with the path of the [`RecordConfig`] for a command that runs under the recorder.
pub const RECORD_ENV: &str = "WARPSMITH_RECORD";

/// The environment variable that names a simulated device: kernels run in Triton's interpreter, and times come from a
/// formula. It is for tests; its results say "simulated".
pub const FAKE_DEVICE_ENV: &str = "WARPSMITH_FAKE_DEVICE";

/// The environment variable with the number of the only device file that the processes of a device may open.
pub const NODE_ENV: &str = "WARPSMITH_DEVICE_NODE";

/// The environment variable with the folder for the bytecode of torch and Triton, used if Python caches it nowhere
/// else.
pub const BYTECODE_ENV: &str = "WARPSMITH_BYTECODE";

/// Whether an element type holds floats. `dtype` is torch's name without the `torch.`.
#[must_use]
pub fn is_float(dtype: &str) -> bool {
    dtype.starts_with("float") || dtype.starts_with("bfloat")
}

/// Whether [`FAKE_DEVICE_ENV`] names a device.
#[must_use]
pub fn is_simulated() -> bool {
    std::env::var_os(FAKE_DEVICE_ENV).is_some_and(|name| !name.is_empty())
}

/// The software versions and the device of a worker or a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuntimeVersions {
    /// Python's version.
    pub python: String,
    /// Torch's version; empty without torch.
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
/// Returns an error when the stream cannot be read, and [`io::ErrorKind::InvalidData`] when it holds no valid frame.
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
    fn frames_round_trip_and_foreign_data_is_rejected() {
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
