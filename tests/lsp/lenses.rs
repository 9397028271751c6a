//! Tests of the lenses to optimize, above kernels and the functions that launch them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use judge::Devices;
use search::{Observer, OptimizeError, OptimizeScope, SearchOutcome, SearchRequest};
use serde_json::{Value, json};
use warpsmith::server::Tools;

use crate::harness::{BAD, Client, Document, Setup};
use crate::optimize::{gated, open, setup, tools};

/// The lenses of a document: line (from 0), title and command.
fn lenses(client: &mut Client, document: &Document) -> Vec<(u64, String, Value)> {
    let lenses = client.request("textDocument/codeLens", json!({ "textDocument": { "uri": document.uri } }));
    let of = |lens: &Value| {
        let title = lens["command"]["title"].as_str().unwrap().to_owned();
        (lens["range"]["start"]["line"].as_u64().unwrap(), title, lens["command"].clone())
    };
    lenses.as_array().map(|all| all.iter().map(of).collect()).unwrap_or_default()
}

fn titles(client: &mut Client, document: &Document) -> Vec<(u64, String)> {
    lenses(client, document).into_iter().map(|(line, title, _)| (line, title)).collect()
}

fn told(all: &[(u64, &str)]) -> Vec<(u64, String)> {
    all.iter().map(|&(line, title)| (line, title.to_owned())).collect()
}

const KERNEL: u64 = 4;
const HOST: u64 = 12;

#[test]
fn lenses_on_a_kernel_and_its_launching_function_start_a_search() {
    let seen: Arc<Mutex<Vec<SearchRequest>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let search = move |request: &SearchRequest, _: &dyn Observer| {
        kept.lock().unwrap().push(request.clone());
        Err::<SearchOutcome, _>(OptimizeError::Failed("nothing is measured here".to_owned()))
    };
    let mut client = Setup::new().full().tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    let both = told(&[(KERNEL, "▷ Optimize this kernel"), (HOST, "▷ Optimize `scale`")]);
    let all = lenses(&mut client, &document);
    let own: Vec<_> = all.iter().filter(|(_, title, _)| title.contains("Optimize")).collect();
    assert_eq!(own.iter().map(|(line, title, _)| (*line, title.clone())).collect::<Vec<_>>(), both);
    for (.., command) in own {
        client.request("workspace/executeCommand", command.clone());
        client.notification("window/showMessage");
    }

    // For several kernels the lens optimizes the function, with all of them.
    let second = BAD[BAD.find("@triton.jit").unwrap()..BAD.find("def run").unwrap()].replace("def scale", "def shift");
    let text = BAD.replace("def run", &format!("{second}def run"));
    let text = format!("{text}    shift[(1,)](x, y, x.numel(), BLOCK=64)\n");
    let document = client.open("b.py", &text);
    client.published(&document);
    let (.., of_function) = lenses(&mut client, &document).pop().unwrap();
    assert_eq!(of_function["title"], "▷ Optimize the kernels of `run`");
    client.request("workspace/executeCommand", of_function);
    client.notification("window/showMessage");
    let subjects: Vec<OptimizeScope> = seen.lock().unwrap().iter().map(|request| request.subject.clone()).collect();
    let kernel = || OptimizeScope::Kernel("scale".to_owned());
    assert_eq!(subjects, [kernel(), kernel(), OptimizeScope::Function("run".to_owned())]);
}

#[test]
fn the_lens_stops_a_running_search_and_then_shows_its_report() {
    let (tools, _gate) = gated();
    let refreshes = json!({ "workspace": { "codeLens": { "refreshSupport": true } } });
    let mut client = Setup::new().full().tools(tools).capabilities(&refreshes).start();
    let refreshed = |client: &mut Client| {
        let request = client.server_message("workspace/codeLens/refresh");
        client.reply(&request, Value::Null);
    };
    let document = client.open("a.py", BAD);
    client.published(&document);
    // The search for devices has ended.
    refreshed(&mut client);
    let optimize =
        |client: &mut Client| lenses(client, &document).into_iter().find(|(_, title, _)| title.contains("Optimize"));
    let (.., start) = optimize(&mut client).unwrap();
    client.request("workspace/executeCommand", start);
    refreshed(&mut client);
    let stop = told(&[(KERNEL, "◼ Stop optimizing this kernel"), (HOST, "◼ Stop optimizing `scale`")]);
    let shown = lenses(&mut client, &document);
    let stops: Vec<_> = shown.iter().filter(|(_, title, _)| title.contains("ptimiz")).cloned().collect();
    assert_eq!(stops.iter().map(|(line, title, _)| (*line, title.clone())).collect::<Vec<_>>(), stop);
    let file = document.uri.strip_prefix("file://").unwrap();
    let runs = std::path::Path::new(file).with_file_name(".warpsmith").join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    let begun = json!({
        "what": "begun", "form": 2, "at": 0, "file": file, "subject": { "kernel": "scale" }, "name": "scale",
        "text": BAD, "calls": [], "calls_hash": "", "budget": 77.0, "seed": 1, "environment": "Test GPU",
    });
    std::fs::write(runs.join("scale-4.jsonl"), format!("{begun}\n")).unwrap();
    assert_eq!(client.request("workspace/executeCommand", stops[0].2.clone()), json!({ "cancelled": true }));
    refreshed(&mut client);
    let deadline = Instant::now() + Duration::from_secs(30);
    let after = told(&[
        (KERNEL, "▷ Optimize this kernel"),
        (KERNEL, "Resume"),
        (KERNEL, "Last report"),
        (HOST, "▷ Optimize `scale`"),
    ]);
    while titles(&mut client, &document) != after {
        assert!(Instant::now() < deadline, "{:?}", titles(&mut client, &document));
    }
}

#[test]
fn where_nothing_can_be_optimized_there_is_no_lens() {
    let missing = Arc::new(|| Devices::Missing("no GPU".to_owned()));
    let found = crate::optimize::tools(Arc::new(|_: &SearchRequest, _: &dyn Observer| unreachable!()));
    let without = Tools { devices: missing, ..found };
    let mut client = setup().tools(without).start();
    let document = client.open("a.py", BAD);
    client.published(&document);
    assert_eq!(titles(&mut client, &document), []);
    let off = json!({ "settings": { "code-lens": { "enabled": false } } });
    let (tools, _gate) = gated();
    let mut client = Setup::new().full().tools(tools).options(off).start();
    let document = open(&mut client);
    assert_eq!(titles(&mut client, &document), []);
}
