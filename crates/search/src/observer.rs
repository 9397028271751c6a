//! The progress of a search, and the observer that receives it.

use std::fmt;
use std::sync::Arc;

use super::report::{Report, ReportChange};

/// The progress of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The present activity, for a status line.
    pub message: String,
    /// Share of the budget that is spent, 0 to 1.
    pub fraction: f64,
    /// Best speedup of a correct candidate so far (1 is the speed of the original).
    pub best: Option<f64>,
    /// Seconds of the budget that are spent, and the whole budget in seconds; `None` before the budget counts.
    pub seconds: Option<(f64, f64)>,
    /// Number of candidates that were judged.
    pub candidates: usize,
}

impl Progress {
    /// Progress of a step that comes before the budget counts.
    #[must_use]
    pub fn before(message: impl Into<String>) -> Self {
        Self { message: message.into(), fraction: 0.0, best: None, seconds: None, candidates: 0 }
    }
}

impl fmt::Display for Progress {
    /// One status line, as far as the parts are known: `exploring · 12/60 s · 1.40× · 14 candidates`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((spent, budget)) = self.seconds {
            write!(f, " · {:.0}/{budget:.0} s", spent.floor())?;
        }
        if let Some(best) = self.best {
            write!(f, " · {best:.2}×")?;
        }
        match self.candidates {
            0 => Ok(()),
            1 => f.write_str(" · 1 candidate"),
            more => write!(f, " · {more} candidates"),
        }
    }
}

/// A listener that receives the progress of a search, answers its questions and may stop it. The thread that runs
/// the search calls it.
pub trait Observer: Sync {
    /// Receives the search's progress.
    fn progress(&self, progress: &Progress);
    /// Receives the report of the run whenever it has changed, for views that draw the search.
    fn noted(&self, _report: &Report, _changed: ReportChange) {}
    /// Whether the search should stop. The search asks often, so this must be cheap.
    fn cancelled(&self) -> bool;
    /// Asks the user `question`: whether their program may be run once to record a workload.
    fn confirm(&self, question: &str) -> bool;
    /// Asks the user `question`: whether something, named with its recipient, may be sent to a language model. The
    /// default is no, so that no implementation consents on the user's behalf.
    fn may_send(&self, _question: &str) -> bool {
        false
    }
    /// The language models of the editor in which the search was started, if the editor offers any.
    fn editor_model(&self) -> Option<Arc<dyn llm::EditorModel>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn the_status_line_contains_the_known_parts() {
        let mut progress = Progress::before("starting Python");
        assert_eq!(progress.to_string(), "starting Python");
        (progress.message, progress.seconds, progress.candidates) = ("exploring".to_owned(), Some((12.9, 60.0)), 1);
        assert_eq!(progress.to_string(), "exploring · 12/60 s · 1 candidate");
        (progress.best, progress.candidates) = (Some(1.4), 14);
        assert_eq!(progress.to_string(), "exploring · 12/60 s · 1.40× · 14 candidates");
    }
}
