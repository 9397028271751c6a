//! Tests of kernels that cast to single precision for all inputs: a candidate that is more exact than the original is
//! accepted, one that is less exact is not.

use crate::judging::{Edit, Project};

/// Rows around zero with a variance of one, in two passes, multiplied by the inputs. Only that product is not cast.
const NORM: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=norm x=f32[6,64]

@triton.jit
def norm_kernel(x_ptr, out_ptr, stride, step, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < columns
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * stride + at * step, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / columns
    rest = tl.where(mask, x - mean, 0.0)
    var = tl.sum(rest * rest, 0) / columns
    y = (x - mean) / tl.sqrt(var + 1e-5)
    y *= tl.load(x_ptr + row * stride + at * step, mask=mask)
    tl.store(out_ptr + row * columns + at, y, mask=mask)

def norm(x):
    BLOCK = triton.next_power_of_2(x.shape[1])
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    norm_kernel[(rows,)](x, out, x.stride(0), x.stride(1), columns, BLOCK=BLOCK)
    return out
"#;

const TWO_PASSES: &str = "var = tl.sum(rest * rest, 0) / columns\n";
/// The difference of two large numbers where the mean is far from zero.
const SQUARES: &str = "var = tl.maximum(tl.sum(x * x, 0) / columns - mean * mean, 0.0)\n";
/// The values are far from zero, whatever the inputs are.
const FAR: &str = "to(tl.float32)\n    x = tl.where(mask, x + 60.0, 0.0)\n";
const NEAR: &str = "to(tl.float32)\n";
const OTHERWISE: Edit<'_> = ("(x - mean) / tl.sqrt(var + 1e-5)", "(x - mean) * (1.0 / tl.sqrt(var + 1e-5))");

#[test]
fn one_pass_variance_is_refused_for_values_far_from_zero() {
    let project = Project::new(NORM, &[("squares", (TWO_PASSES, SQUARES)), ("z_right", OTHERWISE)]);
    for report in project.batch(&[]).0 {
        let (said, words) = if report.name() == "squares" { ("values", "all far from zero") } else { ("accepted", "") };
        assert_eq!(crate::otherwise(&report, said, words), None);
    }
}

#[test]
fn two_passes_instead_of_squares_are_right() {
    for norm in [NORM.to_owned(), NORM.replace(NEAR, FAR)] {
        let project = Project::new(&norm.replace(TWO_PASSES, SQUARES), &[("two_passes", (SQUARES, TWO_PASSES))]);
        for report in project.batch(&[]).0 {
            assert_eq!(crate::otherwise(&report, "accepted", ""), None);
        }
    }
}

#[test]
fn candidates_are_judged_if_the_original_does_not_compile_in_double_precision() {
    // Bits of the wrong width: the compiler refuses the file in double precision.
    let bits = NORM.replace(
        "other=0.0).to(tl.float32)\n",
        "other=0.0).to(tl.float32)\n    tl.static_assert(x.dtype.primitive_bitwidth == 32)\n",
    );
    let project =
        Project::new(&bits, &[("right", OTHERWISE), ("wrong", ("/ columns\n    rest", "/ (columns + 1)\n    rest"))]);
    for report in project.batch(&[]).0 {
        let said = if report.name() == "wrong" { "output" } else { "accepted" };
        assert_eq!(crate::otherwise(&report, said, ""), None);
    }
}

/// The mean of a row, summed in parts of four, is subtracted, which is exact for equal elements by chance. The largest
/// and the least element are recorded, and the constant contents of trials have their digits.
const CENTRED: &str = r#"
import torch
import triton
import triton.language as tl

@triton.jit
def centred_kernel(x_ptr, out_ptr, stride, step, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, columns, 4):
        at = start + tl.arange(0, 4)
        total += tl.sum(tl.load(x_ptr + row * stride + at * step, mask=at < columns, other=0.0), axis=0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * stride + at * step, mask=mask, other=0.0)
    y = 1000.0 * (x - total / columns)
    tl.store(out_ptr + row * columns + at, y, mask=mask)

def centred(x):
    rows, columns = x.shape
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    centred_kernel[(rows,)](x, out, x.stride(0), x.stride(1), columns, BLOCK=triton.next_power_of_2(columns))
    return out

if __name__ == "__main__":
    centred(torch.arange(80).reshape(5, 16) / 3 + 1 / 7)
"#;

#[test]
fn rounding_is_tolerated_if_the_original_is_exact_by_chance() {
    // Three times a number rounds; four times a number does not.
    let one_by_one = (
        "range(0, columns, 4):\n        at = start + tl.arange(0, 4)",
        "range(0, columns, 1):\n        at = start + tl.arange(0, 1)",
    );
    let wrong = ("total / columns)", "total / columns) + 1e-2");
    let candidates: &[(&str, Edit<'_>)] = &[("one_by_one", one_by_one), ("wrong", wrong)];
    let project = Project::new(CENTRED, candidates);
    let (reports, _) = project.batch(&["--jobs", "2"]);
    for report in reports {
        let is_right = report.name() == "one_by_one";
        assert_eq!(report.said() == "accepted", is_right, "{}", report.0);
    }
}
