//! Searches and recordings in progress, and a cache of the runs that have ended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::Span;
use search::{Offer, OptimizeScope, PastRun, RunState, history};

use super::unit::Unit;

/// The command that stops a job. It takes `{job}`, the name of a search or a recording.
pub(crate) const CANCEL: &str = "warpsmith.cancel";

/// Time limit for searches to stop when the server ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Lifetime of the cached list of runs.
const HISTORY: Duration = Duration::from_secs(5);

/// A search, from its start until its offer was accepted or declined.
pub(crate) struct Job {
    /// The text at the start of the search.
    pub(crate) unit: Rc<Unit>,
    pub(crate) subject: OptimizeScope,
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) stage: JobStage,
}

impl Job {
    /// The name of the kernel or function that is optimized.
    pub(crate) fn name(&self) -> &str {
        self.subject.name().unwrap_or("the file")
    }

    /// The spans of the text that must be unchanged for the offer to be valid.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let module = &self.unit.module;
        match &self.subject {
            OptimizeScope::Kernel(name) => module.kernel(name).into_iter().map(|kernel| kernel.span).collect(),
            OptimizeScope::Function(name) => {
                let hosts = module.hosts.iter().filter(|host| host.qualname == *name).map(|host| host.span);
                hosts.chain(module.kernels.iter().map(|kernel| kernel.span)).collect()
            }
            OptimizeScope::File => module.kernels.iter().map(|kernel| kernel.span).collect(),
        }
    }
}

/// A program that runs under the recorder.
pub(crate) struct RecordingProcess {
    /// The file whose calls are recorded.
    pub(crate) uri: lsp::Uri,
    /// The command as it is shown to the user.
    pub(crate) shown: String,
    pub(crate) cancelled: Arc<AtomicBool>,
}

/// How far a search is.
pub(crate) enum JobStage {
    Searching,
    /// The user was asked whether to apply the offer.
    Asking(Box<Offer>),
    /// The editor applies an edit that should lead to this text.
    Applying {
        text: String,
        was_asked: bool,
    },
}

/// All searches and recordings.
pub(crate) struct Jobs {
    pub(crate) jobs: HashMap<String, Job>,
    recordings: HashMap<String, RecordingProcess>,
    /// The runs of each workspace, and when they were read.
    history: HashMap<PathBuf, (Instant, Vec<PastRun>)>,
    count: usize,
    /// Each search and each recording holds a clone of this sender until it has ended.
    pub(crate) running: mpsc::Sender<()>,
    all_ended: mpsc::Receiver<()>,
}

impl Default for Jobs {
    fn default() -> Self {
        let (running, all_ended) = mpsc::channel();
        let (jobs, recordings, history) = Default::default();
        Self { jobs, recordings, history, count: 0, running, all_ended }
    }
}

impl Jobs {
    pub(crate) fn next_id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("warpsmith/{kind}/{}", self.count)
    }

    /// Adds a recording; its thread holds the sender until it has ended.
    pub(crate) fn begin_recording(&mut self, recording: RecordingProcess) -> (String, mpsc::Sender<()>) {
        let id = self.next_id("record");
        self.recordings.insert(id.clone(), recording);
        (id, self.running.clone())
    }

    /// Removes a recording that has ended.
    pub(crate) fn end_recording(&mut self, id: &str) -> Option<RecordingProcess> {
        self.recordings.remove(id)
    }

    /// The name of the recording that runs for a file.
    pub(crate) fn recording(&self, uri: &lsp::Uri) -> Option<&String> {
        self.recordings.iter().find(|(_, recording)| recording.uri == *uri).map(|(id, _)| id)
    }

    fn flags(&self) -> impl Iterator<Item = (&String, &Arc<AtomicBool>)> {
        let searches = self.jobs.iter().map(|(id, job)| (id, &job.cancelled));
        searches.chain(self.recordings.iter().map(|(id, recording)| (id, &recording.cancelled)))
    }

    pub(crate) fn set_stage(&mut self, id: &str, stage: JobStage) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.stage = stage;
        }
    }

    /// The last run that searched this, unless a process is still working on it.
    pub(crate) fn last_run(&mut self, workspace: &Path, file: &Path, subject: &OptimizeScope) -> Option<PastRun> {
        let known = self.history.get(workspace).filter(|(at, _)| at.elapsed() < HISTORY);
        if known.is_none() {
            self.history.insert(workspace.to_owned(), (Instant::now(), history(workspace)));
        }
        let (_, runs) = self.history.get(workspace)?;
        let mut own = runs.iter().filter(|past| past.file == file && past.subject == *subject);
        own.next().filter(|past| past.state != RunState::Running).cloned()
    }

    /// Drops the cached lists of runs.
    pub(crate) fn look_for_runs(&mut self) {
        self.history.clear();
    }

    /// The name of the search in progress for this subject.
    pub(crate) fn searching(&self, uri: &lsp::Uri, subject: &OptimizeScope) -> Option<&String> {
        let wanted =
            |job: &Job| matches!(job.stage, JobStage::Searching) && job.unit.uri == *uri && job.subject == *subject;
        self.jobs.iter().find(|(_, job)| wanted(job)).map(|(id, _)| id)
    }

    /// Whether a search or a recording is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        let is_searching = |job: &Job| matches!(job.stage, JobStage::Searching);
        !self.recordings.is_empty() || self.jobs.values().any(is_searching)
    }

    /// Asks a job to stop. Returns whether there is such a job.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let found = self.flags().find(|(known, _)| *known == id);
        found.inspect(|(_, cancelled)| cancelled.store(true, Ordering::SeqCst)).is_some()
    }

    /// Asks all jobs to stop.
    pub(crate) fn cancel_all(&self) {
        self.flags().for_each(|(_, cancelled)| cancelled.store(true, Ordering::SeqCst));
    }

    /// Stops all jobs and waits for them, up to a time limit.
    pub(crate) fn stop(self) {
        self.cancel_all();
        drop(self.running);
        if self.all_ended.recv_timeout(STOP_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("a search or a recording did not stop in time");
        }
    }
}
