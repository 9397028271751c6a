//! Tests of how far a candidate is right.

use crate::judging::{Edit, Project};

const LARGEST: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=largest x=f32[48,120]

@triton.jit
def largest_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    best = tl.max(x, 0)
    best = tl.where(tl.sum((x != x).to(tl.int32), 0) > 0, float("nan"), best)
    tl.store(out_ptr + row, best)

def largest(x):
    rows, columns = x.shape
    out = torch.empty(rows, dtype=x.dtype, device=x.device)
    largest_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out
"#;

/// What each candidate does otherwise, by the name of the grade that it reaches.
const CANDIDATES: [(&str, Edit<'_>); 3] = [
    ("finite", ("tl.sum((x != x).to(tl.int32), 0) > 0", "columns < 0")),
    ("recorded", ("other=float(\"-inf\")", "other=-5.0")),
    ("strict", ("tl.max(x, 0)", "tl.max(tl.where(at < columns, x, float(\"-inf\")), 0)")),
];

#[test]
fn a_verdict_says_how_far_a_candidate_is_right() {
    let project = Project::new(LARGEST, &CANDIDATES);
    let grades = ["recorded", "finite", "strict"];
    for (at, grade) in grades.into_iter().enumerate() {
        for report in project.batch(&["--grade", grade]).0 {
            let name = report.name();
            let reached = grades.iter().position(|one| *one == name).unwrap();
            assert_eq!(report.0["grade"]["grade"], name.as_str(), "{}", report.0);
            assert_eq!(report.0["grade"]["broken_by"].is_null(), name == "strict", "{}", report.0);
            let expected = if at <= reached { "accepted" } else { "refused" };
            assert_eq!(report.0["verdict"], expected, "{grade}: {}", report.0);
        }
    }
}
