//! Comparison of expressions.

use crate::kernel::ast::{Expr, ExprKind};

/// Whether two expressions are the same apart from their spans.
#[must_use]
pub fn alike(left: &Expr, right: &Expr) -> bool {
    let same_parts = || {
        let (left, right) = (left.children(), right.children());
        left.len() == right.len() && left.into_iter().zip(right).all(|(left, right)| alike(left, right))
    };
    match (&left.kind, &right.kind) {
        (ExprKind::Name(left), ExprKind::Name(right)) | (ExprKind::Str(left), ExprKind::Str(right)) => left == right,
        (ExprKind::Int(left), ExprKind::Int(right)) => left == right,
        (ExprKind::Bool(left), ExprKind::Bool(right)) => left == right,
        (ExprKind::None, ExprKind::None) => true,
        (ExprKind::Attribute { name: left, .. }, ExprKind::Attribute { name: right, .. }) => {
            left == right && same_parts()
        }
        (ExprKind::Call(left), ExprKind::Call(right)) => {
            let keyword = |call: &crate::kernel::ast::Call| {
                call.args.iter().map(|arg| arg.keyword.as_ref().map(|(name, _)| name.clone())).collect::<Vec<_>>()
            };
            keyword(left) == keyword(right) && same_parts()
        }
        (ExprKind::Binary { op: left, .. }, ExprKind::Binary { op: right, .. })
        | (ExprKind::BoolOp { op: left, .. }, ExprKind::BoolOp { op: right, .. })
        | (ExprKind::Unary { op: left, .. }, ExprKind::Unary { op: right, .. }) => left == right && same_parts(),
        (ExprKind::Compare { rest: left, .. }, ExprKind::Compare { rest: right, .. }) => {
            left.iter().map(|(op, _)| op).eq(right.iter().map(|(op, _)| op)) && same_parts()
        }
        (ExprKind::Subscript { .. }, ExprKind::Subscript { .. })
        | (ExprKind::Tuple(_), ExprKind::Tuple(_))
        | (ExprKind::List(_), ExprKind::List(_))
        | (ExprKind::IfExp { .. }, ExprKind::IfExp { .. }) => same_parts(),
        // An empty slice has no parts; others are rare enough to count as different.
        (ExprKind::Slice(left), ExprKind::Slice(right)) => left.is_empty() && right.is_empty(),
        _ => false,
    }
}
