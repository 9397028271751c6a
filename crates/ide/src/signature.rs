//! Signature help: the signature of the call around the cursor, and the parameter that is being typed.

use model::kernel::{Kernel, Param};
use model::syntax::Span;

use super::cursor_context::{Callee, CursorContext};
use super::describe;

/// The signature of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSignature {
    /// The text that is shown: `load(pointer, mask=None)`.
    pub label: String,
    /// A short description of the function.
    pub about: String,
    /// The parameters, in order.
    pub params: Vec<SignatureParam>,
    /// The index in `params` of the parameter that is being typed.
    pub active: Option<usize>,
}

/// A parameter of a signature.
#[derive(Clone, Debug, PartialEq)]
pub struct SignatureParam {
    /// The name, with the stars of `*args` and `**kwargs`.
    pub name: String,
    /// The byte range of the parameter in the label.
    pub span: Span,
    /// A note about the parameter.
    pub about: Option<String>,
}

/// The signature of the call around `place`.
#[must_use]
pub fn at(place: &CursorContext<'_>) -> Option<CallSignature> {
    if place.cursor.inside == super::cursor::Inside::Comment {
        return None;
    }
    let call = place.cursor.call()?;
    let callee = call.callee?;
    let written = || place.source.slice(callee).split_whitespace().collect::<String>();
    let text = place.source.text();
    let mut signature = match place.callee(call)? {
        Callee::Member(member) => {
            let name = written();
            let params = member.params.iter().map(|param| (param.name.clone(), describe::parameter(param), None));
            let about = format!("{} · {}", describe::kind(member), describe::version(place.target));
            CallSignature::new(name.rsplit('.').next().unwrap_or(&name), params, about)
        }
        Callee::Kernel(kernel) => of_kernel(kernel, &kernel.name, text, false),
        Callee::Imported(file, kernel) => {
            let of_file =
                file.path.file_name().map_or_else(String::new, |name| format!(" of {}", name.to_string_lossy()));
            let about = format!("Triton function{of_file}");
            CallSignature { about, ..of_kernel(kernel, &kernel.name, &file.text, false) }
        }
        Callee::Launch(kernel) => of_kernel(kernel?, &written(), text, true),
    };
    let keyword = call.keyword.map(|span| place.source.slice(span));
    signature.active = match keyword {
        Some(keyword) => signature.params.iter().position(|param| param.name == keyword),
        // The number of arguments that a star passes is not known, and no positional argument follows a keyword.
        None if call.has_star || !call.keywords.is_empty() => None,
        None => signature.positional(call.commas),
    };
    Some(signature)
}

fn of_kernel(kernel: &Kernel, name: &str, text: &str, is_launch: bool) -> CallSignature {
    let mut params = Vec::new();
    let mut has_star = false;
    for param in &kernel.params {
        if param.keyword_only && !has_star {
            params.push(("*".to_owned(), "*".to_owned(), None));
        }
        has_star |= param.variadic || param.keyword_only;
        let written = describe::source_param(param, text);
        let stars = &written[..written.len() - written.trim_start_matches('*').len()];
        params.push((format!("{stars}{}", param.name), written.clone(), about(kernel, param, is_launch)));
    }
    let about = if is_launch { "launch of a kernel" } else { "Triton function of this file" };
    CallSignature::new(name, params.into_iter(), about.to_owned())
}

/// The note for callers about a parameter of a kernel.
fn about(kernel: &Kernel, param: &Param, is_launch: bool) -> Option<String> {
    let tuned = is_launch.then(|| super::complete::set_by(kernel, &param.name)).flatten();
    match (param.constexpr, tuned) {
        (_, Some(decorator)) => Some(format!("Set by `@triton.{decorator}`: not passed.")),
        (true, None) => Some("Compile-time constant: the kernel is compiled again for each value.".to_owned()),
        (false, None) => None,
    }
}

impl CallSignature {
    fn new(name: &str, params: impl Iterator<Item = (String, String, Option<String>)>, about: String) -> Self {
        let mut label = format!("{name}(");
        let mut spans = Vec::new();
        for (name, text, about) in params {
            if !spans.is_empty() {
                label.push_str(", ");
            }
            let start = label.len();
            label.push_str(&text);
            spans.push(SignatureParam { name, span: Span::new(start, label.len()), about });
        }
        label.push(')');
        Self { label, about, params: spans, active: None }
    }

    /// The parameter that the argument at `position` is for.
    fn positional(&self, position: usize) -> Option<usize> {
        let star = self.params.iter().position(|param| param.name.starts_with('*'));
        let before_star = &self.params[..star.unwrap_or(self.params.len())];
        if position < before_star.len() {
            return Some(position);
        }
        // `*args` takes the remaining positional arguments; a bare `*` and `**kwargs` take none.
        star.filter(|&at| self.params[at].name.len() > 1 && !self.params[at].name.starts_with("**"))
    }
}
