//! Runs the selected rules over one file.

use super::RULES;
use super::context::RuleContext;
use super::declaration::FAMILIES;
use super::diagnostic::Diagnostic;
use super::findings::Findings;
use super::learned::{self, LearnedRules};
use super::reconcile::reconcile;
use super::selection::{Selection, matches};
use super::suppression::Suppressions;

/// The findings of the selected rules in one file, in source order, without the suppressed ones.
#[must_use]
pub fn check(context: &RuleContext<'_>, selection: &Selection) -> Vec<Diagnostic> {
    check_with(context, selection, LearnedRules::shipped())
}

/// The same with other learned rules than those that ship with Warpsmith.
#[must_use]
pub fn check_with(context: &RuleContext<'_>, selection: &Selection, learned: &LearnedRules) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if context.module.kernels.is_empty() && context.module.launches.is_empty() {
        return out;
    }
    for rule in RULES.iter().filter(|rule| selection.includes(&rule.declaration)) {
        (rule.check)(context, &mut Findings { out: &mut out });
    }
    out.extend(learned::find(context, selection, learned));
    if !out.is_empty() {
        let suppressions = Suppressions::read(context.source);
        out.retain(|diagnostic| !suppressions.cover(diagnostic, context.source));
        // Code that no kernel compiles cannot violate rules about the language.
        out.retain(|diagnostic| !diagnostic.code.starts_with(['L', 'S']) || !context.is_dead(diagnostic.span));
        reconcile(context, &mut out);
    }
    out.sort_by(|a, b| (a.span, a.code).cmp(&(b.span, b.code)));
    out.dedup();
    out
}

impl Selection {
    /// The entries that match no rule and no family.
    #[must_use]
    pub fn unknown(&self) -> Vec<&str> {
        let family = |pattern: &str| pattern.len() == 1 && FAMILIES.contains(&pattern.to_ascii_uppercase());
        let built_in =
            |pattern: &str| RULES.iter().any(|rule| matches(pattern, rule.declaration.code, rule.declaration.name));
        // The user's own learned rules are not known here, so every code of the family S counts as known, and so do the
        // names of the learned rules that ship with Warpsmith.
        let learned = |pattern: &str| {
            let digits = pattern.strip_prefix(['S', 's']).unwrap_or_default();
            let is_code = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_code || LearnedRules::shipped().rules().any(|rule| rule.name == pattern)
        };
        let unknown = |pattern: &&String| !family(pattern) && !built_in(pattern) && !learned(pattern);
        self.select.iter().chain(&self.ignore).filter(unknown).map(String::as_str).collect()
    }
}
