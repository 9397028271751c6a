//! The documentation page of a learned rule, which `warpsmith explain`, `warpsmith memory show`, the manual and hover
//! share.

use std::fmt::Write as _;

use super::rule::{LearnedRule, RuleState};
use crate::declaration::{RuleFamily, Severity, page_url};

impl LearnedRule {
    /// The rule's page as Markdown.
    #[must_use]
    pub fn page(&self) -> String {
        let Self { code, name, failures, met, error, .. } = self;
        let mut out = format!("# {code} {name}\n\n{}\n\n", self.plain_sentence());
        let times = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let _ = write!(
            out,
            "{} · family: {} · Triton {} · {} · {}, met {}\n\n",
            Severity::Warning,
            RuleFamily::Skill,
            self.triton.range(),
            self.origin,
            times(u64::from(*failures), "failure"),
            times(*met, "time"),
        );
        let state = match self.state {
            RuleState::Candidate => "This is a candidate: it is not proven yet, and nothing shows it.".to_owned(),
            RuleState::Demoted => "A kernel that it flags compiles, so its findings are no longer shown.".to_owned(),
            RuleState::Expired => "The Triton in use takes what it forbids, so it is not shown.".to_owned(),
            RuleState::Promoted if self.covered_by.is_empty() => {
                "No built-in rule flags the failures that it was learned from.".to_owned()
            }
            RuleState::Promoted => {
                format!("Built-in rules say the same: {}. It is kept as evidence for them.", self.covered_by.join(", "))
            }
        };
        if !state.is_empty() {
            let _ = write!(out, "{state}\n\n");
        }
        let says = [error.kind.as_str(), error.message.trim()];
        let says = says.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        let parts = [
            ("What Triton says", "text", says.as_str()),
            ("Bad", "python", self.bad.trim_end()),
            ("Good", "python", self.good.trim_end()),
            ("Pattern", "query", self.pattern.trim_end()),
        ];
        for (title, language, text) in parts.into_iter().filter(|(_, _, text)| !text.is_empty()) {
            let _ = write!(out, "## {title}\n\n```{language}\n{text}\n```\n\n");
        }
        let _ = write!(
            out,
            "## Turning it off\n\n\
             For one line, put a comment at its end; for a project, into its settings; for yourself, with `warpsmith memory forget {code}`:\n\n\
             ```python\n# warpsmith: ignore[{code}]\n```\n\n\
             ```toml\nignore = [\"{code}\"]\n```\n"
        );
        out
    }

    /// The web address of the page, for rules that ship with Warpsmith.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        (!self.is_own()).then(|| page_url(&self.code, &self.name))
    }
}
