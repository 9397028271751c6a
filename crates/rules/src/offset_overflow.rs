//! M002: an offset that does not fit into 32 bits.

use model::analysis::launches::{ArgumentSource, passed};
use model::analysis::types::access::{Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Narrow};
use model::analysis::types::signature::{self, SignatureComment};
use model::analysis::types::{KernelAnalysis, infer_as};
use model::analysis::witness::{AtomAssignment, Launched, largest};
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::kernel::{Kernel, Launch, Param, RecordedLaunch};
use model::syntax::Span;

use super::known_launch::KnownLaunch;
use super::memory_accesses::{conditions_on, guard, index, is_certain, kernel_around, line};
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M002",
        name: "offset-overflow",
        severity: Severity::Warning,
        summary: "an offset that certainly exceeds 32 bits in a launch of known size",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("offset_overflow.md"),
    },
    check,
};

const LARGEST: i128 = i32::MAX as i128;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        let signature = signature::of(module, known.kernel, context.source.text());
        let Some((launched, signature)) = launched(&known, signature.as_ref()) else { continue };
        if may_overflow(&launched) && !context.is_for_other_compiler() {
            let from = Sizing::Launch(known.launch);
            look(context, known.at, &from, (&launched, &signature), &mut seen, findings);
        }
    }
    for (at, kernel) in module.kernels.iter().enumerate().filter(|(_, kernel)| !kernel.has_error) {
        for launch in module.recorded().iter().filter(|launch| launch.kernel == kernel.name) {
            let Some((launched, signature)) = replayed(kernel, launch) else { continue };
            if may_overflow(&launched) && !context.is_for_other_compiler() {
                look(context, at, &Sizing::Recorded(launch), (&launched, &signature), &mut seen, findings);
            }
        }
    }
}

/// The source of a launch's sizes.
enum Sizing<'a> {
    /// The numbers in the file.
    Launch(&'a Launch),
    /// The numbers that were recorded when the user's program ran.
    Recorded(&'a RecordedLaunch),
}

/// Checks a launch for overflows; `seen` holds the spans that were reported before.
fn look(
    context: &RuleContext<'_>,
    at: usize,
    from: &Sizing<'_>,
    (launched, signature): (&Launched, &SignatureComment),
    seen: &mut Vec<Span>,
    findings: &mut Findings<'_>,
) {
    let facts = infer_as(context.module, context.source.text(), context.target, at, signature);
    for access in facts.accesses.iter().filter(|access| is_certain(access)) {
        let Some((narrow, example, value)) = overflow(&facts, launched, access) else { continue };
        if !seen.contains(&narrow.span) {
            seen.push(narrow.span);
            findings.push(report(context, &context.module.kernels[at], from, access, (narrow, &example, value)));
        }
    }
}

/// The numbers and types of a recorded launch; `None` where the kernel had other parameters.
fn replayed(kernel: &Kernel, launch: &RecordedLaunch) -> Option<(Launched, SignatureComment)> {
    let is_there = |(name, _): &(String, _)| kernel.param(name).is_some();
    let is_whole = |param: &Param| param.default.is_some() || param.variadic || launch.passed(&param.name).is_some();
    if launch.grid.is_empty() || !launch.arguments.iter().all(is_there) || !kernel.params.iter().all(is_whole) {
        return None;
    }
    let number = |param: &Param| Some((param.name.clone(), launch.integer(&param.name)?));
    let text = |param: &Param| Some((param.name.clone(), launch.text(&param.name, param.constexpr)?));
    let launched = Launched { params: kernel.params.iter().filter_map(number).collect(), grid: launch.grid.clone() };
    Some((launched, SignatureComment::new(kernel.params.iter().filter_map(text).collect(), kernel.name_span)))
}

/// A cheap test that rules out most launches before the analysis.
fn may_overflow(launched: &Launched) -> bool {
    let sizes = launched.params.values().chain(&launched.grid).filter(|value| **value > 1);
    sizes.fold(1.0, |product, value| product * *value as f64) > LARGEST as f64
}

/// The numbers of a launch, and the types of its arguments; `None` where its grid is not known.
pub(super) fn launched(
    known: &KnownLaunch<'_, '_>,
    comment: Option<&SignatureComment>,
) -> Option<(Launched, SignatureComment)> {
    let is_unknown = |param: &Param| passed(known.launch, known.kernel, &param.name) == ArgumentSource::Unknown;
    if known.kernel.params.iter().any(is_unknown) {
        return None;
    }
    let launched = known.launched(&|name| comment.and_then(|comment| comment.number(name)))?;
    let mut params = Vec::new();
    for param in &known.kernel.params {
        let said = comment.and_then(|comment| comment.text(&param.name));
        let text = match (said, launched.params.get(&param.name).copied()) {
            (Some(said), _) => Some(said.to_owned()),
            (None, Some(value)) if param.constexpr || value == 1 => Some(value.to_string()),
            (None, Some(value)) if value.abs() <= LARGEST => Some(format!("i32={value}")),
            (None, Some(value)) => Some(format!("i64={value}")),
            (None, None) => None,
        };
        params.extend(text.map(|text| (param.name.clone(), text)));
    }
    Some((launched, SignatureComment::new(params, known.launch.span)))
}

/// The innermost operation of an address that wraps around, an example, and the correct result.
fn overflow<'f>(
    facts: &'f KernelAnalysis,
    launched: &Launched,
    access: &'f MemoryAccess,
) -> Option<(&'f Narrow, AtomAssignment, i128)> {
    let index = index(access)?;
    let conditions = match &access.mask {
        Mask::None => Vec::new(),
        Mask::Unknown => return None,
        Mask::Tile(_) => conditions_on(facts, index, guard(access)?)?,
    };
    let all = &index.narrow;
    all.iter().find_map(|narrow| {
        let example = largest(facts, launched, &narrow.poly, &conditions, all)?;
        let value = example.value(launched, &narrow.poly)?;
        (value > LARGEST).then_some((narrow, example, value))
    })
}

fn report(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    from: &Sizing<'_>,
    access: &MemoryAccess,
    (narrow, example, value): (&Narrow, &AtomAssignment, i128),
) -> Diagnostic {
    let at: Vec<String> = example
        .values
        .iter()
        .filter(|(atom, _)| matches!(atom, Atom::Program(_)) && narrow.poly.has(atom))
        .map(|(atom, value)| format!("{atom} = {value}"))
        .collect();
    let place = if at.is_empty() { String::new() } else { format!(" (at {})", at.join(", ")) };
    let which = match from {
        Sizing::Launch(launch) => format!("the launch on line {}", line(context, launch.span)),
        Sizing::Recorded(launch) => format!("a recorded launch ({})", sizes(launch)),
    };
    let message = format!(
        "computed in 32 bits, this reaches {value}{place} in {which}, and wraps around behind {LARGEST}: the access on \
         line {} goes astray; make it 64 bits wide",
        line(context, access.span)
    );
    let mut diagnostic = Diagnostic::new(&RULE.declaration, narrow.span, message);
    if let Sizing::Launch(launch) = from {
        diagnostic = diagnostic.with_related(launch.span, "the launch fixes the sizes here");
    }
    diagnostic = diagnostic.with_related(access.span, "the access");
    if let Some(edit) = widen(context, narrow.span)
        && let Some(int64) = context.module.language_name(kernel, "int64")
    {
        diagnostic = diagnostic.with_fix(
            format!("Compute it in 64 bits with `.to({int64})`"),
            vec![Edit { text: edit.1.replace("$", &int64), span: edit.0 }],
        );
    }
    diagnostic
}

/// The grid and the integers of a launch.
fn sizes(launch: &RecordedLaunch) -> String {
    let grid: Vec<String> = launch.grid.iter().map(i128::to_string).collect();
    let integers = launch.arguments.iter().filter_map(|(name, _)| Some(format!("{name}={}", launch.integer(name)?)));
    std::iter::once(format!("grid {}", grid.join("×"))).chain(integers).collect::<Vec<_>>().join(", ")
}

/// The operand to cast, which is not a plain parameter, and its new text.
fn widen(context: &RuleContext<'_>, span: Span) -> Option<(Span, String)> {
    let kernel = kernel_around(context, span)?;
    let mut found: Option<&Expr> = None;
    walk_expressions(&kernel.body, &mut |expr| {
        if expr.span == span {
            found = found.or(Some(expr));
        }
    });
    let ExprKind::Binary { left, right, .. } = &found?.kind else { return None };
    let is_param = |expr: &Expr| expr.as_name().is_some_and(|name| kernel.param(name).is_some());
    let is_number = |expr: &Expr| matches!(expr.kind, ExprKind::Int(_));
    let operand = [left, right].into_iter().find(|operand| !is_param(operand) && !is_number(operand))?;
    let text = context.source.slice(operand.span);
    let text = match operand.kind {
        ExprKind::Name(_) | ExprKind::Call(_) | ExprKind::Attribute { .. } | ExprKind::Subscript { .. } => {
            format!("{text}.to($)")
        }
        _ => format!("({text}).to($)"),
    };
    Some((operand.span, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use model::api::TritonTarget;
    use model::kernel::{Module, RecordedArgument};
    use model::syntax::Source;

    /// The findings in the launch that `host` makes of a kernel that copies rows.
    fn found(host: &str) -> Vec<String> {
        let text = format!(
            "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef rows(x, m, n, stride, BM: tl.constexpr, BN: \
             tl.constexpr):\n    r = tl.program_id(0) * BM + tl.arange(0, BM)\n    c = tl.program_id(1) * BN + tl.arange(0, BN)\n    mask = \
             (r[:, None] < m) & (c[None, :] < n)\n    tl.store(x + r[:, None] * stride + c[None, :], 1.0, mask=mask)\n\ndef run():\n{}\n",
            host.lines().map(|line| format!("    {line}\n")).collect::<String>()
        );
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        let selection = Selection { select: vec!["M002".to_owned()], ignore: Vec::new() };
        let context = RuleContext::new(&source, &module, TritonTarget::newest());
        super::super::check(&context, &selection).into_iter().map(|found| found.message).collect()
    }

    const LAUNCH: &str =
        "m, n = x.shape\nrows[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, m, n, x.stride(0), BM=64, BN=64)";

    #[test]
    fn overflow_is_checked_at_the_largest_offset_inside_the_mask() {
        let of = |side: u32| found(&format!("x = torch.empty(({side}, {side}), device='cuda')\n{LAUNCH}"));
        // 46340² is below 2³¹, and the last tile of rows reaches beyond it only outside the mask.
        assert_eq!(of(46340), [""; 0]);
        let large = of(50000);
        assert_eq!(large.len(), 1);
        assert!(large[0].contains("reaches 2499950000 (at program_id(0) = 781)"), "{large:?}");
    }

    #[test]
    fn recorded_launches_apply_to_kernels_with_the_same_parameters() {
        let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef rows(x, stride, n, B: tl.constexpr):\n    \
            at = tl.program_id(0) * stride + tl.arange(0, B)\n    tl.store(x + at, 1.0, mask=tl.arange(0, B) < n)\n";
        let of = |text: &str, grid: i128, names: [&str; 4]| {
            let source = Source::parse(text);
            let mut module = Module::build(&source);
            let passed = [
                RecordedArgument::Pointer(Some("fp16")),
                RecordedArgument::Integer(65536),
                RecordedArgument::Integer(60000),
                RecordedArgument::Integer(65536),
            ];
            let arguments = names.map(str::to_owned).into_iter().zip(passed).collect();
            module.observe(
                [RecordedLaunch { kernel: "rows".to_owned(), arguments, grid: vec![grid], options: Vec::new() }].into(),
            );
            let selection = Selection { select: vec!["M002".to_owned()], ignore: Vec::new() };
            let found = super::super::check(&RuleContext::new(&source, &module, TritonTarget::newest()), &selection);
            found.into_iter().map(|found| found.message).collect::<Vec<_>>()
        };
        let names = ["x", "stride", "n", "B"];
        let found = of(text, 40000, names);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("reaches 2621374464 (at program_id(0) = 39999)"), "{found:?}");
        assert!(found[0].contains("a recorded launch (grid 40000, stride=65536, n=60000, B=65536)"), "{found:?}");
        assert_eq!(of(text, 32768, names), [""; 0]);
        assert_eq!(of(text, 40000, ["x", "pitch", "n", "B"]), [""; 0], "the kernel is another one now");
        assert_eq!(of(&text.replace("(0) *", "(0).to(tl.int64) *"), 40000, names), [""; 0]);
    }

    #[test]
    fn unknown_sizes_are_not_flagged() {
        assert_eq!(found(&format!("x = given()\n{LAUNCH}")), [""; 0]);
        assert_eq!(found(&format!("x = torch.empty((50000, given()), device='cuda')\n{LAUNCH}")), [""; 0]);
        let grid = "x = torch.empty((50000, 50000))\nrows[grid](x, 50000, 50000, x.stride(0), BM=64, BN=64)";
        assert_eq!(found(grid), [""; 0]);
    }
}
