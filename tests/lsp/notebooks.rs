//! Tests of notebooks: the cells form one program, and each cell has its own diagnostics.

use serde_json::{Value, json};

use crate::harness::{Client, Document, MENDED, MISTAKE, Setup, codes};

const NOTEBOOK: &str = "file:///tmp/n.ipynb";

fn cell_uri(name: &str) -> String {
    format!("vscode-notebook-cell:/tmp/n.ipynb#{name}")
}

fn cell(name: &str) -> Value {
    json!({ "kind": 2, "document": cell_uri(name) })
}

fn item(name: &str, text: &str) -> Value {
    json!({ "uri": cell_uri(name), "languageId": "python", "version": 1, "text": text })
}

const IMPORTS: &str = "%load_ext autoreload\nimport triton\nimport triton.language as tl";
const KERNEL: &str = "!echo 'é😀' \\\n  more\n@triton.jit\ndef k(x, n):\n    %time\n    tl.store(x, tl.float32(n))\n";
const LAUNCH: &str = "files = !ls\nk[(1,)](x, 3)";

/// Opens a notebook with a markup cell and three code cells.
fn open(client: &mut Client) -> [Document; 3] {
    let cells = json!([cell("a"), { "kind": 1, "document": cell_uri("text") }, cell("b"), cell("c")]);
    let texts = json!([item("a", IMPORTS), item("b", KERNEL), item("c", LAUNCH)]);
    let notebook = json!({ "uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": cells });
    client.notify("notebookDocument/didOpen", json!({ "notebookDocument": notebook, "cellTextDocuments": texts }));
    [("a", IMPORTS), ("b", KERNEL), ("c", LAUNCH)].map(|(name, text)| Document {
        uri: cell_uri(name),
        version: 1,
        text: text.to_owned(),
    })
}

fn change(client: &mut Client, version: i32, cells: Value) {
    let notebook = json!({ "uri": NOTEBOOK, "version": version });
    client.notify("notebookDocument/didChange", json!({ "notebookDocument": notebook, "change": { "cells": cells } }));
}

#[test]
fn cells_are_checked_together_and_magic_lines_do_not_matter() {
    let mut client = Setup::new().full().start();
    let [imports, kernel, launch] = open(&mut client);
    assert_eq!(client.published(&imports), [] as [Value; 0]);
    let diagnostics = client.published(&kernel);
    assert_eq!(codes(&diagnostics), ["L002"]);
    assert_eq!(diagnostics[0]["range"], kernel.range_of(MISTAKE));
    assert_eq!(client.published(&launch), [] as [Value; 0]);

    let notebook = json!({ "uri": NOTEBOOK });
    let texts = json!([{ "uri": imports.uri }, { "uri": kernel.uri }, { "uri": launch.uri }]);
    client.notify("notebookDocument/didClose", json!({ "notebookDocument": notebook, "cellTextDocuments": texts }));
    for _ in 0..3 {
        assert_eq!(client.notification("textDocument/publishDiagnostics")["diagnostics"], json!([]));
    }
    client.assert_silent();
}

#[test]
fn edits_go_to_their_cell() {
    let mut client = Setup::new().full().start();
    let [imports, mut kernel, launch] = open(&mut client);
    let diagnostics = client.published(&kernel);
    let actions = client.actions(&kernel, &kernel.range_of(MISTAKE), &diagnostics);
    for (at, expected) in
        [(0, KERNEL.replace(MISTAKE, MENDED)), (1, KERNEL.replace("n))", "n))  # warpsmith: ignore[L002]"))]
    {
        let changes = &actions[at]["edit"]["documentChanges"][0];
        assert_eq!(changes["textDocument"], json!({ "uri": kernel.uri, "version": 1 }));
        assert_eq!(kernel.edited(&changes["edits"]), expected);
    }
    // Kernels in notebooks cannot be optimized; the action has the reason.
    assert!(actions[2]["disabled"]["reason"].as_str().unwrap().contains("notebook"));
    assert!(client.hover(&launch, "k[").unwrap().0.contains("- Launched once in this notebook: line 2"));
    client.published(&imports);
    client.published(&launch);

    let range = kernel.range_of("tl.float32(n)");
    kernel.text = KERNEL.replace(MISTAKE, "n");
    kernel.version = 2;
    let document = json!({ "uri": kernel.uri, "version": 2 });
    change(
        &mut client,
        2,
        json!({ "textContent": [{ "document": document, "changes": [{ "range": range, "text": "n" }] }] }),
    );
    assert_eq!(client.published(&kernel), [] as [Value; 0]);
    client.published(&imports);
    client.published(&launch);
}

#[test]
fn added_removed_and_moved_cells_are_checked_again() {
    let mut client = Setup::new().start();
    let [imports, mut kernel, launch] = open(&mut client);
    for document in [&imports, &kernel, &launch] {
        client.published(document);
    }
    // Without the imports no name is known to be of Triton, and the diagnostics of their cell are cleared.
    let array = json!({ "start": 0, "deleteCount": 1 });
    change(&mut client, 2, json!({ "structure": { "array": array, "didClose": [{ "uri": imports.uri }] } }));
    let cleared = client.notification("textDocument/publishDiagnostics");
    assert_eq!(cleared, json!({ "uri": imports.uri, "diagnostics": [] }));
    assert_eq!(client.published(&kernel), [] as [Value; 0]);
    client.published(&launch);
    // The imports return in a new cell before the kernel.
    let array = json!({ "start": 0, "deleteCount": 0, "cells": [cell("d")] });
    change(&mut client, 3, json!({ "structure": { "array": array, "didOpen": [item("d", IMPORTS)] } }));
    let again = Document { uri: cell_uri("d"), ..imports };
    client.published(&again);
    assert_eq!(client.published(&kernel).len(), 1);
    client.published(&launch);
    // The kernel's cell moves to the end and keeps its text; edits of it still apply.
    let cells = json!([cell("c"), cell("b")]);
    change(&mut client, 4, json!({ "structure": { "array": { "start": 2, "deleteCount": 2, "cells": cells } } }));
    assert_eq!(client.published(&kernel).len(), 1);
    client.published(&again);
    client.published(&launch);
    kernel.version = 2;
    let document = json!({ "uri": kernel.uri, "version": 2 });
    change(&mut client, 5, json!({ "textContent": [{ "document": document, "changes": [{ "text": "x = 1\n" }] }] }));
    assert_eq!(client.published(&kernel), [] as [Value; 0]);
    client.published(&again);
    client.published(&launch);
    client.assert_silent();
}

#[test]
fn diagnostics_of_a_cell_can_be_asked_for() {
    let mut client = Setup::new().pulls().start();
    let [imports, kernel, launch] = open(&mut client);
    assert_eq!(client.pulled(&kernel).len(), 1);
    assert_eq!(client.pulled(&imports), [] as [Value; 0]);
    assert_eq!(client.pulled(&launch), [] as [Value; 0]);
}

#[test]
fn completion_signatures_and_definitions_work_across_cells() {
    let mut client = Setup::new().options(json!({ "settings": { "tritonVersion": "3.6.0" } })).start();
    let [imports, kernel, launch] = open(&mut client);
    for document in [&imports, &kernel, &launch] {
        client.published(document);
    }
    let items = client.ask_behind("textDocument/completion", &kernel, "tl.sto");
    let store = items["items"].as_array().unwrap().iter().find(|item| item["label"] == "store").unwrap();
    let typed = kernel.text.find("sto").unwrap();
    let range = json!({ "start": kernel.position(typed), "end": kernel.position(typed + 3) });
    assert_eq!(store["textEdit"]["range"], range);
    let help = client.ask_behind("textDocument/signatureHelp", &launch, "k[(1,)](x, ");
    assert_eq!((&help["signatures"][0]["label"], &help["activeParameter"]), (&json!("k[(1,)](x, n)"), &json!(1)));
    let name = kernel.text.find("k(x").unwrap();
    let range = json!({ "start": kernel.position(name), "end": kernel.position(name + 1) });
    let found = client.ask_behind("textDocument/definition", &launch, "\nk");
    assert_eq!((&found[0]["uri"], &found[0]["range"]), (&json!(kernel.uri), &range));
    // Highlights stay in their document, references do not.
    let found = client.ask_behind("textDocument/documentHighlight", &launch, "\nk");
    assert_eq!(found.as_array().unwrap().len(), 1);
    let of = |document: &Document| json!({ "textDocument": { "uri": document.uri } });
    let symbols = client.request("textDocument/documentSymbol", of(&kernel));
    assert_eq!((&symbols[0]["name"], &symbols[0]["location"]["uri"]), (&json!("k"), &json!(kernel.uri)));
    assert_eq!(client.request("textDocument/documentSymbol", of(&imports)), json!([]));
    // The first token of the cell is the kernel's name, four lines below its magic lines.
    let tokens = client.request("textDocument/semanticTokens/full", of(&kernel));
    assert_eq!(&tokens["data"].as_array().unwrap()[..4], [json!(3), json!(4), json!(1), json!(2)]);
    assert_eq!(client.request("textDocument/semanticTokens/full", of(&imports))["data"], json!([]));
}

#[test]
fn invalid_notebook_changes_are_survived() {
    let mut client = Setup::new().start();
    let documents = open(&mut client);
    for document in &documents {
        client.published(document);
    }
    let nobody = json!({ "uri": cell_uri("nobody"), "version": 9 });
    change(&mut client, 2, json!({ "textContent": [{ "document": nobody, "changes": [{ "text": "" }] }] }));
    client.wait_for_log("a cell that is not open was edited");
    change(&mut client, 3, json!({ "structure": { "array": { "start": 99, "deleteCount": 99 } } }));
    change(&mut client, 4, json!({ "data": [{ "kind": 1, "document": documents[2].uri }] }));
    let is_clear =
        |message: &Value| message["params"]["uri"] == documents[2].uri && message["params"]["version"].is_null();
    client.wait("cleared diagnostics", is_clear);
    let notebook = json!({ "uri": "file:///tmp/other.ipynb", "version": 1 });
    client.notify("notebookDocument/didChange", json!({ "notebookDocument": notebook, "change": {} }));
    client.wait_for_log("a notebook that is not open was edited");
    // The changes may be processed one by one or together, so the number of published diagnostics varies.
    client.stop_ignoring("textDocument/publishDiagnostics");
}

#[test]
fn errors_of_triton_are_shown_in_their_cell() {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let settings = json!({ "select": ["C"], "python": python, "compiler": { "delay": 5 } });
    let mut client = Setup::new().full().options(json!({ "settings": settings })).start();
    let text = KERNEL.replace(MISTAKE, "oops");
    let kernel = Document { uri: cell_uri("b"), version: 1, text: text.clone() };
    let notebook = json!({
        "uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": [cell("a"), cell("b")],
    });
    let texts = json!([item("a", IMPORTS), item("b", &text)]);
    client.notify("notebookDocument/didOpen", json!({ "notebookDocument": notebook, "cellTextDocuments": texts }));
    let found = loop {
        let published = client.notification("textDocument/publishDiagnostics");
        if published["uri"] == kernel.uri && published["diagnostics"] != json!([]) {
            break published["diagnostics"].clone();
        }
    };
    assert_eq!((&found[0]["code"], &found[0]["range"]), (&json!("C001"), &kernel.range_of("oops")));
    client.stop_ignoring("textDocument/publishDiagnostics");
}
