//! Tests of optimization jobs with a scripted search: progress, cancellation, and the offer.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use judge::Devices;
use model::syntax::Span;
use rules::{Edit, apply_edits};
use search::{Observer, Offer, OptimizeError, Progress, SearchOutcome, SearchRequest, Speedup};
use serde_json::{Value, json};
use warpsmith::server::Tools;

use crate::harness::{BAD, Client, Document, Setup, machine};

type Search = dyn Fn(&SearchRequest, &dyn Observer) -> Result<SearchOutcome, OptimizeError> + Send + Sync;

/// A machine with a GPU, a Python, and this search.
pub(super) fn tools(search: Arc<Search>) -> Tools {
    Tools { optimize: search, ..machine() }
}

/// A search that waits for the test and then finds a launch with larger blocks.
pub(super) fn gated() -> (Tools, mpsc::Sender<()>) {
    gated_with(found)
}

/// The same search with another result.
pub(super) fn gated_with(found: fn(&SearchRequest) -> SearchOutcome) -> (Tools, mpsc::Sender<()>) {
    let (gate, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let search = move |request: &SearchRequest, observer: &dyn Observer| {
        while wait.lock().unwrap().recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            if observer.cancelled() {
                return Err(OptimizeError::Cancelled);
            }
        }
        Ok(found(request))
    };
    (tools(Arc::new(search)), gate)
}

pub(super) fn found(request: &SearchRequest) -> SearchOutcome {
    let at = request.text.find("BLOCK=64").unwrap();
    let edits = vec![Edit { span: Span::new(at + 6, at + 8), text: "128".to_owned() }];
    let speedup = Speedup {
        simulated: false,
        ratio: 1.834,
        low: 1.791,
        high: 1.862,
        before_ms: 0.2,
        after_ms: 0.11,
        pairs: 100,
        device: "Test GPU".to_owned(),
        conditions: "Test GPU, n=1024".to_owned(),
        ..Speedup::default()
    };
    let text = apply_edits(&request.text, &edits);
    let offer = Offer { edits, text, change: "BLOCK 64 → 128".to_owned(), speedup };
    SearchOutcome {
        kernel: "scale".to_owned(),
        evaluated: 7,
        remembered: 0,
        offer: Some(offer),
        summary: "1.83× faster".to_owned(),
        run: "scale-1".to_owned(),
    }
}

/// The result of [`found`] for a text.
pub(super) fn faster(text: &str) -> String {
    text.replace("BLOCK=64", "BLOCK=128")
}

const LABEL: &str = "1.83× faster: 200 → 110 µs, 95 % 1.79–1.86, Test GPU";

/// A client that shows progress and lets the server apply edits.
pub(super) fn setup() -> Setup {
    Setup::new().full().capabilities(&json!({
        "window": { "workDoneProgress": true },
        "workspace": { "applyEdit": true },
    }))
}

/// A client that also asks the user to confirm annotated edits.
pub(super) fn annotating() -> Setup {
    let annotations = json!({ "changeAnnotationSupport": { "groupsOnLabel": true } });
    setup().capabilities(&json!({ "workspace": { "workspaceEdit": annotations } }))
}

/// Opens the file, and waits until the offer to optimize is enabled.
pub(super) fn open(client: &mut Client) -> Document {
    let document = client.open("a.py", BAD);
    client.published(&document);
    let deadline = Instant::now() + Duration::from_secs(30);
    while action(client, &document, "def scale").get("disabled").is_some() {
        assert!(Instant::now() < deadline);
    }
    document
}

/// The offer to optimize (or to stop) at a place.
fn action(client: &mut Client, document: &Document, at: &str) -> Value {
    let actions = client.actions(document, &document.range_of(at), &[]);
    actions.into_iter().find(|action| action["kind"] == "refactor.rewrite").unwrap_or_default()
}

/// Runs the command of the offer; returns the id of the job.
pub(super) fn start(client: &mut Client, document: &Document) -> String {
    let command = action(client, document, "def scale")["command"].take();
    assert_eq!(command["arguments"], json!([{ "uri": document.uri, "kernel": "scale" }]));
    let answer = client.request("workspace/executeCommand", command);
    answer["job"].as_str().unwrap().to_owned()
}

/// Accepts the progress of a job and checks its beginning.
pub(super) fn accept_progress(client: &mut Client, job: &str) {
    let create = client.server_message("window/workDoneProgress/create");
    assert_eq!(create["params"]["token"], job);
    client.reply(&create, Value::Null);
    let begin = client.notification("$/progress");
    assert_eq!(begin["token"], job);
    let value = json!({ "kind": "begin", "title": "Optimizing scale", "cancellable": true, "percentage": 0 });
    assert_eq!(begin["value"], value);
}

/// Reads the progress until its end, and counts the reports before it.
pub(super) fn end_of_progress(client: &mut Client) -> (Option<String>, usize) {
    for reports in 0.. {
        let value = client.notification("$/progress")["value"].take();
        if value["kind"] == "end" {
            return (value["message"].as_str().map(str::to_owned), reports);
        }
        assert_eq!(value["kind"], "report");
    }
    unreachable!()
}

#[test]
fn an_offer_is_an_annotated_edit_of_the_present_version() {
    let (tools, gate) = gated();
    let mut client = annotating().tools(tools).start();
    let mut document = open(&mut client);
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    // An edit during the search that does not affect the kernel.
    client.replace(&mut document, "import triton\n", "# 😀\nimport triton\n");
    client.published(&document);
    gate.send(()).unwrap();
    assert_eq!(end_of_progress(&mut client).0.as_deref(), Some("1.83× faster"));
    let request = client.server_message("workspace/applyEdit");
    let params = &request["params"];
    assert_eq!(params["label"], format!("scale: {LABEL}"));
    let changes = &params["edit"]["documentChanges"][0];
    assert_eq!(changes["textDocument"], json!({ "uri": document.uri, "version": 2 }));
    let id = changes["edits"][0]["annotationId"].as_str().unwrap();
    let annotation = json!({
        "label": LABEL,
        "needsConfirmation": true,
        "description": "BLOCK 64 → 128 · Test GPU, n=1024",
    });
    assert_eq!(params["edit"]["changeAnnotations"][id], annotation);
    let edits = changes["edits"].clone();
    assert_eq!(document.edited(&edits), faster(&document.text));
    client.change_raw(&mut document, json!([{ "range": edits[0]["range"], "text": edits[0]["newText"] }]));
    client.reply(&request, json!({ "applied": true }));
    client.published(&document);
    client.assert_silent();
}

#[test]
fn a_client_without_annotations_is_asked_first() {
    for (choice, applies) in
        [(json!({ "title": "Apply" }), true), (json!({ "title": "Discard" }), false), (Value::Null, false)]
    {
        let (tools, gate) = gated();
        let mut client = setup().tools(tools).start();
        let mut document = open(&mut client);
        let job = start(&mut client, &document);
        accept_progress(&mut client, &job);
        gate.send(()).unwrap();
        end_of_progress(&mut client);
        let question = client.server_message("window/showMessageRequest");
        assert_eq!(question["params"]["actions"], json!([{ "title": "Apply" }, { "title": "Discard" }]));
        let text = question["params"]["message"].as_str().unwrap();
        assert_eq!(text, format!("`scale`: {LABEL}. BLOCK 64 → 128 · Test GPU, n=1024"));
        // The file may also change while the user decides.
        client.replace(&mut document, "def run", "\ndef run");
        client.published(&document);
        client.reply(&question, choice);
        if applies {
            let request = client.server_message("workspace/applyEdit");
            let changes = &request["params"]["edit"]["documentChanges"][0];
            assert_eq!(changes["textDocument"]["version"], 2);
            assert_eq!(document.edited(&changes["edits"]), faster(&document.text));
            client.reply(&request, json!({ "applied": false, "failureReason": "read-only" }));
            let message = client.notification("window/showMessage");
            assert_eq!(message["message"], "The faster `scale` was not applied: read-only");
        }
        client.assert_silent();
    }
}

#[test]
fn a_result_for_an_older_text_is_reported_and_not_applied() {
    for (from, to) in [("n, BLOCK:", "n, m, BLOCK:"), ("BLOCK=64", "BLOCK=32"), ("def run(x, y):\n", "")] {
        let (tools, gate) = gated();
        let mut client = annotating().tools(tools).start();
        let mut document = open(&mut client);
        let job = start(&mut client, &document);
        accept_progress(&mut client, &job);
        client.replace(&mut document, from, to);
        client.published(&document);
        gate.send(()).unwrap();
        end_of_progress(&mut client);
        if from.starts_with("def run") {
            // A line next to the kernel may be removed.
            let request = client.server_message("workspace/applyEdit");
            client.reply(&request, json!({ "applied": false }));
        } else {
            let message = client.notification("window/showMessage");
            assert_eq!(message["type"], 2);
            let text = message["message"].as_str().unwrap();
            assert!(text.contains("result is for an older text") && text.contains(LABEL), "{text}");
        }
        client.assert_silent();
    }
}

#[test]
fn a_file_that_was_closed_is_not_edited() {
    let (tools, gate) = gated();
    let mut client = annotating().tools(tools).start();
    let document = open(&mut client);
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    client.close(&document);
    client.notification("textDocument/publishDiagnostics");
    gate.send(()).unwrap();
    end_of_progress(&mut client);
    let text = client.notification("window/showMessage")["message"].take();
    assert!(text.as_str().unwrap().contains("closed"), "{text}");
}

#[test]
fn a_search_is_stopped_by_its_command_or_its_progress() {
    for by_command in [false, true] {
        let (tools, _gate) = gated();
        let mut client = setup().tools(tools).start();
        let document = open(&mut client);
        let job = start(&mut client, &document);
        accept_progress(&mut client, &job);
        // There is one job per kernel; while it runs, an action to stop it replaces the offer, also at the launch.
        let params = json!({ "command": "warpsmith.optimize", "arguments": [{ "uri": document.uri }] });
        let (code, message) = client.request_error("workspace/executeCommand", params);
        assert_eq!((code, message.as_str()), (-32803, "`scale` is being optimized already"));
        let stop = action(&mut client, &document, "scale[(")["command"].take();
        assert_eq!(stop["command"], "warpsmith.cancel");
        if by_command {
            assert_eq!(client.request("workspace/executeCommand", stop), json!({ "cancelled": true }));
        } else {
            client.notify("window/workDoneProgress/cancel", json!({ "token": job }));
        }
        assert_eq!(end_of_progress(&mut client).0.as_deref(), Some("stopped"));
        // The owner receives the end of the job later; then the kernel can be optimized again.
        let deadline = Instant::now() + Duration::from_secs(30);
        while action(&mut client, &document, "def scale")["title"] != "Optimize this kernel" {
            assert!(Instant::now() < deadline);
        }
        let params = json!({ "command": "warpsmith.cancel", "arguments": [{ "job": job }] });
        assert_eq!(client.request("workspace/executeCommand", params), json!({ "cancelled": false }));
        client.assert_silent();
    }
}

#[test]
fn progress_is_reported_at_most_ten_times_a_second_and_says_the_best() {
    let search = |_: &SearchRequest, observer: &dyn Observer| {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(550) {
            let fraction = since.elapsed().as_secs_f64() / 0.55;
            let (message, seconds) = ("exploring".to_owned(), Some((12.9, 60.0)));
            observer.progress(&Progress { message, fraction, best: Some(1.5), seconds, candidates: 14 });
            std::thread::yield_now();
        }
        let summary = "nothing is faster".to_owned();
        Ok(SearchOutcome {
            kernel: "scale".to_owned(),
            evaluated: 3,
            remembered: 0,
            offer: None,
            summary,
            run: String::new(),
        })
    };
    let mut client = setup().tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    let report = client.notification("$/progress")["value"].take();
    assert_eq!(report["message"], "exploring · 12/60 s · 1.50× · 14 candidates");
    assert!(report["percentage"].as_u64().unwrap() <= 100);
    let (message, reports) = end_of_progress(&mut client);
    assert!(reports <= 7, "{reports} reports in half a second");
    assert_eq!(message.as_deref(), Some("nothing is faster"));
    let message = client.notification("window/showMessage");
    assert_eq!(message, json!({ "type": 3, "message": "nothing is faster" }));
    client.assert_silent();
}

#[test]
fn a_search_asks_before_it_runs_the_users_program() {
    let run = json!({ "title": "Run it once" });
    for (choice, expected) in [(run, true), (json!({ "title": "Cancel" }), false), (Value::Null, false)] {
        let search = |_: &SearchRequest, observer: &dyn Observer| {
            let summary = format!("confirmed: {}", observer.confirm("Run `python train.py`?"));
            Ok(SearchOutcome {
                kernel: "scale".to_owned(),
                evaluated: 0,
                remembered: 0,
                offer: None,
                summary,
                run: String::new(),
            })
        };
        let mut client = Setup::new().full().tools(tools(Arc::new(search))).start();
        let document = open(&mut client);
        start(&mut client, &document);
        let question = client.server_message("window/showMessageRequest");
        assert_eq!(question["params"]["message"], "Run `python train.py`?");
        assert_eq!(question["params"]["actions"], json!([{ "title": "Run it once" }, { "title": "Cancel" }]));
        client.reply(&question, choice);
        assert_eq!(client.notification("window/showMessage")["message"], format!("confirmed: {expected}"));
    }
    // A client that cannot ask, or a user who declines: nothing is run.
    let search = |_: &SearchRequest, observer: &dyn Observer| {
        assert!(!observer.confirm("Run it?"));
        Err(OptimizeError::Declined("nothing was run; record a call".to_owned()))
    };
    let mut client = setup().tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    let question = client.server_message("window/showMessageRequest");
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32601, "message": "what?" } }));
    assert_eq!(end_of_progress(&mut client).0.as_deref(), Some("nothing was run"));
    let message = client.notification("window/showMessage");
    let text = "`scale` was not optimized: nothing was run; record a call";
    assert_eq!(message, json!({ "type": 3, "message": text }));
    client.assert_silent();
    // A job that is stopped does not wait for the answer any longer.
    let search = |_: &SearchRequest, observer: &dyn Observer| {
        assert!(!observer.confirm("Run it?"));
        Err(OptimizeError::Cancelled)
    };
    let mut client = setup().tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    client.server_message("window/showMessageRequest");
    client.notify("window/workDoneProgress/cancel", json!({ "token": job }));
    assert_eq!(end_of_progress(&mut client).0.as_deref(), Some("stopped"));
}

#[test]
fn failed_and_crashed_searches_are_reported_and_end_their_progress() {
    for crashes in [false, true] {
        let search = move |_: &SearchRequest, _: &dyn Observer| {
            assert!(!crashes, "out of luck");
            Err(OptimizeError::Failed("no torch in this Python".to_owned()))
        };
        let mut client = setup().tools(tools(Arc::new(search))).start();
        let document = open(&mut client);
        let job = start(&mut client, &document);
        accept_progress(&mut client, &job);
        assert_eq!(end_of_progress(&mut client).0.as_deref(), Some("failed"));
        let message = client.notification("window/showMessage");
        assert_eq!(message["type"], 1);
        let text = message["message"].as_str().unwrap();
        let reason = if crashes { "out of luck" } else { "no torch in this Python" };
        assert!(text.starts_with("Optimizing `scale` failed: ") && text.contains(reason), "{text}");
        // The job can be started again.
        start(&mut client, &document);
        let create = client.server_message("window/workDoneProgress/create");
        client.send(&json!({ "jsonrpc": "2.0", "id": create["id"], "error": { "code": -32603, "message": "no" } }));
        client.notification("window/showMessage");
        client.assert_silent();
    }
}

#[test]
fn a_search_sees_the_editors_text_and_settings_and_is_stopped_at_the_end() {
    let seen = Arc::new(Mutex::new(None));
    let stopped = Arc::new(AtomicBool::new(false));
    let (asked, ended) = (Arc::clone(&seen), Arc::clone(&stopped));
    let search = move |request: &SearchRequest, observer: &dyn Observer| {
        *asked.lock().unwrap() = Some(request.clone());
        while !observer.cancelled() {
            std::thread::yield_now();
        }
        ended.store(true, Ordering::SeqCst);
        Err(OptimizeError::Cancelled)
    };
    let options = json!({ "settings": { "select": ["L002"], "optimize": { "budget": 12.5 } } });
    // The client does not support progress.
    let setup = Setup::new().full().options(options).tools(tools(Arc::new(search)));
    let mut client = setup.start();
    let mut document = open(&mut client);
    client.replace(&mut document, "BLOCK=64", "BLOCK=32");
    client.published(&document);
    start(&mut client, &document);
    let deadline = Instant::now() + Duration::from_secs(30);
    let request = loop {
        if let Some(request) = seen.lock().unwrap().clone() {
            break request;
        }
        assert!(Instant::now() < deadline);
    };
    assert_eq!(request.text, document.text);
    assert_eq!((request.file, request.workspace), (client.path("a.py"), client.folder().to_path_buf()));
    assert_eq!((request.subject.name(), request.settings.optimize.budget), (Some("scale"), 12.5));
    assert_eq!(request.python, PathBuf::from("python-of-the-test"));
    assert!(client.stop());
    assert!(stopped.load(Ordering::SeqCst), "the search was left running");
}

#[test]
fn without_a_device_the_reason_is_shown() {
    let missing = Tools { devices: Arc::new(|| Devices::Missing("no GPU here".to_owned())), ..Tools::default() };
    let mut client = setup().tools(missing).start();
    let document = client.open("a.py", BAD);
    client.published(&document);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let reason = action(&mut client, &document, "tl.arange")["disabled"]["reason"].take();
        if reason == "no GPU here" {
            break;
        }
        assert_eq!(reason, "still looking for CUDA devices");
        assert!(Instant::now() < deadline);
    }
    assert_eq!(action(&mut client, &document, "import triton"), Value::Null);
}

/// If candidates are judged on another machine, this one needs no device.
#[test]
fn a_remote_evaluator_needs_no_local_device() {
    let missing = || Devices::Missing("no GPU here".to_owned());
    let search = |request: &SearchRequest, _: &dyn Observer| {
        let summary = format!("judged by {:?}", request.settings.evaluator.command);
        Ok(SearchOutcome {
            kernel: "scale".to_owned(),
            evaluated: 0,
            remembered: 0,
            offer: None,
            summary,
            run: String::new(),
        })
    };
    let tools = Tools { devices: Arc::new(missing), ..tools(Arc::new(search)) };
    let options = json!({ "settings": { "select": ["L002"], "evaluator": { "command": ["gpubox"] } } });
    let mut client = Setup::new().full().options(options).tools(tools).start();
    let document = open(&mut client);
    start(&mut client, &document);
    assert_eq!(client.notification("window/showMessage")["message"], "judged by [\"gpubox\"]");
}
