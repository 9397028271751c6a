//! The stages of learning, for progress messages.

/// A completed stage of learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningStage {
    /// The failures and the kernels that compile were read from the store.
    Read,
    /// The failures were divided into those that rules explain and the others.
    Divided,
    /// Programs that may disprove patterns were generated.
    CounterexamplesMade,
    /// Programs with each function of Triton were compiled.
    Swept,
    /// Patterns were derived.
    Learned,
    /// Equivalent patterns were merged.
    Merged,
    /// The patterns were proven or refuted.
    Proven,
    /// The rules were compared with all kernels in the store that compile.
    Compared,
}

impl LearningStage {
    /// The stage in a few words, for the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Divided => "divided",
            Self::CounterexamplesMade => "counter-examples made",
            Self::Swept => "swept",
            Self::Learned => "learned",
            Self::Merged => "merged",
            Self::Proven => "proven",
            Self::Compared => "held against what compiles",
        }
    }
}
