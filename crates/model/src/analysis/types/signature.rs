//! Signature comments, which give types and values of a kernel's parameters: `# warpsmith: signature x=*fp16 n=i32
//! BLOCK=1024` above the kernel, or `# warpsmith: signature KERNEL: x=*fp16 …` anywhere in the file.
//!
//! Run-time parameters have a type: `*fp16` (a pointer), `i32`, `fp32`, `tensordesc<fp16[64,64]>`. An integer may also
//! have a value: `i32=65536`. Compile-time parameters have a value: a number, `True`, `None`, a string, `tl.float16`,
//! or a list or dict, which stays unknown.

use super::constant_folding;
use super::dtype::Dtype;
use super::shape::Dim;
use super::value::{AbstractValue, Const, LaneType, RuntimeValue};
use crate::kernel::ast::{Expr, ExprKind};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

const MARK: &str = "warpsmith: signature";

/// The parameters in a signature comment, each with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct SignatureComment {
    params: Vec<(String, String)>,
    /// Span of the comment.
    pub span: Span,
}

/// Whether the file may contain a signature comment. A quick check of the text.
#[must_use]
pub fn may_be_in(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_some()
}

/// The signature of `kernel` from a comment, if there is one.
#[must_use]
pub fn of(module: &Module, kernel: &Kernel, text: &str) -> Option<SignatureComment> {
    if module.kernels.is_empty() || !text.contains(MARK) {
        return None;
    }
    let mut above = None;
    let mut named = None;
    for (at, _) in text.match_indices(MARK) {
        let start = text[..at].rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
        let line = text[start..].split(['\n', '\r']).next().unwrap_or("");
        if !text[start..at].trim_start().starts_with('#') {
            continue;
        }
        let rest = &text[at + MARK.len()..start + line.len()];
        let span = Span::new(start + line.len() - line.trim_start().len(), start + line.trim_end().len());
        let (name, params) = match rest.split_once(':') {
            Some((name, params)) if is_identifier(name.trim()) => (Some(name.trim()), params),
            _ => (None, rest),
        };
        let found = SignatureComment { params: parse(params), span };
        match name {
            Some(name) if name == kernel.name => named = Some(found),
            None if stands_above(text, start + line.len(), kernel) => above = Some(found),
            _ => {}
        }
    }
    above.or(named)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether only comments, blank lines and decorators are between a comment and the kernel.
fn stands_above(text: &str, end: usize, kernel: &Kernel) -> bool {
    let Some(between) = text.get(end..kernel.span.start.max(end)) else { return false };
    let inside_head = end > kernel.span.start && end < kernel.def_span.start;
    (end <= kernel.span.start
        && between.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')))
        || inside_head
}

/// Splits `name=value` pairs, which are separated by blanks or commas outside brackets and quotes.
fn parse(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let (mut depth, mut quote, mut start) = (0_i32, None, 0);
    let mut pieces = Vec::new();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(' | '{' | '<') => depth += 1,
            (None, ']' | ')' | '}' | '>') => depth -= 1,
            (None, ' ' | '\t' | ',') if depth <= 0 => {
                pieces.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    for piece in pieces {
        if let Some((name, value)) = piece.split_once('=')
            && is_identifier(name)
            && !value.is_empty()
        {
            pairs.push((name.to_owned(), value.to_owned()));
        }
    }
    pairs
}

impl SignatureComment {
    /// A signature with these parameters, each with the text that a comment would have for it.
    #[must_use]
    pub fn new(params: Vec<(String, String)>, span: Span) -> Self {
        Self { params, span }
    }

    /// The integer that the comment gives a run-time or compile-time parameter.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i128> {
        let (_, text) = self.params.iter().find(|(known, _)| known == name)?;
        let text = valued(text).map_or(text.as_str(), |(_, number)| number);
        text.replace('_', "").parse().ok()
    }

    /// The text that the comment has for a parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// The value of a parameter; `None` when the comment does not give one.
    #[must_use]
    pub fn value<'a>(&self, name: &str) -> Option<AbstractValue<'a>> {
        let (_, text) = self.params.iter().find(|(known, _)| known == name)?;
        Some(value(text))
    }
}

/// The type and the value of `i32=65536`.
fn valued(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(number, _)| Dtype::of_signature(number).is_some())
}

fn value<'a>(text: &str) -> AbstractValue<'a> {
    let text = valued(text).map_or(text, |(number, _)| number);
    // `*fp16:16` means a pointer that is a multiple of 16, which does not matter for types.
    let plain = match text.split_once(':') {
        Some((plain, rest)) if !text.starts_with(['{', '\'', '"', '[']) && rest.parse::<u32>().is_ok() => plain,
        _ => text,
    };
    if let Some(pointee) = plain.strip_prefix('*') {
        let pointee = pointee.strip_prefix('k').unwrap_or(pointee);
        return AbstractValue::Tile(RuntimeValue::new(
            LaneType::Pointer(Dtype::of_signature(pointee)),
            Some([].into()),
        ));
    }
    if let Some(inner) = plain.strip_prefix("tensordesc<").and_then(|rest| rest.strip_suffix('>')) {
        return descriptor(inner).unwrap_or(AbstractValue::Unknown);
    }
    if let Some(number) = Dtype::of_signature(plain) {
        return AbstractValue::scalar(number);
    }
    AbstractValue::Const(constant(text))
}

/// `fp16[64,64]`
fn descriptor<'a>(text: &str) -> Option<AbstractValue<'a>> {
    let (number, sizes) = text.strip_suffix(']')?.split_once('[')?;
    let sizes: Option<Vec<Dim>> = sizes.split(',').map(|size| size.trim().parse().ok().map(Dim::Known)).collect();
    Some(AbstractValue::Descriptor(RuntimeValue::new(
        LaneType::Number(Dtype::of_signature(number)?),
        Some(sizes?.into()),
    )))
}

fn constant(text: &str) -> Const {
    let quoted = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    if let Some(content) = quoted('"').or_else(|| quoted('\'')) {
        return Const::Str(content.into());
    }
    if let Ok(value) = text.replace('_', "").parse::<i128>() {
        return Const::Int(value);
    }
    if let Ok(value) = text.parse::<f64>() {
        return Const::Float(value);
    }
    match text {
        // Also the spellings of JSON, because scripts write signatures.
        "True" | "true" => return Const::Bool(true),
        "False" | "false" => return Const::Bool(false),
        "None" | "null" => return Const::None,
        _ => {}
    }
    let of_module = ["tl.", "triton.language.", "__tl."].into_iter().find_map(|prefix| text.strip_prefix(prefix));
    match of_module.and_then(Dtype::of_member) {
        Some(number) => Const::Type(LaneType::Number(number)),
        None if text.starts_with(['[', '(', '{']) => Const::Object,
        None => Const::Unknown,
    }
}

/// The value of a default that is a literal.
#[must_use]
pub fn literal(default: &Expr) -> Option<Const> {
    match &default.kind {
        ExprKind::Unary { op, operand } => constant_folding::unary(op, &literal(operand)?),
        _ => constant_folding::literal(default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Source;

    fn shown(text: &str, name: &str) -> Option<String> {
        let source = Source::parse(text);
        let module = Module::build(&source);
        of(&module, &module.kernels[0], text)?.value(name).map(|value| value.to_string())
    }

    const HEAD: &str = "import triton\nimport triton.language as tl\n";

    #[test]
    fn signature_comments_accept_all_kinds_of_values() {
        let text = format!(
            "{HEAD}# warpsmith: signature x=*fp16:16 n=i32, EPS=1e-5 ACT=\"re lu\" T=[1, 2] M={{'a': 1}} F=True G=false P=None \
             DT=tl.bfloat16 d=tensordesc<fp16[64, 32]> B=1_024 k=*kfp32 m=i32=65_536\n\n@triton.jit\ndef k(x): pass\n"
        );
        for (name, expected) in [
            ("x", "*fp16"),
            ("n", "int32"),
            ("EPS", "0.00001"),
            ("ACT", "'re lu'"),
            ("T", "?"),
            ("M", "?"),
            ("F", "True"),
            ("G", "False"),
            ("P", "None"),
            ("DT", "bf16"),
            ("d", "descriptor of fp16[64, 32]"),
            ("B", "1024"),
            ("k", "*fp32"),
            ("m", "int32"),
        ] {
            assert_eq!(shown(&text, name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(shown(&text, "other"), None);
    }

    #[test]
    fn a_comment_belongs_to_the_kernel_below_or_to_the_one_it_names() {
        let kernel = "@triton.jit\ndef k(x): pass\n";
        let at = |before: &str, after: &str| shown(&format!("{HEAD}{before}{kernel}{after}"), "x");
        assert_eq!(at("# warpsmith: signature x=i8\n# more\n", "").as_deref(), Some("int8"));
        assert_eq!(at("# warpsmith: signature x=i8\ny = 1\n", ""), None);
        assert_eq!(at("", "# warpsmith: signature x=i8\n"), None);
        assert_eq!(at("", "# warpsmith: signature k: x=i8\n").as_deref(), Some("int8"));
        assert_eq!(at("", "x\r# warpsmith: signature k: x=i8").as_deref(), Some("int8"));
        assert_eq!(at("", "# warpsmith: signature other: x=i8\n"), None);
        assert_eq!(at("y = 'warpsmith: signature x=i8'\n", ""), None);
    }
}
