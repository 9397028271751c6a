//! Candidates: versions of the user's file, with the changes that led to them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use similar::{DiffTag, TextDiff};

use model::kernel::Module;
use model::syntax::{Source, Span};
use rules::{Edit, apply_edits};

/// One change from the user's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A named number, such as a tile size or a launch option.
    Number {
        /// The name.
        name: String,
        /// The number before.
        from: i64,
        /// The number after.
        to: i64,
    },
    /// The same, where an expression computed the number before.
    Chosen {
        /// The name.
        name: String,
        /// The number after.
        to: i64,
    },
    /// A change of the kernel's structure, in words.
    Structure(String),
    /// One version for calls whose size is at most `at`, and another for larger ones.
    Choice {
        /// The expression of the size, as in the source.
        by: String,
        /// The greatest size for which the small version runs.
        at: i64,
        /// The changes of the small version.
        small: Vec<Change>,
        /// The changes of the large version.
        large: Vec<Change>,
    },
}

/// A version of the file, with all changes since the user's version.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The source of the file.
    pub text: String,
    /// The model of that source.
    pub module: Module,
    /// The changes since the user's file, oldest first.
    pub changes: Vec<Change>,
}

impl Candidate {
    /// The candidate without changes: the user's own file.
    pub fn original(text: &str) -> Self {
        Self::changed(text, Vec::new())
    }

    /// The candidate with this text, which these changes led to.
    pub fn changed(text: &str, changes: Vec<Change>) -> Self {
        Self { text: text.to_owned(), module: Module::build(&Source::parse(text)), changes }
    }

    /// The candidate's text with these edits applied.
    pub fn text_with(&self, edits: &[Edit]) -> String {
        apply_edits(&self.text, edits)
    }

    /// A new candidate: this one with these edits applied and these changes recorded.
    pub fn with(&self, edits: &[Edit], changes: &[Change]) -> Self {
        let text = self.text_with(edits);
        let module = Module::build(&Source::parse(text.as_str()));
        let mut all = self.changes.clone();
        changes.iter().for_each(|change| add(&mut all, change));
        Self { text, module, changes: all }
    }

    /// The distance from the user's file: |log₂| of each number's ratio, 1 for a number that was computed before, 4 for
    /// a change of structure, and 4 plus the distances of both versions for a choice by size.
    pub fn distance(&self) -> f64 {
        self.changes.iter().map(Change::distance).sum()
    }

    /// The names of the changed numbers and the descriptions of all other changes, without the numbers' values.
    pub fn changed_names(&self) -> BTreeSet<String> {
        let name =
            |change: &Change| change.number().map_or_else(|| describe(std::slice::from_ref(change)), str::to_owned);
        self.changes.iter().map(name).collect()
    }

    /// The changes in words: `BLOCK_M 64 → 128, num_warps 4 → 8`.
    pub fn describe(&self) -> String {
        describe(&self.changes)
    }
}

/// These changes in words, separated by commas.
pub fn describe(changes: &[Change]) -> String {
    let said = changes.iter().map(|change| match change {
        Change::Number { name, from, to } => format!("{name} {from} → {to}"),
        Change::Chosen { name, to } => format!("{name} = {to}"),
        Change::Structure(what) => what.clone(),
        Change::Choice { by, at, small, large } => {
            format!("choice by {by} (≤ {at}: {}; above: {})", version(small), version(large))
        }
    });
    said.collect::<Vec<_>>().join(", ")
}

/// One version of a choice in words: `BLOCK 64, num_warps 1`.
fn version(changes: &[Change]) -> String {
    let said = changes.iter().map(|change| match change {
        Change::Number { name, to, .. } | Change::Chosen { name, to } => format!("{name} {to}"),
        other => describe(std::slice::from_ref(other)),
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { "as it was".to_owned() } else { said.join(", ") }
}

impl Change {
    /// The name of the number that was changed; `None` for other changes.
    pub fn number(&self) -> Option<&str> {
        match self {
            Self::Number { name, .. } | Self::Chosen { name, .. } => Some(name),
            Self::Structure(_) | Self::Choice { .. } => None,
        }
    }

    fn distance(&self) -> f64 {
        match self {
            Self::Number { from, to, .. } => (*to.max(&1) as f64 / *from.max(&1) as f64).log2().abs(),
            Self::Chosen { .. } => 1.0,
            Self::Structure(_) => 4.0,
            Self::Choice { small, large, .. } => 4.0 + small.iter().chain(large).map(Self::distance).sum::<f64>(),
        }
    }

    /// Whether it chooses between two versions by a size.
    pub fn is_choice(&self) -> bool {
        matches!(self, Self::Choice { .. })
    }
}

/// Adds a change. Successive changes of one number are merged, and dropped where the number is back at its first value.
fn add(all: &mut Vec<Change>, change: &Change) {
    let is_same = |other: &&mut Change| other.number().is_some() && other.number() == change.number();
    match (all.iter_mut().find(is_same), change) {
        (
            Some(Change::Number { to: last, .. } | Change::Chosen { to: last, .. }),
            Change::Number { to, .. } | Change::Chosen { to, .. },
        ) => *last = *to,
        _ => all.push(change.clone()),
    }
    all.retain(|change| !matches!(change, Change::Number { from, to, .. } if from == to));
}

/// The edits that turn `old` into `new`, from a diff by words.
pub fn edits_between(old: &str, new: &str) -> Vec<Edit> {
    let diff = TextDiff::from_words(old, new);
    let ends = |words: &mut dyn Iterator<Item = &str>| -> Vec<usize> {
        let mut ends = vec![0];
        words.for_each(|word| ends.push(ends[ends.len() - 1] + word.len()));
        ends
    };
    let (before, after) = (ends(&mut diff.iter_old_slices()), ends(&mut diff.iter_new_slices()));
    let changed = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal).map(|op| {
        let (from, to) = (op.old_range(), op.new_range());
        let span = Span::new(before[from.start], before[from.end]);
        Edit { span, text: new[after[to.start]..after[to.end]].to_owned() }
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_between_two_texts_make_one_of_the_other() {
        let old = "a = 1\n# ein Wort: größer\nb = f(a, 64,\n      num_warps=4)\n";
        for new in [
            old,
            "",
            "a = 1\n# ein Wort: größer\nb = f(a, 128,\n      num_warps=8)\n",
            "c = 2\nb = f(a, 64,\n      num_warps=4)\nd = 1",
        ] {
            let edits = edits_between(old, new);
            assert_eq!(apply_edits(old, &edits), new);
            assert_eq!(apply_edits(new, &edits_between(new, old)), old);
            assert_eq!(edits.is_empty(), old == new);
        }
        let one = edits_between(old, &old.replace("64", "128"));
        assert!(matches!(&one[..], [edit] if edit.text.contains("128") && edit.text.len() < 8), "{one:?}");
    }

    #[test]
    fn repeated_changes_of_a_number_are_merged() {
        let number = |name: &str, from, to| Change::Number { name: name.to_owned(), from, to };
        let first = Candidate::original("x = 1\n");
        let second = first.with(&[], &[number("B", 64, 128), number("w", 4, 8)]);
        let third = second.with(&[], &[number("B", 128, 256)]);
        assert_eq!(third.describe(), "B 64 → 256, w 4 → 8");
        assert_eq!((first.distance(), third.distance()), (0.0, 3.0));
        assert_eq!(third.with(&[], &[number("B", 256, 64)]).describe(), "w 4 → 8");
        let chosen = first.with(&[], &[Change::Chosen { name: "w".to_owned(), to: 8 }]);
        assert_eq!(chosen.with(&[], &[number("w", 8, 16)]).describe(), "w = 16");
    }
}
