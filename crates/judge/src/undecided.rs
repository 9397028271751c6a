//! The reasons why a candidate gets no verdict.

/// The reason why a candidate cannot be judged.
pub(super) struct Undecided(pub(super) String);

impl<E: std::error::Error> From<E> for Undecided {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
