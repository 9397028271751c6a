//! The parameters from which addresses are computed.

use std::collections::{BTreeSet, HashMap};

use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_statements};

/// Names, with the parameters that their values are computed from.
pub(super) type Roots<'a> = HashMap<&'a str, BTreeSet<&'a str>>;

/// The parameters that each name is computed from, for names that may hold addresses.
pub(super) fn roots(kernel: &Kernel) -> Roots<'_> {
    let mut roots: Roots<'_> =
        kernel.params.iter().map(|param| (param.name.as_str(), BTreeSet::from([param.name.as_str()]))).collect();
    loop {
        let mut more = false;
        walk_statements(&kernel.body, &mut |stmt| {
            let value = match &stmt.kind {
                StmtKind::Assign { value: Some(value), .. } | StmtKind::AugAssign { value, .. } => value,
                StmtKind::For { iter, .. } => iter,
                _ => return,
            };
            let mut names = BTreeSet::new();
            names_of_pointer(value, &mut names);
            let found: BTreeSet<&str> = names.iter().filter_map(|name| roots.get(name)).flatten().copied().collect();
            for target in stmt.targets() {
                target.walk(&mut |part| {
                    if let Some(name) = part.as_name() {
                        let own = roots.entry(name).or_default();
                        let before = own.len();
                        own.extend(&found);
                        more |= own.len() > before;
                    }
                });
            }
        });
        if !more {
            return roots;
        }
    }
}

/// The names in an expression, without those in loads and those that only give a type.
pub(super) fn names_of_pointer<'b>(expr: &'b Expr, names: &mut BTreeSet<&'b str>) {
    match &expr.kind {
        ExprKind::Name(name) => {
            names.insert(name);
        }
        ExprKind::Attribute { name, .. } if name == "dtype" || name == "type" => {}
        ExprKind::Call(call) => {
            let is_load = match &call.func.kind {
                ExprKind::Attribute { name, .. } | ExprKind::Name(name) => name == "load" || name == "store",
                _ => false,
            };
            if !is_load {
                expr.each_child(&mut |child| names_of_pointer(child, names));
            }
        }
        _ => expr.each_child(&mut |child| names_of_pointer(child, names)),
    }
}
