//! The surroundings of a failing place: the place isolated from the code that uses it, and the expression that contains
//! it.

use tree_sitter::Node;

use model::syntax::{Span, node_span};

use super::counterexamples::VariationBase;
use super::program::KernelProgram;

/// Node kinds of expressions that can form a statement by themselves.
const VALUES: &[&str] = &[
    "attribute",
    "binary_operator",
    "boolean_operator",
    "call",
    "comparison_operator",
    "conditional_expression",
    "float",
    "identifier",
    "integer",
    "list",
    "not_operator",
    "parenthesized_expression",
    "string",
    "subscript",
    "tuple",
    "unary_operator",
];

/// The program cut off at the statement that contains the flagged expression. The expression alone replaces that
/// statement: once as an assignment and once inside `static_assert`, where a compile-time value keeps being one. Empty
/// when the flagged node is not an expression with a value.
pub(super) fn alone(ground: &VariationBase<'_>, span: Span) -> Vec<KernelProgram> {
    let Some((before, after)) = parted(ground, span) else { return Vec::new() };
    let value = ground.parsed.source.slice(span);
    let known = ground.language().map(|tl| format!("{tl}static_assert(({value}) == ({value}))"));
    let lines = std::iter::once(format!("by_itself = {value}")).chain(known);
    lines.map(|line| ground.program.with(format!("{before}{line}{after}"))).collect()
}

/// The text before the statement that contains a value, and the text after its kernel.
fn parted<'g>(ground: &'g VariationBase<'_>, span: Span) -> Option<(&'g str, &'g str)> {
    let source = &ground.parsed.source;
    let flagged = source.node_at(span)?;
    let statement = statement_of(flagged)?;
    // Names inside these may be bound by them.
    let is_own = |node: &Node<'_>| matches!(node.kind(), "lambda" | "list_comprehension" | "generator_expression");
    let mut within = std::iter::successors(flagged.parent(), Node::parent).take_while(|node| node.kind() != "block");
    if !VALUES.contains(&flagged.kind()) || is_bound(flagged) || within.any(|node| is_own(&node)) {
        return None;
    }
    let kernel = ground.parsed.module.kernel(&ground.program.kernel)?;
    if !kernel.def_span.contains(span) {
        return None;
    }
    let text = source.text();
    Some((text.get(..node_span(statement).start)?, text.get(kernel.def_span.end..)?))
}

/// The innermost statement of a block that contains a node.
pub(super) fn statement_of(mut node: Node<'_>) -> Option<Node<'_>> {
    while node.parent()?.kind() != "block" {
        node = node.parent()?;
    }
    Some(node)
}

/// Whether a node is a called function, an assignment target or a parameter, and so has no value by itself.
fn is_bound(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return true };
    let is = |field: &str| parent.child_by_field_name(field) == Some(node);
    match parent.kind() {
        "assignment" | "augmented_assignment" | "for_statement" => is("left"),
        "keyword_argument" => is("name"),
        "call" => is("function"),
        "attribute" => is("attribute"),
        "typed_parameter" | "default_parameter" | "parameters" | "pattern_list" | "type" => true,
        _ => false,
    }
}

/// The expression or assignment that contains a node; `None` at the boundary of the statement.
pub(super) fn around(node: Node<'_>) -> Option<Node<'_>> {
    let mut parent = node.parent()?;
    while matches!(parent.kind(), "argument_list" | "keyword_argument" | "parenthesized_expression") {
        parent = parent.parent()?;
    }
    (VALUES.contains(&parent.kind()) || matches!(parent.kind(), "assignment" | "augmented_assignment"))
        .then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed_files::Parsed;

    const TEXT: &str = "import triton\nimport triton.language as tl\n\n\n# warpsmith: signature n=i32\n@triton.jit\ndef k(n):\n    x = tl.arange(0, 16)\n    if n > 1:\n        y = x + f(2 ** 70)\n        z = y\n    w = x\n\n\ndef later():\n    pass\n";

    fn by_itself(word: &str) -> Vec<String> {
        let (program, parsed) = (KernelProgram::new(TEXT, "k"), Parsed::new(TEXT));
        let at = TEXT.rfind(word).unwrap();
        let span = Span::new(at, at + word.len());
        alone(&VariationBase::new(&program, &parsed), span).into_iter().map(|program| program.text).collect()
    }

    #[test]
    fn an_isolated_value_replaces_its_statement_and_ends_the_kernel() {
        let texts = by_itself("2 ** 70");
        for (text, line) in texts.iter().zip(["by_itself = 2 ** 70", "tl.static_assert((2 ** 70) == (2 ** 70))"]) {
            assert!(text.ends_with(&format!("    if n > 1:\n        {line}\n\n\ndef later():\n    pass\n")), "{text}");
        }
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn nodes_without_a_value_cannot_be_isolated() {
        assert_eq!(by_itself("y = x + f(2 ** 70)"), [""; 0]);
        // The names of a called function and of an assignment target.
        assert_eq!(by_itself("f"), [""; 0]);
        assert_eq!(by_itself("w"), [""; 0]);
    }

    #[test]
    fn the_surrounding_of_an_argument_is_its_call() {
        let parsed = Parsed::new(TEXT);
        let at = TEXT.rfind("2 ** 70").unwrap();
        let node = parsed.source.node_at(Span::new(at, at + 7)).unwrap();
        let call = around(node).unwrap();
        assert_eq!(call.kind(), "call");
        let sum = around(call).unwrap();
        assert_eq!((sum.kind(), around(sum).unwrap().kind()), ("binary_operator", "assignment"));
        assert!(around(around(sum).unwrap()).is_none());
    }
}
