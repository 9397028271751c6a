//! Tests of requests that the client cancels, and of rules that crash.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use rules::learned::LearnedRules;
use rules::{RuleContext, Selection};
use serde_json::{Value, json};
use warpsmith::server::Tools;

use crate::harness::{BAD, Setup};

/// A server whose check blocks until the test releases it, and counts its runs.
fn gated() -> (Tools, mpsc::Sender<()>, Arc<AtomicUsize>) {
    let (gate, wait) = mpsc::channel::<()>();
    let (wait, count) = (Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
    let checks = Arc::clone(&count);
    let check = move |_: &RuleContext<'_>, _: &Selection, _: &LearnedRules| {
        checks.fetch_add(1, Ordering::SeqCst);
        wait.lock().unwrap().recv().unwrap();
        Vec::new()
    };
    (Tools { check: Arc::new(check), ..Tools::default() }, gate, count)
}

#[test]
fn a_cancelled_request_is_answered_at_once_and_its_work_is_left_out() {
    let (tools, gate, checks) = gated();
    let mut client = Setup::new().pulls().tools(tools).start();
    let documents = [client.open("a.py", BAD), client.open("b.py", BAD)];
    let ask = |document: &crate::harness::Document| json!({ "textDocument": { "uri": document.uri } });
    let first = client.send_request("textDocument/diagnostic", ask(&documents[0]));
    while checks.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    // Many requests are queued behind the check; a cancellation is still handled.
    let waiting: Vec<i64> =
        (0..200).map(|_| client.send_request("textDocument/diagnostic", ask(&documents[1]))).collect();
    let hover = json!({ "textDocument": { "uri": documents[1].uri }, "position": { "line": 0, "character": 0 } });
    let hover = client.send_request("textDocument/hover", hover);
    for &id in waiting.iter().chain([&hover]) {
        client.notify("$/cancelRequest", json!({ "id": id }));
    }
    for id in waiting.into_iter().chain([hover]) {
        assert_eq!(client.answer(id).unwrap_err()["code"], -32800);
    }
    gate.send(()).unwrap();
    assert_eq!(client.answer(first).unwrap()["items"], json!([]));
    client.assert_silent();
    assert_eq!(checks.load(Ordering::SeqCst), 1, "what was cancelled was done all the same");
}

#[test]
fn while_a_text_is_checked_edits_are_taken_and_then_checked_once() {
    let (tools, gate, checks) = gated();
    let mut client = Setup::new().tools(tools).start();
    let mut document = client.open("a.py", BAD);
    for _ in 0..50 {
        client.change_raw(&mut document, json!([{ "text": BAD }]));
    }
    // Releasing the first and the second check is enough, unless the first was already of the last version.
    gate.send(()).unwrap();
    gate.send(()).unwrap();
    assert_eq!(client.published(&document), [] as [Value; 0]);
    assert!(checks.load(Ordering::SeqCst) <= 2);
}

#[test]
fn a_crashing_rule_is_reported_once_and_the_server_continues() {
    let check = |context: &RuleContext<'_>, selection: &Selection, learned: &LearnedRules| {
        assert!(!context.source.text().contains("crash"), "a bug in a rule");
        rules::check_with(context, selection, learned)
    };
    let tools = Tools { check: Arc::new(check), ..Tools::default() };
    let mut client = Setup::new().tools(tools).start();
    for name in ["a.py", "b.py"] {
        let document = client.open(name, "crash = 1\n");
        assert_eq!(client.published(&document), [] as [Value; 0]);
    }
    let message = client.notification("window/showMessage");
    assert_eq!(message["type"], 1);
    assert!(message["message"].as_str().unwrap().contains("a bug in a rule"));
    let document = client.open("c.py", BAD);
    assert_eq!(client.published(&document).len(), 1);
    client.assert_silent();
}
