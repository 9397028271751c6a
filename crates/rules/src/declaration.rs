//! The declaration of a rule: code, name, severity, documentation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The metadata and documentation of a rule.
#[derive(Debug)]
pub struct Declaration {
    /// The letter of the family and three digits: `L001`.
    pub code: &'static str,
    /// The name in kebab case, such that it can follow "allow": `unknown-member`.
    pub name: &'static str,
    /// The severity of the rule's findings.
    pub severity: Severity,
    /// What the rule finds: a noun phrase without a full stop, which follows the word "Finds".
    pub summary: &'static str,
    /// The Warpsmith version that introduced the rule.
    pub since: &'static str,
    /// Whether the rule offers a fix for at least some findings.
    pub fixable: bool,
    /// How editors draw the findings beyond their severity.
    pub tags: &'static [Tag],
    /// Markdown: `## What it does`, `## Why is this bad?`, `## Bad` and `## Good` with Python blocks, further headings
    /// as needed (`## Fix`, `## Sources`). The blocks are the rule's tests: under a flagged line of a bad block is a
    /// comment `# ^^^` whose carets mark the span; good blocks are clean under every rule.
    pub doc: &'static str,
}

/// The families of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleFamily {
    /// Code that Triton will reject.
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
    /// Errors of the compiler itself.
    Compiler,
}

/// The letters of all families, including those without rules.
pub(super) const FAMILIES: &str = "LMNHPSC";

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The code will fail.
    Error,
    /// The code may fail or give wrong results.
    Warning,
    /// The code works, and could be better.
    Hint,
}

/// A way in which editors draw a finding, as in LSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The code has no effect: it is drawn pale.
    Unnecessary,
}

impl Declaration {
    /// The family that the letter of the code names.
    #[must_use]
    pub fn family(&self) -> RuleFamily {
        match self.code.as_bytes()[0] {
            b'L' => RuleFamily::Language,
            b'M' => RuleFamily::Memory,
            b'N' => RuleFamily::Numerics,
            b'H' => RuleFamily::Host,
            b'P' => RuleFamily::Performance,
            b'S' => RuleFamily::Skill,
            _ => RuleFamily::Compiler,
        }
    }

    /// The web address of the rule's page: [`super::pages`] in the documentation of the published crate.
    #[must_use]
    pub fn url(&self) -> String {
        page_url(self.code, self.name)
    }
}

/// The web address of the page of the rule with this code and name.
pub(super) fn page_url(code: &str, name: &str) -> String {
    // rustdoc derives this anchor from the heading `# L001 unknown-member`.
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

impl fmt::Display for RuleFamily {
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
