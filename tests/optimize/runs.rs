//! Tests of what searches store and learn, and how they resume and wait.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::{Project, SCALE, is_empty, soon, text};

/// The journal of the first run.
const RUN: &str = ".warpsmith/runs/scale_kernel-1.jsonl";
/// A grid that follows the tile size, as tutorials write it.
const GRID_OF_TILES: &str = r#"lambda meta: (triton.cdiv(n, meta["BLOCK"]),)"#;

/// A project whose search soon runs out of proposals: with this grid only the tile size can change.
fn one_knob(grid: &str) -> Project {
    let one_knob = SCALE
        .replace("(triton.cdiv(n, 16),)", grid)
        .replace("(x, out, n, BLOCK=16)", "(x, out, n, BLOCK=16, **dict([]))")
        .replace("load(x_ptr + offsets", "load(*[x_ptr + offsets]")
        .replace("store(out_ptr + offsets, x * 2.0", "store(*[out_ptr + offsets, x * 2.0]");
    Project::new(&[("scale.py", &one_knob), ("warpsmith.toml", "[optimize]\nparallel = 2\n")])
}

/// The same project, with a limit on the number of candidates.
fn few(count: usize) -> Project {
    let project = one_knob(GRID_OF_TILES);
    std::fs::write(project.path("warpsmith.toml"), format!("[optimize]\nparallel = 2\ncandidates = {count}\n"))
        .unwrap();
    project
}

/// The lines of one kind in the journal of the run.
pub(crate) fn lines(project: &Project, what: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(project.path(RUN)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["what"] == what).collect()
}

/// Waits until `count` candidates are judged.
pub(crate) fn judged(project: &Project, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(200);
    while lines(project, "came").len() < count {
        assert!(Instant::now() < deadline, "too few candidates were judged");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that every candidate was judged exactly once.
fn judged_once(project: &Project) {
    let ids = |what: &str| {
        let mut ids: Vec<u64> = lines(project, what).iter().map(|line| line["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids("made"), ids("came"));
    assert_eq!(ids("given-up"), Vec::<u64>::new());
}

/// A refused candidate is not judged again by the next search; an accepted one is, since only a new time counts.
#[test]
fn a_candidate_that_was_refused_is_not_judged_again() {
    // Only the tile size can change, up to 16384. Tiles of 256 and 128 leave elements unwritten, and no step starts
    // from these.
    let project = one_knob("(1,)");
    let file = project.path("scale.py");
    let large = std::fs::read_to_string(&file).unwrap().replace("BLOCK=16", "BLOCK=4096");
    std::fs::write(&file, large).unwrap();
    let counts = || {
        let ran = project.run(&["optimize", "scale.py", "--budget", "400s", "--json"]);
        let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
        let summary = outcome["summary"].as_str().unwrap().to_owned();
        (outcome["evaluated"].as_u64().unwrap(), outcome["remembered"].as_u64().unwrap(), summary)
    };
    let (first, none, _) = counts();
    assert_eq!((first, none), (7, 0));
    let (again, remembered, summary) = counts();
    assert_eq!((again, remembered), (5, 2), "{summary}");
    assert!(summary.contains("; 2 more were refused before"), "{summary}");
    // The setting disables the cache.
    std::fs::write(project.path("warpsmith.toml"), "[optimize]\nparallel = 2\nremember = false\n").unwrap();
    let (all, remembered, _) = counts();
    assert_eq!((all, remembered), (7, 0));
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let project = one_knob(GRID_OF_TILES);
    let folder = project.temporary();
    let mut command = project.command(&["optimize", "scale.py", "--budget", "300s"]);
    let mut running = command.env("TMPDIR", &folder).spawn().unwrap();
    judged(&project, 2);
    running.kill().unwrap();
    running.wait().unwrap();
    // A killed process removes nothing; its judging processes remove its files.
    soon("a file is left", || is_empty(&folder));
    let before = lines(&project, "came");
    let ran = project.run(&["optimize", "--resume", "last"]);
    let shown = text(&ran.stdout);
    assert!(ran.status.success(), "{shown}{}", text(&ran.stderr));
    assert_eq!(lines(&project, "came")[..before.len()], before[..]);
    judged_once(&project);
    assert_eq!(lines(&project, "resumed").len(), 1);
    let said = lines(&project, "ended")[0]["summary"].as_str().unwrap().to_owned();
    assert!(shown.contains(&said) && said.contains("× faster"), "{said}\n{shown}");
    assert!(said.contains("BLOCK 16 → 512"), "one program does, and larger tiles are no faster: {said}");

    // The run is over; neither is a run resumed whose file has changed.
    let ran = project.run(&["optimize", "--resume", "scale_kernel-1"]);
    assert!(text(&ran.stderr).contains("`scale_kernel-1` has ended"), "{}", text(&ran.stderr));
    let ran = project.run(&["optimize", "--resume", "other-1"]);
    assert!(text(&ran.stderr).contains("no run `other-1`; the latest is"), "{}", text(&ran.stderr));
}

#[test]
#[cfg(unix)]
fn a_worker_that_was_killed_is_started_again() {
    let project = one_knob(GRID_OF_TILES);
    let running =
        project.command(&["optimize", "scale.py", "--budget", "300s"]).stdout(Stdio::piped()).spawn().unwrap();
    judged(&project, 2);
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let children = std::fs::read_to_string(children).unwrap();
    let kill = Command::new("kill").arg("-9").args(children.split_whitespace()).status().unwrap();
    assert!(kill.success());
    let ran = running.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stdout));
    judged_once(&project);
    // The restart of Python does not count towards the budget: on a GPU it took 17 of 40 s.
    let begun = lines(&project, "begun")[0]["at"].as_f64().unwrap() / 1000.0;
    let written = std::fs::metadata(project.path(RUN)).unwrap().modified().unwrap();
    let took = written.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64() - begun;
    let counted = lines(&project, "ended")[0]["seconds"].as_f64().unwrap();
    assert!(counted + 0.5 < took, "{counted} of {took} s");
}

#[test]
fn a_search_stops_at_its_candidate_limit_and_stores_its_lessons() {
    let project = few(3);
    let ran = project.run(&["optimize", "scale.py", "--budget", "300s", "--json"]);
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(outcome["evaluated"], 3);
    let skills = || -> Value { serde_json::from_slice(&project.run(&["skills", "--format", "json"]).stdout).unwrap() };
    let (known, count) = (skills(), |lesson: &Value| lesson["count"].as_u64().unwrap());
    let learned = known["learned"].as_array().unwrap();
    assert_eq!(learned.iter().map(count).sum::<u64>(), 3, "{known}");
    let of = |lesson: &Value| format!("{} {}", lesson["device"].as_str().unwrap(), lesson["class"].as_str().unwrap());
    assert!(learned.iter().all(|lesson| of(lesson) == "toy (simulated) pointwise"), "{known}");
    let shown = text(&project.run(&["skills"]).stdout);
    assert!(
        shown.lines().any(|line| line.starts_with("rows_per_program ") && line.contains(" large "))
            && shown.contains("Learned on toy (simulated)"),
        "{shown}"
    );
    assert_eq!(text(&project.run(&["skills", "--forget"]).stdout).lines().count(), 1);
    assert_eq!(skills()["learned"], Value::Array(Vec::new()));
}

/// All candidates are compared with the original before they are timed; slower ones skip the remaining checks.
#[test]
fn candidates_near_the_best_are_measured_more_often() {
    let project = few(6);
    // With a process for each candidate they can be distinguished.
    let settings = std::fs::read_to_string(project.path("warpsmith.toml")).unwrap() + "[optimize.search]\nseries = 1\n";
    std::fs::write(project.path("warpsmith.toml"), settings).unwrap();
    let mut command = project.command(&["optimize", "scale.py", "--budget", "300s"]);
    let ran = command.env("WARPSMITH_LOG", "warpsmith=debug").output().unwrap();
    let log = text(&ran.stderr);
    let asked = |request: &str| {
        let mut asked: BTreeMap<String, usize> = BTreeMap::new();
        for line in log.lines().filter(|line| line.contains(request) && line.contains("process=\"candidate-")) {
            let process = line.split("process=").nth(1).and_then(|rest| rest.split('"').nth(1)).unwrap();
            *asked.entry(process.to_owned()).or_default() += 1;
        }
        (*asked.values().min().unwrap(), *asked.values().max().unwrap(), asked)
    };
    let (least, most, runs) = asked("request=\"Run\"");
    assert!((3..=4).contains(&least), "{runs:?}");
    assert!(most >= 12, "{runs:?}");
    let (least, most, measurements) = asked("request=\"Measure\"");
    assert!(most > least + 1, "{measurements:?}");
    // One call wakes the device, and the rest are blocks.
    assert_eq!(least, 1 + 3, "{measurements:?}");
}

/// A search waits for a program of the user, and two searches never measure at the same time.
#[test]
fn searches_wait_for_others_and_for_each_other() {
    let project = few(2);
    let other = project.path("at-work");
    std::fs::write(&other, "python train.py\n").unwrap();
    let start = || {
        let mut command = project.command(&["optimize", "scale.py", "--budget", "300s"]);
        command.env("WARPSMITH_FAKE_OTHERS", &other).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut running = [start(), start()];
    let runs = || -> Vec<Vec<Value>> {
        let read = |number: usize| {
            let path = project.path(&format!(".warpsmith/runs/scale_kernel-{number}.jsonl"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        [1, 2].map(read).to_vec()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while runs()[0].is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(runs().iter().map(Vec::len).collect::<Vec<_>>(), [1, 0], "nothing but the beginning of the first");
    std::fs::remove_file(&other).unwrap();
    for one in &mut running {
        one.wait().unwrap();
    }
    let runs = runs();
    let begun = |run: &[Value]| run[0]["at"].as_i64().unwrap();
    let seconds = |run: &[Value]| run.last().unwrap()["seconds"].as_f64().unwrap();
    let both = runs.iter().map(|run| run.iter().filter(|line| line["what"] == "came").count()).collect::<Vec<_>>();
    assert_eq!(both, [2, 2]);
    assert!(begun(&runs[1]) as f64 >= begun(&runs[0]) as f64 + 1000.0 * seconds(&runs[0]), "one after the other");
}
