//! The request `shutdown`, the last one: all work stops.

use tower_lsp::jsonrpc::Result;

use crate::server::owner::Owner;

/// Stops all searches and recordings.
pub(crate) fn handle(owner: &mut Owner, (): ()) -> Result<()> {
    owner.jobs.cancel_all();
    Ok(())
}
