//! The statements of a kernel that Triton may compile.

use super::constants::constant_truth;
use crate::kernel::ast::{Stmt, StmtKind};

/// Calls `visit` on each statement of `body`, nested ones included, in source order, except those that Triton certainly
/// does not compile.
///
/// Those are the statements after a `return` in the same list, and branches whose condition is literally false. A
/// branch that depends on a compile-time parameter is visited, because a launch may set the parameter.
pub fn live<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        visit(stmt);
        match &stmt.kind {
            StmtKind::If { branches, orelse } => {
                let mut taken = false;
                for (test, body) in branches {
                    let value = constant_truth(test);
                    if value != Some(false) {
                        live(body, visit);
                    }
                    taken = value == Some(true);
                    if taken {
                        break;
                    }
                }
                if !taken {
                    live(orelse, visit);
                }
            }
            StmtKind::Return(_) => return,
            _ => stmt.bodies().into_iter().for_each(|body| live(body, visit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Module;
    use crate::syntax::Source;

    #[test]
    fn only_certainly_dead_code_is_skipped() {
        let text = "
import triton
@triton.jit
def k(a, FLAG):
    if False:
        dead(1)
    elif FLAG:
        live(1)
    else:
        live(2)
    if not False or a:
        live(3)
    elif a:
        dead(2)
    else:
        dead(3)
    if 0 and a:
        dead(4)
    for i in range(a):
        if a:
            return
        live(4)
    return
    dead(5)
";
        let source = Source::parse(text);
        let module = Module::build(&source);
        let mut seen = Vec::new();
        live(&module.kernels[0].body, &mut |stmt| {
            if matches!(stmt.kind, StmtKind::Expr(_)) {
                seen.push(source.slice(stmt.span).to_owned());
            }
        });
        assert_eq!(seen, ["live(1)", "live(2)", "live(3)", "live(4)"]);
    }
}
