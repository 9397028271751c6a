//! The supervisor of the compiler process of one interpreter, which sends one request at a time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::process::{CompilerProcess, ProcessOutput};
use super::protocol::{CompilerMessage, LoweringReply, LoweringRequest};

/// How often in a row a process may end without an answer before its request is blamed, or the interpreter if no
/// process was ever ready.
const TRIES: u32 = 4;
/// The first pause before a process is restarted; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// The state of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceStatus {
    /// No request was made yet.
    Idle,
    /// The process imports Triton.
    Starting,
    /// The process answers requests.
    Ready {
        /// Triton's version.
        triton: String,
    },
    /// The process cannot work, for this reason.
    Unfit(String),
}

/// What the caller must do after an event.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceEvent {
    /// The caller need not act.
    Nothing,
    /// [`Service::status`] has changed.
    Status,
    /// A request was answered.
    Answered(Box<LoweringReply>),
    /// The process ended; the caller must call [`Service::revive`] after this pause.
    Pause(Duration),
}

/// The receiver of a process's events, with the number of the process.
pub type MessageSink = Arc<dyn Fn(u64, ProcessOutput) + Send + Sync>;

/// The compiler process of one interpreter, and the queue of its requests.
pub struct Service {
    python: PathBuf,
    cores: usize,
    ears: MessageSink,
    process: Option<CompilerProcess>,
    /// The number of the current process; events of other processes are ignored.
    number: u64,
    status: ServiceStatus,
    waiting: VecDeque<LoweringRequest>,
    asked: Option<RunningRequest>,
    /// The number of processes in a row that have ended.
    ended: u32,
    /// Whether a process of this interpreter was ever ready.
    is_fit: bool,
    /// Whether a call of [`Self::revive`] is pending.
    pauses: bool,
}

/// The request that the process works on.
struct RunningRequest {
    request: LoweringRequest,
    /// Whether its answer is no longer wanted. The process may have answered before it hears of that.
    is_withdrawn: bool,
}

impl RunningRequest {
    fn new(request: LoweringRequest) -> Self {
        Self { request, is_withdrawn: false }
    }
}

impl Service {
    /// Creates a service that starts its process at the first request.
    #[must_use]
    pub fn new(python: PathBuf, ears: MessageSink) -> Self {
        Self {
            python,
            cores: 0,
            ears,
            process: None,
            number: 0,
            status: ServiceStatus::Idle,
            waiting: VecDeque::new(),
            asked: None,
            ended: 0,
            is_fit: false,
            pauses: false,
        }
    }

    /// Sets the number of processor cores for its processes; 0 means half of them.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Self {
        self.cores = cores;
        self
    }

    /// The interpreter.
    #[must_use]
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// The state of the service.
    #[must_use]
    pub fn status(&self) -> &ServiceStatus {
        &self.status
    }

    /// The process id, while a process runs.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.process.as_ref().map(CompilerProcess::id)
    }

    /// Replaces the queue by these requests, in this order, and withdraws the request that is running. Each request must
    /// have its own id.
    pub fn ask(&mut self, requests: impl IntoIterator<Item = LoweringRequest>) {
        self.waiting = requests.into_iter().collect();
        if let Some(asked) = &mut self.asked {
            asked.is_withdrawn = true;
            if let Some(process) = &self.process {
                process.cancel(asked.request.id);
            }
        }
        self.go_on();
    }

    /// Whether no request is running or waiting.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.asked.is_none() && self.waiting.is_empty()
    }

    fn go_on(&mut self) {
        if self.waiting.is_empty() || matches!(self.status, ServiceStatus::Unfit(_)) {
            return;
        }
        if self.process.is_none() {
            // After an end there is a pause first, during which there may have been no requests.
            if !self.pauses {
                self.start();
            }
            return;
        }
        if self.asked.is_none()
            && matches!(self.status, ServiceStatus::Ready { .. })
            && let (Some(request), Some(process)) = (self.waiting.pop_front(), &self.process)
        {
            process.ask(&request);
            self.asked = Some(RunningRequest::new(request));
        }
    }

    fn start(&mut self) {
        self.number += 1;
        let (number, ears) = (self.number, Arc::clone(&self.ears));
        match CompilerProcess::start(&self.python, self.cores, move |heard| ears(number, heard)) {
            Ok(process) => {
                self.process = Some(process);
                self.status = ServiceStatus::Starting;
            }
            Err(error) => self.status = ServiceStatus::Unfit(error.to_string()),
        }
    }

    /// Starts a process in the place of one that ended, if requests are waiting.
    pub fn revive(&mut self) {
        self.pauses = false;
        if self.process.is_none() && !matches!(self.status, ServiceStatus::Unfit(_)) && !self.waiting.is_empty() {
            self.start();
        }
    }

    /// Handles an event of process `number`.
    pub fn handle_output(&mut self, number: u64, heard: ProcessOutput) -> ServiceEvent {
        if number != self.number {
            return ServiceEvent::Nothing;
        }
        match heard {
            ProcessOutput::Message(CompilerMessage::Ready { ready, .. }) => {
                self.status = ServiceStatus::Ready { triton: ready };
                self.is_fit = true;
                self.go_on();
                ServiceEvent::Status
            }
            ProcessOutput::Message(CompilerMessage::Unfit { unfit }) => {
                self.status = ServiceStatus::Unfit(unfit);
                self.waiting.clear();
                ServiceEvent::Status
            }
            ProcessOutput::Message(CompilerMessage::Answer(answer)) => {
                let asked = self.asked.take_if(|asked| asked.request.id == answer.id);
                let is_wanted = asked.is_some_and(|asked| !asked.is_withdrawn) && !answer.cancelled;
                self.ended = 0;
                self.go_on();
                if is_wanted { ServiceEvent::Answered(answer) } else { ServiceEvent::Nothing }
            }
            ProcessOutput::Ended => self.ended(),
        }
    }

    fn ended(&mut self) -> ServiceEvent {
        self.process = None;
        if matches!(self.status, ServiceStatus::Unfit(_)) {
            return ServiceEvent::Nothing;
        }
        let asked = self.asked.take().filter(|asked| !asked.is_withdrawn).map(|asked| asked.request);
        self.ended += 1;
        self.status = ServiceStatus::Idle;
        if self.ended < TRIES {
            // The request may have crashed the process, or not: it is retried as the last one.
            self.waiting.extend(asked);
            self.pauses = true;
            return ServiceEvent::Pause(PAUSE * 2_u32.pow(self.ended - 1));
        }
        let why = format!("the compiler process ended {TRIES} times in a row");
        match asked {
            Some(request) if self.is_fit => {
                let unable = Some(why);
                ServiceEvent::Answered(Box::new(LoweringReply {
                    id: request.id,
                    not_lowerable: unable,
                    ..LoweringReply::default()
                }))
            }
            _ => {
                self.waiting.clear();
                self.status =
                    ServiceStatus::Unfit(format!("{why}; try `{} -c 'import triton'`", self.python.display()));
                ServiceEvent::Status
            }
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("python", &self.python).field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompileQuestion, CompileTarget, Guess, GuessOrigin};
    use model::kernel::Module;
    use model::syntax::Source;

    /// A service whose interpreter does not exist, so that an attempt to start it shows as a failure.
    fn service() -> Service {
        Service::new("/gone/python".into(), Arc::new(|_, _| {}))
    }

    fn request(number: u64) -> LoweringRequest {
        let guess = Guess {
            signature: Default::default(),
            constexprs: Default::default(),
            aligned: Vec::new(),
            certainty: GuessOrigin::Written,
        };
        let text = "import triton\n\n# warpsmith: signature x=i32\n@triton.jit\ndef k(x):\n    pass\n";
        let source = Source::parse(text);
        let module = Module::build(&source);
        let question = CompileQuestion::of(&source, &module, &module.kernels[0], &CompileTarget::default()).unwrap();
        question.request(number, &guess)
    }

    #[test]
    fn a_service_that_was_revived_without_requests_becomes_idle() {
        let mut service = service();
        service.status = ServiceStatus::Starting;
        assert!(matches!(service.handle_output(0, ProcessOutput::Ended), ServiceEvent::Pause(_)));
        service.revive();
        assert_eq!(service.status, ServiceStatus::Idle, "there was nothing to ask");
        service.ask([request(1)]);
        assert!(matches!(service.status, ServiceStatus::Unfit(_)), "{:?}", service.status);
    }

    #[test]
    fn answers_to_withdrawn_requests_are_dropped() {
        let mut service = service();
        let answer = |id| {
            let reply = LoweringReply { id, ..LoweringReply::default() };
            ProcessOutput::Message(CompilerMessage::Answer(Box::new(reply)))
        };
        service.pauses = true;
        service.asked = Some(RunningRequest::new(request(1)));
        service.ask([request(2)]);
        assert_eq!(service.handle_output(0, answer(1)), ServiceEvent::Nothing);
        service.asked = Some(RunningRequest::new(request(2)));
        assert_eq!(service.handle_output(0, answer(1)), ServiceEvent::Nothing, "it is not the answer to request 2");
        assert!(matches!(service.handle_output(0, answer(2)), ServiceEvent::Answered(_)));
    }

    #[test]
    fn repeated_deaths_blame_the_interpreter_only_if_it_was_never_ready() {
        for is_fit in [false, true] {
            let mut service = service();
            service.is_fit = is_fit;
            for _ in 1..TRIES {
                assert!(matches!(service.handle_output(0, ProcessOutput::Ended), ServiceEvent::Pause(_)));
            }
            service.asked = Some(RunningRequest::new(request(1)));
            let outcome = service.handle_output(0, ProcessOutput::Ended);
            let is_blamed =
                matches!(outcome, ServiceEvent::Answered(answer) if answer.id == 1 && answer.not_lowerable.is_some());
            assert_eq!(is_blamed, is_fit);
            assert_eq!(matches!(service.status, ServiceStatus::Unfit(_)), !is_fit);
            assert!(service.is_done(), "what it was asked so often is not asked again");
        }
    }
}
