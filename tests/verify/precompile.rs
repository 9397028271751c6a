//! Tests of what happens before the first call: the requested call is recorded, and slow candidates are compiled in
//! parallel.

use crate::judging::{Project, SCALE, text};

/// Calls the function that launches, in another file.
const CALLER: &str = "\
import torch

from ops import scale


def entry(x):
    return scale(x) + 0


def total():
    return entry(torch.ones(5, 12)).sum().item()


if __name__ == '__main__':
    total()
";

#[test]
fn a_caller_of_a_launching_function_is_recorded_if_it_is_named() {
    let project = Project::new(CALLER, &[]);
    project.write("ops.py", &SCALE.replace("# warpsmith: workload entry=scale x=f32[5,12]", ""));
    project.write("wrong.py", &CALLER.replace("+ 0", "+ 1"));
    for (candidate, verdict) in [("original.py", "accepted"), ("wrong.py", "refused (output)")] {
        let ran = project.verify(&[candidate, "--entry", "entry", "--quick"]);
        assert!(text(&ran.stdout).contains(verdict), "{}{}", text(&ran.stdout), text(&ran.stderr));
    }
    // The requested entry is recorded, with or without tensors.
    let ran = project.verify(&["original.py", "--entry", "total", "--quick"]);
    assert!(text(&ran.stdout).contains("the recorded call"), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let ran = project.verify(&["original.py", "--entry", "gone", "--quick"]);
    assert!(text(&ran.stderr).contains("called no such function as `gone`"), "{}", text(&ran.stderr));
    // For a file that fails, the message is not that it called nothing.
    project.write("original.py", &CALLER.replace("    total()", "    raise ValueError('broken')"));
    let ran = project.verify(&["original.py", "--entry", "other", "--quick"]);
    assert!(text(&ran.stderr).contains("failed:") && text(&ran.stderr).contains("broken"), "{}", text(&ran.stderr));
}

#[test]
fn what_takes_long_to_compile_is_compiled_by_several_processes() {
    let slow = "    if type(x).__name__ == 'FakeTensor': time.sleep(2.1)\n    return out\n";
    let project = Project::new(SCALE, &[]);
    project.write("slow.py", &SCALE.replace("    return out\n", slow));
    let ran = project.verify_with(&[("WARPSMITH_LOG", "warpsmith=debug")], &["slow.py"]);
    assert!(text(&ran.stdout).contains("accepted"), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let loads = |process: &str| {
        let (name, request) = (format!("process=\"{process}"), "request=\"Load\"");
        text(&ran.stderr).lines().filter(|line| line.contains(&name) && line.contains(request)).count()
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(loads("candidate"), 1 + if cores > 1 { cores.min(4) } else { 0 }, "{}", text(&ran.stderr));
    assert_eq!(loads("original"), 1);
}
