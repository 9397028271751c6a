//! A second measurement of an applied offer: the file as it is now against its text at the beginning of the run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use judge::{Effort, Evaluator, Outcome, Task, Verdict, can_judge};
use model::kernel::Module;
use model::syntax::{self, normal_form};
use workload::last_lines;

use super::journal::{JournalEntry, read};
use super::observer::{Observer, Progress};
use super::outcome::{OptimizeError, SearchOutcome, failed};
use super::prepare::{select_kernels, target};
use super::request::SearchRequest;
use super::search_queue::wait_in_queue;
use super::speedup::Speedup;

/// Timing pairs, as many as before an offer.
const PAIRS: usize = 188;

/// Judges the file against its text before a run. Nothing is offered and nothing is written to the journal.
pub(super) fn remeasure(
    request: &SearchRequest,
    run: &str,
    observer: &dyn Observer,
) -> Result<SearchOutcome, OptimizeError> {
    let evaluator = &request.settings.evaluator;
    if !evaluator.predict.is_empty() {
        return Err(failed("measuring needs a GPU, but `evaluator.predict` selects a performance model instead"));
    }
    can_judge(&judge::RemoteJudges::from(evaluator))
        .map_err(|reason| failed(format!("measuring needs a GPU: {reason}")))?;
    let (run, entries) = read(&request.workspace, run).map_err(|error| failed(error.to_string()))?;
    let Some(JournalEntry::Begun(begun)) = entries.into_iter().next() else {
        return Err(failed("the run has no beginning"));
    };
    if normal_form(&begun.text) == normal_form(&request.text) {
        return Err(failed(format!("the file has not changed since `{run}` began: there is nothing to compare")));
    }
    // The calls are those of the text that the file is compared with.
    let before = SearchRequest { text: begun.text.clone(), subject: begun.subject, ..request.clone() };
    let kernels = select_kernels(&Module::build(&syntax::Source::parse(before.text.as_str())), &before)?;
    let _ticket = wait_in_queue(request, observer)?;
    let waiting = || !observer.cancelled();
    let within = (&judge::RemoteJudges::from(evaluator), &judge::CandidateLimits::from(&evaluator.limits));
    let started = Evaluator::start_beside(&request.python, within, &waiting, || target(&before, observer, kernels));
    let (bench, target) =
        started.map_err(|error| if observer.cancelled() { OptimizeError::Cancelled } else { error })?;
    observer.progress(&Progress { fraction: 0.5, ..Progress::before("measuring") });
    let scratch = tempfile::tempdir().map_err(|error| failed(format!("cannot make a scratch folder: {error}")))?;
    let write = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).map_err(|error| failed(format!("cannot write {}: {error}", path.display())))?;
        Ok::<_, OptimizeError>(path)
    };
    let effort = Effort { sanitizer: None, first_pairs: PAIRS, full: PAIRS, contender: 0.0, ..Effort::default() };
    let task = Task {
        original: write("original.py", &begun.text)?,
        candidate: write("candidate.py", &request.text)?,
        folder: request.file.parent().unwrap_or(Path::new(".")).to_owned(),
        workloads: target.workloads,
        effort,
        known: Vec::new(),
        unwanted: Arc::default(),
    };
    let verdict = judge(&bench, &task, observer)?;
    let summary = summary(&target.name, &run, &verdict, &bench)?;
    Ok(SearchOutcome { kernel: target.name, evaluated: 1, remembered: 0, offer: None, summary, run })
}

/// Judges a candidate and waits for the verdict, unless the search is stopped.
pub(super) fn judge(bench: &Evaluator, task: &Task, observer: &dyn Observer) -> Result<Verdict, OptimizeError> {
    std::thread::scope(|scope| {
        let judging = scope.spawn(|| bench.judge(task));
        while !judging.is_finished() {
            if observer.cancelled() {
                bench.leave();
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let verdict = judging.join().map_err(|_| failed("the judge crashed, which is a bug"))?;
        if observer.cancelled() { Err(OptimizeError::Cancelled) } else { Ok(verdict) }
    })
}

fn summary(name: &str, run: &str, verdict: &Verdict, bench: &Evaluator) -> Result<String, OptimizeError> {
    match &verdict.outcome {
        Outcome::Predicted => Err(failed("a performance model cannot measure")),
        Outcome::Accepted => Ok(match Speedup::credible(&verdict.measured, &bench.environment()) {
            Ok(speedup) => format!("`{name}` is {}, than before `{run}`.", speedup.label()),
            Err(why) => format!("`{name}` is not certainly faster than before `{run}`: {why}."),
        }),
        Outcome::Refused { reason, evidence, .. } => {
            Ok(format!("`{name}` does not compute what it did before `{run}` ({reason:?}): {}", last_lines(evidence)))
        }
        Outcome::Undecided { why, .. } => Err(failed(why.clone())),
    }
}
