//! `--compile`: Triton is asked about every kernel, one after the other: its front end, and where it is known for what
//! device, the whole compiler.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use compiler::{Device, Question, Session, Settled, Survey, Trial, said};
use model::analysis::verdict::{Outcome, Verdict};
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::project::Project;
use crate::cli::compiling::{local_device, nobody};

/// The processes that are asked, one for each interpreter.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    sessions: Mutex<HashMap<PathBuf, Session>>,
    local: OnceLock<Option<Device>>,
}

impl Compiler {
    /// Asks about the kernels of a file, which stands at this path. What comes of it is kept with them, for
    /// the rules.
    ///
    /// # Errors
    /// Why the interpreter cannot be asked.
    pub(super) fn ask(
        &self,
        project: &Project,
        (source, module, path): (&Source, &Module, &Path),
    ) -> Result<(), String> {
        let (python, triton) = project.python.as_ref().ok_or_else(|| nobody(None))?;
        let of_front_end = project.device.clone().unwrap_or_default();
        let device = project.device.clone().or_else(|| self.local());
        for kernel in module.kernels.iter().filter(|kernel| module.kernel(&kernel.name).is_some()) {
            let mut question = Question::of(source, module, kernel, &of_front_end);
            if project.imports_files {
                question = Question::or_of_file(question, (source, module, kernel), &of_front_end, path);
            }
            let outcome = match question {
                Ok(question) => self.settle(python, source, module, kernel, question)?,
                Err(why) => Outcome::Unknown(why),
            };
            if let (Outcome::Accepted { .. }, Some(device)) = (&outcome, &device)
                && let Ok(survey) = Survey::of(source, module, kernel, device, *triton)
                && survey.has_proof()
            {
                self.with_session(python, |session| session.survey(survey, module, kernel))?.keep(kernel);
            }
            Verdict::new(kernel, outcome).keep(kernel);
        }
        Ok(())
    }

    /// The GPU of this machine.
    fn local(&self) -> Option<Device> {
        self.local.get_or_init(local_device).clone()
    }

    fn with_session<T>(&self, python: &Path, ask: impl FnOnce(&mut Session) -> T) -> T {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        ask(sessions.entry(python.to_owned()).or_insert_with(|| Session::new(python.to_owned())))
    }

    fn settle(
        &self,
        python: &Path,
        source: &Source,
        module: &Module,
        kernel: &Kernel,
        question: Question,
    ) -> Result<Outcome, String> {
        let mut trial = Trial::new(question);
        let settled = self.with_session(python, |session| {
            loop {
                // The number is the session's to choose.
                let Some(request) = trial.request(0) else {
                    return Ok(Settled::Unknown("there is nothing to ask".to_owned()));
                };
                if let Some(settled) = trial.hear(session.answer(request)?) {
                    return Ok::<_, String>(settled);
                }
            }
        })?;
        Ok(said(source, module, kernel, &trial.question, settled))
    }
}
