//! The command [`RESOURCES`], which takes `{uri, kernel}` and shows in a message how much of a device the kernel takes.

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::resources as words;
use model::analysis::resources::Resources;

use crate::server::owner::Owner;
use crate::server::reply::{read, refused};

/// The command that compiles a kernel completely and shows its resources.
pub(crate) const RESOURCES: &str = "warpsmith.resources";

#[derive(Deserialize)]
struct Arguments {
    uri: lsp::Uri,
    kernel: String,
}

impl Owner {
    /// Runs the command [`RESOURCES`]: shows the resources, after a survey if they are unknown.
    pub(crate) fn resources_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let Arguments { uri, kernel: name } = read(argument)?;
        let unit = self.documents.unit(&uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let Some(kernel) = unit.module.kernel(&name) else {
            return Err(refused(format!("there is no kernel `{name}`")));
        };
        self.may_compile(&unit)?;
        if self.device_of(&unit).is_none() {
            let why = "there is no GPU here: name a device in the setting `compiler.target`, such as `cuda:90`";
            return Err(refused(why.to_owned()));
        }
        self.interpreter_to_ask(&unit)?;
        if let Some(resources) = Resources::of(kernel) {
            self.client.show(lsp::MessageType::Info, words::message(&name, &resources));
            return Ok(Some(json!({ "device": resources.device, "rows": words::rows(&resources) })));
        }
        let uri = unit.uri.clone();
        self.compiler.surveys.wanted.push((uri.clone(), name.clone()));
        self.compiler.surveys.add(&uri, &name, true);
        self.compile_next();
        Ok(None)
    }
}
