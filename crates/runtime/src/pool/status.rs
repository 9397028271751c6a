//! What a cluster has and does.

use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use protocol::read_frame;

use super::{ClientError, Pool, STARTS};

/// How long a cluster may take until it lets itself be asked: Ray's client gives up after 30 seconds, and may succeed
/// after that.
const PATIENCE: Duration = Duration::from_secs(80);

/// What a cluster has and does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The version of Ray.
    pub ray: String,
    /// GPUs that nobody has asked Ray for.
    pub free: f64,
    /// The machines.
    pub nodes: Vec<Node>,
    /// What judges there, for all clients: one for each GPU in use.
    pub hosts: Vec<Host>,
    /// How many of them do not answer: they wait for their GPU, or are gone.
    pub silent: usize,
}

/// A machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Ray's name for it.
    pub id: String,
    /// Its name and address.
    pub name: String,
    /// Whether it is there.
    pub alive: bool,
    /// Its GPU model, as Ray calls it.
    pub model: String,
    /// GPUs.
    pub gpus: usize,
    /// Processor cores.
    pub cores: usize,
}

/// What judges on a GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Host {
    /// The node, by [`Node::id`].
    pub id: String,
    /// The node's name and address.
    pub node: String,
    /// The GPU, as its driver calls it.
    pub gpu: String,
    /// Which of the node's it is, as Ray counts them. Hosts of earlier releases do not say.
    #[serde(default)]
    pub number: String,
    /// Its clients.
    pub sessions: Vec<Session>,
    /// How many verdicts it has given.
    pub done: u64,
    /// How many workers have ended by themselves.
    pub failures: u64,
    /// For how long it has been there.
    pub seconds: f64,
}

/// A client of a GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// The client.
    pub session: String,
    /// Candidates that are being judged for it here.
    pub busy: usize,
    /// Candidates of it that wait for any GPU, as it said last.
    pub queued: usize,
    /// How many verdicts it got here.
    pub done: u64,
}

/// Why nothing is known of a pool.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The client cannot be started.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The client says why.
    #[error("{0}")]
    Unfit(String),
    /// The client ended without a word.
    #[error("the process that asks the pool ended without an answer; what it printed may say why")]
    Ended,
}

/// What the client says.
#[derive(Deserialize)]
enum Said {
    Status(Status),
    Unfit { reason: String },
}

/// Asks a pool what it has and does. Blocks for seconds.
///
/// # Errors
/// [`StatusError`] says what is missing.
pub fn status(pool: &Pool, python: &Path) -> Result<Status, StatusError> {
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

fn ask(pool: &Pool, python: &Path) -> Result<Status, StatusError> {
    let mut process = pool.start(python, "status", PATIENCE, None)?;
    let stdout = process.stdout.take();
    let said = stdout.map(|stdout| read_frame(&mut BufReader::new(stdout)));
    // It has said what it has to say.
    let _ = process.wait();
    match said {
        Some(Ok(Some(Said::Status(status)))) => Ok(status),
        Some(Ok(Some(Said::Unfit { reason }))) => Err(StatusError::Unfit(reason)),
        _ => Err(StatusError::Ended),
    }
}
