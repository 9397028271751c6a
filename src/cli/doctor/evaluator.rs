//! Whether the command or the pool in the settings leads to machines that judge.

use std::path::Path;

use serde::Serialize;

use config::EvaluatorSettings;
use judge::{CandidateLimits, Evaluator, RemoteJudges};
use runtime::python::environment::PythonEnvironment;

/// The command or the pool, and the result of starting it.
#[derive(Debug, Serialize)]
pub(super) struct EvaluatorFacts {
    /// `evaluator.command`, its words joined with spaces.
    pub(super) command: String,
    /// `evaluator.pool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pool: Option<PoolFacts>,
    /// A description of the devices, or the reason why there are none; `None` until it was asked.
    pub(super) answer: Option<Result<String, String>>,
}

/// A pool, and the software of this machine that connects to it.
#[derive(Debug, Serialize)]
pub(super) struct PoolFacts {
    /// The address.
    pub(super) address: String,
    /// The version of Ray in the project's Python.
    pub(super) ray: Option<String>,
}

impl EvaluatorFacts {
    /// The facts of the settings; `None` without a command and a pool.
    pub(super) fn of(settings: &EvaluatorSettings, python: Option<&PythonEnvironment>) -> Option<Self> {
        let ray = || python.and_then(|python| python.version_of("ray"));
        let pool = runtime::pool::Pool::of(settings).map(|pool| PoolFacts { address: pool.address, ray: ray() });
        let is_set = pool.is_some() || !settings.command.is_empty();
        is_set.then(|| Self { command: settings.command.join(" "), pool, answer: None })
    }

    /// The name of the command or the pool.
    pub(super) fn name(&self) -> String {
        match &self.pool {
            Some(PoolFacts { address, ray }) => {
                let ray = ray.as_ref().map_or_else(String::new, |version| format!(" (Ray {version})"));
                format!("the pool at {address}{ray}")
            }
            None => format!("`{}`", self.command),
        }
    }
}

/// Starts the command, or the client of the pool in this Python, and returns a description of the devices.
pub(super) fn ask(elsewhere: &RemoteJudges, python: Option<&Path>) -> Result<String, String> {
    // A command uses the interpreter of the other machine.
    let python = python.unwrap_or(Path::new(""));
    let evaluator = Evaluator::start(python, elsewhere, &CandidateLimits::default(), &|| true)
        .map_err(|error| error.to_string())?;
    let there = evaluator.environment();
    let torch = if there.torch.is_empty() { String::new() } else { format!(", torch {}", there.torch) };
    let count = match evaluator.devices() {
        0 | 1 => String::new(),
        several => format!("{several} × "),
    };
    let device = if there.device.is_empty() { "a device without a name" } else { &there.device };
    Ok(format!("{count}{device}, Triton {}{torch}, {} cores", there.triton, evaluator.cores()))
}
