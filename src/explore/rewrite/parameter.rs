//! A new number that a kernel takes as a constant.

use super::Subject;
use crate::kernel::ast::has_star;
use crate::rules::Edit;
use crate::syntax::Span;

/// The edits that give a kernel another constant, behind its parameters, and pass it in all launches; `None` where a launch does not
/// say all that it passes.
pub(super) fn add_constexpr(subject: &Subject<'_>, name: &str, value: i64) -> Option<Vec<Edit>> {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let constexpr = module.language_name(kernel, "constexpr")?;
    let last = kernel.params.last().filter(|_| kernel.params.iter().all(|param| !param.variadic))?;
    // Behind a default there must be one; the launches pass it by name.
    let default = if last.default.is_some() { format!(" = {value}") } else { String::new() };
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    let mut edits = vec![put(last.span.end, format!(", {name}: {constexpr}{default}"))];
    for launch in module.launches_of(&kernel.name) {
        if launch.has_error || has_star(&launch.args) {
            return None;
        }
        edits.push(put(launch.args.last()?.span.end, format!(", {name}={value}")));
    }
    (edits.len() > 1).then_some(edits)
}
