//! Tests of quick fixes, suppressions, and the offer to optimize.

use serde_json::{Value, json};

use crate::harness::{BAD, Client, Document, MENDED, MISTAKE, Setup};

/// The action with this title.
fn action<'a>(actions: &'a [Value], title: &str) -> &'a Value {
    let titles: Vec<_> = actions.iter().map(|action| &action["title"]).collect();
    actions.iter().find(|action| action["title"] == title).unwrap_or_else(|| panic!("no `{title}` in {titles:?}"))
}

/// The only edit of an action, which must be for a versioned document.
fn versioned<'a>(action: &'a Value, document: &Document) -> &'a Value {
    let changes = action["edit"]["documentChanges"].as_array().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["textDocument"], json!({ "uri": document.uri, "version": document.version }));
    &changes[0]["edits"]
}

const FIX: &str = "Use `tl.cast(…, tl.float32)`";
const IGNORE: &str = "Ignore L002 on this line";

fn opened(client: &mut Client) -> (Document, Vec<Value>) {
    let document = client.open("a.py", BAD);
    let diagnostics = client.published(&document);
    (document, diagnostics)
}

#[test]
fn a_quick_fix_corrects_its_diagnostic() {
    let mut client = Setup::new().full().start();
    let (mut document, diagnostics) = opened(&mut client);
    let actions = client.actions(&document, &document.range_of(MISTAKE), &diagnostics);
    let fix = action(&actions, FIX);
    assert_eq!((&fix["kind"], &fix["isPreferred"]), (&json!("quickfix"), &json!(true)));
    assert_eq!(fix["diagnostics"], json!(diagnostics));
    let edits = versioned(fix, &document).clone();
    document.text = document.edited(&edits);
    assert_eq!(document.text, BAD.replace(MISTAKE, MENDED));
    let changes: Vec<Value> = edits.as_array().unwrap().iter().rev().cloned().collect();
    let changes = changes.iter().map(|edit| json!({ "range": edit["range"], "text": edit["newText"] })).collect();
    client.change_raw(&mut document, changes);
    assert_eq!(client.published(&document), [] as [Value; 0]);
}

#[test]
fn a_suppression_goes_to_the_line_end_and_works() {
    let mut client = Setup::new().full().start();
    let (mut document, diagnostics) = opened(&mut client);
    let actions = client.actions(&document, &document.range_of(MISTAKE), &diagnostics);
    let ignore = action(&actions, IGNORE);
    assert_eq!((&ignore["kind"], ignore.get("isPreferred")), (&json!("quickfix"), None));
    let text = document.edited(versioned(ignore, &document));
    assert_eq!(text, BAD.replace(MISTAKE, &format!("{MISTAKE}  # warpsmith: ignore[L002]")));
    client.change_raw(&mut document, json!([{ "text": text }]));
    assert_eq!(client.published(&document), [] as [Value; 0]);
}

#[test]
fn quick_fixes_for_outdated_diagnostics_use_the_current_text() {
    let mut client = Setup::new().full().start();
    let (mut document, diagnostics) = opened(&mut client);
    client.replace(&mut document, "import triton\n", "import triton  # 😀\n\n");
    let actions = client.actions(&document, &document.range_of(MISTAKE), &diagnostics);
    let text = document.edited(versioned(action(&actions, FIX), &document));
    assert_eq!(text, document.text.replace(MISTAKE, MENDED));
    client.published(&document);
}

#[test]
fn actions_need_no_diagnostics_from_the_client() {
    let mut client = Setup::new().full().start();
    let (document, _) = opened(&mut client);
    let cursor = json!({ "start": document.range_of("factor")["end"], "end": document.range_of("float32")["start"] });
    let foreign = json!({ "range": cursor, "message": "x", "source": "other", "data": { "version": 1 } });
    for diagnostics in [vec![], vec![foreign]] {
        let actions = client.actions(&document, &cursor, &diagnostics);
        assert_eq!(document.edited(versioned(action(&actions, FIX), &document)), BAD.replace(MISTAKE, MENDED));
    }
    let elsewhere = client.actions(&document, &document.range_of("import triton"), &[]);
    assert_eq!(elsewhere, [] as [Value; 0]);
}

#[test]
fn two_findings_on_a_line_have_no_preferred_fix_and_one_suppression() {
    let mut client = Setup::new().full().start();
    let document = client.open("a.py", &BAD.replace(MISTAKE, "tl.float32(n) + tl.int8(n)"));
    let diagnostics = client.published(&document);
    let actions = client.actions(&document, &document.range_of("tl.float32(n) + tl.int8(n)"), &diagnostics);
    let fixes: Vec<_> = actions.iter().filter(|action| action["title"].as_str().unwrap().starts_with("Use")).collect();
    assert_eq!(fixes.len(), 2);
    assert!(fixes.iter().all(|fix| fix.get("isPreferred").is_none()));
    assert_eq!(actions.iter().filter(|action| action["title"] == IGNORE).count(), 1);
}

#[test]
fn code_actions_are_limited_to_the_requested_kinds() {
    let mut client = Setup::new().full().start();
    let (document, diagnostics) = opened(&mut client);
    for (only, titles) in [
        (json!(["quickfix"]), vec![FIX, IGNORE]),
        (json!(["refactor"]), vec!["Optimize this kernel"]),
        (json!(["refactor.rewrite"]), vec!["Optimize this kernel"]),
        (json!(["refactor.rewritten", "source.fixAll"]), vec![]),
        (json!([""]), vec![FIX, IGNORE, "Optimize this kernel"]),
    ] {
        let context = json!({ "diagnostics": diagnostics, "only": only });
        let range = document.range_of(MISTAKE);
        let params = json!({ "textDocument": { "uri": document.uri }, "range": range, "context": context });
        let actions = client.request("textDocument/codeAction", params);
        let found: Vec<_> = actions.as_array().unwrap().iter().map(|action| action["title"].clone()).collect();
        assert_eq!(found, titles, "{only}");
    }
}

#[test]
fn clients_without_versions_get_plain_edits_and_clients_without_actions_none() {
    let literals = json!({ "textDocument": { "codeAction": { "codeActionLiteralSupport": {
        "codeActionKind": { "valueSet": ["quickfix"] }
    } } } });
    let mut client = Setup::new().capabilities(&literals).start();
    let (document, diagnostics) = opened(&mut client);
    let actions = client.actions(&document, &document.range_of(MISTAKE), &diagnostics);
    let edits = &action(&actions, FIX)["edit"]["changes"][&document.uri];
    assert_eq!(document.edited(edits), BAD.replace(MISTAKE, MENDED));
    // Without a device the offer to optimize would be disabled, which this client cannot show.
    assert!(!actions.iter().any(|action| action["title"] == "Optimize this kernel"));

    let mut client = Setup::new().start();
    let (document, diagnostics) = opened(&mut client);
    assert_eq!(client.actions(&document, &document.range_of(MISTAKE), &diagnostics), [] as [Value; 0]);
}

#[test]
fn an_untrusted_workspace_offers_no_optimization() {
    let options = json!({ "settings": { "select": ["L002"] }, "workspaceTrusted": false });
    let mut client = Setup::new().full().options(options).start();
    let (document, _) = opened(&mut client);
    let actions = client.actions(&document, &document.range_of("def scale"), &[]);
    let reason = action(&actions, "Optimize this kernel")["disabled"]["reason"].as_str().unwrap();
    assert!(reason.contains("not trusted"), "{reason}");
    let params = json!({ "command": "warpsmith.optimize", "arguments": [{ "uri": document.uri, "kernel": "scale" }] });
    let (code, message) = client.request_error("workspace/executeCommand", params);
    assert_eq!(code, -32803);
    assert!(message.contains("not trusted"), "{message}");
}
