//! Surveys of the resources that kernels take of a device. A kernel is compiled completely when its file is saved,
//! or on demand, while the compiler is otherwise idle.
//!
//! The command [`RESOURCES`] takes `{uri, kernel}` and shows the result in a message.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use compiler::protocol::LoweringReply;
use compiler::{CompileTarget, Survey};
use ide::resources as words;
use model::analysis::resources::{LaunchCertainty, Resources};
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};

use super::client::ClientCommand;
use super::compile::CompilerJob;
use super::optimize::{read, refused};
use super::owner::Owner;
use super::unit::Unit;

/// The command that compiles a kernel completely and shows its resources.
pub(super) const RESOURCES: &str = "warpsmith.resources";

/// Number of surveys that are cached, for edits that are undone.
const REMEMBERED: usize = 256;

/// The queue and the results of surveys.
#[derive(Default)]
pub(super) struct Surveys {
    waiting: VecDeque<Waiting>,
    /// Kernels that the user has asked about, by file and name.
    wanted: Vec<(lsp::Uri, String)>,
    known: HashMap<u64, Resources>,
}

struct Waiting {
    uri: lsp::Uri,
    kernel: String,
    /// A survey that was interrupted by a more urgent question.
    begun: Option<Box<Survey>>,
}

#[derive(Deserialize)]
struct Arguments {
    uri: lsp::Uri,
    kernel: String,
}

impl Surveys {
    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Clears the queue.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.wanted.clear();
    }

    /// Removes a file or notebook from the queue.
    pub(super) fn forget(&mut self, uri: &lsp::Uri) {
        self.waiting.retain(|waiting| waiting.uri != *uri);
        self.wanted.retain(|(of, _)| of != uri);
    }

    /// Puts an interrupted survey at the front.
    pub(super) fn put_back(&mut self, uri: lsp::Uri, survey: Box<Survey>) {
        let kernel = survey.kernel().to_owned();
        self.waiting.push_front(Waiting { uri, kernel, begun: Some(survey) });
    }

    fn add(&mut self, uri: &lsp::Uri, kernel: &str, first: bool) {
        if self.waiting.iter().any(|waiting| waiting.uri == *uri && waiting.kernel == kernel) {
            return;
        }
        let waiting = Waiting { uri: uri.clone(), kernel: kernel.to_owned(), begun: None };
        if first {
            self.waiting.push_front(waiting);
        } else {
            self.waiting.push_back(waiting);
        }
    }
}

impl Owner {
    /// The device that the kernels of a unit are compiled for: the one in the settings, else the GPU of this
    /// machine.
    pub(super) fn device_of(&mut self, unit: &Unit) -> Option<CompileTarget> {
        let set = crate::settings::device(&self.resolved(unit).settings.compiler);
        set.or_else(|| CompileTarget::of_capability(self.devices.as_ref()?.capability()?))
    }

    /// The device that the kernels of a unit are surveyed for; `None` when they are not surveyed.
    pub(super) fn surveyed_for(&mut self, unit: &Unit) -> Option<CompileTarget> {
        let is_wanted = self.trusted && self.resolved(unit).settings.compiler.enabled;
        self.device_of(unit).filter(|_| is_wanted)
    }

    /// Notes that a file or notebook was saved: its kernels are surveyed when the compiler is idle.
    pub(super) fn survey_later(&mut self, uri: &lsp::Uri) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(device) = self.surveyed_for(&unit) else { return };
        for kernel in unit.module.kernels.iter().filter(|kernel| words::is_reported(&unit.module, kernel)) {
            if Resources::of(kernel).is_none_or(|known| known.device != device.architecture()) {
                self.compile.surveys.add(&unit.uri, &kernel.name, false);
            }
        }
        self.compile_next();
    }

    /// Continues with the next survey.
    pub(super) fn survey_next(&mut self) {
        let Some(Waiting { uri, kernel: name, begun }) = self.compile.surveys.waiting.pop_front() else { return };
        let Some(unit) = self.documents.unit(&uri) else { return };
        let Some(kernel) = unit.module.kernel(&name) else { return };
        let Some(device) = self.surveyed_for(&unit) else { return };
        let Some(interpreter) = self.interpreter(&unit) else { return };
        let triton = interpreter.triton;
        self.serve(interpreter);
        match FrontEndVerdict::of(kernel).as_deref() {
            None => {
                self.compile.surveys.waiting.push_front(Waiting { uri: uri.clone(), kernel: name.clone(), begun });
                return self.compile.first(uri, name);
            }
            Some(FrontEndVerdict { outcome: FrontEndOutcome::Accepted { .. }, .. }) => {}
            Some(FrontEndVerdict {
                outcome: FrontEndOutcome::Refused { message, .. } | FrontEndOutcome::Unknown(message),
                ..
            }) => {
                return self.tell_wanted(&uri, &name, &format!("`{name}` was not compiled: {message}"));
            }
        }
        if let Some(survey) = begun.filter(|survey| *survey.device() == device) {
            return self.ask(uri, CompilerJob::Survey(survey));
        }
        match Survey::of(&unit.source, &unit.module, kernel, &device, triton) {
            Err(why) => self.tell_wanted(&uri, &name, &format!("`{name}` was not compiled: {why}")),
            Ok(survey) => match self.compile.surveys.known.get(&survey.key).cloned() {
                Some(resources) => {
                    drop(unit);
                    self.keep_resources(&uri, &name, resources);
                }
                None => self.ask(uri, CompilerJob::Survey(Box::new(survey))),
            },
        }
    }

    /// Handles an answer to a survey.
    pub(super) fn survey_answered(&mut self, uri: lsp::Uri, mut survey: Box<Survey>, answer: &LoweringReply) {
        let Some(unit) = self.documents.unit(&uri) else { return self.compile_next() };
        let name = survey.kernel().to_owned();
        let Some(kernel) = unit.module.kernel(&name) else { return self.compile_next() };
        if !survey.handle_reply(&unit.module, kernel, answer) {
            self.ask_further(uri, CompilerJob::Survey(survey));
            // Questions to the front end come first.
            return self.compile_next();
        }
        drop(unit);
        let (key, resources) = (survey.key, survey.resources());
        let known = &mut self.compile.surveys.known;
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, resources.clone());
        self.keep_resources(&uri, &name, resources);
        self.compile_next();
    }

    /// Stores the resources with a kernel and shows them.
    fn keep_resources(&mut self, uri: &lsp::Uri, name: &str, resources: Resources) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(kernel) = unit.module.kernel(name) else { return };
        let headline = words::headline(&resources);
        tracing::info!(headline, "`{name}` was compiled to the end");
        let is_found = resources
            .rows
            .iter()
            .any(|row| row.certainty == LaunchCertainty::Certain && resources.missing_resource(row).is_some());
        let text = words::message(name, &resources);
        resources.keep(kernel);
        drop(unit);
        if is_found {
            self.show_again(uri);
        }
        self.refresh_lenses();
        self.tell_wanted(uri, name, &text);
    }

    /// Shows the result of a survey that the user asked for.
    fn tell_wanted(&mut self, uri: &lsp::Uri, name: &str, text: &str) {
        let wanted = &mut self.compile.surveys.wanted;
        let before = wanted.len();
        wanted.retain(|(of, kernel)| of != uri || kernel != name);
        if wanted.len() < before {
            self.client.show(lsp::MessageType::Info, text);
        }
    }

    /// Asks the client to pull code lenses again.
    pub(super) fn refresh_lenses(&self) {
        if self.capabilities.refreshes_lenses {
            self.client.send(ClientCommand::RefreshLenses);
        }
    }

    /// Drops the resources on devices that are no longer the present ones.
    pub(super) fn forget_other_devices(&mut self) {
        for uri in self.documents.all() {
            let Some(unit) = self.documents.unit(&uri) else { continue };
            let device = self.device_of(&unit).map(|device| device.architecture());
            for kernel in &unit.module.kernels {
                if Resources::of(kernel).is_some_and(|known| Some(&known.device) != device.as_ref()) {
                    Resources::forget(kernel);
                }
            }
        }
        self.refresh_lenses();
    }

    /// Runs the command [`RESOURCES`]: shows the resources, after a survey if they are unknown.
    pub(super) fn resources_command(&mut self, argument: Value) -> Result<Option<Value>> {
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
        self.compile.surveys.wanted.push((uri.clone(), name.clone()));
        self.compile.surveys.add(&uri, &name, true);
        self.compile_next();
        Ok(None)
    }
}
