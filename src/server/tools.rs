//! The features that the server calls, which tests can replace.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use judge::Devices;
use learn::LearnedFromStore;
use rules::learned::LearnedRules;
use rules::{Diagnostic, RuleContext, Selection};
use runtime::python::environment::{InterpreterSearch, PythonEnvironment};
use runtime::python::state_folder;
use search::{Observer, OptimizeError, SearchOutcome, SearchRequest};
use store::{FalseAlarm, Store};
use workload::{RecordRequest, RecordingError, RecordingResult};

use super::memory_writer::{self, MemoryNote};
use super::quiet_learning::learn_quietly;

type Check = dyn Fn(&RuleContext<'_>, &Selection, &LearnedRules) -> Vec<Diagnostic> + Send + Sync;
type Optimize = dyn Fn(&SearchRequest, &dyn Observer) -> Result<SearchOutcome, OptimizeError> + Send + Sync;
type Record = dyn Fn(&RecordRequest, &dyn Fn() -> bool) -> Result<RecordingResult, RecordingError> + Send + Sync;
type Learn = dyn Fn(&Path, &Arc<AtomicBool>) -> Result<LearnedFromStore, String> + Send + Sync;
type FindEnvironment = dyn Fn(&InterpreterSearch<'_>) -> Option<PythonEnvironment> + Send + Sync;

/// The features behind the server, as functions.
#[derive(Clone)]
pub struct Tools {
    /// Runs the rules, and the learned ones, over a file.
    pub check: Arc<Check>,
    /// Searches for a faster kernel; blocks.
    pub optimize: Arc<Optimize>,
    /// Runs a command under the recorder for as long as the function returns true; blocks.
    pub record: Arc<Record>,
    /// Looks for CUDA devices; may take a second.
    pub devices: Arc<dyn Fn() -> Devices + Send + Sync>,
    /// Stores a false alarm of a rule that Triton disproved; must not wait.
    pub store_false_alarm: Arc<dyn Fn(FalseAlarm) + Send + Sync>,
    /// Reads the skill memory from the user's store.
    pub memory: Arc<dyn Fn() -> LearnedRules + Send + Sync>,
    /// Queues a note for the skill memory; must not wait.
    pub remember: Arc<dyn Fn(MemoryNote) + Send + Sync>,
    /// Learns rules from the stored failures with the Triton of an interpreter, until the flag is set; blocks.
    pub learn: Arc<Learn>,
    /// Finds the Python environment of files in a folder; may read the file system.
    pub environment: Arc<FindEnvironment>,
}

/// Stores a false alarm on a thread of its own; one is written at a time.
fn store_false_alarm(alarm: FalseAlarm) {
    static STORING: Mutex<()> = Mutex::new(());
    let store = move || {
        let _one = STORING.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = Store::of_user(&state_folder()).and_then(|mut store| store.keep_false_alarm(&alarm));
        if let Err(error) = stored {
            tracing::warn!(%error, "a false alarm cannot be stored");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("false alarm".to_owned()).spawn(store) {
        tracing::warn!(%error, "a false alarm cannot be stored");
    }
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            check: Arc::new(rules::check_with),
            optimize: Arc::new(search::optimize),
            record: Arc::new(|what, going| workload::record(what, going)),
            devices: Arc::new(judge::devices),
            store_false_alarm: Arc::new(store_false_alarm),
            memory: Arc::new(memory_writer::memory),
            remember: Arc::new(memory_writer::remember),
            learn: Arc::new(learn_quietly),
            environment: Arc::new(super::target::environment),
        }
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").finish_non_exhaustive()
    }
}
