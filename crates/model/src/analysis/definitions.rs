//! The expressions behind the names of a kernel, where a single assignment determines them.

use rustc_hash::FxHashMap as HashMap;

use crate::kernel::Kernel;
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};

/// The longest chain of names that is followed.
const MAX_STEPS: usize = 16;

/// The assignments of a kernel by name.
#[derive(Clone, Debug, Default)]
pub struct Definitions<'a> {
    of: HashMap<&'a str, Vec<Option<&'a Expr>>>,
}

impl<'a> Definitions<'a> {
    /// The assignments of `kernel`.
    #[must_use]
    pub fn of(kernel: &'a Kernel) -> Self {
        let mut definitions = Self::default();
        for param in &kernel.params {
            definitions.add(&param.name, None);
        }
        walk_statements(&kernel.body, &mut |stmt: &'a Stmt| match &stmt.kind {
            StmtKind::Assign { targets, value, .. } => {
                targets.iter().for_each(|target| definitions.bind(target, value.as_ref()));
            }
            StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => definitions.bind(target, None),
            StmtKind::Definition { name, .. } => definitions.add(name, None),
            _ => {}
        });
        walk_expressions(&kernel.body, &mut |expr| {
            if let ExprKind::Named { name, .. } = &expr.kind {
                definitions.add(name, None);
            }
        });
        definitions
    }

    fn add(&mut self, name: &'a str, value: Option<&'a Expr>) {
        self.of.entry(name).or_default().push(value);
    }

    fn bind(&mut self, target: &'a Expr, value: Option<&'a Expr>) {
        match (&target.kind, value.map(|value| &value.kind)) {
            (ExprKind::Name(name), _) => self.add(name, value),
            (ExprKind::Tuple(parts), Some(ExprKind::Tuple(values))) if parts.len() == values.len() => {
                parts.iter().zip(values).for_each(|(part, value)| self.bind(part, Some(value)));
            }
            (ExprKind::Tuple(parts) | ExprKind::List(parts), _) => parts.iter().for_each(|part| self.bind(part, None)),
            (ExprKind::Starred(inner), _) => self.bind(inner, None),
            _ => {}
        }
    }

    /// The value of the only assignment of `name`.
    #[must_use]
    pub fn only(&self, name: &str) -> Option<&'a Expr> {
        match self.of.get(name)?.as_slice() {
            [value] => *value,
            _ => None,
        }
    }

    /// The values of all assignments of `name`; `None` when one of them does not assign an expression.
    #[must_use]
    pub fn all(&self, name: &str) -> Option<Vec<&'a Expr>> {
        self.of.get(name)?.iter().copied().collect()
    }

    /// The value of a name, followed through further names; any other expression itself.
    #[must_use]
    pub fn behind(&self, expr: &'a Expr) -> &'a Expr {
        let mut found = expr;
        for _ in 0..MAX_STEPS {
            match found.as_name().and_then(|name| self.only(name)) {
                Some(value) => found = value,
                None => break,
            }
        }
        found
    }
}
