//! Tests of candidates that take much longer than the others.

use super::{BUDGET, Project, SCALE, text};

const CANDIDATES: usize = 32;
/// A file with this number takes far longer to load than any other, also when other tests use the cores.
const SLOW: &str = "import time\nBLOCK = 16\nif BLOCK == 64:\n    time.sleep(200)\n";

#[test]
fn slow_candidates_at_the_end_are_neither_awaited_nor_replaced() {
    let settings = format!(
        "[optimize]\nrewrites = false\nparallel = 8\ncandidates = {CANDIDATES}\npatience = 0\n[evaluator.limits]\nload = 240\n"
    );
    let kernel = format!("{SLOW}{}", SCALE.replace("BLOCK=16", "BLOCK=BLOCK").replace("cdiv(n, 16)", "cdiv(n, BLOCK)"));
    let project = Project::new(&[("scale.py", &kernel), ("warpsmith.toml", &settings)]);
    let ran = project.run(&["optimize", "scale.py", "--budget", BUDGET, "--json"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let outcome: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let folder = std::fs::read_dir(project.path(".warpsmith/runs")).unwrap();
    let journal = folder.flatten().find(|entry| entry.path().extension().is_some_and(|it| it == "jsonl")).unwrap();
    let journal = std::fs::read_to_string(journal.path()).unwrap();
    let made = journal.lines().filter(|line| line.starts_with(r#"{"what":"made""#)).count();
    assert_eq!(made, CANDIDATES, "{outcome}");
    let evaluated = outcome["evaluated"].as_u64().unwrap() as usize;
    assert!((8..CANDIDATES).contains(&evaluated), "{outcome}");
}
