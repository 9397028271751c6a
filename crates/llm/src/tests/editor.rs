//! Tests of models that an editor provides.

use std::sync::Mutex;

use super::*;
use crate::EditorModel;

/// An editor that gives this answer, or waits until the answer is no longer wanted.
struct Stand(Mutex<Option<Result<ProviderReply, ModelError>>>);

impl EditorModel for Stand {
    fn complete(
        &self,
        _: Option<&str>,
        _: &ModelRequest,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<ProviderReply, ModelError> {
        if let Some(answer) = self.0.lock().unwrap().take() {
            return answer;
        }
        while !cancelled() {
            std::thread::sleep(GLANCE);
        }
        Err(ModelError::Cancelled)
    }
}

fn bench(answer: Option<Result<ProviderReply, ModelError>>, whole: f64) -> Bench {
    let settings = ModelSettings {
        provider: Provider::Editor,
        timeouts: ModelTimeouts { whole, ..ModelTimeouts::default() },
        ..ModelSettings::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let account = Arc::new(Account::open(&settings.budget, folder.path()).unwrap());
    let editor = Arc::new(Stand(Mutex::new(answer)));
    Bench { client: ModelClient::in_editor(&settings, editor, Arc::clone(&account)), account, folder }
}

#[test]
fn editor_usage_is_counted_or_else_estimated() {
    let usage = TokenUsage { input: 7, output: 2, cached: 0, estimated: false };
    for (counted, expected) in [(Some(usage), Some(9)), (None, None)] {
        let answer = ProviderReply { text: "well".to_owned(), usage: counted, ..ProviderReply::default() };
        let bench = bench(Some(Ok(answer)), 60.0);
        let mut notes = Notes::default();
        let reply = bench.client.complete(&question(), &mut notes).unwrap();
        assert_eq!((reply.text.as_str(), notes.deltas.concat().as_str()), ("well", "well"));
        assert_eq!(reply.usage.estimated, expected.is_none());
        assert!(expected.is_none_or(|tokens| bench.account.spent().usage.tokens() == tokens), "{:?}", reply.usage);
        assert_eq!(bench.client.name(), "editor");
    }
}

#[test]
fn editor_replies_respect_time_limit_cancellation_and_size_limit() {
    let error = bench(None, 0.2).ask().unwrap_err().to_string();
    assert!(error.contains("within 0.2 s (`model.timeouts.whole`)"), "{error}");
    let mut notes = Notes { until: Some(Instant::now() + Duration::from_millis(200)), ..Notes::default() };
    let stopped = bench(None, 60.0).client.complete(&question(), &mut notes);
    assert!(matches!(stopped, Err(ModelError::Cancelled)), "{stopped:?}");
    let endless = ProviderReply { text: "x".repeat(5 << 20), ..ProviderReply::default() };
    let error = bench(Some(Ok(endless)), 60.0).ask().unwrap_err();
    assert!(matches!(error, ModelError::TooLong(_)), "{error}");
}

/// Errors of an editor are shown in terminals and reports.
#[test]
fn editor_errors_are_one_plain_line_and_cost_nothing() {
    let why = format!("no\u{1b}[31m model:\nsign {}", "in ".repeat(1000));
    let bench = bench(Some(Err(ModelError::Editor { why, is_lasting: true })), 60.0);
    let error = bench.ask().unwrap_err().to_string();
    assert!(error.starts_with("no [31m model: sign in") && error.chars().count() < 400, "{error}");
    assert_eq!(bench.account.spent().usage.tokens(), 0);
}

#[test]
fn the_editor_provider_fails_outside_of_an_editor() {
    let settings = ModelSettings { provider: Provider::Editor, ..ModelSettings::default() };
    let folder = tempfile::tempdir().unwrap();
    let account = Arc::new(Account::open(&settings.budget, folder.path()).unwrap());
    for error in [ModelClient::open(&settings, None, account).err(), ModelClient::offered(&settings, None).err()] {
        let error = error.unwrap().to_string();
        assert!(error.starts_with("`model.provider = \"editor\"` works in an editor only"), "{error}");
    }
}
