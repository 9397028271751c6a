//! The values of names in host functions.

use std::rc::Rc;

use rustc_hash::FxHashMap as HashMap;

use super::constants::binary;
use super::launches::global;
use crate::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use crate::kernel::{HostFunction, Launch, Module};

/// Names that refer to each other deeper than this are not followed.
const DEEP: usize = 8;

/// The way in which a function binds a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LocalBinding<'a> {
    /// `name = value`
    Value(&'a Expr),
    /// `…, name, … = value`: the value and the index of the item.
    Item(&'a Expr, usize),
    /// In another way: a loop, `name += …`, a definition.
    Other,
}

/// The names of one host function, or of the top level.
#[derive(Clone, Debug)]
pub struct HostNames<'a> {
    module: &'a Module,
    host: Option<&'a HostFunction>,
    bound: HashMap<&'a str, Vec<LocalBinding<'a>>>,
}

/// The names of all functions that launch kernels; each function is read on first use.
#[derive(Debug)]
pub struct Hosts<'a> {
    module: &'a Module,
    known: HashMap<Option<usize>, Rc<HostNames<'a>>>,
}

impl<'a> Hosts<'a> {
    /// The names of the functions of `module`.
    #[must_use]
    pub fn new(module: &'a Module) -> Self {
        Self { module, known: HashMap::default() }
    }

    /// The names in scope at `launch`.
    pub fn around(&mut self, launch: &Launch) -> Rc<HostNames<'a>> {
        let module = self.module;
        let host = launch.host.and_then(|host| module.hosts.get(host));
        Rc::clone(self.known.entry(launch.host).or_insert_with(|| Rc::new(HostNames::of(module, host))))
    }
}

impl<'a> HostNames<'a> {
    /// The names in scope in `host`; without a host, those of the top level.
    #[must_use]
    pub fn of(module: &'a Module, host: Option<&'a HostFunction>) -> Self {
        let mut bound: HashMap<&str, Vec<LocalBinding<'_>>> = HashMap::default();
        let mut bind = |target: &'a Expr, binding: LocalBinding<'a>| {
            if let Some(name) = target.as_name() {
                bound.entry(name).or_default().push(binding);
            }
        };
        let body = host.map_or(&[][..], |host| &host.body);
        walk_statements(body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { targets, value, .. } => {
                for target in targets {
                    match (&target.kind, value) {
                        (ExprKind::Name(_), Some(value)) => bind(target, LocalBinding::Value(value)),
                        (ExprKind::Tuple(items) | ExprKind::List(items), Some(value)) => {
                            let starred = items.iter().any(|item| matches!(item.kind, ExprKind::Starred(_)));
                            for (at, item) in items.iter().enumerate() {
                                let binding = if starred { LocalBinding::Other } else { LocalBinding::Item(value, at) };
                                item.walk(&mut |inner| {
                                    bind(inner, if inner.span == item.span { binding } else { LocalBinding::Other });
                                });
                            }
                        }
                        _ => {}
                    }
                }
            }
            StmtKind::AugAssign { target, .. } => bind(target, LocalBinding::Other),
            StmtKind::For { target, .. } => target.walk(&mut |inner| bind(inner, LocalBinding::Other)),
            _ => {}
        });
        walk_statements(body, &mut |stmt| {
            if let StmtKind::Definition { name, lambda } = &stmt.kind {
                let binding = lambda.as_ref().map_or(LocalBinding::Other, LocalBinding::Value);
                bound.entry(name).or_default().push(binding);
            }
        });
        walk_expressions(body, &mut |expr| {
            if let ExprKind::Named { name, .. } = &expr.kind {
                bound.entry(name).or_default().push(LocalBinding::Other);
            }
        });
        Self { module, host, bound }
    }

    /// Whether `name` is a parameter of the function that nothing else binds.
    #[must_use]
    pub fn is_param(&self, name: &str) -> bool {
        self.host.is_some_and(|host| host.params.iter().any(|param| param == name)) && !self.bound.contains_key(name)
    }

    /// The only binding of `name` in the function.
    #[must_use]
    pub fn binding(&self, name: &str) -> Option<LocalBinding<'a>> {
        let is_param = self.host.is_some_and(|host| host.params.iter().any(|param| param == name));
        match self.bound.get(name).map(Vec::as_slice) {
            Some([binding]) if !is_param => Some(*binding),
            _ => None,
        }
    }

    /// The value that `name` certainly has wherever it is bound.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a Expr> {
        match self.binding(name) {
            Some(LocalBinding::Value(value)) => return Some(value),
            Some(LocalBinding::Item(value, at)) => match &value.kind {
                ExprKind::Tuple(items) | ExprKind::List(items) => return items.get(at),
                _ => return None,
            },
            Some(LocalBinding::Other) => return None,
            None => {}
        }
        let hidden = self
            .host
            .is_some_and(|host| host.params.iter().any(|param| param == name) || host.qualname.contains("<locals>"));
        if hidden || self.bound.contains_key(name) { None } else { global(self.module, name) }
    }

    /// The value of `expr` when it is a name whose value is written in the file, else `expr` itself.
    #[must_use]
    pub fn resolve(&self, expr: &'a Expr) -> &'a Expr {
        let mut expr = expr;
        for _ in 0..DEEP {
            match expr.as_name().and_then(|name| self.value(name)) {
                Some(value) => expr = value,
                None => break,
            }
        }
        expr
    }

    /// The integer that `expr` certainly evaluates to.
    #[must_use]
    pub fn integer(&self, expr: &'a Expr) -> Option<i128> {
        self.integer_at(expr, 0)
    }

    fn integer_at(&self, expr: &'a Expr, depth: usize) -> Option<i128> {
        let of = |expr: &'a Expr| self.integer_at(expr, depth + 1);
        match &expr.kind {
            _ if depth > DEEP => None,
            ExprKind::Int(value) => Some(*value),
            ExprKind::Name(name) => of(self.value(name)?),
            ExprKind::Unary { op, operand } if op == "-" => of(operand)?.checked_neg(),
            ExprKind::Binary { op, left, right } => binary(op, of(left)?, of(right)?),
            ExprKind::Call(call) => {
                let [left, right] = call.args.as_slice() else { return None };
                let (left, right) = (of(&left.value)?, of(&right.value)?);
                match call.func.as_name() {
                    Some("min") => Some(left.min(right)),
                    Some("max") => Some(left.max(right)),
                    _ if self.is_cdiv(call) && right > 0 => left.checked_neg().map(|left| -left.div_euclid(right)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the call is one of `triton.cdiv`.
    #[must_use]
    pub fn is_cdiv(&self, call: &Call) -> bool {
        self.module.imports.resolve(&call.func).is_some_and(|found| found.path == "triton.cdiv")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Source;

    #[test]
    fn host_names_have_their_only_assigned_value() {
        let text = "
import triton
SIZE = 4096
def run(x, n):
    block, tail = 64, n
    grid = triton.cdiv(SIZE, block)
    twice = 1
    twice = 2
    for i in range(3):
        n += 1
    k[(grid,)](x)
";
        let module = Module::build(&Source::parse(text));
        let names = Hosts::new(&module).around(&module.launches[0]);
        let integer = |name: &str| names.value(name).and_then(|value| names.integer(value));
        for (name, expected) in [
            ("block", Some(64)),
            ("grid", Some(64)),
            ("SIZE", Some(4096)),
            ("twice", None),
            ("i", None),
            ("tail", None),
        ] {
            assert_eq!(integer(name), expected, "{name}");
        }
        assert!(names.is_param("x") && !names.is_param("n") && !names.is_param("block"));
    }
}
