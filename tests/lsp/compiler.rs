//! Tests of the compiler tier, with the real Triton of `WARPSMITH_TEST_PYTHON`.

use std::sync::Arc;
use std::time::Duration;

use model::syntax::Span;
use rules::learned::LearnedRules;
use rules::{Diagnostic, RuleContext, Selection};
use serde_json::{Value, json};
use store::FalseAlarm;
use warpsmith::server::Tools;

use crate::harness::{Client, Document, Setup, codes};

const KERNEL: &str = r#"import torch
import triton
import triton.language as tl

device = torch.device("cuda")


@triton.jit
def helper(é, B: tl.constexpr):
    return é + tl.arange(0, B)


# warpsmith: signature x=*fp16 n=i32 B=64
@triton.jit
def k(x, n, B: tl.constexpr):
    i = helper(0, B)
    "😀"; v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(x + i, v, mask=i < n)
"#;

fn python() -> String {
    std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`")
}

/// Opens a file with the rules of these families enabled.
fn open(setup: Setup, select: &[&str], text: &str) -> (Client, Document) {
    let settings = json!({ "select": select, "python": python(), "compiler": { "delay": 5 } });
    let mut client = setup.options(json!({ "settings": settings })).start();
    let document = client.open("k.py", text);
    (client, document)
}

/// The diagnostics published after the compiler has answered, which may be before the rules have.
fn compiled(client: &mut Client, document: &Document) -> Vec<Value> {
    let found = client.published(document);
    if found.is_empty() { client.published(document) } else { found }
}

#[test]
fn an_error_of_triton_is_shown_at_its_place_until_it_is_fixed() {
    let broken = KERNEL.replace("other=0.0)", "other=0.0, eviction_policy='never')");
    let (mut client, mut document) = open(Setup::new().full(), &["C"], &broken);
    let found = compiled(&mut client, &document);
    assert_eq!(codes(&found), ["C001"]);
    assert_eq!(found[0]["range"], document.range_of("tl.load(x + i, mask=i < n, other=0.0, eviction_policy='never')"));
    assert!(found[0]["message"].as_str().unwrap().contains("never"), "{found:?}");
    // The diagnostic moves with the kernel.
    client.replace(&mut document, "tl.arange(0, B)\n", "tl.arange(0, B)\n\n\n");
    let moved = client.published(&document);
    assert_eq!(moved[0]["range"], document.range_of("tl.load(x + i, mask=i < n, other=0.0, eviction_policy='never')"));
    // An edit that may affect the verdict removes it until Triton has answered again.
    client.replace(&mut document, "import torch\n", "import torch\n\n\n");
    let again = compiled(&mut client, &document);
    assert_eq!(again[0]["range"], document.range_of("tl.load(x + i, mask=i < n, other=0.0, eviction_policy='never')"));
    client.replace(&mut document, "never", "evict_first");
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.wait_for_log("about `k` verdict=\"accepted\"");
    client.assert_silent();
}

#[test]
fn an_error_in_a_helper_is_shown_in_the_kernel_that_calls_it() {
    let broken = KERNEL.replace(
        "return é + tl.arange(0, B)",
        "return (é + tl.arange(0, B)).to(tl.float16, fp_downcast_rounding='up')",
    );
    let (mut client, document) = open(Setup::new().full(), &["C"], &broken);
    let found = compiled(&mut client, &document);
    assert_eq!(codes(&found), ["C001"]);
    assert_eq!(found[0]["range"], document.range_of("helper(0, B)"));
    let related = &found[0]["relatedInformation"][0];
    assert_eq!(related["location"]["range"]["start"]["line"], 9, "{related}");
}

#[test]
fn the_compiler_does_not_repeat_the_finding_of_a_rule() {
    let broken = KERNEL.replace("other=0.0)", "other=0.0, eviction_policy='never')");
    let (mut client, document) = open(Setup::new(), &["C", "L"], &broken);
    assert_eq!(codes(&client.published(&document)), ["L010"]);
    assert_eq!(codes(&client.published(&document)), ["L010"], "with what the compiler says");
    client.assert_silent();
}

#[test]
fn an_error_that_is_undone_at_once_is_not_published() {
    let (mut client, mut document) = open(Setup::new(), &["C"], KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    for _ in 0..5 {
        client.replace(&mut document, "other=0.0", "other=0.0, eviction_policy='no'");
        client.replace(&mut document, "other=0.0, eviction_policy='no'", "other=0.0");
    }
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.wait_for_log("about `k` verdict=\"accepted\"");
    client.assert_silent();
}

#[test]
fn guessed_signatures_report_undefined_names_only() {
    let unsigned = KERNEL.replace("# warpsmith: signature x=*fp16 n=i32 B=64\n", "");
    let broken = unsigned.replace("other=0.0)", "other=0.0, eviction_policy='never')");
    let (mut client, document) = open(Setup::new(), &["C"], &broken);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.wait_for_log("about `k` verdict=\"no guess of its parameters fits\"");
    client.assert_silent();
    let broken = unsigned.replace("other=0.0)", "other=0.0 + oops)");
    let document = client.open("b.py", &broken);
    let found = compiled(&mut client, &document);
    assert_eq!((codes(&found), &found[0]["range"]), (vec!["C001"], &document.range_of("oops")));
}

#[test]
fn an_error_that_triton_disproves_is_stored_with_its_kernel_alone() {
    // A wrong rule that flags two places: one that Triton compiles, and one that it does not.
    let check = |context: &RuleContext<'_>, _: &Selection, _: &LearnedRules| {
        let text = context.source.text();
        let wrong = ["tl.load(x + i", "torch.device"].into_iter().map(|part| {
            let at = text.find(part).unwrap();
            Diagnostic::new(&rules::find("L002").unwrap().declaration, Span::new(at, at + part.len()), "is wrong")
        });
        wrong.filter(|finding| !rules::is_disproved(context.module, finding)).collect()
    };
    let (sender, stored) = std::sync::mpsc::channel();
    let store = Arc::new(move |alarm| sender.send(alarm).unwrap());
    let tools = Tools { check: Arc::new(check), store_false_alarm: store, ..Tools::default() };
    let (mut client, document) = open(Setup::new().tools(tools), &["L"], KERNEL);
    assert_eq!(client.published(&document).len(), 2);
    assert_eq!(client.published(&document).len(), 1, "the other is withdrawn");
    let alarm: FalseAlarm = stored.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    assert_eq!((alarm.rule.as_str(), alarm.message.as_str()), ("L002", "is wrong"));
    assert_eq!(alarm.kernel, KERNEL[KERNEL.find("@triton.jit\ndef k(").unwrap()..].trim_end());
    assert!(alarm.triton.starts_with('3'), "{alarm:?}");
    client.assert_silent();
    assert!(stored.try_recv().is_err(), "no more than that");
}

#[test]
fn an_untrusted_workspace_is_not_compiled() {
    let broken = KERNEL.replace("other=0.0)", "other=0.0, eviction_policy='never')");
    let settings = json!({ "select": ["C"], "python": python(), "compiler": { "delay": 5 } });
    let mut client = Setup::new().options(json!({ "settings": settings, "workspaceTrusted": false })).start();
    let document = client.open("k.py", &broken);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    let status = client.request("warpsmith/status", json!({}))["compiler"].take();
    assert_eq!((&status["state"], &status["python"]), (&json!("idle"), &Value::Null));
    assert!(status["message"].as_str().unwrap().contains("not trusted"), "{status}");
    client.assert_silent();
}

#[test]
fn recorded_calls_give_hover_and_hints_the_types_of_triton() {
    let settings = json!({ "select": ["C"], "python": python(), "compiler": { "delay": 5 } });
    let refreshes = json!({ "workspace": { "inlayHint": { "refreshSupport": true } } });
    let mut client = Setup::new().full().capabilities(&refreshes).options(json!({ "settings": settings })).start();
    let arguments = json!([["x", { "pointer": "float16" }], ["n", { "int": 100 }], ["B", { "int": 64 }]]);
    let recording = json!({
        "file": client.path("k.py").canonicalize().unwrap_or_else(|_| client.folder().canonicalize().unwrap().join("k.py")),
        "entry": "run", "args": [], "kwargs": [], "mutated": [], "count": 1,
        "launches": [{ "kernel": "k", "grid": [2], "keywords": [], "arguments": arguments }],
        "environment": { "python": "", "torch": "", "triton": "", "device": "", "driver": "" },
    });
    let folder = client.path(".warpsmith/workloads/1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run-0.json"), recording.to_string()).unwrap();
    let unsigned = KERNEL.replace("# warpsmith: signature x=*fp16 n=i32 B=64\n", "");
    std::fs::write(client.path("k.py"), &unsigned).unwrap();
    let document = client.open("k.py", &unsigned);
    client.published(&document);
    let (before, _) = client.hover(&document, "x + i, mask").unwrap();
    assert!(!before.contains("fp16"), "the file does not say it: {before}");
    let request = client.server_message("workspace/inlayHint/refresh");
    client.reply(&request, Value::Null);
    let (text, _) = client.hover(&document, "x + i, mask").unwrap();
    assert!(text.contains("*fp16[64]") || text.contains("*fp16"), "{text}");
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let asked = json!({ "textDocument": { "uri": document.uri }, "range": whole });
    let hints = client.request("textDocument/inlayHint", asked);
    let labels: Vec<&str> = hints.as_array().unwrap().iter().filter_map(|hint| hint["label"].as_str()).collect();
    assert!(labels.contains(&": fp16[64]") && labels.contains(&": int32[64]"), "{labels:?}");
}

#[test]
fn a_file_is_imported_when_it_is_saved_where_that_is_allowed() {
    // A value that the file's own imports compute cannot be extracted.
    let text = "import zlib\nimport triton\nimport triton.language as tl\n\nP = tl.constexpr(zlib.crc32(b'a') % 7 + 3)\n\n\n# \
        warpsmith: signature x=*fp16\n@triton.jit\ndef k(x):\n    tl.store(x + tl.arange(0, P), 1.0)\n";
    let settings = json!({ "select": ["C"], "python": python(), "compiler": { "delay": 5, "import-files": true } });
    let mut client = Setup::new().options(json!({ "settings": settings })).start();
    std::fs::write(client.path("k.py"), "P = 1\n").unwrap();
    let mut document = client.open("k.py", text);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.wait_for_log("the file is not saved");
    let save = |client: &mut Client, document: &Document, text: &str| {
        std::fs::write(client.path("k.py"), text).unwrap();
        client.notify("textDocument/didSave", json!({ "textDocument": { "uri": document.uri } }));
    };
    save(&mut client, &document, text);
    let found = client.published(&document);
    assert_eq!((codes(&found), &found[0]["range"]), (vec!["C001"], &document.range_of("tl.arange(0, P)")));
    client.replace(&mut document, "+ 3", "+ 4");
    while !client.published(&document).is_empty() {}
    save(&mut client, &document, &text.replace("+ 3", "+ 4"));
    client.wait_for_log("about `k` verdict=\"accepted\"");
}

#[test]
fn diagnostics_are_correct_after_the_compiler_process_is_killed() {
    let (mut client, mut document) = open(Setup::new(), &["C"], KERNEL);
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    client.wait_for_log("about `k` verdict=\"accepted\"");
    let (mut killed, mut before) = (0, "other=0.0".to_owned());
    for edit in 0_u64..30 {
        let is_broken = edit % 3 != 2;
        let now = if is_broken { format!("other=oops{edit}") } else { format!("other={edit}.0") };
        client.replace(&mut document, &before, &now);
        if edit % 2 == 0 {
            // The kill comes before the question, during the start, during the answer, and after it, in turn.
            std::thread::sleep(Duration::from_millis(edit * 37 % 230));
            for child in client.children() {
                #[expect(unsafe_code, reason = "the test kills the process from outside, as a user or the system may")]
                // SAFETY: the call takes no pointers, and the server waits for its children.
                let is_hit = unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) } == 0;
                killed += u32::from(is_hit);
            }
        }
        if is_broken {
            let name = format!("oops{edit}");
            let says = |one: &Value| one["message"].as_str().unwrap().contains(&name);
            while !client.published(&document).iter().any(says) {}
        } else {
            while !client.published(&document).is_empty() {}
        }
        before = now;
    }
    assert!(killed > 5, "{killed}");
}
