//! Tests of speedups that are not believed after one judgement.

use crate::judging::{Edit, Project};

const SLOW: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=scaled x=f32[3000]

@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 3.0, mask=at < n)

def scaled(x):
    out = torch.empty_like(x)
    BLOCK = 16
    scale_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
    return out
"#;

const FAST: Edit<'_> = ("BLOCK = 16", "BLOCK = 2048");

/// The simulated device has no least time for a call, so that nothing is offered there.
#[test]
fn a_very_great_speedup_is_judged_twice() {
    let project = Project::new(SLOW, &[("fast", FAST)]);
    let report = &project.batch(&[]).0[0];
    assert!(report.0["speedup"].as_f64().unwrap() > 10.0, "{}", report.0);
    let mut checks = report.0["checks"].as_array().unwrap().iter();
    assert!(checks.any(|check| check["name"] == "a second judgement"), "{}", report.0);
    assert!(report.0["objection"].as_str().unwrap().contains("least time of the call"), "{}", report.0);
}
