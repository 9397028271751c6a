//! Builds the [`Module`] of a source.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use tree_sitter::Node;

use super::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use super::ast_builder::AstBuilder;
use super::facts::FactCache;
use super::find::{self, Hints, Scope, SegmentNodes};
use super::{Autotune, Config, Decorator, GlobalBinding, HostFunction, Imports, Kernel, Launch, Module, Param};
use crate::syntax::{Segment, Source, Span, field, node_span};

/// The length in bytes above which a text gets no model: it would take too long, and kernels are not written in such
/// files.
pub const MAX_TEXT: usize = 2 << 20;

/// A segment that is parsed and searched lazily, only as far as the model needs.
pub(super) struct SegmentReader<'a> {
    source: &'a Source,
    segment: &'a Segment,
    text: &'a str,
    hints: Hints,
    found: Option<SegmentNodes<'a>>,
}

impl<'a> SegmentReader<'a> {
    pub(super) fn new(source: &'a Source, segment: &'a Segment) -> Self {
        let text = source.slice(Span::new(segment.start(), segment.end()));
        Self { source, segment, text, hints: Hints::of(text), found: None }
    }

    fn found(&mut self) -> &SegmentNodes<'a> {
        let (source, segment) = (self.source, self.segment);
        self.found.get_or_insert_with(|| find::find(source.text(), source.root(segment)))
    }

    /// The import statements of the segment.
    pub(super) fn imports(&mut self) -> &[Node<'a>] {
        if self.hints.imports { &self.found().imports } else { &[] }
    }

    fn launches(&mut self) -> &[find::LaunchNode<'a>] {
        if self.hints.launches { &self.found().launches } else { &[] }
    }

    fn decorated(&mut self, imports: &Imports) -> &[Node<'a>] {
        let has = |name: &str| memchr::memmem::find(self.text.as_bytes(), name.as_bytes()).is_some();
        if self.hints.decorators && imports.names().any(has) { &self.found().decorated } else { &[] }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Byte offset of the segment in the file.
    pub(super) fn start(&self) -> usize {
        self.segment.start()
    }

    pub(super) fn root(&self) -> Node<'a> {
        self.source.root(self.segment)
    }

    /// Whether the segment is a single function or class without decorators.
    pub(super) fn is_plain_definition(&self) -> bool {
        self.segment.is_plain_definition()
    }
}

impl Module {
    /// Builds the kernel model of a file. A file without imports of Triton and without launches gets an empty model.
    #[must_use]
    pub fn build(source: &Source) -> Self {
        Self::read(source, false)
    }

    /// The same for a file that others import from: it gets a full model in any case, because it may re-export what it
    /// imports without a reference to Triton.
    #[must_use]
    pub fn build_whole(source: &Source) -> Self {
        Self::read(source, true)
    }

    fn read(source: &Source, is_wanted: bool) -> Self {
        if source.text().len() > MAX_TEXT {
            return Self::default();
        }
        let lower = AstBuilder::new(source.text());
        let mut imports = Imports::default();
        let mut readings: Vec<_> =
            source.segments().iter().map(|segment| SegmentReader::new(source, segment)).collect();
        readings.iter_mut().for_each(|reading| imports.merge(&Imports::collect(reading.imports(), lower)));
        if !is_wanted && imports.is_empty() && readings.iter_mut().all(|reading| reading.launches().is_empty()) {
            return Self::default();
        }
        let mut module = Self { imports, ..Self::default() };
        for reading in &mut readings {
            module.add_top_level(reading, lower);
        }
        for global in &module.globals {
            module.imports.assign(&global.name, &global.value);
        }
        for (at, reading) in readings.iter_mut().enumerate() {
            module.add(at, reading, lower);
        }
        module.conclude();
        module
    }

    /// The innermost function around byte `offset`, whether or not it launches a kernel.
    #[must_use]
    pub fn function_around(source: &Source, offset: usize) -> Option<HostFunction> {
        let scope = find::scope_at(source.root_at(offset)?, offset)?;
        Some(host(scope.function()?, AstBuilder::new(source.text())))
    }

    /// The statements under `if __name__ == "__main__":`, as a function without parameters.
    #[must_use]
    pub fn main_block(source: &Source) -> Option<HostFunction> {
        let span = super::main_guard(source)?;
        let root = source.root_at(span.start)?;
        let mut cursor = root.walk();
        let guard = root.named_children(&mut cursor).find(|node| node_span(*node) == span)?;
        Some(HostFunction {
            qualname: "__main__".to_owned(),
            name: "__main__".to_owned(),
            name_span: span,
            span,
            line: guard.start_position().row,
            params: Vec::new(),
            defaults: Vec::new(),
            body: field(guard, "consequence").map_or_else(Vec::new, |body| AstBuilder::new(source.text()).block(body)),
            facts: FactCache::default(),
        })
    }

    /// The statements of the top level, as a function without parameters. Definitions only bind their names.
    #[must_use]
    pub fn top_level(source: &Source) -> HostFunction {
        let lower = AstBuilder::new(source.text());
        let whole = Span::new(0, source.text().len());
        HostFunction {
            qualname: "<module>".to_owned(),
            name: "<module>".to_owned(),
            name_span: whole,
            span: whole,
            line: 0,
            params: Vec::new(),
            defaults: Vec::new(),
            body: source.roots().flat_map(|root| lower.block(root)).collect(),
            facts: FactCache::default(),
        }
    }

    /// Adds the kernels and launches of the next segment, whose top level was added already.
    pub(super) fn add(&mut self, at: usize, reading: &mut SegmentReader<'_>, lower: AstBuilder<'_>) {
        let (kernels, launches, first_host) = (self.kernels.len(), self.launches.len(), self.hosts.len());
        let decorated = reading.decorated(&self.imports);
        self.kernels.extend(decorated.iter().filter_map(|&node| kernel(node, lower, &self.imports)));
        let mut hosts = HashMap::default();
        for found in reading.launches() {
            let host = found.function().map(|function| {
                *hosts.entry(function.node.id()).or_insert_with(|| {
                    self.hosts.push(host(function, lower));
                    self.hosts.len() - 1
                })
            });
            self.launches.extend(launch(found.node, lower, host));
        }
        let part = &mut self.parts[at];
        (part.calls, part.free) = names(&self.kernels[kernels..], lower.text);
        part.kernels = self.kernels.len() - kernels;
        part.launches = self.launches.len() - launches;
        part.hosts = self.hosts.len() - first_host;
    }

    /// Combines the name bindings of all segments.
    pub(super) fn conclude(&mut self) {
        let (mut bound, mut uncertain) = (HashSet::default(), HashSet::default());
        for (name, conditional) in self.parts.iter().flat_map(|part| &part.bound) {
            if !bound.insert(name) || *conditional {
                uncertain.insert(name.clone());
            }
        }
        self.uncertain = uncertain;
        self.bindings.clear();
        for (name, binding) in self.parts.iter().flat_map(|part| &part.bindings) {
            match self.bindings.entry(name.clone()) {
                Entry::Occupied(mut known) => *known.get_mut() = GlobalBinding::Other,
                Entry::Vacant(free) => drop(free.insert(binding.clone())),
            }
        }
        self.has_star_import = self.parts.iter().any(|part| part.has_star_import);
        self.called = self.parts.iter().flat_map(|part| &part.calls).cloned().collect();
    }
}

/// Names that the kernels call, and names that they use without binding them.
fn names(kernels: &[Kernel], text: &str) -> (HashSet<String>, HashSet<String>) {
    let (mut calls, mut free) = (HashSet::default(), HashSet::default());
    for kernel in kernels {
        if kernel.has_error {
            // The model omits text that the parser did not understand.
            let words = text[kernel.span.start..kernel.span.end].split(|c: char| !c.is_alphanumeric() && c != '_');
            free.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        }
        for default in kernel.params.iter().filter_map(|param| param.default.as_ref()) {
            default.walk(&mut |expr| free.extend(expr.as_name().map(str::to_owned)));
        }
        walk_expressions(&kernel.body, &mut |expr| {
            if let Some(name) = expr.as_call().and_then(|call| call.func.as_name())
                && !calls.contains(name)
            {
                calls.insert(name.to_owned());
            }
            if let Some(name) = expr.as_name()
                && !kernel.locals.contains(name)
                && !free.contains(name)
            {
                free.insert(name.to_owned());
            }
        });
    }
    (calls, free)
}

/// Whether a definition is in a branch of the top level, and in no other definition.
fn is_conditional(node: Node<'_>) -> bool {
    let above = std::iter::successors(node.parent(), Node::parent).take_while(|above| above.kind() != "module");
    let mut kinds = above.map(|above| above.kind()).peekable();
    kinds.peek().is_some() && kinds.all(|kind| !matches!(kind, "function_definition" | "class_definition"))
}

fn kernel(node: Node<'_>, lower: AstBuilder<'_>, imports: &Imports) -> Option<Kernel> {
    let def = field(node, "definition")?;
    let name = field(def, "name")?;
    let decorators = decorators(node, lower, imports);
    let is_jit = |path: &Option<String>| {
        matches!(path.as_deref(), Some("triton.jit" | "triton.runtime.jit.jit" | "triton.runtime.jit"))
    };
    if !decorators.iter().any(|decorator| is_jit(&decorator.path)) {
        return None;
    }
    let params = params(def, lower, imports);
    let body = field(def, "body").map_or_else(Vec::new, |body| lower.block(body));
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
        conditional: is_conditional(node),
        has_error: node.has_error(),
        facts: FactCache::default(),
    })
}

fn decorators(node: Node<'_>, lower: AstBuilder<'_>, imports: &Imports) -> Vec<Decorator> {
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

pub(super) fn params(def: Node<'_>, lower: AstBuilder<'_>, imports: &Imports) -> Vec<Param> {
    let Some(list) = field(def, "parameters") else { return Vec::new() };
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

fn param(node: Node<'_>, lower: AstBuilder<'_>, imports: &Imports) -> Option<Param> {
    let inner = match node.kind() {
        "identifier" | "list_splat_pattern" | "dictionary_splat_pattern" => node,
        "typed_parameter" => node.named_child(0)?,
        "default_parameter" | "typed_default_parameter" => field(node, "name")?,
        _ => return None, // `*`, `/`, comments
    };
    let variadic = inner.kind() != "identifier";
    let name = if variadic { inner.named_child(0)? } else { inner };
    let annotation = field(node, "type").map(|ty| lower.expr(ty));
    Some(Param {
        name: lower.str(name).to_owned(),
        name_span: node_span(name),
        span: node_span(node),
        constexpr: annotation.as_ref().is_some_and(|annotation| is_constexpr(annotation, imports)),
        annotation,
        default: field(node, "value").map(|value| lower.expr(value)),
        variadic,
        keyword_only: false,
    })
}

/// Triton itself searches the text of the annotation for `constexpr`.
fn is_constexpr(annotation: &Expr, imports: &Imports) -> bool {
    match &annotation.kind {
        ExprKind::Str(text) => text.contains("constexpr"),
        _ => {
            imports.resolve(annotation).is_some_and(|resolved| resolved.path.ends_with(".constexpr"))
                || annotation.dotted().is_some_and(|parts| parts.last() == Some(&"constexpr"))
        }
    }
}

pub(super) fn collect_locals(body: &[super::ast::Stmt], locals: &mut HashSet<String>) {
    walk_statements(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => targets.iter().for_each(|target| target_names(target, locals)),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => target_names(target, locals),
        StmtKind::Definition { name, .. } => {
            locals.insert(name.clone());
        }
        _ => {}
    });
    walk_expressions(body, &mut |expr| match &expr.kind {
        ExprKind::Named { name, .. } => {
            locals.insert(name.clone());
        }
        // The name is bound in the comprehension only. Treating it as local everywhere errs on the side of fewer
        // warnings.
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

fn launch(node: Node<'_>, lower: AstBuilder<'_>, host: Option<usize>) -> Option<Launch> {
    let expr = lower.expr(node);
    let span = expr.span;
    let ExprKind::Call(call) = expr.kind else { return None };
    let Call { func, args, args_span } = *call;
    let ExprKind::Subscript { value, mut index } = func.kind else { return None };
    let grid = if index.len() == 1 {
        index.remove(0)
    } else {
        let span = Span::new(index.first()?.span.start, index.last()?.span.end);
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

fn host(scope: &Scope<'_>, lower: AstBuilder<'_>) -> HostFunction {
    let name_of = |node: Node<'_>| field(node, "name").map_or("", |name| lower.str(name)).to_owned();
    let function = scope.node;
    let name = name_of(function);
    let mut qualname = name.clone();
    let mut outer = scope.outer.as_deref();
    while let Some(scope) = outer {
        let separator = if scope.is_function { ".<locals>." } else { "." };
        qualname = format!("{}{separator}{qualname}", name_of(scope.node));
        outer = scope.outer.as_deref();
    }
    let params = params(function, lower, &Imports::default());
    HostFunction {
        qualname,
        name,
        name_span: field(function, "name").map_or(node_span(function), node_span),
        span: node_span(function),
        line: function.start_position().row,
        params: params.iter().map(|param| param.name.clone()).collect(),
        defaults: params.into_iter().filter_map(|param| Some((param.name, param.default?))).collect(),
        body: field(function, "body").map_or_else(Vec::new, |body| lower.block(body)),
        facts: FactCache::default(),
    }
}
