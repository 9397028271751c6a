//! Tests of judging in a pool of GPUs through Ray: a real cluster on this machine, with simulated devices. Needs the
//! interpreter that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`).

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "pool/access.rs"]
mod access;
#[path = "pool/connection_loss.rs"]
mod connection_loss;
#[path = "common/judging.rs"]
mod judging;
#[path = "common/ray.rs"]
mod ray;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use judging::{Edit, FASTER, Project, Report, SCALE, WRONG, test_python, text};
use ray::{Cluster, judge_in, without_gpu};
use serde_json::Value;

const CANDIDATES: &[(&str, Edit<'_>)] = &[
    ("faster", FASTER),
    ("fails", ("    return out\n", "    raise ValueError('no such luck')\n")),
    ("wrong", WRONG),
    ("exits", ("    return out\n", "    os._exit(0)\n")),
    ("broken", ("import triton\n", "raise ValueError('no such luck')\n")),
];

/// Name and verdict of each candidate.
const EXPECTED: [(&str, &str); 5] =
    [("broken", "load"), ("exits", "died"), ("fails", "run"), ("faster", "accepted"), ("wrong", "output")];

/// The number of times that each candidate got each verdict, by `name verdict`.
fn counts<'a>(reports: impl IntoIterator<Item = &'a Report>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for report in reports {
        *counts.entry(format!("{} {}", report.name(), report.said())).or_default() += 1;
    }
    counts
}

fn expected(each: usize) -> BTreeMap<String, usize> {
    EXPECTED.iter().map(|(name, said)| (format!("{name} {said}"), each)).collect()
}

/// Judges all candidates in the pool. Calls the function for each report, with its number and the id of the process.
fn judged(project: &Project, args: &[&str], tell: impl FnMut(usize, u32)) -> Vec<Report> {
    judged_with(project, args, &[], tell)
}

/// As [`judged`], with environment variables for the program's processes.
fn judged_with(
    project: &Project,
    args: &[&str],
    variables: &[(&str, &str)],
    mut tell: impl FnMut(usize, u32),
) -> Vec<Report> {
    let args = [&["verify", "original.py", "candidates", "--batch", "--quick", "--json"], args].concat();
    let log = std::fs::File::create(project.path("log")).unwrap();
    let mut command = without_gpu(project, &args);
    let mut ran = command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut reports = Vec::new();
    for line in BufReader::new(ran.stdout.take().unwrap()).lines() {
        reports.push(Report(serde_json::from_str(&line.unwrap()).unwrap()));
        tell(reports.len(), ran.id());
    }
    let log = std::fs::read_to_string(project.path("log")).unwrap();
    let undecided: Vec<_> =
        reports.iter().filter(|report| report.said() == "undecided").map(|report| &report.0).collect();
    assert_eq!(ran.wait().unwrap().code(), Some(1), "{undecided:?}\n{log}");
    reports
}

/// Kills the only child process of a command.
fn kill_client(command: u32) {
    let children = std::fs::read_to_string(format!("/proc/{command}/task/{command}/children")).unwrap();
    let started = |child: &&str| {
        std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains("warpsmith_pool.py"))
    };
    let client = children.split_whitespace().find(started).unwrap();
    assert!(Command::new("kill").args(["-9", client]).status().unwrap().success());
}

fn status(project: &Project) -> Value {
    let ran = without_gpu(project, &["pool", "status", "--format", "json"]).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn shown(project: &Project, args: &[&str]) -> (Option<i32>, String) {
    let ran = without_gpu(project, args).output().unwrap();
    (ran.status.code(), text(&[ran.stdout, ran.stderr].concat()))
}

#[test]
fn a_pool_judges_as_this_machine_does_and_loses_nothing_with_a_node() {
    let project = Project::new(SCALE, CANDIDATES);
    let (here, _) = project.batch(&["--quick"]);
    let mut cluster = Cluster::start(&["toy", "toy", "toy", "rare"]);
    judge_in(&project, &cluster.client_address, "");
    let there = judged(&project, &[], |_, _| ());
    assert_eq!(counts(&there), expected(1));
    let checks = |reports: &[Report]| {
        let of = |report: &Report| (report.name(), report.checks(), report.0["speedup"].clone());
        let mut all: Vec<_> = reports.iter().map(of).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    assert_eq!(checks(&there), checks(&here));
    for report in &there {
        let on = &report.0["judged_on"];
        assert_eq!(on["gpu"], "toy (simulated)");
        assert!(on["node"].as_str().unwrap().ends_with("(127.0.0.1)"), "{on}");
    }
    // The same hosts are reached by Ray's own protocol. A node fails in the middle, and later the process that holds
    // the connection.
    judge_in(&project, &cluster.address, "");
    let mut seen = Value::Null;
    let reports = judged(&project, &["--repeat", "4", "--jobs", "6"], |count, process| match count {
        4 => {
            seen = status(&project);
            cluster.tell("kill", 1);
        }
        10 => kill_client(process),
        _ => {}
    });
    assert_eq!(counts(&reports), expected(4));
    assert_eq!(seen["nodes"].as_array().unwrap().len(), 5);
    let hosts = seen["hosts"].as_array().unwrap();
    let models = |node: &Value| hosts.iter().any(|host| host["id"] == node["id"]).then(|| node["model"].clone());
    let used: Vec<Value> = seen["nodes"].as_array().unwrap().iter().filter_map(models).collect();
    assert_eq!(used, ["toy", "toy", "toy"], "models are not mixed: {seen}");
    let (code, said) = shown(&project, &["pool", "status"]);
    assert!(code == Some(0) && said.contains("4 nodes, 3 GPUs") && said.contains(": gone"), "{said}");
    // The other GPU model is selected by its name.
    judge_in(&project, &cluster.address, "gpu = \"rare\"");
    let (code, said) = shown(&project, &["doctor", "--evaluator"]);
    assert!(code == Some(0) && said.contains("works: on toy (simulated), Triton "), "{said}");
    judge_in(&project, &cluster.address, "gpu = \"H900\"");
    let (code, said) = shown(&project, &["doctor", "--evaluator"]);
    assert!(code == Some(1) && said.contains("has no H900; set `evaluator.gpu` to one of: rare, toy"), "{said}");
}

#[test]
fn an_unusable_pool_is_reported_with_its_address() {
    let project = Project::new(SCALE, CANDIDATES);
    // No program listens at this address.
    judge_in(&project, "ray://127.0.0.1:9", "");
    for args in
        [&["verify", "original.py", "candidates/faster.py"][..], &["pool", "status"], &["doctor", "--evaluator"]]
    {
        let (code, said) = shown(&project, args);
        assert_ne!(code, Some(0), "{args:?}");
        assert!(said.contains("nothing answers at ray://127.0.0.1:9"), "{args:?}: {said}");
    }
    // The test's Python has no Ray, and a local GPU is not used instead.
    let ran = project.verify(&["candidates/faster.py"]);
    let (code, said) = (ran.status.code(), text(&[ran.stdout, ran.stderr].concat()));
    assert!(
        code == Some(2) && said.contains("cannot import ray") && said.contains("pip install 'ray[client]"),
        "{said}"
    );
    project
        .write("warpsmith.toml", &format!("python = {:?}\n[evaluator]\npool = \"ray://127.0.0.1:9\"\n", test_python()));
    let (code, said) = shown(&project, &["doctor"]);
    assert!(
        code == Some(0) && said.contains("-m pip install 'ray[client]', in the version that the cluster has"),
        "{said}"
    );
    project.write("warpsmith.toml", "[evaluator]\npool = \"gpubox\"\n");
    let (code, said) = shown(&project, &["pool", "status"]);
    assert!(code == Some(2) && said.contains("`evaluator.pool` must be `auto`, or an address"), "{said}");
}

/// Runs the client's own code with a fake Ray: the work for a candidate must not grow with the number of GPUs.
#[test]
fn a_client_does_not_look_at_all_gpus_for_each_candidate() {
    let simulation = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pool/simulation.py");
    let without_ray = ["--gpus", "16,256", "--seconds", "5", "--call", "0", "--reply", "0"];
    let ran = Command::new(test_python()).arg(simulation).args(without_ray).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let rows: Vec<Value> = text(&ran.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let looks = |row: &Value| row["GPUs looked at each"].as_f64().unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| (1.0..8.0).contains(&looks(row))), "{rows:?}");
}

#[test]
fn pool_placement_tests_in_python_pass() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pool/placement.py");
    let ran = Command::new(test_python()).args(["-B", script]).output().unwrap();
    assert!(ran.status.success() && text(&ran.stderr).contains("\nOK"), "{}", text(&ran.stderr));
}

/// The complete test of the pool, which takes some minutes and runs with `WARPSMITH_POOL_FULL=1`. Its figures are in
/// `docs/results/pool.md`.
#[test]
fn two_thousand_evaluations_come_once_each() {
    if std::env::var_os("WARPSMITH_POOL_FULL").is_none() {
        return;
    }
    let project = Project::new(SCALE, &[]);
    let at_import = |statement: &str| SCALE.replace("import triton\n", &format!("{statement}\nimport triton\n"));
    for number in 0..400 {
        // One in ten candidates crashes; most are refused soon, so that judging takes little time compared with the
        // transfer.
        let (name, text) = match number % 10 {
            3 => ("exits", at_import("os._exit(0)")),
            7 if number % 100 == 7 => ("faster", SCALE.replace(FASTER.0, FASTER.1)),
            _ => ("broken", at_import("raise ValueError()")),
        };
        project.write(&format!("candidates/{number:03}_{name}.py"), &text);
    }
    let mut cluster = Cluster::start(&["toy"; 4]);
    judge_in(&project, &cluster.address, "");
    // One candidate at a time, for the overhead of remote judging on an idle processor.
    let alone = judged(&project, &["--jobs", "1"], |_, _| ());
    println!("one at a time: {}", overhead(&alone));
    let since = std::time::Instant::now();
    let mut events = Vec::new();
    let reports = judged(&project, &["--repeat", "5"], |count, _| {
        let mut tell = |what, node| {
            cluster.tell(what, node);
            events.push(format!("{what} {node} at {count} verdicts, {:.0} s", since.elapsed().as_secs_f64()));
        };
        match count {
            400 => tell("cut", 0),
            1200 => tell("kill", 1),
            _ => {}
        }
    });
    let seconds = since.elapsed().as_secs_f64();
    println!("{} verdicts in {seconds:.0} s; {}; under load: {}", reports.len(), events.join("; "), overhead(&reports));
    let mut by_verdict: BTreeMap<&str, usize> = BTreeMap::new();
    reports.iter().for_each(|report| *by_verdict.entry(report.said()).or_default() += 1);
    assert_eq!(by_verdict, BTreeMap::from([("accepted", 20), ("died", 200), ("load", 1780)]));
    let each = counts(&reports);
    assert!(each.len() == 400 && each.values().all(|&count| count == 5), "once for each time that it was asked for");
    let median = median_overhead(&alone);
    assert!(median < 5.0, "{median} ms");
}

/// Milliseconds of each evaluation that were not spent in its worker.
fn overheads(reports: &[Report]) -> Vec<f64> {
    let stage = |report: &Report| {
        let stages = report.0["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage[0] == "pool").and_then(|stage| stage[1].as_f64())
    };
    let mut all: Vec<f64> = reports.iter().filter_map(stage).map(|seconds| seconds * 1000.0).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn median_overhead(reports: &[Report]) -> f64 {
    let all = overheads(reports);
    all[all.len() / 2]
}

fn overhead(reports: &[Report]) -> String {
    let all = overheads(reports);
    let at = |share: usize| all[(all.len() - 1) * share / 100];
    format!("median {:.1} ms, 90 % {:.1} ms, 99 % {:.1} ms of {}", at(50), at(90), at(99), all.len())
}
