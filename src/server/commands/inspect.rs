//! Opens the output of Triton's compiler for a kernel beside the kernel.
//!
//! The command [`INSPECT`] takes `{uri, kernel, stage}`, or `{uri, position, stage}` for the kernel at a place, and
//! optionally `config`, the index of one of the ways to run the kernel. The answer, `{path}`, comes when the text
//! has been written; clients that open documents for the server open it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use compiler::protocol::LoweringReply;
use compiler::{CompilerStage, Inspection, Listing, StageSelection};
use runtime::python::cache_folder;

use crate::server::action_request::ActionRequest;
use crate::server::compiler_queue::CompilerJob;
use crate::server::interpreters::Interpreter;
use crate::server::owner::Owner;
use crate::server::pending_inspection::PendingInspection;
use crate::server::reply::{ReplySender, answer, read, refused};

/// The command that opens the compiler's output for a kernel.
pub(crate) const INSPECT: &str = "warpsmith.inspect";

#[derive(Deserialize)]
struct Arguments {
    uri: lsp::Uri,
    kernel: Option<String>,
    position: Option<lsp::Position>,
    stage: String,
    config: Option<usize>,
}

/// The kind of the actions. It is not one of LSP's, since those are not for actions that only show something.
pub(crate) fn kind() -> lsp::CodeActionKind {
    INSPECT.to_owned().into()
}

impl Owner {
    /// The actions that open the stages of the kernel whose `def` is on the line of the place.
    pub(crate) fn inspect_actions(&mut self, place: &ActionRequest<'_>) -> Vec<lsp::CodeAction> {
        let unit = place.unit;
        let resolved = self.resolved(unit);
        let has_triton = resolved.environment.as_ref().is_some_and(|environment| environment.triton.is_some());
        let Some(kernel) = place.kernel() else { return Vec::new() };
        let head = unit.locate(kernel.name_span, place.encoding).filter(|(part, _)| part.uri == *place.uri);
        let is_here = head.is_some_and(|(_, head)| {
            head.start.line >= place.range.start.line && head.start.line <= place.range.end.line
        });
        if !(is_here && has_triton && self.trusted && resolved.settings.compiler.enabled) || unit.is_notebook {
            return Vec::new();
        }
        let device = self.device_of(unit).unwrap_or_default();
        let stages = [CompilerStage::Ttgir, CompilerStage::Ptx, CompilerStage::Sass, CompilerStage::Amdgcn];
        let action = |stage: CompilerStage| {
            let title = format!("Show {}", stage.name().to_uppercase());
            let argument = json!({ "uri": unit.uri, "kernel": kernel.name, "stage": stage.name() });
            let command = lsp::Command {
                title: title.clone(),
                command: INSPECT.to_owned(),
                arguments: Some(vec![argument]),
                tooltip: None,
            };
            lsp::CodeAction { title, kind: Some(kind()), command: Some(command), ..lsp::CodeAction::default() }
        };
        stages.into_iter().filter(|stage| stage.is_of(&device)).map(action).collect()
    }

    /// Runs the command [`INSPECT`]; the answer comes when the compiler has finished.
    pub(crate) fn inspect(&mut self, argument: Value, reply: ReplySender<Option<Value>>) {
        match self.inspection(argument) {
            Ok((uri, inspection, interpreter, to)) => {
                let inspecting = PendingInspection { inspection, interpreter, to, reply };
                self.compiler.inspections.push_back((uri, Box::new(inspecting)));
                self.compile_next();
            }
            Err(error) => answer(reply, || Err(error)),
        }
    }

    /// Resolves the command's argument: the file, the question, the interpreter, and the path for the text.
    fn inspection(&mut self, argument: Value) -> Result<(lsp::Uri, Inspection, Interpreter, PathBuf)> {
        let Arguments { uri, kernel, position, stage, config } = read(argument)?;
        let unit = self.documents.unit(&uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let at = position.and_then(|at| unit.span(&uri, lsp::Range { start: at, end: at }, self.encoding));
        let found = match (&kernel, at) {
            (Some(name), _) => unit.module.kernel(name).ok_or_else(|| format!("there is no kernel `{name}`")),
            (None, at) => {
                let here = unit.module.kernels.iter().find(|kernel| at.is_some_and(|at| kernel.span.contains(at)));
                here.ok_or_else(|| "there is no kernel here".to_owned())
            }
        };
        let kernel = found.map_err(refused)?;
        let stage = CompilerStage::parse(&stage).ok_or_else(|| refused(format!("there is no stage `{stage}`")))?;
        self.may_compile(&unit)?;
        if unit.is_notebook {
            return Err(refused("kernels in notebooks cannot be inspected; move it to a Python file".to_owned()));
        }
        let path = unit.path.clone().ok_or_else(|| refused("save the file first".to_owned()))?;
        let interpreter = self.interpreter_to_ask(&unit)?;
        let device = self.device_of(&unit).unwrap_or_default();
        let wanted = StageSelection { stage, config, device, triton: interpreter.triton };
        let inspection = Inspection::new(&unit.source, &unit.module, kernel, &path, &wanted);
        let inspection = inspection.map_err(|failure| refused(failure.to_string()))?;
        let folder = &blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..16];
        let number = config.map_or_else(String::new, |number| format!("-{number}"));
        let to = cache_folder().join("inspect").join(folder).join(format!("{}{number}.{}", kernel.name, stage.name()));
        Ok((unit.uri.clone(), inspection, interpreter, to))
    }

    /// Continues with the next inspection. Returns whether there is one.
    pub(crate) fn inspect_next(&mut self) -> bool {
        let Some((uri, inspecting)) = self.compiler.inspections.pop_front() else { return false };
        if !inspecting.reply.is_closed() {
            self.serve(inspecting.interpreter.clone());
            self.ask(uri, CompilerJob::Inspection(inspecting));
        }
        true
    }

    /// Handles an answer to an inspection.
    pub(crate) fn inspection_answered(
        &mut self,
        uri: lsp::Uri,
        mut inspecting: Box<PendingInspection>,
        answer: LoweringReply,
    ) {
        let triton = self.compiler.triton();
        match inspecting.inspection.handle_reply(answer, &triton) {
            None => self.ask_further(uri, CompilerJob::Inspection(inspecting)),
            Some(Ok(listing)) => self.open(listing, *inspecting),
            Some(Err(failure)) => inspecting.refuse(failure.to_string()),
        }
        self.compile_next();
    }

    /// Writes a text and asks the client to open it; on a thread of its own, because the text may be long.
    fn open(&self, listing: Listing, inspecting: PendingInspection) {
        let (client, can_open) = (self.client.clone(), self.capabilities.shows_documents);
        let work = move || {
            let to = inspecting.to.clone();
            let folder = to.parent().unwrap_or(Path::new("/"));
            let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&to, listing.whole()));
            if let Err(error) = written {
                return inspecting.refuse(format!("{} cannot be written: {error}", to.display()));
            }
            match lsp::Uri::from_file_path(&to).ok().filter(|_| can_open) {
                Some(uri) => client.show_document(uri),
                None => client.show(lsp::MessageType::Info, format!("{} is in {}", listing.notes[0], to.display())),
            }
            answer(inspecting.reply, || Ok(Some(json!({ "path": to }))));
        };
        if let Err(error) = std::thread::Builder::new().name("inspect".to_owned()).spawn(work) {
            tracing::warn!(%error, "the compiler's output cannot be shown");
        }
    }
}
