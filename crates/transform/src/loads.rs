//! The values that statements load, and the parameters that they write to.

use model::analysis::types::access::leftmost;
use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, Stmt, walk_expressions};

use super::names::BUILTINS;
use super::pointwise::METHODS;
use super::subject::Subject;
use super::written::{bindings, only_value};

/// The greatest number of names that are followed to the parameter that a pointer starts from.
const DEPTH: usize = 8;
/// Calls that a statement to be moved must not contain: they have an effect, or return another value each time.
const ACTS: [&str; 8] = ["store", "atomic", "device_", "debug_", "inline_asm", "rand", "clock", "globaltimer"];

/// The memory that a value is loaded from.
#[derive(PartialEq)]
pub(super) enum Loaded {
    None,
    Some,
    /// Unknown, or not the same in each iteration.
    Unknown,
}

/// The loads of a value, given the parameters that are written to.
pub(super) fn loaded(subject: &Subject<'_>, value: &Expr, written: &[&str]) -> Loaded {
    let mut found = Loaded::None;
    value.walk(&mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let is_method = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if METHODS.contains(&name.as_str()));
        match subject.member(call).as_deref() {
            Some("load") => {
                let from = call.argument("pointer", Some(0)).and_then(|pointer| root(subject, pointer));
                let is_volatile = call.argument("volatile", None).is_some();
                let is_steady = from.is_some_and(|from| !written.contains(&from)) && !is_volatile && !call.has_star();
                found = if is_steady && found != Loaded::Unknown { Loaded::Some } else { Loaded::Unknown };
            }
            Some(name) if ACTS.iter().any(|act| name.rsplit('.').next().is_some_and(|last| last.starts_with(act))) => {
                found = Loaded::Unknown;
            }
            Some(_) => {}
            None if is_method || call.func.as_name().is_some_and(|name| BUILTINS.contains(&name)) => {}
            // A function of the user may do anything.
            None => found = Loaded::Unknown,
        }
    });
    found
}

/// The parameters that some statements write to; `None` where that is unknown.
pub(super) fn written<'a>(subject: &Subject<'a>, body: &[Stmt]) -> Option<Vec<&'a str>> {
    let (mut all, mut is_known) = (Vec::new(), true);
    walk_expressions(body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let writes = match subject.member(call) {
            Some(name) => name == "store" || name.starts_with("atomic"),
            // Methods of tiles write nothing; those of descriptors and functions of the user may.
            None => match &call.func.kind {
                ExprKind::Attribute { name, .. } => !METHODS.contains(&name.as_str()),
                ExprKind::Name(name) => !BUILTINS.contains(&name.as_str()),
                _ => true,
            },
        };
        if writes {
            match call.argument("pointer", Some(0)).and_then(|pointer| root(subject, pointer)) {
                Some(to) => all.push(to),
                None => is_known = false,
            }
        }
    });
    is_known.then_some(all)
}

/// The parameter that a pointer starts from.
pub(super) fn root<'a>(subject: &Subject<'a>, pointer: &Expr) -> Option<&'a str> {
    let kernel: &'a Kernel = subject.kernel;
    let mut name = leftmost(pointer)?;
    for _ in 0..DEPTH {
        if bindings(&kernel.body, name).is_empty() {
            return kernel.params.iter().map(|param| param.name.as_str()).find(|param| *param == name);
        }
        // The pointer must not change by `pointer += step`.
        name = leftmost(only_value(&kernel.body, name)?)?;
    }
    None
}
