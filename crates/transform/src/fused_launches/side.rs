//! One of two consecutive kernels, analysed with the arguments of its launch.

use std::collections::{BTreeMap, BTreeSet};

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, argument, walk_expressions};
use model::kernel::{Kernel, Launch};

use super::form::Form;
use super::host::Around;
use super::roots::{Roots, names_of_pointer, roots};
use crate::names::{bound_by, bound_in};
use crate::pointwise::is_helper;
use crate::written::{bindings, grid_of};

/// Prefixes of members of Triton's language that prevent the analysis of a kernel.
const UNKNOWN: &[&str] = &[
    "atomic",
    "debug",
    "device_",
    "inline_asm",
    "async",
    "make_",
    "advance",
    "gather",
    "load_tensor",
    "store_tensor",
    "descriptor",
];
/// Functions of Python that kernels may use.
const BUILTINS: &[&str] = &["float", "int", "max", "min", "range", "len"];
/// The supported keywords of loads and stores.
const SAID: &[&str] = &["mask", "other", "eviction_policy", "cache_modifier"];

/// A load or store of memory that the host has allocated.
#[derive(Clone, Debug)]
pub(super) struct Access<'a> {
    pub(super) call: &'a Call,
    pub(super) stmt: &'a Stmt,
    /// Whether the statement is at the top level of the kernel.
    pub(super) is_outer: bool,
    pub(super) is_store: bool,
    /// The parameter that points to the memory.
    pub(super) root: &'a str,
    pub(super) pointer: Form,
    pub(super) mask: Option<Form>,
}

/// A kernel and its launch.
pub(super) struct Side<'a> {
    pub(super) around: Around<'a>,
    pub(super) kernel: &'a Kernel,
    pub(super) launch: &'a Launch,
    pub(super) accesses: Vec<Access<'a>>,
    /// The normal forms of names after the last top-level statement.
    pub(super) last: BTreeMap<&'a str, Form>,
    /// The values of top-level assignments, in order.
    pub(super) given: Vec<(&'a Stmt, &'a str, Form)>,
    env: BTreeMap<&'a str, Form>,
    roots: Roots<'a>,
    unknown: usize,
    /// A character that distinguishes the names of the two kernels.
    mark: char,
}

impl<'a> Side<'a> {
    /// Analyses a kernel; `None` where it is not understood, or where it writes to memory that others may use.
    pub(super) fn of(around: Around<'a>, kernel: &'a Kernel, launch: &'a Launch, mark: char) -> Option<Self> {
        let is_plain = kernel.plain
            && kernel.heuristics.as_ref().is_some_and(Vec::is_empty)
            && !kernel.has_error
            && !kernel.nested
            && !kernel.params.iter().any(|param| param.variadic || param.keyword_only)
            && !launch.args.iter().any(|arg| matches!(arg.value.kind, ExprKind::Starred(_)));
        if !is_plain || launch.has_error {
            return None;
        }
        let roots = roots(kernel);
        let (accesses, last, given, env) = Default::default();
        let mut side = Self { around, kernel, launch, accesses, last, given, env, roots, unknown: 0, mark };
        side.block(&kernel.body, None)?;
        side.last = side.env.clone();
        Some(side)
    }

    /// The argument of a parameter.
    pub(super) fn passed(&self, param: &str) -> Option<&'a Expr> {
        let at = self.kernel.params.iter().position(|one| one.name == param)?;
        let default = self.kernel.params[at].default.as_ref().filter(|_| self.kernel.autotune.is_none());
        argument(&self.launch.args, param, Some(at)).or(default)
    }

    /// The argument of a parameter, where it is a tensor that the host has allocated.
    pub(super) fn made(&self, param: &str) -> Option<&'a str> {
        let name = self.passed(param)?.as_name()?;
        self.around.allocation(name).map(|_| name)
    }

    pub(super) fn member(&self, func: &Expr) -> Option<String> {
        self.around.module.language_member(self.kernel, func)
    }

    /// The normal form of a parameter's argument, by which two kernels can be compared.
    pub(super) fn form_of_param(&self, name: &str) -> Form {
        match self.passed(name) {
            Some(value) => self.around.form(self.launch, value),
            None => Form::leaf(format!("{} {name}", self.mark)),
        }
    }

    /// The grid with the numbers of this launch.
    pub(super) fn grid(&self) -> Option<Vec<Form>> {
        let grid = grid_of(self.around.module, self.launch)?;
        let (body, meta) = match &grid.kind {
            ExprKind::Lambda { params, body } => (&**body, Some(params.first()?.as_str())),
            _ => (grid, None),
        };
        let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &body.kind else { return None };
        Some(parts.iter().map(|part| self.in_grid(part, meta)).collect())
    }

    fn in_grid(&self, expr: &Expr, meta: Option<&str>) -> Form {
        let of = |expr: &Expr| self.in_grid(expr, meta);
        match &expr.kind {
            ExprKind::Subscript { value, index } if meta.is_some() && value.as_name() == meta => match index.as_slice()
            {
                [Expr { kind: ExprKind::Str(name), .. }] => self.form_of_param(name),
                _ => Form::leaf(format!("{} grid", self.mark)),
            },
            ExprKind::Call(call) if meta.is_some_and(|meta| expr.mentions(meta)) => {
                let name = call.func.dotted().and_then(|parts| parts.last().map(|name| (*name).to_owned()));
                Form::of(name.unwrap_or_default(), call.args.iter().map(|arg| of(&arg.value)).collect())
            }
            ExprKind::Binary { op, left, right } => Form::binary(op, of(left), of(right)),
            _ => self.around.form(self.launch, expr),
        }
    }

    // --- statements -----------------------------------------------------------------------------------------------

    fn block(&mut self, body: &'a [Stmt], outer: Option<&'a Stmt>) -> Option<()> {
        for stmt in body {
            stmt.exprs().into_iter().try_for_each(|expr| self.check(expr))?;
            let value = match &stmt.kind {
                StmtKind::Assign { targets, value: Some(value), .. } => {
                    let [target] = targets.as_slice() else { return None };
                    self.accesses_in(value, stmt, outer.is_none())?;
                    target.as_name().map(|name| (name, self.form(value)))
                }
                StmtKind::AugAssign { target, op, value } => {
                    self.accesses_in(value, stmt, outer.is_none())?;
                    let name = target.as_name()?;
                    Some((name, Form::binary(op, self.form(target), self.form(value))))
                }
                StmtKind::Expr(value) => {
                    self.accesses_in(value, stmt, outer.is_none())?;
                    None
                }
                StmtKind::If { .. } | StmtKind::For { .. } | StmtKind::While { .. } => {
                    for expr in stmt.exprs() {
                        self.accesses_in(expr, stmt, false)?;
                    }
                    let is_loop = !matches!(stmt.kind, StmtKind::If { .. });
                    for body in stmt.bodies() {
                        if is_loop {
                            self.forget(stmt)?;
                        }
                        let before = self.env.clone();
                        self.block(body, Some(stmt))?;
                        self.env = before;
                    }
                    self.forget(stmt)?;
                    continue;
                }
                StmtKind::Pass => None,
                _ => return None,
            };
            for name in bound_by(stmt)? {
                let form = value.clone().map_or_else(|| self.fresh(), |(_, form)| form);
                if outer.is_none() {
                    self.given.push((stmt, name, form.clone()));
                }
                self.env.insert(name, form);
            }
        }
        Some(())
    }

    /// Forgets the values of names that are bound inside a compound statement.
    fn forget(&mut self, stmt: &'a Stmt) -> Option<()> {
        for name in bound_in(std::slice::from_ref(stmt))? {
            let form = self.fresh();
            self.env.insert(name, form);
        }
        Some(())
    }

    fn fresh(&mut self) -> Form {
        self.unknown += 1;
        Form::leaf(format!("{} unknown {}", self.mark, self.unknown))
    }

    /// Refuses expressions with unknown effects.
    fn check(&self, expr: &'a Expr) -> Option<()> {
        let mut is_known = true;
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Lambda { .. }
            | ExprKind::Comprehension { .. }
            | ExprKind::Named { .. }
            | ExprKind::Starred(_)
            | ExprKind::FString(_)
            | ExprKind::Dict { .. }
            | ExprKind::Other(_) => is_known = false,
            ExprKind::Call(call) => is_known &= self.is_known(call),
            _ => {}
        });
        is_known.then_some(())
    }

    fn is_known(&self, call: &Call) -> bool {
        let module = self.around.module;
        if let Some(resolved) = module.resolve_in(self.kernel, &call.func) {
            let member = resolved.path.strip_prefix("triton.language.");
            return match member {
                Some(member) => !UNKNOWN.iter().any(|start| member.starts_with(start)),
                None => resolved.path == "triton.cdiv" || resolved.path.contains("libdevice"),
            };
        }
        // Memory may only be passed to loads and stores.
        let is_clean = call.args.iter().all(|arg| self.roots_of(&arg.value).is_empty());
        let is_function = match &call.func.kind {
            ExprKind::Name(name) => {
                BUILTINS.contains(&name.as_str()) || module.kernel(name).is_some_and(|helper| is_helper(module, helper))
            }
            ExprKind::Attribute { value, .. } => value
                .first_name()
                .is_none_or(|name| self.kernel.locals.contains(name) || self.kernel.param(name).is_some()),
            _ => false,
        };
        is_clean && is_function
    }

    fn accesses_in(&mut self, expr: &'a Expr, stmt: &'a Stmt, is_outer: bool) -> Option<()> {
        let mut calls = Vec::new();
        expr.walk(&mut |part| calls.extend(part.as_call()));
        for call in calls {
            let member = self.member(&call.func);
            let Some(is_store) = member.and_then(|member| ["load", "store"].iter().position(|one| *one == member))
            else {
                continue;
            };
            let pointer = call.argument("pointer", Some(0))?;
            let roots: Vec<&str> = self.roots_of(pointer).into_iter().collect();
            let is_store = is_store == 1;
            let [root] = roots.as_slice() else {
                // Memory that the host has not allocated may be read.
                if is_store || !roots.is_empty() {
                    return None;
                }
                continue;
            };
            let is_said =
                call.args.iter().all(|arg| arg.keyword.as_ref().is_none_or(|(name, _)| SAID.contains(&name.as_str())));
            if !is_said || call.args.len() > 2 && call.args[2].keyword.is_none() && !is_store && call.args.len() > 3 {
                return None;
            }
            let mask = mask_of(call, is_store).map(|mask| self.form(mask));
            let pointer = self.form(pointer);
            self.accesses.push(Access { call, stmt, is_outer, is_store, root, pointer, mask });
        }
        Some(())
    }

    /// Whether a name may hold an address that is based on a parameter.
    pub(super) fn is_made_of(&self, name: &str, param: &str) -> bool {
        self.roots.get(name).is_some_and(|roots| roots.contains(param))
    }

    /// The parameters for memory of the host that an expression is computed from.
    fn roots_of(&self, expr: &Expr) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        names_of_pointer(expr, &mut names);
        let roots = names.into_iter().flat_map(|name| self.roots.get(name).into_iter().flatten());
        roots.copied().filter(|param| self.made(param).is_some()).collect()
    }

    // --- forms ----------------------------------------------------------------------------------------------------

    /// The normal form of an expression at the current place.
    pub(super) fn form(&self, expr: &Expr) -> Form {
        let of = |expr: &Expr| self.form(expr);
        let all = |exprs: &[Expr]| exprs.iter().map(of).collect::<Vec<_>>();
        match &expr.kind {
            ExprKind::Name(name) => match self.env.get(name.as_str()) {
                Some(form) => form.clone(),
                None if self.kernel.param(name).is_some() => self.form_of_param(name),
                None => Form::leaf(format!("global {name}")),
            },
            ExprKind::Binary { op, left, right } => Form::binary(op, of(left), of(right)),
            ExprKind::Unary { op, operand } => Form::of(op.clone(), vec![of(operand)]),
            ExprKind::Compare { left, rest } => {
                let ops: Vec<&str> = rest.iter().map(|(op, _)| op.as_str()).collect();
                Form::of(ops.join(" "), std::iter::once(of(left)).chain(rest.iter().map(|(_, one)| of(one))).collect())
            }
            ExprKind::BoolOp { op, left, right } => Form::of(op.clone(), vec![of(left), of(right)]),
            ExprKind::IfExp { test, body, orelse } => Form::of("if", vec![of(test), of(body), of(orelse)]),
            ExprKind::Tuple(parts) | ExprKind::List(parts) => Form::of("tuple", all(parts)),
            ExprKind::Slice(parts) => Form::of(":", all(parts)),
            ExprKind::Subscript { value, index } => {
                Form::of("[]", std::iter::once(of(value)).chain(index.iter().map(of)).collect())
            }
            ExprKind::Attribute { value, name, .. } => match self.member(expr) {
                Some(member) => Form::leaf(member),
                None => Form::of(format!(".{name}"), vec![of(value)]),
            },
            ExprKind::Call(call) => self.form_of_call(call),
            ExprKind::Int(number) => Form::leaf(number.to_string()),
            ExprKind::Float(number) => Form::leaf(format!("{number:?}")),
            ExprKind::Str(text) => Form::leaf(format!("'{text}'")),
            ExprKind::Bool(value) => Form::leaf(if *value { "True" } else { "False" }),
            ExprKind::None => Form::leaf("None"),
            _ => Form::leaf(format!("{} at {}", self.mark, expr.span.start)),
        }
    }

    fn form_of_call(&self, call: &Call) -> Form {
        let (name, mut parts) = match (self.member(&call.func), &call.func.kind) {
            (Some(member), _) => (member, Vec::new()),
            (None, ExprKind::Attribute { value, name, .. }) => (format!(".{name}"), vec![self.form(value)]),
            (None, _) => (format!("call {}", call.func.as_name().unwrap_or_default()), Vec::new()),
        };
        let is_id = matches!(name.as_str(), "program_id" | "num_programs");
        parts.extend(call.args.iter().map(|arg| match &arg.keyword {
            Some((keyword, _)) if !is_id => Form::of(format!("={keyword}"), vec![self.form(&arg.value)]),
            _ => self.form(&arg.value),
        }));
        Form::of(name, parts)
    }
}

/// The mask of a load or store.
pub(super) fn mask_of(call: &Call, is_store: bool) -> Option<&Expr> {
    let mask = call.argument("mask", Some(if is_store { 2 } else { 1 }));
    mask.filter(|mask| !matches!(mask.kind, ExprKind::None))
}

/// How often a name is bound in a kernel.
pub(super) fn times_bound(kernel: &Kernel, name: &str) -> usize {
    bindings(&kernel.body, name).len()
}

/// Whether a kernel passes a name to `tl.arange`.
pub(super) fn is_tile_size(side: &Side<'_>, name: &str) -> bool {
    let mut found = false;
    walk_expressions(&side.kernel.body, &mut |expr| {
        let call = expr.as_call().filter(|call| side.member(&call.func).as_deref() == Some("arange"));
        found |= call.is_some_and(|call| call.args.iter().any(|arg| arg.value.mentions(name)));
    });
    found
}
