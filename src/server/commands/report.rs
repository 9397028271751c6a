//! The report of the last search of a kernel, opened by the editor.
//!
//! The command [`REPORT`] takes `{uri, kernel}`, or `{uri, run}` for another run than the last.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, Result};

use runtime::python::cache_folder;
use search::{OptimizeScope, PastRun, Report};

use crate::server::owner::Owner;
use crate::server::reply::{read, refused};
use crate::server::unit::Unit;

/// The command that opens a report.
pub(crate) const REPORT: &str = "warpsmith.report";

#[derive(Deserialize)]
struct Arguments {
    uri: lsp::Uri,
    kernel: Option<String>,
    run: Option<String>,
}

impl Owner {
    /// The last search of this subject, in this server or elsewhere.
    pub(crate) fn last_run(&mut self, unit: &Unit, subject: &OptimizeScope) -> Option<PastRun> {
        let workspace = self.root_of(unit);
        self.jobs.last_run(&workspace, unit.path.as_deref()?, subject)
    }

    /// Writes a report and asks the client to open it. This is done on another thread, because the run has to be
    /// read.
    pub(crate) fn report_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let Arguments { uri, kernel, run } = read(argument)?;
        let unit = self.documents.unit(&uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let last = || self.last_run(&unit, &OptimizeScope::Kernel(kernel?)).map(|past| past.run);
        let Some(run) = run.or_else(last) else {
            return Err(refused(
                "no search of this kernel has ended yet; `warpsmith report --list` lists all".to_owned(),
            ));
        };
        let (workspace, client, can_open) =
            (self.root_of(&unit), self.client.clone(), self.capabilities.shows_documents);
        let name = run.clone();
        let work = move || match page(&workspace, &run) {
            Err(text) => client.show(lsp::MessageType::Error, text),
            Ok(path) => match lsp::Uri::from_file_path(&path).ok().filter(|_| can_open) {
                Some(uri) => client.show_page(uri),
                None => client.show(lsp::MessageType::Info, format!("the report is in {}", path.display())),
            },
        };
        let started = std::thread::Builder::new().name("report".to_owned()).spawn(work);
        started.map_err(|error| Error::invalid_params(format!("could not start a thread: {error}")))?;
        Ok(Some(json!({ "run": name })))
    }
}

/// Writes the page of a run and returns its path.
fn page(workspace: &std::path::Path, run: &str) -> std::result::Result<PathBuf, String> {
    let report = Report::of(workspace, run).map_err(|error| error.to_string())?;
    let folder = cache_folder().join("reports");
    let path = folder.join(format!("{}.html", report.run));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, report.html()));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(path)
}
