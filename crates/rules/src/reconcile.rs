//! Reconciles findings of the rules with Triton's own results for the same code: Triton's results take precedence.

use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::kernel::Module;
use model::syntax::Span;

use super::{Diagnostic, RuleContext};

/// Whether Triton has compiled the code that a language rule calls an error, or the kernel in which a learned rule has
/// flagged something: learned rules flag only code that is compiled with its kernel.
#[must_use]
pub fn is_disproved(module: &Module, diagnostic: &Diagnostic) -> bool {
    let around = module.kernels.iter().filter(|kernel| kernel.span.contains(diagnostic.span));
    let mut verdicts = around.filter_map(FrontEndVerdict::of);
    match diagnostic.code.as_bytes()[0] {
        b'L' => verdicts.any(|verdict| verdict.has_compiled(diagnostic.span)),
        b'S' => verdicts.any(|verdict| matches!(verdict.outcome, FrontEndOutcome::Accepted { .. })),
        _ => false,
    }
}

/// Removes findings that Triton's results disprove, and errors of Triton on lines where a rule reports the problem.
pub(super) fn reconcile(context: &RuleContext<'_>, findings: &mut Vec<Diagnostic>) {
    findings.retain(|finding| !is_disproved(context.module, finding));
    let of_rules: Vec<Span> =
        findings.iter().filter(|finding| finding.code.starts_with('L')).map(|finding| finding.span).collect();
    let end = |span: Span| Span::new(span.end, span.end);
    let is_said = |spans: &[Span], span: Span| {
        let line = context.line_of(span);
        spans.iter().any(|said| (context.line_of(*said)..=context.line_of(end(*said))).contains(&line))
    };
    findings.retain(|finding| finding.code != "C001" || !is_said(&of_rules, finding.span));
    // Learned rules are dropped where a certain error is reported on the same line.
    let certain = findings.iter().filter(|finding| finding.code.starts_with('L') || finding.code == "C001");
    let certain: Vec<Span> = certain.map(|finding| finding.span).collect();
    findings.retain(|finding| !finding.code.starts_with('S') || !is_said(&certain, finding.span));
    // An estimate is dropped where the back end has measured the same resource.
    let counted: Vec<Span> = findings.iter().filter(|finding| finding.code == "C002").flat_map(places).collect();
    findings.retain(|finding| finding.code != "H015" || !counted.iter().any(|place| place.contains(finding.span)));
}

/// The spans of the configuration or the launches that a finding is about.
fn places(finding: &Diagnostic) -> impl Iterator<Item = Span> {
    std::iter::once(finding.span).chain(finding.related.iter().map(|related| related.span))
}

#[cfg(test)]
mod tests {
    use crate::{RuleContext, Selection, check};
    use model::analysis::occupancy::MultiprocessorLimits;
    use model::analysis::resources::{CompilationResult, CompiledVariant, KernelResources, LaunchCertainty, Resources};
    use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
    use model::api::TritonTarget;
    use model::kernel::Module;
    use model::syntax::{Source, Span};

    const TEXT: &str = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    a = tl.float32(x)\n    b = tl.load(x)\n";

    fn found(outcome: impl Fn(&dyn Fn(&str) -> Span) -> Option<FrontEndOutcome>) -> Vec<&'static str> {
        let source = Source::parse(TEXT);
        let module = Module::build(&source);
        let span = |text: &str| {
            let at = TEXT.find(text).unwrap();
            Span::new(at, at + text.len())
        };
        if let Some(outcome) = outcome(&span) {
            FrontEndVerdict::new(&module.kernels[0], outcome).keep(&module.kernels[0]);
        }
        let context = RuleContext::new(&source, &module, TritonTarget::of("3.6.0".parse().unwrap()));
        check(&context, &Selection::default()).into_iter().map(|found| found.code).collect()
    }

    /// The codes of the findings about shared memory; `shared` is the back end's result in bytes, if there is one.
    fn about_memory(text: &str, config: Option<usize>, shared: Option<u32>) -> Vec<&'static str> {
        let source = Source::parse(text);
        let module = Module::build(&source);
        if let Some(shared) = shared {
            let outcome = CompilationResult::Compiled(KernelResources {
                registers: Some(255),
                shared,
                warps: 4,
                ..KernelResources::default()
            });
            let row = CompiledVariant { config, setting: String::new(), certainty: LaunchCertainty::Certain, outcome };
            let resources = Resources {
                device: "sm_90".to_owned(),
                limits: MultiprocessorLimits::of(90),
                rows: vec![row],
                left_out: 0,
            };
            resources.keep(&module.kernels[0]);
        }
        let context = RuleContext::new(&source, &module, TritonTarget::of("3.6.0".parse().unwrap()));
        let selection = Selection { select: vec!["C".to_owned(), "H015".to_owned()], ignore: Vec::new() };
        check(&context, &selection).into_iter().map(|found| found.code).collect()
    }

    #[test]
    fn measured_shared_memory_replaces_the_estimate() {
        let tuned = include_str!("out_of_resources.md").split("```").nth(1).unwrap().strip_prefix("python\n").unwrap();
        let tuned = format!("{tuned}\n\ndef run(x, y, z):\n    product[(1,)](x, y, z, 4096)\n");
        let of_config = |shared| about_memory(&tuned, Some(1), shared);
        assert_eq!(of_config(None), ["H015"]);
        assert_eq!(of_config(Some(327_680)), ["C002"]);
        assert_eq!(about_memory(&tuned, Some(0), Some(327_680)), ["C002", "H015"], "of another configuration");
        let (start, end) = (tuned.find("@triton.autotune").unwrap(), tuned.find("@triton.jit").unwrap());
        let launched = format!("{}{}", &tuned[..start], &tuned[end..])
            .replace("4096)\n", "4096, BM=128, BN=128, BK=64, num_stages=5)\n");
        assert_eq!(about_memory(&launched, None, None), ["H015"]);
        assert_eq!(about_memory(&launched, None, Some(327_680)), ["C002"]);
    }

    fn refusal(span: Span) -> Option<FrontEndOutcome> {
        Some(FrontEndOutcome::Refused { span, message: "no".to_owned(), related: Vec::new() })
    }

    #[test]
    fn tritons_verdict_overrides_findings_on_compiled_code() {
        assert_eq!(found(|_| None), ["L002"]);
        let compiled = |of: Span| Some(FrontEndOutcome::Accepted { compiled: vec![of], types: Vec::new() });
        assert_eq!(found(|span| compiled(span("tl.float32(x)"))), [""; 0]);
        // That another branch was compiled proves nothing.
        assert_eq!(found(|span| compiled(span("tl.load(x)"))), ["L002"]);
        assert_eq!(found(|span| refusal(span("tl.load(x)"))), ["L002", "C001"]);
        // Only one of the two is reported for the same place.
        assert_eq!(found(|span| refusal(span("tl.float32"))), ["L002"]);
    }
}
