//! Scalars that a kernel computes from its program index by division and remainder. For tiles it suffices that each has
//! a name.

use std::collections::BTreeSet;

use model::analysis::types::KernelAnalysis;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::kernel::{Kernel, Module, Param};

use crate::subject::Subject;
use crate::written::bindings;

/// Functions of `triton.language` that return a scalar for scalars.
const FUNCTIONS: [&str; 6] = ["program_id", "num_programs", "cdiv", "minimum", "maximum", "swizzle2d"];
/// Operators that no sum of products can express.
const OPERATORS: [&str; 2] = ["//", "%"];

/// `pid_m = first + (pid % in_group) % rows`: names of scalars, each assigned once.
pub(super) struct Numbers<'a> {
    pub(super) names: BTreeSet<&'a str>,
    statements: Vec<&'a Stmt>,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(subject: &'a Subject<'a>) -> Self {
        let (module, kernel) = (&subject.candidate.module, subject.kernel);
        let (mut single, mut names, mut statements) = (BTreeSet::<&str>::new(), BTreeSet::new(), Vec::new());
        walk_statements(&kernel.body, &mut |stmt| {
            let StmtKind::Assign { targets, annotation: None, value: Some(value) } = &stmt.kind else { return };
            let [target] = targets.as_slice() else { return };
            let targets: Option<Vec<&str>> = match &target.kind {
                ExprKind::Tuple(parts) => parts.iter().map(Expr::as_name).collect(),
                _ => target.as_name().map(|name| vec![name]),
            };
            let is_own = |name: &&str| kernel.param(name).is_none() && bindings(&kernel.body, name).len() == 1;
            let Some(targets) = targets.filter(|targets| targets.iter().all(is_own)) else { return };
            let (mut is_number, mut is_quotient, mut is_of_program) = (true, targets.len() > 1, false);
            value.walk(&mut |expr| match &expr.kind {
                ExprKind::Name(name) => {
                    let is_constant = kernel.param(name).is_some_and(|param| param.constexpr);
                    let is_known = kernel.param(name).is_some() || single.contains(&**name);
                    is_number &= is_known || is_outside(module, kernel, name);
                    is_of_program |= is_known && !is_constant;
                }
                ExprKind::Binary { op, .. } => is_quotient |= OPERATORS.contains(&op.as_str()),
                ExprKind::Call(call) => {
                    let member = module.language_member(kernel, &call.func);
                    let is_builtin = call.func.as_name().is_some_and(|name| ["min", "max"].contains(&name));
                    is_number &= !call.has_star() && (is_builtin || member.is_some_and(|it| FUNCTIONS.contains(&&*it)));
                    is_of_program = true;
                    is_quotient |= is_builtin;
                }
                ExprKind::Int(_) | ExprKind::Attribute { .. } | ExprKind::Tuple(_) => {}
                _ => is_number = false,
            });
            if is_number && is_of_program {
                single.extend(&targets);
                if is_quotient {
                    names.extend(targets);
                    statements.push(stmt);
                }
            }
        });
        Self { names, statements }
    }

    /// The analysis of the kernel for any launch, with such scalars as parameters.
    pub(super) fn facts(&self, subject: &Subject<'_>) -> Option<KernelAnalysis> {
        let mut module = subject.candidate.module.clone();
        let kernel = module.kernels.iter_mut().find(|kernel| kernel.name == subject.kernel.name)?;
        let first = kernel.params.first()?.clone();
        let given = |name: &&str| Param {
            name: (*name).to_owned(),
            annotation: None,
            constexpr: false,
            default: None,
            variadic: false,
            keyword_only: false,
            ..first.clone()
        };
        kernel.params.extend(self.names.iter().map(given));
        self.leave_out(&mut kernel.body);
        subject.facts_of(module)
    }

    fn leave_out(&self, body: &mut Vec<Stmt>) {
        body.retain(|stmt| !self.statements.iter().any(|known| known.span == stmt.span));
        for stmt in body {
            match &mut stmt.kind {
                StmtKind::For { body, .. } | StmtKind::While { body, .. } => self.leave_out(body),
                StmtKind::If { branches, orelse } => {
                    branches.iter_mut().for_each(|(_, body)| self.leave_out(body));
                    self.leave_out(orelse);
                }
                _ => {}
            }
        }
    }
}

/// Whether a name is that of a module or a function of Python.
fn is_outside(module: &Module, kernel: &Kernel, name: &str) -> bool {
    !kernel.locals.contains(name) && (module.bindings.contains_key(name) || ["min", "max"].contains(&name))
}
