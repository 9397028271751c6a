//! Pools of GPUs: Ray clusters, accessed through a Python client process that holds the connection.
//!
//! Rust exchanges frames with that process as with a `warpsmith worker`; `client.py` distributes them over the cluster.

mod status;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, io};

use serde::Serialize;

pub use status::{ClientSession, ClusterNode, ClusterStatus, GpuHost, StatusError, status};

use crate::python::{BYTECODE, ScriptError, unpack_scripts};

/// The Python files of the client with their texts; the first is the one to start.
const SCRIPTS: &[(&str, &str)] = &[
    ("warpsmith_pool.py", include_str!("pool/client.py")),
    ("warpsmith_pool_connection.py", include_str!("pool/connection.py")),
    ("warpsmith_pool_access.py", include_str!("pool/access.py")),
    ("warpsmith_pool_evaluations.py", include_str!("pool/evaluations.py")),
    ("warpsmith_pool_host.py", include_str!("pool/host.py")),
    ("warpsmith_pool_hosts.py", include_str!("pool/hosts.py")),
    ("warpsmith_pool_placement.py", include_str!("pool/placement.py")),
    ("warpsmith_pool_status.py", include_str!("pool/status.py")),
    BYTECODE,
];

/// How often a client is started if it ends without an answer, because Ray sometimes loses connections.
pub const STARTS: u32 = 3;

/// A cluster and the requirements on its workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// `auto`, `ray://host:port` or `host:port`.
    pub address: String,
    /// The GPU model by Ray's name; empty for the most frequent model.
    pub gpu: String,
    /// The text of the workers' settings file.
    pub settings: String,
}

impl Pool {
    /// The pool in the settings, if any. Its workers use the limits of these settings.
    #[must_use]
    pub fn of(settings: &config::EvaluatorSettings) -> Option<Self> {
        if settings.pool.is_empty() {
            return None;
        }
        let limits = toml::Value::try_from(&settings.limits).unwrap_or(toml::Value::Table(toml::Table::new()));
        let evaluator = toml::Table::from_iter([("limits".to_owned(), limits)]);
        let all = toml::Table::from_iter([("evaluator".to_owned(), toml::Value::Table(evaluator))]);
        Some(Self { address: settings.pool.clone(), gpu: settings.gpu.clone(), settings: all.to_string() })
    }
}

/// Why the client cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The Python files cannot be written.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The path of this program is unknown, so the program cannot be sent to the pool.
    #[error("the program cannot find itself to be sent to the pool: {0}")]
    Itself(io::Error),
    /// The interpreter cannot be started.
    #[error("{python} does not start: {source}; set `python` in warpsmith.toml to the project's interpreter")]
    Python {
        /// The interpreter.
        python: String,
        /// The operating system's error.
        source: io::Error,
    },
}

/// The client's options, passed as JSON on its command line.
#[derive(Serialize)]
struct Options<'a> {
    #[serde(rename = "do")]
    what: &'a str,
    address: &'a str,
    gpu: &'a str,
    settings: &'a str,
    /// The program that the nodes run.
    binary: PathBuf,
    /// Seconds within which the pool must be ready.
    start: f64,
    /// Whether there was a connection before; the client then waits for a cluster that restarts.
    again: bool,
}

impl Pool {
    /// Starts the client, which speaks a worker's protocol on its standard streams. `earlier` is the GPU model of the
    /// client before, if any; the new client must use the same model, because results of different models are not
    /// comparable.
    ///
    /// # Errors
    /// Returns [`ClientError`] when the client cannot be started.
    pub fn client(&self, python: &Path, start: Duration, earlier: Option<&str>) -> Result<Child, ClientError> {
        self.start(python, "judge", start, earlier)
    }

    fn start(&self, python: &Path, what: &str, start: Duration, earlier: Option<&str>) -> Result<Child, ClientError> {
        let Self { address, gpu, settings } = self;
        let (again, gpu) = (earlier.is_some(), earlier.filter(|model| !model.is_empty()).unwrap_or(gpu));
        let (start, binary) = (start.as_secs_f64(), env::current_exe().map_err(ClientError::Itself)?);
        let options = Options { what, address, gpu, settings, binary, start, again };
        Command::new(python)
            .arg(unpack_scripts("pool", SCRIPTS)?)
            .arg(serde_json::to_string(&options).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|source| ClientError::Python { python: python.display().to_string(), source })
    }
}

/// Checks the syntax of a pool's address.
///
/// # Errors
/// Returns a sentence about valid addresses when this is none.
pub fn check_address(address: &str) -> Result<(), String> {
    let place = address.strip_prefix("ray://").unwrap_or(address);
    let port = place
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty() && !host.contains('/'))
        .and_then(|(_, port)| port.parse().ok());
    match port {
        _ if address == "auto" => Ok(()),
        Some(1u16..) => Ok(()),
        _ => Err("must be `auto`, or an address such as `ray://gpubox:10001`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_address;

    #[test]
    fn only_ray_addresses_are_accepted() {
        for good in ["auto", "ray://gpubox:10001", "10.0.0.5:6379", "ray://[::1]:10001"] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in ["gpubox", "ray://", "ray://gpubox", "http://gpubox:8265", "ray://:10001", "gpubox:0"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
