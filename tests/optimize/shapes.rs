//! Tests of searches over recorded calls of several sizes.

use std::process::Command;

use crate::runs::{judged, lines};
use crate::{Project, SCALE, test_python, text};

/// A project in which only the tile size can change, from 16 to 128, and large tiles cause programs without work: the
/// simulated device is fastest with 32 for the short call and with 128 for the long one, with which the short one is
/// slower than before.
fn project() -> Project {
    let calls = "    scale(torch.ones(64))\n    scale(torch.ones(600))\n";
    let launch = "    scale_kernel[(triton.cdiv(n, 16),)](x, out, n, BLOCK=16)\n";
    let bounded = "    BLOCK = 16\n    assert 16 <= BLOCK <= 128\n";
    let open = "    scale_kernel[(triton.cdiv(n, BLOCK) + BLOCK // 16,)](x, out, n, BLOCK=BLOCK, **dict([]))\n";
    let text = SCALE
        .replace(launch, &format!("{bounded}{open}"))
        .replace("    scale(torch.ones(300))\n    scale(torch.ones(300))\n", calls);
    Project::new(&[("scale.py", &text), ("warpsmith.toml", "[optimize]\nparallel = 2\nrewrites = false\n")])
}

#[test]
fn a_candidate_that_is_faster_for_one_size_only_becomes_a_choice_by_size() {
    let project = project();
    let before = std::fs::read_to_string(project.path("scale.py")).unwrap();
    let mut running = project.command(&["optimize", "scale.py", "--budget", "300s"]).spawn().unwrap();
    judged(&project, 4);
    running.kill().unwrap();
    running.wait().unwrap();
    // The times of each candidate on each call are known when the search is resumed.
    let ran = project.run(&["optimize", "--resume", "last", "--apply"]);
    let shown = text(&ran.stdout);
    assert!(ran.status.success(), "{shown}{}", text(&ran.stderr));
    assert!(shown.contains("choice by n (≤ 256: BLOCK 32; above: BLOCK 128)"), "{shown}");
    let after = std::fs::read_to_string(project.path("scale.py")).unwrap();
    assert_eq!(after, before.replace("BLOCK = 16", "BLOCK = 32 if n <= 256 else 128"));
    let rerun =
        Command::new(test_python()).arg(project.path("scale.py")).env("TRITON_INTERPRET", "1").status().unwrap();
    assert!(rerun.success());
    let made: Vec<_> = lines(&project, "made").into_iter().filter(|line| line["kind"] == "choice by size").collect();
    assert!(!made.is_empty() && made.iter().all(|line| line["step"] == "large"), "{made:?}");
    let right = lines(&project, "came").into_iter().filter(|line| line["fate"]["right"].is_number());
    for came in right {
        assert_eq!(came["calls"].as_array().map(Vec::len), Some(2), "{came}");
    }
    // The offer is faster on the call of each size.
    let speedup = &lines(&project, "ended")[0]["speedup"];
    let ratios: Vec<f64> =
        speedup["calls"].as_array().unwrap().iter().map(|call| call["ratio"].as_f64().unwrap()).collect();
    assert!(ratios.len() == 2 && ratios.iter().all(|&ratio| ratio > 1.05), "{ratios:?}");
}
