//! Tests of arguments that were not recorded: other strings, arguments left out, and arguments that the recording omits.

use crate::judging::{Edit, Project};

const SHIFTED: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=shift x=f32[5,16] y=f32[5,16] kind="twice"

@triton.jit
def shift_kernel(x_ptr, y_ptr, out_ptr, n, factor, HAS_Y: tl.constexpr, ROUNDED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask) * factor
    if HAS_Y:
        x += tl.load(y_ptr + at, mask=mask)
    if ROUNDED:
        x = tl.floor(x)
    tl.store(out_ptr + at, x, mask=mask)

def shift(x, y=None, kind="once", rounded=False):
    factor = {"once": 1.0, "twice": 2.0}[kind]
    x = x.contiguous()
    y = y if y is None else y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    BLOCK = 16
    shift_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, factor, HAS_Y=y is not None, ROUNDED=rounded, BLOCK=BLOCK)
    return out
"#;

#[test]
fn argument_values_named_in_the_file_are_tried() {
    let refused: &[(&str, &str, Edit<'_>)] = &[
        ("word", "`kind` \"twice\" → \"once\"", ("{\"once\": 1.0, \"twice\": 2.0}[kind]", "2.0")),
        (
            "left_out",
            "`y` float32[5,16] → None",
            ("    x = x.contiguous()\n", "    x = x.contiguous()\n    y = x if y is None else y\n"),
        ),
        ("switch", "`rounded` True", ("ROUNDED=rounded", "ROUNDED=False")),
        ("fewer", "`rounded` True", (", rounded=False):", "):\n    rounded = False")),
    ];
    let right = ("z_right", ("BLOCK = 16", "BLOCK = 32"));
    let all: Vec<_> = refused.iter().map(|(name, _, edit)| (*name, *edit)).chain([right]).collect();
    let (reports, _) = Project::new(SHIFTED, &all).batch(&["--jobs", "2"]);
    assert_eq!(reports.len(), all.len());
    for report in reports {
        let evidence = report.0["evidence"].as_str().unwrap_or_default();
        let expected = refused.iter().find(|(name, ..)| *name == report.name());
        let (said, words) = expected.map_or(("accepted", ""), |(_, words, _)| ("values", *words));
        let is_run = report.name() == "fewer";
        assert_eq!(report.said(), if is_run { "run" } else { said }, "{}", report.0);
        assert!(evidence.contains(words), "{}", report.0);
    }
}
