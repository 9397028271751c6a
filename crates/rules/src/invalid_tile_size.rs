//! L017 `invalid-tile-size`: a tile of a size that Triton does not support.

use model::analysis::types::{Problem, ProblemKind};

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L017",
        name: "invalid-tile-size",
        severity: Severity::Error,
        summary: "a tile of a size that Triton does not have",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("invalid_tile_size.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::TileSize], fix, findings);
}

/// `tl.zeros(64, …)` → `tl.zeros((64,), …)`
fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (_, call) = fix_edits::call_at(context, problem.span)?;
    let shape = call.argument("shape", Some(0)).filter(|shape| shape.as_int().is_some())?;
    let tuple = format!("({},)", context.source.slice(shape.span));
    Some(fix_edits::replace(format!("Write `{tuple}`"), shape.span, tuple))
}
