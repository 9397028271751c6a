//! The names that statements read and bind.

use std::collections::BTreeSet;

use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};

/// Built-in functions of Python that kernels call.
pub(super) const BUILTINS: [&str; 7] = ["range", "len", "min", "max", "abs", "float", "int"];

pub(super) type Names<'a> = BTreeSet<&'a str>;

/// All names in an expression.
pub(super) fn in_expr(expr: &Expr) -> Names<'_> {
    let mut names = Names::new();
    expr.walk(&mut |expr| names.extend(expr.as_name()));
    names
}

/// How often a name occurs in some statements.
pub(super) fn uses(body: &[Stmt], name: &str) -> usize {
    let mut count = 0;
    walk_expressions(body, &mut |expr| count += usize::from(expr.as_name() == Some(name)));
    count
}

/// The names that a statement itself binds; `None` where it binds something other than names.
pub(super) fn bound_by(stmt: &Stmt) -> Option<Vec<&str>> {
    let targets: Vec<&Expr> = match &stmt.kind {
        StmtKind::Assign { targets, .. } => targets.iter().collect(),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => vec![target],
        _ => Vec::new(),
    };
    let mut names = Vec::new();
    for target in targets {
        match &target.kind {
            ExprKind::Name(name) => names.push(name.as_str()),
            ExprKind::Tuple(parts) | ExprKind::List(parts) => {
                for part in parts {
                    names.push(part.as_name()?);
                }
            }
            _ => return None,
        }
    }
    Some(names)
}

/// The names that some statements and nested ones bind.
pub(super) fn bound_in(body: &[Stmt]) -> Option<Names<'_>> {
    let mut names = Some(Names::new());
    walk_statements(body, &mut |stmt| match (&mut names, bound_by(stmt)) {
        (Some(names), Some(bound)) => names.extend(bound),
        _ => names = None,
    });
    names
}

/// The names that a statement and nested ones read.
pub(super) fn read_in(stmt: &Stmt) -> Names<'_> {
    let mut names = Names::new();
    walk_statements(std::slice::from_ref(stmt), &mut |stmt| {
        let bound = if let StmtKind::Assign { targets, .. } = &stmt.kind { targets.len() } else { 0 };
        let is_loop = usize::from(matches!(stmt.kind, StmtKind::For { .. }));
        stmt.exprs().into_iter().skip(bound + is_loop).for_each(|expr| names.extend(in_expr(expr)));
    });
    names
}

/// Whether each of these names is bound before it is read, wherever it is read; `given` are those that are bound
/// already.
pub(super) fn are_given<'a>(body: &'a [Stmt], names: &Names<'a>, given: &mut Names<'a>) -> Option<()> {
    for stmt in body {
        let is_given = |expr: &Expr, given: &Names<'_>| {
            in_expr(expr).iter().all(|name| !names.contains(name) || given.contains(name)).then_some(())
        };
        match &stmt.kind {
            StmtKind::Assign { value, .. } => is_given(value.as_ref()?, given)?,
            StmtKind::For { target, iter, body, orelse } if orelse.is_empty() => {
                is_given(iter, given)?;
                let mut inner = given.clone();
                inner.extend(target.as_name());
                are_given(body, names, &mut inner)?;
                continue;
            }
            StmtKind::If { branches, orelse } => {
                let mut all = Vec::new();
                for (test, body) in branches {
                    is_given(test, given)?;
                    all.push((body, given.clone()));
                }
                all.push((orelse, given.clone()));
                for (body, inner) in &mut all {
                    are_given(body, names, inner)?;
                }
                let mut after = all.into_iter().map(|(_, inner)| inner);
                let first = after.next()?;
                *given = after.fold(first, |all, one| all.intersection(&one).copied().collect());
                continue;
            }
            StmtKind::AugAssign { .. } | StmtKind::Expr(_) | StmtKind::Pass | StmtKind::Assert(_) => {
                stmt.exprs().into_iter().try_for_each(|expr| is_given(expr, given))?;
            }
            _ => return None,
        }
        given.extend(bound_by(stmt)?);
    }
    Some(())
}
