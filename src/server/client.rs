//! Requests and notifications to the client. They run on a task of their own, so the owner never waits; answers
//! come back as events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tower_lsp::gen_lsp_types as lsp;

use super::event::{EventSender, ServerEvent};
use super::model;
use super::optimize::OptimizeParams;
use super::progress::{self, ProgressState};
use super::search::{self, ProgressFeed};
use super::settings::SECTION;
use super::status::{ServerStatus, StatusNotification};

/// Time limit for the client's settings; after it, files are checked without them.
const CONFIGURATION_TIMEOUT: Duration = Duration::from_secs(2);
/// The label of the button that accepts an offer.
const APPLY: &str = "Apply";
const DISCARD: &str = "Discard";

/// A request or notification to the client.
pub(super) enum ClientCommand {
    /// Send the diagnostics that [`ClientSender::publish`] has stored for this document.
    Publish(lsp::Uri),
    /// Show a message.
    Show(lsp::MessageType, String),
    /// Send the status of the server.
    Status(ServerStatus),
    /// Ask for the settings of these folders.
    Configuration(Vec<Option<lsp::Uri>>),
    /// Ask the client to pull diagnostics again.
    RefreshDiagnostics,
    /// Ask the client to pull inlay hints again.
    RefreshHints,
    /// Ask the client to pull code lenses again.
    RefreshLenses,
    /// Ask the client to open a document.
    ShowDocument(lsp::Uri),
    /// Ask the client to open a page outside of the editor.
    ShowPage(lsp::Uri),
    /// Register for notifications from the client.
    Register(Vec<lsp::Registration>),
    /// Show the progress of a job until the sender of its states is dropped.
    Progress { job: String, title: String, states: watch::Receiver<ProgressState> },
    /// Send the news of a search until it has ended.
    Search { job: String, feed: Arc<ProgressFeed> },
    /// Ask the user before their program is run or something is sent; the answer goes to the search that waits for
    /// it.
    Confirm { text: String, actions: [&'static str; 2], answer: std::sync::mpsc::Sender<bool> },
    /// Ask a language model of the editor; the reply goes to the search that waits for it.
    AskModel(model::PendingModelRequest),
    /// Ask the user how long a search may take and whether it may restructure kernels.
    AskSettings { text: String, choices: Vec<String>, asked: Box<OptimizeParams> },
    /// Ask the user whether a job's offer is to be applied.
    AskOffer { job: String, text: String },
    /// Apply a job's offer.
    ApplyOffer { job: String, label: String, edit: lsp::WorkspaceEdit },
}

type Outbox = Arc<Mutex<HashMap<lsp::Uri, lsp::PublishDiagnosticsParams>>>;

/// The sending end of the queue of calls, for the owner and the searches.
#[derive(Clone)]
pub(super) struct ClientSender {
    queue: mpsc::UnboundedSender<ClientCommand>,
    outbox: Outbox,
}

/// The other end of [`ClientSender`].
pub(super) struct ClientReceiver {
    queue: mpsc::UnboundedReceiver<ClientCommand>,
    outbox: Outbox,
}

impl ClientSender {
    /// Creates both ends.
    pub(super) fn new() -> (Self, ClientReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let outbox = Outbox::default();
        (Self { queue: sender, outbox: Arc::clone(&outbox) }, ClientReceiver { queue: receiver, outbox })
    }

    /// Queues a call.
    pub(super) fn send(&self, call: ClientCommand) {
        // Without a receiver the server is about to end, so the call can be dropped.
        let _ = self.queue.send(call);
    }

    /// Shows a message to the user.
    pub(super) fn show(&self, kind: lsp::MessageType, text: impl Into<String>) {
        self.send(ClientCommand::Show(kind, text.into()));
    }

    /// Publishes diagnostics. They replace older ones of the same document that are still in the queue.
    pub(super) fn publish(&self, params: lsp::PublishDiagnosticsParams) {
        let uri = params.uri.clone();
        let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        if outbox.insert(uri.clone(), params).is_none() {
            self.send(ClientCommand::Publish(uri));
        }
    }
}

/// Makes the calls until the owner is gone. Messages keep their order; questions are asked on tasks of their own.
pub(super) async fn run(client: tower_lsp::Client, mut receiver: ClientReceiver, events: EventSender) {
    while let Some(call) = receiver.queue.recv().await {
        match call {
            ClientCommand::Publish(uri) => {
                let waiting = receiver.outbox.lock().unwrap_or_else(PoisonError::into_inner).remove(&uri);
                if let Some(params) = waiting {
                    client.publish_diagnostics(params.uri, params.diagnostics, params.version).await;
                }
            }
            ClientCommand::Show(kind, text) => client.show_message(kind, text).await,
            ClientCommand::Status(status) => client.send_notification::<StatusNotification>(status).await,
            ClientCommand::Progress { job, title, states } => {
                tokio::spawn(progress::show(client.clone(), job, title, states));
            }
            ClientCommand::Search { job, feed } => {
                tokio::spawn(search::tell(client.clone(), job, feed));
            }
            ClientCommand::AskModel(asked) => {
                tokio::spawn(model::ask(client.clone(), asked));
            }
            question => {
                tokio::spawn(ask(client.clone(), question, events.clone()));
            }
        }
    }
}

/// Asks one question and sends the answer as an event.
async fn ask(client: tower_lsp::Client, question: ClientCommand, events: EventSender) {
    let answer = match question {
        ClientCommand::Configuration(folders) => ServerEvent::Configuration(configuration(&client, folders).await),
        ClientCommand::RefreshDiagnostics => {
            note("workspace/diagnostic/refresh", client.workspace_diagnostic_refresh().await);
            return;
        }
        ClientCommand::RefreshHints => {
            note("workspace/inlayHint/refresh", client.inlay_hint_refresh().await);
            return;
        }
        ClientCommand::RefreshLenses => {
            note("workspace/codeLens/refresh", client.code_lens_refresh().await);
            return;
        }
        ClientCommand::ShowDocument(_) | ClientCommand::ShowPage(_) => {
            let (ClientCommand::ShowDocument(uri) | ClientCommand::ShowPage(uri)) = &question else { return };
            let outside = matches!(question, ClientCommand::ShowPage(_)).then_some(true);
            let asked = lsp::ShowDocumentParams::new(uri.clone(), outside, outside.is_none().then_some(true), None);
            let shown = client.show_document(asked).await;
            if !matches!(shown, Ok(true)) {
                client.show_message(lsp::MessageType::Info, format!("The editor does not open {}", uri.as_str())).await;
            }
            return;
        }
        ClientCommand::Register(registrations) => {
            note("client/registerCapability", client.register_capability(registrations).await);
            return;
        }
        ClientCommand::AskSettings { text, choices, asked } => {
            let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
            match chosen(&client, text, &choices).await {
                Some(choice) => ServerEvent::SettingsChosen(asked, choice),
                None => return,
            }
        }
        ClientCommand::AskOffer { job, text } => {
            ServerEvent::OfferAnswered(job, choose(&client, text, [APPLY, DISCARD]).await)
        }
        ClientCommand::Confirm { text, actions, answer } => {
            // The search may have been stopped meanwhile.
            let _ = answer.send(choose(&client, text, actions).await);
            return;
        }
        ClientCommand::ApplyOffer { job, label, edit } => {
            let params = lsp::ApplyWorkspaceEditParams { label: Some(label), edit, metadata: None };
            let result = match client.send_request::<lsp::ApplyWorkspaceEditRequest>(params).await {
                Ok(answer) if answer.applied => Ok(()),
                Ok(answer) => Err(answer.failure_reason),
                Err(error) => Err(Some(error.to_string())),
            };
            ServerEvent::OfferApplied(job, result)
        }
        // `run` sends these itself, in order.
        ClientCommand::Publish(_)
        | ClientCommand::Show(..)
        | ClientCommand::Status(_)
        | ClientCommand::Progress { .. }
        | ClientCommand::Search { .. }
        | ClientCommand::AskModel(_) => return,
    };
    let _ = events.send(answer);
}

/// Whether the user chose the first of two actions.
async fn choose(client: &tower_lsp::Client, text: String, actions: [&str; 2]) -> bool {
    chosen(client, text, &actions).await.is_some_and(|chosen| chosen == actions[0])
}

/// The title of the action that the user chose; `None` when the message was dismissed.
async fn chosen(client: &tower_lsp::Client, text: String, actions: &[&str]) -> Option<String> {
    let action = |title: &str| lsp::MessageActionItem { title: title.to_owned(), ..Default::default() };
    let offered = Some(actions.iter().map(|title| action(title)).collect());
    let answer = client.show_message_request(lsp::MessageType::Info, text, offered).await;
    answer.ok().flatten().map(|chosen| chosen.title)
}

/// The settings of each folder; empty when the client does not answer.
async fn configuration(client: &tower_lsp::Client, folders: Vec<Option<lsp::Uri>>) -> Vec<(Option<lsp::Uri>, Value)> {
    let item = |scope_uri: &Option<lsp::Uri>| lsp::ConfigurationItem {
        scope_uri: scope_uri.clone(),
        section: Some(SECTION.to_owned()),
    };
    let items = folders.iter().map(item).collect();
    match tokio::time::timeout(CONFIGURATION_TIMEOUT, client.configuration(items)).await {
        Ok(Ok(values)) => folders.into_iter().zip(values).collect(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the client does not say its settings");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("the client takes too long to say its settings");
            Vec::new()
        }
    }
}

fn note(method: &str, result: tower_lsp::jsonrpc::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(method, %error, "the client refused");
    }
}
