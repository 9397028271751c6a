//! The cursor together with the model of the file, also where the text does not parse.

use std::borrow::Cow;

use tree_sitter::Node;

use model::api::{Lookup, Member, MemberKind, Target};
use model::kernel::ast::{Expr, ExprKind};
use model::kernel::{File, Kernel, Module};
use model::syntax::{Source, Span};

use super::cursor::{Bracket, Cursor, statement_end};

/// A place in a file, and what is known about the file while the statement there is being typed.
#[derive(Debug)]
pub struct Place<'a> {
    /// The text.
    pub source: &'a Source,
    /// What stands around the place.
    pub cursor: Cursor,
    /// The Triton version.
    pub target: Target,
    module: Cow<'a, Module>,
}

/// What is called at a place.
#[derive(Clone, Copy, Debug)]
pub enum Callee<'a> {
    /// A member of one of Triton's modules.
    Member(&'static Member),
    /// A kernel of the file, called by another.
    Kernel(&'a Kernel),
    /// A kernel of another file, called by one of this.
    Imported(&'a File, &'a Kernel),
    /// A kernel that is launched; absent when it is not one of the file's.
    Launch(Option<&'a Kernel>),
}

impl<'a> Place<'a> {
    /// The place at byte `offset` of `source`; what comes before `start` does not matter to it (another cell of a notebook).
    #[must_use]
    pub fn new(source: &'a Source, module: &'a Module, target: Target, start: usize, offset: usize) -> Self {
        let cursor = Cursor::at(source.text(), start, offset);
        let module = match without_statement(source, &cursor) {
            Some(mended) => Cow::Owned(Module::build(&mended).linked_as(module)),
            None => Cow::Borrowed(module),
        };
        Self { source, cursor, target, module }
    }

    /// The model: without the statement at the place when that is an error.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The kernel in whose body the place is, to judge by the indentation when nothing else is there yet.
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

    /// The full name of the dotted expression `span` when it is Triton's, as seen from the place.
    #[must_use]
    pub fn resolve(&self, span: Span) -> Option<String> {
        let expr = dotted(self.source.slice(span), span)?;
        let resolved = match self.kernel() {
            Some(kernel) => self.module.resolve_in(kernel, &expr),
            None => self.module.imports.resolve(&expr),
        };
        resolved.map(|resolved| resolved.path)
    }

    /// What `call` calls, when it is known.
    #[must_use]
    pub fn callee(&self, call: &Bracket) -> Option<Callee<'_>> {
        let span = call.callee?;
        let text = self.source.slice(span);
        if let Some(name) = text.strip_suffix(']').and_then(|text| text.split('[').next()).map(str::trim) {
            // A launch names what it launches; an index of an index or a call launches something else.
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

    fn imported_kernel(&self, span: Span) -> Option<(&File, &Kernel)> {
        let expr = dotted(self.source.slice(span), span)?;
        let (file, name) = self.module.imported(self.kernel(), &expr)?;
        Some((file, file.kernel(name)?))
    }

    fn visible_kernel(&self, name: &str) -> Option<&Kernel> {
        let is_hidden = self.kernel().is_some_and(|kernel| kernel.locals.contains(name));
        self.module.kernel(name).filter(|_| !is_hidden)
    }
}

/// Whether a member has a signature that the table knows.
#[must_use]
pub fn is_callable(member: &Member) -> bool {
    match member.kind {
        MemberKind::Builtin | MemberKind::Jit | MemberKind::Function => true,
        // A class without parameters in the table has ones that are not known.
        MemberKind::Class => !member.params.is_empty(),
        MemberKind::Dtype | MemberKind::Module | MemberKind::Value => false,
    }
}

/// `a.b.c` as an expression.
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

/// The text with the statement at the cursor blank, when it has errors that may come from there. Nothing else moves.
fn without_statement(source: &Source, cursor: &Cursor) -> Option<Source> {
    let text = source.text();
    let line_end = text[cursor.offset..].find(['\n', '\r']).map_or(text.len(), |length| cursor.offset + length);
    // Behind a dot or an operator the parser takes the next line for what is missing, and finds no error.
    let is_cut_off = cursor.word.start == cursor.word.end && text[cursor.offset..line_end].trim().is_empty();
    if !is_cut_off && !source.has_error() {
        return None;
    }
    // A call may be closed on a later line. Or it is not closed at all, and takes other statements for arguments.
    let long = blanked(text, Span::new(cursor.statement, statement_end(text, cursor).max(line_end)));
    let short = blanked(text, Span::new(cursor.statement, line_end));
    let short = Source::parse(short?);
    if !short.has_error() {
        return Some(short);
    }
    let long = Source::parse(long?);
    let best = if errors(&long) < errors(&short) { long } else { short };
    // Without its head a definition is no better.
    (errors(&best) <= errors(source)).then_some(best)
}

/// How much of a text the parser did not understand.
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

/// `text` with something harmless of the same length for the statement in `span`.
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
