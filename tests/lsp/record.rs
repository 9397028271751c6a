//! Tests of recording a workload from the editor: offers, runs, messages and cancellation. Nothing runs without the
//! user's request.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::{LaunchRecord, Workload};
use serde_json::{Value, json};
use store::{Recording, Retention, RetentionLimits};
use warpsmith::server::Tools;
use workload::{RecordRequest, RecordingError, RecordingResult, SkippedCall};

use crate::harness::{BAD, Client, Document, Setup, machine};

type Record = dyn Fn(&RecordRequest, &dyn Fn() -> bool) -> Result<RecordingResult, RecordingError> + Send + Sync;

/// A kernel in a file that runs itself and writes a marker when it does.
const SCALE: &str = r#"import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + offsets, x * 2.0, mask=offsets < n)


def scale(x):
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 16),)](x, out, n, BLOCK=16)
    return out


if __name__ == "__main__":
    open("mark", "w").write("it ran")
    scale(torch.ones(300))
"#;

fn tools(record: Arc<Record>) -> Tools {
    Tools { record, ..machine() }
}

fn setup() -> Setup {
    Setup::new().full().capabilities(&json!({ "window": { "workDoneProgress": true } }))
}

fn call(count: u64) -> Workload {
    let launch = LaunchRecord { kernel: "scale".to_owned(), ..LaunchRecord::default() };
    let (file, entry) = (PathBuf::from("/w/a.py"), "run".to_owned());
    Workload { file, entry, count, launches: vec![launch], ..Workload::default() }
}

/// The offers to record at a position.
fn offers(client: &mut Client, document: &Document, at: &str) -> Vec<Value> {
    let actions = client.actions(document, &document.range_of(at), &[]);
    actions.into_iter().filter(|action| action["kind"] == "warpsmith.record").collect()
}

fn titles(client: &mut Client, document: &Document, at: &str) -> Vec<String> {
    offers(client, document, at).iter().map(|action| action["title"].as_str().unwrap().to_owned()).collect()
}

/// Opens a file and waits until recording is offered.
fn open(client: &mut Client, name: &str, text: &str) -> Document {
    let document = client.open(name, text);
    client.published(&document);
    let deadline = Instant::now() + Duration::from_secs(30);
    while offers(client, &document, "__main__")[0].get("disabled").is_some() {
        assert!(Instant::now() < deadline);
    }
    document
}

fn run(client: &mut Client, mut action: Value) -> String {
    let answer = client.request("workspace/executeCommand", action["command"].take());
    answer["job"].as_str().unwrap().to_owned()
}

fn accept_progress(client: &mut Client, job: &str, title: &str) {
    let create = client.server_message("window/workDoneProgress/create");
    assert_eq!(create["params"]["token"], job);
    client.reply(&create, Value::Null);
    let begin = client.notification("$/progress")["value"].take();
    assert_eq!(begin, json!({ "kind": "begin", "title": title, "cancellable": true, "percentage": 0 }));
}

/// The message at the end of the progress.
fn end_of_progress(client: &mut Client) -> Option<String> {
    loop {
        let value = client.notification("$/progress")["value"].take();
        if value["kind"] == "end" {
            return value["message"].as_str().map(str::to_owned);
        }
    }
}

fn with_guard() -> String {
    format!("{BAD}\n\nif __name__ == \"__main__\":\n    run(1, 2)\n\n\ntail = 1\n")
}

#[test]
fn recording_is_offered_at_launches_in_files_that_run_themselves() {
    let never = |_: &RecordRequest, _: &dyn Fn() -> bool| panic!("nobody asked for it");
    let mut client = setup().tools(tools(Arc::new(never))).start();
    let document = open(&mut client, "a.py", &with_guard());
    for at in ["def scale", "def run", "scale[(", "__main__", "run(1, 2)"] {
        assert_eq!(titles(&mut client, &document, at), ["Record a workload: python a.py"], "{at}");
    }
    for at in ["import triton", "tail = 1"] {
        assert_eq!(titles(&mut client, &document, at), [""; 0], "{at}");
    }
    // A file that does not run itself and that has no recorded calls.
    let document = client.open("b.py", BAD);
    client.published(&document);
    assert_eq!(titles(&mut client, &document, "def scale"), [""; 0]);
    let arguments = json!([{ "uri": document.uri, "again": true }]);
    let params = json!({ "command": "warpsmith.record", "arguments": arguments });
    let (code, message) = client.request_error("workspace/executeCommand", params);
    assert_eq!((code, message.as_str()), (-32803, "no earlier command has recorded calls of this file"));
    client.assert_silent();
}

#[test]
fn a_recording_reports_its_calls_or_why_there_are_none() {
    for (workloads, status, output, kind, told) in [
        (vec![call(2)], Some(0), "", 3, "Recorded run in a.py: 2 calls, launches scale.".to_owned()),
        (
            vec![],
            Some(0),
            "",
            2,
            "`python a.py` ran and called no function of this workspace that launches a kernel.".to_owned(),
        ),
        (vec![], Some(1), "one\ntwo\n", 1, "`python a.py` failed: one\ntwo".to_owned()),
        (
            vec![call(1)],
            None,
            "broke",
            2,
            "Recorded run in a.py: 1 call, launches scale. Then `python a.py` failed: broke".to_owned(),
        ),
        (
            vec![call(1); 7],
            Some(0),
            "",
            3,
            format!("Recorded {}; and 2 more.", ["run in a.py: 1 call, launches scale"; 5].join("; ")),
        ),
    ] {
        let seen = Arc::new(Mutex::new(None));
        let asked = Arc::clone(&seen);
        let (workloads, output) = (Mutex::new(workloads), output.to_owned());
        let record = move |what: &RecordRequest, _: &dyn Fn() -> bool| {
            *asked.lock().unwrap() = Some(what.clone());
            let workloads = std::mem::take(&mut *workloads.lock().unwrap());
            Ok(RecordingResult { workloads, status, output: output.clone(), ..RecordingResult::default() })
        };
        let mut client = setup().tools(tools(Arc::new(record))).start();
        let document = open(&mut client, "a.py", &with_guard());
        let action = offers(&mut client, &document, "def scale").remove(0);
        let job = run(&mut client, action);
        accept_progress(&mut client, &job, "Recording python a.py");
        assert_eq!(end_of_progress(&mut client).as_deref(), Some("done"));
        assert_eq!(client.notification("window/showMessage"), json!({ "type": kind, "message": told }));
        let what = seen.lock().unwrap().take().unwrap();
        let file = client.path("a.py");
        assert_eq!(what.command, [PathBuf::from("python-of-the-test").as_os_str(), file.as_os_str()]);
        assert_eq!((what.folder.as_path(), what.workspace.as_path()), (client.folder(), client.folder()));
        assert_eq!((what.device.as_str(), what.quiet), ("Test GPU", true));
        client.assert_silent();
    }
}

#[test]
fn a_recording_reports_calls_that_are_too_large_to_store() {
    let record = |_: &RecordRequest, _: &dyn Fn() -> bool| {
        let limits = RetentionLimits { size: 1 << 20, shapes: 9 };
        let left_out = vec![SkippedCall { workload: call(1), fate: Retention::TooLarge(3 << 20), limits }];
        Ok(RecordingResult { left_out, status: Some(0), ..RecordingResult::default() })
    };
    let mut client = setup().tools(tools(Arc::new(record))).start();
    let document = open(&mut client, "a.py", &with_guard());
    let action = offers(&mut client, &document, "def scale").remove(0);
    let job = run(&mut client, action);
    accept_progress(&mut client, &job, "Recording python a.py");
    end_of_progress(&mut client);
    let told = "Recorded nothing. But not kept: run in a.py: 1 call, launches scale; it takes 3.0 MiB of the 1 that are kept: \
                raise `workloads.max-size`.";
    assert_eq!(client.notification("window/showMessage"), json!({ "type": 2, "message": told }));
}

/// The last command that recorded calls of the file is run again, with the project's Python in place of the shell's.
#[test]
fn the_last_command_can_be_run_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let record = move |what: &RecordRequest, _: &dyn Fn() -> bool| {
        asked.lock().unwrap().push((what.command.clone(), what.folder.clone()));
        Ok(RecordingResult { workloads: vec![call(1)], status: Some(0), ..RecordingResult::default() })
    };
    let mut client = setup().tools(tools(Arc::new(record))).file("a.py", BAD).file("b.py", &with_guard()).start();
    let folder = client.folder().canonicalize().unwrap();
    let limits = RetentionLimits { size: 1 << 20, shapes: 9 };
    let mut store = workload::store(&folder).unwrap();
    let mut keep = |name: &str, words: &[&str]| {
        let words: Vec<_> = words.iter().map(std::ffi::OsString::from).collect();
        let call = Workload { file: folder.join(name), ..call(1) };
        store.keep_recording(&Recording::of(&words, &folder), &[call], limits).unwrap();
    };
    keep("a.py", &["python3", "train.py", "--fast"]);
    // A command that just runs the file is not offered as another command.
    keep("b.py", &["python", "b.py"]);
    workload::touch(&folder).unwrap();
    let other = open(&mut client, "b.py", &with_guard());
    assert_eq!(titles(&mut client, &other, "def run"), ["Record a workload: python b.py"]);
    let document = client.open("a.py", BAD);
    client.published(&document);
    let action = offers(&mut client, &document, "def scale").remove(0);
    assert_eq!(action["title"], "Record a workload: python3 train.py --fast");
    let job = run(&mut client, action);
    accept_progress(&mut client, &job, "Recording python3 train.py --fast");
    end_of_progress(&mut client);
    client.notification("window/showMessage");
    let expected = ["python-of-the-test", "train.py", "--fast"].map(std::ffi::OsString::from).to_vec();
    assert_eq!(*seen.lock().unwrap(), [(expected, folder)]);
    client.assert_silent();
}

#[test]
fn a_recording_is_stopped_by_command_or_progress_and_runs_once_at_a_time() {
    for by_command in [false, true] {
        let record = |_: &RecordRequest, going: &dyn Fn() -> bool| {
            while going() {
                std::thread::yield_now();
            }
            Err(RecordingError::Cancelled)
        };
        let mut client = setup().tools(tools(Arc::new(record))).start();
        let document = open(&mut client, "a.py", &with_guard());
        let action = offers(&mut client, &document, "def scale").remove(0);
        let again = action["command"].clone();
        let job = run(&mut client, action);
        accept_progress(&mut client, &job, "Recording python a.py");
        let (code, message) = client.request_error("workspace/executeCommand", again);
        assert_eq!((code, message.as_str()), (-32803, "a workload of this file is being recorded already"));
        let mut stop = offers(&mut client, &document, "def run").remove(0);
        assert_eq!(stop["title"], "Stop recording a workload");
        if by_command {
            assert_eq!(
                client.request("workspace/executeCommand", stop["command"].take()),
                json!({ "cancelled": true })
            );
        } else {
            client.notify("window/workDoneProgress/cancel", json!({ "token": job }));
        }
        assert_eq!(end_of_progress(&mut client).as_deref(), Some("stopped"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while titles(&mut client, &document, "def run") != ["Record a workload: python a.py"] {
            assert!(Instant::now() < deadline);
        }
        client.assert_silent();
        // A recording in progress is also stopped when the server ends.
        let action = offers(&mut client, &document, "def scale").remove(0);
        let job = run(&mut client, action);
        accept_progress(&mut client, &job, "Recording python a.py");
        client.stop_ignoring("$/progress");
    }
}

#[test]
fn a_crashed_recording_is_reported_and_an_untrusted_workspace_records_nothing() {
    let record = |_: &RecordRequest, _: &dyn Fn() -> bool| panic!("out of luck");
    let mut client = Setup::new().full().tools(tools(Arc::new(record))).start();
    let document = open(&mut client, "a.py", &with_guard());
    let action = offers(&mut client, &document, "def scale").remove(0);
    let mut command = action["command"].clone();
    run(&mut client, action);
    let told = "`python a.py` could not be recorded: cannot record: it crashed, which is a bug: out of luck";
    assert_eq!(client.notification("window/showMessage"), json!({ "type": 1, "message": told }));

    let options = json!({ "settings": { "select": ["L002"] }, "workspaceTrusted": false });
    let mut client = Setup::new().full().options(options).tools(tools(Arc::new(record))).start();
    let document = client.open("a.py", &with_guard());
    client.published(&document);
    let offer = offers(&mut client, &document, "def scale").remove(0);
    let reason = "this workspace is not trusted, and recording runs its code";
    assert_eq!((&offer["disabled"]["reason"], offer.get("command")), (&json!(reason), None));
    command["arguments"][0]["uri"] = json!(document.uri);
    let (code, message) = client.request_error("workspace/executeCommand", command);
    assert_eq!((code, message.as_str()), (-32803, reason));
    client.assert_silent();
}

/// A server of its own, with the real recorder and judge on a simulated device.
fn real() -> Client {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let optimize = json!({ "budget": 4 });
    let settings =
        json!({ "select": ["L002"], "python": python, "compiler": { "enabled": false }, "optimize": optimize });
    setup().options(json!({ "settings": settings })).file("scale.py", SCALE).fake_device().start()
}

#[test]
fn recording_runs_the_users_file_and_stores_its_calls() {
    let mut client = real();
    let document = open(&mut client, "scale.py", SCALE);
    let action = offers(&mut client, &document, "def scale(x)").remove(0);
    let job = run(&mut client, action);
    accept_progress(&mut client, &job, "Recording python scale.py");
    assert_eq!(end_of_progress(&mut client).as_deref(), Some("done"));
    let told = "Recorded scale in scale.py: 1 call, launches scale_kernel.";
    assert_eq!(client.notification("window/showMessage"), json!({ "type": 3, "message": told }));
    assert!(client.path("mark").exists() && client.path(".warpsmith/store.db").exists());
    // The recorded launches have changed, so the file is checked again.
    client.stop_ignoring("textDocument/publishDiagnostics");
}

/// The child processes of the program end with it.
#[test]
fn stopping_a_recording_ends_all_processes_of_the_program() {
    let body = "import subprocess, time
    child = subprocess.Popen(['sleep', '1000'])
    open('mark', 'w').write(f'{child.pid}.')
    time.sleep(1000)
";
    let text = SCALE.replace("open(\"mark\", \"w\").write(\"it ran\")\n", body);
    let mut client = real();
    std::fs::write(client.path("scale.py"), &text).unwrap();
    let document = open(&mut client, "scale.py", &text);
    let action = offers(&mut client, &document, "def scale(x)").remove(0);
    let job = run(&mut client, action);
    accept_progress(&mut client, &job, "Recording python scale.py");
    let deadline = Instant::now() + Duration::from_secs(60);
    let child = loop {
        let mark = std::fs::read_to_string(client.path("mark")).unwrap_or_default();
        if let Some(id) = mark.strip_suffix('.') {
            break id.to_owned();
        }
        assert!(Instant::now() < deadline, "the program was not run");
        std::thread::yield_now();
    };
    client.notify("window/workDoneProgress/cancel", json!({ "token": job }));
    assert_eq!(end_of_progress(&mut client).as_deref(), Some("stopped"));
    // A zombie process has no command line.
    let is_there = || std::fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|line| !line.is_empty());
    while is_there() {
        assert!(Instant::now() < deadline, "process {child} is still there");
        std::thread::yield_now();
    }
    client.assert_silent();
}

#[test]
fn optimizing_runs_the_users_file_only_after_a_yes() {
    for (answer, runs) in [("Cancel", false), ("Run it once", true)] {
        let mut client = real();
        let document = open(&mut client, "scale.py", SCALE);
        let arguments = json!([{ "uri": document.uri, "kernel": "scale_kernel" }]);
        let params = json!({ "command": "warpsmith.optimize", "arguments": arguments });
        let job = client.request("workspace/executeCommand", params)["job"].as_str().unwrap().to_owned();
        accept_progress(&mut client, &job, "Optimizing scale_kernel");
        let question = client.server_message("window/showMessageRequest");
        let text = "No call of `scale_kernel` is recorded yet. Run `python scale.py` once to record one?";
        assert_eq!(question["params"]["message"], text);
        assert!(!client.path("mark").exists(), "it was run unasked");
        client.reply(&question, json!({ "title": answer }));
        let ended = end_of_progress(&mut client).unwrap();
        assert_eq!(client.path("mark").exists(), runs);
        let message = client.notification("window/showMessage")["message"].take();
        let message = message.as_str().unwrap();
        if runs {
            // On a busy machine the time may be over before the first candidate is judged.
            let words = ["`scale_kernel` as written", "faster", "the budget was used up before a candidate was judged"];
            assert!(words.iter().any(|words| message.contains(words)), "{message}");
            client.stop_ignoring("textDocument/publishDiagnostics");
        } else {
            assert_eq!(ended, "nothing was run");
            let start =
                "`scale_kernel` was not optimized: nothing was run: no call of it is recorded yet; record a call";
            assert!(message.starts_with(start), "{message}");
            client.assert_silent();
        }
    }
}
