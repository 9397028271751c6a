//! What a rule declares about itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::engine::{Context, Findings};

/// A rule: what it says about itself, and its check.
#[derive(Debug)]
pub struct Rule {
    /// Code, name, documentation.
    pub declaration: Declaration,
    /// Looks at one file and reports what it finds. Silent about what it does not know.
    pub check: fn(&Context<'_>, &mut Findings<'_>),
}

/// What a rule says about itself.
#[derive(Debug)]
pub struct Declaration {
    /// Letter of the family and three digits: `L001`.
    pub code: &'static str,
    /// The name reads after "allow": `unknown-member`.
    pub name: &'static str,
    /// How serious a finding is.
    pub severity: Severity,
    /// One sentence, no full stop: what the rule finds.
    pub summary: &'static str,
    /// The Warpsmith version that brought it.
    pub since: &'static str,
    /// Whether it offers a fix for at least some findings.
    pub fixable: bool,
    /// Markdown: `## What it does`, `## Why is this bad?`, `## Bad` and `## Good` with Python blocks, further headings
    /// as needed (`## Fix`, `## Sources`). The blocks are the rule's tests: under a flagged line of a bad block stands a
    /// comment `# ^^^` whose carets mark the span; good blocks are clean under every rule.
    pub doc: &'static str,
}

/// The families of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Triton will reject it.
    Language,
    /// Masks, bounds, lanes, aliasing, int32 offsets.
    Memory,
    /// tf32, accumulators, NaN and -inf, overflow.
    Numerics,
    /// Grid, autotune, constexpr, strides, recompiles.
    Host,
    /// Known slow shapes.
    Performance,
    /// Learned skills.
    Skill,
    /// What the compiler itself said.
    Compiler,
}

/// The letters of the families, whether or not they have rules yet.
pub(super) const FAMILIES: &str = "LMNHPSC";

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It will fail.
    Error,
    /// It may give wrong results or fail.
    Warning,
    /// It could be better.
    Hint,
}

impl Declaration {
    /// The family, from the code's letter.
    #[must_use]
    pub fn family(&self) -> Family {
        match self.code.as_bytes()[0] {
            b'L' => Family::Language,
            b'M' => Family::Memory,
            b'N' => Family::Numerics,
            b'H' => Family::Host,
            b'P' => Family::Performance,
            b'S' => Family::Skill,
            _ => Family::Compiler,
        }
    }

    /// Address of the rule's page: [`super::pages`] in the documentation of the published crate.
    #[must_use]
    pub fn url(&self) -> String {
        page_url(self.code, self.name)
    }
}

/// Address of the page of the rule with this code and name.
pub(super) fn page_url(code: &str, name: &str) -> String {
    // The heading is `# L001 unknown-member`; rustdoc makes this anchor of it.
    let anchor = format!("{}-{name}", code.to_ascii_lowercase());
    format!("https://docs.rs/warpsmith/latest/warpsmith/rules/pages/index.html#{anchor}")
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Hint => "hint",
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Language => "language",
            Self::Memory => "memory",
            Self::Numerics => "numerics",
            Self::Host => "host and launch",
            Self::Performance => "performance",
            Self::Skill => "learned skills",
            Self::Compiler => "compiler",
        })
    }
}
