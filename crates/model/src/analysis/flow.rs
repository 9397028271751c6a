//! Which statements Triton compiles at all.

use super::constants::truth;
use crate::kernel::ast::{Stmt, StmtKind};

/// Calls `visit` on each statement of `body`, nested ones included, that Triton does not certainly leave out, in source
/// order.
///
/// Left out is what follows a `return` in its own list of statements, and a branch whose condition is spelled out as
/// false. A branch under a compile-time parameter counts: somebody may set it.
pub fn live<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        visit(stmt);
        match &stmt.kind {
            StmtKind::If { branches, orelse } => {
                let mut taken = false;
                for (test, body) in branches {
                    let value = truth(test);
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
    fn only_what_is_certainly_dead_is_left_out() {
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
