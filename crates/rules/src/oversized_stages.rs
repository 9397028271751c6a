//! H015: more pipeline stages than fit into shared memory.

use model::analysis::launches::{LaunchVariant, settings};
use model::analysis::staging::{Staged, loops};
use model::analysis::types::LaneType;
use model::analysis::types::access::MemoryAccess;
use model::analysis::types::dtype::Dtype;
use model::analysis::types::shape::Dim;
use model::kernel::Kernel;
use model::syntax::Span;

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H015",
        name: "oversized-stages",
        severity: Severity::Warning,
        summary: "a `num_stages` for which no NVIDIA GPU has enough shared memory",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("oversized_stages.md"),
    },
    check,
};

/// The maximum shared memory of a program in bytes on any NVIDIA GPU (compute capability 9.0 and 10.0).
const MOST: i128 = 232_448;

/// The default of `num_stages` on NVIDIA GPUs, and in a `triton.Config`.
const STAGES: i128 = 3;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    for (at, kernel) in module.kernels.iter().enumerate().filter(|(_, kernel)| !kernel.has_error) {
        let text = context.source.slice(kernel.def_span);
        if !text.contains("dot") || !text.contains("for ") {
            continue;
        }
        let mut staged: Option<Vec<Staged<'_, '_>>> = None;
        let mut seen: Vec<Span> = Vec::new();
        for setting in settings(module, kernel) {
            let staged = staged.get_or_insert_with(|| loops(module, kernel, &context.facts()[at]));
            if staged.is_empty() {
                break;
            }
            let found = staged.iter().find_map(|staged| look(context, kernel, &setting, staged));
            let Some(found) = found.filter(|found| !seen.contains(&found.span)) else { continue };
            if !context.is_for_other_compiler() {
                seen.push(found.span);
                findings.push(found);
            }
        }
    }
}

fn look(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    setting: &LaunchVariant<'_>,
    staged: &Staged<'_, '_>,
) -> Option<Diagnostic> {
    let whole =
        setting.config().map(|config| config.span).or_else(|| setting.launch().map(|launch| launch.args_span))?;
    let (mut bytes, mut narrow) = (0_i128, false);
    for load in &staged.loads {
        let number = element(context, kernel, setting, load)?;
        let lanes = lanes(setting, load)?;
        narrow |= number.bytes() < 4;
        bytes = bytes.checked_add(lanes.checked_mul(i128::from(number.bytes()))?)?;
    }
    let (stages, place) = match staged.stages {
        Some(of_loop) => (of_loop.as_int()?, Some(of_loop.span)),
        None => setting.option("num_stages", STAGES)?,
    };
    let needed = bytes.checked_mul(stages - 1).filter(|needed| stages > 1 && *needed > MOST)?;
    let when = if narrow { " once its loads are pipelined (strides that are multiples of 16)" } else { "" };
    let then = match setting.config() {
        Some(_) => "the tuner compiles this configuration in vain",
        None => "the launch fails with `OutOfResources`",
    };
    let message = format!(
        "each stage of the loop takes {bytes} bytes of shared memory, and {stages} stages at least {needed}{when}: no NVIDIA GPU has \
         more than {MOST} for a program, and {then}"
    );
    let mut found =
        Diagnostic::new(&RULE.declaration, place.unwrap_or(whole), message).with_related(staged.head.span, "the loop");
    if setting.config().is_some() {
        found.severity = Severity::Hint;
    }
    Some(staged.loads.iter().fold(found, |found, load| found.with_related(load.span, "a tile of each stage")))
}

/// The number of elements of a load.
fn lanes(setting: &LaunchVariant<'_>, load: &MemoryAccess) -> Option<i128> {
    load.pointer.shape.as_ref()?.iter().try_fold(1_i128, |product, size| {
        let size = match size {
            Dim::Known(size) => i128::from(*size),
            Dim::Symbol(symbol) => symbol
                .names
                .iter()
                .try_fold(i128::from(symbol.factor), |product, name| product.checked_mul(setting.value(name)?.0))?,
            Dim::Unknown => return None,
        };
        product.checked_mul(size).filter(|_| size > 0)
    })
}

/// The element type of a load, from a signature or from the tensor that the host creates.
fn element(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    setting: &LaunchVariant<'_>,
    load: &MemoryAccess,
) -> Option<Dtype> {
    let number = match load.pointer.element {
        LaneType::Pointer(Some(number)) => number,
        _ => {
            let (base, launch) = (load.pointer.about.index()?.base.as_deref()?, setting.launch()?);
            let mut sites = context.launches_of(kernel).filter(|known| known.launch.span == launch.span);
            sites.find_map(|known| known.tensor(base)?.dtype)?
        }
    };
    matches!(number, Dtype::Fp16 | Dtype::Bf16 | Dtype::Fp32).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    const LOADS: &str = "a = tl.load(x + m[:, None] * K + (start + k)[None, :])\nb = tl.load(y + (start + k)[:, None] * 64 + n[None, :])";

    /// The findings in a product of tiles of 64x256 and 256x64 elements of these types, with this loop.
    fn found(signature: &str, head: &str, body: &str, options: &str) -> Vec<String> {
        let body: String = body.lines().map(|line| format!("        {line}\n")).collect();
        let text = format!(
            "import triton\nimport triton.language as tl\n\n# warpsmith: signature {signature}\n@triton.jit\ndef k(x, y, z, K, BM: tl.constexpr, \
             BK: tl.constexpr):\n    m, n, k = tl.arange(0, BM), tl.arange(0, 64), tl.arange(0, BK)\n    acc = tl.zeros((BM, 64), tl.float32)\n    \
             for start in {head}:\n{body}    tl.store(z + m[:, None] * 64 + n[None, :], acc)\n\ndef run(x, y, z, K):\n    k[(1,)](x, y, z, \
             K, BM=64, BK=256{options})\n"
        );
        messages(&text, "H015")
    }

    fn count(signature: &str, head: &str, body: &str, options: &str) -> usize {
        found(signature, head, body, options).len()
    }

    const HALF: &str = "x=*fp16 y=*fp16 z=*fp32";
    const RANGE: &str = "range(0, K, BK)";

    #[test]
    fn shared_memory_is_tile_bytes_times_stages() {
        let product = format!("{LOADS}\nacc = tl.dot(a, b, acc)");
        let messages = found(HALF, RANGE, &product, ", num_stages=5");
        assert!(
            messages.len() == 1 && messages[0].contains("takes 65536 bytes") && messages[0].contains("least 262144"),
            "{messages:?}"
        );
        assert_eq!(count(HALF, RANGE, &product, ", num_stages=4"), 0);
        assert_eq!(count("x=*fp32 y=*fp32 z=*fp32", RANGE, &product, ""), 1, "three stages, which is the default");
        assert_eq!(count(HALF, "tl.range(0, K, BK, num_stages=5)", &product, ""), 1);
        assert_eq!(
            count(
                HALF,
                RANGE,
                &format!("{LOADS}\nacc += tl.dot(a.T.to(tl.float16).T, tl.trans(b.T))"),
                ", num_stages=5"
            ),
            1
        );
    }

    #[test]
    fn loops_that_may_not_be_pipelined_are_not_flagged() {
        let product = format!("{LOADS}\nacc = tl.dot(a, b, acc)");
        let five = ", num_stages=5";
        assert_eq!(count("z=*fp32", RANGE, &product, ", num_stages=50"), 0, "nobody knows the type");
        assert_eq!(count("x=*fp8e5 y=*fp8e5 z=*fp32", RANGE, &product, ", num_stages=50"), 0);
        assert_eq!(count(HALF, RANGE, &product, ", num_stages=given()"), 0);
        assert_eq!(count(HALF, RANGE, &product, ", **options"), 0);
        assert_eq!(count(HALF, "range(0, BK, BK)", &product, five), 0, "one round");
        assert_eq!(count(HALF, "tl.static_range(0, 4)", &product, five), 0);
        assert_eq!(count(HALF, "tl.range(0, K, BK, warp_specialize=True)", &product, five), 0);
        assert_eq!(count(HALF, RANGE, &format!("{product}\ntl.debug_barrier()"), five), 0);
        assert_eq!(
            count(HALF, RANGE, &format!("{product}\nfor i in range(K):\n    acc += i"), five),
            0,
            "an outer loop"
        );
        assert_eq!(count(HALF, RANGE, &product.replace("start + k", "k"), five), 0, "the same tile in each round");
        assert_eq!(
            count(HALF, RANGE, &product.replace("acc = tl.dot(a, b, acc)", "acc = tl.dot(a * 2, b * 2, acc)"), five),
            0
        );
        let indirect = product.replace("start + k)[None", "tl.load(y + start) + k)[None");
        assert_eq!(count(HALF, RANGE, &indirect, five), 0);
    }
}
