//! Tests without a GPU: candidates are compiled for one and ranked by the analytical model.

use std::process::Output;

use super::{Project, text};

/// One row for each program, four warps for 256 elements.
const ROWS: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=double x=f16[65536,256]

@triton.jit
def double_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, x * 2.0 - tl.max(x, axis=0), mask=mask)

def double(x):
    assert x.is_cuda
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    double_kernel[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols), num_warps=4)
    return out
"#;

/// A row for each program, in several iterations without a product: Triton does not use the number of stages.
const ROUNDS: &str = r#"
import torch
import triton
import triton.language as tl

# warpsmith: workload entry=double x=f16[16384,1024]

@triton.jit
def double_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        tl.store(out_ptr + row * n_cols + cols, x * 2.0, mask=cols < n_cols)

def double(x):
    out = torch.empty_like(x)
    double_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
    return out
"#;

fn predict(project: &Project, more: &[&str]) -> Output {
    let mut command = project.command(&["optimize", "rows.py", "--predict", "h200"]);
    command.args(more).env_remove("WARPSMITH_FAKE_DEVICE").output().unwrap()
}

#[test]
fn predicted_speedups_are_marked_as_such_without_a_gpu() {
    // One candidate at a time, so that the search is the same each time.
    let settings = "[optimize]\ncandidates = 40\nparallel = 1\n";
    let project = Project::new(&[("rows.py", ROWS), ("warpsmith.toml", settings)]);
    let ran = predict(&project, &["--budget", "240s"]);
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", text(&ran.stderr));
    assert!(said.contains("is predicted ") && said.contains("by a model of the NVIDIA H200, neither run nor checked"));
    assert!(said.contains("\nPredicted for ") && !said.contains("Measured"), "{said}");
    assert_eq!(std::fs::read_to_string(project.path("rows.py")).unwrap(), ROWS);
    // Without measurements nothing is learned.
    let skills = project.run(&["skills", "--format", "json"]);
    assert!(!text(&skills.stdout).contains("double") && !text(&skills.stdout).contains("H200"));
    let refused = predict(&project, &["--apply"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("--apply"), "{}", text(&refused.stderr));
    // A prediction does not claim that a candidate is correct.
    let wrong = ROWS.replace("x * 2.0", "x * 3.0").replace("num_warps=4", "num_warps=1");
    std::fs::write(project.path("wrong.py"), wrong).unwrap();
    let mut verify = project.command(&["verify", "rows.py", "wrong.py", "--predict", "h200", "--json"]);
    let verified = verify.env_remove("WARPSMITH_FAKE_DEVICE").output().unwrap();
    let verdict: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((verdict["verdict"].as_str(), verified.status.code()), (Some("predicted"), Some(2)));
    assert!(verdict["predicted"]["candidate"].as_f64() < verdict["predicted"]["original"].as_f64(), "{verdict}");
    assert_eq!((verdict["offer"].as_bool(), verdict["speedup"].is_null()), (Some(false), true));
    let unknown = project.command(&["optimize", "rows.py", "--predict", "mi300"]).output().unwrap();
    assert!(text(&unknown.stderr).contains("there is no model of the GPU `mi300`; choose one of NVIDIA B200"));
    // But a candidate that does less than the original is detected.
    for (from, to, what) in [
        ("(n_rows,)", "(n_rows // 2,)", "it reads 16.777 MB of tensor 1 of the call, the original 33.554 MB"),
        ("triton.next_power_of_2(n_cols)", "64", "it reads 8.389 MB of tensor 1 of the call, the original 33.554 MB"),
    ] {
        std::fs::write(project.path("less.py"), ROWS.replace(from, to)).unwrap();
        let mut verify = project.command(&["verify", "rows.py", "less.py", "--predict", "h200"]);
        let verified = verify.env_remove("WARPSMITH_FAKE_DEVICE").output().unwrap();
        let said = text(&verified.stdout) + &text(&verified.stderr);
        assert!(verified.status.code() == Some(1) && said.contains("it does less"), "{said}");
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn candidates_with_the_machine_code_of_another_one_are_counted() {
    let settings = "[optimize]\ncandidates = 20\nparallel = 1\n";
    let project = Project::new(&[("rows.py", ROUNDS), ("warpsmith.toml", settings)]);
    let ran = predict(&project, &["--budget", "240s"]);
    let said = text(&ran.stdout);
    assert!(said.contains("of them with the machine code of another one"), "{said}{}", text(&ran.stderr));
}
