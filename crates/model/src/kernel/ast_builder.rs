//! Lowers nodes of the tree-sitter tree to the types of [`ast`](super::ast).

use tree_sitter::Node;

use super::ast::{Arg, Call, Expr, ExprKind, Stmt, StmtKind};
use crate::syntax::{Span, field, node_span};

/// Code nested deeper than this is not analysed: real code nests less than 30 deep, and hostile code must not exhaust
/// the stack.
const MAX_DEPTH: usize = 120;

/// Lowers the nodes of one text.
#[derive(Clone, Copy)]
pub(crate) struct AstBuilder<'a> {
    pub(crate) text: &'a str,
    depth: usize,
}

impl<'a> AstBuilder<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, depth: 0 }
    }

    pub(crate) fn str(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// The statements of a `block`, `module` or similar node.
    pub(crate) fn block(self, node: Node<'_>) -> Vec<Stmt> {
        if self.depth > MAX_DEPTH {
            return vec![Stmt { span: node_span(node), kind: StmtKind::Other("too deep".to_owned()) }];
        }
        let mut cursor = node.walk();
        node.named_children(&mut cursor)
            .filter(|child| !is_extra(child.kind()))
            .map(|child| self.deeper().stmt(child))
            .collect()
    }

    fn field_block(self, node: Node<'_>, name: &str) -> Vec<Stmt> {
        field(node, name).map_or_else(Vec::new, |body| self.block(body))
    }

    pub(crate) fn stmt(self, node: Node<'_>) -> Stmt {
        let kind = match node.kind() {
            "expression_statement" => return self.expression_statement(node),
            "if_statement" => self.if_statement(node),
            "for_statement" => StmtKind::For {
                target: self.field(node, "left"),
                iter: self.field(node, "right"),
                body: self.field_block(node, "body"),
                orelse: self.alternative(node),
            },
            "while_statement" => StmtKind::While {
                test: self.field(node, "condition"),
                body: self.field_block(node, "body"),
                orelse: self.alternative(node),
            },
            "return_statement" => StmtKind::Return(node.named_child(0).map(|value| self.expr(value))),
            "break_statement" => StmtKind::Break,
            "continue_statement" => StmtKind::Continue,
            "pass_statement" => StmtKind::Pass,
            "raise_statement" => StmtKind::Raise,
            "assert_statement" => StmtKind::Assert(self.named_exprs(node)),
            "import_statement" | "import_from_statement" | "future_import_statement" => StmtKind::Import,
            "function_definition" | "class_definition" => {
                StmtKind::Definition { name: self.name_of(node), lambda: self.as_lambda(node) }
            }
            "decorated_definition" => StmtKind::Definition {
                name: field(node, "definition").map_or_else(String::new, |n| self.name_of(n)),
                lambda: None,
            },
            "with_statement" => StmtKind::Block(self.with_statement(node)),
            "try_statement" | "match_statement" => StmtKind::Block(self.blocks_below(node)),
            other => StmtKind::Other(other.to_owned()),
        };
        Stmt { span: node_span(node), kind }
    }

    fn name_of(&self, definition: Node<'_>) -> String {
        field(definition, "name").map_or_else(String::new, |name| self.str(name).to_owned())
    }

    fn blocks_below(self, node: Node<'_>) -> Vec<Vec<Stmt>> {
        let mut blocks = Vec::new();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "block" => blocks.push(self.block(child)),
                "except_clause" | "except_group_clause" | "finally_clause" | "else_clause" | "case_clause" => {
                    blocks.extend(self.deeper().blocks_below(child));
                }
                _ => {}
            }
        }
        blocks
    }

    /// The expressions of a `with` as statements, then its body.
    fn with_statement(self, node: Node<'_>) -> Vec<Vec<Stmt>> {
        let mut items = Vec::new();
        let mut cursor = node.walk();
        for clause in node.named_children(&mut cursor).filter(|child| child.kind() == "with_clause") {
            let mut cursor = clause.walk();
            for item in clause.named_children(&mut cursor).filter(|child| child.kind() == "with_item") {
                if let Some(value) = field(item, "value") {
                    let inner = value.named_child(0).filter(|_| value.kind() == "as_pattern").unwrap_or(value);
                    items.push(Stmt { span: node_span(inner), kind: StmtKind::Expr(self.expr(inner)) });
                    items.extend(self.with_target(value));
                }
            }
        }
        std::iter::once(items).chain(self.blocks_below(node)).collect()
    }

    /// `… as target` binds names to what the context manager returns, which is not known.
    fn with_target(self, value: Node<'_>) -> Option<Stmt> {
        let target = field(value, "alias").filter(|_| value.kind() == "as_pattern")?;
        let target = target.named_child(0).filter(|_| target.kind() == "as_pattern_target").unwrap_or(target);
        let entered = Expr { span: node_span(value), kind: ExprKind::Other("as_pattern".to_owned()) };
        let kind = StmtKind::Assign { targets: vec![self.expr(target)], annotation: None, value: Some(entered) };
        Some(Stmt { span: node_span(value), kind })
    }

    fn if_statement(self, node: Node<'_>) -> StmtKind {
        // Triton's front end reads each `elif` as an `if` inside the one before.
        if node.named_child_count() > 2 * MAX_DEPTH {
            return StmtKind::Other("too deep".to_owned());
        }
        let mut branches = vec![(self.field(node, "condition"), self.field_block(node, "consequence"))];
        let mut orelse = Vec::new();
        let mut cursor = node.walk();
        for clause in node.children_by_field_name("alternative", &mut cursor) {
            if clause.kind() == "elif_clause" {
                branches.push((self.field(clause, "condition"), self.field_block(clause, "consequence")));
            } else {
                orelse = self.field_block(clause, "body");
            }
        }
        StmtKind::If { branches, orelse }
    }

    fn alternative(self, node: Node<'_>) -> Vec<Stmt> {
        field(node, "alternative").map_or_else(Vec::new, |clause| self.field_block(clause, "body"))
    }

    fn expression_statement(self, node: Node<'_>) -> Stmt {
        let span = node_span(node);
        let Some(inner) = node.named_child(0) else { return Stmt { span, kind: StmtKind::Other("empty".to_owned()) } };
        let kind = match inner.kind() {
            "assignment" => self.assignment(inner),
            "augmented_assignment" => StmtKind::AugAssign {
                target: self.field(inner, "left"),
                op: field(inner, "operator")
                    .map_or_else(String::new, |op| self.str(op).trim_end_matches('=').to_owned()),
                value: self.field(inner, "right"),
            },
            _ if node.named_child_count() > 1 => {
                StmtKind::Expr(Expr { span, kind: ExprKind::Tuple(self.named_exprs(node)) })
            }
            _ => StmtKind::Expr(self.expr(inner)),
        };
        Stmt { span, kind }
    }

    fn assignment(self, node: Node<'_>) -> StmtKind {
        let mut targets = vec![self.field(node, "left")];
        let annotation = field(node, "type").map(|ty| self.expr(ty));
        let mut value = field(node, "right");
        while let Some(inner) = value.filter(|inner| inner.kind() == "assignment") {
            targets.push(self.field(inner, "left"));
            value = field(inner, "right");
        }
        StmtKind::Assign { targets, annotation, value: value.map(|value| self.expr(value)) }
    }

    fn field(self, node: Node<'_>, name: &str) -> Expr {
        match field(node, name) {
            Some(child) => self.expr(child),
            None => Expr {
                span: Span::new(node.start_byte(), node.start_byte()),
                kind: ExprKind::Other("missing".to_owned()),
            },
        }
    }

    fn named_exprs(self, node: Node<'_>) -> Vec<Expr> {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).filter(|child| !is_extra(child.kind())).map(|child| self.expr(child)).collect()
    }

    pub(crate) fn expr(self, node: Node<'_>) -> Expr {
        let span = node_span(node);
        if self.depth > MAX_DEPTH {
            return Expr { span, kind: ExprKind::Other("too deep".to_owned()) };
        }
        let this = self.deeper();
        let kind = match node.kind() {
            // `(a) = b` has parentheses around a name; it is not a tuple.
            "tuple_pattern" if node.named_child_count() == 1 && !this.str(node).contains(',') => {
                match first_expression(node) {
                    Some(inner) => return this.expr(inner),
                    None => ExprKind::Other("empty".to_owned()),
                }
            }
            "parenthesized_expression" | "type" => match first_expression(node) {
                Some(inner) => return this.expr(inner),
                None => ExprKind::Other("empty".to_owned()),
            },
            // The parser inserts an empty name where it expects one.
            "identifier" if node.is_missing() => ExprKind::Other("missing".to_owned()),
            "identifier" => ExprKind::Name(this.str(node).to_owned()),
            "integer" => parse_int(this.str(node)).map_or_else(|| ExprKind::Other("integer".to_owned()), ExprKind::Int),
            "float" => this
                .str(node)
                .replace('_', "")
                .parse()
                .map_or_else(|_| ExprKind::Other("float".to_owned()), ExprKind::Float),
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "none" => ExprKind::None,
            "string" => this.string(node),
            "attribute" => this.attribute(node),
            "call" => this.call(node),
            "subscript" => this.subscript(node),
            "slice" => {
                let parts = this.named_exprs(node);
                // `None:` means the same as `:`.
                let is_whole = parts.iter().all(|part| part.kind == ExprKind::None);
                ExprKind::Slice(if is_whole { Vec::new() } else { parts })
            }
            "binary_operator" => ExprKind::Binary {
                op: this.operator(node),
                left: Box::new(this.field(node, "left")),
                right: Box::new(this.field(node, "right")),
            },
            "boolean_operator" => ExprKind::BoolOp {
                op: this.operator(node),
                left: Box::new(this.field(node, "left")),
                right: Box::new(this.field(node, "right")),
            },
            "unary_operator" => {
                ExprKind::Unary { op: this.operator(node), operand: Box::new(this.field(node, "argument")) }
            }
            "not_operator" => ExprKind::Unary { op: "not".to_owned(), operand: Box::new(this.field(node, "argument")) },
            "comparison_operator" => this.comparison(node),
            "conditional_expression" => this.conditional(node),
            "tuple" | "expression_list" | "pattern_list" | "tuple_pattern" => ExprKind::Tuple(this.named_exprs(node)),
            "list" | "list_pattern" => ExprKind::List(this.named_exprs(node)),
            "dictionary" => this.dictionary(node),
            "lambda" => this.lambda(node),
            "list_comprehension" | "generator_expression" => this.comprehension(node),
            "list_splat" | "dictionary_splat" | "list_splat_pattern" => match first_expression(node) {
                Some(inner) => ExprKind::Starred(Box::new(this.expr(inner))),
                None => ExprKind::Other("splat".to_owned()),
            },
            "named_expression" => ExprKind::Named {
                name: field(node, "name").map_or_else(String::new, |name| this.str(name).to_owned()),
                value: Box::new(this.field(node, "value")),
            },
            other => ExprKind::Other(other.to_owned()),
        };
        Expr { span, kind: with_star_outside(span, kind) }
    }

    fn operator(&self, node: Node<'_>) -> String {
        field(node, "operator").map_or_else(String::new, |op| self.str(op).to_owned())
    }

    fn string(self, node: Node<'_>) -> ExprKind {
        let (mut content, mut parts, mut is_formatted) = (String::new(), Vec::new(), false);
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "string_content" => content.push_str(self.str(child)),
                "interpolation" => {
                    parts.extend(field(child, "expression").map(|inner| self.expr(inner)));
                    is_formatted = true;
                }
                _ => {}
            }
        }
        if is_formatted { ExprKind::FString(parts) } else { ExprKind::Str(content) }
    }

    fn attribute(self, node: Node<'_>) -> ExprKind {
        let Some(name) = field(node, "attribute") else { return ExprKind::Other("attribute".to_owned()) };
        ExprKind::Attribute {
            value: Box::new(self.field(node, "object")),
            name: self.str(name).to_owned(),
            name_span: node_span(name),
        }
    }

    fn call(self, node: Node<'_>) -> ExprKind {
        let Some(list) = field(node, "arguments") else { return ExprKind::Other("call".to_owned()) };
        let func = self.field(node, "function");
        let args = if list.kind() == "argument_list" {
            let mut cursor = list.walk();
            list.named_children(&mut cursor).filter(|child| !is_extra(child.kind())).map(|arg| self.arg(arg)).collect()
        } else {
            // A call with a generator expression as its only argument.
            vec![Arg { keyword: None, value: self.expr(list), span: node_span(list) }]
        };
        ExprKind::Call(Box::new(Call { func, args, args_span: node_span(list) }))
    }

    fn arg(self, node: Node<'_>) -> Arg {
        let span = node_span(node);
        if node.kind() == "keyword_argument"
            && let Some(name) = field(node, "name")
        {
            let keyword = Some((self.str(name).to_owned(), node_span(name)));
            return Arg { keyword, value: self.field(node, "value"), span };
        }
        Arg { keyword: None, value: self.expr(node), span }
    }

    fn subscript(self, node: Node<'_>) -> ExprKind {
        let mut cursor = node.walk();
        let index = node.children_by_field_name("subscript", &mut cursor).map(|index| self.expr(index)).collect();
        ExprKind::Subscript { value: Box::new(self.field(node, "value")), index }
    }

    fn comparison(self, node: Node<'_>) -> ExprKind {
        let mut cursor = node.walk();
        let operators: Vec<String> =
            node.children_by_field_name("operators", &mut cursor).map(|op| self.str(op).to_owned()).collect();
        let mut operands = self.named_exprs(node).into_iter();
        let Some(left) = operands.next() else { return ExprKind::Other("comparison".to_owned()) };
        ExprKind::Compare { left: Box::new(left), rest: operators.into_iter().zip(operands).collect() }
    }

    fn conditional(self, node: Node<'_>) -> ExprKind {
        let mut parts = self.named_exprs(node).into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(body), Some(test), Some(orelse)) => {
                ExprKind::IfExp { test: Box::new(test), body: Box::new(body), orelse: Box::new(orelse) }
            }
            _ => ExprKind::Other("conditional_expression".to_owned()),
        }
    }

    fn dictionary(self, node: Node<'_>) -> ExprKind {
        let (mut items, mut open) = (Vec::new(), false);
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "pair" => items.push((self.field(child, "key"), self.field(child, "value"))),
                "comment" | "line_continuation" => {}
                _ => open = true,
            }
        }
        ExprKind::Dict { items, open }
    }

    fn comprehension(self, node: Node<'_>) -> ExprKind {
        let (mut clauses, mut filtered) = (Vec::new(), false);
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "for_in_clause" => clauses.push((self.field(child, "left"), self.field(child, "right"))),
                "if_clause" => filtered = true,
                _ => {}
            }
        }
        let element = Box::new(self.field(node, "body"));
        ExprKind::Comprehension { element, clauses, filtered, is_generator: node.kind() == "generator_expression" }
    }

    /// A function that only returns something, as a lambda.
    fn as_lambda(self, node: Node<'_>) -> Option<Expr> {
        let body = super::top_level::result(node, self)?;
        let (list, mut params) = (field(node, "parameters")?, Vec::new());
        let mut cursor = list.walk();
        for param in list.named_children(&mut cursor) {
            let name = match param.kind() {
                "identifier" => param,
                "typed_parameter" => param.named_child(0).filter(|name| name.kind() == "identifier")?,
                _ => return None,
            };
            params.push(self.str(name).to_owned());
        }
        Some(Expr { span: node_span(node), kind: ExprKind::Lambda { params, body: Box::new(body) } })
    }

    fn lambda(self, node: Node<'_>) -> ExprKind {
        let mut params = Vec::new();
        if let Some(list) = field(node, "parameters") {
            let mut cursor = list.walk();
            params.extend(list.named_children(&mut cursor).map(|param| self.str(param).to_owned()));
        }
        ExprKind::Lambda { params, body: Box::new(self.field(node, "body")) }
    }
}

/// Whether a node of this kind can occur between any two other nodes.
fn is_extra(kind: &str) -> bool {
    matches!(kind, "comment" | "line_continuation")
}

fn first_expression(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).find(|child| !is_extra(child.kind()))
}

fn parse_int(text: &str) -> Option<i128> {
    let text = text.replace('_', "").to_ascii_lowercase();
    match text.get(..2) {
        Some("0x") => i128::from_str_radix(&text[2..], 16).ok(),
        Some("0o") => i128::from_str_radix(&text[2..], 8).ok(),
        Some("0b") => i128::from_str_radix(&text[2..], 2).ok(),
        _ => text.parse().ok(),
    }
}

/// `*x.shape` as Python reads it, a star before `x.shape`: in a list of expressions the parser takes it for the attribute
/// `shape` of `*x`.
fn with_star_outside(span: Span, mut kind: ExprKind) -> ExprKind {
    let subject = match &mut kind {
        ExprKind::Attribute { value, .. } | ExprKind::Subscript { value, .. } => value.as_mut(),
        ExprKind::Call(call) => &mut call.func,
        _ => return kind,
    };
    if !matches!(subject.kind, ExprKind::Starred(_)) {
        return kind;
    }
    let ExprKind::Starred(inner) = std::mem::replace(&mut subject.kind, ExprKind::None) else { return kind };
    let span = Span::new(inner.span.start, span.end);
    *subject = *inner;
    ExprKind::Starred(Box::new(Expr { span, kind }))
}
