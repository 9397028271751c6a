//! The reasons why a candidate gets no verdict.

use protocol::runner::ExceptionCause;
use runtime::python::{ForkerError, ModuleError};
use serde::{Deserialize, Serialize};

use super::child_processes::ComparerError;

/// Why neither a refusal nor an acceptance was possible. It decides what happens next ([`Self::retry`]); the text of an
/// [`Undecided`] is for people alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndecidedCause {
    /// The judgement was cancelled.
    Cancelled,
    /// The device lacks memory, for the original or for the judge.
    DeviceMemory,
    /// The original fails in the call that it is judged by, or has no such entry.
    Call,
    /// The original fails otherwise, or cannot be compared with anything.
    Original,
    /// The weights of a candidate's model have other names or shapes than the original's.
    OwnWeights,
    /// The candidate keeps tensors without contents, with which its kernels were compiled ahead.
    FakeTensors,
    /// The comparer's results were lost with its process.
    ResultsLost,
    /// A process of the judge cannot be started, is gone or does not answer.
    Process,
    /// Another cause, such as a file that cannot be read.
    #[default]
    Other,
}

/// What the judge does about a judgement that ended undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Nothing: the judgement stays undecided.
    Never,
    /// It judges once more in the same way.
    Again,
    /// It judges once more while nothing else uses the device.
    Alone,
    /// It judges once more, with the weights that both constructors make of one seed.
    WithOwnWeights,
    /// It judges once more without compiling ahead.
    WithoutCompilingAhead,
}

impl UndecidedCause {
    /// What the judge does about a judgement that ended with this cause.
    pub(super) fn retry(self) -> Retry {
        match self {
            Self::DeviceMemory => Retry::Alone,
            Self::OwnWeights => Retry::WithOwnWeights,
            Self::FakeTensors => Retry::WithoutCompilingAhead,
            Self::ResultsLost => Retry::Again,
            Self::Cancelled | Self::Call | Self::Original | Self::Process | Self::Other => Retry::Never,
        }
    }

    /// The cause where the original raises an exception in the recorded call or while its file is loaded.
    pub(super) fn of_original(exception: ExceptionCause) -> Self {
        match exception {
            ExceptionCause::DeviceMemory => Self::DeviceMemory,
            ExceptionCause::MissingEntry => Self::Call,
            ExceptionCause::Code
            | ExceptionCause::Compile
            | ExceptionCause::Resources
            | ExceptionCause::Device
            | ExceptionCause::FakeTensor => Self::Original,
        }
    }

    /// The cause where a process of the judge cannot be started. Beside other processes the driver may lack the memory
    /// for one more.
    pub(super) fn of_start(exception: ExceptionCause) -> Self {
        match exception {
            ExceptionCause::DeviceMemory => Self::DeviceMemory,
            _ => Self::Process,
        }
    }
}

/// The reason why a candidate cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    pub(super) cause: UndecidedCause,
    /// Why it cannot be judged, and what the user can do.
    pub(super) why: String,
}

impl Undecided {
    pub(super) fn new(cause: UndecidedCause, why: impl Into<String>) -> Self {
        Self { cause, why: why.into() }
    }

    /// A cancelled judgement.
    pub(super) fn cancelled() -> Self {
        Self::new(UndecidedCause::Cancelled, "stopped")
    }

    /// A reason that lies in the original.
    pub(super) fn original(why: impl Into<String>) -> Self {
        Self::new(UndecidedCause::Original, why)
    }

    /// A reason that lies in a process of the judge.
    pub(super) fn process(why: impl Into<String>) -> Self {
        Self::new(UndecidedCause::Process, why)
    }
}

impl From<std::io::Error> for Undecided {
    fn from(error: std::io::Error) -> Self {
        Self::new(UndecidedCause::Other, error.to_string())
    }
}

impl From<serde_json::Error> for Undecided {
    fn from(error: serde_json::Error) -> Self {
        Self::new(UndecidedCause::Other, error.to_string())
    }
}

impl From<ForkerError> for Undecided {
    fn from(error: ForkerError) -> Self {
        Self::process(error.to_string())
    }
}

impl From<ModuleError> for Undecided {
    fn from(error: ModuleError) -> Self {
        Self::process(error.to_string())
    }
}

impl From<ComparerError> for Undecided {
    fn from(error: ComparerError) -> Self {
        let cause = match error {
            ComparerError::Memory => UndecidedCause::DeviceMemory,
            ComparerError::MissingSlot(_) => UndecidedCause::ResultsLost,
            ComparerError::Cancelled => UndecidedCause::Cancelled,
            ComparerError::Other(_) => UndecidedCause::Process,
        };
        Self::new(cause, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use protocol::runner::{ExitCause, PythonException};

    use super::*;
    use crate::child_processes::RunnerGone;
    use crate::stop_reason::Stop;
    use crate::verdict::{Outcome, Reason};

    const EXCEPTIONS: [ExceptionCause; 7] = [
        ExceptionCause::Code,
        ExceptionCause::MissingEntry,
        ExceptionCause::Compile,
        ExceptionCause::Resources,
        ExceptionCause::DeviceMemory,
        ExceptionCause::Device,
        ExceptionCause::FakeTensor,
    ];
    const CAUSES: [UndecidedCause; 9] = [
        UndecidedCause::Cancelled,
        UndecidedCause::DeviceMemory,
        UndecidedCause::Call,
        UndecidedCause::Original,
        UndecidedCause::OwnWeights,
        UndecidedCause::FakeTensors,
        UndecidedCause::ResultsLost,
        UndecidedCause::Process,
        UndecidedCause::Other,
    ];
    /// Every text that ever decided something.
    const WORDS: &str = "CUDA error: out of memory; the device's memory; stopped; nothing is kept under 3; Fake meta tensor; \
         the comparing process had ended and was started again; OutOfResources: out of resource; PassManager; \
         the original itself fails; the original cannot be loaded: f";

    /// The reason of the refusal, or the cause for which nothing is decided.
    fn decided(stop: &Stop) -> Result<Reason, UndecidedCause> {
        match stop {
            Stop::Refused(reason, ..) => Ok(*reason),
            Stop::Undecided(undecided) => Err(undecided.cause),
        }
    }

    #[test]
    fn an_exception_leads_to_the_same_whatever_it_says() {
        for cause in EXCEPTIONS {
            let of = |text: &str| {
                let exception = PythonException { text: text.to_owned(), cause, ..PythonException::default() };
                decided(&Stop::from(exception))
            };
            assert_eq!(of(WORDS), of(""), "{cause:?}");
        }
    }

    /// With other judges on one GPU the driver had no memory for another process; a candidate stayed undecided for it.
    #[test]
    fn a_process_without_device_memory_for_its_start_is_started_again_alone() {
        let of = |cause| {
            let how = ExitCause::Unstarted { why: WORDS.to_owned(), cause };
            decided(&Stop::from(RunnerGone::Ended(how, String::new()))).map_err(UndecidedCause::retry)
        };
        assert_eq!(of(ExceptionCause::DeviceMemory), Err(Retry::Alone));
        assert_eq!(of(ExceptionCause::Code), Err(Retry::Never));
    }

    #[test]
    fn an_outcome_leads_to_the_same_whatever_it_says() {
        let leads_to = |outcome: &Outcome| (outcome.is_cacheable(), outcome.lacks_memory(), outcome.has_not_run());
        for cause in CAUSES {
            let of = |why: &str| leads_to(&Outcome::Undecided { cause, why: why.to_owned() });
            assert_eq!(of(WORDS), of(""), "{cause:?}");
        }
        for reason in [Reason::Run, Reason::Resources, Reason::Compile, Reason::DeviceMemory, Reason::Output] {
            let of = |evidence: &str| leads_to(&Outcome::Refused { reason, evidence: evidence.to_owned(), line: None });
            assert_eq!(of(WORDS), of(""), "{reason:?}");
        }
    }
}
