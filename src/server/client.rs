//! Requests and notifications to the client. They are made on a task of their own, so the owner never waits.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tower_lsp::Client;
use tower_lsp::gen_lsp_types as lsp;

type Call = Box<dyn FnOnce(Client) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

enum Queued {
    /// A notification, which keeps its place among the others.
    InOrder(Call),
    /// A request or conversation, which nothing waits for.
    Concurrent(Call),
    /// The diagnostics that [`ClientSender::publish`] has stored for this document.
    Publish(lsp::Uri),
}

type Outbox = Arc<Mutex<HashMap<lsp::Uri, lsp::PublishDiagnosticsParams>>>;

/// The sending end of the queue of calls, for the owner and the searches.
#[derive(Clone)]
pub(crate) struct ClientSender {
    queue: mpsc::UnboundedSender<Queued>,
    outbox: Outbox,
}

/// The other end of [`ClientSender`].
pub(crate) struct ClientReceiver {
    queue: mpsc::UnboundedReceiver<Queued>,
    outbox: Outbox,
}

impl ClientSender {
    /// Creates both ends.
    pub(crate) fn new() -> (Self, ClientReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let outbox = Outbox::default();
        (Self { queue: sender, outbox: Arc::clone(&outbox) }, ClientReceiver { queue: receiver, outbox })
    }

    fn push(&self, queued: Queued) {
        // Without a receiver the server is about to end, so the call can be dropped.
        let _ = self.queue.send(queued);
    }

    /// Queues a notification. Notifications are sent one after the other.
    pub(crate) fn in_order<F>(&self, call: impl FnOnce(Client) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.push(Queued::InOrder(Box::new(|client| Box::pin(call(client)))));
    }

    /// Queues a request or a conversation, which runs on a task of its own, because the client may take its time.
    pub(crate) fn concurrently<F>(&self, call: impl FnOnce(Client) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.push(Queued::Concurrent(Box::new(|client| Box::pin(call(client)))));
    }

    /// Shows a message to the user.
    pub(crate) fn show(&self, kind: lsp::MessageType, text: impl Into<String>) {
        let text = text.into();
        self.in_order(move |client| async move { client.show_message(kind, text).await });
    }

    /// Publishes diagnostics. They replace older ones of the same document that are still in the queue.
    pub(crate) fn publish(&self, params: lsp::PublishDiagnosticsParams) {
        let uri = params.uri.clone();
        let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        if outbox.insert(uri.clone(), params).is_none() {
            self.push(Queued::Publish(uri));
        }
    }

    /// Asks the client to pull diagnostics again.
    pub(crate) fn refresh_diagnostics(&self) {
        self.concurrently(|client| async move {
            note_refusal("workspace/diagnostic/refresh", client.workspace_diagnostic_refresh().await);
        });
    }

    /// Asks the client to pull inlay hints again.
    pub(crate) fn refresh_hints(&self) {
        self.concurrently(|client| async move {
            note_refusal("workspace/inlayHint/refresh", client.inlay_hint_refresh().await);
        });
    }

    /// Asks the client to pull code lenses again.
    pub(crate) fn refresh_lenses(&self) {
        self.concurrently(|client| async move {
            note_refusal("workspace/codeLens/refresh", client.code_lens_refresh().await);
        });
    }

    /// Registers for notifications from the client.
    pub(crate) fn register(&self, registrations: Vec<lsp::Registration>) {
        self.concurrently(|client| async move {
            note_refusal("client/registerCapability", client.register_capability(registrations).await);
        });
    }

    /// Asks the client to open a document.
    pub(crate) fn show_document(&self, uri: lsp::Uri) {
        self.open(lsp::ShowDocumentParams::new(uri, None, Some(true), None));
    }

    /// Asks the client to open a page outside of the editor.
    pub(crate) fn show_page(&self, uri: lsp::Uri) {
        self.open(lsp::ShowDocumentParams::new(uri, Some(true), None, None));
    }

    fn open(&self, params: lsp::ShowDocumentParams) {
        self.concurrently(|client| async move {
            let uri = params.uri.clone();
            if !matches!(client.show_document(params).await, Ok(true)) {
                client.show_message(lsp::MessageType::Info, format!("The editor does not open {}", uri.as_str())).await;
            }
        });
    }

    /// Asks the user to choose one of the actions below a message. `then` gets the title of the chosen one, or `None` when
    /// the message was dismissed.
    pub(crate) fn ask(&self, text: String, actions: &[&str], then: impl FnOnce(Option<String>) + Send + 'static) {
        let action = |title: &&str| lsp::MessageActionItem { title: (*title).to_owned(), ..Default::default() };
        let offered: Vec<_> = actions.iter().map(action).collect();
        self.concurrently(|client| async move {
            let answer = client.show_message_request(lsp::MessageType::Info, text, Some(offered)).await;
            then(answer.ok().flatten().map(|chosen| chosen.title));
        });
    }
}

/// Makes the calls until the owner is gone.
pub(crate) async fn run(client: Client, mut receiver: ClientReceiver) {
    while let Some(queued) = receiver.queue.recv().await {
        match queued {
            Queued::InOrder(call) => call(client.clone()).await,
            Queued::Concurrent(call) => drop(tokio::spawn(call(client.clone()))),
            Queued::Publish(uri) => {
                let waiting = receiver.outbox.lock().unwrap_or_else(PoisonError::into_inner).remove(&uri);
                if let Some(params) = waiting {
                    client.publish_diagnostics(params.uri, params.diagnostics, params.version).await;
                }
            }
        }
    }
}

fn note_refusal(method: &str, result: tower_lsp::jsonrpc::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(method, %error, "the client refused");
    }
}
