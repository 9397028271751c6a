//! Tests that the facts about the original do not depend on which candidate asks first, nor on how many ask.

use crate::judging::{Edit, Project, SCALE, text};

const SAME: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 4\n");
const OTHER: Edit<'_> = ("BLOCK = 4\n", "BLOCK = 2\n");
const BROKEN: Edit<'_> = ("import torch\n", "import nowhere\n");

#[test]
fn the_original_runs_once_for_all_candidates() {
    let runs = |candidates: &[(&str, Edit<'_>)]| {
        let project = Project::new(SCALE, candidates);
        let ran = project
            .verify_with(&[("WARPSMITH_LOG", "warpsmith=debug")], &["candidates", "--batch", "--json", "--jobs", "3"]);
        let (verdicts, log) = (text(&ran.stdout), text(&ran.stderr));
        let accepted = verdicts.lines().filter(|line| line.contains("\"verdict\":\"accepted\"")).count();
        let is_run = |line: &&str| line.contains("process=\"original") && line.contains("request=\"Run\"");
        (accepted, log.lines().filter(is_run).count())
    };
    let (_, of_one) = runs(&[("same", SAME)]);
    // A candidate that is refused at once may leave unfinished work about the original to the others.
    let (accepted, of_three) = runs(&[("a_broken", BROKEN), ("other", OTHER), ("same", SAME)]);
    assert_eq!((accepted, of_three), (2, of_one));
    assert!(of_one > 20, "{of_one}");
}

/// In a search, candidates are judged by the recorded call first, so all of them wait for the original's results there.
#[test]
fn the_original_runs_while_the_first_candidate_loads() {
    let slow: Edit<'_> = ("import torch\n", "import time; time.sleep(6)\nimport torch\n");
    let project = Project::new(SCALE, &[("slow", slow)]);
    let ran =
        project.verify_with(&[("WARPSMITH_LOG", "warpsmith=debug")], &["candidates/slow.py", "--quick", "--json"]);
    let log = text(&ran.stderr);
    let at = |words: [&str; 2]| log.lines().position(|line| words.iter().all(|word| line.contains(word)));
    let (run, loaded) =
        (at(["process=\"original", "request=\"Run\""]), at(["process=\"candidate", "request=\"Load\""]));
    assert!(run.is_some() && loaded.is_some() && run < loaded, "{run:?} {loaded:?}: {log}");
}

/// Finding that out may take up to the time limit of a call.
#[test]
fn an_original_that_fails_is_asked_once_for_a_candidate() {
    let project =
        Project::new(&SCALE.replace("    return out\n", "    raise ValueError('no such luck')\n"), &[("same", SAME)]);
    let ran =
        project.verify_with(&[("WARPSMITH_LOG", "warpsmith=debug")], &["candidates/same.py", "--quick", "--json"]);
    let (said, log) = (text(&ran.stdout), text(&ran.stderr));
    assert!(said.contains("the original itself fails"), "{said}");
    let is_run = |line: &&str| line.contains("process=\"original") && line.contains("request=\"Run\"");
    assert_eq!(log.lines().filter(is_run).count(), 1, "{log}");
}
