//! Compilation of the kernels of a user's files: which ones Triton rejects and which it accepts, in the form that the
//! store keeps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compiler::{CompileQuestion, CompileTarget, GuessOrigin};
use config::MemorySettings;
use model::kernel::{Kernel, RecordedLaunch};
use protocol::FailedLaunch;
use rules::learned::TritonError;
use runtime::python::state_folder;
use store::{Accepted, RefusedKernel, Store, StoreError};
use workload::recorded_launch;

use super::oracle::{Oracle, OracleClient, OracleError, OracleVerdict};
use super::parsed_files::Parsed;
use super::program::KernelProgram;
use super::prove::published;

/// Triton's verdict on one of the user's kernels.
#[derive(Clone, Debug)]
enum CompileVerdict {
    /// Triton rejects the kernel.
    Refused(Box<RefusedKernel>),
    /// Triton accepts the kernel.
    Taken(Accepted),
}

/// A file that failed when it ran, with what is known about the failure.
#[derive(Clone, Debug, Default)]
pub struct Suspect {
    /// The text of the file.
    pub text: String,
    /// The text from which the file was derived and which did not fail.
    pub parent: Option<String>,
    /// The recorded launches of its kernels. Without a parent, only kernels with a launch are compiled.
    pub launches: Vec<RecordedLaunch>,
}

/// The reason why no failure was stored.
#[derive(Debug, thiserror::Error)]
pub enum SuspectError {
    /// Triton could not be started.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// The store could not be opened or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OracleClient<'_> {
    /// Compiles those kernels of a file that `wanted` selects and that can be extracted from it. `origin` is a word
    /// that says where they were found.
    fn kernels(&mut self, file: &Parsed, origin: &str, wanted: &dyn Fn(&Kernel) -> bool) -> Vec<CompileVerdict> {
        file.module
            .kernels
            .iter()
            .filter(|kernel| wanted(kernel))
            .filter_map(|it| self.kernel(file, it, origin))
            .collect()
    }

    fn kernel(&mut self, file: &Parsed, kernel: &Kernel, origin: &str) -> Option<CompileVerdict> {
        let question = CompileQuestion::of(&file.source, &file.module, kernel, &CompileTarget::default()).ok()?;
        let mut refused = None;
        for guess in &question.guesses {
            let Some(cut) = compiler::StandaloneFile::of(&question, guess) else { continue };
            let program = KernelProgram::new(cut.text, kernel.name.clone());
            match self.verdict(&program) {
                OracleVerdict::Accepted => {
                    let (text, kernel) = (program.text, program.kernel);
                    return Some(CompileVerdict::Taken(Accepted { text, kernel, triton: self.release().to_owned() }));
                }
                OracleVerdict::Refused(failing) => refused = refused.or(Some((program, failing))),
                OracleVerdict::Unknown => {}
            }
        }
        // A guessed signature may itself be the cause of the error.
        let is_certain = question.guesses.first().is_some_and(|guess| guess.certainty != GuessOrigin::Guessed);
        let (program, failing) = refused.filter(|_| is_certain)?;
        Some(CompileVerdict::Refused(Box::new(RefusedKernel {
            text: program.text,
            kernel: program.kernel,
            nearest_passing: None,
            error: TritonError { kind: failing.kind, message: failing.message },
            place: failing.span.map(|span| (span.start, span.end)),
            triton: self.release().to_owned(),
            source: origin.to_owned(),
        })))
    }

    /// The kernels that Triton rejects in a file that failed, each with the kernel of the parent file if Triton accepts
    /// that one.
    fn suspected(&mut self, suspect: &Suspect, origin: &str) -> Vec<RefusedKernel> {
        let file = Parsed::launched(&suspect.text, &suspect.launches);
        let parent = suspect.parent.as_ref().map(|text| Parsed::launched(text, &suspect.launches));
        let before = |name: &str| parent.as_ref().and_then(|file| Some((file, file.module.kernel(name)?)));
        let is_suspected = |kernel: &Kernel| match before(&kernel.name) {
            Some((parent, old)) => parent.source.slice(old.span) != file.source.slice(kernel.span),
            None => parent.is_some() || suspect.launches.iter().any(|launch| launch.kernel == kernel.name),
        };
        let said = self.kernels(&file, origin, &is_suspected);
        let refused =
            said.into_iter().filter_map(|said| if let CompileVerdict::Refused(it) = said { Some(*it) } else { None });
        let with_relative = |failure: RefusedKernel| {
            let relative = before(&failure.kernel).and_then(|(file, kernel)| self.kernel(file, kernel, origin));
            let relative = if let Some(CompileVerdict::Taken(taken)) = relative { Some(taken.text) } else { None };
            RefusedKernel { nearest_passing: relative, ..failure }
        };
        refused.map(with_relative).collect()
    }
}

/// Triton's verdicts on the kernels of some files.
#[derive(Clone, Debug)]
pub struct FileVerdicts {
    /// The number of files that have kernels.
    pub files: usize,
    /// The kernels that Triton rejects.
    pub refused: Vec<RefusedKernel>,
    /// The kernels that Triton accepts.
    pub taken: Vec<Accepted>,
}

impl FileVerdicts {
    /// Stores the kernels, to learn from those that Triton rejects, and so that no rule flags the others.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn keep(&self, store: &mut Store) -> Result<(), StoreError> {
        store.keep_failures(&self.refused)?;
        store.keep_accepted(&self.taken)
    }
}

/// Compiles the kernels in the Python files below some folders.
#[must_use]
pub fn file_verdicts(oracle: &Oracle, folders: &[PathBuf]) -> FileVerdicts {
    let files = published(folders);
    let verdicts = oracle.parallel(&files, |asker, file| asker.kernels(file, &file_name(&file.name), &|_| true));
    let (mut refused, mut taken) = (Vec::new(), Vec::new());
    for verdict in verdicts.into_iter().flatten() {
        match verdict {
            CompileVerdict::Refused(kernel) => refused.push(*kernel),
            CompileVerdict::Taken(kernel) => taken.push(kernel),
        }
    }
    FileVerdicts { files: files.len(), refused, taken }
}

/// The last part of a path.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Compiles the kernels of files that failed with the Triton of an interpreter, and stores those that it rejects in the
/// user's store in `folder`. Returns the number of new failures. Errors that occur after Triton's front end are not
/// stored.
///
/// # Errors
/// Returns an error when Triton cannot be started or the store cannot be written; then no failure is stored.
pub fn keep_refused(python: &Path, suspects: &[Suspect], origin: &str, folder: &Path) -> Result<usize, SuspectError> {
    let oracle = Oracle::start(python.to_owned(), 1)?;
    let refused: Vec<RefusedKernel> =
        oracle.parallel(suspects, |asker, suspect| asker.suspected(suspect, origin)).into_iter().flatten().collect();
    if refused.is_empty() {
        return Ok(0);
    }
    Ok(Store::of_user(folder)?.keep_failures(&refused)?)
}

/// The files of launches that raised an exception, as they are on the disk now, each with all of its launches.
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

/// Calls [`keep_refused`] if the user's settings allow it. Errors are logged.
pub fn learn_from(python: &Path, suspects: &[Suspect], origin: &str, settings: &MemorySettings) {
    if suspects.is_empty() || !settings.enabled || !settings.learn {
        return;
    }
    match keep_refused(python, suspects, origin, &state_folder()) {
        Ok(count) => tracing::info!(count, origin, "kernels that Triton refuses were stored"),
        Err(error) => tracing::warn!(%error, origin, "kernels that Triton refuses cannot be stored"),
    }
}
