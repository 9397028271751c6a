//! Tests of completion, and of the signature of the call at the cursor.

use serde_json::{Value, json};

use crate::harness::{Client, Document, Setup};

const FILE: &str = r#"import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    é = "😀"; x = tl.lo(x_ptr)
    tl.store(x_ptr, x)


def run(x, grid):
    scale[grid](x, 3, BLOCK=64)
"#;

fn version(version: &str) -> Value {
    json!({ "settings": { "tritonVersion": version } })
}

/// The completion items after the first `at`.
fn offered(client: &mut Client, document: &Document, at: &str) -> Vec<Value> {
    let mut list = client.ask_behind("textDocument/completion", document, at);
    if list.is_null() {
        return Vec::new();
    }
    assert_eq!(list["isIncomplete"], false);
    serde_json::from_value(list["items"].take()).unwrap()
}

fn find<'a>(items: &'a [Value], label: &str) -> &'a Value {
    items.iter().find(|item| item["label"] == label).unwrap_or_else(|| panic!("no {label} in {items:#?}"))
}

fn has(items: &[Value], label: &str) -> bool {
    items.iter().any(|item| item["label"] == label)
}

/// The active parameter of a signature.
fn marked(help: &Value) -> &str {
    let signature = &help["signatures"][0];
    let at = help["activeParameter"].as_u64().unwrap() as usize;
    signature["parameters"][at]["label"].as_str().unwrap()
}

#[test]
fn members_come_from_the_version_in_the_settings() {
    for (of, has_descriptors) in [("3.3.0", false), ("3.6.0", true)] {
        let mut client = Setup::new().options(version(of)).start();
        let document = client.open("a.py", FILE);
        client.published(&document);
        let items = offered(&mut client, &document, "tl.lo");
        assert_eq!(has(&items, "make_tensor_descriptor"), has_descriptors);
        let load = find(&items, "load");
        let start = FILE.find("lo(").unwrap();
        let range = json!({ "start": document.position(start), "end": document.position(start + 2) });
        assert!(load["detail"].as_str().unwrap().starts_with("load(pointer, mask=None"), "{load}");
        assert!(
            load["documentation"]
                .as_str()
                .unwrap()
                .ends_with(&format!("Triton {}", if has_descriptors { of } else { "3.3.1" }))
        );
        assert_eq!(load["kind"], 3);
        // The client announced neither snippets nor commit characters, so the item is a plain edit of the typed text.
        assert_eq!(load["insertTextFormat"], 1);
        assert!(load.get("commitCharacters").is_none() && load.get("labelDetails").is_none());
        assert_eq!(load["textEdit"]["newText"], "load");
        assert_eq!(load["textEdit"]["range"], range);
    }
}

#[test]
fn completion_works_while_the_text_is_broken() {
    let mut client = Setup::new().options(version("3.6.0")).start();
    let mut document = client.open("a.py", FILE);
    client.replace(&mut document, "tl.lo(x_ptr)", "tl.");
    client.published(&document);
    assert!(has(&offered(&mut client, &document, "x = tl."), "load"));
    // A request that directly follows a burst of edits.
    client.replace(&mut document, "x = tl.", "x = tl.store(x_ptr, ");
    let items = offered(&mut client, &document, "tl.store(x_ptr, ");
    assert!(has(&items, "value=") && has(&items, "BLOCK") && !has(&items, "pointer="), "{items:#?}");
    client.replace(&mut document, "BLOCK=64)", "n");
    let items = offered(&mut client, &document, "(x, 3, n");
    assert!(has(&items, "num_warps=") && has(&items, "BLOCK=") && !has(&items, "x_ptr="), "{items:#?}");
    assert_eq!(offered(&mut client, &document, "(x_ptr, n"), [] as [Value; 0]);
    client.stop_ignoring("textDocument/publishDiagnostics");
}

#[test]
fn completion_items_use_the_capabilities_of_the_client() {
    let completion = json!({ "textDocument": { "completion": { "completionItem": {
        "commitCharactersSupport": true, "insertReplaceSupport": true, "labelDetailsSupport": true,
    } } } });
    let mut client = Setup::new().options(version("3.6.0")).utf8().capabilities(&completion).start();
    let provider = &client.initialize_result["capabilities"]["completionProvider"];
    assert_eq!(provider["triggerCharacters"], json!(["."]));
    let document = client.open("a.py", FILE);
    client.published(&document);
    // Columns are in bytes here: `é = "😀"; x = tl.` is longer in bytes than in UTF-16.
    let line = FILE.lines().nth(6).unwrap();
    let column = line.find("lo(").unwrap();
    let position = json!({ "line": 6, "character": column + 1 });
    let params = json!({ "textDocument": { "uri": document.uri }, "position": position });
    let list = client.request("textDocument/completion", params);
    let items: Vec<Value> = serde_json::from_value(list["items"].clone()).unwrap();
    let load = find(&items, "load");
    let range =
        |end: usize| json!({ "start": { "line": 6, "character": column }, "end": { "line": 6, "character": end } });
    assert_eq!((&load["textEdit"]["insert"], &load["textEdit"]["replace"]), (&range(column + 1), &range(column + 2)));
    assert_eq!(load["commitCharacters"], json!(["("]));
    assert!(load["labelDetails"]["detail"].as_str().unwrap().starts_with("(pointer"));
    assert_eq!(find(&items, "math")["commitCharacters"], json!(["."]));
    assert!(find(&items, "float32").get("commitCharacters").is_none());
}

#[test]
fn the_signature_follows_the_cursor() {
    let mut client = Setup::new().options(version("3.6.0")).start();
    let mut document = client.open("a.py", FILE);
    client.published(&document);
    let ask = |client: &mut Client, document: &Document, at: &str| {
        client.ask_behind("textDocument/signatureHelp", document, at)
    };
    let help = ask(&mut client, &document, "tl.store(");
    assert!(help["signatures"][0]["label"].as_str().unwrap().starts_with("store(pointer, value, mask=None"), "{help}");
    assert_eq!(help["signatures"][0]["documentation"], "compiler built-in · Triton 3.6.0");
    assert_eq!(marked(&help), "pointer");
    assert_eq!(marked(&ask(&mut client, &document, "tl.store(x_ptr, ")), "value");
    let help = ask(&mut client, &document, "(x, 3, BLOCK=");
    assert_eq!(help["signatures"][0]["label"], "scale[grid](x_ptr, n, BLOCK: tl.constexpr)");
    assert_eq!(marked(&help), "BLOCK: tl.constexpr");
    let about = &help["signatures"][0]["parameters"][2]["documentation"];
    assert!(about.as_str().unwrap().starts_with("Compile-time"), "{about}");
    assert!(ask(&mut client, &document, "tl.lo(").is_null(), "there is no such function");
    client.replace(&mut document, "tl.store(x_ptr, x)", "tl.store(x_ptr, mask=x, ");
    // No parameter follows a keyword, so none is marked, in the form that every client understands.
    let help = ask(&mut client, &document, "mask=x, ");
    let params = help["signatures"][0]["parameters"].as_array().unwrap();
    assert_eq!(help["activeParameter"], params.len());
    client.stop_ignoring("textDocument/publishDiagnostics");
}

#[test]
fn signature_parameters_are_offsets_if_the_client_supports_them() {
    let help = json!({ "textDocument": { "signatureHelp": { "signatureInformation": {
        "parameterInformation": { "labelOffsetSupport": true }, "noActiveParameterSupport": true,
    } } } });
    let mut client = Setup::new().options(version("3.6.0")).capabilities(&help).start();
    let document = client.open("a.py", &FILE.replace("tl.lo(x_ptr)", "tl.exp(x=1, "));
    client.published(&document);
    let help = client.ask_behind("textDocument/signatureHelp", &document, "tl.exp(");
    // `x` also occurs in `exp`, so the name alone would mark the wrong range.
    assert_eq!(help["signatures"][0]["label"], "exp(x)");
    assert_eq!(help["signatures"][0]["parameters"][0]["label"], json!([4, 5]));
    let help = client.ask_behind("textDocument/signatureHelp", &document, "tl.exp(x=1, ");
    assert_eq!(help["activeParameter"], Value::Null);
    assert!(help.get("activeParameter").is_some());
}
