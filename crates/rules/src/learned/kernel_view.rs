//! A kernel as patterns see it, with the values of its expressions, computed on first use.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tree_sitter::Node;

use model::analysis::types::{AbstractValue, is_of_python};
use model::api::{Lookup, TritonTarget};
use model::kernel::ast::{Expr, ExprKind, walk_expressions, walk_statements};
use model::kernel::{GlobalBinding, Kernel, Module};
use model::syntax::{Span, node_span};

use crate::context::{RuleContext, SpanValues};

/// A kernel of a file.
pub(super) struct KernelView<'a> {
    pub(super) context: &'a RuleContext<'a>,
    pub(super) kernel: &'a Kernel,
    index: usize,
    values: OnceCell<Arc<SpanValues>>,
    expressions: OnceCell<FxHashMap<Span, &'a Expr>>,
}

impl<'a> KernelView<'a> {
    pub(super) fn new(context: &'a RuleContext<'a>, index: usize) -> Self {
        let kernel = &context.module.kernels[index];
        Self { context, kernel, index, values: OnceCell::new(), expressions: OnceCell::new() }
    }

    /// The definition of the kernel; `None` where it contains syntax errors or is under a condition.
    pub(super) fn root(&self) -> Option<Node<'a>> {
        let is_clear = !self.kernel.has_error && !self.kernel.nested;
        self.context.source.node_at(self.kernel.def_span).filter(|_| is_clear)
    }

    /// The model of the file.
    pub(super) fn module(&self) -> &'a Module {
        self.context.module
    }

    /// The Triton release in use.
    pub(super) fn target(&self) -> TritonTarget {
        self.context.target
    }

    /// The text of a node.
    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        self.context.source.slice(node_span(node))
    }

    /// The value of an expression, where it is known.
    pub(super) fn value(&self, node: Node<'_>) -> Option<&AbstractValue<'static>> {
        self.value_at(node_span(plain(node)))
    }

    fn value_at(&self, span: Span) -> Option<&AbstractValue<'static>> {
        let values = self.values.get_or_init(|| self.context.values(self.index));
        values.get(&span).filter(|value| !matches!(value, AbstractValue::Unknown | AbstractValue::Opaque(_)))
    }

    /// The expression of a node in the body or in the parameters.
    pub(super) fn expression(&self, node: Node<'_>) -> Option<&'a Expr> {
        let expressions = self.expressions.get_or_init(|| {
            let mut all = FxHashMap::default();
            let mut add = |expr: &'a Expr| {
                all.insert(expr.span, expr);
            };
            let params = self.kernel.params.iter().flat_map(|param| param.annotation.iter().chain(&param.default));
            params.for_each(|expr| expr.walk(&mut add));
            walk_expressions(&self.kernel.body, &mut add);
            all
        });
        expressions.get(&node_span(plain(node))).copied()
    }

    /// The name, where the node is a name that refers to a value, not the name of an attribute, a keyword or a
    /// parameter.
    pub(super) fn name(&self, node: Node<'_>) -> Option<&'a str> {
        self.expression(node)?.as_name()
    }

    /// The full name of what an expression refers to: `triton.language.load`, `triton.language.tensor.to` for a function of
    /// a run-time value, `torch.exp`, `builtins.sum`. `None` when that is not certain.
    pub(super) fn path(&self, node: Node<'_>) -> Option<String> {
        self.path_of(self.expression(node)?)
    }

    fn path_of(&self, expr: &Expr) -> Option<String> {
        let module = self.module();
        let first = expr.first_name();
        if first.is_none_or(|name| self.kernel.locals.contains(name)) {
            return self.method(expr);
        }
        let first = first?;
        if module.uncertain.contains(first)
            || module.imports.binds_another(first) && module.imports.resolve(expr).is_some()
        {
            return None;
        }
        if let Some(resolved) = module.imports.resolve(expr) {
            return resolved.direct.then(|| self.canonical(resolved.path));
        }
        match module.bindings.get(first) {
            Some(GlobalBinding::Import(path)) => {
                let rest = expr.dotted()?;
                Some([path.as_str()].into_iter().chain(rest.into_iter().skip(1)).collect::<Vec<_>>().join("."))
            }
            Some(_) => None,
            None if module.has_star_import || !is_of_python(first) => None,
            None => Some(format!("builtins.{}", expr.dotted()?.join("."))),
        }
    }

    /// The full name of a method of a run-time value.
    fn method(&self, expr: &Expr) -> Option<String> {
        let ExprKind::Attribute { value, name, .. } = &expr.kind else { return None };
        let of = self.value_at(value.span)?;
        matches!(of, AbstractValue::Tile(_)).then(|| format!("triton.language.tensor.{name}"))
    }

    /// The path through the public module that exports a member, not through the module that defines it.
    fn canonical(&self, path: String) -> String {
        let inner = ["core.", "standard.", "math.", "random."].iter().find_map(|part| {
            let plain = format!("triton.language.{}", path.strip_prefix("triton.language.")?.strip_prefix(part)?);
            matches!(self.target().lookup(&plain), Lookup::Found(_)).then_some(plain)
        });
        inner.unwrap_or(path)
    }

    /// Whether the body assigns the name.
    pub(super) fn is_assigned(&self, name: &str) -> bool {
        let mut found = false;
        walk_statements(&self.kernel.body, &mut |statement| {
            found |= statement.targets().iter().any(|target| target.mentions(name));
        });
        walk_expressions(&self.kernel.body, &mut |expr| {
            found |= matches!(&expr.kind, ExprKind::Named { name: bound, .. } if bound == name);
        });
        found
    }
}

/// The node inside of parentheses.
pub(super) fn plain(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while node.kind() == "parenthesized_expression" {
        let mut cursor = node.walk();
        let Some(inner) = node.named_children(&mut cursor).find(|child| child.kind() != "comment") else { break };
        node = inner;
    }
    node
}

/// The nearest ancestor of this kind.
pub(super) fn around<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut at = node.parent();
    while let Some(node) = at.filter(|node| node.kind() != kind) {
        at = node.parent();
    }
    at
}
