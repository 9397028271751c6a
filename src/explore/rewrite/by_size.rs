//! Two versions of a file made one that chooses between them by a size.

mod configurations;
mod numbers;
mod sizes;
mod versions;

pub(in crate::explore) use sizes::{Size, sizes};

use crate::explore::candidate::Candidate;

/// Two candidates of one original, and what tells when each is taken.
#[derive(Clone, Copy)]
pub(in crate::explore) struct Two<'a> {
    /// What is taken where the size is at most [`Self::at`].
    pub(in crate::explore) small: &'a Candidate,
    /// What is taken above.
    pub(in crate::explore) large: &'a Candidate,
    pub(in crate::explore) size: &'a Size,
    pub(in crate::explore) at: i64,
    /// Whether it is the small one whose text is kept, with what the other one has beside it.
    pub(in crate::explore) keeps_small: bool,
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
