//! The connection to a judge elsewhere: the command of the settings, or the client of a pool of GPUs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use protocol::{RuntimeVersions, Workload};
use runtime::pool::{ClientError, Pool, STARTS};

/// The place that judges instead of this machine's devices.
#[derive(Clone, Debug, Default)]
pub struct RemoteJudges {
    /// The command that starts a `warpsmith worker` there; empty for this machine.
    pub command: Vec<String>,
    /// The pool of GPUs, if one is used.
    pub pool: Option<Pool>,
    /// How long the other side may take to be ready: it imports torch, perhaps after waiting in a queue.
    pub start: Duration,
    /// The name of a GPU whose times a model predicts; empty where candidates are measured.
    pub predict: String,
}

impl From<&config::EvaluatorSettings> for RemoteJudges {
    fn from(settings: &config::EvaluatorSettings) -> Self {
        Self {
            command: settings.command.clone(),
            pool: Pool::of(settings),
            start: config::time(settings.start),
            predict: settings.predict.clone(),
        }
    }
}

impl RemoteJudges {
    /// Whether a link leads to the judge.
    pub(super) fn is_linked(&self) -> bool {
        self.pool.is_some() || !self.command.is_empty()
    }
}

/// The way in which a link is started.
#[derive(Clone, Debug)]
pub(super) struct RemoteTarget {
    elsewhere: RemoteJudges,
    /// The Python interpreter of the project.
    python: PathBuf,
}

/// Why a link could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteStartError {
    #[error("no command")]
    Nothing,
    #[error("{0}; is `evaluator.command` right?")]
    Command(io::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl RemoteTarget {
    pub(super) fn new(python: &Path, elsewhere: &RemoteJudges) -> Self {
        Self { elsewhere: elsewhere.clone(), python: python.to_owned() }
    }

    /// The name for messages, and the setting that it comes from.
    pub(super) fn name(&self) -> (String, &'static str) {
        match &self.elsewhere.pool {
            Some(pool) => (format!("the pool at {}", pool.address), "evaluator.pool"),
            None => (format!("`{}`", self.elsewhere.command.join(" ")), "evaluator.command"),
        }
    }

    /// How long the other side may take to be ready.
    pub(super) fn start(&self) -> Duration {
        self.elsewhere.start
    }

    /// How often a broken link is connected again: once, and twice for a pool, since a cluster whose head node restarts
    /// may be available at the second attempt only.
    pub(super) fn max_reconnects(&self) -> u32 {
        if self.elsewhere.pool.is_some() { 2 } else { 1 }
    }

    /// How often the local end is started until it is ready. A command that ends has reported why.
    pub(super) fn max_starts(&self) -> u32 {
        if self.elsewhere.pool.is_some() { STARTS } else { 1 }
    }

    /// Starts the local end, whose standard streams are the link. `earlier` is the GPU model of the link's last
    /// connection, which is used again.
    pub(super) fn spawn(&self, earlier: Option<&str>) -> Result<Child, RemoteStartError> {
        if let Some(pool) = &self.elsewhere.pool {
            return Ok(pool.client(&self.python, self.elsewhere.start, earlier)?);
        }
        let (program, arguments) = self.elsewhere.command.split_first().ok_or(RemoteStartError::Nothing)?;
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(RemoteStartError::Command)
    }

    /// Why calls cannot be judged in a pool: the user does not know which versions its nodes have installed.
    pub(super) fn objection(&self, workloads: &[Workload], there: &RuntimeVersions) -> Option<String> {
        self.elsewhere.pool.as_ref()?;
        workloads.iter().find_map(|workload| differs(&workload.environment, there))
    }
}

/// The difference between the versions that a call was recorded with and those of the pool. Calls from comments have no
/// versions.
fn differs(recorded: &RuntimeVersions, there: &RuntimeVersions) -> Option<String> {
    let series = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    // `2.11.0+cu130` and `2.11.0+cpu` are builds of one version.
    let release = |version: &str| version.split('+').next().unwrap_or_default().to_owned();
    let versions = [
        ("Python", series(&recorded.python), series(&there.python)),
        ("torch", release(&recorded.torch), release(&there.torch)),
        ("Triton", release(&recorded.triton), release(&there.triton)),
    ];
    let (name, here, there) = versions.into_iter().find(|(_, here, there)| !here.is_empty() && here != there)?;
    let there = if there.is_empty() { "none".to_owned() } else { there };
    Some(format!(
        "the call was recorded with {name} {here}, and the pool's nodes have {there}: install {name} {here} there, or record the call \
         anew with what they have"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(python: &str, torch: &str, triton: &str) -> RuntimeVersions {
        let (python, torch, triton) = (python.to_owned(), torch.to_owned(), triton.to_owned());
        RuntimeVersions { python, torch, triton, ..RuntimeVersions::default() }
    }

    #[test]
    fn the_pools_versions_must_match_the_recording() {
        let there = environment("3.11.7", "2.11.0+cu130", "3.6.0");
        let why = |python, torch, triton| differs(&environment(python, torch, triton), &there);
        assert_eq!(why("3.11.2", "2.11.0+cpu", "3.6.0"), None);
        assert_eq!(why("", "", ""), None);
        assert!(
            why("3.12.1", "2.11.0", "3.6.0")
                .unwrap()
                .contains("recorded with Python 3.12, and the pool's nodes have 3.11")
        );
        assert!(why("3.11.7", "2.10.0", "3.6.0").unwrap().contains("install torch 2.10.0 there"));
        assert!(why("3.11.7", "2.11.0", "3.5.1").unwrap().contains("Triton 3.5.1, and the pool's nodes have 3.6.0"));
    }

    #[test]
    fn only_pools_are_asked_for_their_versions() {
        let workload = Workload { environment: environment("3.11", "2.10.0", "3.6.0"), ..Workload::default() };
        let there = environment("3.11", "2.11.0", "3.6.0");
        let way = |pool| RemoteTarget::new(Path::new("python"), &RemoteJudges { pool, ..RemoteJudges::default() });
        assert_eq!(way(None).objection(std::slice::from_ref(&workload), &there), None);
        assert!(way(Some(Pool::default())).objection(&[workload], &there).is_some());
    }
}
