//! Surveys of the resources that kernels take of a device. A kernel is compiled completely when its file is saved,
//! or on demand, while the compiler is otherwise idle.

use tower_lsp::gen_lsp_types as lsp;

use compiler::protocol::LoweringReply;
use compiler::{CompileTarget, Survey};
use ide::resources as words;
use model::analysis::resources::{LaunchCertainty, Resources};
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};

use super::compiler_queue::CompilerJob;
use super::owner::Owner;
use super::survey_queue::WaitingSurvey;
use super::unit::Unit;

impl Owner {
    /// The device that the kernels of a unit are compiled for: the one in the settings, else the GPU of this
    /// machine.
    pub(crate) fn device_of(&mut self, unit: &Unit) -> Option<CompileTarget> {
        let set = crate::settings::device(&self.resolved(unit).settings.compiler);
        set.or_else(|| CompileTarget::of_capability(self.devices.as_ref()?.capability()?))
    }

    /// The device that the kernels of a unit are surveyed for; `None` when they are not surveyed.
    pub(crate) fn surveyed_for(&mut self, unit: &Unit) -> Option<CompileTarget> {
        let is_wanted = self.trusted && self.resolved(unit).settings.compiler.enabled;
        self.device_of(unit).filter(|_| is_wanted)
    }

    /// Notes that a file or notebook was saved: its kernels are surveyed when the compiler is idle.
    pub(crate) fn survey_later(&mut self, uri: &lsp::Uri) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(device) = self.surveyed_for(&unit) else { return };
        for kernel in unit.module.kernels.iter().filter(|kernel| words::is_reported(&unit.module, kernel)) {
            if Resources::of(kernel).is_none_or(|known| known.device != device.architecture()) {
                self.compiler.surveys.add(&unit.uri, &kernel.name, false);
            }
        }
        self.compile_next();
    }

    /// Continues with the next survey.
    pub(crate) fn survey_next(&mut self) {
        let Some(WaitingSurvey { uri, kernel: name, begun }) = self.compiler.surveys.waiting.pop_front() else {
            return;
        };
        let Some(unit) = self.documents.unit(&uri) else { return };
        let Some(kernel) = unit.module.kernel(&name) else { return };
        let Some(device) = self.surveyed_for(&unit) else { return };
        let Some(interpreter) = self.interpreter(&unit) else { return };
        let triton = interpreter.triton;
        self.serve(interpreter);
        match FrontEndVerdict::of(kernel).as_deref() {
            None => {
                self.compiler.surveys.waiting.push_front(WaitingSurvey {
                    uri: uri.clone(),
                    kernel: name.clone(),
                    begun,
                });
                return self.compiler.first(uri, name);
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
            Ok(survey) => match self.compiler.surveys.known.get(&survey.key) {
                Some(resources) => {
                    drop(unit);
                    self.keep_resources(&uri, &name, resources);
                }
                None => self.ask(uri, CompilerJob::Survey(Box::new(survey))),
            },
        }
    }

    /// Handles an answer to a survey.
    pub(crate) fn survey_answered(&mut self, uri: lsp::Uri, mut survey: Box<Survey>, answer: &LoweringReply) {
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
        self.compiler.surveys.known.insert(key, resources.clone());
        self.keep_resources(&uri, &name, resources);
        self.compile_next();
    }

    /// Stores the resources with a kernel and shows them.
    fn keep_resources(&mut self, uri: &lsp::Uri, name: &str, resources: Resources) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(kernel) = unit.module.kernel(name) else { return };
        let headline = words::headline(&resources);
        tracing::info!(headline, "`{name}` was compiled completely");
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
        let wanted = &mut self.compiler.surveys.wanted;
        let before = wanted.len();
        wanted.retain(|(of, kernel)| of != uri || kernel != name);
        if wanted.len() < before {
            self.client.show(lsp::MessageType::Info, text);
        }
    }

    /// Drops the resources on devices that are no longer the present ones.
    pub(crate) fn forget_other_devices(&mut self) {
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
}
