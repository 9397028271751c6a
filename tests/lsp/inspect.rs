//! Tests of the compiler output of a kernel, opened from the editor, with the real Triton of `WARPSMITH_TEST_PYTHON`.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Client, Document, Setup, codes};

const KERNEL: &str = "import torch
import triton
import triton.language as tl


# warpsmith: signature x=*fp32 n=i32 B=64
@triton.jit
def k(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, 2.0, mask=i < n)
";

fn start(options: &Value) -> Client {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let compiler = json!({ "delay": 5, "target": "cuda:90" });
    let settings = json!({ "select": ["C"], "python": python, "compiler": compiler });
    let mut all = json!({ "settings": settings });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let opens = json!({ "window": { "showDocument": { "support": true } } });
    Setup::new().full().capabilities(&opens).options(all).start()
}

fn command(document: &Document, more: &Value) -> Value {
    let mut argument = json!({ "uri": document.uri });
    argument.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "command": "warpsmith.inspect", "arguments": [argument] })
}

/// The text that a request was answered with.
fn text(result: &Value) -> String {
    std::fs::read_to_string(result["path"].as_str().unwrap()).unwrap()
}

#[test]
fn inspect_opens_a_stage_with_its_source_lines() {
    let mut client = start(&json!({}));
    let document = client.open("k.py", KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    let id = client
        .send_request("workspace/executeCommand", command(&document, &json!({ "kernel": "k", "stage": "ttgir" })));
    let request = client.server_message("window/showDocument");
    client.reply(&request, json!({ "success": true }));
    let result = client.answer(id).unwrap();
    let path = Path::new(result["path"].as_str().unwrap());
    assert_eq!(path.file_name().unwrap(), "k.ttgir");
    assert!(request["params"]["uri"].as_str().unwrap().ends_with("/k.ttgir"), "{request}");
    let text = text(&result);
    assert!(text.starts_with("// ttgir of `k`, by Triton 3."), "{text}");
    assert!(text.contains("for cuda:90\n// as the signature says: x=*fp32:16 n=i32 B=64\n"), "{text}");
    assert!(text.contains("// k.py:10: tl.store(x + i, 2.0, mask=i < n)\n"), "{text}");
    client.assert_silent();
}

#[test]
fn inspect_names_the_file_to_clients_that_cannot_open_documents() {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let settings = json!({ "select": ["C"], "python": python, "compiler": { "delay": 5, "target": "cuda:80" } });
    let mut client = Setup::new().options(json!({ "settings": settings })).start();
    let document = client.open("k.py", KERNEL);
    client.published(&document);
    let here = json!({ "position": { "line": 9, "character": 4 }, "stage": "sass", "config": 1 });
    let id = client.send_request("workspace/executeCommand", command(&document, &here));
    let message = client.notification("window/showMessage");
    let result = client.answer(id).unwrap();
    let path = result["path"].as_str().unwrap();
    assert!(path.ends_with("k-1.sass") && message["message"].as_str().unwrap().ends_with(path), "{message}");
    assert!(text(&result).contains("EXIT"));
}

#[test]
fn the_stages_are_offered_where_the_kernel_is_defined() {
    let mut client = start(&json!({}));
    let document = client.open("k.py", KERNEL);
    client.published(&document);
    let shown = |actions: &[Value]| -> Vec<String> {
        let ours = actions.iter().filter(|action| action["kind"] == "warpsmith.inspect");
        ours.map(|action| action["title"].as_str().unwrap().to_owned()).collect()
    };
    let actions = client.actions(&document, &document.range_of("k(x"), &[]);
    assert_eq!(shown(&actions), ["Show TTGIR", "Show PTX", "Show SASS"]);
    let offered = actions.iter().find(|action| action["title"] == "Show PTX").unwrap();
    let params = json!({ "command": offered["command"]["command"], "arguments": offered["command"]["arguments"] });
    let id = client.send_request("workspace/executeCommand", params);
    let request = client.server_message("window/showDocument");
    client.reply(&request, json!({ "success": true }));
    assert!(text(&client.answer(id).unwrap()).contains(".visible .entry k("));
    for elsewhere in ["tl.store", "import torch", "@triton.jit"] {
        assert_eq!(shown(&client.actions(&document, &document.range_of(elsewhere), &[])), [""; 0], "{elsewhere}");
    }
}

#[test]
fn edits_are_checked_before_pending_inspections_and_keep_them() {
    let mut client = start(&json!({}));
    let mut document = client.open("k.py", KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    let asked: Vec<i64> = ["ttir", "ptx"]
        .iter()
        .map(|stage| {
            let wanted = json!({ "kernel": "k", "stage": stage });
            client.send_request("workspace/executeCommand", command(&document, &wanted))
        })
        .collect();
    for number in 3..8 {
        client.replace(&mut document, &format!("{}.0", number - 1), &format!("{number}.0"));
    }
    client.replace(&mut document, "mask=i < n", "mask=i < n, eviction_policy='never'");
    // Verdicts of the front end do not wait for inspections.
    while codes(&client.published(&document)) != ["C001"] {}
    for id in asked {
        let request = client.server_message("window/showDocument");
        client.reply(&request, json!({ "success": true }));
        let text = text(&client.answer(id).unwrap());
        assert!(text.contains("k.py:10: tl.store(x + i, 2.0, mask=i < n)"), "as it was when it was asked: {text}");
    }
}

#[test]
fn a_cancelled_inspection_does_not_reach_the_compiler() {
    let mut client = start(&json!({}));
    let document = client.open("k.py", KERNEL);
    let wanted = command(&document, &json!({ "kernel": "k", "stage": "ttir" }));
    let first = client.send_request("workspace/executeCommand", wanted.clone());
    let second = client.send_request("workspace/executeCommand", wanted);
    client.notify("$/cancelRequest", json!({ "id": second }));
    assert_eq!(client.answer(second).unwrap_err()["code"], -32800);
    let request = client.server_message("window/showDocument");
    client.reply(&request, json!({ "success": true }));
    assert!(client.answer(first).is_ok());
    client.published(&document);
    client.assert_silent();
}

#[test]
fn inspect_reports_why_a_stage_cannot_be_shown() {
    let mut client = start(&json!({}));
    let broken = KERNEL.replace("mask=i < n", "mask=i < n, eviction_policy='never'");
    let document = client.open("k.py", &broken);
    while codes(&client.published(&document)) != ["C001"] {}
    for (wanted, words) in [
        (json!({ "kernel": "gone", "stage": "ttir" }), "there is no kernel `gone`"),
        (json!({ "position": { "line": 0, "character": 0 }, "stage": "ttir" }), "there is no kernel here"),
        (json!({ "kernel": "k", "stage": "cubin" }), "there is no stage `cubin`"),
        (json!({ "kernel": "k", "stage": "amdgcn" }), "there is no amdgcn for cuda:90"),
        (json!({ "kernel": "k", "stage": "ttir", "config": 2 }), "there is 1 way to run `k`"),
        (json!({ "kernel": "k", "stage": "ttir" }), "`k` does not compile: k.py:10: "),
    ] {
        let (_, message) = client.request_error("workspace/executeCommand", command(&document, &wanted));
        assert!(message.contains(words), "{message}");
    }
    let mut client = start(&json!({ "workspaceTrusted": false }));
    let document = client.open("k.py", KERNEL);
    client.published(&document);
    let wanted = command(&document, &json!({ "kernel": "k", "stage": "ttir" }));
    let (_, message) = client.request_error("workspace/executeCommand", wanted);
    assert!(message.contains("not trusted"), "{message}");
}

#[test]
fn pending_inspections_fail_if_triton_cannot_be_imported() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("lib/python3.12/site-packages");
    std::fs::create_dir_all(packages.join("triton-3.6.0.dist-info")).unwrap();
    std::fs::create_dir_all(packages.join("triton")).unwrap();
    std::fs::create_dir_all(folder.path().join("bin")).unwrap();
    std::fs::write(folder.path().join("pyvenv.cfg"), "home = /gone\n").unwrap();
    std::fs::write(packages.join("triton-3.6.0.dist-info/METADATA"), "Name: triton\nVersion: 3.6.0\n").unwrap();
    std::fs::write(packages.join("triton/__init__.py"), "__version__ = '3.6.0'\n").unwrap();
    let python = folder.path().join("bin/python");
    std::fs::write(&python, "#!/bin/sh\necho '{\"unfit\": \"ImportError: it is broken\"}'\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&python, executable).unwrap();
    let settings = json!({ "select": ["C"], "python": python, "compiler": { "delay": 60_000 } });
    let mut client = Setup::new().hears_of_missing_triton().options(json!({ "settings": settings })).start();
    let document = client.open("k.py", KERNEL);
    client.published(&document);
    let wanted = command(&document, &json!({ "kernel": "k", "stage": "ttir" }));
    for _ in 0..2 {
        let (_, message) = client.request_error("workspace/executeCommand", wanted.clone());
        let parts = ["Triton cannot be used in ", " (ImportError: it is broken)"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    client.notification("window/showMessage");
}
