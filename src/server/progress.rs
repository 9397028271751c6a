//! The progress of a job, as the editor shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::watch;
use tower_lsp::Client;
use tower_lsp::gen_lsp_types as lsp;

use llm::EditorModel;
use search::{Observer, Progress, Report, ReportChange};

use super::client::ClientSender;
use super::model::ClientModels;
use super::search_feed::ProgressSender;

/// Least time between two reports: at most ten a second.
const PERIOD: Duration = Duration::from_millis(100);

/// The state that is shown.
#[derive(Clone, Debug, Default)]
pub(crate) enum ProgressState {
    /// The job has begun.
    #[default]
    Begun,
    /// The job is running, with this progress.
    Running(Progress),
    /// The job has ended, with this message.
    Ended(String),
}

/// The observer of a search for the editor: it forwards the progress and the user's request to stop.
///
/// The progress in the editor ends when the watcher is dropped, however the search ends.
pub(crate) struct ProgressReporter {
    states: watch::Sender<ProgressState>,
    cancelled: Arc<AtomicBool>,
    client: ClientSender,
    /// The sender of news for clients that draw the search.
    pub(crate) teller: Option<ProgressSender>,
    /// Whether the client lets searches ask its language models.
    pub(crate) takes_model: bool,
}

impl ProgressReporter {
    /// Creates a watcher that stops the search once `cancelled` is set, and the receiver of its states.
    pub(crate) fn new(cancelled: Arc<AtomicBool>, client: ClientSender) -> (Self, watch::Receiver<ProgressState>) {
        let (states, receiver) = watch::channel(ProgressState::Begun);
        (Self { states, cancelled, client, teller: None, takes_model: false }, receiver)
    }

    /// Ends the progress with a short message.
    pub(crate) fn end(self, message: &str) {
        self.states.send_replace(ProgressState::Ended(message.to_owned()));
    }
}

/// The buttons of the question whether the user's program may be run.
const RUN: &str = "Run it once";
const DO_NOT_RUN: &str = "Cancel";
/// The buttons of the question whether something may be sent to a language model.
const SEND: &str = "Send";
const DO_NOT_SEND: &str = "Search without it";

impl Observer for ProgressReporter {
    fn progress(&self, progress: &Progress) {
        self.states.send_replace(ProgressState::Running(progress.clone()));
        if let Some(teller) = &self.teller {
            teller.progress(progress);
        }
    }

    fn noted(&self, report: &Report, changed: ReportChange) {
        if let Some(teller) = &self.teller {
            teller.noted(report, changed);
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn confirm(&self, question: &str) -> bool {
        self.ask(question, [RUN, DO_NOT_RUN])
    }

    fn may_send(&self, question: &str) -> bool {
        self.ask(question, [SEND, DO_NOT_SEND])
    }

    fn editor_model(&self) -> Option<Arc<dyn EditorModel>> {
        self.takes_model.then(|| Arc::new(ClientModels(self.client.clone())) as Arc<dyn EditorModel>)
    }
}

impl ProgressReporter {
    /// Asks the user and waits for the answer.
    fn ask(&self, question: &str, actions: [&'static str; 2]) -> bool {
        let (answer, answered) = mpsc::channel();
        self.client.ask(question.to_owned(), &actions, move |choice| {
            // The search may have been stopped meanwhile.
            let _ = answer.send(choice.as_deref() == Some(actions[0]));
        });
        while !self.cancelled() {
            match answered.recv_timeout(PERIOD) {
                Ok(yes) => return yes,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return false,
            }
        }
        false
    }
}

/// Shows progress under the token `job` until the watcher is dropped. Shows nothing when the client does not accept
/// it.
pub(crate) fn show(client: &ClientSender, job: String, title: String, states: watch::Receiver<ProgressState>) {
    client.concurrently(|client| report(client, job, title, states));
}

async fn report(client: Client, job: String, title: String, mut states: watch::Receiver<ProgressState>) {
    let token = lsp::ProgressToken::String(job); // a string: Zed knows no other
    if let Err(error) = client.create_work_done_progress(token.clone()).await {
        tracing::info!(%error, "the client shows no progress");
        return;
    }
    let progress = client.progress(token, title).with_cancel_button().with_percentage(0).begin().await;
    while states.changed().await.is_ok() {
        let state = states.borrow_and_update().clone();
        let ProgressState::Running(state) = state else { continue };
        progress.report_with_message(state.to_string(), percentage(state.fraction), None).await;
        tokio::time::sleep(PERIOD).await;
    }
    let last = states.borrow().clone();
    match last {
        ProgressState::Ended(message) => progress.finish_with_message(message).await,
        ProgressState::Begun | ProgressState::Running(_) => progress.finish().await,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 100")]
fn percentage(fraction: f64) -> u32 {
    (fraction.clamp(0.0, 1.0) * 100.0) as u32
}
