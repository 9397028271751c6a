//! A client that checks every message: it fails on a message that a test did not look at, and on one that does not come.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use url::Url;
use warpsmith::server::Tools;

/// How long to wait for a message that must come. Long: machines that run tests are slow and busy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A kernel with one mistake that is an error in every Triton version and has a fix, behind text that is not ASCII.
pub const BAD: &str = r#"import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    é = "😀"; factor = tl.float32(n)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


def run(x, y):
    scale[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
"#;

/// The mistake, the line that it is on, and what the fix makes of it.
pub const MISTAKE: &str = "tl.float32(n)";
pub const MISTAKE_LINE: u32 = 8;
pub const MENDED: &str = "tl.cast(n, tl.float32)";

/// Which server to start, and what the client says about itself.
pub struct Setup {
    capabilities: Value,
    options: Value,
    configuration: Option<Value>,
    folders: bool,
    process_id: Value,
    tools: Option<Tools>,
    files: Vec<(String, String)>,
}

impl Setup {
    /// A client that can do nothing, with a folder of its own; only the rule of [`MISTAKE`] runs.
    pub fn new() -> Self {
        Self {
            capabilities: json!({}),
            options: json!({ "settings": { "select": ["L002"] } }),
            configuration: None,
            folders: true,
            process_id: Value::Null,
            tools: None,
            files: Vec::new(),
        }
    }

    /// Adds capabilities.
    pub fn capabilities(mut self, capabilities: &Value) -> Self {
        merge(&mut self.capabilities, capabilities);
        self
    }

    /// A client that asks for diagnostics.
    pub fn pulls(self) -> Self {
        self.capabilities(&json!({ "textDocument": { "diagnostic": {} } }))
    }

    /// A client whose columns are bytes.
    pub fn utf8(self) -> Self {
        self.capabilities(&json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } }))
    }

    /// What a full-grown client says: diagnostics with data, actions, versioned edits.
    pub fn full(self) -> Self {
        self.capabilities(&json!({
            "textDocument": {
                "publishDiagnostics": {
                    "relatedInformation": true,
                    "versionSupport": true,
                    "codeDescriptionSupport": true,
                    "dataSupport": true,
                    "tagSupport": { "valueSet": [1, 2] },
                },
                "codeAction": {
                    "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["quickfix", "refactor.rewrite"] } },
                    "isPreferredSupport": true,
                    "disabledSupport": true,
                    "dataSupport": true,
                },
                "hover": { "contentFormat": ["markdown", "plaintext"] },
            },
            "workspace": { "workspaceEdit": { "documentChanges": true } },
        }))
    }

    /// `initializationOptions`
    pub fn options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    /// A client that can be asked for settings, and answers with these.
    pub fn configuration(mut self, settings: Value) -> Self {
        self.configuration = Some(settings);
        self.capabilities(&json!({ "workspace": { "configuration": true } }))
    }

    /// A client without workspace folders.
    pub fn without_folders(mut self) -> Self {
        self.folders = false;
        self
    }

    /// The process that the client claims to be.
    pub fn process_id(mut self, id: u32) -> Self {
        self.process_id = json!(id);
        self
    }

    /// Runs the server in this process, with these tools.
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Writes a file into the workspace's folder.
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Starts the server and does the handshake.
    pub fn start(self) -> Client {
        let mut client = self.start_uninitialized();
        let params = client.initialize_params.clone();
        client.initialize_result = client.request("initialize", params);
        client.notify("initialized", json!({}));
        client
    }

    /// Starts the server and says nothing.
    pub fn start_uninitialized(self) -> Client {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &self.files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Url::from_directory_path(folder.path()).unwrap();
        let root = root.as_str().trim_end_matches('/').to_owned();
        let folders = if self.folders { json!([{ "uri": root, "name": "test" }]) } else { Value::Null };
        let initialize_params = json!({
            "processId": self.process_id,
            "clientInfo": { "name": "test" },
            "rootUri": Value::Null,
            "capabilities": self.capabilities,
            "initializationOptions": self.options,
            "workspaceFolders": folders,
        });
        let (messages, inbox) = mpsc::channel();
        let transport = match self.tools {
            Some(tools) => Transport::in_process(tools, messages),
            None => Transport::spawn(folder.path(), messages),
        };
        Client {
            transport: Some(transport),
            inbox,
            unread: VecDeque::new(),
            next_id: 0,
            configuration: self.configuration,
            initialize_params,
            initialize_result: Value::Null,
            root,
            folder,
        }
    }
}

/// Lays `over` over `base`, key by key.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// The pipes to a server.
enum Transport {
    Process { child: Child, stderr: Arc<Mutex<String>> },
    Thread { input: WriteHalf<DuplexStream>, thread: JoinHandle<bool> },
}

impl Transport {
    fn spawn(folder: &Path, messages: mpsc::Sender<Value>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
            .arg("serve")
            .current_dir(folder)
            .env("WARPSMITH_LOG", "info")
            .env_remove("VIRTUAL_ENV")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || read_messages(BufReader::new(stdout), &messages));
        let (stderr, mut pipe) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let log = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                log.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
        });
        Self::Process { child, stderr }
    }

    fn in_process(tools: Tools, messages: mpsc::Sender<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let serve = move || warpsmith::server::serve_on(input, output, tools).unwrap();
        let thread = std::thread::spawn(move || {
            format!("{:?}", serve()) == format!("{:?}", std::process::ExitCode::SUCCESS)
        });
        let (reader, writer) = tokio::io::split(ours);
        std::thread::spawn(move || read_messages(BufReader::new(Blocking(reader)), &messages));
        Self::Thread { input: writer, thread }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Process { child, .. } => {
                let stdin = child.stdin.as_mut().unwrap();
                stdin.write_all(bytes)?;
                stdin.flush()
            }
            Self::Thread { input, .. } => block_on(input.write_all(bytes)),
        }
    }
}

/// An asynchronous stream, read by a thread that may wait.
struct Blocking(ReadHalf<DuplexStream>);

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        block_on(self.0.read(buffer))
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn read_messages(mut stream: impl BufRead, messages: &mpsc::Sender<Value>) {
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() || messages.send(serde_json::from_slice(&body).unwrap()).is_err() {
            return;
        }
    }
}

/// The other end of the server.
pub struct Client {
    transport: Option<Transport>,
    inbox: mpsc::Receiver<Value>,
    /// Messages that came while the test waited for another.
    unread: VecDeque<Value>,
    next_id: i64,
    configuration: Option<Value>,
    initialize_params: Value,
    /// The answer to `initialize`.
    pub initialize_result: Value,
    root: String,
    folder: tempfile::TempDir,
}

impl Client {
    /// The workspace's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The address of a file in the folder.
    pub fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// The parameters that the handshake would send.
    pub fn initialize_params(&self) -> Value {
        self.initialize_params.clone()
    }

    /// What the client will answer when it is asked for settings.
    pub fn set_configuration(&mut self, settings: Value) {
        self.configuration = Some(settings);
    }

    /// Writes bytes as they are.
    pub fn write_raw(&mut self, bytes: &[u8]) {
        if let Err(error) = self.transport.as_mut().unwrap().write(bytes) {
            panic!("the server closed its input: {error}\n{}", self.log());
        }
    }

    /// Sends a message as it is.
    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.write_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request; returns its id.
    pub fn send_request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
        self.next_id
    }

    /// The answer to a request that was sent.
    pub fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        let mut message = self.wait(&format!("the answer to request {id}"), is_answer);
        match message.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(message["result"].take()),
        }
    }

    /// Sends a request and waits for its result.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.answer(id).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a request that must fail; returns its code and message.
    pub fn request_error(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send_request(method, params);
        let error = self.answer(id).expect_err(method);
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// The next notification or request of the server with this method.
    pub fn from_server(&mut self, method: &str) -> Value {
        self.wait(method, |message| message["method"] == method)
    }

    /// The parameters of the next notification of the server with this method.
    pub fn notification(&mut self, method: &str) -> Value {
        self.from_server(method)["params"].take()
    }

    /// Answers a request of the server.
    pub fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// The first message that is `wanted`, which has come or will; others are kept.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
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

    /// Asserts that nothing unexpected has come: the server has answered all that it was sent, and said no more.
    pub fn assert_silent(&mut self) {
        // A request makes sure that everything before it was seen to.
        let (code, _) = self.request_error("test/nothing", Value::Null);
        assert_eq!(code, -32601);
        assert!(self.unread.is_empty(), "unread: {:#?}", self.unread);
    }

    /// Opens a Python file.
    pub fn open(&mut self, name: &str, text: &str) -> Document {
        let document = Document { uri: self.uri(name), version: 1, text: text.to_owned() };
        let item = json!({ "uri": document.uri, "languageId": "python", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": item }));
        document
    }

    /// Sends changes of a document, which are not made in its `text`.
    pub fn change_raw(&mut self, document: &mut Document, changes: Value) {
        document.version += 1;
        let identifier = json!({ "uri": document.uri, "version": document.version });
        self.notify("textDocument/didChange", json!({ "textDocument": identifier, "contentChanges": changes }));
    }

    /// Replaces the first `from` of a document by `to`, with columns in UTF-16.
    pub fn replace(&mut self, document: &mut Document, from: &str, to: &str) {
        let range = document.range_of(from);
        document.text = document.text.replacen(from, to, 1);
        self.change_raw(document, json!([{ "range": range, "text": to }]));
    }

    /// Closes a document.
    pub fn close(&mut self, document: &Document) {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": document.uri } }));
    }

    /// The diagnostics that are published for the present version of a document. Fails on one of a former version that
    /// comes after one of a later.
    pub fn published(&mut self, document: &Document) -> Vec<Value> {
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

    /// The diagnostics that are asked for.
    pub fn pulled(&mut self, document: &Document) -> Vec<Value> {
        let params = json!({ "textDocument": { "uri": document.uri } });
        let mut report = self.request("textDocument/diagnostic", params);
        assert_eq!(report["kind"], "full");
        serde_json::from_value(report["items"].take()).unwrap()
    }

    /// The actions for a range.
    pub fn actions(&mut self, document: &Document, range: &Value, diagnostics: &[Value]) -> Vec<Value> {
        let context = json!({ "diagnostics": diagnostics, "triggerKind": 1 });
        let params = json!({ "textDocument": { "uri": document.uri }, "range": range, "context": context });
        serde_json::from_value(self.request("textDocument/codeAction", params)).unwrap()
    }

    /// The hover at the first character of `at`: its text and range.
    pub fn hover(&mut self, document: &Document, at: &str) -> Option<(String, Value)> {
        let position = document.range_of(at)["start"].take();
        let params = json!({ "textDocument": { "uri": document.uri }, "position": position });
        let hover = self.request("textDocument/hover", params);
        Some((hover["contents"]["value"].as_str()?.to_owned(), hover["range"].clone()))
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        match &self.transport {
            Some(Transport::Process { stderr, .. }) => stderr.lock().unwrap().clone(),
            _ => String::new(),
        }
    }

    /// Waits until the log has `text`.
    pub fn wait_for_log(&self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "`{text}` was not logged:\n{}", self.log());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// `shutdown` and `exit`; returns whether the server ended well.
    pub fn stop(&mut self) -> bool {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.ended() == Some(0)
    }

    /// Closes the server's input.
    pub fn hang_up(&mut self) {
        match self.transport.as_mut().unwrap() {
            Transport::Process { child, .. } => drop(child.stdin.take()),
            Transport::Thread { input, .. } => block_on(input.shutdown()).unwrap(),
        }
    }

    /// Waits for the server to end; its status. Fails on messages that nobody looked at.
    pub fn ended(&mut self) -> Option<i32> {
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
        while let Ok(message) = self.receive(Duration::from_secs(1)) {
            self.unread.push_back(message);
        }
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

/// A document that the client has open.
#[derive(Clone, Debug)]
pub struct Document {
    pub uri: String,
    pub version: i32,
    pub text: String,
}

impl Document {
    /// The position of byte `offset`, in UTF-16.
    pub fn position(&self, offset: usize) -> Value {
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        json!({ "line": before.matches('\n').count(), "character": before[line_start..].encode_utf16().count() })
    }

    /// The range of the first `text`, in UTF-16.
    pub fn range_of(&self, text: &str) -> Value {
        let start = self.text.find(text).unwrap_or_else(|| panic!("no `{text}` in {}", self.text));
        json!({ "start": self.position(start), "end": self.position(start + text.len()) })
    }

    /// The text with edits made, whose columns are UTF-16.
    pub fn edited(&self, edits: &Value) -> String {
        let offset = |position: &Value| {
            let line = position["line"].as_u64().unwrap() as usize;
            let start: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
            let mut column = position["character"].as_u64().unwrap();
            let mut at = start;
            for c in self.text[start..].chars() {
                if column == 0 {
                    break;
                }
                column -= c.len_utf16() as u64;
                at += c.len_utf8();
            }
            at
        };
        let edits = edits.as_array().unwrap().iter().map(|edit| {
            let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
            (start, end, edit["newText"].as_str().unwrap())
        });
        let mut edits: Vec<_> = edits.collect();
        edits.sort_unstable();
        let mut text = self.text.clone();
        for (start, end, new) in edits.into_iter().rev() {
            text.replace_range(start..end, new);
        }
        text
    }
}

/// The codes of diagnostics, in their order.
pub fn codes(diagnostics: &[Value]) -> Vec<&str> {
    diagnostics.iter().map(|item| item["code"].as_str().unwrap()).collect()
}

/// The parts of a JSON value, by pointer: what a test is about.
pub fn parts(value: &Value, pointers: &[&str]) -> HashMap<String, Value> {
    pointers.iter().map(|pointer| ((*pointer).to_owned(), value.pointer(pointer).cloned().unwrap_or_default())).collect()
}
