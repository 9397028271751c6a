//! What a diagnostic says, and diagnostics that are asked for.

use serde_json::{Value, json};

use crate::harness::{BAD, MENDED, MISTAKE, Setup};

#[test]
fn a_diagnostic_says_what_the_client_can_show() {
    let mut client = Setup::new().full().start();
    let document = client.open("a.py", BAD);
    let diagnostic = client.published(&document).remove(0);
    assert_eq!(diagnostic["code"], "L002");
    assert_eq!(diagnostic["source"], "warpsmith");
    assert_eq!(diagnostic["severity"], 1);
    assert_eq!(diagnostic["range"], document.range_of(MISTAKE));
    let href = diagnostic["codeDescription"]["href"].as_str().unwrap();
    assert!(href.starts_with("https://") && href.ends_with("/dtype-called"), "{href}");
    assert!(diagnostic["message"].as_str().unwrap().contains("`tl.float32` is a dtype"));
    let fix = &diagnostic["data"]["fix"];
    assert_eq!((&diagnostic["data"]["version"], &fix["version"]), (&json!(1), &json!(1)));
    assert_eq!(document.edited(&fix["edits"]), BAD.replace(MISTAKE, MENDED));
}

#[test]
fn a_client_that_can_show_little_is_sent_little() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", BAD);
    let diagnostic = client.published(&document).remove(0);
    let keys: Vec<&String> = diagnostic.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["range", "severity", "code", "source", "message"]);
}

#[test]
fn who_asks_gets_an_answer_and_nothing_is_pushed() {
    let mut client = Setup::new().pulls().start();
    let mut document = client.open("a.py", BAD);
    assert_eq!(client.pulled(&document).len(), 1);
    client.replace(&mut document, MISTAKE, MENDED);
    assert_eq!(client.pulled(&document), [] as [Value; 0]);
    client.close(&document);
    assert_eq!(client.pulled(&document), [] as [Value; 0]);
    client.assert_silent();
}

#[test]
fn an_answer_that_the_client_has_is_not_sent_again() {
    let mut client = Setup::new().pulls().start();
    let mut document = client.open("a.py", BAD);
    let ask = |previous: Value| json!({ "textDocument": { "uri": document.uri }, "previousResultId": previous });
    let first = client.request("textDocument/diagnostic", ask(Value::Null));
    let again = client.request("textDocument/diagnostic", ask(first["resultId"].clone()));
    assert_eq!(again, json!({ "kind": "unchanged", "resultId": first["resultId"] }));
    let other = client.request("textDocument/diagnostic", ask(json!("something else")));
    assert_eq!(other, first);
    let ask = ask(first["resultId"].clone());
    client.replace(&mut document, MISTAKE, MENDED);
    let changed = client.request("textDocument/diagnostic", ask);
    assert_eq!((&changed["kind"], &changed["items"]), (&json!("full"), &json!([])));
}

#[test]
fn edits_and_questions_in_one_breath_are_answered_for_the_text_of_the_end() {
    let mut client = Setup::new().pulls().start();
    let mut document = client.open("a.py", BAD);
    let params = json!({ "textDocument": { "uri": document.uri } });
    let mut ids = Vec::new();
    for _ in 0..10 {
        client.replace(&mut document, MISTAKE, MENDED);
        ids.push(client.send_request("textDocument/diagnostic", params.clone()));
        client.replace(&mut document, MENDED, MISTAKE);
        ids.push(client.send_request("textDocument/diagnostic", params.clone()));
    }
    // What is sent is either of the text at the question or of a later one; the last one is of the last text.
    let last = ids.pop().unwrap();
    for id in ids {
        assert_eq!(client.answer(id).unwrap()["kind"], "full");
    }
    assert_eq!(client.answer(last).unwrap()["items"].as_array().unwrap().len(), 1);
}
