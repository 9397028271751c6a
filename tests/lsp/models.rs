//! Tests of what a configured language model adds: kernels for functions that launch none, and a question before
//! anything is sent.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use config::{ModelSettings, Provider};
use llm::{Account, Model, ModelClient, ModelError, ModelReply, ReplyObserver};
use search::{Observer, OptimizeError, OptimizeScope, SearchRequest};
use serde_json::{Value, json};

use crate::harness::{Client, Document, Setup};
use crate::optimize::{open, start, tools};

const TEXT: &str = "import torch\nimport triton\n\ndef gelu(x):\n    return torch.nn.functional.gelu(x)\n\n\
                    class Net(torch.nn.Module):\n    def forward(self, x):\n        return x.relu()\n\ndef plain(x):\n    return x\n";
const MODEL: &str = "[model]\nbase-url = 'http://127.0.0.1:9/v1'\nname = 'coder'\n";

fn started(
    settings: &str,
    search: impl Fn(&SearchRequest, &dyn Observer) + Send + Sync + 'static,
) -> (Client, Document) {
    let search = move |request: &SearchRequest, observer: &dyn Observer| {
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
    assert_eq!(subjects, [OptimizeScope::Function("Net".to_owned()), OptimizeScope::Function("gelu".to_owned())]);
}

#[test]
fn writing_a_kernel_is_not_offered_without_a_model() {
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

/// An observer that stops waiting when the search is cancelled.
struct Searcher<'a>(&'a dyn Observer);

impl ReplyObserver for Searcher<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// What a search makes of the editor's model: the reply or the error, if the client has one.
type Asked = Arc<Mutex<Vec<Option<Result<ModelReply, ModelError>>>>>;

/// A client with these options and a search that asks its model once.
fn asking(options: Value, capabilities: &Value) -> (Client, String, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let search = move |_: &SearchRequest, observer: &dyn Observer| {
        let name = Some("gpt-5".to_owned());
        let settings = ModelSettings { provider: Provider::Editor, name, ..ModelSettings::default() };
        let folder = tempfile::tempdir().unwrap();
        let account = Arc::new(Account::open(&settings.budget, folder.path()).unwrap());
        let mut request = llm::ModelRequest::of("be brief", "how are you?");
        (request.temperature, request.max_tokens) = (Some(0.25), 500);
        let model = observer.editor_model().map(|editor| ModelClient::in_editor(&settings, editor, account));
        let reply = model.map(|model| model.complete(&request, &mut Searcher(observer)));
        noted.lock().unwrap().push(reply);
        Err(OptimizeError::Cancelled)
    };
    let setup = Setup::new().full().capabilities(capabilities).options(options).tools(tools(Arc::new(search)));
    let mut client = setup.start();
    let document = open(&mut client);
    let job = start(&mut client, &document);
    (client, job, asked)
}

fn taking() -> (Client, String, Asked) {
    asking(json!({ "settings": { "select": ["L002"] }, "languageModel": true }), &json!({}))
}

fn came(asked: &Asked) -> Option<Result<ModelReply, ModelError>> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(came) = asked.lock().unwrap().pop() {
            return came;
        }
        assert!(Instant::now() < deadline, "no reply came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_editors_model_answers_a_search() {
    let experimental = json!({ "experimental": { "warpsmithModel": true } });
    let options = json!({ "settings": { "select": ["L002"] } });
    for (mut client, _, asked) in [taking(), asking(options, &experimental)] {
        let question = client.server_message("warpsmith/model");
        let messages = json!([{ "role": "user", "text": "how are you?" }]);
        let expected = json!({
            "model": "gpt-5", "system": "be brief", "messages": messages, "temperature": 0.25, "maxTokens": 500, "stop": [],
        });
        assert_eq!(question["params"], expected);
        client.reply(&question, json!({ "text": "well", "finish": "length", "input": 7, "output": 1 }));
        let reply = came(&asked).unwrap().unwrap();
        assert_eq!((reply.text.as_str(), &reply.finish), ("well", &llm::Finish::Length));
        assert_eq!((reply.usage.tokens(), reply.usage.estimated), (8, false));
        client.assert_silent();
    }
}

#[test]
fn an_error_of_the_editors_model_is_reported_with_its_reason() {
    for (code, lasting) in [(-32803, true), (-32603, false)] {
        let (mut client, _, asked) = taking();
        let question = client.server_message("warpsmith/model");
        let error = json!({ "code": code, "message": "no model: sign in" });
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
        let error = came(&asked).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "no model: sign in");
        assert!(matches!(error, ModelError::Editor { is_lasting, .. } if is_lasting == lasting), "{error:?}");
    }
    let (mut client, _, asked) = taking();
    let question = client.server_message("warpsmith/model");
    client.reply(&question, json!({ "said": "well" }));
    let error = came(&asked).unwrap().unwrap_err().to_string();
    assert!(error.contains("`warpsmith/model` is not a valid reply: missing field `text`"), "{error}");
}

#[test]
fn a_stopped_search_cancels_its_request_to_the_editors_model() {
    let (mut client, job, asked) = taking();
    let question = client.server_message("warpsmith/model");
    let stop = json!({ "command": "warpsmith.cancel", "arguments": [{ "job": job }] });
    assert_eq!(client.request("workspace/executeCommand", stop), json!({ "cancelled": true }));
    assert_eq!(client.notification("$/cancelRequest"), json!({ "id": question["id"] }));
    assert!(matches!(came(&asked), Some(Err(ModelError::Cancelled))));
    // The editor answers nevertheless, which has no effect.
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32800, "message": "stopped" } }));
    client.assert_silent();
}

#[test]
fn a_client_without_a_model_receives_no_model_request() {
    let (mut client, _, asked) = asking(json!({ "settings": { "select": ["L002"] } }), &json!({}));
    assert!(came(&asked).is_none());
    client.assert_silent();
}
