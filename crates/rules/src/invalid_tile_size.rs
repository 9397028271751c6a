//! L017 `invalid-tile-size`: a tile of a size that Triton does not support.

use model::analysis::types::{Kind, Problem};

use super::declaration::{Declaration, Rule, Severity};
use super::diagnostic::Fix;
use super::engine::{Context, Findings};
use super::{language, rewrite};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L017",
        name: "invalid-tile-size",
        severity: Severity::Error,
        summary: "a tile of a size that Triton does not have",
        since: "0.1.0",
        fixable: true,
        doc: include_str!("invalid_tile_size.md"),
    },
    check,
};

fn check(context: &Context<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[Kind::TileSize], fix, findings);
}

/// `tl.zeros(64, …)` → `tl.zeros((64,), …)`
fn fix(context: &Context<'_>, problem: &Problem) -> Option<Fix> {
    let (_, call) = rewrite::call_at(context, problem.span)?;
    let shape = call.argument("shape", Some(0)).filter(|shape| shape.as_int().is_some())?;
    let tuple = format!("({},)", context.source.slice(shape.span));
    Some(rewrite::replace(format!("Write `{tuple}`"), shape.span, tuple))
}
