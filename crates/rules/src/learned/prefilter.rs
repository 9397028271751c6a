//! A cheap filter before a query runs: the words that a kernel's text must contain for a pattern to match.

use tree_sitter::{CaptureQuantifier, Query};

use model::kernel::{Kernel, Module};
use model::syntax::Source;

/// Groups of words; the text must contain one word of each group.
#[derive(Debug, Default)]
pub(super) struct Literals {
    groups: Vec<Vec<Literal>>,
}

#[derive(Debug)]
enum Literal {
    /// A text.
    Text(String),
    /// The full name of a function or value, which the file may import under another name.
    Path(String),
}

impl Literals {
    /// The words that `#eq?` and `#any-of?` of one pattern of a query require.
    pub(super) fn of(query: &Query, pattern: usize, text: &str) -> Self {
        let mut found = Self::default();
        for written in ["#eq?", "#any-of?"] {
            for (at, _) in text.match_indices(written) {
                let Some((capture, words)) = arguments(&text[at + written.len()..]) else { continue };
                // A capture that may be empty requires no word.
                let quantifier = query.capture_index_for_name(capture).and_then(|capture| {
                    query.capture_quantifiers(pattern).get(usize::try_from(capture).ok()?).copied()
                });
                let is_there = matches!(quantifier, Some(CaptureQuantifier::One | CaptureQuantifier::OneOrMore));
                if is_there && !words.is_empty() {
                    found.groups.push(words.into_iter().map(Literal::Text).collect());
                }
            }
        }
        found
    }

    /// Adds the requirement that the kernel refers to one of these full names.
    pub(super) fn add_paths(&mut self, paths: impl Iterator<Item = String>) {
        self.groups.push(paths.map(Literal::Path).collect());
    }

    /// Whether a kernel contains a word of each group.
    pub(super) fn are_in(&self, source: &Source, module: &Module, kernel: &Kernel) -> bool {
        let text = source.slice(kernel.def_span).as_bytes();
        let has = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
        let is_there = |literal: &Literal| match literal {
            Literal::Text(text) => has(text),
            Literal::Path(path) => {
                let last = path.rsplit('.').next().unwrap_or(path);
                has(last) || module.imports.aliases_of(path).into_iter().any(has)
            }
        };
        self.groups.iter().all(|group| group.iter().any(is_there))
    }
}

/// The capture and the strings of a predicate, up to its end; `None` where they use syntax that is not handled here,
/// such as escapes.
fn arguments(rest: &str) -> Option<(&str, Vec<String>)> {
    let rest = rest.trim_start().strip_prefix('@')?;
    let end = rest.find(|c: char| c.is_whitespace() || c == ')')?;
    let (capture, mut rest) = rest.split_at(end);
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.starts_with(')') {
            return Some((capture, words));
        }
        let (word, after) = rest.strip_prefix('"')?.split_once('"')?;
        if word.contains('\\') {
            return None;
        }
        words.push(word.to_owned());
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_predicate_arguments_are_read() {
        let words = |text: &str| arguments(text).map(|(capture, words)| (capture.to_owned(), words.join("|")));
        assert_eq!(words(" @x \"a\" \"b c\")"), Some(("x".to_owned(), "a|b c".to_owned())));
        assert_eq!(words(" @x @y)"), None);
        assert_eq!(words(" @x \"a\\n\")"), None);
        assert_eq!(words(" @x \"a"), None);
    }
}
