//! Adds a constexpr parameter whose value `@triton.heuristics` computes for each call.

use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use crate::subject::Subject;
use crate::words::indent_of;

/// Whether a constexpr can be added to a kernel: only launches pass its arguments, through decorators that are
/// understood.
pub(super) fn is_open(subject: &Subject<'_>) -> bool {
    let kernel = subject.kernel;
    let is_called = subject.candidate.module.called_in_kernels().contains(&kernel.name);
    let is_plain = kernel.plain && kernel.heuristics.is_some() && !kernel.has_error && !is_called;
    is_plain && subject.workload.source != WorkloadSource::Launch
}

/// The edits that add a constexpr with this name to a kernel, with the value of `test`, an expression over the
/// arguments, `args`. The decorator is directly above the kernel, so that `args` has the values that autotuners and
/// other heuristics set.
pub(super) fn decided(subject: &Subject<'_>, name: &str, test: &str) -> Option<Vec<Edit>> {
    let (module, kernel, text) = (&subject.candidate.module, subject.kernel, subject.candidate.text.as_str());
    let triton = *module.imports.aliases_of("triton").first()?;
    let constexpr = module.language_name(kernel, "constexpr")?;
    let jit = kernel.decorators.last().filter(|jit| jit.path.as_deref() == Some("triton.jit"))?;
    let at = text[..jit.expr.span.start].rfind('@')?;
    let indent = indent_of(text, at)?;
    let last = kernel.params.last().filter(|_| kernel.params.iter().all(|param| !param.variadic))?;
    // A parameter after one with a default needs a default.
    let default = if last.default.is_some() { " = False" } else { "" };
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    Some(vec![
        put(at, format!("@{triton}.heuristics({{\"{name}\": lambda args: {test}}})\n{indent}")),
        put(last.span.end, format!(", {name}: {constexpr}{default}")),
    ])
}
