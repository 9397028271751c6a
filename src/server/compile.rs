//! The compiler tier: a moment after the last edit, Triton's own front end is asked about the kernels that changed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tower_lsp::gen_lsp_types as lsp;

use super::client::Call;
use super::event::{Event, Events};
use super::interpreter::Interpreter;
use super::owner::Owner;
use crate::analysis::verdict::{Outcome as Said, Verdict};
use crate::compiler::{Device, FalseAlarm, Heard, Outcome, Question, Service, Settled, Status, Trial, said};
use crate::rules;

/// Verdicts that are remembered, for edits that are taken back.
const REMEMBERED: usize = 512;
/// How long it must be quiet as long as no settings are known.
const DELAY: Duration = Duration::from_millis(300);

/// What the tier knows and has to do.
#[derive(Default)]
pub(super) struct Compile {
    pub(super) service: Option<Service>,
    /// Whose that is.
    of: Option<Interpreter>,
    timer: Option<Timer>,
    /// Files and notebooks that were edited since the last quiet moment.
    edited: Vec<lsp::Uri>,
    /// Kernels to ask about, by file and name.
    waiting: VecDeque<(lsp::Uri, String)>,
    asked: Option<Asked>,
    last: u64,
    known: HashMap<u64, Settled>,
    /// How long it must be quiet, as the settings of the file that was checked last say.
    pub(super) delay: Option<Duration>,
}

struct Asked {
    id: u64,
    uri: lsp::Uri,
    trial: Trial,
}

/// Says when nothing has happened for a while.
struct Timer(Sender<Duration>);

impl Timer {
    fn start(events: Events) -> std::io::Result<Self> {
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
                if events.send(Event::Quiet).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("quiet".to_owned()).spawn(wait)?;
        Ok(Self(sender))
    }
}

impl Owner {
    /// Notes that a file or notebook was edited: what was asked is of an older text.
    pub(super) fn compile_later(&mut self, uri: &lsp::Uri) {
        if !self.trusted {
            return;
        }
        let compile = &mut self.compile;
        if !compile.edited.contains(uri) {
            compile.edited.push(uri.clone());
        }
        compile.waiting.retain(|(of, _)| of != uri);
        if compile.asked.as_ref().is_some_and(|asked| asked.uri == *uri) {
            compile.asked = None;
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
            // Not what the settings say now: to ask for them costs more than an edit may.
            let _ = timer.0.send(self.compile.delay.unwrap_or(DELAY));
        }
    }

    /// Nothing has been edited for a while: asks about what has no verdict.
    pub(super) fn quiet(&mut self) {
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
                let open = unit.module.kernels.iter().filter(|kernel| Verdict::of(kernel).is_none());
                let names = open.map(|kernel| (unit.uri.clone(), kernel.name.clone()));
                self.compile.waiting.extend(names);
            }
        }
        self.compile_next();
    }

    /// Asks about the next kernel, unless something is being asked. One kernel at a time: edits come first.
    pub(super) fn compile_next(&mut self) {
        if self.compile.asked.is_some() {
            return;
        }
        let Some((uri, name)) = self.compile.waiting.pop_front() else { return };
        self.compile(uri, &name);
        if self.compile.asked.is_none() && !self.compile.waiting.is_empty() {
            // The owner has this channel's other end.
            let _ = self.events.send(Event::CompileNext);
        }
    }

    fn compile(&mut self, uri: lsp::Uri, name: &str) {
        let Some(unit) = self.documents.unit(&uri) else { return };
        let Some(kernel) = unit.module.kernel(name).filter(|kernel| Verdict::of(kernel).is_none()) else { return };
        let Some(interpreter) = self.interpreter(&unit) else { return };
        self.serve(interpreter);
        match Question::of(&unit.source, &unit.module, kernel, &Device::default()) {
            Err(why) => {
                tracing::info!(why, "Triton cannot be asked about `{name}`");
                Verdict::new(kernel, Said::Unknown(why)).keep(kernel);
            }
            Ok(question) => match self.compile.known.get(&question.key).cloned() {
                Some(settled) => {
                    drop(unit);
                    self.settle(&uri, &question, settled);
                }
                None => self.ask(uri, Trial::new(question)),
            },
        }
    }

    /// Has this interpreter asked from now on.
    fn serve(&mut self, interpreter: Interpreter) {
        if self.compile.service.is_some() && self.compile.of.as_ref() == Some(&interpreter) {
            return;
        }
        let events = self.events.clone();
        let ears = Arc::new(move |number, heard| drop(events.send(Event::Compiler(number, heard))));
        // The former process is killed with its service.
        self.compile.service = Some(Service::new(interpreter.python.clone(), ears).with_cores(interpreter.cores));
        self.compile.of = Some(interpreter);
        self.compile.known.clear();
        self.interpreters.unfit = None;
    }

    fn ask(&mut self, uri: lsp::Uri, trial: Trial) {
        self.compile.last += 1;
        let id = self.compile.last;
        let Some(request) = trial.request(id) else { return };
        self.compile.asked = Some(Asked { id, uri, trial });
        if let Some(service) = &mut self.compile.service {
            service.ask([request]);
        }
        self.tell_if_unfit();
    }

    /// Takes in what was heard of the compiler's process.
    pub(super) fn hear_compiler(&mut self, number: u64, heard: Heard) {
        let Some(service) = &mut self.compile.service else { return };
        match service.hear(number, heard) {
            Outcome::Answered(answer) => self.answered(*answer),
            Outcome::Pause(pause) => {
                let events = self.events.clone();
                let wait = move || {
                    std::thread::sleep(pause);
                    let _ = events.send(Event::ReviveCompiler);
                };
                if let Err(error) = std::thread::Builder::new().name("pause".to_owned()).spawn(wait) {
                    tracing::warn!(%error, "the compiler's process is not started again");
                }
            }
            Outcome::Status => self.tell_if_unfit(),
            Outcome::Nothing => {}
        }
    }

    /// Starts the compiler's process again.
    pub(super) fn revive_compiler(&mut self) {
        if let Some(service) = &mut self.compile.service {
            service.revive();
        }
        self.tell_if_unfit();
    }

    fn answered(&mut self, answer: crate::compiler::protocol::Answer) {
        let Some(mut asked) = self.compile.asked.take_if(|asked| asked.id == answer.id) else { return };
        if let Some(settled) = asked.trial.hear(answer) {
            if self.compile.known.len() >= REMEMBERED {
                self.compile.known.clear();
            }
            self.compile.known.insert(asked.trial.question.key, settled.clone());
            let uri = asked.uri.clone();
            self.settle(&uri, &asked.trial.question, settled);
            return self.compile_next();
        }
        self.compile.last += 1;
        asked.id = self.compile.last;
        if let (Some(request), Some(service)) = (asked.trial.request(asked.id), &mut self.compile.service) {
            service.ask([request]);
        }
        self.compile.asked = Some(asked);
    }

    /// Keeps a verdict with its kernel and shows what comes of it.
    fn settle(&mut self, uri: &lsp::Uri, question: &Question, settled: Settled) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(kernel) = unit.module.kernel(&question.kernel) else { return };
        let said = said(&unit.source, &unit.module, kernel, question, settled);
        let verdict = match &said {
            Said::Accepted { .. } => "accepted",
            Said::Refused { message, .. } => message.as_str(),
            Said::Unknown(why) => why.as_str(),
        };
        tracing::info!(verdict, "Triton was asked about `{}`", kernel.name);
        let (is_shown, has_types) = match &said {
            Said::Refused { .. } => (true, false),
            Said::Accepted { types, .. } => (false, !types.is_empty()),
            Said::Unknown(_) => (false, false),
        };
        Verdict::new(kernel, said).keep(kernel);
        let disproved = unit.findings().iter().filter(|finding| rules::is_disproved(&unit.module, finding));
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
            self.client.send(Call::RefreshHints);
        }
    }

    /// Says so when the interpreter that is asked turns out to be unfit.
    fn tell_if_unfit(&mut self) {
        let Some(service) = &self.compile.service else { return };
        let Status::Unfit(reason) = service.status() else { return };
        let python = service.python().to_owned();
        let first = reason.lines().next().unwrap_or_default();
        let why = format!("{} cannot be asked ({first})", python.display());
        self.compile.waiting.clear();
        self.compile.asked = None;
        if self.interpreters.unfit.is_none() {
            self.note_unfit(&python);
        }
        self.tell_unfit(Some(python), &why);
    }
}

impl Compile {
    /// Whether a kernel is being compiled.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }
}
