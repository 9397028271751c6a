//! Candidates with the same machine code, launched with the same: they take as long, and the search does not run them twice.
//!
//! What the host does beside the launches may differ, so that nothing is offered by what is known of a twin.

use std::collections::HashMap;
use std::sync::Mutex;

use super::bench::lock;
use super::verdict::Measured;

/// How long those took that were right.
#[derive(Default)]
pub(super) struct Twins(Mutex<HashMap<String, Measured>>);

impl Twins {
    /// What was measured of one with this code.
    pub(super) fn find(&self, code: &str) -> Option<Measured> {
        let known = lock(&self.0).get(code).cloned()?;
        Some(Measured { twin: true, ..known })
    }

    /// Keeps what was measured of one with this code.
    pub(super) fn keep(&self, code: String, measured: &Measured) {
        lock(&self.0).entry(code).or_insert_with(|| measured.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_twin_says_so() {
        let (twins, of) =
            (Twins::default(), |milliseconds| Measured { pairs: vec![(1.0, milliseconds)], ..Measured::default() });
        assert_eq!(twins.find("a"), None);
        twins.keep("a".to_owned(), &of(0.5));
        // The first to come is the one that is known.
        twins.keep("a".to_owned(), &of(0.6));
        assert_eq!(twins.find("a"), Some(Measured { twin: true, ..of(0.5) }));
        assert_eq!(twins.find("b"), None);
    }
}
