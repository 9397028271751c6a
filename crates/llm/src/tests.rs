//! Tests of models over a real connection, with all of their failures.

mod editor;
mod encrypted;
mod model_costs;
mod prompt_injections;
mod provider_errors;
mod providers;
mod recorded;
mod secrets;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use config::{ModelBudget, ModelPrices, ModelSettings, ModelTimeouts, Provider};
use server::{Act, Server, answer, chunk, end, piece, stream};

const KEY: &str = "sk-planted-5c0ffee5deadbeef42";

/// The protocol in which a fake provider answers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Speech(Provider);

const BOTH: [Speech; 2] = [Speech(Provider::Openai), Speech(Provider::Anthropic)];

impl Speech {
    /// The events of a reply in pieces.
    fn events(self, pieces: &[&str], input: u64, output: u64) -> Vec<String> {
        let mut events = vec![self.start(input)];
        events.extend(pieces.iter().map(|piece| self.delta(piece)));
        match self.0 {
            Provider::Anthropic => {
                let usage = json!({"output_tokens": output});
                let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
                events.push(format!("event: message_delta\ndata: {delta}\n\n"));
                events.push("event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n".to_owned());
            }
            _ => {
                let finish = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
                let usage = json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}});
                events.push(format!("data: {finish}\n\n: keep-alive\n\ndata: {usage}\n\ndata: [DONE]\n\n"));
            }
        }
        events
    }

    fn start(self, input: u64) -> String {
        match self.0 {
            Provider::Anthropic => {
                let usage = json!({"input_tokens": input, "output_tokens": 1});
                let start = json!({"type": "message_start", "message": {"usage": usage}});
                format!("event: message_start\ndata: {start}\n\nevent: ping\ndata: {{\"type\": \"ping\"}}\n\n")
            }
            _ => format!("data: {}\n\n", json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]})),
        }
    }

    fn delta(self, text: &str) -> String {
        match self.0 {
            Provider::Anthropic => {
                let delta = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}});
                format!("event: content_block_delta\ndata: {delta}\n\n")
            }
            _ => format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]})),
        }
    }

    /// The acts of a reply in pieces.
    fn streamed(self, pieces: &[&str], input: u64, output: u64) -> Vec<Act> {
        let events = self.events(pieces, input, output);
        [stream()].into_iter().chain(events.iter().map(|event| piece(event))).chain([end()]).collect()
    }

    /// A reply at once.
    fn whole(self, text: &str, input: u64, output: u64) -> Vec<Act> {
        let body = match self.0 {
            Provider::Anthropic => json!({
                "type": "message",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": input, "output_tokens": output},
            }),
            _ => json!({
                "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": input, "completion_tokens": output},
            }),
        };
        answer(200, "application/json", &body.to_string())
    }

    fn settings(self, server: &Server) -> ModelSettings {
        ModelSettings {
            provider: self.0,
            name: Some("m".to_owned()),
            base_url: Some(server.address.clone()),
            max_tokens: 1000,
            timeouts: ModelTimeouts { connect: 20.0, first: 30.0, between: 30.0, whole: 60.0 },
            prices: ModelPrices { input: 1.0, output: 10.0, cached: None },
            budget: ModelBudget { run_tokens: 0, run_dollars: 0.0, day_tokens: 0, day_dollars: 0.0 },
            ..ModelSettings::default()
        }
    }
}

/// A model with a store for its costs.
struct Bench {
    client: ModelClient,
    account: Arc<Account>,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(settings: &ModelSettings) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let account = Arc::new(Account::open(&settings.budget, folder.path()).unwrap());
        let client = ModelClient::open(settings, ApiKey::new(KEY.to_owned()), Arc::clone(&account)).unwrap();
        Self { client: client.with_pause_factor(0.02), account, folder }
    }

    fn ask(&self) -> Result<ModelReply, ModelError> {
        self.client.complete(&question(), &mut ())
    }
}

fn question() -> ModelRequest {
    ModelRequest::of("be brief", "how are you?")
}

/// Records the pieces of a reply, and cancels after a while.
#[derive(Default)]
struct Notes {
    deltas: Vec<String>,
    until: Option<Instant>,
}

impl ReplyObserver for Notes {
    fn delta(&mut self, text: &str) {
        self.deltas.push(text.to_owned());
    }

    fn cancelled(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}
