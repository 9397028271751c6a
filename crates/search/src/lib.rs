//! The search for a faster version of a kernel: it proposes candidates, has them judged and measured, and offers
//! the best.

mod bandit;
mod call_measurements;
mod confirm;
mod external_uses;
mod history;
mod idle_wait;
mod journal;
mod kernel_regression;
mod model_costs;
mod observer;
mod operators;
mod outcome;
mod prepare;
mod propose;
mod refusal_cache;
mod remeasure;
mod report;
mod representative_pool;
mod request;
mod resume;
mod run;
mod search_lessons;
mod search_queue;
mod search_space;
mod size_dispatch;
mod skill_list;
mod speedup;
mod stopping;
mod stragglers;
mod tree;
mod verdict_handling;

pub use history::{PastRun, RunState, history};
pub use journal::{JournalError, runs};
pub use model_costs::ModelCosts;
pub use observer::{Observer, Progress};
pub use operators::{delete_transcripts, key_source, recipient, transcript_path};
pub use outcome::{Offer, OptimizeError, SearchOutcome};
pub use report::{
    CallTimes, Confirmation, Detail, OperatorStats, RefusalSummary, Report, ReportChange, TriedCandidate,
};
pub use request::{OptimizeScope, SearchAction, SearchRequest};
pub use resume::resumable;
pub use skill_list::{SkillFacts, skills};
pub use speedup::{CallSpeedup, Speedup};

/// Searches for a faster version, or measures one again. Blocks until done; call it on a thread of its own.
///
/// # Errors
/// Returns an [`OptimizeError`] when the search was cancelled, was not allowed to run the user's program, or could
/// not run.
pub fn optimize(request: &SearchRequest, observer: &dyn Observer) -> Result<SearchOutcome, OptimizeError> {
    match &request.work {
        SearchAction::Measure(run) => remeasure::remeasure(request, run, observer),
        SearchAction::Search | SearchAction::GoOn(_) => run::optimize(request, observer),
    }
}
