//! The state of a cluster, for `warpsmith pool status`.

use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use protocol::read_frame;

use super::{ClientError, Pool, STARTS};

/// How long to retry the connection: Ray's client gives up after 30 seconds, and a later attempt may succeed.
const PATIENCE: Duration = Duration::from_secs(80);

/// The nodes of a cluster and the hosts that run on them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The version of Ray.
    pub ray: String,
    /// The number of GPUs that Ray has not assigned.
    pub free: f64,
    /// The machines.
    pub nodes: Vec<ClusterNode>,
    /// The hosts of all clients, one for each GPU in use.
    pub hosts: Vec<GpuHost>,
    /// The number of hosts that do not answer, because they wait for their GPU or have failed.
    pub silent: usize,
}

/// A machine of the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterNode {
    /// Ray's id of the node.
    pub id: String,
    /// The host name and address.
    pub name: String,
    /// Whether Ray considers the node alive.
    pub alive: bool,
    /// The GPU model by Ray's name.
    pub model: String,
    /// The number of GPUs.
    pub gpus: usize,
    /// The number of processor cores.
    pub cores: usize,
}

/// The host actor of a GPU, which judges candidates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GpuHost {
    /// The node, by [`ClusterNode::id`].
    pub id: String,
    /// The node's name and address.
    pub node: String,
    /// The driver's name of the GPU.
    pub gpu: String,
    /// The index of the GPU on its node, as Ray counts; empty for hosts of earlier releases.
    #[serde(default)]
    pub number: String,
    /// The host's clients.
    pub sessions: Vec<ClientSession>,
    /// The number of verdicts since it started.
    pub done: u64,
    /// The number of workers that ended unexpectedly.
    pub failures: u64,
    /// The time since it started, in seconds.
    pub seconds: f64,
}

/// A client of a GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientSession {
    /// The client's id.
    pub session: String,
    /// The number of its candidates that are being judged on this GPU.
    pub busy: usize,
    /// The number of its candidates that wait for any GPU, as it last reported.
    pub queued: usize,
    /// The number of verdicts that it got from this host.
    pub done: u64,
}

/// Why the state of a pool is unknown.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The client cannot be started.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The client cannot use the pool, for this reason.
    #[error("{0}")]
    Unfit(String),
    /// The client ended without an answer.
    #[error("the process that queries the pool ended without an answer; its output may show the reason")]
    Ended,
}

/// The client's answer.
#[derive(Deserialize)]
enum ClientMessage {
    Status(ClusterStatus),
    Unfit { reason: String },
}

/// Queries the state of a pool. Blocks for seconds.
///
/// # Errors
/// Returns [`StatusError`] when the client cannot be started or the pool cannot be used.
pub fn status(pool: &Pool, python: &Path) -> Result<ClusterStatus, StatusError> {
    let since = Instant::now();
    let mut asked = ask(pool, python);
    for _ in 1..STARTS {
        if !matches!(asked, Err(StatusError::Ended)) || since.elapsed() > PATIENCE {
            break;
        }
        asked = ask(pool, python);
    }
    asked
}

fn ask(pool: &Pool, python: &Path) -> Result<ClusterStatus, StatusError> {
    let mut process = pool.start(python, "status", PATIENCE, None)?;
    let stdout = process.stdout.take();
    let said = stdout.map(|stdout| read_frame(&mut BufReader::new(stdout)));
    // The answer is complete, so the exit status does not matter.
    let _ = process.wait();
    match said {
        Some(Ok(Some(ClientMessage::Status(status)))) => Ok(status),
        Some(Ok(Some(ClientMessage::Unfit { reason }))) => Err(StatusError::Unfit(reason)),
        _ => Err(StatusError::Ended),
    }
}
