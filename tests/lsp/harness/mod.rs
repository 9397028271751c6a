//! A client that checks every message: it fails on a message that a test did not read, and on an expected one that is
//! missing.

mod document;
mod setup;
mod transport;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use judge::{Device, Devices};
use runtime::python::environment::{InterpreterOrigin, PythonEnvironment};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use warpsmith::server::Tools;

pub(crate) use document::Document;
pub(crate) use setup::Setup;
use transport::{Transport, block_on};

/// The time to wait for a required message. It is long because test machines are slow and busy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A kernel with one mistake that is an error in every Triton version and has a fix, after text that is not ASCII.
pub(crate) const BAD: &str = r#"import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    é=1; "😀";factor = tl.float32(n)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


def run(x, y):
    scale[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
"#;

/// The mistake, its line, and the result of the fix.
pub(crate) const MISTAKE: &str = "tl.float32(n)";
pub(crate) const MISTAKE_LINE: u32 = 8;
pub(crate) const MENDED: &str = "tl.cast(n, tl.float32)";

/// The client side of a connection to the server.
pub(crate) struct Client {
    transport: Option<Transport>,
    inbox: mpsc::Receiver<Value>,
    /// Messages that arrived while the test waited for another one.
    unread: VecDeque<Value>,
    next_id: i64,
    configuration: Option<Value>,
    hears_of_missing_triton: bool,
    initialize_params: Value,
    /// The answer to `initialize`.
    pub(crate) initialize_result: Value,
    root: String,
    folder: tempfile::TempDir,
}

impl Client {
    /// The workspace folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The URI of a file in the folder.
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// The parameters that the handshake sends.
    pub(crate) fn initialize_params(&self) -> Value {
        self.initialize_params.clone()
    }

    /// Sets the answer to requests for settings.
    pub(crate) fn set_configuration(&mut self, settings: Value) {
        self.configuration = Some(settings);
    }

    /// Writes raw bytes.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        if let Err(error) = self.transport.as_mut().unwrap().write(bytes) {
            panic!("the server closed its input: {error}\n{}", self.log());
        }
    }

    /// Sends a message unchanged.
    pub(crate) fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.write_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request; returns its id.
    pub(crate) fn send_request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
        self.next_id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        let mut message = self.wait(&format!("the answer to request {id}"), is_answer);
        match message.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(message["result"].take()),
        }
    }

    /// Sends a request and waits for its result.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.answer(id).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a request that must fail; returns its code and message.
    pub(crate) fn request_error(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send_request(method, params);
        let error = self.answer(id).expect_err(method);
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// The next notification or request of the server with this method.
    pub(crate) fn server_message(&mut self, method: &str) -> Value {
        self.wait(method, |message| message["method"] == method)
    }

    /// The parameters of the next notification of the server with this method.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        self.server_message(method)["params"].take()
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// The next message for which `wanted` returns true, read or yet to come; others are kept.
    pub(crate) fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&wanted) {
            return self.unread.remove(at).unwrap();
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.receive(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.unread.push_back(message),
                Err(error) => panic!("{what} did not come ({error}); unread: {:#?}\n{}", self.unread, self.log()),
            }
        }
    }

    /// The next message that the harness does not answer itself.
    fn receive(&mut self, timeout: Duration) -> Result<Value, mpsc::RecvTimeoutError> {
        loop {
            let message = self.inbox.recv_timeout(timeout)?;
            let text = message["params"]["message"].as_str().unwrap_or_default();
            if !self.hears_of_missing_triton && text.starts_with("Warpsmith does without Triton's own errors") {
                continue;
            }
            if let Some(settings) = &self.configuration
                && message["method"] == "workspace/configuration"
            {
                let items = message["params"]["items"].as_array().unwrap();
                assert!(items.iter().all(|item| item["section"] == "warpsmith"));
                let answers = vec![settings.clone(); items.len()];
                self.reply(&message, json!(answers));
                continue;
            }
            return Ok(message);
        }
    }

    /// Asserts that the server has answered everything and sent nothing unexpected.
    pub(crate) fn assert_silent(&mut self) {
        // The server answers this after everything that was sent before; an unknown method would be answered earlier.
        self.request("warpsmith/status", Value::Null);
        assert!(self.unread.is_empty(), "unread: {:#?}", self.unread);
    }

    /// Opens a Python file.
    pub(crate) fn open(&mut self, name: &str, text: &str) -> Document {
        let document = Document { uri: self.uri(name), version: 1, text: text.to_owned() };
        let item = json!({ "uri": document.uri, "languageId": "python", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": item }));
        document
    }

    /// Sends changes of a document without applying them to its `text`.
    pub(crate) fn change_raw(&mut self, document: &mut Document, changes: Value) {
        document.version += 1;
        let identifier = json!({ "uri": document.uri, "version": document.version });
        self.notify("textDocument/didChange", json!({ "textDocument": identifier, "contentChanges": changes }));
    }

    /// Replaces the first `from` in a document by `to`, with columns in UTF-16.
    pub(crate) fn replace(&mut self, document: &mut Document, from: &str, to: &str) {
        let range = document.range_of(from);
        document.text = document.text.replacen(from, to, 1);
        self.change_raw(document, json!([{ "range": range, "text": to }]));
    }

    /// Closes a document.
    pub(crate) fn close(&mut self, document: &Document) {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": document.uri } }));
    }

    /// The diagnostics published for the current version of a document. Fails on diagnostics of an earlier version that
    /// arrive after those of a later one.
    pub(crate) fn published(&mut self, document: &Document) -> Vec<Value> {
        let mut last = i64::MIN;
        loop {
            let uri = document.uri.as_str();
            let is_wanted = |message: &Value| {
                message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri
            };
            let mut message = self.wait(&format!("diagnostics of version {}", document.version), is_wanted);
            let version = message["params"]["version"].as_i64().expect("a version");
            assert!(version >= last, "version {version} was published after {last}");
            last = version;
            if version == i64::from(document.version) {
                return serde_json::from_value(message["params"]["diagnostics"].take()).unwrap();
            }
        }
    }

    /// The diagnostics that the client pulls.
    pub(crate) fn pulled(&mut self, document: &Document) -> Vec<Value> {
        let params = json!({ "textDocument": { "uri": document.uri } });
        let mut report = self.request("textDocument/diagnostic", params);
        assert_eq!(report["kind"], "full");
        serde_json::from_value(report["items"].take()).unwrap()
    }

    /// The code actions for a range.
    pub(crate) fn actions(&mut self, document: &Document, range: &Value, diagnostics: &[Value]) -> Vec<Value> {
        let context = json!({ "diagnostics": diagnostics, "triggerKind": 1 });
        let params = json!({ "textDocument": { "uri": document.uri }, "range": range, "context": context });
        serde_json::from_value(self.request("textDocument/codeAction", params)).unwrap()
    }

    /// The answer to a request for the position after the first `at`.
    pub(crate) fn ask_behind(&mut self, method: &str, document: &Document, at: &str) -> Value {
        let position = document.range_of(at)["end"].take();
        let params = json!({ "textDocument": { "uri": document.uri }, "position": position });
        self.request(method, params)
    }

    /// The hover at the first character of `at`: its text and range.
    pub(crate) fn hover(&mut self, document: &Document, at: &str) -> Option<(String, Value)> {
        let position = document.range_of(at)["start"].take();
        let params = json!({ "textDocument": { "uri": document.uri }, "position": position });
        let hover = self.request("textDocument/hover", params);
        Some((hover["contents"]["value"].as_str()?.to_owned(), hover["range"].clone()))
    }

    /// The child processes of the server.
    pub(crate) fn children(&self) -> Vec<u32> {
        let Some(Transport::Process { child, .. }) = &self.transport else { return Vec::new() };
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let read = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
        };
        tasks.flat_map(|task| read(task).split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
    }

    /// The log of the server.
    pub(crate) fn log(&self) -> String {
        match &self.transport {
            Some(Transport::Process { stderr, .. }) => stderr.lock().unwrap().clone(),
            _ => String::new(),
        }
    }

    /// Waits until the log contains `text`.
    pub(crate) fn wait_for_log(&self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "`{text}` was not logged:\n{}", self.log());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Stops the server and ignores unread notifications of this method.
    pub(crate) fn stop_ignoring(&mut self, method: &str) {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.drain_until_end();
        self.unread.retain(|message| message["method"] != method);
        assert_eq!(self.ended(), Some(0));
    }

    /// Sends `shutdown` and `exit`; returns whether the server ended without an error.
    pub(crate) fn stop(&mut self) -> bool {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.ended() == Some(0)
    }

    /// Closes the server's input.
    pub(crate) fn hang_up(&mut self) {
        match self.transport.as_mut().unwrap() {
            Transport::Process { child, .. } => drop(child.stdin.take()),
            Transport::Thread { input, .. } => block_on(input.shutdown()).unwrap(),
        }
    }

    /// Reads all messages until the server's output ends.
    fn drain_until_end(&mut self) {
        while let Ok(message) = self.receive(TIMEOUT) {
            self.unread.push_back(message);
        }
    }

    /// Waits for the server to end and returns its status. Fails on unread messages.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        let status = match self.transport.take().unwrap() {
            Transport::Process { mut child, stderr } => loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break status.code();
                }
                if Instant::now() > deadline {
                    let _ = child.kill();
                    panic!("the server does not end:\n{}", stderr.lock().unwrap());
                }
                std::thread::park_timeout(Duration::from_millis(2));
            },
            Transport::Thread { thread, .. } => Some(i32::from(!thread.join().unwrap())),
        };
        self.drain_until_end();
        assert!(self.unread.is_empty(), "nobody looked at: {:#?}", self.unread);
        status
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some(Transport::Process { child, .. }) = &mut self.transport {
                let _ = child.kill();
            }
        } else if self.transport.is_some() {
            assert!(self.stop(), "the server did not end well");
        }
    }
}

/// The codes of diagnostics, in their order.
pub(crate) fn codes(diagnostics: &[Value]) -> Vec<&str> {
    diagnostics.iter().map(|item| item["code"].as_str().unwrap()).collect()
}

/// A machine with a GPU and a Python, neither of which is used.
pub(crate) fn machine() -> Tools {
    let device = Device { name: "Test GPU".to_owned(), capability: (9, 0), uuid: String::new() };
    let environment = PythonEnvironment {
        python: PathBuf::from("python-of-the-test"),
        origin: InterpreterOrigin::Path,
        site_packages: Vec::new(),
        triton: None,
        release: false,
        installed: None,
    };
    Tools {
        devices: Arc::new(move || Devices::Found(vec![device.clone()])),
        environment: Arc::new(move |_| Some(environment.clone())),
        ..Tools::default()
    }
}
