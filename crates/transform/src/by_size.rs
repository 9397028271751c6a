//! Merges two candidates into one file that chooses between them by a size.

mod configurations;
mod numbers;
mod sizes;
mod versions;

pub use sizes::{Size, sizes};

use crate::candidate::Candidate;

/// Two candidates of one original, and what tells when each is taken.
#[derive(Clone, Copy)]
pub struct Two<'a> {
    /// What is taken where the size is at most [`Self::at`].
    pub small: &'a Candidate,
    /// What is taken above.
    pub large: &'a Candidate,
    /// The size that decides.
    pub size: &'a Size,
    /// The greatest value of the size for which the small one is taken.
    pub at: i64,
    /// Whether it is the small one whose text is kept, with what the other one has beside it.
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
