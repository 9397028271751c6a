//! The notification `warpsmith/search`: the state of a search in progress, for editors that draw it.
//!
//! It contains what has changed since the last one, is sent a few times a second, is bounded in size, and goes only to clients
//! that ask for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_lsp::Client;
use tower_lsp::gen_lsp_types as lsp;

use search::{
    Confirmation, OptimizeError, OptimizeScope, Progress, Report, ReportChange, SearchOutcome, TriedCandidate,
};

use super::client::ClientSender;

/// The name of the notification and of the request.
pub(crate) const METHOD: &str = "warpsmith/search";

/// Least time between two notifications (at most five a second), and number of candidates in each.
const PERIOD: Duration = Duration::from_millis(200);
const MOST: usize = 40;
/// Number of calls in the first notification.
const CALLS: usize = 16;
/// Greatest length of a text in a notification, in characters.
const LONGEST: usize = 300;

/// The notification about the news of a search.
pub(crate) struct SearchNotification;

impl lsp::Notification for SearchNotification {
    type Params = Value;
    const METHOD: lsp::LspNotificationMethod<'static> = lsp::LspNotificationMethod::Custom(METHOD);
    const MESSAGE_DIRECTION: lsp::MessageDirection = lsp::MessageDirection::ServerToClient;
}

/// News that were not sent yet. Newer news of a candidate replace older ones.
#[derive(Default)]
struct News {
    started: Option<Value>,
    begun: Option<Value>,
    candidates: BTreeMap<usize, TriedCandidate>,
    confirmations: Vec<Value>,
    progress: Option<Progress>,
    ended: Option<Value>,
}

/// A queue of news from a search's thread to the client.
#[derive(Default)]
pub(crate) struct ProgressFeed {
    news: Mutex<News>,
    changed: Notify,
}

/// The search's end of a feed. The feed ends when it is dropped.
pub(crate) struct ProgressSender(Arc<ProgressFeed>);

impl ProgressSender {
    /// Creates both ends, for a search of something in a file.
    pub(crate) fn new(uri: &lsp::Uri, subject: &OptimizeScope, budget: f64) -> (Self, Arc<ProgressFeed>) {
        let feed = Arc::new(ProgressFeed::default());
        feed.add(|news| {
            let name = cut(subject.name().unwrap_or("the file"));
            news.started = Some(json!({ "uri": uri, "name": name, "subject": subject, "budget": budget }));
        });
        (Self(Arc::clone(&feed)), feed)
    }

    /// Adds the search's progress.
    pub(crate) fn progress(&self, progress: &Progress) {
        self.0.add(|news| news.progress = Some(progress.clone()));
    }

    /// Adds a change of the report.
    pub(crate) fn noted(&self, report: &Report, changed: ReportChange) {
        self.0.add(|news| match changed {
            ReportChange::All => {
                let calls: Vec<String> = report.calls.iter().take(CALLS).map(|call| cut(call)).collect();
                let (run, environment) = (&report.run, cut(&report.environment));
                news.begun =
                    Some(json!({ "run": run, "date": report.date, "environment": environment, "calls": calls }));
                report.candidates.iter().for_each(|tried| news.tried(tried));
                news.confirmations = report.confirmations.iter().map(confirmation).collect();
            }
            ReportChange::Candidate(place) => {
                report.candidates.iter().skip(place).take(1).for_each(|tried| news.tried(tried))
            }
            ReportChange::Confirmed => news.confirmations.extend(report.confirmations.last().map(confirmation)),
            // The reason of the end is known only in [`ProgressSender::end`].
            ReportChange::Ended => {}
        });
    }

    /// Adds the result of the search.
    pub(crate) fn end(&self, result: &Result<SearchOutcome, OptimizeError>) {
        let (how, summary) = match result {
            Ok(outcome) => ("over", outcome.summary.clone()),
            Err(OptimizeError::Cancelled) => ("stopped", "It was stopped.".to_owned()),
            Err(OptimizeError::Declined(why)) => ("failed", format!("Nothing was run: {why}")),
            Err(OptimizeError::Failed(why)) => ("failed", why.clone()),
        };
        let offer = matches!(result, Ok(SearchOutcome { offer: Some(_), .. }));
        let summary = cut(&summary);
        self.0.add(|news| news.ended = Some(json!({ "how": how, "summary": summary, "offer": offer })));
    }
}

impl Drop for ProgressSender {
    fn drop(&mut self) {
        let crashed = || json!({ "how": "failed", "summary": "It ended without a result.", "offer": false });
        self.0.add(|news| {
            news.ended.get_or_insert_with(crashed);
        });
    }
}

impl News {
    fn tried(&mut self, tried: &TriedCandidate) {
        self.candidates.insert(tried.id, short(tried.clone()));
    }
}

impl ProgressFeed {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, add: impl FnOnce(&mut News)) {
        add(&mut self.news());
        self.changed.notify_one();
    }

    /// Takes the news as a message, and whether it is the last one.
    fn take(&self, job: &str) -> (Value, bool) {
        let mut news = self.news();
        let mut told = json!({ "job": job });
        let later = news.candidates.keys().nth(MOST).copied();
        let later = later.map(|first| news.candidates.split_off(&first)).unwrap_or_default();
        let candidates = std::mem::replace(&mut news.candidates, later);
        if !candidates.is_empty() {
            told["candidates"] = candidates.values().map(|tried| json!(tried)).collect();
        }
        let confirmations = std::mem::take(&mut news.confirmations);
        if !confirmations.is_empty() {
            told["confirmations"] = json!(confirmations);
        }
        if let Some(progress) = news.progress.take() {
            told["message"] = json!(cut(&progress.message));
            told["seconds"] = json!(progress.seconds.map(|(spent, _)| spent));
        }
        for (key, value) in [("started", news.started.take()), ("begun", news.begun.take())] {
            told[key] = value.unwrap_or_default();
        }
        let is_all = news.candidates.is_empty();
        told["ended"] = news.ended.take_if(|_| is_all).unwrap_or_default();
        if !is_all {
            self.changed.notify_one();
        }
        let is_last = !told["ended"].is_null();
        told.as_object_mut().into_iter().for_each(|told| told.retain(|_, value| !value.is_null()));
        (told, is_last)
    }
}

/// Sends the news of a search to the client until it has ended.
pub(crate) fn send_news(client: &ClientSender, job: String, feed: Arc<ProgressFeed>) {
    client.concurrently(|client| tell(client, job, feed));
}

async fn tell(client: Client, job: String, feed: Arc<ProgressFeed>) {
    loop {
        feed.changed.notified().await;
        let (told, is_last) = feed.take(&job);
        client.send_notification::<SearchNotification>(told).await;
        if is_last {
            return;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// A candidate with its long texts cut.
pub(crate) fn short(tried: TriedCandidate) -> TriedCandidate {
    let (kind, change, reason) = (cut(&tried.kind), cut(&tried.change), tried.reason.as_deref().map(cut));
    TriedCandidate { kind, change, reason, ..tried }
}

/// A confirmation without its checks, which are in the whole report at the end.
pub(crate) fn confirmation(confirmation: &Confirmation) -> Value {
    let (change, refused) = (cut(&confirmation.change), confirmation.refused.as_deref().map(cut));
    json!({ "change": change, "refused": refused, "label": confirmation.speedup.as_ref().map(|speedup| speedup.label()) })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
