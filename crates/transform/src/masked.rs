//! Adds a condition to the mask of a load or a store.

use model::kernel::ast::{Call, ExprKind};
use model::syntax::Span;
use rules::Edit;

/// The edits that add a condition to the mask of a load or a store; `position` is the index of the mask argument.
pub(super) fn and_mask(call: &Call, position: usize, condition: &str) -> Option<Vec<Edit>> {
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    let edits = match call.argument("mask", Some(position)) {
        Some(mask) if mask.kind == ExprKind::None => vec![Edit { span: mask.span, text: condition.to_owned() }],
        Some(mask) => {
            let is_tight = match &mask.kind {
                ExprKind::Binary { op, .. } => op == "&",
                kind => matches!(kind, ExprKind::Name(_) | ExprKind::Call(_)),
            };
            let (open, close) = if is_tight { ("", "") } else { ("(", ")") };
            vec![put(mask.span.start, open.to_owned()), put(mask.span.end, format!("{close} & {condition}"))]
        }
        None => vec![put(call.args.last()?.span.end, format!(", mask={condition}"))],
    };
    Some(edits)
}
