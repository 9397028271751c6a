//! The reasons for which a judgement ends early.

use protocol::runner::{
    Difference, ExceptionCause, ExitCause, ExportedResults, LeafValue, PythonException, RunnerReply,
};

use super::child_processes::{RunnerGone, how};
use super::undecided::{Undecided, UndecidedCause};
use super::verdict::Reason;

/// Why a judgement ended early.
pub(super) enum Stop {
    Refused(Reason, String, Option<usize>),
    Undecided(Undecided),
}

impl From<Undecided> for Stop {
    fn from(undecided: Undecided) -> Self {
        Self::Undecided(undecided)
    }
}

impl From<RunnerGone> for Stop {
    fn from(gone: RunnerGone) -> Self {
        let reason = match &gone {
            RunnerGone::Ended(ExitCause::MemoryLimit, _) => Reason::Memory,
            RunnerGone::Ended(ExitCause::ProcessLimit, _) => Reason::Processes,
            RunnerGone::Ended(ExitCause::OutputLimit, _) => Reason::Writing,
            RunnerGone::Ended(ExitCause::Unstarted { why, cause }, _) => {
                return Undecided::new(UndecidedCause::of_start(*cause), why.clone()).into();
            }
            RunnerGone::Lost(why) => return Undecided::process(why.clone()).into(),
            RunnerGone::Ended(..) => Reason::Died,
            RunnerGone::Late(_) => Reason::Time,
            RunnerGone::Garbage => Reason::Pipe,
            RunnerGone::Unwanted => return Undecided::cancelled().into(),
        };
        Self::Refused(reason, how(&gone), None)
    }
}

impl From<PythonException> for Stop {
    fn from(PythonException { text, line, cause, .. }: PythonException) -> Self {
        let reason = match cause {
            ExceptionCause::DeviceMemory => Reason::DeviceMemory,
            ExceptionCause::Compile => Reason::Compile,
            ExceptionCause::Resources => Reason::Resources,
            ExceptionCause::MissingEntry => Reason::Load,
            ExceptionCause::Code | ExceptionCause::Device => Reason::Run,
            ExceptionCause::FakeTensor => return Undecided::new(UndecidedCause::FakeTensors, text).into(),
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
