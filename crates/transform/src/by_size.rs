//! Merges two candidates into one file that chooses between them by a size.

mod configurations;
mod numbers;
mod sizes;
mod versions;

pub use sizes::{Size, sizes};

use crate::candidate::Candidate;

/// Two candidates of one original, and the condition that chooses between them.
#[derive(Clone, Copy)]
pub struct Two<'a> {
    /// The candidate for sizes of at most [`Self::at`].
    pub small: &'a Candidate,
    /// The candidate for larger sizes.
    pub large: &'a Candidate,
    /// The size that the condition tests.
    pub size: &'a Size,
    /// The greatest size for which the small candidate is used.
    pub at: i64,
    /// Whether the merged file is the small candidate's text with additions from the large one, rather than the
    /// reverse.
    pub keeps_small: bool,
}

impl<'a> Two<'a> {
    /// The candidate whose text is kept, and the other one.
    fn kept_and_other(&self) -> (&'a Candidate, &'a Candidate) {
        if self.keeps_small { (self.small, self.large) } else { (self.large, self.small) }
    }

    /// `n_cols <= 1024`
    fn condition(&self) -> String {
        format!("{} <= {}", self.size.text, self.at)
    }
}

#[cfg(test)]
mod tests;
