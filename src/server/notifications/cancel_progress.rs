//! The notification `window/workDoneProgress/cancel`.

use tower_lsp::gen_lsp_types as lsp;

use crate::server::owner::Owner;

/// Stops the job whose progress the user has cancelled.
pub(crate) fn handle(owner: &mut Owner, params: lsp::WorkDoneProgressCancelParams) {
    if let lsp::ProgressToken::String(job) = params.token {
        owner.jobs.cancel(&job);
    }
}
