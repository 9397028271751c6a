//! The context of the cursor together with the model of the file, also where the text does not parse.

use std::borrow::Cow;

use tree_sitter::Node;

use model::api::{Lookup, Member, MemberKind, TritonTarget};
use model::kernel::ast::{Expr, ExprKind};
use model::kernel::{ImportedFile, Kernel, Module};
use model::syntax::{Source, Span};

use super::cursor::{Bracket, Cursor, statement_end};

/// A position in a file, with a model that holds while the statement there is being typed.
#[derive(Debug)]
pub struct CursorContext<'a> {
    /// The source of the file.
    pub source: &'a Source,
    /// The context of the position in the text.
    pub cursor: Cursor,
    /// The Triton version.
    pub target: TritonTarget,
    module: Cow<'a, Module>,
}

/// The function that a call calls or launches.
#[derive(Clone, Copy, Debug)]
pub enum Callee<'a> {
    /// A member of one of Triton's modules.
    Member(&'static Member),
    /// A kernel of the file that another kernel calls.
    Kernel(&'a Kernel),
    /// A kernel of another file that a kernel of this file calls.
    Imported(&'a ImportedFile, &'a Kernel),
    /// A kernel that is launched; `None` when it is not a kernel of the file.
    Launch(Option<&'a Kernel>),
}

impl<'a> CursorContext<'a> {
    /// The place at byte `offset` of `source`. The text before `start` is ignored (another cell of a notebook).
    #[must_use]
    pub fn new(source: &'a Source, module: &'a Module, target: TritonTarget, start: usize, offset: usize) -> Self {
        let cursor = Cursor::at(source.text(), start, offset);
        let module = match without_statement(source, &cursor) {
            Some(mended) => Cow::Owned(Module::build(&mended).linked_as(module)),
            None => Cow::Borrowed(module),
        };
        Self { source, cursor, target, module }
    }

    /// The model of the file, without the statement at the place where that statement has errors.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The kernel whose body contains the place; the indentation decides where the statement is still empty.
    #[must_use]
    pub fn kernel(&self) -> Option<&Kernel> {
        let kernels = self.module.kernels.iter().rev();
        kernels.filter(|kernel| kernel.span.start <= self.cursor.offset).find(|kernel| self.is_in_body(kernel))
    }

    fn is_in_body(&self, kernel: &Kernel) -> bool {
        let (text, statement) = (self.source.text(), self.cursor.statement);
        let column = |offset: usize| offset - text[..offset].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let head_end = kernel.params.last().map_or(kernel.name_span.end, |param| param.span.end);
        let margin = column(kernel.def_span.start);
        if statement < head_end || column(statement) <= margin {
            return false;
        }
        let between = text.get(kernel.span.end.min(statement)..statement).unwrap_or("");
        between.lines().skip(1).all(|line| {
            let code = line.trim_start();
            code.is_empty() || code.starts_with('#') || line.len() - code.len() > margin
        })
    }

    /// The full path of the dotted expression `span` where it refers to a member of Triton, as seen from the place.
    #[must_use]
    pub fn resolve(&self, span: Span) -> Option<String> {
        let expr = dotted(self.source.slice(span), span)?;
        let resolved = match self.kernel() {
            Some(kernel) => self.module.resolve_in(kernel, &expr),
            None => self.module.imports.resolve(&expr),
        };
        resolved.map(|resolved| resolved.path)
    }

    /// The callee of `call`, where it is known.
    #[must_use]
    pub fn callee(&self, call: &Bracket) -> Option<Callee<'_>> {
        let span = call.callee?;
        let text = self.source.slice(span);
        if let Some(name) = text.strip_suffix(']').and_then(|text| text.split('[').next()).map(str::trim) {
            // A launch is a subscript of a plain name; subscripts of subscripts or calls launch something else.
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
            return is_name.then(|| Callee::Launch(self.module.kernel(name)));
        }
        if let Some(kernel) = self.visible_kernel(text) {
            return Some(Callee::Kernel(kernel));
        }
        if let Some((file, kernel)) = self.imported_kernel(span) {
            return Some(Callee::Imported(file, kernel));
        }
        match self.target.table.lookup(&self.resolve(span)?) {
            Lookup::Found(member) if is_callable(member) => Some(Callee::Member(member)),
            _ => None,
        }
    }

    fn imported_kernel(&self, span: Span) -> Option<(&ImportedFile, &Kernel)> {
        let expr = dotted(self.source.slice(span), span)?;
        let (file, name) = self.module.imported(self.kernel(), &expr)?;
        Some((file, file.kernel(name)?))
    }

    fn visible_kernel(&self, name: &str) -> Option<&Kernel> {
        let is_hidden = self.kernel().is_some_and(|kernel| kernel.locals.contains(name));
        self.module.kernel(name).filter(|_| !is_hidden)
    }
}

/// Whether the API table holds a signature of a member.
#[must_use]
pub fn is_callable(member: &Member) -> bool {
    match member.kind {
        MemberKind::Builtin | MemberKind::Jit | MemberKind::Function => true,
        // The parameters of a class that has none in the table are not known.
        MemberKind::Class => !member.params.is_empty(),
        MemberKind::Dtype | MemberKind::Module | MemberKind::Value => false,
    }
}

/// Parses `a.b.c` as an expression.
fn dotted(text: &str, span: Span) -> Option<Expr> {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    // A backslash continues a line.
    let mut parts = text.split('.').map(|part| part.trim_matches(|c: char| c == '\\' || c.is_whitespace()));
    let first = parts.next().filter(|part| is_name(part))?;
    let mut expr = Expr { span, kind: ExprKind::Name(first.to_owned()) };
    for part in parts {
        let name = is_name(part).then(|| part.to_owned())?;
        expr = Expr { span, kind: ExprKind::Attribute { value: Box::new(expr), name, name_span: span } };
    }
    Some(expr)
}

/// The source with the statement at the cursor replaced by a placeholder of the same length, where that statement
/// may cause errors.
fn without_statement(source: &Source, cursor: &Cursor) -> Option<Source> {
    let text = source.text();
    let line_end = text[cursor.offset..].find(['\n', '\r']).map_or(text.len(), |length| cursor.offset + length);
    // After a dot or an operator, the parser takes the next line as the operand, and finds no error.
    let is_cut_off = cursor.word.start == cursor.word.end && text[cursor.offset..line_end].trim().is_empty();
    if !is_cut_off && !source.has_error() {
        return None;
    }
    // A call may be closed on a later line, or not at all: then the parser takes further statements as its arguments.
    let long = blanked(text, Span::new(cursor.statement, statement_end(text, cursor).max(line_end)));
    let short = blanked(text, Span::new(cursor.statement, line_end));
    let short = Source::parse(short?);
    if !short.has_error() {
        return Some(short);
    }
    let long = Source::parse(long?);
    let best = if errors(&long) < errors(&short) { long } else { short };
    // A definition without its first line may have more errors than before: then the text stays as it is.
    (errors(&best) <= errors(source)).then_some(best)
}

/// The extent of a source's syntax errors: their bytes, plus one for each error.
fn errors(source: &Source) -> usize {
    source.roots().map(errors_in).sum()
}

fn errors_in(root: Node<'_>) -> usize {
    let mut cursor = root.walk();
    let mut sum = 0;
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            sum += node.byte_range().len() + 1;
        } else if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return sum;
            }
        }
    }
}

/// `text` with the statement in `span` replaced by a harmless one of the same length.
fn blanked(text: &str, span: Span) -> Option<String> {
    let statement = text.get(span.start..span.end)?;
    let first = statement.split_whitespace().next()?;
    let opens_block = matches!(first, "if" | "elif" | "else" | "for" | "while" | "with" | "else:");
    let code = statement.split('#').next().unwrap_or("").trim_end();
    let stand_in = if opens_block && code.ends_with(':') { "if 0:" } else { "0" };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..span.start]);
    out.push_str(stand_in);
    let rest = statement.bytes().skip(stand_in.len());
    out.extend(rest.map(|byte| if byte == b'\n' || byte == b'\r' { char::from(byte) } else { ' ' }));
    out.push_str(&text[span.end..]);
    (out.len() == text.len()).then_some(out)
}
