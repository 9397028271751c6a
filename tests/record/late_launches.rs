//! Tests of launches that come later than the first call.

use serde_json::{Value, json};

use super::{HEAD, Project, entries, test_python, text};

#[test]
fn a_function_is_recorded_from_its_first_launch_on() {
    let main = "
TRITON = False

def double(x):
    if not TRITON:
        return x * 2
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out

for _ in range(40):
    double(torch.ones(50))
TRITON = True
for _ in range(5):
    double(torch.ones(50))
";
    let (_project, workloads) = Project::recorded(main);
    // The first of the five calls is seen only from inside, by its launch.
    assert_eq!(entries(&workloads), ["double", "double_kernel"]);
    assert_eq!(workloads[0]["count"], json!(4));
}

const OP: &str = "
def double(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out
";

/// A recorded call has tensors: it is not the program around it.
#[test]
fn functions_with_tensors_and_launches_are_recorded_but_not_the_program() {
    let main = format!(
        "{OP}
def main(repeat=2):
    x, out = torch.ones(50), torch.zeros(50)
    for _ in range(repeat):
        double_kernel[(2,)](x, out, 50, BLOCK=32)
    assert double(x).sum() == out.sum()

def bench():
    x = torch.ones(20)
    double_kernel[(1,)](x, x, 20, BLOCK=32)
    return 0.5

def made(n, dtype):
    out = torch.ones(n, dtype=dtype)
    double_kernel[(1,)](out, out, n, BLOCK=16)
    return {{'out': out}}

def check(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, 9, BLOCK=8)
    assert out[0] == 2

main()
for _ in range(50):
    bench()
made(10, torch.float32)
check(torch.ones(9))
"
    );
    let (project, workloads) = Project::recorded(&main);
    // A function that makes a tensor from numbers is also an entry; one that returns nothing has its launch recorded
    // beside it.
    assert_eq!(entries(&workloads), ["check", "double", "double_kernel", "double_kernel", "double_kernel", "made"]);
    let sizes =
        |workload: &Value| (workload["kwargs"][0][1].clone(), workload["args"][2].clone(), workload["count"].clone());
    let mut launches: Vec<_> = workloads[2..5].iter().map(sizes).collect();
    launches.sort_by_key(|(_, n, _)| n["int"].as_i64());
    let of = |block: i64, n: i64, count: u64| (json!({"int": block}), json!({"int": n}), json!(count));
    assert_eq!(launches, [of(8, 9, 1), of(32, 20, 50), of(32, 50, 2)]);
    let said = text(&project.run(&["workloads", "list"]).stdout);
    assert!(!said.contains("main(") && !said.contains("bench"), "{said}");
}

#[test]
fn launches_before_an_exception_are_recorded() {
    let main = format!(
        "{OP}
def fails(x):
    out = double(x)
    double_kernel[(1,)](out, out, x.numel(), BLOCK=128)
    if x.numel() == 50:
        raise ValueError('no')

def around(x):
    try:
        fails(x)
    except ValueError:
        return x * 2

for _ in range(20):
    try:
        fails(torch.ones(50))
    except ValueError:
        pass
fails(torch.ones(40))
around(torch.ones(50))
"
    );
    let (_project, workloads) = Project::recorded(&main);
    // No call with 50 elements is complete, and the one with 40 is known to return nothing.
    assert_eq!(entries(&workloads), ["double", "double", "double_kernel", "double_kernel", "fails"]);
    assert_eq!(workloads[4]["args"][0]["tensor"]["shape"], json!([40]));
    assert!(workloads[2..4].iter().all(|launch| launch["kwargs"][0][1] == json!({"int": 128})));
    assert!(workloads[2..4].iter().any(|launch| launch["count"] == json!(21)), "{:?}", workloads[2]["count"]);
}

/// A launch is covered by the call around it only if that call ends.
#[test]
fn launches_of_a_call_that_never_ends_are_kept() {
    let main = format!(
        "{OP}
import os

def ends(x):
    double_kernel[(1,)](x, x, 50, BLOCK=256)

def serve(x):
    ends(x)
    double(x)
    double_kernel[(1,)](x, x, 50, BLOCK=128)
    os.kill(os.getpid(), 9)

serve(torch.ones(50))
"
    );
    let project = Project::new(&[("main.py", &format!("{HEAD}{main}"))]);
    let ran = project.run(&["record", "--", test_python().to_str().unwrap(), "main.py"]);
    assert_eq!(ran.status.code(), Some(137), "{}", text(&ran.stderr));
    let workloads = project.workloads();
    assert_eq!(entries(&workloads), ["double", "double_kernel", "ends"]);
    assert_eq!(workloads[1]["kwargs"][0][1], json!({"int": 128}));
}

#[test]
fn frequent_calls_replace_single_ones() {
    let main = format!(
        "{OP}
for size in range(1, 33):
    double(torch.ones(size))
for step in range(6):
    double(torch.ones(40))
    double(torch.ones(50 + step))
double(torch.ones(60))
double(torch.ones(60))
"
    );
    let project =
        Project::new(&[("main.py", &format!("{HEAD}{main}")), ("warpsmith.toml", "workloads.max-shapes = 3\n")]);
    let workloads = project.record();
    let of = |it: &Value| (it["args"][0]["tensor"]["shape"][0].as_i64().unwrap(), it["count"].as_u64().unwrap());
    let mut counts: Vec<_> = workloads.iter().map(of).collect();
    counts.sort_unstable();
    assert_eq!(counts, [(1, 1), (40, 6), (60, 2)]);
}
