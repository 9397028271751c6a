//! The choice of the server to start, and the capabilities of the client.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use rules::learned::LearnedRules;
use serde_json::{Value, json};
use url::Url;
use warpsmith::server::Tools;

use super::Client;
use super::transport::Transport;

/// The server to start, and the capabilities of the client.
pub(crate) struct Setup {
    capabilities: Value,
    options: Value,
    configuration: Option<Value>,
    folders: bool,
    process_id: Value,
    tools: Option<Tools>,
    files: Vec<(String, String)>,
    hears_of_missing_triton: bool,
    fake_device: bool,
    state: Option<PathBuf>,
}

impl Setup {
    /// A client without capabilities, in its own folder; only the rule of [`MISTAKE`] is enabled.
    pub(crate) fn new() -> Self {
        Self {
            capabilities: json!({}),
            options: json!({ "settings": { "select": ["L002"] } }),
            configuration: None,
            folders: true,
            process_id: Value::Null,
            tools: None,
            files: Vec::new(),
            hears_of_missing_triton: false,
            fake_device: false,
            state: None,
        }
    }

    /// Keeps the server's state in this folder instead of the workspace's.
    pub(crate) fn state(mut self, folder: &Path) -> Self {
        self.state = Some(folder.to_owned());
        self
    }

    /// Adds capabilities.
    pub(crate) fn capabilities(mut self, capabilities: &Value) -> Self {
        merge(&mut self.capabilities, capabilities);
        self
    }

    /// A client that pulls diagnostics.
    pub(crate) fn pulls(self) -> Self {
        self.capabilities(&json!({ "textDocument": { "diagnostic": {} } }))
    }

    /// A client whose columns are in bytes (UTF-8).
    pub(crate) fn utf8(self) -> Self {
        self.capabilities(&json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } }))
    }

    /// A client with the capabilities of a full editor: diagnostics with data, code actions, versioned edits.
    pub(crate) fn full(self) -> Self {
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

    /// Sets `initializationOptions`.
    pub(crate) fn options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    /// A client that answers requests for settings with these.
    pub(crate) fn configuration(mut self, settings: Value) -> Self {
        self.configuration = Some(settings);
        self.capabilities(&json!({ "workspace": { "configuration": true } }))
    }

    /// A client without workspace folders.
    pub(crate) fn without_folders(mut self) -> Self {
        self.folders = false;
        self
    }

    /// Sets the process id that the client reports.
    pub(crate) fn process_id(mut self, id: u32) -> Self {
        self.process_id = json!(id);
        self
    }

    /// Runs the server in this process with these tools. It does not learn.
    pub(crate) fn tools(mut self, tools: Tools) -> Self {
        let memory = || LearnedRules::empty().clone();
        self.tools = Some(Tools { memory: Arc::new(memory), remember: Arc::new(drop), ..tools });
        self
    }

    /// Keeps the message that Triton is missing, which the harness ignores by default because only some machines have
    /// Triton.
    pub(crate) fn hears_of_missing_triton(mut self) -> Self {
        self.hears_of_missing_triton = true;
        self
    }

    /// Runs the server in its own process with a simulated device.
    pub(crate) fn fake_device(mut self) -> Self {
        self.fake_device = true;
        self
    }

    /// Writes a file into the workspace folder.
    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Starts the server and performs the handshake.
    pub(crate) fn start(self) -> Client {
        let mut client = self.start_uninitialized();
        let params = client.initialize_params.clone();
        client.initialize_result = client.request("initialize", params);
        client.notify("initialized", json!({}));
        client
    }

    /// Starts the server without the handshake.
    pub(crate) fn start_uninitialized(self) -> Client {
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
            None => {
                let state = self.state.unwrap_or_else(|| folder.path().join(".state"));
                Transport::spawn(folder.path(), &state, self.fake_device, messages)
            }
        };
        Client {
            transport: Some(transport),
            inbox,
            unread: VecDeque::new(),
            next_id: 0,
            configuration: self.configuration,
            hears_of_missing_triton: self.hears_of_missing_triton,
            initialize_params,
            initialize_result: Value::Null,
            root,
            folder,
        }
    }
}

/// Merges `over` into `base`, key by key.
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
