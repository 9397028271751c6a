//! Asking and waiting for the answer: for the command line, which has nothing else to do.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::process::Heard;
use super::protocol::{Answer, Request};
use super::service::{Outcome, Service, Status};
use super::survey::Survey;
use crate::analysis::resources::Resources;
use crate::kernel::{Kernel, Module};

/// A service with somebody who waits for it.
#[derive(Debug)]
pub struct Session {
    service: Service,
    heard: Receiver<(u64, Heard)>,
    last: u64,
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
        Self { service: Service::new(python, ears), heard, last: 0 }
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
            let Ok((number, heard)) = self.heard.recv() else { return Err("the process is gone".to_owned()) };
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
