//! The expressions behind the names of a kernel, where a single assignment determines them.

use rustc_hash::FxHashMap as HashMap;

use crate::kernel::Kernel;
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};

/// The longest chain of names that is followed.
const MAX_STEPS: usize = 16;

/// The assignments of a kernel by name.
///
/// Rules follow definitions without an end in sight, so no value here leads back to its own name: a value that mentions
/// a name which is assigned only there or further down, as in `x = x + 1` while somebody types, is not a definition.
#[derive(Clone, Debug, Default)]
pub struct Definitions<'a> {
    of: HashMap<&'a str, Vec<Option<&'a Expr>>>,
    /// The names in the order of their first assignment.
    order: HashMap<&'a str, usize>,
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
        definitions.forget_cycles();
        definitions
    }

    fn add(&mut self, name: &'a str, value: Option<&'a Expr>) {
        let next = self.order.len();
        self.order.entry(name).or_insert(next);
        self.of.entry(name).or_default().push(value);
    }

    /// Forgets the values that mention a name with a single definition which does not come before them.
    fn forget_cycles(&mut self) {
        let is_later = |order: usize, value: &Expr| {
            let mut found = false;
            value.walk(&mut |expr| {
                let other = expr.as_name().filter(|name| self.only(name).is_some());
                found |= other.is_some_and(|name| self.order[name] >= order);
            });
            found
        };
        let cyclic = |name: &&'a str| self.only(name).is_some_and(|value| is_later(self.order[name], value));
        let forgotten: Vec<&str> = self.order.keys().copied().filter(cyclic).collect();
        for name in forgotten {
            self.of.insert(name, vec![None]);
        }
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

#[cfg(test)]
mod tests {
    use crate::kernel::Module;
    use crate::syntax::Source;

    use super::*;

    #[test]
    fn no_definition_leads_back_to_its_own_name() {
        let text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(p):\n    a = tl.load(p)\n    b = a + 1\n    \
                    c = c - b\n    d = e * 2\n    e = d + b\n    f = e\n";
        let module = Module::build(&Source::parse(text));
        let definitions = Definitions::of(&module.kernels[0]);
        let known = |name: &str| definitions.only(name).is_some();
        assert_eq!(["a", "b", "c", "d", "e", "f"].map(known), [true, true, false, false, true, true]);
    }
}
