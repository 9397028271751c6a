//! The compiler tier: shortly after the last edit, it asks Triton's own front end about the kernels that changed.
//! The other stages of the compiler come after that (`survey.rs`).

use std::sync::Arc;
use std::time::Duration;

use tower_lsp::gen_lsp_types as lsp;

use compiler::protocol::LoweringReply;
use compiler::{CompileQuestion, PendingQuestion, ProcessOutput, QuestionResult, Service, ServiceEvent, said};
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::kernel::Kernel;
use rules::learned::is_learned;
use store::FalseAlarm;

use super::compiler_queue::{Asked, CompilerJob};
use super::idle_timer::IdleTimer;
use super::interpreters::Interpreter;
use super::owner::Owner;

/// Idle time before the tier asks, as long as no settings are known.
const DELAY: Duration = Duration::from_millis(300);

impl Owner {
    /// Notes that a file or notebook was edited: the question under way is about an older text.
    pub(crate) fn compile_later(&mut self, uri: &lsp::Uri) {
        if !self.trusted {
            return;
        }
        self.quiet_learning.disturb();
        let compile = &mut self.compiler;
        if !compile.edited.contains(uri) {
            compile.edited.push(uri.clone());
        }
        compile.waiting.retain(|(of, _)| of != uri);
        compile.surveys.forget(uri);
        if compile.asked.as_ref().is_some_and(|asked| asked.uri == *uri) {
            // An inspection is about the text at the time of the request, so it stays.
            compile.asked.take_if(|asked| matches!(asked.what, CompilerJob::Survey(_)));
            compile.pause();
            if let Some(service) = &mut compile.service {
                service.ask([]);
            }
        }
        if self.compiler.timer.is_none() {
            let events = self.events.clone();
            match IdleTimer::start(move || events.run(Owner::on_idle)) {
                Ok(timer) => self.compiler.timer = Some(timer),
                Err(error) => tracing::warn!(%error, "kernels are not compiled in the background"),
            }
        }
        if let Some(timer) = &self.compiler.timer {
            // The last known delay, since reading the settings would cost more than an edit may.
            timer.restart(self.compiler.delay.unwrap_or(DELAY));
        }
    }

    /// Notes that a file was saved: where it may be imported, kernels without a verdict are asked about again.
    pub(crate) fn import_later(&mut self, uri: &lsp::Uri) {
        let Some(unit) = self.documents.unit(uri) else { return };
        if !self.resolved(&unit).settings.compiler.import_files {
            return;
        }
        let is_open = |kernel: &&Kernel| {
            FrontEndVerdict::of(kernel).is_some_and(|said| matches!(said.outcome, FrontEndOutcome::Unknown(_)))
        };
        if unit.module.kernels.iter().filter(is_open).filter(|kernel| FrontEndVerdict::forget(kernel)).count() > 0 {
            self.compile_later(uri);
        }
    }

    /// Handles the end of the idle time: asks about the kernels without a verdict.
    fn on_idle(&mut self) {
        self.look_for_interpreters_sometimes();
        for uri in std::mem::take(&mut self.compiler.edited) {
            let Some(unit) = self.documents.unit(&uri).filter(|unit| !unit.module.kernels.is_empty()) else { continue };
            if !self.resolved(&unit).settings.compiler.enabled {
                self.forget_verdicts_of_others(unit, None);
                continue;
            }
            let interpreter = self.interpreter(&unit);
            if let Some((python, why)) = self.interpreters.missing.clone() {
                self.tell_unfit(python, &why);
            }
            let is_fit = interpreter.is_some();
            self.forget_verdicts_of_others(unit, interpreter.as_ref());
            if let Some(unit) = self.documents.unit(&uri).filter(|_| is_fit) {
                let open = unit.module.kernels.iter().filter(|kernel| FrontEndVerdict::of(kernel).is_none());
                let names = open.map(|kernel| (unit.uri.clone(), kernel.name.clone()));
                self.compiler.waiting.extend(names);
            }
        }
        self.compile_next();
    }

    /// Asks about the next kernel, unless a question is being answered. One kernel at a time, because edits come
    /// first.
    pub(crate) fn compile_next(&mut self) {
        let compile = &mut self.compiler;
        match &compile.asked {
            Some(Asked { what: CompilerJob::Trial(_), .. }) => return,
            Some(Asked { what: CompilerJob::Inspection(_), .. }) if compile.waiting.is_empty() => return,
            Some(_) if compile.waiting.is_empty() && compile.inspections.is_empty() => return,
            Some(_) => compile.pause(),
            None => {}
        }
        if let Some((uri, name)) = self.compiler.waiting.pop_front() {
            self.compile(uri, &name);
        } else if self.compiler.edited.is_empty() {
            if !self.inspect_next() {
                self.survey_next();
            }
        } else {
            return;
        }
        if self.compiler.asked.is_none() && self.compiler.has_more() {
            self.events.run(Owner::compile_next);
        }
    }

    fn compile(&mut self, uri: lsp::Uri, name: &str) {
        let Some(unit) = self.documents.unit(&uri) else { return };
        let Some(kernel) = unit.module.kernel(name).filter(|kernel| FrontEndVerdict::of(kernel).is_none()) else {
            return;
        };
        let Some(interpreter) = self.interpreter(&unit) else { return };
        self.serve(interpreter);
        let resolved = self.resolved(&unit);
        let device = crate::settings::device(&resolved.settings.compiler).unwrap_or_default();
        let mut question = CompileQuestion::of(&unit.source, &unit.module, kernel, &device);
        if let Some(path) =
            unit.path.as_deref().filter(|_| resolved.settings.compiler.import_files && !unit.is_notebook)
        {
            question = CompileQuestion::or_of_file(question, (&unit.source, &unit.module, kernel), &device, path);
        }
        match question {
            Err(why) => {
                tracing::info!(why, "Triton cannot be asked about `{name}`");
                FrontEndVerdict::new(kernel, FrontEndOutcome::Unknown(why)).keep(kernel);
            }
            Ok(question) => match self.compiler.known.get(&question.key) {
                Some(settled) => {
                    drop(unit);
                    let guess = question.guesses.first().filter(|_| question.guesses.len() == 1);
                    self.learn(&uri, &question, guess, &settled);
                    self.settle(&uri, &question, settled);
                }
                None => self.ask(uri, CompilerJob::Trial(Box::new(PendingQuestion::new(question)))),
            },
        }
    }

    /// Uses this interpreter from now on.
    pub(crate) fn serve(&mut self, interpreter: Interpreter) {
        if self.compiler.service.is_some() && self.compiler.of.as_ref() == Some(&interpreter) {
            return;
        }
        let events = self.events.clone();
        let heard = Arc::new(move |number, output| {
            events.run(move |owner| owner.handle_compiler_output(number, output));
        });
        // The former process is killed with its service.
        self.compiler.service = Some(Service::new(interpreter.python.clone(), heard).with_cores(interpreter.cores));
        self.compiler.of = Some(interpreter);
        self.compiler.known.clear();
        self.interpreters.unfit = None;
    }

    /// Sends a question to the present process.
    pub(crate) fn ask(&mut self, uri: lsp::Uri, what: CompilerJob) {
        self.ask_further(uri, what);
        self.tell_if_unfit();
    }

    /// Sends the next question of the same work to the process.
    pub(crate) fn ask_further(&mut self, uri: lsp::Uri, what: CompilerJob) {
        self.compiler.last += 1;
        let id = self.compiler.last;
        if let (Some(request), Some(service)) = (what.request(id), &mut self.compiler.service) {
            service.ask([request]);
            self.compiler.asked = Some(Asked { uri, what });
        }
    }

    /// Handles an answer or the end of the compiler's process.
    fn handle_compiler_output(&mut self, number: u64, output: ProcessOutput) {
        let Some(service) = &mut self.compiler.service else { return };
        match service.handle_output(number, output) {
            ServiceEvent::Answered(answer) => self.answered(*answer),
            ServiceEvent::Pause(pause) => {
                let events = self.events.clone();
                let wait = move || {
                    std::thread::sleep(pause);
                    events.run(Owner::revive_compiler);
                };
                if let Err(error) = std::thread::Builder::new().name("pause".to_owned()).spawn(wait) {
                    tracing::warn!(%error, "the compiler process cannot be restarted");
                }
            }
            ServiceEvent::Status => self.tell_if_unfit(),
            ServiceEvent::Nothing => {}
        }
    }

    /// Starts the compiler's process again.
    fn revive_compiler(&mut self) {
        if let Some(service) = &mut self.compiler.service {
            service.revive();
        }
        self.tell_if_unfit();
    }

    fn answered(&mut self, answer: LoweringReply) {
        let Some(Asked { uri, what }) = self.compiler.asked.take() else { return };
        let mut trial = match what {
            CompilerJob::Trial(trial) => trial,
            CompilerJob::Survey(survey) => return self.survey_answered(uri, survey, &answer),
            CompilerJob::Inspection(inspecting) => return self.inspection_answered(uri, inspecting, answer),
        };
        if let Some(settled) = trial.handle_reply(answer) {
            // An unknown result may become known: the process was killed, or an imported file was not saved yet.
            if !matches!(settled, QuestionResult::Unknown(_)) {
                self.compiler.known.insert(trial.question.key, settled.clone());
            }
            self.learn(&uri, &trial.question, trial.guess(), &settled);
            self.settle(&uri, &trial.question, settled);
            return self.compile_next();
        }
        self.ask_further(uri, CompilerJob::Trial(trial));
    }

    /// Stores a verdict with its kernel and updates what the editor shows.
    fn settle(&mut self, uri: &lsp::Uri, question: &CompileQuestion, settled: QuestionResult) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(kernel) = unit.module.kernel(&question.kernel) else { return };
        let said = said(&unit.source, &unit.module, kernel, question, settled);
        let verdict = match &said {
            FrontEndOutcome::Accepted { .. } => "accepted",
            FrontEndOutcome::Refused { message, .. } => message.as_str(),
            FrontEndOutcome::Unknown(why) => why.as_str(),
        };
        tracing::info!(verdict, "Triton was asked about `{}`", kernel.name);
        let (is_shown, has_types) = match &said {
            FrontEndOutcome::Refused { .. } => (true, false),
            FrontEndOutcome::Accepted { types, .. } => (false, !types.is_empty()),
            FrontEndOutcome::Unknown(_) => (false, false),
        };
        // A kernel that compiles can be surveyed.
        let has_lens = matches!(said, FrontEndOutcome::Accepted { .. }) && self.surveyed_for(&unit).is_some();
        self.answer_disputes(uri, &kernel.name, &said);
        FrontEndVerdict::new(kernel, said).keep(kernel);
        let disproved = unit.findings().iter().filter(|finding| rules::is_disproved(&unit.module, finding));
        // Learned rules have been demoted by now.
        let disproved = disproved.filter(|finding| !is_learned(finding.code));
        let triton = self.compiler.of.as_ref().map(|of| of.triton.to_string()).unwrap_or_default();
        let text = unit.source.slice(kernel.span);
        let disproved: Vec<FalseAlarm> =
            disproved.map(|finding| FalseAlarm::new(finding.code, &finding.message, text, &triton)).collect();
        for alarm in &disproved {
            let (rule, message) = (&alarm.rule, &alarm.message);
            tracing::warn!(rule, message, "Triton compiles what a rule calls an error: please report this false alarm");
            (self.tools.store_false_alarm)(alarm.clone());
        }
        drop(unit);
        if is_shown || !disproved.is_empty() {
            self.show_again(uri);
        }
        if has_types && self.capabilities.refreshes_hints {
            self.client.refresh_hints();
        }
        if has_lens {
            self.refresh_lenses();
        }
    }

    /// Tells the user once when the interpreter in use turns out to be unfit.
    fn tell_if_unfit(&mut self) {
        let Some((python, first)) = self.compiler.unfit() else { return };
        let why = format!("Triton cannot be used in {} ({first})", python.display());
        self.compiler.pause();
        self.compiler.refuse_inspections(&python, &first);
        self.compiler.clear();
        if self.interpreters.unfit.is_none() {
            self.note_unfit(&python);
        }
        self.tell_unfit(Some(python), &why);
    }
}
