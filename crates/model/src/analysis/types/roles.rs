//! The roles of a kernel's parameters, as its text shows them.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::access::pointers;
use super::dtype::Dtype;
use crate::analysis::launches::{self, LaunchVariant};
use crate::host::{HostRun, HostValue};
use crate::kernel::ast::{Expr, ExprKind, Stmt, walk_expressions};
use crate::kernel::{Kernel, Module};

/// The uses of a kernel's parameters, collected from its body once.
pub(super) struct Roles<'a> {
    /// Parameters that are pointers of loads and stores, alone or after adding offsets.
    pub(super) pointers: HashSet<&'a str>,
    /// Parameters that the kernel itself unconditionally passes as the pointer of an access, alone or in a sum.
    pub(super) dereferenced: HashSet<&'a str>,
    /// Names that occur as bounds of a range or as sizes of a shape.
    pub(super) bounds: HashSet<&'a str>,
    pub(super) is_launched: bool,
    /// The element types of the tensors that the file's launches pass for pointers, where all of them agree.
    pub(super) elements: HashMap<&'a str, Dtype>,
    pub(super) settings: Vec<LaunchVariant<'a>>,
}

impl<'a> Roles<'a> {
    pub(super) fn of(module: &'a Module, text: &'a str, kernel: &'a Kernel) -> Self {
        let is_launched = launches::certainly_launched(module, kernel);
        Self {
            elements: if is_launched { elements(module, text, kernel) } else { HashMap::default() },
            pointers: pointers(module, kernel),
            dereferenced: dereferenced(module, kernel),
            bounds: bounds(module, kernel),
            is_launched,
            settings: launches::settings(module, kernel),
        }
    }

    /// Whether a compile-time parameter certainly is an integer: it is named like a block size, or it bounds a range or
    /// a shape.
    pub(super) fn is_size(&self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        upper.starts_with("BLOCK") || upper.ends_with("_SIZE") || upper.ends_with("BLOCK") || self.bounds.contains(name)
    }
}

fn elements<'a>(module: &'a Module, text: &'a str, kernel: &'a Kernel) -> HashMap<&'a str, Dtype> {
    let mut found: HashMap<&str, Option<Dtype>> = HashMap::default();
    let mut hosts: Vec<Option<usize>> = module.launches_of(&kernel.name).map(|launch| launch.host).collect();
    hosts.dedup();
    for host in hosts {
        // Launches at the top level are not followed.
        let Some(host) = host.and_then(|host| module.hosts.get(host)) else { return HashMap::default() };
        let run = HostRun::cached(module, text, host);
        let is_own = |at: usize| module.launches[at].kernel.as_deref() == Some(&*kernel.name);
        for launch in run.launches.iter().filter(|launch| is_own(launch.launch)) {
            for param in &kernel.params {
                let tensor = launch.value(module, kernel, &param.name).and_then(HostValue::tensor);
                let dtype = tensor.and_then(|id| run.tensor(id).dtype);
                let known = found.entry(&param.name).or_insert(dtype);
                *known = known.filter(|known| dtype == Some(*known));
            }
        }
    }
    found.into_iter().filter_map(|(name, dtype)| Some((name, dtype?))).collect()
}

fn dereferenced<'a>(module: &'a Module, kernel: &'a Kernel) -> HashSet<&'a str> {
    fn leftmost(expr: &Expr) -> Option<&str> {
        match &expr.kind {
            ExprKind::Name(name) => Some(name),
            ExprKind::Binary { op, left, .. } if op == "+" => leftmost(left),
            _ => None,
        }
    }
    let mut found = HashSet::default();
    let mut look = |expr: &'a Expr| {
        if let Some(call) = expr.as_call()
            && let Some(member) = module.language_member(kernel, &call.func)
            && (matches!(member.as_str(), "load" | "store") || member.starts_with("atomic_"))
            && let Some(pointer) = call.args.first()
        {
            found.extend(leftmost(&pointer.value));
        }
    };
    // A parameter used in a branch may be a pointer for some calls only.
    let unconditional = kernel.body.iter().filter(|stmt| stmt.bodies().is_empty());
    unconditional.flat_map(Stmt::exprs).for_each(|expr| expr.walk(&mut look));
    found
}

fn bounds<'a>(module: &'a Module, kernel: &'a Kernel) -> HashSet<&'a str> {
    let mut found = HashSet::default();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let member = module.language_member(kernel, &call.func);
        let args: &[_] = match (member.as_deref(), call.func.as_name()) {
            (Some("arange" | "static_range" | "range"), _) | (None, Some("range")) => &call.args,
            (Some("zeros" | "full"), _) => call.args.get(..1).unwrap_or_default(),
            (Some("reshape" | "view" | "broadcast_to"), _) => call.args.get(1..).unwrap_or_default(),
            (Some("make_block_ptr"), _) => call.args.get(4..5).unwrap_or_default(),
            _ => return,
        };
        for arg in args {
            arg.value.walk(&mut |part| found.extend(part.as_name()));
        }
    });
    found
}
