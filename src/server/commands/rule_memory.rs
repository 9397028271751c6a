//! The commands about learned rules: [`MUTE`] takes `{code}`, [`DISPUTE`] takes `{uri, kernel, code}`, [`REPRODUCER`] takes
//! `{code}`.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, Result};

use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use rules::learned::LearnedRule;
use runtime::python::cache_folder;

use crate::server::memory_writer::MemoryNote;
use crate::server::owner::Owner;
use crate::server::reply::{read, refused};

/// The command that mutes a rule.
pub(crate) const MUTE: &str = "warpsmith.memory.mute";
/// The command that asks Triton whether a rule is right about a kernel.
pub(crate) const DISPUTE: &str = "warpsmith.memory.dispute";
/// The command that opens the example that a rule was learned from.
pub(crate) const REPRODUCER: &str = "warpsmith.memory.reproducer";

#[derive(Deserialize)]
struct OfRule {
    code: String,
}

#[derive(Deserialize)]
struct OfKernel {
    uri: lsp::Uri,
    kernel: String,
    code: String,
}

impl Owner {
    /// Tells the user the result of a dispute.
    pub(crate) fn answer_disputes(&mut self, uri: &lsp::Uri, kernel: &str, said: &FrontEndOutcome) {
        let Some(codes) = self.memory.disputed.remove(&(uri.clone(), kernel.to_owned())) else { return };
        for code in codes {
            self.client.show(lsp::MessageType::Info, verdict(&code, kernel, said));
        }
    }

    /// Mutes a rule in all workspaces of the user.
    pub(crate) fn mute_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let OfRule { code } = read(argument)?;
        let rule = self.memory.rules.find(&code).ok_or_else(|| unknown(&code))?;
        let code = rule.code.clone();
        self.memory.rules = self.memory.rules.muting(&code);
        (self.tools.remember)(MemoryNote::Muted(code.clone()));
        self.check_all_again();
        Ok(Some(json!({ "muted": code })))
    }

    /// Asks Triton whether a rule is right about a kernel.
    pub(crate) fn dispute_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let OfKernel { uri, kernel: name, code } = read(argument)?;
        let unit = self.documents.unit(&uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let kernel = unit.module.kernel(&name).ok_or_else(|| refused(format!("there is no kernel `{name}`")))?;
        self.may_compile(&unit)?;
        self.interpreter_to_ask(&unit)?;
        match FrontEndVerdict::of(kernel) {
            Some(verdict_known) if !matches!(verdict_known.outcome, FrontEndOutcome::Unknown(_)) => {
                let text = verdict(&code, &name, &verdict_known.outcome);
                self.client.show(lsp::MessageType::Info, text);
            }
            _ => {
                // An undecided question is asked again.
                FrontEndVerdict::forget(kernel);
                self.memory.disputed.entry((uri.clone(), name.clone())).or_default().push(code);
                drop(unit);
                self.compiler.first(uri, name);
                self.compile_next();
            }
        }
        Ok(None)
    }

    /// Opens the example that a rule was learned from.
    pub(crate) fn reproducer_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let OfRule { code } = read(argument)?;
        let rule = self.memory.rules.find(&code).ok_or_else(|| unknown(&code))?;
        let path = reproducer(rule).map_err(refused)?;
        match lsp::Uri::from_file_path(&path).ok().filter(|_| self.capabilities.shows_documents) {
            Some(uri) => self.client.show_document(uri),
            None => self.client.show(lsp::MessageType::Info, format!("the reproducer is in {}", path.display())),
        }
        Ok(Some(json!({ "path": path })))
    }
}

/// Triton's verdict on a kernel that a rule has flagged, as a message.
fn verdict(code: &str, kernel: &str, said: &FrontEndOutcome) -> String {
    match said {
        FrontEndOutcome::Accepted { .. } => {
            format!("Triton accepts `{kernel}`: {code} is wrong and is no longer shown")
        }
        FrontEndOutcome::Refused { message, .. } => {
            let first = message.lines().next().unwrap_or_default();
            format!("Triton refuses `{kernel}` ({first}), so {code} stays")
        }
        FrontEndOutcome::Unknown(why) => format!("Triton gives no verdict on `{kernel}` ({why}), so {code} is kept"),
    }
}

fn unknown(code: &str) -> Error {
    refused(format!("there is no learned rule `{code}`; `warpsmith memory list` lists them"))
}

/// Writes the failing example and the one that compiles into a file.
fn reproducer(rule: &LearnedRule) -> std::result::Result<PathBuf, String> {
    let folder = cache_folder().join("reproducers");
    let path = folder.join(format!("{}.md", rule.code.to_ascii_lowercase()));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, rule.page()));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(path)
}
