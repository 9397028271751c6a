//! Tests of the resources that kernels use, with the real Triton of `WARPSMITH_TEST_PYTHON`.

use std::sync::Arc;

use judge::Devices;
use serde_json::{Value, json};
use warpsmith::server::Tools;

use crate::harness::{Client, Document, Setup, codes};

const PRODUCT: &str = r#"import triton
import triton.language as tl


# warpsmith: signature x=*fp32 y=*fp32 z=*fp32 K=i32=4096
@triton.autotune(
    configs=[
        triton.Config({"BK": 32}, num_stages=3, num_warps=8),
        triton.Config({"BK": 64}, num_stages=5, num_warps=8),
    ],
    key=["K"],
)
@triton.jit
def product(x, y, z, K, BK: tl.constexpr):
    m, k = tl.arange(0, 128), tl.arange(0, BK)
    acc = tl.zeros((128, 128), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(x + m[:, None] * K + (start + k)[None, :])
        b = tl.load(y + (start + k)[:, None] * 128 + m[None, :])
        acc = tl.dot(a, b, acc, input_precision="tf32")
    tl.store(z + m[:, None] * 128 + m[None, :], acc)
"#;

const COPY: &str = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef copy(x, y, B: tl.constexpr):\n    \
    i = tl.arange(0, B)\n    tl.store(y + i, tl.load(x + i))\n";

/// A client of a server on a machine without a GPU.
fn start(compiler: &Value) -> Client {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let mut settings = json!({ "select": ["C", "H015"], "python": python, "compiler": { "delay": 5 } });
    settings["compiler"].as_object_mut().unwrap().extend(compiler.as_object().unwrap().clone());
    let refreshes = json!({ "workspace": { "codeLens": { "refreshSupport": true } } });
    let devices = Arc::new(|| Devices::Missing("no GPU".to_owned()));
    let tools = Tools { devices, ..Tools::default() };
    Setup::new().full().tools(tools).capabilities(&refreshes).options(json!({ "settings": settings })).start()
}

/// Opens a file and waits until the front end has accepted its kernel.
fn accepted(client: &mut Client, name: &str, text: &str) -> Document {
    let document = client.open(name, text);
    client.published(&document);
    refreshed(client);
    document
}

/// Waits until the client is asked to refresh its lenses.
fn refreshed(client: &mut Client) {
    let request = client.server_message("workspace/codeLens/refresh");
    client.reply(&request, Value::Null);
}

/// The titles of the lenses above kernels.
fn titles(client: &mut Client, document: &Document) -> Vec<String> {
    let title = |lens: &Value| lens["command"]["title"].as_str().unwrap().to_owned();
    lenses(client, document).iter().map(title).collect()
}

fn lenses(client: &mut Client, document: &Document) -> Vec<Value> {
    let lenses = client.request("textDocument/codeLens", json!({ "textDocument": { "uri": document.uri } }));
    lenses.as_array().cloned().unwrap_or_default()
}

fn save(client: &mut Client, document: &Document) {
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": document.uri } }));
}

const ASK: &str = "▷ resources on sm_90";
const SUMMED_UP: &str = "sm_90: 2 configs: occupancy 25 %, 1 out of resources";

#[test]
fn saving_a_file_shows_the_resources_of_its_kernels_in_a_lens() {
    let mut client = start(&json!({ "target": "cuda:90" }));
    let mut document = accepted(&mut client, "p.py", PRODUCT);
    assert_eq!(titles(&mut client, &document), [ASK, "TTGIR", "PTX", "SASS"]);
    save(&mut client, &document);
    refreshed(&mut client);
    assert_eq!(titles(&mut client, &document), [SUMMED_UP, "TTGIR", "PTX", "SASS"]);
    let lens = &lenses(&mut client, &document)[3];
    assert_eq!(lens["range"]["start"], document.range_of("@triton.autotune")["start"]);
    let arguments = json!([{ "uri": document.uri, "kernel": "product", "stage": "sass" }]);
    assert_eq!((&lens["command"]["command"], &lens["command"]["arguments"]), (&json!("warpsmith.inspect"), &arguments));
    // The measured figure replaces the estimate of H015.
    let found = client.published(&document);
    assert_eq!(codes(&found), ["C002"]);
    assert_eq!(found[0]["range"], document.range_of("triton.Config({\"BK\": 64}, num_stages=5, num_warps=8)"));
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.contains("needs 327,680 bytes of shared memory; sm_90 has 232,448 for a program"), "{message}");
    let (hover, _) = client.hover(&document, "product(").unwrap();
    assert!(hover.contains("| `BK=32, num_warps=8, num_stages=3` | 110 | 0 | 98304 | 25 % (registers) |"), "{hover}");
    assert!(hover.contains("| `BK=64, num_warps=8, num_stages=5` | "), "{hover}");
    // The finding stays after an edit that does not matter, moves with the kernel, and disappears with an edit of it.
    client.replace(&mut document, "# warpsmith", "# one more line\n\n# warpsmith");
    assert_eq!(codes(&client.published(&document)), ["C002"]);
    assert_eq!(titles(&mut client, &document)[0], SUMMED_UP);
    client.replace(&mut document, "num_stages=5", "num_stages=2");
    assert_eq!(codes(&client.published(&document)), [""; 0]);
    refreshed(&mut client);
    assert_eq!(titles(&mut client, &document)[0], ASK);
    // Known results are shown at once.
    client.replace(&mut document, "num_stages=2", "num_stages=5");
    client.published(&document);
    refreshed(&mut client);
    save(&mut client, &document);
    refreshed(&mut client);
    assert_eq!(codes(&client.published(&document)), ["C002"]);
    client.assert_silent();
}

#[test]
fn the_resources_command_shows_the_resources_of_a_kernel() {
    let mut client = start(&json!({ "target": "cuda:80" }));
    let document = accepted(&mut client, "c.py", COPY);
    let command = json!({ "command": "warpsmith.resources", "arguments": [{ "uri": document.uri, "kernel": "copy" }] });
    assert_eq!(client.request("workspace/executeCommand", command.clone()), Value::Null);
    let shown = client.notification("window/showMessage")["message"].as_str().unwrap().to_owned();
    assert!(
        shown.starts_with("`copy` on sm_80: ") && shown.contains(" registers, no spills, 0 bytes shared"),
        "{shown}"
    );
    assert!(shown.ends_with("(parameters guessed)"), "{shown}");
    refreshed(&mut client);
    assert!(titles(&mut client, &document)[0].starts_with("sm_80: "));
    // The result is known now.
    let known = client.request("workspace/executeCommand", command);
    assert_eq!((known["device"].as_str(), known["rows"].as_array().map(Vec::len)), (Some("sm_80"), Some(1)));
    assert_eq!(client.notification("window/showMessage")["message"], shown);
    client.assert_silent();
}

#[test]
fn resources_are_not_shown_without_a_target() {
    let mut client = start(&json!({}));
    let document = client.open("p.py", PRODUCT);
    client.published(&document);
    save(&mut client, &document);
    assert_eq!(titles(&mut client, &document), [""; 0]);
    let command =
        json!({ "command": "warpsmith.resources", "arguments": [{ "uri": document.uri, "kernel": "product" }] });
    let (_, message) = client.request_error("workspace/executeCommand", command);
    assert!(message.contains("`compiler.target`"), "{message}");
}

#[test]
fn the_front_end_runs_before_resources_are_compiled() {
    let mut client = start(&json!({ "target": "cuda:90" }));
    let config = "triton.Config({\"BK\": 64}, num_stages=5, num_warps=8)";
    let many = format!(
        "*[triton.Config({{'BK': 32}}, num_warps=w, num_stages=s) for w in [4, 8] for s in range(1, 25)], {config}"
    );
    let long = accepted(&mut client, "p.py", &PRODUCT.replace(config, &many));
    save(&mut client, &long);
    let broken = COPY.replace("tl.load(x + i)", "tl.load(x + oops)");
    let document = client.open("c.py", &broken);
    let first = client.published(&document);
    let found = if first.is_empty() { client.published(&document) } else { first };
    assert_eq!(codes(&found), ["C001"]);
    assert_eq!(titles(&mut client, &long)[0], ASK, "that takes longer than the front end needs");
    // An edit removes the result.
    let mut long = long;
    client.replace(&mut long, "num_stages=5", "num_stages=4");
    client.published(&long);
    refreshed(&mut client);
    assert_eq!(titles(&mut client, &long)[0], ASK);
    client.assert_silent();
}
