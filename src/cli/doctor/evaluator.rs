//! Whether the command of the settings leads to a machine that judges.

use std::path::Path;

use serde::Serialize;

use crate::evaluate::{Elsewhere, Evaluator, Limits};

/// The command, and what came of starting it.
#[derive(Debug, Serialize)]
pub(super) struct EvaluatorFacts {
    /// `evaluator.command`, with spaces between its words.
    pub(super) command: String,
    /// What is there, or why there is nothing, once it was asked.
    pub(super) answer: Option<Result<String, String>>,
}

impl EvaluatorFacts {
    /// `None` without a command.
    pub(super) fn of(command: &[String]) -> Option<Self> {
        (!command.is_empty()).then(|| Self { command: command.join(" "), answer: None })
    }
}

/// Starts the command and asks what it leads to.
pub(super) fn ask(elsewhere: &Elsewhere) -> Result<String, String> {
    // The interpreter is the other machine's.
    let evaluator =
        Evaluator::start(Path::new(""), elsewhere, &Limits::default(), &|| true).map_err(|error| error.to_string())?;
    let there = evaluator.environment();
    let torch = if there.torch.is_empty() { String::new() } else { format!(", torch {}", there.torch) };
    let count = match evaluator.devices() {
        0 | 1 => String::new(),
        several => format!("{several} × "),
    };
    let device = if there.device.is_empty() { "a device without a name" } else { &there.device };
    Ok(format!("{count}{device}, Triton {}{torch}, {} cores", there.triton, evaluator.cores()))
}
