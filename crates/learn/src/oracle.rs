//! Triton's front end as an oracle: it takes programs and returns verdicts, in the order of the programs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap as HashMap;

use compiler::protocol::{FrontEndError, LoweringReply, LoweringRequest};
use compiler::{CompileQuestion, CompileTarget, CompilerSession, ServiceStatus};
use model::api::{TritonTarget, Version, VersionError};
use model::syntax::{Source, Span};

use super::failure::ErrorSignature;
use super::parsed_files::Parsed;
use super::program::KernelProgram;

/// Triton's verdict on a program.
#[derive(Clone, Debug, PartialEq)]
pub enum OracleVerdict {
    /// The program compiles.
    Accepted,
    /// Triton rejects the program.
    Refused(Failing),
    /// There is no verdict: the compilation timed out, crashed, or could not be started.
    Unknown,
}

/// An error of Triton's front end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failing {
    /// The class name of the exception.
    pub kind: String,
    /// The text of the exception.
    pub message: String,
    /// The innermost place in the program's text that the error names.
    pub span: Option<Span>,
}

impl OracleVerdict {
    /// The error of a program that Triton rejects.
    #[must_use]
    pub fn failing(&self) -> Option<&Failing> {
        match self {
            Self::Refused(failing) => Some(failing),
            _ => None,
        }
    }

    /// Whether the program compiles.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        *self == Self::Accepted
    }
}

/// The reason why an interpreter cannot be used as an oracle.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The interpreter has no usable Triton, or does not start.
    #[error("Triton cannot be used in {python}: {why}; name an interpreter that has Triton with --python")]
    Unfit {
        /// The path of the interpreter.
        python: PathBuf,
        /// The cause, as text for the user.
        why: String,
    },
}

/// The span of an expression and its type as Triton prints it.
pub(crate) type TypedExpression = (Span, String);

/// A pool of worker processes of one interpreter that compile programs in parallel. Verdicts are cached.
#[derive(Debug)]
pub struct Oracle {
    python: PathBuf,
    release: String,
    sessions: Vec<Mutex<CompilerSession>>,
    known: Mutex<HashMap<KernelProgram, OracleVerdict>>,
    asked: AtomicUsize,
    /// Once this is set, no program is sent to Triton any more.
    stopped: Arc<AtomicBool>,
}

impl Oracle {
    /// Starts an oracle with `jobs` processes (at least one).
    ///
    /// # Errors
    /// Returns [`OracleError`] when the interpreter does not start or does not compile the smallest kernel.
    pub fn start(python: PathBuf, jobs: usize) -> Result<Self, OracleError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_processes(python, jobs.max(1), cores, Arc::default())
    }

    /// Starts an oracle with one process on one core. Once `stopped` is set, the verdict on each program that was not
    /// compiled before is [`OracleVerdict::Unknown`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_in_background(python: PathBuf, stopped: Arc<AtomicBool>) -> Result<Self, OracleError> {
        Self::with_processes(python, 1, 1, stopped)
    }

    fn with_processes(
        python: PathBuf,
        processes: usize,
        cores: usize,
        stopped: Arc<AtomicBool>,
    ) -> Result<Self, OracleError> {
        let session = || Mutex::new(CompilerSession::new(python.clone()).with_cores(cores));
        let sessions = (0..processes).map(|_| session()).collect();
        let (known, asked) = (Mutex::default(), AtomicUsize::new(0));
        let mut oracle = Self { python, release: String::new(), sessions, known, asked, stopped };
        oracle.release = oracle.first_answer()?;
        Ok(oracle)
    }

    /// Whether the oracle was asked to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn first_answer(&self) -> Result<String, OracleError> {
        let unfit = |why: String| OracleError::Unfit { python: self.python.clone(), why };
        let program = KernelProgram::new(SMALLEST, "k");
        let mut session = self.session(0);
        let request = program.request(false).ok_or_else(|| unfit("its first question is unreadable".to_owned()))?;
        let answer = session.answer(request).map_err(unfit)?;
        match session.status() {
            ServiceStatus::Ready { triton } if answer.accepted => Ok(triton.clone()),
            _ => Err(unfit(format!("it refuses the smallest kernel: {answer:?}"))),
        }
    }

    /// The version of Triton in the interpreter.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The release that [`Self::release`] names.
    ///
    /// # Errors
    /// Returns an error when that is not a version of Triton.
    pub(super) fn version(&self) -> Result<Version, VersionError> {
        self.release.parse()
    }

    /// The target of rules on this release.
    pub(super) fn target(&self) -> Result<TritonTarget, VersionError> {
        self.version().map(TritonTarget::of)
    }

    /// The number of processes.
    pub(super) fn processes(&self) -> usize {
        self.sessions.len()
    }

    /// The number of programs that were compiled, without those answered from the cache.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn session(&self, at: usize) -> std::sync::MutexGuard<'_, CompilerSession> {
        self.sessions[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<KernelProgram, OracleVerdict>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps `work` over the items in parallel, one thread per process. The results are in the order of the items.
    pub fn parallel<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&mut OracleClient<'_>, &T) -> R + Sync,
    ) -> Vec<R> {
        self.share_with(items, || (), |(), asker, item| work(asker, item))
    }

    /// As [`Self::parallel`], with a state that each thread creates for itself by `own`.
    pub(crate) fn share_with<T: Sync, R: Send, S>(
        &self,
        items: &[T],
        own: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, &mut OracleClient<'_>, &T) -> R + Sync,
    ) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let run = |at: usize| {
            let mut own = own();
            let mut asker = OracleClient { oracle: self, session: self.session(at) };
            let mut done = Vec::new();
            loop {
                let item = next.fetch_add(1, Ordering::Relaxed);
                let Some(found) = items.get(item).map(|item| work(&mut own, &mut asker, item)) else { return done };
                done.push((item, found));
            }
        };
        let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
            let run = &run;
            let workers: Vec<_> = (0..self.sessions.len()).map(|at| scope.spawn(move || run(at))).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, found)| found).collect()
    }

    /// The verdict on each program.
    pub fn verdicts(&self, programs: &[KernelProgram]) -> Vec<OracleVerdict> {
        self.parallel(programs, |asker, program| asker.verdict(program))
    }

    /// The programs that compile, parsed.
    pub fn accepted(&self, programs: &[KernelProgram]) -> Vec<Parsed> {
        let verdicts = self.verdicts(programs);
        let accepted = programs.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_accepted());
        accepted.map(|(program, _)| Parsed::new(&program.text)).collect()
    }
}

/// Exclusive access to one process of the oracle.
#[derive(Debug)]
pub struct OracleClient<'o> {
    oracle: &'o Oracle,
    session: std::sync::MutexGuard<'o, CompilerSession>,
}

impl OracleClient<'_> {
    /// The version of Triton in the interpreter.
    #[must_use]
    pub(super) fn release(&self) -> &str {
        self.oracle.release()
    }

    /// The verdict on a program, from the cache if it is known.
    pub fn verdict(&mut self, program: &KernelProgram) -> OracleVerdict {
        if let Some(verdict) = self.oracle.known().get(program) {
            return verdict.clone();
        }
        if self.oracle.is_stopped() {
            return OracleVerdict::Unknown;
        }
        let verdict = program.request(false).map_or(OracleVerdict::Unknown, |request| {
            self.oracle.asked.fetch_add(1, Ordering::Relaxed);
            self.session.answer(request).map_or(OracleVerdict::Unknown, |answer| verdict(&program.text, &answer))
        });
        self.oracle.known().insert(program.clone(), verdict.clone());
        verdict
    }

    /// The cached answer whether a program compiles, if there is one.
    pub(super) fn is_taken(&self, program: &KernelProgram) -> Option<bool> {
        self.oracle.known().get(program).map(OracleVerdict::is_accepted)
    }

    /// Whether Triton rejects the kernel around a place for every signature that may be meant, with the given error for
    /// at least one.
    pub(super) fn refuses(&mut self, file: &Parsed, place: Span, signature: &ErrorSignature) -> bool {
        let Some((question, answers)) = self.answers(file, place) else { return false };
        let error_of =
            |answer: &LoweringReply| answer.error.as_ref().map(|error| failing(&question.extracted[0].text, error));
        let is_so =
            |answer: &LoweringReply| error_of(answer).is_some_and(|failing| ErrorSignature::of(&failing) == *signature);
        // Wrong guesses may fail for other reasons, but none of them may compile.
        answers.iter().any(is_so) && answers.iter().all(|answer| !answer.accepted && answer.not_lowerable.is_none())
    }

    /// Whether Triton accepts the kernel around a place for at least one signature that may be meant.
    pub(super) fn takes(&mut self, file: &Parsed, place: Span) -> bool {
        self.answers(file, place).is_some_and(|(_, answers)| answers.iter().any(|answer| answer.accepted))
    }

    fn answers(&mut self, file: &Parsed, place: Span) -> Option<(CompileQuestion, Vec<LoweringReply>)> {
        if self.oracle.is_stopped() {
            return None;
        }
        let kernel = file.module.kernels.iter().rev().find(|kernel| kernel.def_span.contains(place))?;
        let question = CompileQuestion::of(&file.source, &file.module, kernel, &CompileTarget::default()).ok()?;
        let request = |guess| LoweringRequest { types: false, in_series: true, ..question.request(0, guess) };
        let ask = |guess| self.session.answer(request(guess)).ok();
        let answers = question.guesses.iter().filter_map(ask).collect();
        Some((question, answers))
    }

    /// The types of the expressions of a program that have the same type in all iterations of loops; `None` when the
    /// program does not compile.
    pub(super) fn types(&mut self, program: &KernelProgram) -> Option<Vec<TypedExpression>> {
        self.oracle.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.session.answer(program.request(true)?).ok().filter(|answer| answer.accepted)?;
        let source = Source::parse(program.text.as_str());
        let typed = answer.types.iter().filter_map(|(file, line, column, end, end_column, kinds)| {
            let [kind] = kinds.as_slice() else { return None };
            let span = place(&source, (*file, *line, *column, *end, *end_column))?;
            Some((span, kind.clone()))
        });
        let mut typed: Vec<TypedExpression> = typed.collect();
        typed.sort();
        Some(typed)
    }
}

/// Converts an answer of the worker to a verdict. An error while loading the program is no verdict.
fn verdict(text: &str, answer: &LoweringReply) -> OracleVerdict {
    if answer.accepted {
        return OracleVerdict::Accepted;
    }
    match &answer.error {
        Some(error) if error.kind != "load" => OracleVerdict::Refused(failing(text, error)),
        _ => OracleVerdict::Unknown,
    }
}

fn failing(text: &str, error: &FrontEndError) -> Failing {
    let source = Source::parse(text);
    let (message, place) = match error.verifier.first() {
        Some((message, file, line, column)) => {
            (message.clone(), place(&source, (*file, *line, *column, *line, *column + 1)))
        }
        None => (error.message.clone(), error.places.last().and_then(|&at| place(&source, at))),
    };
    Failing { kind: error.kind.clone(), message: without_addresses(&message), span: place }
}

/// The span of a place in the first file. Lines count from 1, columns are in bytes.
fn place(source: &Source, at: (usize, u32, u32, u32, u32)) -> Option<Span> {
    let (file, line, column, end, end_column) = at;
    let text = source.text();
    let offset = |line: u32, column: u32| {
        let line = (line as usize).checked_sub(1)?;
        let start = if line == 0 { 0 } else { text.match_indices('\n').nth(line - 1)?.0 + 1 };
        Some(start + column as usize).filter(|at| *at <= text.len())
    };
    let span = Span::new(offset(line, column)?, offset(end, end_column)?);
    (file == 0 && span.start <= span.end).then_some(span)
}

fn without_addresses(message: &str) -> String {
    let mut parts = message.split("0x");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("0x…");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

/// A kernel that every release compiles.
const SMALLEST: &str = "import triton\n\n# warpsmith: signature x=i32\n@triton.jit\ndef k(x):\n    pass\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_addresses_are_removed_from_messages() {
        let message = "unsupported: <object at 0x7f51d> and <other at 0xab> of 0";
        assert_eq!(without_addresses(message), "unsupported: <object at 0x…> and <other at 0x…> of 0");
    }

    #[test]
    fn error_places_are_converted_to_spans() {
        let source = Source::parse("a = 1\nbc = 2\n");
        assert_eq!(place(&source, (0, 2, 0, 2, 2)), Some(Span::new(6, 8)));
        assert_eq!(place(&source, (1, 2, 0, 2, 2)), None);
        assert_eq!(place(&source, (0, 9, 0, 9, 2)), None);
    }
}
