//! Tests of the contents of diagnostics, and of pulled diagnostics.

use std::sync::Arc;

use model::syntax::Span;
use rules::learned::LearnedRules;
use rules::{Diagnostic, RuleContext, Selection, Severity, find};
use serde_json::{Value, json};
use warpsmith::server::Tools;

use crate::harness::{BAD, MENDED, MISTAKE, Setup};

#[test]
fn diagnostics_have_all_fields_for_a_full_client() {
    let mut client = Setup::new().full().start();
    let document = client.open("a.py", BAD);
    let diagnostic = client.published(&document).remove(0);
    assert_eq!(diagnostic["code"], "L002");
    assert_eq!(diagnostic["source"], "warpsmith");
    assert_eq!(diagnostic["severity"], 1);
    assert_eq!(diagnostic["range"], document.range_of(MISTAKE));
    let href = find("L002").unwrap().declaration.url();
    assert!(href.starts_with("https://"), "{href}");
    assert_eq!(diagnostic["codeDescription"], json!({ "href": href }));
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
fn clients_that_pull_diagnostics_receive_no_pushed_ones() {
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
fn pulls_between_quick_edits_end_with_the_diagnostics_of_the_last_text() {
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
    // Each report is of the text at the time of the request or of a later one; the last report is of the last text.
    let last = ids.pop().unwrap();
    for id in ids {
        assert_eq!(client.answer(id).unwrap()["kind"], "full");
    }
    assert_eq!(client.answer(last).unwrap()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn related_information_and_tags_are_sent_to_clients_that_support_them() {
    let check = |context: &RuleContext<'_>, _: &Selection, _: &LearnedRules| {
        let text = context.source.text();
        let span = |part: &str| Span::new(text.find(part).unwrap(), text.find(part).unwrap() + part.len());
        let finding = |code| Diagnostic::new(&find(code).unwrap().declaration, span(MISTAKE), "wrong");
        let unused = finding("M003").with_related(span("def scale"), "in this kernel");
        let mut hint = finding("L002");
        hint.severity = Severity::Hint;
        vec![unused, hint]
    };
    let tools = Tools { check: Arc::new(check), ..Tools::default() };
    let mut client = Setup::new().full().tools(tools.clone()).start();
    let document = client.open("a.py", BAD);
    let diagnostics = client.published(&document);
    let location = json!({ "uri": document.uri, "range": document.range_of("def scale") });
    assert_eq!(diagnostics[0]["relatedInformation"], json!([{ "location": location, "message": "in this kernel" }]));
    let tags: Vec<_> = diagnostics.iter().map(|item| item["tags"].clone()).collect();
    assert_eq!(tags, [json!([1]), Value::Null]);
    assert_eq!(diagnostics[1]["severity"], 4);
    let mut client = Setup::new().tools(tools).start();
    let document = client.open("a.py", BAD);
    for item in client.published(&document) {
        assert!(item.get("relatedInformation").is_none() && item.get("tags").is_none());
    }
}
