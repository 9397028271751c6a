//! `--compile`: asks Triton about each kernel, one after the other: its front end and, where the device is known, the
//! whole compiler.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use compiler::{CompileQuestion, CompileTarget, CompilerSession, PendingQuestion, QuestionResult, Survey, said};
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::project::Project;
use crate::cli::compiler_setup::{local_device, no_interpreter};

/// The compiler processes, one for each interpreter.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    sessions: Mutex<HashMap<PathBuf, CompilerSession>>,
    local: OnceLock<Option<CompileTarget>>,
}

impl Compiler {
    /// Asks about the kernels of a file at this path. The results are stored with the kernels, for the rules.
    ///
    /// # Errors
    /// The reason why the interpreter cannot be asked.
    pub(super) fn ask(
        &self,
        project: &Project,
        (source, module, path): (&Source, &Module, &Path),
    ) -> Result<(), String> {
        let (python, triton) = project.python.as_ref().ok_or_else(|| no_interpreter(None))?;
        let of_front_end = project.device.clone().unwrap_or_default();
        let device = project.device.clone().or_else(|| self.local());
        for kernel in module.kernels.iter().filter(|kernel| module.kernel(&kernel.name).is_some()) {
            let mut question = CompileQuestion::of(source, module, kernel, &of_front_end);
            if project.imports_files {
                question = CompileQuestion::or_of_file(question, (source, module, kernel), &of_front_end, path);
            }
            let outcome = match question {
                Ok(question) => self.settle(python, source, module, kernel, question)?,
                Err(why) => FrontEndOutcome::Unknown(why),
            };
            if let (FrontEndOutcome::Accepted { .. }, Some(device)) = (&outcome, &device)
                && let Ok(survey) = Survey::of(source, module, kernel, device, *triton)
                && survey.has_proof()
            {
                self.with_session(python, |session| session.survey(survey, module, kernel))?.keep(kernel);
            }
            FrontEndVerdict::new(kernel, outcome).keep(kernel);
        }
        Ok(())
    }

    /// The GPU of this machine.
    fn local(&self) -> Option<CompileTarget> {
        self.local.get_or_init(local_device).clone()
    }

    fn with_session<T>(&self, python: &Path, ask: impl FnOnce(&mut CompilerSession) -> T) -> T {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        ask(sessions.entry(python.to_owned()).or_insert_with(|| CompilerSession::new(python.to_owned())))
    }

    fn settle(
        &self,
        python: &Path,
        source: &Source,
        module: &Module,
        kernel: &Kernel,
        question: CompileQuestion,
    ) -> Result<FrontEndOutcome, String> {
        let mut trial = PendingQuestion::new(question);
        let settled = self.with_session(python, |session| {
            loop {
                // The session replaces the number.
                let Some(request) = trial.request(0) else {
                    return Ok(QuestionResult::Unknown("there is nothing to compile".to_owned()));
                };
                if let Some(settled) = trial.handle_reply(session.answer(request)?) {
                    return Ok::<_, String>(settled);
                }
            }
        })?;
        Ok(said(source, module, kernel, &trial.question, settled))
    }
}
