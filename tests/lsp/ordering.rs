//! Tests that edits are applied in the order in which they were sent, whatever other requests come between them.

use std::sync::Arc;

use model::syntax::Span;
use rules::{Diagnostic, find};
use serde_json::{Value, json};
use warpsmith::server::Tools;

use crate::harness::{BAD, Document, Setup};

const EDITS: usize = 2000;

/// A server whose only finding is the text that it has.
fn mirror() -> Tools {
    let check = |context: &rules::RuleContext<'_>, _: &rules::Selection, _: &rules::learned::LearnedRules| {
        let declaration = &find("L002").unwrap().declaration;
        vec![Diagnostic::new(declaration, Span::new(0, 0), context.source.text().to_string())]
    };
    Tools { check: Arc::new(check), ..Tools::default() }
}

/// A small random number generator with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const PIECES: [&str; 12] =
    ["x", "é", "😀", "\n", "\r\n", "\r", "    ", "(", "'''", "tl.float32(n)", "# warpsmith: ignore[L002]", ""];

/// Applies a random edit to `text`, and returns the change to send, with columns in the encoding.
fn random_edit(text: &mut String, numbers: &mut Numbers, utf8: bool) -> Value {
    let from = numbers.below(text.len() + 1);
    let start = (from..=text.len()).find(|&at| is_place(text, at)).unwrap();
    let length = numbers.below(20);
    let end = (start..=text.len()).find(|&at| at >= start + length && is_place(text, at)).unwrap_or(text.len());
    let piece = PIECES[numbers.below(PIECES.len())];
    let range = json!({ "start": position(text, start, utf8), "end": position(text, end, utf8) });
    text.replace_range(start..end, piece);
    json!({ "range": range, "text": piece })
}

/// Whether a position can refer to byte `at`; it cannot inside a character or a line end.
fn is_place(text: &str, at: usize) -> bool {
    text.is_char_boundary(at) && !(text[..at].ends_with('\r') && text[at..].starts_with('\n'))
}

/// The LSP position of byte `at`.
fn position(text: &str, at: usize, utf8: bool) -> Value {
    let before = text[..at].replace("\r\n", "\n\n").replace('\r', "\n");
    let line = text[..at].replace("\r\n", "\n").replace('\r', "\n").matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = if utf8 { at - start } else { text[start..at].encode_utf16().count() };
    json!({ "line": line, "character": column })
}

/// The text that the server has, read from its only diagnostic.
fn text_of(diagnostics: &Value) -> &str {
    diagnostics[0]["message"].as_str().unwrap()
}

#[test]
fn thousands_of_edits_between_requests_lead_to_the_clients_text() {
    for (seed, utf8) in [(1, false), (2, true)] {
        let setup = if utf8 { Setup::new().utf8() } else { Setup::new() };
        let mut client = setup.pulls().tools(mirror()).start();
        let mut documents = [client.open("a.py", BAD), client.open("b.py", "")];
        let mut numbers = Numbers(seed);
        let mut asked = Vec::new();
        for _ in 0..EDITS {
            let document = &mut documents[numbers.below(2)];
            let count = 1 + numbers.below(3);
            let changes = (0..count).map(|_| random_edit(&mut document.text, &mut numbers, utf8)).collect();
            client.change_raw(document, changes);
            let identifier = json!({ "uri": document.uri });
            match numbers.below(6) {
                0 => asked.push(client.send_request("textDocument/diagnostic", json!({ "textDocument": identifier }))),
                1 => {
                    let position = json!({ "line": numbers.below(20), "character": numbers.below(30) });
                    let params = json!({ "textDocument": identifier, "position": position });
                    asked.push(client.send_request("textDocument/hover", params));
                }
                2 if !asked.is_empty() => {
                    let id = asked[numbers.below(asked.len())];
                    client.notify("$/cancelRequest", json!({ "id": id }));
                }
                _ => {}
            }
        }
        for id in asked {
            let answer = client.answer(id);
            assert!(answer.as_ref().err().is_none_or(|error| error["code"] == -32800), "{answer:?}");
        }
        for document in &documents {
            let report = client.request("textDocument/diagnostic", json!({ "textDocument": { "uri": document.uri } }));
            assert_eq!(text_of(&report["items"]), document.text, "seed {seed}");
        }
    }
}

#[test]
fn pushed_diagnostics_never_go_back_in_time() {
    let mut client = Setup::new().tools(mirror()).start();
    let mut document = client.open("a.py", BAD);
    let mut numbers = Numbers(3);
    let mut texts = vec![String::new(), document.text.clone()];
    for _ in 0..EDITS / 4 {
        let change = random_edit(&mut document.text, &mut numbers, false);
        client.change_raw(&mut document, json!([change]));
        texts.push(document.text.clone());
    }
    let mut last = 0;
    while last < document.version {
        let published = client.notification("textDocument/publishDiagnostics");
        let version = i32::try_from(published["version"].as_i64().unwrap()).unwrap();
        assert!(version > last, "version {version} after {last}");
        assert_eq!(text_of(&published["diagnostics"]), texts[usize::try_from(version).unwrap()]);
        last = version;
    }
    client.assert_silent();
}

#[test]
fn an_edited_text_has_the_diagnostics_of_a_freshly_opened_one() {
    let mut client = Setup::new().pulls().options(Value::Null).start();
    let mut edited = client.open("a.py", BAD);
    let mut numbers = Numbers(4);
    for _ in 0..EDITS {
        let change = random_edit(&mut edited.text, &mut numbers, false);
        client.change_raw(&mut edited, json!([change]));
    }
    // A final text with a finding, whatever the edits before have left.
    let end = position(&edited.text, edited.text.len(), false);
    let ending = format!("\n''')}}]\n\n{BAD}");
    client.change_raw(&mut edited, json!([{ "range": { "start": end, "end": end }, "text": ending }]));
    edited.text.push_str(&ending);
    let fresh: Document = client.open("b.py", &edited.text);
    assert_eq!(client.pulled(&edited), client.pulled(&fresh));
}
