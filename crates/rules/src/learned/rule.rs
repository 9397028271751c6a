//! A learned rule, as it stands in a memory file and in the store.

use model::api::TritonError;
use std::fmt;

use serde::{Deserialize, Serialize};

use model::api::{Certainty, Table, Target, Version};

/// The first code of the user's own rules; those that are shipped have smaller ones.
pub const FIRST_OWN: u32 = 501;

/// What was learned from failures: a place in a kernel that Triton refuses, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LearnedRule {
    /// `S` and three digits or more. It never changes; the user's own begin at `S501`.
    pub code: String,
    /// In kebab case, and the name of the pattern's file.
    pub name: String,
    /// "You cannot …": one sentence. `{name}` stands for what the pattern's capture `@name` has caught.
    pub sentence: String,
    /// Whether it may be shown.
    pub state: State,
    /// Where it comes from.
    pub origin: Origin,
    /// The built-in rules that flag the same place in all its failures: then it is evidence for them, and not shown.
    pub covered_by: Vec<String>,
    /// From how many independent failures it was learned.
    pub failures: u32,
    /// How often such a failure was met.
    pub met: u64,
    /// The day (UTC) on which it was met first: `2026-11-21`
    pub first_seen: String,
    /// The day on which it was met last.
    pub last_seen: String,
    /// What Triton says.
    pub error: TritonError,
    /// In which releases that is so.
    pub triton: Releases,
    /// A tree-sitter query with the predicates of [`predicates`](super::predicates); empty for one that has none yet.
    pub pattern: String,
    /// The smallest file that fails so.
    pub bad: String,
    /// The nearest file that does not.
    pub good: String,
}

/// Whether a rule may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not proven yet.
    Candidate,
    /// Proven.
    Promoted,
    /// A kernel that it flags compiles.
    Demoted,
    /// No release in use refuses it.
    Expired,
}

/// Where a rule comes from. Written as a phrase: `learned from editor`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Origin {
    /// From tasks that Warpsmith made for itself, with this seed.
    Synthesised(u64),
    /// From failures of the user's programs and searches: in a word where, such as `editor` or a folder.
    Learned(String),
    /// From somebody else's memory: the file.
    Imported(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthesised(seed) => write!(f, "synthesised with seed {seed}"),
            Self::Learned(from) => write!(f, "learned from {from}"),
            Self::Imported(from) => write!(f, "imported from {from}"),
        }
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}

impl TryFrom<String> for Origin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let seed = text.strip_prefix("synthesised with seed ").and_then(|seed| seed.parse().ok());
        let learned = || text.strip_prefix("learned from ").map(|from| Self::Learned(from.to_owned()));
        let imported = || text.strip_prefix("imported from ").map(|from| Self::Imported(from.to_owned()));
        seed.map(Self::Synthesised).or_else(learned).or_else(imported).ok_or_else(|| {
            format!("`{text}` is no origin: `synthesised with seed N`, `learned from WHERE` or `imported from FILE`")
        })
    }
}

/// The releases of Triton on which a reproducer was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Releases {
    /// The first on which it failed.
    pub since: Option<Version>,
    /// The last on which it failed, when a later one takes it.
    pub until: Option<Version>,
    /// All on which it was run, oldest first.
    pub tried: Vec<Version>,
}

impl Releases {
    /// Whether a release refuses it, as far as that was tried: nothing is known of what is newer or older.
    #[must_use]
    pub fn cover(&self, version: Version) -> bool {
        let last = self.until.or_else(|| self.tried.iter().max().copied());
        let (Some(since), Some(last)) = (self.since, last) else { return false };
        (since.series()..=last.series()).contains(&version.series())
    }

    /// Whether the release in use refuses it; when that is not known, whether all do.
    #[must_use]
    pub fn hold_for(&self, target: Target) -> bool {
        match target.certainty {
            Certainty::Known => self.cover(target.table.version),
            Certainty::Assumed => Table::versions().iter().all(|version| self.cover(*version)),
            Certainty::Outside => false,
        }
    }

    /// As people read it: `3.1 to 3.9`, `none`.
    #[must_use]
    pub fn range(&self) -> String {
        let short = |version: Version| format!("{}.{}", version.major, version.minor);
        let last = self.until.or_else(|| self.tried.iter().max().copied());
        match (self.since, last) {
            (Some(since), Some(last)) if since.series() == last.series() => short(since),
            (Some(since), Some(last)) => format!("{} to {}", short(since), short(last)),
            _ => "none yet".to_owned(),
        }
    }
}

impl State {
    /// As files and lists have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Promoted => "promoted",
            Self::Demoted => "demoted",
            Self::Expired => "expired",
        }
    }
}

impl LearnedRule {
    /// Whether the editor and `warpsmith check` show what it finds.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.state == State::Promoted && self.covered_by.is_empty()
    }

    /// Whether it is one of the user's own.
    #[must_use]
    pub fn is_own(&self) -> bool {
        number(&self.code).is_some_and(|number| number >= FIRST_OWN)
    }

    /// Adds what is known of the same rule from elsewhere: counts and dates. What this one says stays.
    pub fn merge(&mut self, other: &Self) {
        self.failures = self.failures.saturating_add(other.failures);
        self.met = self.met.saturating_add(other.met);
        self.first_seen = std::cmp::min(&self.first_seen, &other.first_seen).clone();
        self.last_seen = std::cmp::max(&self.last_seen, &other.last_seen).clone();
    }

    /// The sentence where nothing is caught, as in lists: `…` for what differs.
    #[must_use]
    pub fn plain_sentence(&self) -> String {
        fill(&self.sentence, &mut |_| Some("…".to_owned()))
    }
}

/// The digits of a code: 12 of `S012`.
#[must_use]
pub fn number(code: &str) -> Option<u32> {
    let digits = code.strip_prefix('S')?;
    let is_number = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number > 0)
}

/// `text` with each `{name}` replaced by what is known under this name; others stay as they are.
pub(super) fn fill(text: &str, known: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let inner = rest[open + 1..].split_once('}').map(|(name, _)| name);
        let is_name = |name: &&str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        match inner.filter(is_name).and_then(|name| Some((known(name)?, name.len()))) {
            Some((value, length)) => {
                out.push_str(&value);
                rest = &rest[open + length + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[open + 1..];
            }
        }
    }
    out + rest
}

/// The names that `{name}` stands for in a text.
pub(super) fn placeholders(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    fill(text, &mut |name| {
        names.push(name.to_owned());
        None
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_kind_have_one_signature() {
        let of = |message: &str| TritonError { kind: "E".to_owned(), message: message.to_owned() }.signature();
        assert_eq!(of("\nname 'oops1' is not defined\nmore"), "E: name … is not defined");
        assert_eq!(of("got 3 and 4.5, int32 isn't it"), "E: got … and …, int32 isn't it");
        assert_eq!(of("`a` and \"b\": x_1"), "E: … and …: x_1");
        assert_eq!(of(""), "E: ");
        assert_eq!(of("oops2 is not defined"), "E: … is not defined");
    }

    #[test]
    fn what_is_caught_takes_the_place_of_its_name() {
        let mut caught = |name: &str| (name == "f").then(|| "tl.load".to_owned());
        assert_eq!(fill("{f} and {g} and {'a': 1} {f", &mut caught), "tl.load and {g} and {'a': 1} {f");
        assert_eq!(placeholders("{f} {not this} {g}"), ["f", "g"]);
    }

    #[test]
    fn codes_are_s_and_digits() {
        assert_eq!(number("S012"), Some(12));
        assert_eq!(number("S1012"), Some(1012));
        for code in ["S12", "S000", "L012", "S01x", "s012", "S", "", "S99999999999"] {
            assert_eq!(number(code), None, "{code}");
        }
    }
}
