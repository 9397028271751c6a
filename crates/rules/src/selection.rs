//! The selection of the rules that run.

use super::declaration::Declaration;

/// The selection of rules, by codes, code prefixes (`L`, `L00`) or names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The rules to run; all rules when empty.
    pub select: Vec<String>,
    /// The rules to leave out, unless `select` names them by a longer match.
    pub ignore: Vec<String>,
}

impl Selection {
    /// Whether `rule` runs. The longer match among `select` and `ignore` decides; on a tie, `ignore` does.
    #[must_use]
    pub(crate) fn includes(&self, rule: &Declaration) -> bool {
        self.includes_named(rule.code, rule.name)
    }

    /// Whether the rule with this code and name runs.
    #[must_use]
    pub(crate) fn includes_named(&self, code: &str, name: &str) -> bool {
        let strength = |patterns: &[String]| {
            patterns.iter().filter(|pattern| matches(pattern, code, name)).map(|pattern| pattern.len()).max()
        };
        let selected = if self.select.is_empty() { Some(0) } else { strength(&self.select) };
        match (selected, strength(&self.ignore)) {
            (Some(selected), Some(ignored)) => selected > ignored,
            (selected, None) => selected.is_some(),
            (None, _) => false,
        }
    }
}

/// Whether a pattern matches a rule; `all` matches every rule.
pub(super) fn matches(pattern: &str, code: &str, name: &str) -> bool {
    pattern == name
        || pattern.eq_ignore_ascii_case("all")
        || (!pattern.is_empty() && code.to_ascii_lowercase().starts_with(&pattern.to_ascii_lowercase()))
}
