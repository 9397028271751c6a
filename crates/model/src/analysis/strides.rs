//! The parameters of a kernel that take part in the addresses of each tensor.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use crate::kernel::ast::{Expr, StmtKind, walk_expressions, walk_statements};
use crate::kernel::{Kernel, Module};

/// For each parameter through which the kernel loads or stores, the parameters from which its addresses are computed,
/// including itself. Control flow is ignored, so there may be too many.
#[must_use]
pub fn address_parts<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<BTreeSet<&'a str>> {
    let mut values: HashMap<&str, Vec<&Expr>> = HashMap::default();
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, value: Some(value), .. } => {
            for target in targets {
                target.walk(&mut |inner| values.entry(inner.as_name().unwrap_or("")).or_default().push(value));
            }
        }
        StmtKind::AugAssign { target, value, .. } => {
            values.entry(target.as_name().unwrap_or("")).or_default().push(value);
        }
        _ => {}
    });
    let mut parts = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let accesses = ["load", "store", "atomic_add", "make_block_ptr"];
        let member = module.language_member(kernel, &call.func);
        if let (Some(member), Some(address)) = (member, call.args.first())
            && accesses.contains(&member.as_str())
        {
            let mut found = BTreeSet::new();
            collect(kernel, &values, &address.value, &mut found, &mut HashSet::default());
            parts.push(found);
        }
    });
    parts
}

fn collect<'a>(
    kernel: &Kernel,
    values: &HashMap<&'a str, Vec<&'a Expr>>,
    expr: &'a Expr,
    found: &mut BTreeSet<&'a str>,
    seen: &mut HashSet<&'a str>,
) {
    expr.walk(&mut |inner| {
        let Some(name) = inner.as_name().filter(|name| seen.insert(name)) else { return };
        if kernel.param(name).is_some() {
            found.insert(name);
        }
        for value in values.get(name).into_iter().flatten() {
            collect(kernel, values, value, found, seen);
        }
    });
}
