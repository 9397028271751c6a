//! A predicate: its name, its arguments, and its function.

use tree_sitter::Node;

use model::analysis::types::LaneType;
use model::analysis::types::dtype::Dtype;

use crate::learned::kernel_view::KernelView;

/// The arguments of a predicate.
pub(in crate::learned) struct PredicateInput<'s, 't> {
    /// The nodes of the captures, one each.
    pub(in crate::learned) nodes: &'s [Node<'t>],
    /// The strings after the captures.
    pub(in crate::learned) words: &'s [String],
}

/// A predicate.
#[derive(Debug)]
pub(in crate::learned) struct Predicate {
    /// The name, without `#`, `not-` and `?`.
    pub(super) name: &'static str,
    /// The minimum and maximum number of captures.
    captures: (usize, usize),
    /// The strings that the predicate takes.
    words: Words,
    pub(in crate::learned) holds: fn(&KernelView<'_>, &PredicateInput<'_, '_>) -> Option<bool>,
}

/// The kinds of strings that a predicate takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Words {
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
    pub(super) const fn new(
        name: &'static str,
        captures: (usize, usize),
        words: Words,
        holds: fn(&KernelView<'_>, &PredicateInput<'_, '_>) -> Option<bool>,
    ) -> Self {
        Self { name, captures, words, holds }
    }

    /// Whether the strings are full names, one of which the kernel must refer to.
    pub(in crate::learned) fn names_paths(&self) -> bool {
        self.name == "api"
    }

    /// Whether the strings are keywords, one of which the kernel must use.
    pub(in crate::learned) fn names_keywords(&self) -> bool {
        self.name == "has-keyword"
    }

    /// Checks the captures and strings that a pattern passes; the error describes what is wrong.
    pub(in crate::learned) fn check(&self, captures: usize, words: &[String]) -> Result<(), String> {
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
            Words::Types => match unfit(&|word| element(word).is_some()) {
                Some(word) => Err(format!("`{word}` is not an element type such as `fp16` or `*int32`")),
                None => Ok(()),
            },
            Words::None | Words::Some | Words::Number => Ok(()),
        }
    }
}

/// The type of a lane that a pattern calls `fp16`, `float16`, `i32` or `*int8`.
pub(super) fn element(word: &str) -> Option<LaneType> {
    match word.strip_prefix('*') {
        Some(word) => Dtype::of_signature(word).map(|number| LaneType::Pointer(Some(number))),
        None => Dtype::of_signature(word).map(LaneType::Number),
    }
}
