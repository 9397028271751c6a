//! Reads what the top level of a file binds: assignments, functions and other names.

use tree_sitter::Node;

use super::ast::{Expr, StmtKind, walk_statements};
use super::ast_builder::AstBuilder;
use super::build::SegmentReader;
use super::dependencies::statements;
use super::{Global, GlobalBinding, Imports, Module, Part, PlainFunction, bindings};
use crate::syntax::{Source, Span, field, from_first_statement, node_span};

/// The length in bytes above which the returned expression of a function is not read.
const SHORT: usize = 1500;

impl Module {
    /// Adds the top level of the next segment.
    pub(super) fn add_top_level(&mut self, reading: &mut SegmentReader<'_>, lower: AstBuilder<'_>) {
        let (globals, functions) = (self.globals.len(), self.functions.len());
        let mut part = Part::default();
        if let Some(definition) = Plain::of(reading) {
            part.bound = vec![(definition.name.to_owned(), false)];
            let binding = if definition.is_class { GlobalBinding::Class } else { GlobalBinding::Function };
            part.bindings = vec![(definition.name.to_owned(), binding)];
            if !definition.is_class {
                self.functions.push(definition.function(reading, lower));
            }
        } else if !from_first_statement(reading.text()).is_empty() {
            let root = reading.root();
            part.bound = self.read_top_level(root, lower);
            (part.bindings, part.has_star_import) = bindings::read(root, lower);
        }
        part.imports = Imports::collect(reading.imports(), lower);
        (part.globals, part.functions) = (self.globals.len() - globals, self.functions.len() - functions);
        self.parts.push(part);
    }

    /// Adds the assignments and functions of a segment's top level. Returns the names that it binds, each with whether
    /// that is under a condition.
    fn read_top_level(&mut self, root: Node<'_>, lower: AstBuilder<'_>) -> Vec<(String, bool)> {
        let mut bound = Vec::new();
        let mut cursor = root.walk();
        for node in root.named_children(&mut cursor) {
            let conditional = matches!(
                node.kind(),
                "if_statement" | "try_statement" | "with_statement" | "for_statement" | "while_statement"
            );
            if is_main_guard(node, lower.text) {
                continue;
            }
            if node.kind() == "function_definition" {
                self.functions.extend(function(node, lower));
            }
            // Bodies of functions and classes are skipped: they bind nothing at the top level.
            let stmt = lower.stmt(node);
            walk_statements(std::slice::from_ref(&stmt), &mut |stmt| {
                bound.extend(bound_names(&stmt.kind).into_iter().map(|name| (name, conditional)));
                if let StmtKind::Assign { targets, annotation, value: Some(value) } = &stmt.kind
                    && let [target] = targets.as_slice()
                    && let Some(name) = target.as_name()
                {
                    let path = annotation.as_ref().and_then(Expr::dotted);
                    let is_constexpr = path.is_some_and(|path| path.last() == Some(&"constexpr"));
                    let (name, value) = (name.to_owned(), value.clone());
                    self.globals.push(Global { name, value, is_constexpr, span: stmt.span });
                }
            });
        }
        bound
    }
}

/// A segment that is a single function or class without decorators. What it binds is known without parsing it.
struct Plain<'a> {
    is_class: bool,
    name: &'a str,
    /// Byte offset of the name in the segment.
    at: usize,
}

impl<'a> Plain<'a> {
    fn of(reading: &SegmentReader<'a>) -> Option<Self> {
        let text = reading.text();
        let is_class = text.starts_with("class");
        let rest = text.strip_prefix("def").or_else(|| text.strip_prefix("class"))?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start_matches([' ', '\t']);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let is_name = end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit()) && rest[end..].starts_with(['(', ':']);
        let at = text.len() - rest.len();
        (is_name && reading.is_plain_definition()).then(|| Self { is_class, name: &rest[..end], at })
    }

    fn function(&self, reading: &SegmentReader<'_>, lower: AstBuilder<'_>) -> PlainFunction {
        let (start, text) = (reading.start(), statements(reading.text()));
        let result = || {
            let (root, mut definitions) = (reading.root(), reading.root().walk());
            let mut definitions =
                root.named_children(&mut definitions).filter(|node| node.kind() == "function_definition");
            definitions.next().and_then(|node| result(node, lower))
        };
        let name_start = start + self.at;
        PlainFunction {
            name: self.name.to_owned(),
            name_span: Span::new(name_start, name_start + self.name.len()),
            span: Span::new(start, start + text.len()),
            result: if may_only_return(text) { result() } else { None },
        }
    }
}

/// Whether the function in `text` may consist of a `return` only, judged by how its lines begin.
fn may_only_return(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    if text.len() > SHORT || !has(b"return") {
        return false;
    }
    // A line in a multi-line string is not a statement, and neither is a line after a backslash.
    if has(b"\"\"\"") || has(b"'''") || has(b"\\") {
        return true;
    }
    let (mut depth, mut statements) = (0_usize, 0);
    for line in text.lines() {
        let starts = depth == 0 && !line.trim_ascii_start().is_empty() && !line.trim_ascii_start().starts_with('#');
        statements += usize::from(starts);
        let mut quote = None;
        for byte in line.bytes() {
            match (quote, byte) {
                (Some(open), _) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'#') => break,
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'(' | b'[' | b'{') => depth += 1,
                (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                (None, _) => {}
            }
        }
    }
    // The head, a docstring, and the `return`.
    statements <= 3
}

fn function(node: Node<'_>, lower: AstBuilder<'_>) -> Option<PlainFunction> {
    let name = field(node, "name")?;
    Some(PlainFunction {
        name: lower.str(name).to_owned(),
        name_span: node_span(name),
        span: node_span(node),
        result: result(node, lower),
    })
}

/// The expression that a function returns, when the `return` is all that its body does.
pub(super) fn result(function: Node<'_>, lower: AstBuilder<'_>) -> Option<Expr> {
    let body = field(function, "body")?;
    let mut cursor = body.walk();
    let is_docstring = |child: &Node<'_>| {
        child.kind() == "expression_statement" && child.named_child(0).is_some_and(|inner| inner.kind() == "string")
    };
    let mut statements =
        body.named_children(&mut cursor).filter(|child| child.kind() != "comment" && !is_docstring(child));
    let only = statements.next().filter(|first| first.kind() == "return_statement")?;
    if statements.next().is_some() {
        return None;
    }
    only.named_child(0).map(|value| lower.expr(value))
}

/// Span of the statement `if __name__ == "__main__":` of a file, with its body.
#[must_use]
pub fn main_guard(source: &Source) -> Option<Span> {
    let text = source.text();
    text.match_indices("__name__").find_map(|(at, _)| {
        let root = source.root_at(at)?;
        let mut cursor = root.walk();
        let here = |node: &Node<'_>| node_span(*node).touches(at) && is_main_guard(*node, text);
        root.named_children(&mut cursor).find(here).map(node_span)
    })
}

/// Whether a statement is `if __name__ == "__main__":`.
#[must_use]
pub fn is_main_guard(node: Node<'_>, text: &str) -> bool {
    let names = |test: Node<'_>| text.get(test.byte_range()).is_some_and(|test| test.contains("__name__"));
    node.kind() == "if_statement" && field(node, "condition").is_some_and(names)
}

fn bound_names(stmt: &StmtKind) -> Vec<String> {
    match stmt {
        StmtKind::Assign { targets, .. } => targets.iter().filter_map(Expr::as_name).map(str::to_owned).collect(),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => {
            target.as_name().map(str::to_owned).into_iter().collect()
        }
        StmtKind::Definition { name, .. } => vec![name.clone()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::may_only_return;

    #[test]
    fn functions_with_more_than_a_return_are_detected() {
        for text in [
            "def f(x):\n    return x\n",
            "def f(\n    x,\n    y=(1, 2),\n):\n    'Says ) what.'\n\n    # why\n    return g(\n        x,\n        ')', # (\n        y,\n    )\n",
            "def f(x): return x\n",
            "def f(x):\n    \"\"\"Long.\n\n    Text.\n    More.\n    \"\"\"\n    return x\n",
        ] {
            assert!(may_only_return(text), "{text}");
        }
        for text in [
            "def f(x):\n    pass\n",
            "def f(x):\n    y = x\n    z = y\n    return z\n",
            "def f(x):\n    if x:\n        return 1\n    return g(x,\n        2)\n",
        ] {
            assert!(!may_only_return(text), "{text}");
        }
    }
}
