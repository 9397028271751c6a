//! C002: resources that exceed those of the device.

use std::collections::BTreeMap;

use model::analysis::resources::{CompiledVariant, LaunchCertainty, Resources};
use model::analysis::tuning::Tuner;
use model::kernel::Kernel;

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "C002",
        name: "out-of-resources",
        severity: Severity::Warning,
        summary: "a configuration or launch that needs more than the device has",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("out_of_resources.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for kernel in &context.module.kernels {
        let Some(resources) = Resources::of(kernel) else { continue };
        let mut lacking: BTreeMap<Option<usize>, Vec<(&CompiledVariant, String)>> = BTreeMap::new();
        for row in resources.rows.iter().filter(|row| row.certainty == LaunchCertainty::Certain) {
            if let Some(lack) = resources.missing_resource(row) {
                lacking.entry(row.config).or_default().push((row, lack));
            }
        }
        for (config, rows) in lacking {
            let all = resources.rows.iter().filter(|row| row.config == config).count();
            let found = match config {
                Some(at) => of_config(context, kernel, at, &rows, all),
                None => of_launch(context, kernel, &rows, all),
            };
            if let Some(found) = found {
                findings.push(found);
            }
        }
    }
}

/// The finding for a configuration of an autotuner, or for a call in a comprehension that makes several.
fn of_config(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    at: usize,
    rows: &[(&CompiledVariant, String)],
    all: usize,
) -> Option<Diagnostic> {
    let tuner = Tuner::of(context.module, kernel)?;
    let template = tuner.configs.get(at)?;
    let (row, lack) = rows.first()?;
    let message = if all == 1 {
        format!("this configuration {lack}: the tuner compiles it in vain")
    } else {
        let setting = &row.setting;
        format!("of {all} ways to run this, the tuner compiles {} in vain: `{setting}` {lack}", rows.len())
    };
    Some(Diagnostic::new(&RULE.declaration, template.span, message).with_related(kernel.name_span, "the kernel"))
}

/// The finding for the arguments of launches.
fn of_launch(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    rows: &[(&CompiledVariant, String)],
    all: usize,
) -> Option<Diagnostic> {
    let (row, lack) = rows.first()?;
    let which = if all == 1 { String::new() } else { format!(" with `{}`", row.setting) };
    let message = format!("`{}`{which} {lack}: the launch fails with `OutOfResources`", kernel.name);
    let mut found = Diagnostic::new(&RULE.declaration, kernel.name_span, message);
    found.severity = Severity::Error;
    for launch in context.module.launches_of(&kernel.name) {
        found = found.with_related(launch.span, "launched here");
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Selection, check};
    use model::analysis::occupancy::MultiprocessorLimits;
    use model::analysis::resources::{CompilationResult, KernelResources};
    use model::api::TritonTarget;
    use model::kernel::Module;
    use model::syntax::Source;

    const HEAD: &str = "import triton\nimport triton.language as tl\n\n";
    const TUNED: &str = "@triton.autotune([triton.Config({'B': 64}), triton.Config({'B': 128})], key=['n'])\n";
    const KERNEL: &str = "@triton.jit\ndef k(x, n, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), 0)\n";

    /// The places and messages of findings when the kernel uses this much shared memory in each of its variants.
    fn found(text: &str, rows: &[(Option<usize>, u32, LaunchCertainty)]) -> Vec<(String, String)> {
        let text = format!("{HEAD}{text}\n\ndef run(x, n):\n    k[(1,)](x, n)\n");
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        let row = |&(config, shared, certainty): &(Option<usize>, u32, LaunchCertainty)| {
            let taken = KernelResources { registers: Some(32), shared, warps: 4, ..KernelResources::default() };
            CompiledVariant {
                config,
                setting: format!("S={shared}"),
                certainty,
                outcome: CompilationResult::Compiled(taken),
            }
        };
        let rows = rows.iter().map(row).collect();
        let resources =
            Resources { device: "sm_90".to_owned(), limits: MultiprocessorLimits::of(90), rows, left_out: 0 };
        resources.keep(&module.kernels[0]);
        let context = RuleContext::new(&source, &module, TritonTarget::newest());
        let selection = Selection { select: vec!["C".to_owned()], ignore: Vec::new() };
        let found = check(&context, &selection);
        found.into_iter().map(|found| (source.slice(found.span).to_owned(), found.message)).collect()
    }

    const MUCH: u32 = 270_336;

    #[test]
    fn a_configuration_is_marked_on_its_line() {
        let rows = [(Some(0), 1024, LaunchCertainty::Certain), (Some(1), MUCH, LaunchCertainty::Certain)];
        let found = found(&format!("{TUNED}{KERNEL}"), &rows);
        let message = "this configuration needs 270,336 bytes of shared memory; sm_90 has 232,448 for a program: the tuner compiles it \
                       in vain";
        assert_eq!(found, [("triton.Config({'B': 128})".to_owned(), message.to_owned())]);
    }

    #[test]
    fn configurations_of_a_comprehension_are_flagged_once_at_the_call() {
        let tuned = "@triton.autotune([triton.Config({'B': b}) for b in [1, 2, 3]], key=['n'])\n";
        let rows = [1024, MUCH, MUCH + 1].map(|shared| (Some(0), shared, LaunchCertainty::Certain));
        let found = found(&format!("{tuned}{KERNEL}"), &rows);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .1
                .starts_with("of 3 ways to run this, the tuner compiles 2 in vain: `S=270336` needs 270,336 bytes")
        );
        assert_eq!(found[0].0, "triton.Config({'B': b})");
    }

    #[test]
    fn a_kernel_without_a_tuner_is_marked_by_its_name() {
        let found = found(KERNEL, &[(None, MUCH, LaunchCertainty::Certain)]);
        assert_eq!(found[0].0, "k");
        assert!(found[0].1.starts_with("`k` needs 270,336 bytes"), "{found:?}");
        assert!(found[0].1.ends_with("the launch fails with `OutOfResources`"), "{found:?}");
    }

    #[test]
    fn guessed_variants_are_not_flagged() {
        for certainty in [LaunchCertainty::Guessed, LaunchCertainty::Possible] {
            assert_eq!(found(KERNEL, &[(None, MUCH, certainty)]), []);
            assert_eq!(found(&format!("{TUNED}{KERNEL}"), &[(Some(1), MUCH, certainty)]), []);
        }
    }
}
