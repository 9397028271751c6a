//! The notifications `workspace/did…`: folders, settings and files have changed.

use std::time::Duration;

use serde_json::Value;
use tower_lsp::Client;
use tower_lsp::gen_lsp_types as lsp;

use crate::server::owner::Owner;
use crate::server::settings;

/// Time limit for the client's settings; after it, files are checked without them.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Suffixes of files that determine settings or interpreters.
const SETTINGS: [&str; 6] = [".toml", ".cfg", ".lock", "/.pdm-python", "/.python-version", ".dist-info/METADATA"];

/// Handles `didChangeWorkspaceFolders`.
pub(crate) fn folders_changed(owner: &mut Owner, params: lsp::DidChangeWorkspaceFoldersParams) {
    let change = params.event;
    owner.folders.retain(|folder| !change.removed.iter().any(|removed| removed.uri == *folder));
    owner.folders.extend(change.added.into_iter().map(|added| added.uri));
    owner.configuration_changed(Value::Null);
}

/// Handles `didChangeConfiguration`; clients that cannot be asked send the new settings along.
pub(crate) fn configuration_changed(owner: &mut Owner, params: lsp::DidChangeConfigurationParams) {
    owner.configuration_changed(params.settings);
}

/// Handles `didChangeWatchedFiles`: files were written, created or removed.
pub(crate) fn files_changed(owner: &mut Owner, params: lsp::DidChangeWatchedFilesParams) {
    let mut uris = params.changes.iter().map(|change| change.uri.as_str());
    let is_of_settings = |uri: &str| SETTINGS.iter().any(|end| uri.ends_with(end));
    // A client that does not say what has changed may mean any file.
    let settings = params.changes.is_empty() || uris.any(is_of_settings);
    let has_news = owner.documents.refresh_imports();
    if settings {
        owner.settings.forget();
        owner.forget_other_devices();
    }
    if settings || has_news {
        owner.check_all_again();
    }
    if settings {
        owner.compile_all_later();
    }
}

impl Owner {
    /// Asks the client for its settings, where it can be asked.
    pub(crate) fn ask_for_settings(&mut self) {
        if self.capabilities.configuration {
            let scopes: Vec<_> = self.folders.iter().cloned().map(Some).chain([None]).collect();
            let events = self.events.clone();
            self.client.concurrently(|client| async move {
                let answers = configuration(&client, scopes).await;
                events.run(|owner| owner.settings_received(answers));
            });
        }
    }

    fn configuration_changed(&mut self, value: Value) {
        if self.capabilities.configuration {
            return self.ask_for_settings();
        }
        if !value.is_null() {
            self.settings.set_client(vec![(None, settings::section(value))]);
        }
        self.settings.forget();
        self.forget_other_devices();
        self.check_all_again();
        self.compile_all_later();
    }

    /// Takes the client's settings, for each folder and for files outside of all folders.
    fn settings_received(&mut self, answers: Vec<(Option<lsp::Uri>, Value)>) {
        self.settings.set_client(answers);
        let were_awaited = std::mem::replace(&mut self.waits_for_settings, false);
        if !were_awaited {
            self.forget_other_devices();
            self.check_all_again();
            self.compile_all_later();
        }
    }
}

/// The settings of each folder; empty when the client does not answer.
async fn configuration(client: &Client, folders: Vec<Option<lsp::Uri>>) -> Vec<(Option<lsp::Uri>, Value)> {
    let item = |scope_uri: &Option<lsp::Uri>| lsp::ConfigurationItem {
        scope_uri: scope_uri.clone(),
        section: Some(settings::SECTION.to_owned()),
    };
    let items = folders.iter().map(item).collect();
    match tokio::time::timeout(TIMEOUT, client.configuration(items)).await {
        Ok(Ok(values)) => folders.into_iter().zip(values).collect(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the client does not send its settings");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("the client takes too long to send its settings");
            Vec::new()
        }
    }
}
