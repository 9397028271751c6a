//! Tests of calls that were not recorded: other numbers, sizes and contents; and of what torch does in them.

use crate::judging::{Edit, FASTER, Project, text};

/// Groups of columns with a number each; like many originals, it refuses columns that groups do not divide.
const GROUPS: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=shift x=f32[5,16] factor=3.0 groups=4 negated=False added=[2.5,7]

@triton.jit
def shift_kernel(x_ptr, out_ptr, stride, step, columns, width, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * stride + at * step, mask=mask)
    tl.store(out_ptr + row * columns + at, x * factor + at // width, mask=mask)

def shift(x, factor, groups, negated, added):
    BLOCK = 4
    rows, columns = x.shape
    if columns % groups:
        raise ValueError("groups of equal width")
    width = columns // groups
    factor = -factor if negated else factor
    factor = factor * added[0] / 2.5 + (added[1] - 7)
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(columns, BLOCK))
    shift_kernel[grid](x, out, x.stride(0), x.stride(1), columns, width, factor, BLOCK=BLOCK)
    return out
"#;

const RETURN: &str = "    return out\n";
/// Correct, but on more elements than bookkeeping needs.
const IN_TORCH: &str = "        torch.ones(5000).sin()\n        out = x * factor + torch.arange(columns) // width\n";

#[test]
fn unrecorded_calls_reveal_fixed_numbers_and_torch_fallbacks() {
    let other_sizes = format!("    if columns != 16:\n{IN_TORCH}    return out\n");
    let later = format!("    CALLS.append(1)\n    if len(CALLS) > 60:\n{IN_TORCH}    return out\nCALLS = []\n");
    let unfilled = format!("    if not torch.empty(8).isnan().all():\n{IN_TORCH}    return out\n");
    let refused: &[(&str, &str, &str, Edit<'_>)] = &[
        ("factor", "values", "numbers 3 → 2.21", ("columns, width, factor, BLOCK=B", "columns, width, 3.0, BLOCK=B")),
        ("groups", "values", "numbers 4 → 2", ("columns // groups", "columns // 4")),
        ("negated", "values", "numbers False → True", ("-factor if negated else factor", "factor")),
        ("held", "values", "numbers added[0] 2.5 → 1.86", ("factor * added[0] / 2.5", "factor")),
        ("held_integer", "values", "numbers added[1] 7 → 6", ("added[1] - 7", "0")),
        ("columns", "sizes", "sizes 16 → 12", ("triton.cdiv(columns, BLOCK))", "4 if columns == 16 else 2)")),
        ("other_sizes", "fallback", "aten::sin", (RETURN, &other_sizes)),
        ("later", "fallback", "aten::sin", (RETURN, &later)),
        ("unfilled", "fallback", "aten::sin", (RETURN, &unfilled)),
    ];
    let all: Vec<_> = refused.iter().map(|(name, _, _, edit)| (*name, *edit)).chain([("z_right", FASTER)]).collect();
    let (reports, _) = Project::new(GROUPS, &all).batch(&["--jobs", "2"]);
    assert_eq!(reports.len(), all.len());
    for report in reports {
        let expected = refused.iter().find(|(name, ..)| *name == report.name());
        let (said, words) = expected.map_or(("accepted", ""), |(_, said, words, _)| (*said, *words));
        assert_eq!(crate::otherwise(&report, said, words), None);
    }
}

#[test]
fn a_kernel_without_visible_results_is_undecided() {
    let hidden = GROUPS.replace("    return out\n", "    global LAST\n    LAST = out\n");
    let project = Project::new(&hidden, &[("wrong", ("x * factor", "x + factor"))]);
    let ran = project.verify(&["candidates/wrong.py", "--quick"]);
    let said = text(&ran.stdout) + &text(&ran.stderr);
    assert!(ran.status.code() == Some(2) && said.contains("shows neither in what the function returns"), "{said}");
}

/// Rows of whole tiles without masks, as in many attention kernels.
const UNMASKED: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=totals x=f32[5,128]

@triton.jit
def totals_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x_ptr + row * columns + start + tl.arange(0, BLOCK))
    tl.store(out_ptr + row, tl.sum(total))

def totals(x):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    totals_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
    return out
"#;

#[test]
fn sizes_at_which_the_original_reads_out_of_bounds_are_skipped() {
    // A candidate that reads less beside its arguments is right wherever the original is; one with larger tiles is
    // right only where they divide the size.
    let candidates: &[(&str, Edit<'_>)] = &[
        ("smaller", ("BLOCK=16", "BLOCK=8")),
        ("greater", ("BLOCK=16", "BLOCK=32")),
        ("fit", ("BLOCK=16", "BLOCK=32 if x.shape[1] % 32 == 0 else 16")),
    ];
    let (reports, _) = Project::new(UNMASKED, candidates).batch(&["--jobs", "2"]);
    assert_eq!(reports.len(), candidates.len());
    for report in reports {
        let (said, words) = if report.name() == "greater" { ("sizes", "sizes 128 → 112") } else { ("accepted", "") };
        assert_eq!(crate::otherwise(&report, said, words), None);
    }
}
