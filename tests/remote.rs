//! Tests of judging through `evaluator.command`, on a simulated device: the verdicts are the same, whatever happens to
//! the link. Needs the interpreter that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`).

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/judging.rs"]
mod judging;

use std::process::Command;

use judging::{Edit, FASTER, Project, Report, SCALE, WRONG, test_python, text};

const BINARY: &str = env!("CARGO_BIN_EXE_warpsmith");

const CANDIDATES: &[(&str, Edit<'_>)] = &[
    ("faster", FASTER),
    ("fails", ("    return out\n", "    raise ValueError('no such luck')\n")),
    ("mutates", ("    return out\n", "    x.zero_()\n    return out\n")),
    ("wrong", WRONG),
    ("exits", ("    return out\n", "    os._exit(0)\n")),
];

/// Forwards the output of a worker. The link breaks inside the second verdict: the first time, or with `always` each
/// time.
const RELAY: &str = r#"
import os, subprocess, sys
when, log, *command = sys.argv[1:]
breaks = when == "always" or not os.path.exists(log)
with open(log, "a") as file:
    file.write("started\n")
worker = subprocess.Popen(command, stdout=subprocess.PIPE)
said = 0
while head := worker.stdout.read(4):
    frame = head + worker.stdout.read(int.from_bytes(head, "little"))
    said += 1
    if breaks and said == 3:
        os.write(1, frame[:len(frame) // 2])
        worker.kill()
        sys.exit(1)
    sys.stdout.buffer.write(frame)
    sys.stdout.buffer.flush()
"#;

/// The messages of a worker.
const SPEAKING: &str = r#"
import json, os, select
def say(message):
    body = json.dumps(message).encode()
    os.write(1, len(body).to_bytes(4, "little") + body)
def hear():
    head = os.read(0, 4)
    return json.loads(read(int.from_bytes(head, "little"))) if head else None
def read(size):
    body = b""
    while len(body) < size:
        body += os.read(0, size - len(body))
    return body
def ready(cores, devices):
    environment = dict(python="", torch="", triton="", device="", driver="")
    say({"Ready": dict(protocol=PROTOCOL, environment=environment, cores=cores, devices=devices, judge="")})
def tell(id, outcome):
    say({"Verdict": dict(id=id, verdict=dict(outcome=outcome, checks=[], measured=[], notes=[], stages=[]))})
"#;

/// A worker on a machine with six cores and two GPUs. Counts how many candidates it is given before it answers.
const COUNTING: &str = r#"
ready(6, 2)
waiting, most = [], 0
while True:
    if waiting and not select.select([0], [], [], 1.5)[0]:
        most = max(most, len(waiting))
        with open("most", "w") as file:
            file.write(str(most))
        for id in waiting:
            tell(id, {"undecided": {"why": "not judged"}})
        waiting = []
    message = hear()
    if message is None:
        break
    waiting.append(message["Judge"]["id"])
"#;

/// Four GPUs that refuse every second candidate once they have all, and answer no other one in time. Stores the texts
/// of candidates that are withdrawn.
const RECALLED: &str = r#"
ready(64, 4)
waiting, dropped = {}, []
while True:
    if waiting and not select.select([0], [], [], 4)[0]:
        if dropped:
            for id in waiting:
                tell(id, {"undecided": {"why": "not judged"}})
            waiting = {}
        else:
            for id in list(waiting)[::2]:
                del waiting[id]
                tell(id, {"refused": {"reason": "output", "evidence": "no", "line": None}})
    message = hear()
    if message is None:
        break
    if "Judge" in message:
        waiting[message["Judge"]["id"]] = message["Judge"]["parcel"]["candidate"]
    elif "Drop" in message:
        # Its verdict may be under way.
        if text := waiting.pop(message["Drop"], None):
            dropped.append(text)
        with open("dropped", "w") as file:
            json.dump(dropped, file)
"#;

/// Forwards the requests to a worker, and withdraws each candidate at once.
const CHANGING: &str = r#"
import json, subprocess, sys
worker = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
def tell(body):
    worker.stdin.write(len(body).to_bytes(4, "little") + body)
    worker.stdin.flush()
while head := sys.stdin.buffer.read(4):
    body = sys.stdin.buffer.read(int.from_bytes(head, "little"))
    tell(body)
    if judged := json.loads(body).get("Judge"):
        tell(json.dumps({"Drop": judged["id"]}).encode())
worker.stdin.close()
sys.exit(worker.wait())
"#;

/// Reports that it is ready, in the protocol of another release.
const OTHER_RELEASE: &str = r#"
import json, sys
environment = dict(python="", torch="", triton="", device="", driver="")
body = json.dumps({"Ready": {"protocol": 99, "environment": environment}}).encode()
sys.stdout.buffer.write(len(body).to_bytes(4, "little") + body)
sys.stdout.buffer.flush()
sys.stdin.read()
"#;

fn project() -> Project {
    // Files beside the original are sent along.
    let original = SCALE.replace("import os\n", "import os\nimport helper\nassert helper.IS_HERE\n");
    let project = Project::new(&original, CANDIDATES);
    project.write("helper.py", "IS_HERE = True\n");
    project.write("relay.py", RELAY);
    project.write("release.py", OTHER_RELEASE);
    project
}

fn judge_by(project: &Project, command: &[&str]) {
    project.write("warpsmith.toml", &format!("[evaluator]\ncommand = {command:?}\n[optimize]\ncandidates = 10\n"));
}

/// The parts of a report that must not depend on where a candidate is judged: candidate, verdict, checks and line.
type Told = (String, String, Vec<(String, bool)>, serde_json::Value);

fn verdicts(reports: &[Report]) -> Vec<Told> {
    let of = |report: &Report| (report.name(), report.said().to_owned(), report.checks(), report.0["line"].clone());
    reports.iter().map(of).collect()
}

/// The name and the verdict of each candidate.
const EXPECTED: [(&str, &str); 5] =
    [("exits", "died"), ("fails", "run"), ("faster", "accepted"), ("mutates", "mutation"), ("wrong", "output")];

fn said(reports: &[Report]) -> Vec<(String, &str)> {
    reports.iter().map(|report| (report.name(), report.said())).collect()
}

#[test]
fn a_remote_evaluator_gives_the_local_verdicts() {
    let project = project();
    let (here, code) = project.batch(&["--quick"]);
    assert_eq!(said(&here), EXPECTED.map(|(name, said)| (name.to_owned(), said)));
    assert_eq!(code, Some(1));
    judge_by(&project, &[BINARY, "worker"]);
    let (there, code) = project.batch(&["--quick"]);
    assert_eq!((verdicts(&there), code), (verdicts(&here), Some(1)));
    assert_eq!((&there[2].0["offer"], &there[2].0["speedup"]), (&true.into(), &here[2].0["speedup"]));
    let ran = project.command(&["doctor", "--evaluator"]).output().unwrap();
    let words = "Optimizing      works: on toy (simulated), Triton ";
    assert!(ran.status.success() && text(&ran.stdout).contains(words), "{}", text(&ran.stdout));
}

#[test]
fn each_verdict_comes_once_when_the_link_breaks() {
    let project = project();
    judge_by(&project, &[test_python().to_str().unwrap(), "relay.py", "once", "log", BINARY, "worker"]);
    let (reports, code) = project.batch(&["--quick"]);
    assert_eq!(said(&reports), EXPECTED.map(|(name, said)| (name.to_owned(), said)));
    assert_eq!(code, Some(1));
    assert_eq!(std::fs::read_to_string(project.path("log")).unwrap(), "started\nstarted\n");
}

#[test]
fn candidates_of_a_connection_that_keeps_failing_are_reported_as_undecided() {
    let project = project();
    judge_by(&project, &[test_python().to_str().unwrap(), "relay.py", "always", "log", BINARY, "worker"]);
    let (reports, code) = project.batch(&["--quick"]);
    assert_eq!(code, Some(2));
    let names: Vec<String> = reports.iter().map(Report::name).collect();
    assert_eq!(names, ["exits", "fails", "faster", "mutates", "wrong"]);
    let (undecided, told): (Vec<&Report>, Vec<&Report>) =
        reports.iter().partition(|report| report.said() == "undecided");
    // One verdict came through each of the two links.
    assert_eq!((undecided.len(), told.len()), (3, 2));
    for report in undecided {
        let why = "the connection to the evaluator was lost: for the second time";
        assert_eq!((&report.0["evidence"], &report.0["offer"]), (&why.into(), &false.into()));
    }
    assert_eq!(std::fs::read_to_string(project.path("log")).unwrap(), "started\nstarted\n");
}

#[test]
fn an_evaluator_command_that_is_not_a_worker_is_reported() {
    let project = project();
    let python = test_python();
    let python = python.to_str().unwrap();
    for (command, words) in [
        (&["/nowhere/warpsmith", "worker"][..], "is `evaluator.command` right?"),
        (&["true"][..], "it ended before it was ready"),
        (&["echo", "Welcome to this machine"][..], "is not what `warpsmith worker` writes"),
        (&[python, "release.py"][..], "it speaks protocol 99, not "),
        (&[BINARY, "worker", "--python", "/bin/false"][..], "/bin/false`: the worker process ended"),
    ] {
        judge_by(&project, command);
        let ran = project.verify(&["candidates/faster.py", "--quick"]);
        let shown = text(&[ran.stdout, ran.stderr].concat());
        assert_eq!(ran.status.code(), Some(2), "{command:?}: {shown}");
        assert!(shown.contains(words) && shown.contains(command[0]), "{command:?}: {shown}");
        let ran = project.command(&["doctor", "--evaluator"]).output().unwrap();
        let shown = text(&ran.stdout);
        assert_eq!(ran.status.code(), Some(1), "{command:?}: {shown}");
        assert!(shown.contains("leads to nothing that judges") && shown.contains(words), "{command:?}: {shown}");
    }
    let ran = project.command(&["doctor"]).output().unwrap();
    assert!(text(&ran.stdout).contains("set, not asked: through "), "{}", text(&ran.stdout));
}

/// The number of candidates judged at once does not depend on the cores of this machine.
#[test]
fn as_many_candidates_are_sent_at_once_as_the_other_machine_can_judge() {
    let project = Project::new(SCALE, &[]);
    project.write("counting.py", &speaking(COUNTING));
    for number in 0..9 {
        project.write(&format!("candidates/c{number}.py"), SCALE);
    }
    judge_by(&project, &[test_python().to_str().unwrap(), "counting.py"]);
    assert_eq!(project.batch(&[]).0.len(), 9);
    assert_eq!(std::fs::read_to_string(project.path("most")).unwrap(), "6");
}

fn speaking(worker: &str) -> String {
    [SPEAKING, worker].concat().replace("PROTOCOL", &protocol::PROTOCOL.to_string())
}

/// Many GPUs also get candidates that derive from ones being judged; these are withdrawn when the parent is refused.
#[test]
fn candidates_derived_from_a_refused_one_are_called_back() {
    let project = Project::new(SCALE, &[]);
    project.write("recalled.py", &speaking(RECALLED));
    judge_by(&project, &[test_python().to_str().unwrap(), "recalled.py"]);
    let settings = std::fs::read_to_string(project.path("warpsmith.toml")).unwrap();
    project.write("warpsmith.toml", &settings.replace("candidates = 10", "candidates = 60"));
    let ran = project.command(&["optimize", "original.py", "--budget", "60s"]).output().unwrap();
    let dropped = std::fs::read_to_string(project.path("dropped"));
    let dropped = dropped.unwrap_or_else(|_| panic!("nothing was called back: {}", text(&ran.stderr)));
    let dropped: Vec<String> = serde_json::from_str(&dropped).unwrap();
    let run = std::fs::read_dir(project.path(".warpsmith/runs")).unwrap().next().unwrap().unwrap().path();
    let journal = std::fs::read_to_string(run).unwrap();
    let entries: Vec<serde_json::Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |what: &str, id: &serde_json::Value| {
        entries.iter().find(|entry| entry["what"] == what && entry["id"] == *id).cloned().unwrap_or_default()
    };
    for text in dropped {
        let made = entries.iter().find(|entry| entry["text"] == *text && entry["what"] == "made").unwrap();
        assert_eq!(made["parent"], made["base"], "{made}");
        assert_eq!(told("came", &made["base"])["fate"], "wrong", "{made}");
        assert!(told("given-up", &made["id"]).is_object() && told("came", &made["id"]).is_null(), "{made}");
    }
}

#[test]
fn a_worker_stops_judging_what_is_called_back() {
    let project = project();
    project.write("changing.py", CHANGING);
    judge_by(&project, &[test_python().to_str().unwrap(), "changing.py", BINARY, "worker"]);
    let (reports, code) = project.batch(&["--quick"]);
    assert_eq!(code, Some(2));
    for report in reports {
        assert_eq!((report.said(), &report.0["evidence"]), ("undecided", &"stopped".into()), "{}", report.0);
    }
}

#[test]
fn a_worker_that_cannot_work_says_why_and_ends_with_2() {
    let project = Project::new(SCALE, &[]);
    let unfit = |args: &[&str], adjust: &dyn Fn(&mut Command)| {
        let mut command = project.command(args);
        adjust(&mut command);
        let ran = command.output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
        let said = text(&ran.stdout);
        assert!(said.contains("Unfit"), "whoever started it is told: {said}");
        text(&ran.stderr)
    };
    let error = unfit(&["worker", "--python", "/bin/false"], &|_| {});
    assert!(error.starts_with("error: the worker process ended"), "{error}");
    let error = unfit(&["worker"], &|command| {
        command.env_remove("WARPSMITH_FAKE_DEVICE").env("CUDA_VISIBLE_DEVICES", "");
    });
    assert!(error.starts_with("error: judging needs a GPU: "), "{error}");
}

/// This machine has no GPU; the other machine's device judges and is named in the offer.
#[test]
fn optimizing_needs_no_gpu_where_the_evaluator_has_one() {
    let project = Project::new(SCALE, &[]);
    let optimize = || {
        let mut command = project.command(&["optimize", "original.py", "--budget", "300s"]);
        command.env_remove("WARPSMITH_FAKE_DEVICE").env("CUDA_VISIBLE_DEVICES", "");
        let ran = command.output().unwrap();
        (ran.status.code(), text(&[ran.stdout, ran.stderr].concat()))
    };
    let (code, shown) = optimize();
    assert_eq!(code, Some(2));
    assert!(shown.contains("optimizing needs a GPU: "), "{shown}");
    judge_by(&project, &["env", "WARPSMITH_FAKE_DEVICE=elsewhere", BINARY, "worker"]);
    let (code, shown) = optimize();
    assert_eq!(code, Some(0), "{shown}");
    for words in ["× faster: ", ", 95 % ", ", simulated:", "Measured on elsewhere (simulated), Triton "] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // A call cannot be recorded here, and no program is run to find that out.
    project.write("original.py", &SCALE.replace("# warpsmith: workload", "# no workload"));
    let (code, shown) = optimize();
    assert_eq!(code, Some(2));
    assert!(shown.contains("there is no GPU here to record one on"), "{shown}");
}
