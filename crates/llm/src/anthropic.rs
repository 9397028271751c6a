//! The protocol of Anthropic's Messages API.

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::protocol::{Dialect, Partial, Protocol, StreamError, below, parse, plain, secret_header};
use super::sse::SseEvent;
use super::{ApiKey, Finish, ModelError, ModelRequest};

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// Anthropic, and gateways that offer the same API.
#[derive(Debug)]
pub(super) struct Anthropic {
    model: String,
    address: String,
    list: String,
    version: HeaderValue,
}

impl Anthropic {
    pub(super) fn new(base: &str, model: &str, version: Option<&str>) -> Result<Self, ModelError> {
        let base = base.trim_end_matches('/').trim_end_matches("/v1");
        let version = HeaderValue::from_str(version.unwrap_or(VERSION))
            .map_err(|_| ModelError::Settings("`model.api-version` must be a date such as `2023-06-01`".to_owned()))?;
        Ok(Self {
            model: model.to_owned(),
            address: below(base, "v1/messages"),
            list: below(base, "v1/models"),
            version,
        })
    }
}

impl Protocol for Anthropic {
    fn address(&self) -> &str {
        &self.address
    }

    fn list(&self) -> Option<&str> {
        Some(&self.list)
    }

    fn headers(&self, key: Option<&ApiKey>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", self.version.clone());
        if let Some(key) = key {
            headers.insert("x-api-key", secret_header(key.secret())?);
        }
        Ok(headers)
    }

    fn body(&self, request: &ModelRequest, dialect: Dialect) -> Value {
        let messages =
            request.messages.iter().map(|message| json!({"role": message.role.name(), "content": message.text}));
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
        set("model", json!(self.model));
        set("max_tokens", json!(request.max_tokens));
        set("messages", messages.collect());
        set("stream", json!(true));
        if !request.system.is_empty() {
            set("system", json!(request.system));
        }
        if let Some(temperature) = request.temperature.filter(|_| !dialect.without_temperature) {
            set("temperature", json!(temperature));
        }
        if !request.stop.is_empty() && !dialect.without_stop {
            set("stop_sequences", json!(request.stop));
        }
        Value::Object(body)
    }

    fn take(&self, event: &SseEvent, partial: &mut Partial) -> Result<(), StreamError> {
        let value = parse(event)?;
        match value["type"].as_str() {
            Some("message_start") => count(&value["message"]["usage"], partial),
            // The model's thinking is not part of the reply.
            Some("content_block_delta") => {
                partial.text.push_str(value["delta"]["text"].as_str().unwrap_or_default());
            }
            Some("message_delta") => {
                count(&value["usage"], partial);
                finish(&value["delta"], partial);
            }
            Some("message_stop") => partial.is_done = true,
            // A complete reply that is not streamed.
            Some("message") => {
                for part in value["content"].as_array().into_iter().flatten() {
                    partial.text.push_str(part["text"].as_str().unwrap_or_default());
                }
                count(&value["usage"], partial);
                finish(&value, partial);
            }
            // The documentation asks clients to ignore unknown event types.
            Some(_) => {}
            None => return Err(StreamError::Garbage("an event without `type`".to_owned())),
        }
        Ok(())
    }
}

/// Reads token counts. They are cumulative, and `input_tokens` does not include cached tokens.
fn count(value: &Value, partial: &mut Partial) {
    let number = |key: &str| value[key].as_u64();
    let usage = partial.usage.get_or_insert_default();
    if let Some(fresh) = number("input_tokens") {
        let (read, written) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
        usage.cached = read.unwrap_or(0);
        usage.input = fresh.saturating_add(usage.cached).saturating_add(written.unwrap_or(0));
    }
    if let Some(output) = number("output_tokens") {
        usage.output = output;
    }
}

fn finish(value: &Value, partial: &mut Partial) {
    let Some(reason) = value["stop_reason"].as_str() else { return };
    partial.finish = Some(match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Refused,
        other => Finish::Other(plain(other)),
    });
}

#[cfg(test)]
mod tests {
    use super::super::TokenUsage;
    use super::*;

    #[test]
    fn anthropic_requests_have_a_separate_system_prompt() {
        let anthropic = Anthropic::new("https://api.anthropic.com/v1/", "m", None).unwrap();
        assert_eq!(anthropic.address(), "https://api.anthropic.com/v1/messages");
        let request =
            ModelRequest { max_tokens: 9, stop: vec!["END".to_owned()], ..ModelRequest::of("be brief", "hi") };
        let expected = json!({
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "system": "be brief",
            "stop_sequences": ["END"],
        });
        assert_eq!(anthropic.body(&request, Dialect::default()), expected);
    }

    #[test]
    fn cached_tokens_count_as_input_tokens() {
        let mut partial = Partial::default();
        count(
            &json!({"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}),
            &mut partial,
        );
        count(&json!({"output_tokens": 4}), &mut partial);
        assert_eq!(partial.usage, Some(TokenUsage { input: 95, cached: 70, output: 4, estimated: false }));
    }
}
