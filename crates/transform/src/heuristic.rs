//! Adds a constexpr parameter whose value `@triton.heuristics` computes for each call.

use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use crate::subject::Subject;
use crate::words::indent_of;

/// Whether a kernel can be given one: nothing but launches passes its arguments, and they go through decorators that are understood.
pub(super) fn is_open(subject: &Subject<'_>) -> bool {
    let kernel = subject.kernel;
    let is_called = subject.candidate.module.called_in_kernels().contains(&kernel.name);
    let is_plain = kernel.plain && kernel.heuristics.is_some() && !kernel.has_error && !is_called;
    is_plain && subject.workload.source != WorkloadSource::Launch
}

/// The edits that give a kernel a constant of this name, which is what `test` makes of its arguments, `args`. It is right above the
/// kernel, so that `args` has what autotuners and other heuristics set.
pub(super) fn decided(subject: &Subject<'_>, name: &str, test: &str) -> Option<Vec<Edit>> {
    let (module, kernel, text) = (&subject.candidate.module, subject.kernel, subject.candidate.text.as_str());
    let triton = *module.imports.aliases_of("triton").first()?;
    let constexpr = module.language_name(kernel, "constexpr")?;
    let jit = kernel.decorators.last().filter(|jit| jit.path.as_deref() == Some("triton.jit"))?;
    let at = text[..jit.expr.span.start].rfind('@')?;
    let indent = indent_of(text, at)?;
    let last = kernel.params.last().filter(|_| kernel.params.iter().all(|param| !param.variadic))?;
    // Behind a default there must be one.
    let default = if last.default.is_some() { " = False" } else { "" };
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    Some(vec![
        put(at, format!("@{triton}.heuristics({{\"{name}\": lambda args: {test}}})\n{indent}")),
        put(last.span.end, format!(", {name}: {constexpr}{default}")),
    ])
}
