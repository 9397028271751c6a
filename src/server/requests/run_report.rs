//! The request `warpsmith/search`: `{uri, run}` is answered with the report of a run, and `{uri, run, candidate}` with the details
//! of a candidate.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use search::{Detail, Report};

use crate::server::from_lsp;
use crate::server::owner::Owner;
use crate::server::reply::{ReplySender, answer, refused};
use crate::server::search_feed::{confirmation, short};

/// The parameters of the request about a run.
#[derive(Debug, Deserialize)]
pub(crate) struct RunQuery {
    /// A file of the run's workspace.
    uri: lsp::Uri,
    run: String,
    /// The number of a candidate; without it the request is about the whole run.
    candidate: Option<usize>,
}

/// Answers the request on another thread, because the run has to be read.
pub(crate) fn handle(owner: &mut Owner, query: RunQuery, reply: ReplySender<Value>) {
    let workspace = owner.root_at(&query.uri, from_lsp::path(&query.uri).as_deref());
    let work = move || answer(reply, || about_run(&workspace, &query));
    // Without a thread the reply is dropped, which answers the request with an error.
    if let Err(error) = std::thread::Builder::new().name("run".to_owned()).spawn(work) {
        tracing::warn!(%error, "a request for a report cannot be answered");
    }
}

fn about_run(workspace: &Path, query: &RunQuery) -> Result<Value> {
    let unreadable = |error: search::JournalError| refused(error.to_string());
    if let Some(id) = query.candidate {
        let detail = Detail::of(workspace, &query.run, id).map_err(unreadable)?;
        return detail.map(|detail| json!(detail)).ok_or_else(|| refused(format!("there is no candidate {id}")));
    }
    let mut report = Report::of(workspace, &query.run).map_err(unreadable)?;
    let (page, label) = (report.sections(), report.speedup.as_ref().map(|speedup| speedup.label()));
    let confirmations: Vec<Value> = report.confirmations.drain(..).map(|one| confirmation(&one)).collect();
    report.candidates = report.candidates.into_iter().map(short).collect();
    Ok(json!({ "report": report, "confirmations": confirmations, "page": page, "label": label }))
}
