//! Name resolution for definitions, references and renames. It reads the syntax tree, so that it also finds names in
//! parts that the model leaves out.

use tree_sitter::Node;

use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};
use model::kernel::{ImportedFile, Kernel, Module};
use model::syntax::{Source, Span, each_node, field, node_span};

/// The entity that a name refers to.
#[derive(Clone, Copy, Debug)]
pub enum Symbol<'a> {
    /// A parameter or a variable of a kernel.
    Local {
        /// The kernel that binds the name.
        kernel: &'a Kernel,
        /// The name.
        name: &'a str,
    },
    /// A kernel or helper of the file.
    Kernel(&'a str),
    /// A global variable of the file.
    Global(&'a str),
}

/// One occurrence of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The name.
    pub span: Span,
    /// Whether the name is bound there.
    pub is_binding: bool,
}

/// The symbol that the name at byte `offset` refers to, and the span of the name.
#[must_use]
pub fn at<'a>(source: &'a Source, module: &'a Module, offset: usize) -> Option<(Symbol<'a>, Span)> {
    let is_name = |node: &Node<'_>| matches!(node.kind(), "identifier" | "string_content");
    let node_at = |offset: usize| source.node_at(Span::new(offset, offset)).filter(is_name);
    let node = node_at(offset).or_else(|| node_at(offset.checked_sub(1)?))?;
    Some((symbol(source, module, node)?, node_span(node)))
}

/// The symbol that `node`, an identifier or the content of a string, refers to.
fn symbol<'a>(source: &'a Source, module: &'a Module, node: Node<'_>) -> Option<Symbol<'a>> {
    let (name, span) = (source.slice(node_span(node)), node_span(node));
    let parent = node.parent()?;
    if node.kind() == "string_content" {
        // In a decorator (`key=["n"]`, `{"BLOCK": 64}`) a string may name a parameter.
        let decorates = |kernel: &&Kernel| kernel.span.contains(span) && span.end < kernel.def_span.start;
        let kernel = module.kernels.iter().rev().find(decorates)?;
        return kernel.param(name).map(|param| Symbol::Local { kernel, name: &param.name });
    }
    let is_field = |name: &str| field(parent, name).is_some_and(|child| child.id() == node.id());
    match parent.kind() {
        "attribute" if is_field("attribute") => return None,
        "keyword_argument" if is_field("name") => {
            let kernel = called(source, module, parent.parent()?.parent()?)?;
            return kernel.param(name).map(|param| Symbol::Local { kernel, name: &param.name });
        }
        _ => {}
    }
    let around = module.kernels.iter().rev().find(|kernel| kernel.def_span.contains(span));
    if let Some(kernel) = around
        && kernel.name_span != span
        && kernel.locals.contains(name)
        && !is_in_head(kernel, span)
    {
        return Some(Symbol::Local { kernel, name: kernel.locals.get(name)? });
    }
    if around.is_none() && is_bound_around(source, module, node) {
        return None;
    }
    if let Some(kernel) = module.kernels.iter().find(|kernel| kernel.name == name) {
        return Some(Symbol::Kernel(&kernel.name));
    }
    module.globals.iter().find(|global| global.name == name).map(|global| Symbol::Global(&global.name))
}

/// Whether a span is in an annotation or a default of `kernel`, where its own names are not bound yet.
fn is_in_head(kernel: &Kernel, span: Span) -> bool {
    kernel.params.iter().any(|param| param.span.contains(span) && param.name_span != span)
}

/// The kernel that a call calls or launches.
fn called<'a>(source: &Source, module: &'a Module, call: Node<'_>) -> Option<&'a Kernel> {
    let function = field(call, "function")?;
    let name = if function.kind() == "subscript" { field(function, "value")? } else { function };
    (name.kind() == "identifier").then(|| module.kernel(source.slice(node_span(name))))?
}

/// Whether a function around `node` binds its name locally, to something other than a kernel.
fn is_bound_around(source: &Source, module: &Module, node: Node<'_>) -> bool {
    let name = source.slice(node_span(node));
    let is_kernel = |span: Span| module.kernels.iter().any(|kernel| kernel.name_span == span);
    let mut at = node.parent();
    while let Some(around) = at {
        if matches!(around.kind(), "function_definition" | "lambda") {
            let mut bound = false;
            let own = field(around, "name").map(|name| name.id());
            identifiers(around, &mut |inner| {
                let span = node_span(inner);
                bound |= own != Some(inner.id()) && source.slice(span) == name && binds(inner) && !is_kernel(span);
            });
            if bound {
                return true;
            }
        }
        at = around.parent();
    }
    false
}

/// Calls `visit` on each identifier in `node`.
pub(super) fn identifiers<'t>(node: Node<'t>, visit: &mut dyn FnMut(Node<'t>)) {
    each_node(node, &mut |node| {
        if node.kind() == "identifier" {
            visit(node);
        }
    });
}

/// Whether the identifier `node` is a binding occurrence.
pub(super) fn binds(node: Node<'_>) -> bool {
    let Some(mut parent) = node.parent() else { return false };
    let mut child = node;
    while matches!(
        parent.kind(),
        "pattern_list" | "tuple_pattern" | "list_pattern" | "list_splat_pattern" | "dictionary_splat_pattern"
    ) {
        child = parent;
        let Some(next) = parent.parent() else { return false };
        parent = next;
    }
    let is_field = |name: &str| field(parent, name).is_some_and(|it| it.id() == child.id());
    match parent.kind() {
        "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => is_field("left"),
        "named_expression"
        | "function_definition"
        | "class_definition"
        | "default_parameter"
        | "typed_default_parameter" => is_field("name"),
        "parameters" | "lambda_parameters" | "as_pattern_target" => true,
        "typed_parameter" => parent.named_child(0).is_some_and(|first| first.id() == child.id()),
        _ => false,
    }
}

/// The uses of the name at byte `offset`, in source order; `None` where there is no name.
pub fn occurrences_at(source: &Source, module: &Module, offset: usize) -> Option<Vec<Occurrence>> {
    let (symbol, _) = at(source, module, offset)?;
    Some(occurrences(source, module, symbol))
}

/// All occurrences of `wanted` in the file, in order.
#[must_use]
pub(crate) fn occurrences(source: &Source, module: &Module, wanted: Symbol<'_>) -> Vec<Occurrence> {
    let name = match wanted {
        Symbol::Local { name, .. } | Symbol::Kernel(name) | Symbol::Global(name) => name,
    };
    let text = source.text();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    // In text with errors a name may begin in the middle of a word: the parser's recovery has skipped the rest.
    let has_words = !source.has_error();
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(text.as_bytes(), name) {
        let span = Span::new(at, at + name.len());
        // A number may end right before a name: `64scale`.
        let is_inside = text[..span.start].ends_with(|c: char| is_part(c) && !c.is_numeric())
            || text[span.end..].starts_with(is_part);
        if has_words && is_inside {
            continue;
        }
        let Some(node) = source.node_at(span) else { continue };
        let is_whole = node_span(node) == span && matches!(node.kind(), "identifier" | "string_content");
        if is_whole && symbol(source, module, node).is_some_and(|symbol| is_same(symbol, wanted)) {
            found.push(Occurrence { span, is_binding: node.kind() == "identifier" && binds(node) });
        }
    }
    found
}

fn is_same(left: Symbol<'_>, right: Symbol<'_>) -> bool {
    match (left, right) {
        (Symbol::Local { kernel, name }, Symbol::Local { kernel: other, name: its }) => {
            kernel.span == other.span && name == its
        }
        (Symbol::Kernel(name), Symbol::Kernel(other)) | (Symbol::Global(name), Symbol::Global(other)) => name == other,
        _ => false,
    }
}

/// The definitions of the name at byte `offset`: for a variable of a kernel, the assignments that reach it.
#[must_use]
pub fn definitions(source: &Source, module: &Module, offset: usize) -> Vec<Span> {
    let Some((symbol, span)) = at(source, module, offset) else { return Vec::new() };
    match symbol {
        Symbol::Kernel(name) => {
            module.kernels.iter().filter(|kernel| kernel.name == name).map(|kernel| kernel.name_span).collect()
        }
        Symbol::Global(name) => {
            let globals = module.globals.iter().filter(|global| global.name == name);
            globals.map(|global| Span::new(global.span.start, global.span.start + name.len())).collect()
        }
        Symbol::Local { kernel, name } => {
            let param = kernel.param(name).map(|param| param.name_span);
            if !kernel.def_span.contains(span) {
                return param.into_iter().collect();
            }
            let mut flow = Flow { name, wanted: span, answer: None };
            let mut last: Vec<Span> = param.into_iter().collect();
            if param != Some(span) {
                flow.body(&kernel.body, &mut last);
            }
            match flow.answer {
                Some(found) if !found.is_empty() => found,
                _ if param == Some(span) => vec![span],
                // Where no assignment reaches the name, or the model does not cover the place: all of them.
                _ => {
                    let all = occurrences(source, module, symbol).into_iter();
                    all.filter(|place| place.is_binding && kernel.def_span.contains(place.span))
                        .map(|place| place.span)
                        .collect()
                }
            }
        }
    }
}

/// The file that defines the imported name at byte `offset`, and the name in that file, where kernels use it.
#[must_use]
pub fn imported<'a>(source: &Source, module: &'a Module, offset: usize) -> Option<(&'a ImportedFile, &'a str)> {
    let is_name = |node: &Node<'_>| node.kind() == "identifier";
    let node_at = |offset: usize| source.node_at(Span::new(offset, offset)).filter(is_name);
    let mut node = node_at(offset).or_else(|| node_at(offset.checked_sub(1)?))?;
    let is_attribute = |parent: &Node<'_>, node: Node<'_>| {
        parent.kind() == "attribute" && field(*parent, "attribute").is_some_and(|it| it.id() == node.id())
    };
    if let Some(parent) = node.parent().filter(|parent| is_attribute(parent, node)) {
        node = parent;
    }
    let span = node_span(node);
    let parts: Vec<&str> = source.slice(span).split('.').map(str::trim).collect();
    let around = module.kernels.iter().rev().find(|kernel| kernel.def_span.contains(span));
    if around.is_some_and(|kernel| parts.first().is_some_and(|first| kernel.locals.contains(*first))) {
        return None;
    }
    module.links().definition(&parts).map(|(file, name)| (&**file, name))
}

/// Reaching definitions of one name.
struct Flow<'a> {
    name: &'a str,
    wanted: Span,
    answer: Option<Vec<Span>>,
}

impl Flow<'_> {
    /// Follows `body`; `last` holds the definitions that reach the current point.
    fn body(&mut self, body: &[Stmt], last: &mut Vec<Span>) {
        for stmt in body {
            self.stmt(stmt, last);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, last: &mut Vec<Span>) {
        match &stmt.kind {
            StmtKind::For { target, iter, body, orelse } => {
                self.uses(iter, last);
                self.repeat(Some(target), None, body, last);
                self.body(orelse, last);
            }
            StmtKind::While { test, body, orelse } => {
                self.repeat(None, Some(test), body, last);
                self.body(orelse, last);
            }
            StmtKind::If { branches, orelse } => {
                let mut after = Vec::new();
                for (test, body) in branches {
                    self.uses(test, last);
                    let mut own = last.clone();
                    self.body(body, &mut own);
                    join(&mut after, &own);
                }
                self.body(orelse, last);
                join(last, &after);
            }
            StmtKind::Block(bodies) => {
                for body in bodies {
                    let mut own = last.clone();
                    self.body(body, &mut own);
                    join(last, &own);
                }
            }
            StmtKind::AugAssign { target, value, .. } => {
                self.uses(value, last);
                // An augmented assignment reads its target before it binds it.
                self.uses(target, last);
                self.bind(target, last);
            }
            StmtKind::Assign { targets, value, .. } => {
                value.iter().for_each(|value| self.uses(value, last));
                for target in targets {
                    self.bind(target, last);
                    self.uses(target, last);
                }
            }
            _ => stmt.exprs().into_iter().for_each(|expr| self.uses(expr, last)),
        }
    }

    /// Follows a loop: assignments of its body reach the start of the next iteration.
    fn repeat(&mut self, target: Option<&Expr>, test: Option<&Expr>, body: &[Stmt], last: &mut Vec<Span>) {
        // Only the second iteration has the complete answer.
        let before = self.answer.take();
        for _ in 0..2 {
            let mut own = last.clone();
            self.answer = None;
            test.iter().for_each(|test| self.uses(test, &own));
            if let Some(target) = target {
                self.bind(target, &mut own);
                self.uses(target, &own);
            }
            self.body(body, &mut own);
            join(last, &own);
        }
        self.answer = self.answer.take().or(before);
    }

    fn uses(&mut self, expr: &Expr, last: &[Span]) {
        if !expr.span.contains(self.wanted) {
            return;
        }
        expr.walk(&mut |expr| {
            if expr.span == self.wanted && expr.as_name() == Some(self.name) {
                self.answer = Some(last.to_vec());
            }
        });
    }

    fn bind(&self, target: &Expr, last: &mut Vec<Span>) {
        match &target.kind {
            ExprKind::Name(name) if name == self.name => *last = vec![target.span],
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|item| self.bind(item, last)),
            ExprKind::Starred(inner) => self.bind(inner, last),
            _ => {}
        }
    }
}

fn join(into: &mut Vec<Span>, more: &[Span]) {
    into.extend_from_slice(more);
    into.sort_unstable();
    into.dedup();
}
