//! Tests that a candidate runs under the memory checker while its other checks run, before it is offered.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{BUDGET, Project, SCALE, text};

/// Runs the given call, and reports an error wherever the block is not the user's. Records whether it started before
/// that was known.
const CHECKER: &str = r#"#!/usr/bin/env python3
import json, os, re, subprocess, sys, time
args = sys.argv[1:]
tool, log = (args[args.index(name) + 1] for name in ("--tool", "--log-file"))
command = args[args.index("-c") - 1:]
call = re.search(r'checked\("(.*?)"\)', command[2])[1]
began = time.time()
ran = subprocess.run(command)
if os.path.getmtime(call) > began + 0.3:
    open(f"{sys.argv[0]}.{tool}", "w")
with open(call) as file:
    text = open(json.load(file)["file"]).read()
found = tool == "memcheck" and "BLOCK = 16\n" not in text and FINDS
end = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "RACECHECK SUMMARY: 0 hazards displayed"}[tool]
lines = ["Invalid __global__ read of size 4 bytes"] * found + [end]
with open(log, "w") as file:
    file.writelines(f"========= {line}\n" for line in lines)
sys.exit(77 if found else ran.returncode)
"#;

/// The output of a search, and the journal entries about the candidate that was to be offered.
fn searched(finds: bool) -> (Value, Vec<Value>) {
    let kernel = SCALE.replace("triton.cdiv(n, 16)", "triton.cdiv(n, BLOCK)").replace("BLOCK=16", "BLOCK=BLOCK");
    let kernel = kernel.replace("def scale(x):\n", "def scale(x):\n    BLOCK = 16\n");
    let checker = CHECKER.replace("FINDS", if finds { "True" } else { "False" });
    let numbers_only = ("warpsmith.toml", "[optimize]\nrewrites = false\ncandidates = 6\n");
    let project = Project::new(&[("scale.py", &kernel), numbers_only, ("checker", &checker)]);
    let checker = project.path("checker");
    std::fs::set_permissions(&checker, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = project.command(&["optimize", "scale.py", "--budget", BUDGET, "--json"]);
    let ran = command.env("WARPSMITH_FAKE_SANITIZER", checker).output().unwrap();
    let outcome = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
    for tool in ["memcheck", "racecheck"] {
        assert!(project.path(&format!("checker.{tool}")).exists(), "{tool} had not started: {}", text(&ran.stderr));
    }
    let run = std::fs::read_dir(project.path(".warpsmith/runs")).unwrap().next().unwrap().unwrap().path();
    let journal = std::fs::read_to_string(run).unwrap();
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (outcome, entries.filter(|entry| entry["what"] == "confirmed").collect())
}

#[test]
fn candidates_with_sanitizer_findings_are_not_offered() {
    let (outcome, confirmed) = searched(false);
    assert!(outcome["offer"].is_object(), "{outcome}");
    let checks = confirmed[0]["checks"].to_string();
    assert!(checks.contains(r#"["compute-sanitizer, memcheck","it finds nothing"]"#), "{checks}");
    assert!(checks.contains(r#"["compute-sanitizer, racecheck","it finds nothing"]"#), "{checks}");

    let (outcome, confirmed) = searched(true);
    let refused = confirmed[0]["refused"].to_string();
    assert!(refused.contains("Invalid __global__ read") && refused.contains("has no such error"), "{refused}");
    let change = outcome["offer"]["change"].as_str().unwrap_or_default();
    assert!(!change.contains("BLOCK"), "{outcome}");
}

/// Checks its arguments, runs the given call, and reports that the multiprocessors were busy.
const PROFILER: &str = r#"#!/usr/bin/env python3
import subprocess, sys
args = sys.argv[1:]
assert args[args.index("--clock-control") + 1] == "none" and args[args.index("--kernel-name") + 1] == "regex:^(scale_kernel)"
# As the real one, it locks a file of its own from inside the program.
args[-1] += f"\nopen({sys.argv[0] + '.lock'!r}, 'w')"
ran = subprocess.run(args[args.index("-c") - 1:])
metrics = args[args.index("--metrics") + 1].split(",")
values = {"gpu": "2,000", "dram": "20.5", "sm": "90.0"}
with open(args[args.index("--log-file") + 1], "w") as file:
    print("==PROF== Connected to process 1", file=file)
    print('"ID"', '"Kernel Name"', *(f'"{name}"' for name in metrics), sep=",", file=file)
    print('""', '""', *('"%"' for _ in metrics), sep=",", file=file)
    print('"0"', '"scale_kernel"', *(f'"{values[name.split("__")[0]]}"' for name in metrics), sep=",", file=file)
sys.exit(ran.returncode)
"#;

/// The lessons about kernels with this bound after a search with this profiler.
fn learned(kernel: &str, profiler: &str) -> Vec<String> {
    let numbers_only = ("warpsmith.toml", "[optimize]\nrewrites = false\ncandidates = 12\n");
    let project = Project::new(&[("scale.py", kernel), numbers_only, ("profiler", profiler)]);
    let profiler = project.path("profiler");
    std::fs::set_permissions(&profiler, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = project.command(&["optimize", "scale.py", "--budget", BUDGET, "--json"]);
    let ran = command.env("WARPSMITH_FAKE_PROFILER", profiler).env("WARPSMITH_LOG", "warpsmith=info").output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let skills: Value = serde_json::from_slice(&project.run(&["skills", "--format", "json"]).stdout).unwrap();
    let lessons = skills["learned"].as_array().unwrap().iter();
    lessons.map(|lesson| lesson["bound"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn profiler_counters_name_the_bound_of_a_kernel() {
    let bounds = learned(SCALE, PROFILER);
    assert!(bounds.iter().any(|bound| bound == "compute"), "{bounds:?}");
}

#[test]
fn only_the_configuration_chosen_by_the_tuner_is_profiled() {
    let tuner = r#"
def measure(kernel_call, quantiles):
    print("measured")
    kernel_call()
    MEASURED.append(1)
    return float(len(MEASURED))

def tell(given):
    print("launched", given["BLOCK"])

MEASURED = []

@triton.autotune([triton.Config({"BLOCK": 16}, pre_hook=tell), triton.Config({"BLOCK": 32}, pre_hook=tell)], key=["n"], do_bench=measure)
@triton.jit
"#;
    let kernel = SCALE.replace("\n@triton.jit\n", tuner).replace("x, out, n, BLOCK=16", "x, out, n");
    let kernel = kernel.replace("(triton.cdiv(n, 16),)", "lambda meta: (triton.cdiv(n, meta[\"BLOCK\"]),)");
    let (from, to) = ("sys.exit(", "sys.exit(said != [\"launched 16\"] or ");
    let listening = PROFILER.replace(from, to).replace(
        "ran = subprocess.run(args[args.index(\"-c\") - 1:])",
        "ran = subprocess.run(args[args.index(\"-c\") - 1:], capture_output=True, text=True)\nsaid = [line for line in ran.stdout.split(\"\\n\") if line.startswith((\"launched\", \"measured\"))]",
    );
    let bounds = learned(&kernel, &listening);
    assert!(bounds.iter().any(|bound| bound == "compute"), "{bounds:?}");
}
