//! The statements and expressions of kernels and host code, owned and with byte spans.
//!
//! A lowering of the concrete tree to what rules and the analysis need: parentheses and comments are gone, everything
//! the model does not know is [`ExprKind::Other`] or [`StmtKind::Other`], which means "unknown", never "absent".

use crate::syntax::Span;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Where it stands (without surrounding parentheses).
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(String),
    /// An integer literal that fits.
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
        /// Where the name stands.
        name_span: Span,
    },
    /// A call.
    Call(Box<Call>),
    /// `value[index]`; several indices stand for a tuple index.
    Subscript {
        /// What is indexed.
        value: Box<Expr>,
        /// The indices, in order.
        index: Vec<Expr>,
    },
    /// `lower:upper:step` inside a subscript.
    Slice(Vec<Expr>),
    /// `left op right`; `op` is Python's text (`+`, `//`, …).
    Binary {
        /// The operator.
        op: String,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `-x`, `+x`, `~x`, `not x`.
    Unary {
        /// The operator.
        op: String,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `left op a op b …`
    Compare {
        /// The first operand.
        left: Box<Expr>,
        /// Operators with the operand on their right.
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
        /// What each item is.
        element: Box<Expr>,
        /// Targets with what they run over, outermost first.
        clauses: Vec<(Expr, Expr)>,
        /// Whether conditions leave items out.
        filtered: bool,
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
    /// Anything else; the text is the grammar's node kind.
    Other(String),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is called.
    pub func: Expr,
    /// The arguments, in order.
    pub args: Vec<Arg>,
    /// The argument list with its parentheses.
    pub args_span: Span,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Keyword and where it stands, if any.
    pub keyword: Option<(String, Span)>,
    /// The value; [`ExprKind::Starred`] for `*a` and `**a`.
    pub value: Expr,
    /// The whole argument.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: StmtKind,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `a = b = value` or `a: T = value`
    Assign {
        /// The targets, left to right.
        targets: Vec<Expr>,
        /// The annotation, if any.
        annotation: Option<Expr>,
        /// The value; absent in a bare annotation.
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
    /// An expression for its effect.
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
        /// What is iterated.
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
    /// An import.
    Import,
    /// A nested function or class, by name.
    Definition(String),
    /// `with`, `try`, `match` and the like: their bodies in order, none of which may be assumed to run.
    Block(Vec<Vec<Stmt>>),
    /// Anything else; the text is the grammar's node kind.
    Other(String),
}

impl Expr {
    /// The name, when this is one.
    #[must_use]
    pub fn as_name(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The integer, when this is a literal (or a negated one).
    #[must_use]
    pub fn as_int(&self) -> Option<i128> {
        match &self.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Unary { op, operand } if op == "-" => operand.as_int().map(|value| -value),
            _ => None,
        }
    }

    /// The call, when this is one.
    #[must_use]
    pub fn as_call(&self) -> Option<&Call> {
        match &self.kind {
            ExprKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// `a.b.c` as its parts; `None` when it does not start at a name.
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

    /// The name that a dotted name begins with.
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

    /// Whether the name stands anywhere in it.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let mut found = false;
        self.walk(&mut |expr| found |= expr.as_name() == Some(name));
        found
    }

    /// Calls `visit` on this expression and everything inside it, outermost first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        self.each_child(&mut |child| child.walk(visit));
    }
}

/// The value passed for a parameter: by keyword, else by position when no `*args` comes before.
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

/// Whether arguments hold `*args` or `**kwargs`, so that not all are known.
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
            | StmtKind::Definition(_)
            | StmtKind::Block(_)
            | StmtKind::Other(_) => Vec::new(),
        }
    }

    /// What this statement gives a value: names, and what holds names.
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
