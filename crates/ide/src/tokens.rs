//! Semantic tokens: the kind of each name in a kernel, for syntax highlighting.

use std::collections::HashSet;

use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::{Source, Span, field, node_span};

use super::classify::{NameClass, NameClasses};
use super::complete::constexpr_globals;
use super::names::{binds, identifiers};

/// A semantic token: a name and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The span of the name.
    pub span: Span,
    /// The kind of the name.
    pub kind: TokenKind,
    /// The class of the name's value at this occurrence.
    pub class: NameClass,
    /// Whether the name is bound here.
    pub is_binding: bool,
}

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A parameter of the kernel.
    Parameter,
    /// A variable of the kernel, or a global constexpr.
    Variable,
    /// A kernel, or a function that kernels call.
    Function,
}

/// The tokens in the span `within`, in the order of the text: names in kernels about which something is known, and the
/// names of kernels.
#[must_use]
pub fn tokens(source: &Source, module: &Module, target: TritonTarget, within: Span) -> Vec<Token> {
    let constants: HashSet<&str> = constexpr_globals(module).collect();
    let mut tokens = Vec::new();
    for (index, kernel) in module.kernels.iter().enumerate().filter(|(_, kernel)| kernel.def_span.meets(within)) {
        let known = NameClasses::new(module, source.text(), target, index, kernel);
        of_kernel(source, module, &known, &constants, &mut tokens);
    }
    for launch in module.launches.iter().filter(|launch| launch.span.meets(within)) {
        let is_known = launch.kernel.as_ref().is_some_and(|name| module.kernel(name).is_some());
        if is_known {
            tokens.push(Token::plain(launch.target.span, TokenKind::Function));
        }
    }
    tokens.retain(|token| token.span.start < within.end && within.start < token.span.end);
    tokens.sort_unstable_by_key(|token| token.span);
    tokens.dedup_by_key(|token| token.span);
    tokens
}

fn of_kernel(
    source: &Source,
    module: &Module,
    known: &NameClasses<'_>,
    constants: &HashSet<&str>,
    tokens: &mut Vec<Token>,
) {
    let kernel = known.kernel();
    let Some(def) = source.node_at(kernel.def_span) else { return };
    identifiers(def, &mut |node| {
        let span = node_span(node);
        let name = source.slice(span);
        let is_binding = binds(node);
        if span == kernel.name_span {
            tokens.push(Token { is_binding, ..Token::plain(span, TokenKind::Function) });
            return;
        }
        let is_other = node.parent().is_some_and(|parent| {
            let is_field = |name: &str| field(parent, name).is_some_and(|child| child.id() == node.id());
            (parent.kind() == "attribute" && is_field("attribute"))
                || (parent.kind() == "keyword_argument" && is_field("name"))
        });
        if !is_other && let Some(token) = of_name(name, span, module, known, constants) {
            tokens.push(Token { is_binding, ..token });
        }
    });
}

fn of_name(
    name: &str,
    span: Span,
    module: &Module,
    known: &NameClasses<'_>,
    constants: &HashSet<&str>,
) -> Option<Token> {
    let kernel = known.kernel();
    if kernel.locals.contains(name) {
        let class = known.at(name, span);
        if kernel.param(name).is_some() {
            return Some(Token { class, ..Token::plain(span, TokenKind::Parameter) });
        }
        let says_something = class != NameClass::default();
        return says_something.then(|| Token { class, ..Token::plain(span, TokenKind::Variable) });
    }
    if constants.contains(name) {
        let class = NameClass { constexpr: true, ..NameClass::default() };
        return Some(Token { class, ..Token::plain(span, TokenKind::Variable) });
    }
    module.kernel(name).map(|_| Token::plain(span, TokenKind::Function))
}

impl Token {
    fn plain(span: Span, kind: TokenKind) -> Self {
        Self { span, kind, class: NameClass::default(), is_binding: false }
    }
}
