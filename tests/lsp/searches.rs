//! Tests of the commands around searches: with settings, resumed searches, reports, and edits of an older text.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use search::{Observer, OptimizeError, OptimizeScope, SearchAction, SearchOutcome, SearchRequest};
use serde_json::{Value, json};

use crate::harness::{BAD, Client, Document, Setup};
use crate::optimize::{
    accept_progress, annotating, end_of_progress, faster, found, gated, gated_with, open, setup, start, tools,
};

/// A search that finds nothing and keeps its request.
fn noting() -> (Setup, Arc<Mutex<Vec<SearchRequest>>>) {
    let seen: Arc<Mutex<Vec<SearchRequest>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let search = move |request: &SearchRequest, _: &dyn Observer| {
        kept.lock().unwrap().push(request.clone());
        Err::<SearchOutcome, _>(OptimizeError::Failed("nothing is measured here".to_owned()))
    };
    (Setup::new().full().tools(tools(Arc::new(search))), seen)
}

/// The titles and commands of the offers to optimize.
fn offered(client: &mut Client, document: &Document, at: &str) -> Vec<(String, Value)> {
    let actions = client.actions(document, &document.range_of(at), &[]);
    let rewrites = actions.into_iter().filter(|action| action["kind"] == "refactor.rewrite");
    rewrites.map(|mut action| (action["title"].as_str().unwrap().to_owned(), action["command"].take())).collect()
}

fn command(offered: &[(String, Value)], title: &str) -> Value {
    let found = offered.iter().find(|(known, _)| known == title);
    found.unwrap_or_else(|| panic!("{title}: {offered:?}")).1.clone()
}

#[test]
fn all_kernels_of_a_function_are_optimized_together() {
    let (setup, seen) = noting();
    let second = BAD[BAD.find("@triton.jit").unwrap()..BAD.find("def run").unwrap()].replace("def scale", "def shift");
    let text = BAD.replace("def run", &format!("{second}def run"));
    let text = format!("{text}    shift[(1,)](x, y, x.numel(), BLOCK=64)\n    return y\n");
    let mut client = setup.start();
    open(&mut client);
    let document = client.open("b.py", &text);
    client.published(&document);
    let titles = ["Optimize the kernels of `run`", "Optimize the kernels of `run` with settings…"];
    let actions = offered(&mut client, &document, "return y");
    assert_eq!(actions.iter().map(|(title, _)| title).collect::<Vec<_>>(), titles);
    assert_eq!(offered(&mut client, &document, "shift[(1")[0].0, "Optimize this kernel", "at a launch it is that one");
    client.request("workspace/executeCommand", command(&actions, titles[0]));
    client.notification("window/showMessage");
    assert_eq!(seen.lock().unwrap()[0].subject, OptimizeScope::Function("run".to_owned()));
}

#[test]
fn a_search_with_options_asks_the_user_for_its_duration() {
    let (setup, seen) = noting();
    let mut client = setup.start();
    let document = open(&mut client);
    let actions = offered(&mut client, &document, "def scale");
    let ask = command(&actions, "Optimize this kernel with settings…");
    for (answer, is_started) in [(json!(null), false), (json!({ "title": "1 minute, numbers only" }), true)] {
        let id = client.send_request("workspace/executeCommand", ask.clone());
        let question = client.server_message("window/showMessageRequest");
        assert_eq!(question["params"]["message"], "How long may the search for a faster `scale` take?");
        assert!(question["params"]["actions"].as_array().unwrap().contains(&json!({ "title": "2 minutes" })));
        client.reply(&question, answer);
        assert_eq!(client.answer(id).unwrap(), json!(null));
        if is_started {
            client.notification("window/showMessage");
        }
        assert_eq!(seen.lock().unwrap().len(), usize::from(is_started));
    }
    let settings = &seen.lock().unwrap()[0].settings.optimize;
    assert_eq!((settings.budget, settings.rewrites), (60.0, false));
}

#[test]
fn a_search_that_was_stopped_goes_on() {
    let (setup, seen) = noting();
    let mut client = setup.start();
    let document = open(&mut client);
    let file = PathBuf::from(document.uri.strip_prefix("file://").unwrap());
    let runs = file.with_file_name(".warpsmith").join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    let begun = json!({
        "what": "begun", "form": 2, "at": 0, "file": file, "subject": { "kernel": "scale" }, "name": "scale",
        "text": BAD, "calls": [], "calls_hash": "", "budget": 77.0, "seed": 1, "environment": "Test GPU",
    });
    std::fs::write(runs.join("scale-4.jsonl"), format!("{begun}\n")).unwrap();
    // The list of runs is cached for a while.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let actions = loop {
        let actions = offered(&mut client, &document, "def scale");
        if actions.len() > 2 {
            break actions;
        }
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    client.request("workspace/executeCommand", command(&actions, "Resume optimizing this kernel"));
    client.notification("window/showMessage");
    let done = |at: usize| {
        let seen = seen.lock().unwrap();
        (seen[at].work.clone(), seen[at].settings.optimize.budget)
    };
    assert_eq!(done(0), (SearchAction::GoOn("scale-4".to_owned()), 77.0));

    // A completed run has a result, which can be measured again. The runs are listed anew after each job.
    let ended = json!({ "what": "ended", "seconds": 9.0, "summary": "" });
    std::fs::write(runs.join("scale-4.jsonl"), format!("{begun}\n{ended}\n")).unwrap();
    let title = "Measure this kernel against what it was before the last search";
    let actions = offered(&mut client, &document, "def scale");
    client.request("workspace/executeCommand", command(&actions, title));
    client.notification("window/showMessage");
    assert_eq!(done(1).0, SearchAction::Measure("scale-4".to_owned()));
}

/// After a search the user can open its report outside of the editor.
#[test]
fn the_report_of_the_last_search_is_opened() {
    let search = |request: &SearchRequest, _: &dyn Observer| {
        let begun = json!({
            "what": "begun", "form": 2, "at": 0, "file": request.file, "subject": { "kernel": "scale" }, "name": "scale", "text": request.text,
            "calls": [], "calls_hash": "", "budget": 60.0, "seed": 1, "environment": "Test GPU",
        });
        let summary = "nothing is faster".to_owned();
        let ended = json!({ "what": "ended", "seconds": 9.0, "summary": summary });
        let runs = request.workspace.join(".warpsmith/runs");
        std::fs::create_dir_all(&runs).unwrap();
        std::fs::write(runs.join("scale-1.jsonl"), format!("{begun}\n{ended}\n")).unwrap();
        let (kernel, run) = ("scale".to_owned(), "scale-1".to_owned());
        Ok(SearchOutcome { kernel, evaluated: 3, remembered: 0, offer: None, summary, run })
    };
    let opens = json!({ "window": { "showDocument": { "support": true } } });
    let mut client = setup().capabilities(&opens).tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    let titles = |client: &mut Client| -> Vec<Value> {
        let actions = client.actions(&document, &document.range_of("def scale"), &[]);
        actions.into_iter().filter(|action| action["title"].as_str().unwrap().starts_with("Show the report")).collect()
    };
    assert_eq!(titles(&mut client), Vec::<Value>::new(), "there is none yet");
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    end_of_progress(&mut client);
    assert_eq!(client.notification("window/showMessage")["message"], "nothing is faster");
    let command = titles(&mut client)[0]["command"].clone();
    let id = client.send_request("workspace/executeCommand", command);
    let request = client.server_message("window/showDocument");
    client.reply(&request, json!({ "success": true }));
    assert_eq!(client.answer(id).unwrap(), json!({ "run": "scale-1" }));
    assert_eq!(request["params"]["external"], true);
    let path = request["params"]["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("nothing is faster"), "{page}");
    client.assert_silent();
}

#[test]
fn a_result_for_an_older_text_is_shown_as_a_diff() {
    let (tools, gate) = gated();
    let opens = json!({ "window": { "showDocument": { "support": true } } });
    let mut client = setup().capabilities(&opens).tools(tools).start();
    let mut document = open(&mut client);
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    client.replace(&mut document, "n, BLOCK:", "n, m, BLOCK:");
    client.published(&document);
    gate.send(()).unwrap();
    end_of_progress(&mut client);
    let question = client.server_message("window/showMessageRequest");
    client.reply(&question, json!({ "title": "Apply" }));
    let message = client.notification("window/showMessage")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("result is for an older text"), "{message}");
    let request = client.server_message("window/showDocument");
    client.reply(&request, json!({ "success": true }));
    let path = request["params"]["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    let diff = std::fs::read_to_string(&path).unwrap();
    assert!(path.ends_with("/scale.diff") && diff.contains("\n+    scale[") && diff.contains("BLOCK=128"), "{diff}");
    client.assert_silent();
}

/// The result of a search whose speedup is predicted by the model.
fn predicted(request: &SearchRequest) -> SearchOutcome {
    let mut outcome = found(request);
    let speedup = &mut outcome.offer.as_mut().unwrap().speedup;
    (speedup.predicted, speedup.pairs, speedup.low, speedup.high) = (true, 0, speedup.ratio, speedup.ratio);
    outcome
}

/// A user who confirms an annotated edit may never read its label, so a candidate that was neither run nor checked is
/// offered only after a question.
#[test]
fn a_predicted_result_is_applied_only_after_a_question() {
    for (choice, applies) in [(json!({ "title": "Apply" }), true), (Value::Null, false)] {
        let (tools, gate) = gated_with(predicted);
        let mut client = annotating().tools(tools).start();
        let document = open(&mut client);
        let job = start(&mut client, &document);
        accept_progress(&mut client, &job);
        gate.send(()).unwrap();
        end_of_progress(&mut client);
        let question = client.server_message("window/showMessageRequest");
        let text = question["params"]["message"].as_str().unwrap();
        let says = "predicted 1.83× faster: 200 → 110 µs by a model of the Test GPU, neither run nor checked";
        assert_eq!(text, format!("`scale`: {says}. BLOCK 64 → 128 · Test GPU, n=1024"));
        client.reply(&question, choice);
        if applies {
            let request = client.server_message("workspace/applyEdit");
            assert_eq!(request["params"]["label"], format!("scale: {says}"));
            let changes = &request["params"]["edit"]["documentChanges"][0];
            assert_eq!(document.edited(&changes["edits"]), faster(&document.text));
            client.reply(&request, json!({ "applied": true }));
        }
        client.assert_silent();
    }
}
