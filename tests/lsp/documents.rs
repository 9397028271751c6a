//! Tests of document synchronization, including unusual edits. Diagnostics are published only for existing versions.

use serde_json::{Value, json};

use crate::harness::{BAD, MENDED, MISTAKE, MISTAKE_LINE, Setup, codes};

#[test]
fn diagnostics_follow_each_version_and_are_cleared_on_close() {
    let mut client = Setup::new().start();
    let mut document = client.open("a.py", BAD);
    assert_eq!(codes(&client.published(&document)), ["L002"]);
    client.replace(&mut document, MISTAKE, "tl.cast(n, tl.float32)");
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.replace(&mut document, MENDED, "tl.int8(n) + tl.int8(n)");
    assert_eq!(codes(&client.published(&document)), ["L002", "L002"]);
    client.close(&document);
    let cleared = client.notification("textDocument/publishDiagnostics");
    assert_eq!(cleared, json!({ "uri": document.uri, "diagnostics": [] }));
    // It can be opened again, with any version.
    let document = client.open("a.py", BAD);
    assert_eq!(client.published(&document).len(), 1);
}

#[test]
fn columns_are_counted_in_the_negotiated_encoding() {
    // Characters before the mistake on its line: é with 1 unit in UTF-16 and 2 in UTF-8, and 😀 with 2 and 4.
    let before = "    é = \"😀\"; factor = ";
    for (setup, units) in [(Setup::new(), before.encode_utf16().count()), (Setup::new().utf8(), before.len())] {
        let mut client = setup.start();
        let mut document = client.open("a.py", BAD);
        let diagnostics = client.published(&document);
        let at = |column: usize| json!({ "line": MISTAKE_LINE, "character": column });
        let range = json!({ "start": at(units), "end": at(units + MISTAKE.len()) });
        assert_eq!(diagnostics[0]["range"], range);
        client.change_raw(&mut document, json!([{ "range": range, "text": MENDED }]));
        assert_eq!(client.published(&document), [] as [Value; 0]);
        // A column inside of a character refers to its start.
        let inside = at(units - "😀\"; factor = ".encode_utf16().count() + 1);
        client.change_raw(&mut document, json!([{ "range": { "start": inside, "end": inside }, "text": "x" }]));
        assert_eq!(client.published(&document), [] as [Value; 0]);
    }
}

#[test]
fn a_burst_is_checked_about_once_and_the_last_version_is_published() {
    let mut client = Setup::new().start();
    let mut document = client.open("a.py", BAD);
    client.published(&document);
    for number in 0..200 {
        let from = document.text[document.text.find("scale").unwrap()..].split('(').next().unwrap().to_owned();
        client.replace(&mut document, &from, &format!("scale_{number}"));
    }
    assert_eq!(client.published(&document).len(), 1);
    client.assert_silent();
}

#[test]
fn several_changes_in_one_message_are_made_in_order() {
    let mut client = Setup::new().start();
    let mut document = client.open("a.py", "");
    assert_eq!(client.published(&document), [] as [Value; 0]);
    let start = json!({ "line": 0, "character": 0 });
    let empty = json!({ "start": start, "end": start });
    client.change_raw(
        &mut document,
        json!([
            { "range": empty, "text": "nonsense" },
            { "text": BAD },
            { "range": empty, "text": "# 😀\n" },
            { "range": { "start": { "line": 0, "character": 2 }, "end": { "line": 0, "character": 4 } }, "text": "" },
        ]),
    );
    let diagnostics = client.published(&document);
    assert_eq!(diagnostics[0]["range"]["start"]["line"], MISTAKE_LINE + 1);
}

#[test]
fn an_edit_past_the_end_is_clamped_and_logged() {
    let mut client = Setup::new().start();
    let mut document = client.open("a.py", "x = 1");
    client.published(&document);
    let far = json!({ "line": 99, "character": 7 });
    let text = format!("\n{BAD}");
    client.change_raw(&mut document, json!([{ "range": { "start": far, "end": far }, "text": text }]));
    assert_eq!(client.published(&document)[0]["range"]["start"]["line"], MISTAKE_LINE + 1);
    client.wait_for_log("an edit reaches past the end");
    // A position past the end of a line refers to its end; the existing text stays.
    let range = json!({ "start": { "line": 0, "character": 99 }, "end": { "line": 0, "character": 1000 } });
    client.change_raw(&mut document, json!([{ "range": range, "text": "\n" }]));
    assert_eq!(client.published(&document)[0]["range"]["start"]["line"], MISTAKE_LINE + 2);
}

#[test]
fn an_edit_that_ends_before_it_starts_is_left_out_and_logged() {
    let mut client = Setup::new().start();
    let mut document = client.open("a.py", BAD);
    let before = client.published(&document);
    let range = json!({ "start": { "line": 5, "character": 4 }, "end": { "line": 2, "character": 0 } });
    client.change_raw(&mut document, json!([{ "range": range, "text": "gone" }]));
    assert_eq!(client.published(&document), before);
    client.wait_for_log("an edit is left out");
}

#[test]
fn messages_about_documents_that_are_not_open_are_survived() {
    let mut client = Setup::new().full().start();
    let identifier = json!({ "uri": client.uri("unknown.py"), "version": 3 });
    client.notify("textDocument/didChange", json!({ "textDocument": identifier, "contentChanges": [{ "text": "x" }] }));
    client.wait_for_log("a document that is not open was edited");
    client.notify("textDocument/didSave", json!({ "textDocument": identifier }));
    client.notify("textDocument/didClose", json!({ "textDocument": identifier }));
    client.wait_for_log("a document that is not open was closed");
    let position = json!({ "line": 0, "character": 0 });
    let hover = client.request("textDocument/hover", json!({ "textDocument": identifier, "position": position }));
    assert_eq!(hover, Value::Null);
    let range = json!({ "start": position, "end": position });
    let params = json!({ "textDocument": identifier, "range": range, "context": { "diagnostics": [] } });
    assert_eq!(client.request("textDocument/codeAction", params), json!([]));
    client.assert_silent();
}

#[test]
fn unusual_uris_and_texts_are_supported() {
    let mut client = Setup::new().without_folders().start();
    for uri in ["untitled:Untitled-1", "file:///tmp/with%20space/%C3%A9%5B1%5D.py", "git:/a.py?%7B%22ref%22%7D"] {
        for text in [BAD.to_owned(), BAD.replace('\n', "\r\n"), format!("\u{feff}{BAD}")] {
            let item = json!({ "uri": uri, "languageId": "python", "version": -5, "text": text });
            client.notify("textDocument/didOpen", json!({ "textDocument": item }));
            let published = client.notification("textDocument/publishDiagnostics");
            assert_eq!((&published["uri"], &published["version"]), (&json!(uri), &json!(-5)));
            assert_eq!(published["diagnostics"][0]["range"]["start"]["line"], MISTAKE_LINE);
            client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
            client.notification("textDocument/publishDiagnostics");
        }
    }
}
