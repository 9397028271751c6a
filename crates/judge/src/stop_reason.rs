//! The reasons for which a judgement ends early.

use protocol::runner::{Difference, ExitCause, ExportedResults, LeafValue, PythonException, RunnerReply};

use super::child_processes::{RunnerGone, how};
use super::undecided::Undecided;
use super::verdict::Reason;

/// The reason of a cancelled judgement.
pub(super) const STOPPED: &str = "stopped";

/// Why a judgement ended early.
pub(super) enum Stop {
    Refused(Reason, String, Option<usize>),
    Undecided(String),
}

impl From<Undecided> for Stop {
    fn from(Undecided(why): Undecided) -> Self {
        Self::Undecided(why)
    }
}

impl From<RunnerGone> for Stop {
    fn from(gone: RunnerGone) -> Self {
        let reason = match &gone {
            RunnerGone::Ended(ExitCause::MemoryLimit, _) => Reason::Memory,
            RunnerGone::Ended(ExitCause::ProcessLimit, _) => Reason::Processes,
            RunnerGone::Ended(ExitCause::OutputLimit, _) => Reason::Writing,
            RunnerGone::Ended(ExitCause::Unstarted(why), _) => return Self::Undecided(why.clone()),
            RunnerGone::Lost(why) => return Self::Undecided(why.clone()),
            RunnerGone::Ended(..) => Reason::Died,
            RunnerGone::Late(_) => Reason::Time,
            RunnerGone::Garbage => Reason::Pipe,
            RunnerGone::Unwanted => return Self::Undecided(STOPPED.to_owned()),
        };
        Self::Refused(reason, how(&gone), None)
    }
}

impl From<PythonException> for Stop {
    fn from(PythonException { text, line, is_memory, .. }: PythonException) -> Self {
        let is_compile =
            ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct", "PassManager"];
        let reason = if is_memory {
            Reason::DeviceMemory
        } else if is_compile.iter().any(|name| text.contains(name)) {
            Reason::Compile
        } else {
            Reason::Run
        };
        Self::Refused(reason, text, line)
    }
}

/// The error for a reply of an unexpected kind.
pub(super) fn unexpected_reply(reply: RunnerReply) -> Stop {
    match reply {
        RunnerReply::Raised(raised) => raised.into(),
        _ => Stop::Refused(Reason::Pipe, "it answers another question".to_owned(), None),
    }
}

/// Replaces the reason of a refusal for a wrong result by `reason`.
pub(super) fn as_a(reason: Reason) -> impl Fn(Stop) -> Stop {
    move |stop| match stop {
        Stop::Refused(Reason::Output | Reason::Form | Reason::Gradient | Reason::Mutation, evidence, line) => {
            Stop::Refused(reason, evidence, line)
        }
        other => other,
    }
}

/// Adds the trial's name to a failure on a trial that the original passes.
pub(super) fn in_trial(stop: Stop, name: &str) -> Stop {
    match stop {
        Stop::Refused(reason, evidence, line) => Stop::Refused(reason, format!("{name}: {evidence}"), line),
        other => other,
    }
}

/// Refuses a candidate whose results differ; does nothing when `found` is empty.
pub(super) fn refuse(found: &[Difference], results: &ExportedResults, reason: Reason, name: &str) -> Result<(), Stop> {
    let Some(first) = found.first() else { return Ok(()) };
    let more = if found.len() > 1 { format!(" (and {} more results differ)", found.len() - 1) } else { String::new() };
    let has_form = |path: &str| {
        results.leaves.iter().any(|leaf| leaf.path == path && !matches!(leaf.value, LeafValue::Plain { .. }))
    };
    let reason = match reason {
        Reason::Output if first.path.starts_with("argument") && first.is_value => Reason::Mutation,
        Reason::Output if first.path.starts_with("gradient") => Reason::Gradient,
        Reason::Output if !first.is_value && has_form(&first.path) => Reason::Form,
        other => other,
    };
    Err(Stop::Refused(reason, format!("{name}: {}: {}{more}", first.path, first.what), None))
}
