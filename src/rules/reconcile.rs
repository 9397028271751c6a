//! Where rules and Triton itself speak of one place: Triton has the last word.

use super::{Context, Diagnostic};
use crate::analysis::verdict::Verdict;
use crate::kernel::Module;
use crate::syntax::Span;

/// Whether Triton has compiled what a rule of the language calls an error.
#[must_use]
pub fn is_disproved(module: &Module, diagnostic: &Diagnostic) -> bool {
    let around = module.kernels.iter().filter(|kernel| kernel.span.contains(diagnostic.span));
    let mut verdicts = around.filter_map(Verdict::of);
    diagnostic.code.starts_with('L') && verdicts.any(|verdict| verdict.has_compiled(diagnostic.span))
}

/// Takes out errors that Triton disproves, and what it says where a rule has said the same.
pub(super) fn reconcile(context: &Context<'_>, findings: &mut Vec<Diagnostic>) {
    findings.retain(|finding| !is_disproved(context.module, finding));
    let of_rules: Vec<Span> =
        findings.iter().filter(|finding| finding.code.starts_with('L')).map(|finding| finding.span).collect();
    let end = |span: Span| Span::new(span.end, span.end);
    let is_said = |span: Span| {
        let line = context.line_of(span);
        of_rules.iter().any(|said| (context.line_of(*said)..=context.line_of(end(*said))).contains(&line))
    };
    findings.retain(|finding| !finding.code.starts_with('C') || !is_said(finding.span));
}

#[cfg(test)]
mod tests {
    use crate::analysis::verdict::{Outcome, Verdict};
    use crate::api::Target;
    use crate::kernel::Module;
    use crate::rules::{Context, Selection, check};
    use crate::syntax::{Source, Span};

    const TEXT: &str = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    a = tl.float32(x)\n    b = tl.load(x)\n";

    fn found(outcome: impl Fn(&dyn Fn(&str) -> Span) -> Option<Outcome>) -> Vec<&'static str> {
        let source = Source::parse(TEXT);
        let module = Module::build(&source);
        let span = |text: &str| {
            let at = TEXT.find(text).unwrap();
            Span::new(at, at + text.len())
        };
        if let Some(outcome) = outcome(&span) {
            Verdict::new(&module.kernels[0], outcome).keep(&module.kernels[0]);
        }
        let context = Context::new(&source, &module, Target::of("3.6.0".parse().unwrap()));
        check(&context, &Selection::default()).into_iter().map(|found| found.code).collect()
    }

    fn refusal(span: Span) -> Option<Outcome> {
        Some(Outcome::Refused { span, message: "no".to_owned(), related: Vec::new() })
    }

    #[test]
    fn triton_has_the_last_word() {
        assert_eq!(found(|_| None), ["L002"]);
        let compiled = |of: Span| Some(Outcome::Accepted { compiled: vec![of], types: Vec::new() });
        assert_eq!(found(|span| compiled(span("tl.float32(x)"))), [""; 0]);
        // Another branch was compiled: that proves nothing.
        assert_eq!(found(|span| compiled(span("tl.load(x)"))), ["L002"]);
        assert_eq!(found(|span| refusal(span("tl.load(x)"))), ["L002", "C001"]);
        // Of one place, one speaks.
        assert_eq!(found(|span| refusal(span("tl.float32"))), ["L002"]);
    }
}
