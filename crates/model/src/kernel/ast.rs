//! A small syntax tree of kernels and host code: statements and expressions that own their data and have byte spans.
//!
//! It keeps what rules and analyses need. Parentheses and comments are dropped, and syntax that the model does not know
//! becomes [`ExprKind::Other`] or [`StmtKind::Other`], which means "unknown", never "absent".

use crate::syntax::Span;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Span of the expression, without surrounding parentheses.
    pub span: Span,
    /// The form of the expression with its parts.
    pub kind: ExprKind,
}

/// The forms of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(String),
    /// An integer literal that fits in an `i128`.
    Int(i128),
    /// A float literal.
    Float(f64),
    /// A string literal without interpolation (its content, escapes not decoded).
    Str(String),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// `value.name`
    Attribute {
        /// Left of the dot.
        value: Box<Expr>,
        /// Right of the dot.
        name: String,
        /// Span of the name.
        name_span: Span,
    },
    /// A call.
    Call(Box<Call>),
    /// `value[index]`; several indices mean an index with a tuple.
    Subscript {
        /// The expression that is indexed.
        value: Box<Expr>,
        /// The indices, in order.
        index: Vec<Expr>,
    },
    /// `lower:upper:step` inside a subscript, with the parts that are written.
    Slice(Vec<Expr>),
    /// `left op right`; `op` is Python's text (`+`, `//`, …).
    Binary {
        /// The operator, as in Python.
        op: String,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `-x`, `+x`, `~x`, `not x`.
    Unary {
        /// The operator, as in Python.
        op: String,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `left op a op b …`
    Compare {
        /// The first operand.
        left: Box<Expr>,
        /// Each further operator with the operand on its right.
        rest: Vec<(String, Expr)>,
    },
    /// `a and b`, `a or b`.
    BoolOp {
        /// `and` or `or`.
        op: String,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `body if test else orelse`
    IfExp {
        /// The condition.
        test: Box<Expr>,
        /// The value when it holds.
        body: Box<Expr>,
        /// The value when it does not.
        orelse: Box<Expr>,
    },
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{k: v}`; entries with `**` are left out and make `open` true.
    Dict {
        /// Keys and values.
        items: Vec<(Expr, Expr)>,
        /// Whether there may be further entries.
        open: bool,
    },
    /// `lambda params: body`
    Lambda {
        /// Parameter names.
        params: Vec<String>,
        /// The body.
        body: Box<Expr>,
    },
    /// A string with interpolated expressions.
    FString(Vec<Expr>),
    /// `[element for target in iter if condition …]`
    Comprehension {
        /// The expression of one item.
        element: Box<Expr>,
        /// Targets with their iterables, outermost first.
        clauses: Vec<(Expr, Expr)>,
        /// Whether conditions filter the items.
        filtered: bool,
        /// Whether it is a generator: `(x for x in y)`.
        is_generator: bool,
    },
    /// `*x` or `**x`
    Starred(Box<Expr>),
    /// `name := value`
    Named {
        /// The name bound.
        name: String,
        /// The value.
        value: Box<Expr>,
    },
    /// Any other expression; the text is the node kind of the grammar.
    Other(String),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The expression that is called.
    pub func: Expr,
    /// The arguments, in order.
    pub args: Vec<Arg>,
    /// The argument list with its parentheses.
    pub args_span: Span,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Keyword and its span; `None` for a positional argument.
    pub keyword: Option<(String, Span)>,
    /// The value; [`ExprKind::Starred`] for `*a` and `**a`.
    pub value: Expr,
    /// The whole argument.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Span of the statement.
    pub span: Span,
    /// The form of the statement with its parts.
    pub kind: StmtKind,
}

/// The forms of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `a = b = value` or `a: T = value`
    Assign {
        /// The targets, left to right.
        targets: Vec<Expr>,
        /// The annotation, if any.
        annotation: Option<Expr>,
        /// The value; `None` for an annotation without a value.
        value: Option<Expr>,
    },
    /// `target op= value`; `op` without the `=`.
    AugAssign {
        /// The target.
        target: Expr,
        /// The operator, without the `=`.
        op: String,
        /// The value.
        value: Expr,
    },
    /// An expression that is evaluated for its effect.
    Expr(Expr),
    /// `if`/`elif` branches and `else`.
    If {
        /// Conditions with their bodies.
        branches: Vec<(Expr, Vec<Stmt>)>,
        /// The `else` body.
        orelse: Vec<Stmt>,
    },
    /// `for target in iter`
    For {
        /// The loop variable.
        target: Expr,
        /// The iterable.
        iter: Expr,
        /// The body.
        body: Vec<Stmt>,
        /// The `else` body.
        orelse: Vec<Stmt>,
    },
    /// `while test`
    While {
        /// The condition.
        test: Expr,
        /// The body.
        body: Vec<Stmt>,
        /// The `else` body.
        orelse: Vec<Stmt>,
    },
    /// `return value`
    Return(Option<Expr>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `pass`
    Pass,
    /// `assert test, message`
    Assert(Vec<Expr>),
    /// `raise`
    Raise,
    /// An import statement.
    Import,
    /// A nested function or class.
    Definition {
        /// Its name.
        name: String,
        /// For a function that only returns something, the same as a [`ExprKind::Lambda`].
        lambda: Option<Expr>,
    },
    /// `with`, `try`, `match` and similar statements: their bodies in order. None of them can be assumed to run.
    Block(Vec<Vec<Stmt>>),
    /// Any other statement; the text is the node kind of the grammar.
    Other(String),
}

impl Expr {
    /// The name, when the expression is one.
    #[must_use]
    pub fn as_name(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The integer, when the expression is an integer literal or a negated one.
    #[must_use]
    pub fn as_int(&self) -> Option<i128> {
        match &self.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Unary { op, operand } if op == "-" => operand.as_int().map(|value| -value),
            _ => None,
        }
    }

    /// The call, when the expression is one.
    #[must_use]
    pub fn as_call(&self) -> Option<&Call> {
        match &self.kind {
            ExprKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The parts of `a.b.c`; `None` when the expression is not a dotted name.
    #[must_use]
    pub fn dotted(&self) -> Option<Vec<&str>> {
        match &self.kind {
            ExprKind::Name(name) => Some(vec![name]),
            ExprKind::Attribute { value, name, .. } => {
                let mut parts = value.dotted()?;
                parts.push(name);
                Some(parts)
            }
            _ => None,
        }
    }

    /// The first name of a dotted name.
    #[must_use]
    pub fn first_name(&self) -> Option<&str> {
        let mut at = self;
        loop {
            match &at.kind {
                ExprKind::Name(name) => return Some(name),
                ExprKind::Attribute { value, .. } => at = value,
                _ => return None,
            }
        }
    }

    /// The direct subexpressions, in source order.
    #[must_use]
    pub fn children(&self) -> Vec<&Expr> {
        let mut children = Vec::new();
        self.each_child(&mut |child| children.push(child));
        children
    }

    /// Calls `visit` on the direct subexpressions, in source order.
    pub fn each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match &self.kind {
            ExprKind::Attribute { value, .. } | ExprKind::Starred(value) | ExprKind::Named { value, .. } => {
                visit(value)
            }
            ExprKind::Call(call) => {
                visit(&call.func);
                call.args.iter().for_each(|arg| visit(&arg.value));
            }
            ExprKind::Subscript { value, index } => {
                visit(value);
                index.iter().for_each(visit);
            }
            ExprKind::Slice(parts) | ExprKind::Tuple(parts) | ExprKind::List(parts) | ExprKind::FString(parts) => {
                parts.iter().for_each(visit);
            }
            ExprKind::Binary { left, right, .. } | ExprKind::BoolOp { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::Unary { operand, .. } => visit(operand),
            ExprKind::Compare { left, rest } => {
                visit(left);
                rest.iter().for_each(|(_, right)| visit(right));
            }
            ExprKind::IfExp { test, body, orelse } => {
                visit(body);
                visit(test);
                visit(orelse);
            }
            ExprKind::Dict { items, .. } => items.iter().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
            ExprKind::Lambda { body, .. } => visit(body),
            ExprKind::Comprehension { element, clauses, .. } => {
                visit(element);
                clauses.iter().for_each(|(target, iter)| {
                    visit(target);
                    visit(iter);
                });
            }
            ExprKind::Name(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Other(_) => {}
        }
    }

    /// Whether the name occurs in the expression.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let mut found = false;
        self.walk(&mut |expr| found |= expr.as_name() == Some(name));
        found
    }

    /// Calls `visit` on this expression and all expressions inside it, outermost first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        self.each_child(&mut |child| child.walk(visit));
    }
}

/// The value passed for a parameter: by keyword, else by position when no `*args` precedes it.
#[must_use]
pub fn argument<'a>(args: &'a [Arg], name: &str, position: Option<usize>) -> Option<&'a Expr> {
    let by_name = args.iter().find(|arg| arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name));
    if let Some(arg) = by_name {
        return Some(&arg.value);
    }
    let before = args.get(..=position?)?;
    let plain = |arg: &Arg| arg.keyword.is_none() && !matches!(arg.value.kind, ExprKind::Starred(_));
    before.iter().all(plain).then_some(&before.last()?.value)
}

impl Call {
    /// The value passed for a parameter; see [`argument`].
    #[must_use]
    pub fn argument(&self, name: &str, position: Option<usize>) -> Option<&Expr> {
        argument(&self.args, name, position)
    }

    /// Whether the call has `*args` or `**kwargs`, so that its arguments are not all known.
    #[must_use]
    pub fn has_star(&self) -> bool {
        has_star(&self.args)
    }
}

/// Whether `args` contain `*args` or `**kwargs`, so that not all arguments are known.
#[must_use]
pub fn has_star(args: &[Arg]) -> bool {
    args.iter().any(|arg| matches!(arg.value.kind, ExprKind::Starred(_)))
}

impl Stmt {
    /// The expressions directly in this statement (not those of nested statements).
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match &self.kind {
            StmtKind::Assign { targets, annotation, value } => targets.iter().chain(annotation).chain(value).collect(),
            StmtKind::AugAssign { target, value, .. } => vec![target, value],
            StmtKind::Expr(expr) => vec![expr],
            StmtKind::If { branches, .. } => branches.iter().map(|(test, _)| test).collect(),
            StmtKind::For { target, iter, .. } => vec![target, iter],
            StmtKind::While { test, .. } => vec![test],
            StmtKind::Return(value) => value.iter().collect(),
            StmtKind::Assert(parts) => parts.iter().collect(),
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass
            | StmtKind::Raise
            | StmtKind::Import
            | StmtKind::Definition { .. }
            | StmtKind::Block(_)
            | StmtKind::Other(_) => Vec::new(),
        }
    }

    /// The targets that this statement assigns to: names, and tuples, subscripts or attributes.
    #[must_use]
    pub fn targets(&self) -> &[Expr] {
        match &self.kind {
            StmtKind::Assign { targets, .. } => targets,
            StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => std::slice::from_ref(target),
            _ => &[],
        }
    }

    /// The statement lists directly inside this statement.
    #[must_use]
    pub fn bodies(&self) -> Vec<&[Stmt]> {
        match &self.kind {
            StmtKind::If { branches, orelse } => {
                branches.iter().map(|(_, body)| body.as_slice()).chain([orelse.as_slice()]).collect()
            }
            StmtKind::For { body, orelse, .. } | StmtKind::While { body, orelse, .. } => vec![body, orelse],
            StmtKind::Block(bodies) => bodies.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        }
    }
}

/// Calls `visit` on each statement of `body` and everything nested, in source order.
pub fn walk_statements<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        visit(stmt);
        for inner in stmt.bodies() {
            walk_statements(inner, visit);
        }
    }
}

/// Calls `visit` on each expression in `body`, nested statements included.
pub fn walk_expressions<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Expr)) {
    walk_statements(body, &mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(visit);
        }
    });
}
