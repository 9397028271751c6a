//! Asking and waiting for the answer: for the command line, which has nothing else to do.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::analysis::resources::Resources;
use model::kernel::{Kernel, Module};

use super::process::Heard;
use super::protocol::{Answer, Request};
use super::service::{Outcome, Service, Status};
use super::survey::Survey;

/// A service with somebody who waits for it.
#[derive(Debug)]
pub struct Session {
    service: Service,
    heard: Receiver<(u64, Heard)>,
    last: u64,
    patience: Option<Duration>,
}

impl Session {
    /// A session with an interpreter.
    #[must_use]
    pub fn new(python: PathBuf) -> Self {
        let (sender, heard) = channel();
        let sender = Mutex::new(sender);
        let ears = Arc::new(move |number, heard| {
            // Nobody listens any more when the session is over.
            let _ = sender.lock().unwrap_or_else(PoisonError::into_inner).send((number, heard));
        });
        Self { service: Service::new(python, ears), heard, last: 0, patience: None }
    }

    /// The same, whose process uses so many processor cores; 0 means half of them.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Self {
        self.service = self.service.with_cores(cores);
        self
    }

    /// The same, which waits so long to hear something: an import may hang.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The answer to a request, whose number is chosen here.
    ///
    /// # Errors
    /// Why the interpreter cannot answer anything.
    pub fn answer(&mut self, mut request: Request) -> Result<Answer, String> {
        self.last += 1;
        request.id = self.last;
        self.service.ask([request]);
        loop {
            if let Status::Unfit(reason) = self.service.status() {
                return Err(reason.clone());
            }
            let heard = match self.patience {
                Some(patience) => self.heard.recv_timeout(patience).map_err(|_| "it does not answer".to_owned()),
                None => self.heard.recv().map_err(|_| "the process is gone".to_owned()),
            };
            let (number, heard) = heard?;
            match self.service.hear(number, heard) {
                Outcome::Answered(answer) if answer.id == self.last => return Ok(*answer),
                Outcome::Pause(pause) => {
                    std::thread::sleep(pause);
                    self.service.revive();
                }
                _ => {}
            }
        }
    }

    /// Compiles a kernel in all ways of a survey, which was made of `module` and `kernel`.
    ///
    /// # Errors
    /// Why the interpreter cannot answer anything.
    pub fn survey(&mut self, mut survey: Survey, module: &Module, kernel: &Kernel) -> Result<Resources, String> {
        // The number is chosen by `answer`.
        while let Some(request) = survey.request(0) {
            let answer = self.answer(request)?;
            survey.hear(module, kernel, &answer);
        }
        Ok(survey.resources())
    }

    /// How the service is.
    #[must_use]
    pub fn status(&self) -> &Status {
        self.service.status()
    }

    /// The process, while there is one.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.service.process()
    }
}
