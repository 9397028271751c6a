//! Tests of results that depend on the sizes of tiles in the original itself: what a search for the greatest element of
//! a row by chunks returns for a row with NaN.

use crate::judging::{Edit, Project};

const FIRST: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=greatest x=f32[96,200]

@triton.jit
def greatest_kernel(x_ptr, at_ptr, value_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = float("-inf")
    where = 0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
        value = tl.max(x, 0)
        index = start + tl.argmax(x, 0)
        better = value > best
        best = tl.where(better, value, best)
        where = tl.where(better, index, where)
    tl.store(at_ptr + row, where)
    tl.store(value_ptr + row, best)

def greatest(x):
    rows, columns = x.shape
    at = torch.empty(rows, dtype=torch.int32, device=x.device)
    value = torch.empty(rows, dtype=x.dtype, device=x.device)
    BLOCK = 256
    greatest_kernel[(rows,)](x, at, value, columns, BLOCK=BLOCK)
    return at, value
"#;

const NARROWER: Edit<'_> = ("BLOCK = 256", "BLOCK = 128");

#[test]
fn results_that_depend_on_tile_sizes_in_the_original_are_no_difference() {
    let project = Project::new(FIRST, &[("narrower", NARROWER)]);
    let (reports, _) = project.batch(&[]);
    assert_eq!(reports.iter().map(|report| crate::otherwise(report, "accepted", "")).collect::<Vec<_>>(), [None]);
    let passed = reports[0].0["checks"].as_array().unwrap().iter();
    let texts: Vec<&str> = passed.filter_map(|check| check["evidence"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("others in the original as well")), "{texts:?}");
}

#[test]
fn other_results_on_rows_without_nan_are_refused() {
    let wrong: [(&str, Edit<'_>); 2] =
        [("starts_at_zero", ("best = float(\"-inf\")", "best = 0.0")), ("last", ("value > best", "value >= best"))];
    // With several chunks in a row.
    let project = Project::new(&FIRST.replace("BLOCK = 256", "BLOCK = 64"), &wrong);
    for report in project.batch(&[]).0 {
        // Which trial shows it first depends on the contents.
        assert_eq!(report.0["verdict"], "refused", "{}", report.0);
    }
}
