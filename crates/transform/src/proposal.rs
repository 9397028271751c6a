//! A proposal: one change of a candidate's source.

use rules::Edit;

use super::candidate::Change;

/// A proposal: one change of a candidate's source.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The kind under which experience with such proposals is collected, such as `num_warps up`.
    pub kind: String,
    /// The edits of the candidate's source.
    pub edits: Vec<Edit>,
    /// The same change in the form that reports describe.
    pub changes: Vec<Change>,
}

impl Proposal {
    /// A proposal that changes the structure of the kernel; `None` where there are no edits.
    pub(crate) fn of_structure(kind: &str, what: &str, edits: Vec<Edit>) -> Option<Self> {
        let changes = vec![Change::Structure(what.to_owned())];
        (!edits.is_empty()).then(|| Self { kind: kind.to_owned(), edits, changes })
    }
}
