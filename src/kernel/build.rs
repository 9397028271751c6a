//! Source → [`Module`].

use std::collections::{HashMap, HashSet};

use tree_sitter::Node;

use super::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use super::lower::Lower;
use super::query::Found;
use super::{
    Autotune, Config, Decorator, Function, Global, Host, Imports, Kernel, Launch, Module, Param, bindings, query,
};
use crate::syntax::{Source, node_span};

impl Module {
    /// Reads the kernel model off a file.
    #[must_use]
    pub fn build(source: &Source) -> Self {
        let found = query::find(source, source.tree().root_node());
        let mut imports = Imports::collect(&found.imports, Lower::new(source.text()));
        if imports.is_empty() && found.launches.is_empty() {
            return Self::default();
        }
        let TopLevel { globals, functions, uncertain } = top_level(source, Some(&mut imports));
        let (bindings, has_star_import) = bindings::read(source);
        let mut module = Self { imports, globals, functions, uncertain, bindings, has_star_import, ..Self::default() };
        module.add(source, &found);
        module.note_calls();
        module
    }

    /// The innermost function around byte `offset`, whether or not it launches a kernel.
    #[must_use]
    pub fn function_around(source: &Source, offset: usize) -> Option<Host> {
        let node = source.tree().root_node().descendant_for_byte_range(offset, offset)?;
        Some(host(enclosing_function(node)?, Lower::new(source.text())))
    }

    /// Adds the kernels and launches of one node below the root, which comes after those that were added.
    pub(super) fn read(&mut self, source: &Source, node: Node<'_>) {
        self.add(source, &query::find(source, node));
    }

    fn add(&mut self, source: &Source, found: &Found<'_>) {
        let lower = Lower::new(source.text());
        self.kernels.extend(found.decorated.iter().filter_map(|&node| kernel(node, lower, &self.imports)));
        let mut hosts = HashMap::new();
        for &node in &found.launches {
            let host = enclosing_function(node).map(|function| {
                *hosts.entry(function.id()).or_insert_with(|| {
                    self.hosts.push(host(function, lower));
                    self.hosts.len() - 1
                })
            });
            self.launches.extend(launch(node, lower, host));
        }
    }
}

/// What the top level binds.
pub(super) struct TopLevel {
    pub(super) globals: Vec<Global>,
    pub(super) functions: Vec<Function>,
    /// The names bound more than once or under a condition.
    pub(super) uncertain: HashSet<String>,
}

/// Assignments and plain functions of the top level. Aliases that it makes for what is imported go into `imports`.
pub(super) fn top_level(source: &Source, mut imports: Option<&mut Imports>) -> TopLevel {
    let lower = Lower::new(source.text());
    let (mut globals, mut functions) = (Vec::new(), Vec::new());
    let (mut bound, mut uncertain) = (HashSet::new(), HashSet::new());
    let root = source.tree().root_node();
    let mut cursor = root.walk();
    for node in root.named_children(&mut cursor) {
        let conditional = matches!(
            node.kind(),
            "if_statement" | "try_statement" | "with_statement" | "for_statement" | "while_statement"
        );
        if conditional && is_main_guard(node, lower) {
            continue;
        }
        if node.kind() == "function_definition" {
            functions.extend(function(node, lower));
        }
        // Functions and classes are not entered: their bodies bind nothing here.
        let stmt = lower.stmt(node);
        walk_statements(std::slice::from_ref(&stmt), &mut |stmt| {
            for name in bound_names(&stmt.kind) {
                if conditional || !bound.insert(name.clone()) {
                    uncertain.insert(name);
                }
            }
            if let StmtKind::Assign { targets, annotation, value: Some(value) } = &stmt.kind
                && let [target] = targets.as_slice()
                && let Some(name) = target.as_name()
            {
                if let Some(imports) = &mut imports {
                    imports.assign(name, value);
                }
                let is_constexpr =
                    annotation.as_ref().and_then(Expr::dotted).is_some_and(|path| path.last() == Some(&"constexpr"));
                globals.push(Global { name: name.to_owned(), value: value.clone(), is_constexpr, span: stmt.span });
            }
        });
    }
    TopLevel { globals, functions, uncertain }
}

fn function(node: Node<'_>, lower: Lower<'_>) -> Option<Function> {
    let name = node.child_by_field_name("name")?;
    let body = node.child_by_field_name("body")?;
    let mut cursor = body.walk();
    let is_docstring = |child: &Node<'_>| {
        child.kind() == "expression_statement" && child.named_child(0).is_some_and(|inner| inner.kind() == "string")
    };
    let mut statements =
        body.named_children(&mut cursor).filter(|child| child.kind() != "comment" && !is_docstring(child));
    let only = statements.next().filter(|first| first.kind() == "return_statement" && statements.next().is_none());
    Some(Function {
        name: lower.str(name).to_owned(),
        name_span: node_span(name),
        span: node_span(node),
        result: only.and_then(|only| only.named_child(0)).map(|value| lower.expr(value)),
    })
}

fn is_main_guard(node: Node<'_>, lower: Lower<'_>) -> bool {
    node.child_by_field_name("condition").is_some_and(|test| lower.str(test).contains("__name__"))
}

fn bound_names(stmt: &StmtKind) -> Vec<String> {
    match stmt {
        StmtKind::Assign { targets, .. } => targets.iter().filter_map(Expr::as_name).map(str::to_owned).collect(),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => {
            target.as_name().map(str::to_owned).into_iter().collect()
        }
        StmtKind::Definition(name) => vec![name.clone()],
        _ => Vec::new(),
    }
}

fn kernel(node: Node<'_>, lower: Lower<'_>, imports: &Imports) -> Option<Kernel> {
    let def = node.child_by_field_name("definition")?;
    let name = def.child_by_field_name("name")?;
    let decorators = decorators(node, lower, imports);
    let is_jit = |path: &Option<String>| {
        matches!(path.as_deref(), Some("triton.jit" | "triton.runtime.jit.jit" | "triton.runtime.jit"))
    };
    if !decorators.iter().any(|decorator| is_jit(&decorator.path)) {
        return None;
    }
    let params = params(def, lower, imports);
    let body = def.child_by_field_name("body").map_or_else(Vec::new, |body| lower.block(body));
    let mut locals: HashSet<String> = params.iter().map(|param| param.name.clone()).collect();
    collect_locals(&body, &mut locals);
    let of_path = |wanted: &'static str| {
        decorators.iter().filter(move |decorator| {
            decorator.path.as_deref().is_some_and(|path| path.rsplit('.').next() == Some(wanted))
        })
    };
    let heuristics =
        of_path("heuristics").map(|decorator| heuristic_names(&decorator.expr)).collect::<Option<Vec<_>>>();
    Some(Kernel {
        name: lower.str(name).to_owned(),
        name_span: node_span(name),
        span: node_span(node),
        def_span: node_span(def),
        params,
        autotune: of_path("autotune").next().map(|decorator| autotune(&decorator.expr, imports)),
        heuristics: heuristics.map(|names| names.concat()),
        plain: decorators.iter().all(|decorator| {
            is_jit(&decorator.path)
                || decorator
                    .path
                    .as_deref()
                    .is_some_and(|path| path.ends_with(".autotune") || path.ends_with(".heuristics"))
        }),
        decorators,
        body,
        locals,
        nested: node.parent().is_some_and(|parent| parent.kind() != "module"),
        has_error: node.has_error(),
    })
}

fn decorators(node: Node<'_>, lower: Lower<'_>, imports: &Imports) -> Vec<Decorator> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| child.kind() == "decorator")
        .filter_map(|child| child.named_child(0))
        .map(|child| {
            let expr = lower.expr(child);
            let called = expr.as_call().map_or(&expr, |call| &call.func);
            let path = imports.resolve(called).map(|resolved| resolved.path);
            Decorator { path, expr }
        })
        .collect()
}

fn params(def: Node<'_>, lower: Lower<'_>, imports: &Imports) -> Vec<Param> {
    let Some(list) = def.child_by_field_name("parameters") else { return Vec::new() };
    let mut cursor = list.walk();
    let mut params: Vec<Param> = Vec::new();
    let mut is_keyword_only = false;
    for node in list.named_children(&mut cursor) {
        if let Some(mut param) = param(node, lower, imports) {
            param.keyword_only = is_keyword_only && !param.variadic;
            is_keyword_only |= param.variadic;
            params.push(param);
        }
        is_keyword_only |= node.kind() == "keyword_separator";
    }
    params
}

fn param(node: Node<'_>, lower: Lower<'_>, imports: &Imports) -> Option<Param> {
    let inner = match node.kind() {
        "identifier" | "list_splat_pattern" | "dictionary_splat_pattern" => node,
        "typed_parameter" => node.named_child(0)?,
        "default_parameter" | "typed_default_parameter" => node.child_by_field_name("name")?,
        _ => return None, // `*`, `/`, comments
    };
    let variadic = inner.kind() != "identifier";
    let name = if variadic { inner.named_child(0)? } else { inner };
    let annotation = node.child_by_field_name("type").map(|ty| lower.expr(ty));
    Some(Param {
        name: lower.str(name).to_owned(),
        name_span: node_span(name),
        span: node_span(node),
        constexpr: annotation.as_ref().is_some_and(|annotation| is_constexpr(annotation, imports)),
        annotation,
        default: node.child_by_field_name("value").map(|value| lower.expr(value)),
        variadic,
        keyword_only: false,
    })
}

/// Triton itself looks for the text `constexpr` in the annotation.
fn is_constexpr(annotation: &Expr, imports: &Imports) -> bool {
    match &annotation.kind {
        ExprKind::Str(text) => text.contains("constexpr"),
        _ => {
            imports.resolve(annotation).is_some_and(|resolved| resolved.path.ends_with(".constexpr"))
                || annotation.dotted().is_some_and(|parts| parts.last() == Some(&"constexpr"))
        }
    }
}

fn collect_locals(body: &[super::ast::Stmt], locals: &mut HashSet<String>) {
    walk_statements(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => targets.iter().for_each(|target| target_names(target, locals)),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => target_names(target, locals),
        StmtKind::Definition(name) => {
            locals.insert(name.clone());
        }
        _ => {}
    });
    walk_expressions(body, &mut |expr| match &expr.kind {
        ExprKind::Named { name, .. } => {
            locals.insert(name.clone());
        }
        // Bound for the comprehension alone; that it hides the name everywhere errs towards silence.
        ExprKind::Comprehension { clauses, .. } => {
            clauses.iter().for_each(|(target, _)| target_names(target, locals));
        }
        _ => {}
    });
}

fn target_names(target: &Expr, names: &mut HashSet<String>) {
    match &target.kind {
        ExprKind::Name(name) => {
            names.insert(name.clone());
        }
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|item| target_names(item, names)),
        ExprKind::Starred(inner) => target_names(inner, names),
        _ => {}
    }
}

fn autotune(decorator: &Expr, imports: &Imports) -> Autotune {
    let call = decorator.as_call();
    let configs = call.and_then(|call| call.argument("configs", Some(0))).and_then(|list| configs(list, imports));
    let key = call.and_then(|call| call.argument("key", Some(1))).and_then(strings);
    Autotune { span: decorator.span, configs, key }
}

fn items(expr: &Expr) -> Option<&[Expr]> {
    match &expr.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) => Some(items),
        _ => None,
    }
}

fn strings(expr: &Expr) -> Option<Vec<String>> {
    let text = |item: &Expr| match &item.kind {
        ExprKind::Str(text) => Some(text.clone()),
        _ => None,
    };
    items(expr)?.iter().map(text).collect()
}

fn configs(list: &Expr, imports: &Imports) -> Option<Vec<Config>> {
    items(list)?.iter().map(|item| config(item, imports)).collect()
}

fn config(item: &Expr, imports: &Imports) -> Option<Config> {
    let call = item.as_call()?;
    if !imports.resolve(&call.func)?.path.ends_with(".Config") || call.has_star() {
        return None;
    }
    let meta = match call.argument("kwargs", Some(0)) {
        Some(Expr { kind: ExprKind::Dict { items, open: false }, .. }) => named_items(items)?,
        Some(_) => return None,
        None => Vec::new(),
    };
    const POSITIONAL: [&str; 3] = ["num_warps", "num_stages", "num_ctas"];
    let options = call
        .args
        .iter()
        .enumerate()
        .filter_map(|(at, arg)| match &arg.keyword {
            Some((name, _)) if name != "kwargs" => Some((name.clone(), arg.value.clone())),
            None if at > 0 => POSITIONAL.get(at - 1).map(|name| ((*name).to_owned(), arg.value.clone())),
            _ => None,
        })
        .collect();
    Some(Config { span: item.span, meta, options })
}

fn named_items(items: &[(Expr, Expr)]) -> Option<Vec<(String, Expr)>> {
    items
        .iter()
        .map(|(key, value)| match &key.kind {
            ExprKind::Str(name) => Some((name.clone(), value.clone())),
            _ => None,
        })
        .collect()
}

fn heuristic_names(decorator: &Expr) -> Option<Vec<String>> {
    match &decorator.as_call()?.argument("values", Some(0))?.kind {
        ExprKind::Dict { items, open: false } => {
            named_items(items).map(|items| items.into_iter().map(|(name, _)| name).collect())
        }
        _ => None,
    }
}

fn launch(node: Node<'_>, lower: Lower<'_>, host: Option<usize>) -> Option<Launch> {
    let expr = lower.expr(node);
    let span = expr.span;
    let ExprKind::Call(call) = expr.kind else { return None };
    let Call { func, args, args_span } = *call;
    let ExprKind::Subscript { value, mut index } = func.kind else { return None };
    let grid = if index.len() == 1 {
        index.remove(0)
    } else {
        let span = crate::syntax::Span::new(index.first()?.span.start, index.last()?.span.end);
        Expr { span, kind: ExprKind::Tuple(index) }
    };
    Some(Launch {
        kernel: value.as_name().map(str::to_owned),
        target: *value,
        grid,
        args,
        args_span,
        span,
        host,
        has_error: node.has_error(),
    })
}

fn enclosing_function(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.parent();
    while let Some(parent) = at {
        if parent.kind() == "function_definition" {
            return Some(parent);
        }
        at = parent.parent();
    }
    None
}

fn host(function: Node<'_>, lower: Lower<'_>) -> Host {
    let name_of = |node: Node<'_>| node.child_by_field_name("name").map_or("", |name| lower.str(name)).to_owned();
    let name = name_of(function);
    let mut qualname = name.clone();
    let mut at = function.parent();
    while let Some(parent) = at {
        match parent.kind() {
            "class_definition" => qualname = format!("{}.{qualname}", name_of(parent)),
            "function_definition" => qualname = format!("{}.<locals>.{qualname}", name_of(parent)),
            _ => {}
        }
        at = parent.parent();
    }
    Host {
        qualname,
        name,
        name_span: function.child_by_field_name("name").map_or(node_span(function), node_span),
        span: node_span(function),
        line: lower.text[..function.start_byte()].matches('\n').count(),
        params: params(function, lower, &Imports::default()).into_iter().map(|param| param.name).collect(),
        body: function.child_by_field_name("body").map_or_else(Vec::new, |body| lower.block(body)),
    }
}
