//! The report of a search, opened by the editor.

use std::sync::Arc;

use serde_json::{Value, json};
use warpsmith::explore::{Observer, Outcome, Request};

use crate::harness::Client;
use crate::optimize::{accept_progress, end_of_progress, open, setup, start, tools};

/// After a search its report is opened outside of the editor.
#[test]
fn the_report_of_the_last_search_is_opened() {
    let search = |request: &Request, _: &dyn Observer| {
        let begun = json!({
            "what": "begun", "form": 1, "at": 0, "file": request.file, "asked": "scale", "name": "scale", "text": request.text,
            "calls": [], "calls_hash": "", "budget": 60.0, "seed": 1, "environment": "Test GPU",
        });
        let summary = "nothing is faster".to_owned();
        let ended = json!({ "what": "ended", "seconds": 9.0, "summary": summary });
        let runs = request.workspace.join(".warpsmith/runs");
        std::fs::create_dir_all(&runs).unwrap();
        std::fs::write(runs.join("scale-1.jsonl"), format!("{begun}\n{ended}\n")).unwrap();
        let (kernel, run) = ("scale".to_owned(), "scale-1".to_owned());
        Ok(Outcome { kernel, evaluated: 3, remembered: 0, offer: None, summary, run })
    };
    let opens = json!({ "window": { "showDocument": { "support": true } } });
    let mut client = setup().capabilities(&opens).tools(tools(Arc::new(search))).start();
    let document = open(&mut client);
    let titles = |client: &mut Client| -> Vec<Value> {
        let actions = client.actions(&document, &document.range_of("def scale"), &[]);
        actions.into_iter().filter(|action| action["title"].as_str().unwrap().starts_with("Show the report")).collect()
    };
    assert_eq!(titles(&mut client), Vec::<Value>::new(), "there is none yet");
    let job = start(&mut client, &document);
    accept_progress(&mut client, &job);
    end_of_progress(&mut client);
    assert_eq!(client.notification("window/showMessage")["message"], "nothing is faster");
    let command = titles(&mut client)[0]["command"].clone();
    let id = client.send_request("workspace/executeCommand", command);
    let request = client.server_message("window/showDocument");
    client.reply(&request, json!({ "success": true }));
    assert_eq!(client.answer(id).unwrap(), json!({ "run": "scale-1" }));
    assert_eq!(request["params"]["external"], true);
    let path = request["params"]["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("nothing is faster"), "{page}");
    client.assert_silent();
}
