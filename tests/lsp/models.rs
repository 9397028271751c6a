//! What a language model that is set adds: kernels for functions that launch none, and a question before anything is sent.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warpsmith::explore::{Observer, OptimizeError, Request, Subject};

use crate::harness::{Client, Document, Setup};
use crate::optimize::tools;

const TEXT: &str = "import torch\nimport triton\n\ndef gelu(x):\n    return torch.nn.functional.gelu(x)\n\n\
                    class Net(torch.nn.Module):\n    def forward(self, x):\n        return x.relu()\n\ndef plain(x):\n    return x\n";
const MODEL: &str = "[model]\nbase-url = 'http://127.0.0.1:9/v1'\nname = 'coder'\n";

fn started(settings: &str, search: impl Fn(&Request, &dyn Observer) + Send + Sync + 'static) -> (Client, Document) {
    let search = move |request: &Request, observer: &dyn Observer| {
        search(request, observer);
        Err(OptimizeError::Cancelled)
    };
    let setup = Setup::new().full().file("warpsmith.toml", settings).tools(tools(Arc::new(search)));
    let mut client = setup.start();
    let document = client.open("layers.py", TEXT);
    client.published(&document);
    (client, document)
}

fn offers(client: &mut Client, document: &Document, at: &str) -> Vec<Value> {
    let actions = client.actions(document, &document.range_of(at), &[]);
    actions.into_iter().filter(|action| action["title"].as_str().unwrap().contains("kernel")).collect()
}

#[test]
fn a_kernel_is_written_for_a_function_or_a_module_where_a_model_is_set() {
    let subjects = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&subjects);
    let (mut client, document) = started(MODEL, move |request, _| seen.lock().unwrap().push(request.subject.clone()));
    let deadline = Instant::now() + Duration::from_secs(30);
    while offers(&mut client, &document, "def gelu")[0].get("disabled").is_some() {
        assert!(Instant::now() < deadline);
    }
    for (at, name) in [("def gelu", "gelu"), ("class Net", "Net")] {
        let actions = offers(&mut client, &document, at);
        let [action] = &actions[..] else { panic!("{actions:#?}") };
        assert_eq!(action["title"], format!("Write a Triton kernel for `{name}`"));
        let command = &action["command"];
        let run = json!({ "command": command["command"], "arguments": command["arguments"] });
        assert!(client.request("workspace/executeCommand", run)["job"].is_string());
    }
    assert_eq!(offers(&mut client, &document, "def plain"), [] as [Value; 0]);
    assert_eq!(offers(&mut client, &document, "return torch"), [] as [Value; 0], "only where the name stands");
    while subjects.lock().unwrap().len() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut subjects = subjects.lock().unwrap().clone();
    subjects.sort_by_key(|subject| subject.name().map(str::to_owned));
    assert_eq!(subjects, [Subject::Function("Net".to_owned()), Subject::Function("gelu".to_owned())]);
}

#[test]
fn nobody_writes_kernels_where_no_model_is_set() {
    let (mut client, document) = started("", |_, _| {});
    assert_eq!(offers(&mut client, &document, "def gelu"), [] as [Value; 0]);
}

#[test]
fn before_anything_is_sent_the_user_is_asked() {
    for (choice, expected) in [(json!({ "title": "Send" }), true), (json!({ "title": "Search without it" }), false)] {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let given = Arc::clone(&answers);
        let (mut client, document) = started(MODEL, move |_, observer| {
            let may = observer.may_send("Send it to coder?");
            given.lock().unwrap().push(may);
        });
        let deadline = Instant::now() + Duration::from_secs(30);
        while offers(&mut client, &document, "def gelu")[0].get("disabled").is_some() {
            assert!(Instant::now() < deadline);
        }
        let command = offers(&mut client, &document, "def gelu")[0]["command"].clone();
        let run = json!({ "command": command["command"], "arguments": command["arguments"] });
        client.request("workspace/executeCommand", run);
        let question = client.server_message("window/showMessageRequest");
        assert_eq!(question["params"]["message"], "Send it to coder?");
        assert_eq!(question["params"]["actions"], json!([{ "title": "Send" }, { "title": "Search without it" }]));
        client.reply(&question, choice);
        while answers.lock().unwrap().is_empty() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(*answers.lock().unwrap(), [expected]);
    }
}
