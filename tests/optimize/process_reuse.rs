//! Tests of processes that judge several candidates one after the other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{BUDGET, Project, SCALE, text};

const CANDIDATES: usize = 8;

/// The result of a search that may judge `series` candidates per process, and the number of processes that judged
/// candidates.
fn searched(series: usize, kernel: &str) -> (Value, usize) {
    let (outcome, log) = logged(series, kernel);
    let named = log.split("candidate-").skip(1).filter_map(|rest| rest.split(['"', '\u{1b}', ' ']).next());
    (outcome, named.collect::<BTreeSet<_>>().len())
}

/// The result of the search, and its log of processes.
fn logged(series: usize, kernel: &str) -> (Value, String) {
    let settings = format!(
        "[optimize]\nrewrites = false\nparallel = 1\ncandidates = {CANDIDATES}\npatience = 0\n[optimize.search]\nseries = {series}\n"
    );
    let project = Project::new(&[("scale.py", kernel), ("warpsmith.toml", &settings)]);
    let mut command = project.command(&["optimize", "scale.py", "--budget", BUDGET, "--json"]);
    let log = "judge::child_processes=debug,judge::process_reuse=debug";
    let ran = command.env("WARPSMITH_LOG", log).output().unwrap();
    let outcome = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
    (outcome, text(&ran.stderr))
}

/// A candidate that was to be offered used to wait until the driver had ended the contexts of all others: 1.7 s on one
/// GPU, 3.4 s on two.
#[test]
fn other_processes_are_ended_after_the_offered_candidate_has_loaded() {
    let (outcome, log) = logged(2 * CANDIDATES, SCALE);
    assert!(outcome["offer"].is_object(), "{outcome}");
    let place = |words: [&str; 2]| {
        log.lines().collect::<Vec<_>>().iter().rposition(|line| words.iter().all(|word| line.contains(word)))
    };
    let (loaded, ended) = (place(["candidate-", "\"Load\""]), place(["wait for another candidate", "are ended"]));
    assert!(loaded.is_some() && loaded < ended, "{loaded:?} {ended:?} {log}");
    assert_eq!(log.matches("are ended").count(), 1, "{log}");
}

#[test]
fn a_process_judges_as_many_candidates_as_are_allowed() {
    let (alone, processes) = searched(1, SCALE);
    assert!(alone["offer"].is_object(), "{alone}");
    assert!(processes > CANDIDATES, "each has its own, and what is offered another one: {processes}");
    let (shared, processes) = searched(4, SCALE);
    assert_eq!(shared["evaluated"], alone["evaluated"]);
    assert_eq!(shared["offer"]["change"], alone["offer"]["change"], "{shared}");
    assert!(processes <= CANDIDATES / 4 + 2, "{processes}");
}

#[test]
fn a_candidate_refused_in_a_shared_process_is_judged_again_in_another() {
    let once = "import sys\nif 'scale_was_loaded' in sys.modules:\n    raise RuntimeError('loaded twice')\nsys.modules['scale_was_loaded'] = sys\n";
    let (outcome, processes) = searched(4, &format!("{once}{SCALE}"));
    let right = format!("{CANDIDATES} candidates");
    assert!(outcome["offer"].is_object() && outcome["summary"].as_str().unwrap().contains(&right), "{outcome}");
    assert!(processes > CANDIDATES / 2, "{processes}");
}

/// Each refusal used to cost two processes, and the driver starts only a few per second.
#[test]
fn candidates_that_triton_refuses_need_no_new_process() {
    let refused = "    tl.static_assert(BLOCK <= 32, 'the block is too large')\n    offsets =";
    let kernel = SCALE.replace("    offsets =", refused);
    let (outcome, processes) = searched(2 * CANDIDATES, &kernel);
    let summary = outcome["summary"].as_str().unwrap();
    assert!(summary.contains("of them correct") || outcome["offer"].is_object(), "{outcome}");
    assert!(processes <= 2, "one, and another one of what is offered: {processes}, {summary}");
}
