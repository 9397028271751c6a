//! Shows in the editor how far a job is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::watch;
use tower_lsp::gen_lsp_types as lsp;

use llm::EditorModel;
use search::{Changed, Observer, Progress, Report};

use super::client::{Call, Calls};
use super::model::ClientModels;
use super::search::Teller;

/// At most ten reports a second.
const PERIOD: Duration = Duration::from_millis(100);

/// What is to be shown.
#[derive(Clone, Debug, Default)]
pub(super) enum State {
    /// It has begun.
    #[default]
    Begun,
    /// It is so far.
    Running(Progress),
    /// It ended, like this.
    Ended(String),
}

/// Watches a search for the editor: forwards its progress, carries the user's wish to stop.
///
/// The end of the progress follows from its drop, however the search ends.
pub(super) struct Watcher {
    states: watch::Sender<State>,
    cancelled: Arc<AtomicBool>,
    client: Calls,
    /// Where the client draws the search.
    pub(super) teller: Option<Teller>,
    /// Whether the client lets searches ask its language models.
    pub(super) takes_model: bool,
}

impl Watcher {
    /// A watcher that stops the search once `cancelled` is set, and the states that it will see.
    pub(super) fn new(cancelled: Arc<AtomicBool>, client: Calls) -> (Self, watch::Receiver<State>) {
        let (states, receiver) = watch::channel(State::Begun);
        (Self { states, cancelled, client, teller: None, takes_model: false }, receiver)
    }

    /// Says in a few words how the search ended.
    pub(super) fn end(self, message: &str) {
        self.states.send_replace(State::Ended(message.to_owned()));
    }
}

/// What a user may answer when their program is to be run.
const RUN: &str = "Run it once";
const DO_NOT_RUN: &str = "Cancel";
/// The same when something is to be sent to a language model.
const SEND: &str = "Send";
const DO_NOT_SEND: &str = "Search without it";

impl Observer for Watcher {
    fn progress(&self, progress: &Progress) {
        self.states.send_replace(State::Running(progress.clone()));
        if let Some(teller) = &self.teller {
            teller.progress(progress);
        }
    }

    fn noted(&self, report: &Report, changed: Changed) {
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

impl Watcher {
    /// Asks the user, and waits for the answer.
    fn ask(&self, question: &str, actions: [&'static str; 2]) -> bool {
        let (answer, answered) = mpsc::channel();
        self.client.send(Call::Confirm { text: question.to_owned(), actions, answer });
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

/// Shows progress under the token `job` until the watcher is gone. Shows nothing when the client does not want to.
pub(super) async fn show(client: tower_lsp::Client, job: String, title: String, mut states: watch::Receiver<State>) {
    let token = lsp::ProgressToken::String(job); // a string: Zed knows no other
    if let Err(error) = client.create_work_done_progress(token.clone()).await {
        tracing::info!(%error, "the client shows no progress");
        return;
    }
    let progress = client.progress(token, title).with_cancel_button().with_percentage(0).begin().await;
    while states.changed().await.is_ok() {
        let state = states.borrow_and_update().clone();
        let State::Running(state) = state else { continue };
        progress.report_with_message(state.to_string(), percentage(state.fraction), None).await;
        tokio::time::sleep(PERIOD).await;
    }
    let last = states.borrow().clone();
    match last {
        State::Ended(message) => progress.finish_with_message(message).await,
        State::Begun | State::Running(_) => progress.finish().await,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 100")]
fn percentage(fraction: f64) -> u32 {
    (fraction.clamp(0.0, 1.0) * 100.0) as u32
}
