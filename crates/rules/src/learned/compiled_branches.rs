//! Decides whether Triton certainly compiles a piece of code: rules must not flag a branch that Triton may skip.

use tree_sitter::Node;

use model::analysis::types::{AbstractValue, Const};
use model::syntax::{each_node, field};

use super::kernel_view::{KernelView, plain};

/// Whether a node is compiled whenever its function is.
pub(super) fn is_compiled(subject: &KernelView<'_>, place: Node<'_>) -> bool {
    let function = subject.kernel.def_span;
    let mut child = place;
    while let Some(parent) = child.parent() {
        if child.start_byte() <= function.start && function.end <= child.end_byte() {
            return true;
        }
        if !is_entered(subject, parent, child) {
            return false;
        }
        child = parent;
    }
    true
}

/// Whether `child` is compiled when `parent`, around it, is.
fn is_entered(subject: &KernelView<'_>, parent: Node<'_>, child: Node<'_>) -> bool {
    let is = |name: &str| field(parent, name) == Some(child);
    match parent.kind() {
        "if_statement" if is("condition") => true,
        "if_statement" if is("consequence") => may_hold(subject, parent) == Some(true),
        "if_statement" => {
            let earlier = clauses(parent).take_while(|clause| *clause != child);
            may_fail(subject, parent) && earlier.into_iter().all(|clause| may_fail(subject, clause))
        }
        "elif_clause" => is("condition") || may_hold(subject, parent) == Some(true),
        "while_statement" => is("condition") || is("body") && is_run_time(subject, field(parent, "condition")),
        "for_statement" => !is("body") || has_rounds(subject, parent),
        "conditional_expression" => {
            let mut cursor = parent.walk();
            let parts: Vec<Node<'_>> =
                parent.named_children(&mut cursor).filter(|part| part.kind() != "comment").collect();
            match parts.iter().position(|part| *part == child) {
                Some(1) => true,
                Some(0) => says(subject, parts[1]).is_some_and(|said| said != BranchDecision::No),
                _ => parts.get(1).and_then(|test| says(subject, *test)).is_some_and(|said| said != BranchDecision::Yes),
            }
        }
        "boolean_operator" => is("left") || is_run_time(subject, field(parent, "left")),
        "block" => {
            let mut cursor = parent.walk();
            let before: Vec<Node<'_>> = parent.named_children(&mut cursor).take_while(|it| *it != child).collect();
            before.into_iter().all(|statement| goes_on(subject, statement))
        }
        "function_definition" => !is("body") || parent.start_byte() == subject.kernel.def_span.start,
        kind => {
            let may_be_left_out = kind.ends_with("_comprehension")
                || matches!(
                    kind,
                    "lambda" | "generator_expression" | "try_statement" | "match_statement" | "class_definition"
                );
            !may_be_left_out
        }
    }
}

/// The value of a condition at compile time.
#[derive(Clone, Copy, PartialEq)]
enum BranchDecision {
    /// The condition is true.
    Yes,
    /// The condition is false.
    No,
    /// The value is known only at run time, so that both branches are compiled.
    Later,
}

fn says(subject: &KernelView<'_>, test: Node<'_>) -> Option<BranchDecision> {
    match subject.value(plain(test))? {
        AbstractValue::Tile(tile) if tile.is_scalar() == Some(true) => Some(BranchDecision::Later),
        AbstractValue::Const(value) => {
            value.truth().map(|holds| if holds { BranchDecision::Yes } else { BranchDecision::No })
        }
        _ => None,
    }
}

fn may_hold(subject: &KernelView<'_>, branch: Node<'_>) -> Option<bool> {
    Some(says(subject, field(branch, "condition")?)? != BranchDecision::No)
}

fn may_fail(subject: &KernelView<'_>, branch: Node<'_>) -> bool {
    field(branch, "condition").and_then(|test| says(subject, test)).is_some_and(|said| said != BranchDecision::Yes)
}

fn is_run_time(subject: &KernelView<'_>, test: Option<Node<'_>>) -> bool {
    test.and_then(|test| says(subject, test)) == Some(BranchDecision::Later)
}

fn clauses<'t>(statement: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = statement.walk();
    statement.children_by_field_name("alternative", &mut cursor).collect::<Vec<_>>().into_iter()
}

/// Whether the body of a loop is compiled. The body of a run-time loop is, however often it runs.
fn has_rounds(subject: &KernelView<'_>, statement: Node<'_>) -> bool {
    let Some(call) = field(statement, "right").map(plain).filter(|iter| iter.kind() == "call") else { return false };
    let path = field(call, "function").and_then(|function| subject.path(function));
    match path.as_deref() {
        Some("builtins.range" | "triton.language.range") => true,
        Some("triton.language.static_range") => {
            let only = subject.expression(call).and_then(|call| match call.as_call()?.args.as_slice() {
                [only] => Some(only.value.span),
                _ => None,
            });
            let count =
                field(call, "arguments").and_then(|arguments| arguments.named_child(0)).filter(|_| only.is_some());
            let count =
                count.and_then(|count| subject.value(count)).and_then(AbstractValue::constant).and_then(Const::int);
            count.is_some_and(|count| count > 0)
        }
        _ => false,
    }
}

/// Whether the code after a statement is compiled.
fn goes_on(subject: &KernelView<'_>, statement: Node<'_>) -> bool {
    if matches!(statement.kind(), "return_statement" | "raise_statement") {
        return false;
    }
    let returns = |node: Node<'_>| {
        let mut found = false;
        each_node(node, &mut |node| found |= matches!(node.kind(), "return_statement" | "raise_statement"));
        found
    };
    if !returns(statement) {
        return true;
    }
    if statement.kind() != "if_statement" {
        return false;
    }
    // Only a run-time condition leaves both branches open.
    let later = |branch: Node<'_>| is_run_time(subject, field(branch, "condition"));
    let is_never = may_hold(subject, statement) == Some(false) && clauses(statement).all(|clause| !returns(clause));
    is_never || later(statement) && clauses(statement).filter(|it| it.kind() == "elif_clause").all(later)
}
