//! Elementwise operations, whatever the shape.

use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};
use model::kernel::{Kernel, Module};

/// Elementwise functions of Triton.
const FUNCTIONS: &[&str] = &[
    "abs", "cast", "ceil", "clamp", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log", "log2",
    "maximum", "minimum", "rsqrt", "sigmoid", "sin", "sqrt", "sqrt_rn", "where",
];
/// Elementwise methods of tensors.
pub(super) const METHODS: &[&str] = &["to", "cast", "exp", "log", "sqrt", "abs"];

/// Whether a member of `triton.language` is an elementwise function: `exp`, `math.exp`, `extra.cuda.libdevice.tanh`.
pub(super) fn is_function(member: &str) -> bool {
    FUNCTIONS.contains(&member.rsplit('.').next().unwrap_or(member)) || member.contains("libdevice.")
}

/// Whether the result of a function that kernels call depends, at each element, on that element alone.
pub(super) fn is_helper(module: &Module, helper: &Kernel) -> bool {
    let is_text = |stmt: &Stmt| matches!(&stmt.kind, StmtKind::Expr(value) if matches!(value.kind, ExprKind::Str(_)));
    let of = |expr: &Expr| is_pointwise(module, helper, expr);
    let Some((last, before)) = helper.body.split_last() else { return false };
    let is_bound = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Assign { targets, value: Some(value), .. } => {
            of(value) && targets.iter().all(|target| target.as_name().is_some())
        }
        StmtKind::AugAssign { target, value, .. } => of(value) && target.as_name().is_some(),
        _ => is_text(stmt),
    };
    !helper.has_error && before.iter().all(is_bound) && matches!(&last.kind, StmtKind::Return(Some(value)) if of(value))
}

fn is_pointwise(module: &Module, helper: &Kernel, expr: &Expr) -> bool {
    let of = |expr: &Expr| is_pointwise(module, helper, expr);
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
        ExprKind::Attribute { value, name, .. } => {
            name == "dtype" && of(value) || module.language_member(helper, expr).is_some()
        }
        ExprKind::Binary { left, right, .. } => of(left) && of(right),
        ExprKind::Unary { operand, op } => op != "not" && of(operand),
        ExprKind::Compare { left, rest } => rest.len() == 1 && of(left) && of(&rest[0].1),
        ExprKind::Call(call) if !call.has_star() => {
            let is_known = match (module.language_member(helper, &call.func), &call.func.kind) {
                (Some(member), _) => is_function(&member),
                (None, ExprKind::Attribute { value, name, .. }) => METHODS.contains(&name.as_str()) && of(value),
                (None, _) => false,
            };
            is_known && call.args.iter().all(|arg| of(&arg.value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::syntax::Source;

    #[test]
    fn a_helper_is_elementwise_only_if_all_its_statements_are() {
        let is_one = |body: &str| {
            let text = format!("import triton\nimport triton.language as tl\n@triton.jit\ndef f(x, y):\n{body}");
            let module = Module::build(&Source::parse(text.as_str()));
            is_helper(&module, &module.kernels[0])
        };
        for body in [
            "    return x * tl.sigmoid(x)\n",
            "    '''Text.'''\n    z = tl.exp(2.0 * x.to(tl.float32))\n    z += 1\n    return tl.where(x > 0, z, y).to(y.dtype)\n",
        ] {
            assert!(is_one(body), "{body}");
        }
        for body in [
            "    return tl.sum(x, 0)\n",
            "    tl.store(y, x)\n    return x\n",
            "    if y:\n        return x\n    return y\n",
            "    return x[None, :]\n",
            "    return g(x)\n",
            "    return tl.load(x)\n",
            "    x = x + 1\n",
        ] {
            assert!(!is_one(body), "{body}");
        }
    }
}
