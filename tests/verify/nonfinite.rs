//! Tests of NaN. Where a kernel multiplies it by zero, the result depends on the tile size; for other NaN a candidate
//! is responsible.

use crate::judging::{Edit, Project};

/// Selects each row from all rows up to its tile by weights: all others are multiplied by zero.
const PICKED: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=picked x=f32[6,16,8]

@triton.jit
def picked_kernel(x_ptr, out_ptr, batch, stride, step, rows, columns, TILE: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * batch
    out_ptr += tl.program_id(0) * rows * columns
    row = tl.program_id(1) * TILE + tl.arange(0, TILE)
    at = tl.arange(0, BLOCK)
    total = tl.zeros([TILE, BLOCK], dtype=tl.float32)
    for start in range(0, (tl.program_id(1) + 1) * TILE, TILE):
        others = start + tl.arange(0, TILE)
        mask = (others[:, None] < rows) & (at[None, :] < columns)
        x = tl.load(x_ptr + others[:, None] * stride + at[None, :] * step, mask=mask, other=0.0)
        weight = tl.where(others[None, :] == row[:, None], 1.0, 0.0)
        total += tl.sum(weight[:, :, None] * x[None, :, :], 1)
    tl.store(out_ptr + row[:, None] * columns + at[None, :], total, mask=(row[:, None] < rows) & (at[None, :] < columns))

def picked(x):
    batches, rows, columns = x.shape
    out = torch.empty((batches, rows, columns), dtype=x.dtype, device=x.device)
    TILE = 4
    BLOCK = triton.next_power_of_2(columns)
    picked_kernel[(batches, triton.cdiv(rows, TILE))](x, out, *x.stride(), rows, columns, TILE=TILE, BLOCK=BLOCK)
    return out
"#;

const PRODUCT: &str = "weight[:, :, None] * x[None, :, :], 1)";
const CHOICE: &str = "tl.where(weight[:, :, None] != 0, x[None, :, :], 0.0), 1)";
const TILES: Edit<'_> = ("TILE = 4", "TILE = 8");

#[test]
fn nan_multiplied_by_zero_in_both_versions_is_no_difference() {
    let project = Project::new(PICKED, &[("wider", TILES)]);
    let (reports, _) = project.batch(&[]);
    assert_eq!(reports.iter().map(|report| crate::otherwise(report, "accepted", "")).collect::<Vec<_>>(), [None]);
    let passed = reports[0].0["checks"].as_array().unwrap().iter();
    let texts: Vec<&str> = passed.filter_map(|check| check["evidence"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("multiply infinities or NaN by zero")), "{texts:?}");
}

#[test]
fn new_nan_is_refused_if_the_original_selects_instead_of_multiplying() {
    let project = Project::new(&PICKED.replace(PRODUCT, CHOICE), &[("multiplies", (CHOICE, PRODUCT))]);
    for report in project.batch(&[]).0 {
        assert_eq!(crate::otherwise(&report, "values", "nan instead of"), None);
    }
}

/// Edits that add a second tensor, of which every row counts: that must not hide that only one row of the first tensor
/// does.
const BESIDE: [(&str, &str); 5] = [
    ("entry=picked x=f32[6,16,8]", "entry=picked x=f32[6,16,8] y=f32[6,16,64]"),
    ("def picked_kernel(x_ptr,", "def picked_kernel(x_ptr, y_ptr,"),
    (
        "    tl.store(",
        "    counts = (tl.program_id(0) * rows + row[:, None]) * 64 + tl.arange(0, 64)[None, :]\n    y = tl.load(y_ptr + counts, mask=row[:, None] < rows, other=0.0)\n    total += tl.sum(tl.where(y > 0, y, 0.0), 1)[:, None]\n    tl.store(",
    ),
    ("def picked(x):", "def picked(x, y):\n    y = y.contiguous()"),
    ("(x, out, *x.stride()", "(x, y, out, *x.stride()"),
];

#[test]
fn nan_is_traced_to_its_tensor_beside_a_second_tensor() {
    let text = BESIDE.iter().fold(PICKED.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let project = Project::new(&text, &[("wider", TILES)]);
    for report in project.batch(&[]).0 {
        assert_eq!(crate::otherwise(&report, "accepted", ""), None);
    }
    let project = Project::new(&text.replace(PRODUCT, CHOICE), &[("multiplies", (CHOICE, PRODUCT))]);
    for report in project.batch(&[]).0 {
        assert_eq!(crate::otherwise(&report, "values", "nan instead of"), None);
    }
}
