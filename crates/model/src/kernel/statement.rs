//! The names that single top-level statements bind and use. They serve to reduce a file to what a kernel needs.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use tree_sitter::Node;

use super::ast::walk_expressions;
use super::ast_builder::AstBuilder;
use super::build::{collect_locals, params};
use super::{Imports, bindings};
use crate::syntax::{Source, Span, each_node, field, node_span};

/// A statement at the top level, or in a branch there (`if …:`, `try:`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Span of the statement.
    pub span: Span,
    /// The names that it binds, perhaps under a condition.
    pub binds: Vec<String>,
    /// The names that it uses and does not bind inside. It may list too many where scopes are hard to follow.
    pub uses: BTreeSet<String>,
    /// The names of [`Self::uses`] that occur only as the condition of an `if`, each with whether it is called there.
    pub conditions: BTreeMap<String, bool>,
    /// The modules from which it, or a statement inside it, imports.
    pub modules: Vec<String>,
    /// Whether it is a single import.
    pub is_import: bool,
    /// Spans of the decorators besides the one that makes it a kernel: they do not act inside the kernel.
    pub wrappers: Vec<Span>,
    /// Index in [`Self::all`] of the statement whose branch contains this one. The fields of that statement leave out
    /// the statements of its branches, except for the names that these bind.
    pub parent: Option<usize>,
}

impl Statement {
    /// The statements of a file, in order. The statements of branches follow the statement that contains them.
    #[must_use]
    pub fn all(source: &Source) -> Vec<Self> {
        let mut all = Vec::new();
        for root in source.roots() {
            let mut cursor = root.walk();
            for node in root.named_children(&mut cursor).filter(|node| !node.is_extra()) {
                let mut inner = Vec::new();
                if branches(node) {
                    in_branches(node, &mut inner);
                }
                let spans: Vec<Span> = inner.iter().map(|node| node_span(*node)).collect();
                let parent = all.len();
                all.push(Self::of(source, node, &spans));
                all.extend(inner.iter().map(|node| Self { parent: Some(parent), ..Self::of(source, *node, &[]) }));
            }
        }
        all
    }

    /// Describes a statement, without the parts of it that lie in `without`.
    fn of(source: &Source, node: Node<'_>, without: &[Span]) -> Self {
        let lower = AstBuilder::new(source.text());
        let (wrappers, function) = wrappers(source, node);
        let binds = bindings::of_statement(node, lower);
        let mut uses = function.map_or_else(BTreeSet::new, |function| of_function(function, lower));
        let mut tests = BTreeMap::new();
        let mut cursor = node.walk();
        let decorators = node.named_children(&mut cursor).filter(|child| child.kind() == "decorator");
        let kept = decorators.filter(|decorator| !wrappers.contains(&node_span(*decorator)));
        let part = |node| Part { source, node, without };
        for part in kept.chain(function.is_none().then_some(node)).map(part) {
            let tested = part.tested();
            uses.extend(part.identifiers(&tested));
            tests.extend(tested.into_values());
        }
        let conditions: BTreeMap<String, bool> = tests.into_iter().filter(|(name, _)| !uses.contains(name)).collect();
        uses.extend(conditions.keys().cloned());
        uses.retain(|name| !binds.contains(name));
        let is_import = node.kind().ends_with("import_statement") || node.kind() == "import_from_statement";
        let modules = part(node).modules();
        Self { span: node_span(node), binds, uses, conditions, modules, is_import, wrappers, parent: None }
    }
}

/// Whether a statement has branches whose statements are listed separately.
fn branches(node: Node<'_>) -> bool {
    matches!(node.kind(), "if_statement" | "try_statement")
}

/// Adds the statements in the branches of `node` to `found`.
fn in_branches<'t>(node: Node<'t>, found: &mut Vec<Node<'t>>) {
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        if child.kind() == "block" {
            let mut cursor = child.walk();
            for stmt in child.named_children(&mut cursor).filter(|stmt| !stmt.is_extra()) {
                if branches(stmt) {
                    in_branches(stmt, found);
                } else {
                    found.push(stmt);
                }
            }
        } else if child.kind().ends_with("_clause") {
            in_branches(child, found);
        }
    }
}

/// The decorators besides the one that hands the function to Triton, and the function. Without such a decorator there
/// is a function only if it has no decorators at all.
fn wrappers<'t>(source: &Source, node: Node<'t>) -> (Vec<Span>, Option<Node<'t>>) {
    if node.kind() == "function_definition" {
        return (Vec::new(), Some(node));
    }
    let mut cursor = node.walk();
    let decorators: Vec<Node<'_>> =
        node.named_children(&mut cursor).filter(|child| child.kind() == "decorator").collect();
    let is_jit = |decorator: &&Node<'_>| {
        let text = source.slice(node_span(**decorator));
        let name = text.trim_start_matches('@').split('(').next().unwrap_or("").trim();
        matches!(name.rsplit('.').next(), Some("jit" | "constexpr_function"))
    };
    if !decorators.iter().any(|decorator| is_jit(&decorator)) {
        return (Vec::new(), None);
    }
    let spans = decorators.iter().filter(|decorator| !is_jit(decorator)).map(|decorator| node_span(*decorator));
    let function = field(node, "definition").filter(|inner| inner.kind() == "function_definition");
    (spans.collect(), function)
}

/// The names that a function uses from enclosing scopes.
fn of_function(function: Node<'_>, lower: AstBuilder<'_>) -> BTreeSet<String> {
    let params = params(function, lower, &Imports::default());
    let body = field(function, "body").map_or_else(Vec::new, |body| lower.block(body));
    let mut locals: HashSet<String> = params.iter().map(|param| param.name.clone()).collect();
    collect_locals(&body, &mut locals);
    let mut uses = BTreeSet::new();
    walk_expressions(&body, &mut |expr| {
        uses.extend(expr.as_name().filter(|name| !locals.contains(*name)).map(str::to_owned));
    });
    for expr in params.iter().flat_map(|param| param.annotation.iter().chain(&param.default)) {
        expr.walk(&mut |expr| uses.extend(expr.as_name().map(str::to_owned)));
    }
    uses
}

/// Adds the names that a condition tests for their truth value.
fn truths(source: &Source, test: Node<'_>, found: &mut HashMap<usize, (String, bool)>) {
    let name = |node: Node<'_>| source.slice(node_span(node)).to_owned();
    match test.kind() {
        "identifier" => drop(found.insert(test.id(), (name(test), false))),
        "call" => {
            let function = field(test, "function").filter(|function| function.kind() == "identifier");
            found.extend(function.map(|function| (function.id(), (name(function), true))));
        }
        "not_operator" | "boolean_operator" | "parenthesized_expression" => {
            let mut cursor = test.walk();
            test.named_children(&mut cursor).for_each(|part| truths(source, part, found));
        }
        _ => {}
    }
}

/// A part of a syntax tree, without the spans in `without`.
#[derive(Clone, Copy)]
struct Part<'s, 't> {
    source: &'s Source,
    node: Node<'t>,
    without: &'s [Span],
}

impl<'t> Part<'_, 't> {
    /// By node, the names outside of functions that occur only as the condition of an `if`, each with whether it is
    /// called.
    fn tested(&self) -> HashMap<usize, (String, bool)> {
        let mut found = HashMap::default();
        self.each(&mut |node| {
            let test = match node.kind() {
                "if_statement" | "elif_clause" => field(node, "condition"),
                "conditional_expression" => node.named_child(1),
                _ => None,
            };
            let is_inside = |node: Node<'_>| {
                let mut around = std::iter::successors(node.parent(), Node::parent);
                around.any(|around| matches!(around.kind(), "function_definition" | "lambda"))
            };
            if let Some(test) = test.filter(|_| !is_inside(node)) {
                truths(self.source, test, &mut found);
            }
        });
        found
    }

    /// All names, except those of attributes and keywords and the `tested` ones.
    fn identifiers(&self, tested: &HashMap<usize, (String, bool)>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.each(&mut |node| {
            let is_field =
                |parent: Node<'_>, name: &str| field(parent, name).is_some_and(|child| child.id() == node.id());
            let is_other = node.parent().is_some_and(|parent| match parent.kind() {
                "attribute" => is_field(parent, "attribute"),
                "keyword_argument" => is_field(parent, "name"),
                "dotted_name" => true,
                _ => false,
            });
            if node.kind() == "identifier" && !is_other && !tested.contains_key(&node.id()) {
                found.insert(self.source.slice(node_span(node)).to_owned());
            }
        });
        found
    }

    /// The modules that import statements name.
    fn modules(&self) -> Vec<String> {
        let text = |node| self.source.slice(node_span(node)).to_owned();
        let mut found = Vec::new();
        self.each(&mut |node| match node.kind() {
            "future_import_statement" => found.push("__future__".to_owned()),
            "import_from_statement" => found.extend(field(node, "module_name").map(text)),
            "import_statement" => {
                let mut cursor = node.walk();
                for name in node.children_by_field_name("name", &mut cursor) {
                    found.push(text(field(name, "name").unwrap_or(name)));
                }
            }
            _ => {}
        });
        found
    }

    fn each(&self, visit: &mut dyn FnMut(Node<'t>)) {
        each_node(self.node, &mut |node| {
            let span = node_span(node);
            if !self.without.iter().any(|without| without.start <= span.start && span.end <= without.end) {
                visit(node);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_list_bound_and_used_names() {
        let text = "\
import os, torch.nn as nn
from .op import exp as e, log
N = tl.constexpr(M + 1)
if os.environ.get('A') == '1':
    import torch
    F = 1
else:
    F: int = other
@triton.autotune(configs=configs(), key=['n'])
@triton.jit
def k(x, n, B: tl.constexpr = N):
    o = tl.arange(0, B)
    tl.store(x + o, helper(o, mask=n))
class T(NamedTuple):
    a: int
print(x)
";
        let source = Source::parse(text);
        let all = Statement::all(&source);
        let shown: Vec<String> = all
            .iter()
            .map(|one| {
                let uses: Vec<&str> = one.uses.iter().map(String::as_str).collect();
                format!("{} <- {} [{}]", one.binds.join(" "), uses.join(" "), one.modules.join(" "))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "os nn <-  [os torch.nn]",
                "e log <-  [.op]",
                "N <- M tl []",
                "torch F F <- os []",
                "torch <-  [torch]",
                "F <-  []",
                "F <- int other []",
                "k <- N helper tl triton []",
                "T <- NamedTuple a int []",
                " <- print x []",
            ]
        );
        assert_eq!(all.iter().filter(|one| one.parent == Some(3)).count(), 3);
        assert_eq!(source.slice(all[7].wrappers[0]), "@triton.autotune(configs=configs(), key=['n'])");
        assert!(all[0].is_import && all[1].is_import && !all[3].is_import);
    }

    #[test]
    fn names_used_only_as_conditions_are_listed_separately() {
        let text = "\
if A and not (B or f(x)):
    def g():
        return 1 if C else 2
elif D == 1 or E:
    v = E
N = 1 if F else 2
@triton.jit(do_not_specialize=['T'] if H else [])
def k(x):
    y = 1 if I else 2
@triton.autotune(configs=[1] if J else [])
@triton.jit
def m(x):
    return H if H else 3
";
        let source = Source::parse(text);
        let shown = |one: &Statement| format!("{:?}", one.conditions);
        let all: Vec<String> = Statement::all(&source).iter().map(shown).collect();
        assert_eq!(
            all,
            [
                r#"{"A": false, "B": false, "E": false, "f": true}"#,
                "{}",
                "{}",
                r#"{"F": false}"#,
                r#"{"H": false}"#,
                "{}"
            ]
        );
        assert!(Statement::all(&source)[4].uses.contains("H"));
    }
}
