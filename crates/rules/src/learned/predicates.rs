//! The predicates of patterns, besides tree-sitter's own `#eq?`, `#match?` and `#any-of?`.
//!
//! Each predicate is one function: `Some(true)` and `Some(false)` are certain, and `None` means unknown. A pattern
//! matches where `#name?` is certainly true, or `#not-name?` certainly false. To add a predicate, write its function in
//! the file of its topic, add a line to that file's table, and add a row to the test below.

mod calls;
mod names;
mod positions;
mod predicate;
mod values;

pub(super) use names::full;
pub(super) use predicate::{Predicate, PredicateInput};
fn all() -> impl Iterator<Item = &'static Predicate> {
    [names::TABLE, values::TABLE, calls::TABLE, positions::TABLE].into_iter().flatten()
}

/// The predicate with this name in a query, and the result that it must have.
pub(super) fn find(written: &str) -> Option<(&'static Predicate, bool)> {
    let name = written.strip_suffix('?')?;
    let named = |name: &str| all().find(|predicate| predicate.name == name);
    named(name).map(|it| (it, true)).or_else(|| named(name.strip_prefix("not-")?).map(|it| (it, false)))
}

/// All names, as an error shows them.
pub(super) fn names() -> String {
    all().map(|predicate| format!("`#{}?`", predicate.name)).collect::<Vec<_>>().join(", ")
}
