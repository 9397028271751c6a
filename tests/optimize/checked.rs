//! What is about to be offered runs under the checker of memory while everything else is asked of it.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{BUDGET, Project, SCALE, text};

/// Runs the call that it is given, and finds an error wherever the block is not the user's.
const CHECKER: &str = r#"#!/usr/bin/env python3
import json, re, subprocess, sys
args = sys.argv[1:]
tool, log = (args[args.index(name) + 1] for name in ("--tool", "--log-file"))
command = args[args.index("-c") - 1:]
with open(re.search(r'checked\("(.*?)"\)', command[2])[1]) as file:
    text = open(json.load(file)["file"]).read()
ran = subprocess.run(command)
found = tool == "memcheck" and "BLOCK = 16\n" not in text and FINDS
end = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "RACECHECK SUMMARY: 0 hazards displayed"}[tool]
lines = ["Invalid __global__ read of size 4 bytes"] * found + [end]
with open(log, "w") as file:
    file.writelines(f"========= {line}\n" for line in lines)
sys.exit(77 if found else ran.returncode)
"#;

/// What a search says, and what is in its journal about the one that was to be offered.
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
    let run = std::fs::read_dir(project.path(".warpsmith/runs")).unwrap().next().unwrap().unwrap().path();
    let journal = std::fs::read_to_string(run).unwrap();
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (outcome, entries.filter(|entry| entry["what"] == "confirmed").collect())
}

#[test]
fn what_the_checker_of_memory_finds_is_not_offered() {
    let (outcome, confirmed) = searched(false);
    assert!(outcome["offer"].is_object(), "{outcome}");
    let checks = confirmed[0]["checks"].to_string();
    assert!(checks.contains(r#"["compute-sanitizer, memcheck","it finds nothing"]"#), "{checks}");
    assert!(checks.contains(r#"["compute-sanitizer, racecheck","it finds nothing"]"#), "{checks}");

    let (outcome, confirmed) = searched(true);
    let refused = confirmed[0]["refused"].to_string();
    assert!(refused.contains("Invalid __global__ read") && refused.contains("the original shows nothing"), "{refused}");
    let change = outcome["offer"]["change"].as_str().unwrap_or_default();
    assert!(!change.contains("BLOCK"), "{outcome}");
}
