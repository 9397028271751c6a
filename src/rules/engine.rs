//! Runs the selected rules over one file.

use super::RULES;
use super::declaration::Rule;
use super::diagnostic::Diagnostic;
use super::suppression::Suppressions;
use crate::api::Target;
use crate::kernel::Module;
use crate::syntax::Source;

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The file.
    pub source: &'a Source,
    /// Its kernel model.
    pub module: &'a Module,
    /// The Triton version it is checked against.
    pub target: Target,
}

/// Where a rule puts its findings.
#[derive(Debug)]
pub struct Findings<'a> {
    out: &'a mut Vec<Diagnostic>,
}

impl Findings<'_> {
    /// Reports a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.out.push(diagnostic);
    }

    /// Reports some findings.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.out.extend(diagnostics);
    }
}

/// Which rules run: codes, code prefixes (`L`, `L00`) or names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these; all when empty.
    pub select: Vec<String>,
    /// Never these, unless `select` names them more exactly.
    pub ignore: Vec<String>,
}

impl Selection {
    /// Whether `rule` runs. Of `select` and `ignore` the longer match decides; on a tie `ignore` does.
    #[must_use]
    pub fn includes(&self, rule: &Rule) -> bool {
        let strength = |patterns: &[String]| {
            patterns.iter().filter(|pattern| matches(pattern, rule)).map(|pattern| pattern.len()).max()
        };
        let selected = if self.select.is_empty() { Some(0) } else { strength(&self.select) };
        match (selected, strength(&self.ignore)) {
            (Some(selected), Some(ignored)) => selected > ignored,
            (selected, None) => selected.is_some(),
            (None, _) => false,
        }
    }

    /// The entries that name no rule.
    #[must_use]
    pub fn unknown(&self) -> Vec<&str> {
        let known = |pattern: &&String| !RULES.iter().any(|rule| matches(pattern, rule));
        self.select.iter().chain(&self.ignore).filter(known).map(String::as_str).collect()
    }
}

/// `all` names every rule.
fn matches(pattern: &str, rule: &Rule) -> bool {
    let declaration = &rule.declaration;
    pattern == declaration.name
        || pattern.eq_ignore_ascii_case("all")
        || (!pattern.is_empty() && declaration.code.to_ascii_lowercase().starts_with(&pattern.to_ascii_lowercase()))
}

/// The findings of the selected rules in one file, in source order, without the suppressed ones.
#[must_use]
pub fn check(context: &Context<'_>, selection: &Selection) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if context.module.kernels.is_empty() && context.module.launches.is_empty() {
        return out;
    }
    for rule in RULES.iter().filter(|rule| selection.includes(rule)) {
        (rule.check)(context, &mut Findings { out: &mut out });
    }
    if !out.is_empty() {
        let suppressions = Suppressions::read(context.source);
        out.retain(|diagnostic| !suppressions.cover(diagnostic, context.source));
    }
    out.sort_by(|a, b| (a.span, a.code).cmp(&(b.span, b.code)));
    out.dedup();
    out
}
