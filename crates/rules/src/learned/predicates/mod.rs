//! The predicates of patterns, besides tree-sitter's own `#eq?`, `#match?` and `#any-of?`.
//!
//! Each predicate is one function: `Some(true)` and `Some(false)` are certain, and `None` means unknown. A pattern
//! matches where `#name?` is certainly true, or `#not-name?` certainly false. To add a predicate, write its function in
//! the file of its topic, add a line to that file's table, and add a row to the test below.

mod calls;
mod names;
mod positions;
mod values;

pub(super) use names::full;
use tree_sitter::Node;

use super::kernel_view::KernelView;

/// The arguments of a predicate.
pub(super) struct PredicateInput<'s, 't> {
    /// The nodes of the captures, one each.
    pub(super) nodes: &'s [Node<'t>],
    /// The strings after the captures.
    pub(super) words: &'s [String],
}

/// A predicate.
#[derive(Debug)]
pub(super) struct Predicate {
    /// The name, without `#`, `not-` and `?`.
    name: &'static str,
    /// The minimum and maximum number of captures.
    captures: (usize, usize),
    /// The strings that the predicate takes.
    words: Words,
    pub(super) holds: fn(&KernelView<'_>, &PredicateInput<'_, '_>) -> Option<bool>,
}

/// The kinds of strings that a predicate takes.
#[derive(Clone, Copy, Debug)]
enum Words {
    /// None.
    None,
    /// At least one.
    Some,
    /// One whole number.
    Number,
    /// At least one of these.
    Of(&'static [&'static str]),
    /// At least one element type: `fp16`, `*int32`.
    Types,
}

impl Predicate {
    const fn new(
        name: &'static str,
        captures: (usize, usize),
        words: Words,
        holds: fn(&KernelView<'_>, &PredicateInput<'_, '_>) -> Option<bool>,
    ) -> Self {
        Self { name, captures, words, holds }
    }

    /// Whether the strings are full names, one of which the kernel must refer to.
    pub(super) fn names_paths(&self) -> bool {
        self.name == "api"
    }

    /// Whether the strings are keywords, one of which the kernel must use.
    pub(super) fn names_keywords(&self) -> bool {
        self.name == "has-keyword"
    }

    /// Checks the captures and strings that a pattern passes; the error describes what is wrong.
    pub(super) fn check(&self, captures: usize, words: &[String]) -> Result<(), String> {
        let (least, most) = self.captures;
        if !(least..=most).contains(&captures) {
            let count = if least == most { least.to_string() } else { format!("{least} or {most}") };
            return Err(format!("takes {count} captures, not {captures}"));
        }
        let unfit = |is_fit: &dyn Fn(&str) -> bool| words.iter().find(|word| !is_fit(word));
        match self.words {
            Words::None if !words.is_empty() => Err("takes captures only".to_owned()),
            Words::Some | Words::Of(_) | Words::Types if words.is_empty() => Err("needs at least one word".to_owned()),
            Words::Number if words.len() != 1 || words[0].parse::<i128>().is_err() => {
                Err("takes one whole number".to_owned())
            }
            Words::Of(known) => match unfit(&|word| known.contains(&word)) {
                Some(word) => Err(format!("does not know `{word}`; there are {}", known.join(", "))),
                None => Ok(()),
            },
            Words::Types => match unfit(&|word| values::element(word).is_some()) {
                Some(word) => Err(format!("`{word}` is no element type such as `fp16` or `*int32`")),
                None => Ok(()),
            },
            Words::None | Words::Some | Words::Number => Ok(()),
        }
    }
}

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
