//! The statements of a kernel's body.

use std::collections::BTreeSet;

use model::kernel::Kernel;
use model::kernel::ast::{ExprKind, Stmt, StmtKind, walk_statements};

/// The names that a kernel's body assigns.
pub(crate) fn assigned(kernel: &Kernel) -> BTreeSet<&str> {
    let mut assigned = BTreeSet::new();
    walk_statements(&kernel.body, &mut |stmt| {
        for target in stmt.targets() {
            target.walk(&mut |expr| assigned.extend(expr.as_name()));
        }
    });
    assigned
}

/// The first statement of a kernel that is not a string, such as a docstring.
pub(crate) fn first_statement(kernel: &Kernel) -> Option<&Stmt> {
    let is_text = |stmt: &&Stmt| matches!(&stmt.kind, StmtKind::Expr(value) if matches!(value.kind, ExprKind::Str(_)));
    kernel.body.iter().find(|stmt| !is_text(stmt))
}
