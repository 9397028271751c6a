//! The flat range of consecutive elements that a program processes.

use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};

use crate::subject::Subject;
use crate::written::bindings;

/// `pid * BLOCK + tl.arange(0, BLOCK)`
pub(super) struct LinearOffsets<'a> {
    /// The name of the element indices, and the statement that binds it.
    pub(super) offsets: &'a str,
    pub(super) stmt: &'a Stmt,
    /// The parameter for the number of elements per program.
    pub(super) size: &'a str,
    /// The kernel's expression for the program index.
    pub(super) program: String,
    /// Statements that name the program index, which stay, and those that name other parts of the offsets.
    pub(super) named: Vec<&'a Stmt>,
    pub(super) dropped: Vec<&'a Stmt>,
}

impl<'a> LinearOffsets<'a> {
    /// Finds the offsets; `None` where a kernel has several or none.
    pub(super) fn of(subject: &'a Subject<'a>) -> Option<Self> {
        let mut found = subject.kernel.body.iter().filter_map(|stmt| Self::at(subject, stmt));
        found.next().filter(|_| found.next().is_none())
    }

    fn at(subject: &'a Subject<'a>, stmt: &'a Stmt) -> Option<Self> {
        let (offsets, value) = bound(stmt)?;
        only_binding(subject.kernel, offsets)?;
        let mut reader = Reader { subject, named: Vec::new(), dropped: Vec::new(), is_wide: false };
        let [one, other] = reader.sides(value, "+")?;
        let (start, size) = match reader.range(one) {
            Some(size) => (other, size),
            None => (one, reader.range(other)?),
        };
        let program = match reader.sides(start, "*")? {
            [program, by] | [by, program] if by.as_name() == Some(size) => reader.program(program)?,
            _ => return None,
        };
        let program = match reader.is_wide {
            true => format!("{program}.to({})", subject.candidate.module.language_name(subject.kernel, "int64")?),
            false => program,
        };
        let Reader { named, dropped, .. } = reader;
        Some(Self { offsets, stmt, size, program, named, dropped })
    }
}

/// The name and the value of an assignment to a single name.
fn bound(stmt: &Stmt) -> Option<(&str, &Expr)> {
    let StmtKind::Assign { targets, annotation: None, value: Some(value) } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    Some((target.as_name()?, value))
}

/// The only assignment of a name, at the top level of the kernel.
fn only_binding<'a>(kernel: &'a Kernel, name: &str) -> Option<&'a Stmt> {
    let found = bindings(&kernel.body, name);
    let [only] = found.as_slice() else { return None };
    let is_outer = kernel.body.iter().any(|stmt| std::ptr::eq(stmt, *only));
    (is_outer && kernel.param(name).is_none()).then_some(*only)
}

struct Reader<'a> {
    subject: &'a Subject<'a>,
    named: Vec<&'a Stmt>,
    dropped: Vec<&'a Stmt>,
    /// Whether a value on the way was converted to 64 bits.
    is_wide: bool,
}

impl<'a> Reader<'a> {
    /// The value of a local name, and its assignment.
    fn followed(&self, expr: &Expr) -> Option<(&'a Stmt, &'a Expr)> {
        let stmt = only_binding(self.subject.kernel, expr.as_name()?)?;
        let (_, value) = bound(stmt).filter(|_| stmt.span.end <= expr.span.start)?;
        Some((stmt, value))
    }

    /// The expression after names and casts to 64 bits are followed; their assignments are then not needed.
    fn opened(&mut self, expr: &'a Expr) -> &'a Expr {
        let mut expr = expr;
        loop {
            if let Some((stmt, value)) = self.followed(expr) {
                self.dropped.push(stmt);
                expr = value;
            } else if let Some(inner) = self.widened(expr) {
                self.is_wide = true;
                expr = inner;
            } else {
                return expr;
            }
        }
    }

    fn sides(&mut self, expr: &'a Expr, operator: &str) -> Option<[&'a Expr; 2]> {
        match &self.opened(expr).kind {
            ExprKind::Binary { op, left, right } if op == operator => Some([left, right]),
            _ => None,
        }
    }

    /// The size of `tl.arange(0, BLOCK)`.
    fn range(&mut self, expr: &'a Expr) -> Option<&'a str> {
        let (before, was_wide) = (self.dropped.len(), self.is_wide);
        let size = self.size_of_range(expr);
        if size.is_none() {
            self.dropped.truncate(before);
            self.is_wide = was_wide;
        }
        size
    }

    fn size_of_range(&mut self, expr: &'a Expr) -> Option<&'a str> {
        let expr = self.opened(expr);
        let [start, end] = self.called("arange", expr)?;
        let size = end.as_name().filter(|_| start.as_int() == Some(0))?;
        self.subject.kernel.param(size).filter(|param| param.constexpr).map(|_| size)
    }

    /// The kernel's expression for the program index.
    fn program(&mut self, expr: &'a Expr) -> Option<String> {
        if let Some((stmt, value)) = self.followed(expr) {
            self.program(value)?;
            self.named.push(stmt);
        } else if let Some(inner) = self.widened(expr) {
            self.program(inner)?;
        } else {
            let call = expr.as_call().filter(|call| self.member(&call.func).as_deref() == Some("program_id"))?;
            call.argument("axis", Some(0)).filter(|axis| axis.as_int() == Some(0))?;
        }
        self.subject.candidate.text.get(expr.span.start..expr.span.end).map(str::to_owned)
    }

    /// The operand of `x.to(tl.int64)` and `tl.cast(x, tl.int64)`.
    fn widened(&self, expr: &'a Expr) -> Option<&'a Expr> {
        let call = expr.as_call().filter(|call| call.args.iter().all(|arg| arg.keyword.is_none()))?;
        let (value, to) = match (&call.func.kind, call.args.as_slice()) {
            (_, [value, to]) if self.member(&call.func).as_deref() == Some("cast") => (&value.value, &to.value),
            (ExprKind::Attribute { value, name, .. }, [to]) if name == "to" => (value.as_ref(), &to.value),
            _ => return None,
        };
        (self.member(to).as_deref() == Some("int64")).then_some(value)
    }

    fn called(&self, name: &str, expr: &'a Expr) -> Option<[&'a Expr; 2]> {
        let call = expr.as_call().filter(|call| self.member(&call.func).as_deref() == Some(name))?;
        match call.args.as_slice() {
            [one, other] if one.keyword.is_none() && other.keyword.is_none() => Some([&one.value, &other.value]),
            _ => None,
        }
    }

    fn member(&self, expr: &Expr) -> Option<String> {
        self.subject.candidate.module.language_member(self.subject.kernel, expr)
    }
}
