//! Tests of what a kernel imports from another file: its type, its definition, and changes of that file.

use serde_json::{Value, json};

use crate::harness::{Client, Document, Setup, codes};

const OP: &str = r#"import triton
import triton.language as tl

"é"; SCALE = tl.constexpr(2.0)


@triton.jit
def widen(x, rounds: tl.constexpr = 1):
    return x.to(tl.float32)
"#;

const KERNEL: &str = r"import triton
import triton.language as tl
from pkg.op import SCALE, widen


@triton.jit
def k(x_ptr):
    x = widen(tl.load(x_ptr + tl.arange(0, 64)))
    y = x + tl.arange(0, 64)
    tl.store(x_ptr + tl.arange(0, 64), x * SCALE)
";

fn open(setup: Setup) -> (Client, Document) {
    let setup = setup.options(json!({ "select": ["L"] })).file("pkg/__init__.py", "").file("pkg/op.py", OP);
    let mut client = setup.file("pkg/k.py", KERNEL).start();
    let document = client.open("pkg/k.py", KERNEL);
    (client, document)
}

/// Changes the tile size in the helper.
fn change(client: &Client) {
    let text = OP.replace("x.to(tl.float32)", "tl.zeros([32], tl.float32)");
    std::fs::write(client.path("pkg/op.py"), text).unwrap();
}

#[test]
fn names_lead_to_the_file_that_they_come_from() {
    let (mut client, document) = open(Setup::new());
    client.published(&document);
    for (at, name) in [("x = wid", "widen"), ("x * SCA", "SCALE"), ("SCALE, wid", "widen")] {
        let found = client.ask_behind("textDocument/definition", &document, at);
        assert_eq!(found[0]["uri"], client.uri("pkg/op.py"), "{at}");
        let op = Document { uri: client.uri("pkg/op.py"), version: 0, text: OP.to_owned() };
        let start = OP.find(name).unwrap();
        let range = json!({ "start": op.position(start), "end": op.position(start + name.len()) });
        assert_eq!(found[0]["range"], range, "{at}");
    }
    assert_eq!(client.ask_behind("textDocument/definition", &document, "import trit"), Value::Null);
}

#[test]
fn a_helper_shows_its_signature_and_a_value_its_type() {
    let (mut client, mut document) = open(Setup::new());
    client.published(&document);
    let (text, _) = client.hover(&document, "widen(tl").unwrap();
    assert!(text.contains("def widen(x, rounds: tl.constexpr = 1)") && text.contains("`op.py`"), "{text}");
    let (text, _) = client.hover(&document, "x + tl.arange(0, 64)\n").unwrap();
    assert!(text.contains("fp32[64]"), "{text}");
    // The imported helper is also known while the call is being typed.
    client.replace(&mut document, "x = widen(tl.load(x_ptr + tl.arange(0, 64)))", "x = widen(");
    client.published(&document);
    let help = client.ask_behind("textDocument/signatureHelp", &document, "x = widen(");
    assert_eq!(help["signatures"][0]["label"], "widen(x, rounds: tl.constexpr = 1)");
}

#[test]
fn a_changed_import_is_rechecked_when_it_is_saved_or_watched() {
    let watches = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    for is_watched in [false, true] {
        let setup = if is_watched { Setup::new().capabilities(&watches) } else { Setup::new() };
        let (mut client, document) = open(setup);
        assert_eq!(codes(&client.published(&document)), [""; 0]);
        if is_watched {
            let request = client.server_message("client/registerCapability");
            let globs =
                request["params"]["registrations"][0]["registerOptions"]["watchers"].as_array().unwrap().clone();
            assert!(globs.iter().any(|glob| glob["globPattern"] == "**/*.py"));
            client.reply(&request, Value::Null);
        }
        change(&client);
        let uri = client.uri("pkg/op.py");
        if is_watched {
            client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": uri, "type": 2 }] }));
        } else {
            client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
        }
        assert_eq!(codes(&client.published(&document)), ["L005"], "{is_watched}");
        // A save without changes does not cause another check.
        client.notify("textDocument/didSave", json!({ "textDocument": { "uri": document.uri } }));
        client.assert_silent();
    }
}
