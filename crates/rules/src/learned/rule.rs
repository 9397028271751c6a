//! A learned rule, as memory files and the store hold it.

use model::api::TritonError;
use std::fmt;

use serde::{Deserialize, Serialize};

use model::api::{Table, TritonTarget, Version, VersionCertainty};

/// The number of the first code of the user's own rules; rules that ship with Warpsmith have smaller numbers.
pub const FIRST_OWN: u32 = 501;

/// A rule learned from failures: a pattern of code that Triton rejects, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LearnedRule {
    /// `S` and three digits or more. It never changes; the user's own begin at `S501`.
    pub code: String,
    /// The name in kebab case, which is also the name of the pattern's file.
    pub name: String,
    /// One sentence, "You cannot …". `{name}` is replaced by the text of the pattern's capture `@name`.
    pub sentence: String,
    /// Whether the rule may be shown.
    pub state: RuleState,
    /// The source of the rule.
    pub origin: RuleOrigin,
    /// The built-in rules that flag the same place in all failures of this rule. If there are any, the rule is evidence
    /// for them, and is not shown.
    pub covered_by: Vec<String>,
    /// The number of independent failures from which the rule was learned.
    pub failures: u32,
    /// How often such a failure has occurred.
    pub met: u64,
    /// The date (UTC) of the first such failure: `2026-11-21`.
    pub first_seen: String,
    /// The date (UTC) of the last such failure.
    pub last_seen: String,
    /// The error that Triton raises.
    pub error: TritonError,
    /// The Triton releases that reject the code.
    pub triton: Releases,
    /// A tree-sitter query with the predicates of [`predicates`](super::predicates); empty where there is none yet.
    pub pattern: String,
    /// The smallest file that fails with this error.
    pub bad: String,
    /// The nearest file that does not fail.
    pub good: String,
}

/// The state of a rule, which decides whether it may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleState {
    /// Not proven yet.
    Candidate,
    /// Proven.
    Promoted,
    /// A kernel that it flags compiles.
    Demoted,
    /// No release in use refuses it.
    Expired,
}

/// The source of a rule. Serialized as a phrase: `learned from editor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RuleOrigin {
    /// Tasks that Warpsmith generated, with this seed.
    Synthesised(u64),
    /// Failures of the user's programs and searches; the text names the place, such as `editor` or a folder.
    Learned(String),
    /// Another user's memory; the text names the file.
    Imported(String),
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthesised(seed) => write!(f, "synthesised with seed {seed}"),
            Self::Learned(from) => write!(f, "learned from {from}"),
            Self::Imported(from) => write!(f, "imported from {from}"),
        }
    }
}

impl From<RuleOrigin> for String {
    fn from(origin: RuleOrigin) -> Self {
        origin.to_string()
    }
}

impl TryFrom<String> for RuleOrigin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let seed = text.strip_prefix("synthesised with seed ").and_then(|seed| seed.parse().ok());
        let learned = || text.strip_prefix("learned from ").map(|from| Self::Learned(from.to_owned()));
        let imported = || text.strip_prefix("imported from ").map(|from| Self::Imported(from.to_owned()));
        seed.map(Self::Synthesised).or_else(learned).or_else(imported).ok_or_else(|| {
            format!(
                "`{text}` is not an origin: `synthesised with seed N`, `learned from WHERE` or `imported from FILE`"
            )
        })
    }
}

/// The releases of Triton on which a reproducer was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Releases {
    /// The first release on which the reproducer failed.
    pub since: Option<Version>,
    /// The last release on which the reproducer failed, where a later one accepts it.
    pub until: Option<Version>,
    /// All releases on which the reproducer was run, oldest first.
    pub tried: Vec<Version>,
}

impl Releases {
    /// Whether a release is known to reject the reproducer. Releases before or after those tried are not covered.
    #[must_use]
    pub fn cover(&self, version: Version) -> bool {
        let last = self.until.or_else(|| self.tried.iter().max().copied());
        let (Some(since), Some(last)) = (self.since, last) else { return false };
        (since.series()..=last.series()).contains(&version.series())
    }

    /// Whether the release in use rejects the reproducer. Where that release is not known, whether all releases do.
    #[must_use]
    pub(crate) fn hold_for(&self, target: TritonTarget) -> bool {
        match target.certainty {
            VersionCertainty::Known => self.cover(target.table.version),
            VersionCertainty::Assumed => Table::versions().iter().all(|version| self.cover(*version)),
            VersionCertainty::Outside => false,
        }
    }

    /// The range of releases in words: `3.1 to 3.9`, or `none`.
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

impl RuleState {
    /// The state as memory files and lists show it.
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
    /// Whether the editor and `warpsmith check` show the rule's findings.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.state == RuleState::Promoted && self.covered_by.is_empty()
    }

    /// Whether the rule is one of the user's own.
    #[must_use]
    pub fn is_own(&self) -> bool {
        number(&self.code).is_some_and(|number| number >= FIRST_OWN)
    }

    /// Adds the counts and dates of another copy of the same rule. All other fields stay as they are.
    pub fn merge(&mut self, other: &Self) {
        self.failures = self.failures.saturating_add(other.failures);
        self.met = self.met.saturating_add(other.met);
        self.first_seen = std::cmp::min(&self.first_seen, &other.first_seen).clone();
        self.last_seen = std::cmp::max(&self.last_seen, &other.last_seen).clone();
    }

    /// The sentence with `…` in place of the captures, for lists.
    #[must_use]
    pub fn plain_sentence(&self) -> String {
        fill(&self.sentence, &mut |_| Some("…".to_owned()))
    }
}

/// The number of a code: 12 of `S012`.
#[must_use]
pub fn number(code: &str) -> Option<u32> {
    let digits = code.strip_prefix('S')?;
    let is_number = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number > 0)
}

/// `text` with each `{name}` replaced by what `known` returns for the name. Unknown names stay as they are.
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

/// The names of the placeholders `{name}` in a text.
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
    fn placeholders_are_replaced_by_captured_text() {
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
