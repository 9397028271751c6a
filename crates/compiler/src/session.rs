//! A blocking interface to the compiler service, for the command line.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::analysis::resources::Resources;
use model::kernel::{Kernel, Module};

use super::process::ProcessOutput;
use super::protocol::{LoweringReply, LoweringRequest};
use super::service::{Service, ServiceEvent, ServiceStatus};
use super::survey::Survey;

/// A compiler service whose answers are waited for.
#[derive(Debug)]
pub struct CompilerSession {
    service: Service,
    heard: Receiver<(u64, ProcessOutput)>,
    last: u64,
    patience: Option<Duration>,
}

impl CompilerSession {
    /// Creates a session with an interpreter.
    #[must_use]
    pub fn new(python: PathBuf) -> Self {
        let (sender, heard) = channel();
        let sender = Mutex::new(sender);
        let ears = Arc::new(move |number, heard| {
            // The receiver is gone after the end of the session.
            let _ = sender.lock().unwrap_or_else(PoisonError::into_inner).send((number, heard));
        });
        Self { service: Service::new(python, ears), heard, last: 0, patience: None }
    }

    /// Sets the number of processor cores for the process; 0 means half of them.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Self {
        self.service = self.service.with_cores(cores);
        self
    }

    /// Sets the time limit for each event, because an import may hang.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Sends a request and returns its answer. The session chooses the id of the request.
    ///
    /// # Errors
    /// Returns the reason when the interpreter cannot run the compiler.
    pub fn answer(&mut self, mut request: LoweringRequest) -> Result<LoweringReply, String> {
        self.last += 1;
        request.id = self.last;
        self.service.ask([request]);
        loop {
            if let ServiceStatus::Unfit(reason) = self.service.status() {
                return Err(reason.clone());
            }
            let heard = match self.patience {
                Some(patience) => self.heard.recv_timeout(patience).map_err(|_| "it does not answer".to_owned()),
                None => self.heard.recv().map_err(|_| "the process is gone".to_owned()),
            };
            let (number, heard) = heard?;
            match self.service.handle_output(number, heard) {
                ServiceEvent::Answered(answer) if answer.id == self.last => return Ok(*answer),
                ServiceEvent::Pause(pause) => {
                    std::thread::sleep(pause);
                    self.service.revive();
                }
                _ => {}
            }
        }
    }

    /// Compiles all variants of a survey, which was created for `module` and `kernel`.
    ///
    /// # Errors
    /// Returns the reason when the interpreter cannot run the compiler.
    pub fn survey(&mut self, mut survey: Survey, module: &Module, kernel: &Kernel) -> Result<Resources, String> {
        // `answer` replaces the id.
        while let Some(request) = survey.request(0) {
            let answer = self.answer(request)?;
            survey.handle_reply(module, kernel, &answer);
        }
        Ok(survey.resources())
    }

    /// The state of the service.
    #[must_use]
    pub fn status(&self) -> &ServiceStatus {
        self.service.status()
    }

    /// The process id, while a process runs.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.service.process()
    }
}
