//! What patterns can ask beside what stands there (`#eq?`, `#match?` and `#any-of?` are tree-sitter's own).
//!
//! Each predicate is one function: `Some(true)` and `Some(false)` are certain, `None` is "nobody can tell". A pattern matches
//! where `#name?` is certainly true, or `#not-name?` certainly false. To add one: write the function into the file that it
//! belongs to, with a line in that file's table, and a row of the test below.

mod calls;
mod names;
mod places;
mod values;

pub(super) use names::full;
use tree_sitter::Node;

use super::subject::Subject;

/// What a predicate is asked about.
pub(super) struct Argument<'s, 't> {
    /// What its captures have caught, one each.
    pub(super) nodes: &'s [Node<'t>],
    /// The strings behind them.
    pub(super) words: &'s [String],
}

/// A predicate.
#[derive(Debug)]
pub(super) struct Predicate {
    /// Its name, without `#`, `not-` and `?`.
    name: &'static str,
    /// How many captures it takes, at least and at most.
    captures: (usize, usize),
    /// What words it takes.
    words: Words,
    pub(super) holds: fn(&Subject<'_>, &Argument<'_, '_>) -> Option<bool>,
}

/// The words that a predicate takes.
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
        holds: fn(&Subject<'_>, &Argument<'_, '_>) -> Option<bool>,
    ) -> Self {
        Self { name, captures, words, holds }
    }

    /// Whether its words are names of what the kernel must refer to.
    pub(super) fn names_paths(&self) -> bool {
        self.name == "api"
    }

    /// Whether its words are keywords that the kernel must use.
    pub(super) fn names_keywords(&self) -> bool {
        self.name == "has-keyword"
    }

    /// What is wrong with how a pattern uses it.
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
    [names::TABLE, values::TABLE, calls::TABLE, places::TABLE].into_iter().flatten()
}

/// The predicate that a query writes so, and what it must say.
pub(super) fn find(written: &str) -> Option<(&'static Predicate, bool)> {
    let name = written.strip_suffix('?')?;
    let named = |name: &str| all().find(|predicate| predicate.name == name);
    named(name).map(|it| (it, true)).or_else(|| named(name.strip_prefix("not-")?).map(|it| (it, false)))
}

/// All names, as an error shows them.
pub(super) fn names() -> String {
    all().map(|predicate| format!("`#{}?`", predicate.name)).collect::<Vec<_>>().join(", ")
}
