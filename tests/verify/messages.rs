//! Tests of the messages of `verify` when it cannot judge, and of what it leaves behind when it is ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::judging::{FASTER, Project, SCALE, text};
use crate::{SAME, TOP};

/// The JSON object on standard output.
fn told(ran: &Output) -> Value {
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out}\n{err}"))
}

#[test]
fn json_output_reports_undecided_candidates() {
    let project = Project::new(SCALE, &[("same", SAME)]);
    project.write("broken.py", &SCALE.replace("x=f32[5,12]", "x=f99[5,12]"));
    project.write("misnamed.py", &SCALE.replace("x=f32[5,12]", "y=f32[5,12]"));
    project.write("unnamed.py", &SCALE.replace("entry=scale x", "entry=scales x"));
    std::fs::create_dir(project.path("empty")).unwrap();
    let line = 1 + SCALE.lines().position(|line| line.starts_with("# warpsmith")).unwrap();
    let place = |name: &str, comment: &str| format!("{name}.py:{line}: {comment}");
    let broken = [place("broken", "`x=f99[5,12]`: "), "in `# warpsmith: workload entry=scale x=f99[5,12]`".to_owned()];
    let misnamed = [
        "unexpected keyword argument 'y'".to_owned(),
        place("misnamed", "`# warpsmith: workload entry=scale y=f32[5,12]`"),
    ];
    let one = |words: &str| vec![words.to_owned()];
    for (args, words) in [
        (&["original.py", "missing.py"][..], one("missing.py cannot be read")),
        (&["original.py", "candidates"][..], one("candidates is a folder: its files are judged with --batch")),
        (&["candidates", "original.py"][..], one("candidates is a folder: name a file")),
        (&["original.py", "original.py", "--batch"][..], one("original.py is not a folder: remove --batch")),
        (&["original.py", "empty", "--batch"][..], one("there is no Python file in")),
        (&["broken.py", "original.py"][..], broken.to_vec()),
        (&["misnamed.py", "candidates/same.py"][..], misnamed.to_vec()),
        (&["unnamed.py", "candidates/same.py"][..], one(&place("unnamed", "`# warpsmith: workload entry=scales "))),
    ] {
        let ran = project.command(&[&["verify", "--json", "--quick"], args].concat()).output().unwrap();
        let report = told(&ran);
        let reason = report["reason"].as_str().unwrap();
        assert_eq!((ran.status.code(), &report["verdict"]), (Some(2), &"undecided".into()), "{args:?}: {reason}");
        for words in words {
            assert!(reason.contains(&words), "{args:?}: {reason}");
        }
        assert!(report["candidate"].is_string() && report["checks"].is_array());
    }
}

#[test]
fn a_silent_evaluator_is_named_and_times_out() {
    let project = Project::new(SCALE, &[("faster", FASTER)]);
    project.write("warpsmith.toml", "[evaluator]\ncommand = [\"sleep\", \"1000\"]\nstart = 7\n");
    let since = Instant::now();
    let ran = project.verify(&["candidates/faster.py", "--json"]);
    let (report, err) = (told(&ran), text(&ran.stderr));
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    assert!(err.contains("waiting for `sleep 1000` (`evaluator.command`) to be ready, for at most 7 s"), "{err}");
    let reason = report["reason"].as_str().unwrap();
    assert!(
        reason.contains("`sleep 1000`: it was not ready within 7 s") && reason.contains("evaluator.start"),
        "{reason}"
    );
}

/// The descendants of a process by id, with the time at which each began.
fn below(id: u32) -> BTreeMap<u32, String> {
    let mut all: BTreeMap<u32, (u32, String)> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        all.insert(id, (fields[1].parse().unwrap(), fields[19].to_owned()));
    }
    let mut found = BTreeMap::from([(id, String::new())]);
    loop {
        let more: Vec<_> =
            all.iter().filter(|(id, (above, _))| found.contains_key(above) && !found.contains_key(id)).collect();
        if more.is_empty() {
            break;
        }
        found.extend(more.into_iter().map(|(id, (_, began))| (*id, began.clone())));
    }
    found.remove(&id);
    found
}

fn is_alive((id, began): (&u32, &String)) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    fields.len() > 19 && fields[19] == began && fields[0] != "Z"
}

/// Starts judging a candidate that never ends, and ends it by a signal once it runs. Returns the output.
fn interrupted(project: &Project, signal: &str) -> Output {
    let folder = project.path("temporary");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = project.command(&["verify", "original.py", "candidates/endless.py", "--json"]);
    let process = command.env("TMPDIR", &folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let is_running = || walk(&folder).iter().any(|path| path.contains("candidate-"));
    while !is_running() {
        assert!(Instant::now() < until, "no candidate was started");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    std::thread::park_timeout(Duration::from_secs(1));
    let started = below(process.id());
    assert!(started.len() > 3, "{started:?}");
    let since = Instant::now();
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
    let ran = process.wait_with_output().unwrap();
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    std::thread::park_timeout(Duration::from_millis(500));
    let left: Vec<_> = started.iter().filter(|one| is_alive(*one)).collect();
    assert!(left.is_empty(), "{left:?} of {started:?}");
    assert_eq!(walk(&folder), Vec::<String>::new());
    ran
}

fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path().to_string_lossy().into_owned());
        found.extend(walk(&entry.path()));
    }
    found
}

#[test]
fn verify_leaves_no_process_or_file_after_a_signal() {
    let project = Project::new(SCALE, &[("endless", (TOP, "while True: time.sleep(0.1)\n"))]);
    for signal in ["-INT", "-TERM"] {
        let ran = interrupted(&project, signal);
        let report = told(&ran);
        assert_eq!((&report["verdict"], &report["reason"]), (&"undecided".into(), &"stopped".into()));
        assert_eq!(ran.status.code(), Some(2));
    }
    // The other end of a link cleans up as well.
    let command = [env!("CARGO_BIN_EXE_warpsmith"), "worker"];
    project.write("warpsmith.toml", &format!("[evaluator]\ncommand = {command:?}\n"));
    let ran = interrupted(&project, "-INT");
    assert_eq!(told(&ran)["reason"], "stopped");
}
