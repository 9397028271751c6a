//! `--compile`: Triton's own front end is asked about every kernel, one after the other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::analysis::verdict::{Outcome, Verdict};
use crate::compiler::{Device, Question, Session, Settled, Trial, said};
use crate::kernel::{Kernel, Module};
use crate::syntax::Source;

/// The processes that are asked, one for each interpreter.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    sessions: Mutex<HashMap<PathBuf, Session>>,
}

impl Compiler {
    /// Asks about the kernels of a file. What comes of it is kept with them, for the rules.
    ///
    /// # Errors
    /// Why the interpreter cannot be asked.
    pub(super) fn ask(&self, python: &Path, source: &Source, module: &Module) -> Result<(), String> {
        for kernel in module.kernels.iter().filter(|kernel| module.kernel(&kernel.name).is_some()) {
            let outcome = match Question::of(source, module, kernel, &Device::default()) {
                Ok(question) => self.settle(python, source, module, kernel, question)?,
                Err(why) => Outcome::Unknown(why),
            };
            Verdict::new(kernel, outcome).keep(kernel);
        }
        Ok(())
    }

    fn settle(
        &self,
        python: &Path,
        source: &Source,
        module: &Module,
        kernel: &Kernel,
        question: Question,
    ) -> Result<Outcome, String> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.entry(python.to_owned()).or_insert_with(|| Session::new(python.to_owned()));
        let mut trial = Trial::new(question);
        let settled = loop {
            // The number is the session's to choose.
            let Some(request) = trial.request(0) else { break Settled::Unknown("there is nothing to ask".to_owned()) };
            if let Some(settled) = trial.hear(session.answer(request)?) {
                break settled;
            }
        };
        Ok(said(source, module, kernel, &trial.question, settled))
    }
}
