//! How far a candidate is right: on which of the original's calls it agrees with it.

use serde::{Deserialize, Serialize};

pub use config::Grade;
use protocol::runner::FloatContents;

use super::trials::Trial;

/// The greatest grade of a candidate that was judged on all trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeReached {
    /// The grade; `None` for a candidate that is wrong on calls like the recorded ones.
    pub grade: Option<Grade>,
    /// The trial on which the candidate is wrong, and how; `None` for one that is right on all.
    pub broken_by: Option<String>,
}

impl GradeReached {
    /// Right on all trials.
    pub(super) const STRICT: Self = Self { grade: Some(Grade::Strict), broken_by: None };

    /// Wrong on a trial of this grade.
    pub(super) fn broken(at: Grade, by: String) -> Self {
        let grade = match at {
            Grade::Strict => Some(Grade::Finite),
            Grade::Finite => Some(Grade::Recorded),
            Grade::Recorded => None,
        };
        Self { grade, broken_by: Some(by) }
    }

    /// The lower of two grades of one candidate.
    pub(super) fn and(self, other: Self) -> Self {
        if other.grade < self.grade { other } else { self }
    }
}

impl Trial {
    /// The least grade for which a candidate must be right on the trial.
    pub(super) fn grade(&self) -> Grade {
        match self.inputs.values {
            FloatContents::Recorded => Grade::Recorded,
            FloatContents::Infinite | FloatContents::Nan | FloatContents::Tiny | FloatContents::Subnormal => {
                Grade::Strict
            }
            _ => Grade::Finite,
        }
    }
}

/// Where a model's weights come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelWeights {
    /// The candidate's model gets the original's weights, and both get others before each call: the candidate can
    /// replace a trained model.
    #[default]
    Copied,
    /// Both models keep what their constructors make of one seed, as in KernelBench.
    Seed,
}
