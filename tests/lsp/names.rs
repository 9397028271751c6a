//! Tests of definitions, references, highlights, symbols and semantic tokens.

use serde_json::{Value, json};

use crate::harness::{Client, Document, Setup};

const FILE: &str = r#"import triton
import triton.language as tl

LIMIT = tl.constexpr(4)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    é = "😀"; mask = offsets < LIMIT
    tl.store(x_ptr + offsets, helper(n), mask=mask)


@triton.jit
def helper(x):
    return x


def run(x, grid):
    scale[grid](x, 3)
"#;

fn ranges(locations: &Value) -> Vec<Value> {
    locations.as_array().unwrap().iter().map(|location| location["range"].clone()).collect()
}

/// The range of `name` in the first `around`.
fn range(document: &Document, around: &str, name: &str) -> Value {
    let start = document.text.find(around).unwrap() + around.find(name).unwrap();
    json!({ "start": document.position(start), "end": document.position(start + name.len()) })
}

#[test]
fn names_lead_to_where_they_are_bound() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    for (at, around, name) in [
        ("tl.store(x_", "scale(x_ptr", "x_ptr"),
        ("mask=ma", "mask = ", "mask"),
        ("arange(0, BL", "BLOCK: tl", "BLOCK"),
        ("{\"BLO", "BLOCK: tl", "BLOCK"),
        ("offsets < LI", "LIMIT = ", "LIMIT"),
        ("offsets, hel", "helper(x)", "helper"),
        ("    sca", "scale(x_ptr", "scale"),
    ] {
        let found = client.ask_behind("textDocument/definition", &document, at);
        assert_eq!(found[0]["uri"], document.uri, "{at}");
        assert_eq!(ranges(&found), [range(&document, around, name)], "{at}");
    }
    for at in ["tl.sto", "run(", "import tri"] {
        assert_eq!(client.ask_behind("textDocument/definition", &document, at), Value::Null, "{at}");
    }
}

#[test]
fn references_return_all_occurrences_of_a_name() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let mut references = |with: bool| {
        let position = document.range_of("BLOCK: tl")["start"].clone();
        let params = json!({
            "textDocument": { "uri": document.uri }, "position": position, "context": { "includeDeclaration": with },
        });
        ranges(&client.request("textDocument/references", params))
    };
    assert_eq!(references(true).len(), 4);
    let without = references(false);
    assert_eq!(without.len(), 3);
    assert!(!without.contains(&range(&document, "BLOCK: tl", "BLOCK")));
    let found = client.ask_behind("textDocument/documentHighlight", &document, "mask=ma");
    let kinds: Vec<_> = found.as_array().unwrap().iter().map(|it| it["kind"].as_u64().unwrap()).collect();
    assert_eq!((ranges(&found)[0].clone(), kinds), (range(&document, "mask = ", "mask"), vec![3, 2]));
}

#[test]
fn symbols_are_a_tree_or_a_list() {
    let params = |document: &Document| json!({ "textDocument": { "uri": document.uri } });
    let tree = json!({ "textDocument": { "documentSymbol": { "hierarchicalDocumentSymbolSupport": true } } });
    let mut client = Setup::new().capabilities(&tree).start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let symbols = client.request("textDocument/documentSymbol", params(&document));
    let names = |symbols: &Value| {
        symbols.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&symbols), ["LIMIT", "scale", "helper", "run"]);
    assert_eq!(names(&symbols[1]["children"]), ["BLOCK=64", "BLOCK=128", "BLOCK"]);
    assert_eq!(symbols[1]["range"]["start"], document.range_of("@triton.autotune")["start"]);
    assert_eq!(symbols[1]["selectionRange"], range(&document, "scale(x_ptr", "scale"));
    assert_eq!(symbols[3]["detail"], "launches scale");

    let mut client = Setup::new().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let symbols = client.request("textDocument/documentSymbol", params(&document));
    assert_eq!(names(&symbols), ["LIMIT", "scale", "BLOCK=64", "BLOCK=128", "BLOCK", "helper", "run", "scale"]);
    assert_eq!(symbols[4]["containerName"], "scale");
    assert_eq!(symbols[4]["location"]["range"], range(&document, "BLOCK: tl.constexpr", "BLOCK: tl.constexpr"));
}

/// The tokens of a document: text, type and modifiers.
fn tokens(client: &mut Client, document: &Document, range: Option<Value>) -> Vec<String> {
    let legend = client.initialize_result["capabilities"]["semanticTokensProvider"]["legend"].clone();
    let mut params = json!({ "textDocument": { "uri": document.uri } });
    let method = match range {
        Some(range) => {
            params["range"] = range;
            "textDocument/semanticTokens/range"
        }
        None => "textDocument/semanticTokens/full",
    };
    let answer = client.request(method, params);
    let numbers: Vec<usize> = serde_json::from_value(answer["data"].clone()).unwrap();
    let lines: Vec<Vec<u16>> = document.text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    let (mut line, mut column) = (0, 0);
    let word = |token: &[usize]| {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        let text = String::from_utf16(&lines[line][column..column + token[2]]).unwrap();
        let modifiers = legend["tokenModifiers"].as_array().unwrap().iter().enumerate();
        let set = modifiers.filter(|(bit, _)| token[4] >> bit & 1 == 1).map(|(_, name)| name.as_str().unwrap());
        let words: Vec<&str> = std::iter::once(legend["tokenTypes"][token[3]].as_str().unwrap()).chain(set).collect();
        format!("{text}: {}", words.join(" "))
    };
    numbers.chunks(5).map(word).collect()
}

#[test]
fn semantic_tokens_give_the_kind_of_each_name() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let all = tokens(&mut client, &document, None);
    let expected = [
        "scale: function declaration",
        "x_ptr: parameter declaration pointer",
        "n: parameter declaration",
        "BLOCK: parameter declaration readonly constexpr",
        "offsets: variable declaration tile",
        "BLOCK: parameter readonly constexpr",
        "mask: variable declaration tile",
        "offsets: variable tile",
        "LIMIT: variable readonly constexpr",
        "x_ptr: parameter pointer",
        "offsets: variable tile",
        "helper: function",
        "n: parameter",
        "mask: variable tile",
        "helper: function declaration",
        "x: parameter declaration",
        "x: parameter",
        "scale: function",
    ];
    assert_eq!(all, expected);
    let line = document.range_of("é = \"😀\"; mask = offsets < LIMIT\n");
    assert_eq!(tokens(&mut client, &document, Some(line)), expected[6..9]);
    let plain = client.open("b.py", "x = 1\n");
    client.published(&plain);
    let params = json!({ "textDocument": { "uri": plain.uri } });
    assert_eq!(client.request("textDocument/semanticTokens/full", params), Value::Null);
}

#[test]
fn columns_of_tokens_are_in_the_clients_encoding() {
    let mut client = Setup::new().utf8().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let params = json!({ "textDocument": { "uri": document.uri } });
    let answer = client.request("textDocument/semanticTokens/full", params);
    let numbers: Vec<usize> = serde_json::from_value(answer["data"].clone()).unwrap();
    let column = FILE.lines().nth(10).unwrap().find("mask").unwrap();
    assert_eq!(numbers[30..33], [1, column, 4], "the seventh token is `mask`, in bytes");
}

#[test]
fn lengths_of_tokens_are_in_the_clients_encoding() {
    let file = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(größe):\n    tl.store(größe, 1)\n";
    let mut client = Setup::new().start();
    let document = client.open("a.py", file);
    client.published(&document);
    let expected = ["k: function declaration", "größe: parameter declaration pointer", "größe: parameter pointer"];
    assert_eq!(tokens(&mut client, &document, None), expected);
}

fn hints(client: &mut Client, document: &Document) -> Vec<(String, Value)> {
    let end = document.position(document.text.len());
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": end });
    let params = json!({ "textDocument": { "uri": document.uri }, "range": range });
    let hints = client.request("textDocument/inlayHint", params);
    let hint = |hint: &Value| (hint["label"].as_str().unwrap().to_owned(), hint["position"].clone());
    hints.as_array().unwrap().iter().map(hint).collect()
}

#[test]
fn hints_show_what_launches_pass_and_follow_the_settings() {
    let refresh = json!({ "workspace": { "inlayHint": { "refreshSupport": true } } });
    let mut client = Setup::new().capabilities(&refresh).configuration(json!({})).start();
    let mut document = client.open("a.py", FILE);
    client.published(&document);
    let end = range(&document, "BLOCK: tl.constexpr", "BLOCK: tl.constexpr")["end"].clone();
    let labels = |hints: &[(String, Value)]| hints.iter().map(|(label, _)| label.clone()).collect::<Vec<_>>();
    let shown = hints(&mut client, &document);
    assert_eq!(labels(&shown), [" ∈ {64, 128}", ": int32[BLOCK]", ": int1[BLOCK]"]);
    assert_eq!(shown[0].1, end);
    // The column behind `mask` counts an emoji as the two units that it has in UTF-16.
    assert_eq!(shown[2].1, range(&document, "mask = offsets", "mask")["end"]);
    client.replace(&mut document, "{\"BLOCK\": 128}", "{\"BLOCK\": 64}");
    assert_eq!(labels(&hints(&mut client, &document)), [" = 64", ": int32[64]", ": int1[64]"]);
    client.published(&document);
    for (settings, shown) in
        [(json!({ "inlayHints": { "values": false } }), 2), (json!({ "inlay-hints": { "types": false } }), 1)]
    {
        client.set_configuration(settings);
        client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
        let request = client.server_message("workspace/inlayHint/refresh");
        client.reply(&request, Value::Null);
        client.published(&document);
        assert_eq!(hints(&mut client, &document).len(), shown);
    }
}
