//! Whether a kernel may run a loop.

use model::kernel::ast::{ExprKind, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module};

use super::names::BUILTINS;

/// The greatest depth of nested calls that are followed.
const DEPTH: usize = 4;

/// Whether a kernel may contain a loop, directly or in a function that it calls.
pub(super) fn may_loop(module: &Module, kernel: &Kernel) -> bool {
    may_loop_in(module, kernel, DEPTH)
}

fn may_loop_in(module: &Module, kernel: &Kernel, depth: usize) -> bool {
    let mut found = depth == 0;
    walk_statements(&kernel.body, &mut |stmt| {
        found |= matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. });
    });
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(func) = expr.as_call().map(|call| &call.func) else { return };
        let is_other = match &func.kind {
            ExprKind::Name(name) => !BUILTINS.contains(&name.as_str()),
            // A method of a local value, such as a tile, contains no loop.
            ExprKind::Attribute { value, .. } => value.as_name().is_some_and(|name| !kernel.locals.contains(name)),
            _ => true,
        };
        if found || !is_other || module.language_member(kernel, func).is_some() {
            return;
        }
        let known = func.as_name().filter(|name| !kernel.locals.contains(*name)).and_then(|name| module.kernel(name));
        found = known.is_none_or(|called| may_loop_in(module, called, depth - 1));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_in_called_functions_are_found() {
        let found = |body: &str| {
            let text = format!(
                "import triton\nimport triton.language as tl\nfrom other import far\n@triton.jit\ndef plain(x):\n    return tl.exp(x)\n\
                 @triton.jit\ndef deep(x):\n    return rounds(plain(x))\n@triton.jit\ndef rounds(x):\n    for i in range(4):\n        x += i\n    return x\n\
                 @triton.jit\ndef again(x):\n    return again(x)\n@triton.jit\ndef k(x):\n    y = tl.load(x)\n    {body}\n"
            );
            let module = Module::build(&model::syntax::Source::parse(text.as_str()));
            may_loop(&module, module.kernel("k").unwrap())
        };
        for body in ["y = plain(y.to(tl.float32))", "y = max(y, 1)"] {
            assert!(!found(body), "{body}");
        }
        for body in
            ["for i in range(3):\n        y += i", "y = deep(y)", "y = far(y)", "y = again(y)", "y = other.far(y)"]
        {
            assert!(found(body), "{body}");
        }
    }
}
