//! Learning at quiet moments: when nothing was edited for a while, rules are learned from the kernels in the user's store
//! that Triton has rejected, as `warpsmith memory learn` does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower_lsp::gen_lsp_types as lsp;

use learn::{LearnedFromStore, LearningError, Oracle, StoreLearning, learn_from_store};
use runtime::python::state_folder;
use store::Store;

use super::idle_timer::IdleTimer;
use super::memory_writer;
use super::owner::Owner;

/// Time after which no further kind of failure is begun; the rest is left for the next quiet moment.
const TIME: Duration = Duration::from_secs(30);

/// The state of learning at quiet moments.
#[derive(Default)]
pub(crate) struct QuietLearning {
    timer: Option<IdleTimer>,
    /// The time without an edit before learning begins, from the settings of the file that was compiled last; zero turns
    /// learning off.
    pub(crate) delay: Duration,
    /// The interpreter whose Triton has rejected the kernels that wait for a quiet moment.
    pending: Option<PathBuf>,
    /// Stops the learning in progress.
    in_progress: Option<Arc<AtomicBool>>,
}

impl QuietLearning {
    /// Stops what is in progress and begins the quiet time anew, because something was edited.
    pub(crate) fn disturb(&self) {
        if let Some(stopped) = &self.in_progress {
            stopped.store(true, Ordering::Relaxed);
        }
        self.wait();
    }

    /// Begins the quiet time anew, if something waits for it.
    fn wait(&self) {
        if let Some(timer) = self.timer.as_ref().filter(|_| self.pending.is_some()) {
            timer.restart(self.delay);
        }
    }
}

impl Owner {
    /// Notes that a kernel was stored that Triton has rejected: rules are learned once nothing is edited any more.
    pub(crate) fn learn_when_quiet(&mut self) {
        let Some(interpreter) = self.compiler.of.as_ref().filter(|_| !self.quiet_learning.delay.is_zero()) else {
            return;
        };
        self.quiet_learning.pending = Some(interpreter.python.clone());
        if self.quiet_learning.timer.is_none() {
            let events = self.events.clone();
            match IdleTimer::start(move || events.run(Owner::on_quiet)) {
                Ok(timer) => self.quiet_learning.timer = Some(timer),
                Err(error) => tracing::warn!(%error, "nothing is learned at quiet moments"),
            }
        }
        self.quiet_learning.wait();
    }

    /// Handles a quiet moment. While something else needs the processors, the next one is awaited.
    fn on_quiet(&mut self) {
        let is_busy = self.jobs.is_busy() || self.compiler.is_asking() || self.compiler.has_more();
        if is_busy || self.quiet_learning.in_progress.is_some() {
            self.quiet_learning.wait();
            return;
        }
        let Some(python) = self.quiet_learning.pending.take() else { return };
        let stopped = Arc::new(AtomicBool::new(false));
        self.quiet_learning.in_progress = Some(Arc::clone(&stopped));
        let (learn, events) = (Arc::clone(&self.tools.learn), self.events.clone());
        let work = move || {
            let learned = catch_unwind(AssertUnwindSafe(|| learn(&python, &stopped)))
                .unwrap_or_else(|_| Err("learning has panicked".to_owned()));
            events.run(move |owner| owner.has_learned(learned, python));
        };
        if let Err(error) = std::thread::Builder::new().name("learning".to_owned()).spawn(work) {
            tracing::warn!(%error, "nothing is learned at quiet moments");
            self.quiet_learning.in_progress = None;
        }
    }

    fn has_learned(&mut self, learned: Result<LearnedFromStore, String>, python: PathBuf) {
        let stopped = self.quiet_learning.in_progress.take();
        let was_stopped = stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed));
        let is_unfinished = match learned {
            Ok(learned) => {
                tracing::info!(rules = learned.rules.len(), left = learned.left, "learned at a quiet moment");
                if !learned.rules.is_empty() {
                    self.tell_rules(&learned);
                    self.read_memory_later();
                }
                learned.left > 0
            }
            Err(error) => {
                tracing::info!(error, "nothing was learned at a quiet moment");
                was_stopped
            }
        };
        if is_unfinished && self.quiet_learning.pending.is_none() {
            self.quiet_learning.pending = Some(python);
            self.quiet_learning.wait();
        }
    }

    /// Writes the new rules into the editor's log.
    fn tell_rules(&self, learned: &LearnedFromStore) {
        let lines = learned.rules.iter().map(|rule| format!("{}  {}", rule.code, rule.plain_sentence()));
        let text = format!(
            "Learned from kernels that Triton has rejected (`warpsmith memory show CODE` shows a rule):\n{}",
            lines.collect::<Vec<_>>().join("\n")
        );
        self.client.in_order(move |client| async move { client.log_message(lsp::MessageType::Info, text).await });
    }
}

/// Learns from the failures in the user's store with the Triton of an interpreter; blocks. Once `stopped` is set, it ends
/// soon and writes nothing.
///
/// # Errors
/// Returns the reason, as text for the log, when nothing could be learned.
pub(crate) fn learn_quietly(python: &Path, stopped: &Arc<AtomicBool>) -> Result<LearnedFromStore, String> {
    // The failures that are still to be written are included.
    memory_writer::flush();
    let learn = || -> Result<LearnedFromStore, LearningError> {
        let mut store = Store::of_user(&state_folder())?;
        let settings = StoreLearning { seed: 1, time: TIME, origin: "editor".to_owned() };
        let oracle = Oracle::start_in_background(python.to_owned(), Arc::clone(stopped))?;
        learn_from_store(&mut store, &oracle, &settings, &|stage| tracing::debug!("learning: {}", stage.name()))
    };
    learn().map_err(|error| error.to_string())
}
