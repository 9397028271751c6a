//! Kernels of files as Triton sees them: what it refuses and what it takes, as the store keeps it.

use std::collections::BTreeMap;
use std::path::Path;

use compiler::{Certainty, Device, Question};
use config::MemorySettings;
use model::kernel::{Kernel, RecordedLaunch};
use protocol::FailedLaunch;
use rules::learned::TritonError;
use runtime::python::state_folder;
use store::{Accepted, Failure, Store, StoreError};
use workload::recorded_launch;

use super::cases::Parsed;
use super::oracle::{Asker, Oracle, OracleError, Verdict};
use super::program::Program;

/// What Triton says of a kernel of the user's.
#[derive(Clone, Debug)]
pub enum Said {
    /// It refuses it.
    Refused(Box<Failure>),
    /// It takes it.
    Taken(Accepted),
}

/// A file that failed where it ran, and what is known about that.
#[derive(Clone, Debug, Default)]
pub struct Suspect {
    /// Its text.
    pub text: String,
    /// The text that it was made of, which did not fail.
    pub parent: Option<String>,
    /// What its kernels are launched with. Without a parent, only these kernels are asked about.
    pub launches: Vec<RecordedLaunch>,
}

/// Why nothing was kept of files that failed.
#[derive(Debug, thiserror::Error)]
pub enum SuspectError {
    /// Nobody can be asked.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// It cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Asker<'_> {
    /// Asks about those kernels of a file that are wanted and can be cut out of it. `origin` says in a word where they were met.
    pub fn kernels(&mut self, file: &Parsed, origin: &str, wanted: &dyn Fn(&Kernel) -> bool) -> Vec<Said> {
        file.module
            .kernels
            .iter()
            .filter(|kernel| wanted(kernel))
            .filter_map(|it| self.kernel(file, it, origin))
            .collect()
    }

    fn kernel(&mut self, file: &Parsed, kernel: &Kernel, origin: &str) -> Option<Said> {
        let question = Question::of(&file.source, &file.module, kernel, &Device::default()).ok()?;
        let mut refused = None;
        for guess in &question.guesses {
            let Some(cut) = compiler::Program::of(&question, guess) else { continue };
            let program = Program::new(cut.text, kernel.name.clone());
            match self.verdict(&program) {
                Verdict::Accepted => {
                    let (text, kernel) = (program.text, program.kernel);
                    return Some(Said::Taken(Accepted { text, kernel, triton: self.release().to_owned() }));
                }
                Verdict::Refused(failing) => refused = refused.or(Some((program, failing))),
                Verdict::Unknown => {}
            }
        }
        // No guess of its parameters is right: what is wrong then may be the guess.
        let is_certain = question.guesses.first().is_some_and(|guess| guess.certainty != Certainty::Guessed);
        let (program, failing) = refused.filter(|_| is_certain)?;
        Some(Said::Refused(Box::new(Failure {
            text: program.text,
            kernel: program.kernel,
            relative: None,
            error: TritonError { kind: failing.kind, message: failing.message },
            place: failing.span.map(|span| (span.start, span.end)),
            triton: self.release().to_owned(),
            source: origin.to_owned(),
        })))
    }

    /// What Triton refuses of a file that failed, each kernel with that of the file that it was made of.
    fn suspected(&mut self, suspect: &Suspect, origin: &str) -> Vec<Failure> {
        let file = Parsed::launched(&suspect.text, &suspect.launches);
        let parent = suspect.parent.as_ref().map(|text| Parsed::launched(text, &suspect.launches));
        let before = |name: &str| parent.as_ref().and_then(|file| Some((file, file.module.kernel(name)?)));
        let is_suspected = |kernel: &Kernel| match before(&kernel.name) {
            Some((parent, old)) => parent.source.slice(old.span) != file.source.slice(kernel.span),
            None => parent.is_some() || suspect.launches.iter().any(|launch| launch.kernel == kernel.name),
        };
        let said = self.kernels(&file, origin, &is_suspected);
        let refused = said.into_iter().filter_map(|said| if let Said::Refused(it) = said { Some(*it) } else { None });
        let with_relative = |failure: Failure| {
            let relative = before(&failure.kernel).and_then(|(file, kernel)| self.kernel(file, kernel, origin));
            let relative = if let Some(Said::Taken(taken)) = relative { Some(taken.text) } else { None };
            Failure { relative, ..failure }
        };
        refused.map(with_relative).collect()
    }
}

/// Has the Triton of an interpreter say what it refuses of files that failed, and keeps that in the store of a folder.
/// Returns how many failures are new. What fails later than Triton's front end is not kept.
///
/// # Errors
/// [`SuspectError`]; then nothing is kept.
pub fn keep_refused(python: &Path, suspects: &[Suspect], origin: &str, folder: &Path) -> Result<usize, SuspectError> {
    let oracle = Oracle::start(python.to_owned(), 1)?;
    let refused: Vec<Failure> =
        oracle.share(suspects, |asker, suspect| asker.suspected(suspect, origin)).into_iter().flatten().collect();
    if refused.is_empty() {
        return Ok(0);
    }
    Ok(Store::of_user(folder)?.keep_failures(&refused)?)
}

/// The files of launches that have raised, as they are on the disk, with all launches of each.
#[must_use]
pub fn crashed(failed: &[FailedLaunch]) -> Vec<Suspect> {
    let mut by_file: BTreeMap<&Path, Vec<RecordedLaunch>> = BTreeMap::new();
    for one in failed {
        by_file.entry(&one.file).or_default().push(recorded_launch(one.launch.clone()));
    }
    let suspect = |(file, launches): (&Path, Vec<RecordedLaunch>)| {
        Some(Suspect { text: std::fs::read_to_string(file).ok()?, parent: None, launches })
    };
    by_file.into_iter().filter_map(suspect).collect()
}

/// What [`keep_refused`] does, where the user's settings allow it; what goes wrong is told in the log.
pub fn learn_from(python: &Path, suspects: &[Suspect], origin: &str, settings: &MemorySettings) {
    if suspects.is_empty() || !settings.enabled || !settings.learn {
        return;
    }
    match keep_refused(python, suspects, origin, &state_folder()) {
        Ok(count) => tracing::info!(count, origin, "kernels that Triton refuses are kept to learn from"),
        Err(error) => tracing::warn!(%error, origin, "nothing is learned from what failed"),
    }
}
