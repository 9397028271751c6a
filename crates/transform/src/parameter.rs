//! Adds a constexpr parameter to a kernel, and passes it in all launches.

use model::kernel::Launch;
use model::kernel::ast::has_star;
use model::syntax::Span;
use rules::Edit;

use crate::subject::Subject;

/// The edits that append a constexpr to a kernel's parameters and pass it in all launches; `None` where a launch does
/// not spell out all of its arguments.
pub(super) fn add_constexpr(subject: &Subject<'_>, name: &str, value: i64) -> Option<Vec<Edit>> {
    let is_open = |launch: &Launch| has_star(&launch.args);
    let is_certain = !subject.candidate.module.launches_of(&subject.kernel.name).any(is_open);
    is_certain.then(|| add_constant(subject, name, &value.to_string(), &value.to_string()))?
}

/// The same for a constexpr that the host computes; `default` is its value where nothing is passed.
pub(super) fn add_constant(subject: &Subject<'_>, name: &str, default: &str, value: &str) -> Option<Vec<Edit>> {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let constexpr = module.language_name(kernel, "constexpr")?;
    let last = kernel.params.last().filter(|_| kernel.params.iter().all(|param| !param.variadic))?;
    // A parameter after one with a default needs a default; the launches pass it by name.
    let default = if last.default.is_some() { format!(" = {default}") } else { String::new() };
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    let mut edits = vec![put(last.span.end, format!(", {name}: {constexpr}{default}"))];
    for launch in module.launches_of(&kernel.name) {
        let last = launch.args.last().filter(|_| !launch.has_error)?;
        edits.push(put(last.span.end, format!(", {name}={value}")));
    }
    (edits.len() > 1).then_some(edits)
}
