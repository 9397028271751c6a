//! The compiler tier: shortly after the last edit, it asks Triton's own front end about the kernels that changed.
//! The other stages of the compiler come after that (`survey.rs`).

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tower_lsp::gen_lsp_types as lsp;

use compiler::protocol::{LoweringReply, LoweringRequest};
use compiler::{
    CompileQuestion, PendingQuestion, ProcessOutput, QuestionResult, Service, ServiceEvent, ServiceStatus, Survey, said,
};
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::kernel::Kernel;
use rules::learned::is_learned;
use store::FalseAlarm;

use super::client::ClientCommand;
use super::event::{EventSender, ServerEvent};
use super::inspect::{Inspections, PendingInspection};
use super::interpreter::Interpreter;
use super::owner::Owner;
use super::survey::Surveys;

/// Number of verdicts that are cached, for edits that are undone.
const REMEMBERED: usize = 512;
/// Idle time before the tier asks, as long as no settings are known.
const DELAY: Duration = Duration::from_millis(300);

/// The state of the compiler tier: its verdicts, its queues and its process.
#[derive(Default)]
pub(super) struct Compile {
    pub(super) service: Option<Service>,
    /// The interpreter that the process runs.
    pub(super) of: Option<Interpreter>,
    timer: Option<Timer>,
    /// Files and notebooks that were edited since the last quiet moment.
    edited: Vec<lsp::Uri>,
    /// Kernels to ask about, by file and name.
    waiting: VecDeque<(lsp::Uri, String)>,
    /// Inspections that a request waits for. The verdicts of the front end come first.
    pub(super) inspections: Inspections,
    /// Surveys, which run when nothing else is to be asked.
    pub(super) surveys: Surveys,
    asked: Option<Asked>,
    last: u64,
    known: HashMap<u64, QuestionResult>,
    /// Idle time before the tier asks, from the settings of the file that was checked last.
    pub(super) delay: Option<Duration>,
}

struct Asked {
    id: u64,
    uri: lsp::Uri,
    what: CompilerJob,
}

/// The question that the process is working on.
pub(super) enum CompilerJob {
    /// Whether the front end accepts a kernel.
    Trial(Box<PendingQuestion>),
    /// The resources that a kernel takes on a device.
    Survey(Box<Survey>),
    /// The output of the compiler's stages for a kernel.
    Inspection(Box<PendingInspection>),
}

impl CompilerJob {
    fn request(&self, id: u64) -> Option<LoweringRequest> {
        match self {
            Self::Trial(trial) => trial.request(id),
            Self::Survey(survey) => survey.request(id),
            Self::Inspection(inspecting) => inspecting.request(id),
        }
    }
}

/// A debouncing timer: it sends an event when nothing has been edited for a while.
struct Timer(Sender<Duration>);

impl Timer {
    fn start(events: EventSender) -> std::io::Result<Self> {
        let (sender, changes) = channel::<Duration>();
        let wait = move || {
            while let Ok(delay) = changes.recv() {
                let mut until = Instant::now() + delay;
                loop {
                    match changes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                        Ok(delay) => until = Instant::now() + delay,
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
                if events.send(ServerEvent::Quiet).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("quiet".to_owned()).spawn(wait)?;
        Ok(Self(sender))
    }
}

impl Compile {
    /// Whether a question is being answered.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Clears the queues of questions.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.surveys.clear();
    }

    /// The interpreter that is unfit to compile, and the reason.
    pub(super) fn unfit(&self) -> Option<(PathBuf, String)> {
        let service = self.service.as_ref()?;
        let ServiceStatus::Unfit(reason) = service.status() else { return None };
        Some((service.python().to_owned(), reason.lines().next().unwrap_or_default().to_owned()))
    }

    /// Puts this kernel at the front of the queue.
    pub(super) fn first(&mut self, uri: lsp::Uri, kernel: String) {
        self.waiting.push_front((uri, kernel));
    }

    /// The Triton version of the interpreter that is asked.
    pub(super) fn triton(&self) -> String {
        match self.service.as_ref().map(Service::status) {
            Some(ServiceStatus::Ready { triton }) => triton.clone(),
            _ => String::new(),
        }
    }

    /// Puts the question under way back into its queue, unless it is for a verdict.
    fn pause(&mut self) {
        match self.asked.take() {
            Some(Asked { uri, what: CompilerJob::Survey(survey), .. }) => self.surveys.put_back(uri, survey),
            Some(Asked { uri, what: CompilerJob::Inspection(inspecting), .. }) => {
                self.inspections.push_front((uri, inspecting));
            }
            Some(Asked { what: CompilerJob::Trial(_), .. }) | None => {}
        }
    }

    /// Answers the waiting inspections of an interpreter with the reason why it cannot be asked.
    fn refuse_inspections(&mut self, python: &Path, reason: &str) {
        let (gone, left) = std::mem::take(&mut self.inspections).into_iter().partition(|(_, it)| it.python() == python);
        self.inspections = left;
        let gone: Inspections = gone;
        for (_, inspecting) in gone {
            inspecting.refuse(format!("{} cannot be asked ({reason})", python.display()));
        }
    }

    /// Whether a question waits in a queue.
    fn has_more(&self) -> bool {
        !(self.waiting.is_empty() && self.inspections.is_empty() && self.surveys.is_empty())
    }
}

impl Owner {
    /// Notes that a file or notebook was edited: the question under way is about an older text.
    pub(super) fn compile_later(&mut self, uri: &lsp::Uri) {
        if !self.trusted {
            return;
        }
        let compile = &mut self.compile;
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
        if self.compile.timer.is_none() {
            match Timer::start(self.events.clone()) {
                Ok(timer) => self.compile.timer = Some(timer),
                Err(error) => tracing::warn!(%error, "kernels are not compiled in the background"),
            }
        }
        if let Some(timer) = &self.compile.timer {
            // The last known delay, since reading the settings would cost more than an edit may.
            let _ = timer.0.send(self.compile.delay.unwrap_or(DELAY));
        }
    }

    /// Notes that a file was saved: where it may be imported, kernels without a verdict are asked about again.
    pub(super) fn import_later(&mut self, uri: &lsp::Uri) {
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
    pub(super) fn on_idle(&mut self) {
        self.look_for_interpreters_sometimes();
        for uri in std::mem::take(&mut self.compile.edited) {
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
                self.compile.waiting.extend(names);
            }
        }
        self.compile_next();
    }

    /// Asks about the next kernel, unless a question is being answered. One kernel at a time, because edits come
    /// first.
    pub(super) fn compile_next(&mut self) {
        let compile = &mut self.compile;
        match &compile.asked {
            Some(Asked { what: CompilerJob::Trial(_), .. }) => return,
            Some(Asked { what: CompilerJob::Inspection(_), .. }) if compile.waiting.is_empty() => return,
            Some(_) if compile.waiting.is_empty() && compile.inspections.is_empty() => return,
            Some(_) => compile.pause(),
            None => {}
        }
        if let Some((uri, name)) = self.compile.waiting.pop_front() {
            self.compile(uri, &name);
        } else if self.compile.edited.is_empty() {
            if !self.inspect_next() {
                self.survey_next();
            }
        } else {
            return;
        }
        if self.compile.asked.is_none() && self.compile.has_more() {
            // The owner holds this channel's other end.
            let _ = self.events.send(ServerEvent::CompileNext);
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
            Ok(question) => match self.compile.known.get(&question.key).cloned() {
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
    pub(super) fn serve(&mut self, interpreter: Interpreter) {
        if self.compile.service.is_some() && self.compile.of.as_ref() == Some(&interpreter) {
            return;
        }
        let events = self.events.clone();
        let ears = Arc::new(move |number, heard| drop(events.send(ServerEvent::Compiler(number, heard))));
        // The former process is killed with its service.
        self.compile.service = Some(Service::new(interpreter.python.clone(), ears).with_cores(interpreter.cores));
        self.compile.of = Some(interpreter);
        self.compile.known.clear();
        self.interpreters.unfit = None;
    }

    /// Sends a question to the present process.
    pub(super) fn ask(&mut self, uri: lsp::Uri, what: CompilerJob) {
        self.ask_further(uri, what);
        self.tell_if_unfit();
    }

    /// Sends the next question of the same work to the process.
    pub(super) fn ask_further(&mut self, uri: lsp::Uri, what: CompilerJob) {
        self.compile.last += 1;
        let id = self.compile.last;
        if let (Some(request), Some(service)) = (what.request(id), &mut self.compile.service) {
            service.ask([request]);
            self.compile.asked = Some(Asked { id, uri, what });
        }
    }

    /// Handles an answer or the end of the compiler's process.
    pub(super) fn handle_compiler_output(&mut self, number: u64, heard: ProcessOutput) {
        let Some(service) = &mut self.compile.service else { return };
        match service.handle_output(number, heard) {
            ServiceEvent::Answered(answer) => self.answered(*answer),
            ServiceEvent::Pause(pause) => {
                let events = self.events.clone();
                let wait = move || {
                    std::thread::sleep(pause);
                    let _ = events.send(ServerEvent::ReviveCompiler);
                };
                if let Err(error) = std::thread::Builder::new().name("pause".to_owned()).spawn(wait) {
                    tracing::warn!(%error, "the compiler's process is not started again");
                }
            }
            ServiceEvent::Status => self.tell_if_unfit(),
            ServiceEvent::Nothing => {}
        }
    }

    /// Starts the compiler's process again.
    pub(super) fn revive_compiler(&mut self) {
        if let Some(service) = &mut self.compile.service {
            service.revive();
        }
        self.tell_if_unfit();
    }

    fn answered(&mut self, answer: LoweringReply) {
        let Some(Asked { uri, what, .. }) = self.compile.asked.take_if(|asked| asked.id == answer.id) else { return };
        let mut trial = match what {
            CompilerJob::Trial(trial) => trial,
            CompilerJob::Survey(survey) => return self.survey_answered(uri, survey, &answer),
            CompilerJob::Inspection(inspecting) => return self.inspection_answered(uri, inspecting, answer),
        };
        if let Some(settled) = trial.handle_reply(answer) {
            if self.compile.known.len() >= REMEMBERED {
                self.compile.known.clear();
            }
            // An unknown result may become known: the process was killed, or an imported file was not saved yet.
            if !matches!(settled, QuestionResult::Unknown(_)) {
                self.compile.known.insert(trial.question.key, settled.clone());
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
        let triton = self.compile.of.as_ref().map(|of| of.triton.to_string()).unwrap_or_default();
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
            self.client.send(ClientCommand::RefreshHints);
        }
        if has_lens {
            self.refresh_lenses();
        }
    }

    /// Tells the user once when the interpreter in use turns out to be unfit.
    fn tell_if_unfit(&mut self) {
        let Some((python, first)) = self.compile.unfit() else { return };
        let why = format!("{} cannot be asked ({first})", python.display());
        self.compile.pause();
        self.compile.refuse_inspections(&python, &first);
        self.compile.clear();
        if self.interpreters.unfit.is_none() {
            self.note_unfit(&python);
        }
        self.tell_unfit(Some(python), &why);
    }
}
