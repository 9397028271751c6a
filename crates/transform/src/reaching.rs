//! Reaching definitions: the assignments that may have given a name its value at each place that reads it.

use std::collections::{BTreeSet, HashMap};

use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};

/// An assignment, as an index into [`Reaching::assignments`].
pub(super) type Id = usize;

/// The source of a name's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given<'a> {
    /// `name = value`
    Value(&'a Expr),
    /// `name op= value`, with the assignments that may have given the former value.
    Update { op: &'a str, value: &'a Expr, before: BTreeSet<Id> },
    /// A parameter.
    Parameter,
    /// The variable of a loop, or a part of an unpacked value.
    Other,
}

/// A read of a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Use {
    pub(super) from: BTreeSet<Id>,
    /// Whether the read is in a loop.
    pub(super) in_loop: bool,
}

/// The assignments of a kernel, and which of them reach each place that reads a name.
#[derive(Debug, Default)]
pub(super) struct Reaching<'a> {
    /// The assignments, each with whether it is in a loop.
    pub(super) assignments: Vec<(Given<'a>, bool)>,
    /// The reads, by the address of the expression: several expressions may have the same span in the text.
    uses: HashMap<*const Expr, Use>,
    ids: HashMap<usize, Id>,
    depth: usize,
}

type Scope<'a> = HashMap<&'a str, BTreeSet<Id>>;

impl<'a> Reaching<'a> {
    /// Analyses a kernel; `None` where a loop is left early, or where names are bound in another way.
    pub(super) fn of(kernel: &'a Kernel) -> Option<Self> {
        let mut reaching = Self::default();
        let mut scope = Scope::default();
        for param in &kernel.params {
            let id = reaching.assign(param.span.start, Given::Parameter);
            scope.insert(&param.name, BTreeSet::from([id]));
        }
        reaching.block(&kernel.body, &mut scope)?;
        Some(reaching)
    }

    /// The read of a name, by the expression that is the name.
    pub(super) fn of_name(&self, name: &Expr) -> Option<&Use> {
        self.uses.get(&std::ptr::from_ref(name))
    }

    /// All reads of names.
    pub(super) fn uses(&self) -> impl Iterator<Item = (*const Expr, &Use)> {
        self.uses.iter().map(|(&name, read)| (name, read))
    }

    fn assign(&mut self, at: usize, given: Given<'a>) -> Id {
        let next = self.assignments.len();
        let id = *self.ids.entry(at).or_insert(next);
        if id == next {
            self.assignments.push((given, self.depth > 0));
        } else if let (Given::Update { before, .. }, Given::Update { before: more, .. }) =
            (&mut self.assignments[id].0, given)
        {
            before.extend(more);
        }
        id
    }

    fn block(&mut self, body: &'a [Stmt], scope: &mut Scope<'a>) -> Option<()> {
        body.iter().try_for_each(|stmt| self.statement(stmt, scope))
    }

    fn statement(&mut self, stmt: &'a Stmt, scope: &mut Scope<'a>) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, annotation, value } => {
                let value = value.as_ref()?;
                annotation.iter().chain([value]).try_for_each(|expr| self.read(expr, scope))?;
                // A value that several names share cannot be changed for one of them.
                let value = Some(value).filter(|_| targets.len() == 1);
                targets.iter().try_for_each(|target| self.bind(target, value, scope))
            }
            StmtKind::AugAssign { target, op, value } => {
                self.read(value, scope)?;
                let name = target.as_name()?;
                let before = scope.get(name).cloned().unwrap_or_default();
                let id = self.assign(target.span.start, Given::Update { op, value, before });
                scope.insert(name, BTreeSet::from([id]));
                Some(())
            }
            StmtKind::Expr(expr) => self.read(expr, scope),
            StmtKind::Return(value) => value.iter().try_for_each(|value| self.read(value, scope)),
            StmtKind::Assert(parts) => parts.iter().try_for_each(|part| self.read(part, scope)),
            StmtKind::Pass => Some(()),
            StmtKind::If { branches, orelse } => {
                let before = scope.clone();
                let mut after = Scope::default();
                for (test, body) in branches {
                    self.read(test, &before)?;
                    let mut inner = before.clone();
                    self.block(body, &mut inner)?;
                    join(&mut after, inner);
                }
                self.block(orelse, scope)?;
                join(scope, after);
                Some(())
            }
            StmtKind::For { target, iter, body, orelse } if orelse.is_empty() => {
                self.read(iter, scope)?;
                self.repeated(body, scope, |this, inner| this.bind(target, None, inner))
            }
            StmtKind::While { test, body, orelse } if orelse.is_empty() => {
                self.repeated(body, scope, |this, inner| this.read(test, inner))
            }
            _ => None,
        }
    }

    /// Reads a body that runs any number of times.
    fn repeated(
        &mut self,
        body: &'a [Stmt],
        scope: &mut Scope<'a>,
        begin: impl Fn(&mut Self, &mut Scope<'a>) -> Option<()>,
    ) -> Option<()> {
        self.depth += 1;
        loop {
            let mut inner = scope.clone();
            begin(self, &mut inner)?;
            self.block(body, &mut inner)?;
            let before = scope.clone();
            join(scope, inner);
            if *scope == before {
                break;
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn bind(&mut self, target: &'a Expr, value: Option<&'a Expr>, scope: &mut Scope<'a>) -> Option<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                let id = self.assign(target.span.start, value.map_or(Given::Other, Given::Value));
                scope.insert(name, BTreeSet::from([id]));
                Some(())
            }
            ExprKind::Tuple(parts) | ExprKind::List(parts) => {
                parts.iter().try_for_each(|part| self.bind(part, None, scope))
            }
            _ => None,
        }
    }

    fn read(&mut self, expr: &'a Expr, scope: &Scope<'a>) -> Option<()> {
        let mut is_known = true;
        let in_loop = self.depth > 0;
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Name(name) => {
                let read = self.uses.entry(std::ptr::from_ref(part)).or_default();
                read.from.extend(scope.get(name.as_str()).into_iter().flatten());
                read.in_loop |= in_loop;
            }
            ExprKind::Named { .. } | ExprKind::Lambda { .. } | ExprKind::Comprehension { .. } => is_known = false,
            ExprKind::Other(_) => is_known = false,
            _ => {}
        });
        is_known.then_some(())
    }
}

fn join<'a>(scope: &mut Scope<'a>, other: Scope<'a>) {
    for (name, ids) in other {
        scope.entry(name).or_default().extend(ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::kernel::Module;
    use model::kernel::ast::walk_expressions;
    use model::syntax::Source;

    /// The texts of the values that reach the reads of `v`, in source order.
    fn of_v(body: &str) -> Option<Vec<Vec<String>>> {
        let text = format!("import triton\n@triton.jit\ndef k(v, n):\n{body}");
        let module = Module::build(&Source::parse(text.as_str()));
        let reaching = Reaching::of(&module.kernels[0])?;
        let said = |id: &Id| match &reaching.assignments[*id].0 {
            Given::Value(value) => text[value.span.start..value.span.end].to_owned(),
            Given::Update { op, before, .. } => format!("{op}= after {}", before.len()),
            given => format!("{given:?}"),
        };
        let mut found = Vec::new();
        walk_expressions(&module.kernels[0].body, &mut |expr| {
            if let Some(read) = reaching.of_name(expr).filter(|_| expr.as_name() == Some("v")) {
                found.push(read.from.iter().map(said).collect());
            }
        });
        Some(found)
    }

    #[test]
    fn what_reaches_a_read_is_found_through_branches_and_loops() {
        let found = of_v(
            "    a = v\n    if n:\n        v = 1\n    b = v\n    v = 2\n    for i in range(n):\n        c = v\n        v += 3\n        d = v\n    e = v\n",
        );
        let expected: [&[&str]; 5] =
            [&["Parameter"], &["Parameter", "1"], &["2", "+= after 2"], &["+= after 2"], &["2", "+= after 2"]];
        assert_eq!(found.unwrap(), expected);
        assert_eq!(
            of_v("    for v in range(n):\n        a = v\n    v, b = 1, 2\n    c = v\n    v = b = 1\n    d = v\n")
                .unwrap(),
            [["Other"], ["Other"], ["Other"]]
        );
    }

    #[test]
    fn breaks_and_other_bindings_prevent_the_analysis() {
        for body in ["    for i in range(n):\n        break\n", "    a = (v := 1)\n", "    a = [v for v in n]\n"] {
            assert_eq!(of_v(body), None, "{body}");
        }
    }
}
