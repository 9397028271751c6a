//! The interface that the protocols share, and the reading of their error messages.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::sse::SseEvent;
use super::{ApiKey, Finish, ModelError, ModelRequest, TokenUsage};

/// The number of characters of a provider's text that an error message repeats.
const REPEATED: usize = 300;

/// A provider's protocol over HTTP.
pub(super) trait Protocol: Send + Sync {
    /// The address of requests.
    fn address(&self) -> &str;
    /// The address of the list of models, if there is one.
    fn list(&self) -> Option<&str>;
    /// The headers of a request, with the key.
    fn headers(&self, key: Option<&ApiKey>) -> Result<HeaderMap, ModelError>;
    /// The JSON body of a request.
    fn body(&self, request: &ModelRequest, dialect: Dialect) -> Value;
    /// Adds an event of a stream, or a complete reply, to `partial`.
    fn take(&self, event: &SseEvent, partial: &mut Partial) -> Result<(), StreamError>;
}

/// Deviations of a model from the usual request. They are found by trial, because a list of models would soon be
/// outdated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) without_temperature: bool,
    pub(super) without_stop: bool,
    pub(super) without_usage: bool,
    /// Uses `max_tokens` instead of `max_completion_tokens`, or the other way round.
    pub(super) other_limit: bool,
}

impl Dialect {
    /// The dialect to try after an error about one of the fields; `None` when the error is about none of them.
    pub(super) fn after(self, complaint: &ProviderError) -> Option<Self> {
        let mut next = self;
        match complaint.names() {
            "temperature" => next.without_temperature = true,
            "stop" | "stop_sequences" => next.without_stop = true,
            "stream_options" => next.without_usage = true,
            "max_tokens" | "max_completion_tokens" => next.other_limit = true,
            _ => {}
        }
        (next != self).then_some(next)
    }
}

/// The part of a reply that has arrived.
#[derive(Debug, Default)]
pub(super) struct Partial {
    pub(super) text: String,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<TokenUsage>,
    /// Whether the reply is complete.
    pub(super) is_done: bool,
}

/// The reason why an event is not part of a reply.
#[derive(Debug)]
pub(super) enum StreamError {
    /// The event cannot be parsed.
    Garbage(String),
    /// The provider reports an error.
    Reported(ProviderError),
}

/// An error message of a provider.
#[derive(Debug, Default)]
pub(super) struct ProviderError {
    pub(super) message: String,
    /// The type or the code of the error, or both.
    kind: String,
    param: String,
}

impl ProviderError {
    /// Parses the usual form `{"error": {"message": …, "type": …, "code": …, "param": …}}`. Any other text becomes the
    /// message.
    pub(super) fn read(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            return Self { message: plain(body), ..Self::default() };
        };
        let error = if value["error"].is_null() { &value } else { &value["error"] };
        let text = |key: &str| error[key].as_str().unwrap_or_default();
        let message = error.as_str().or_else(|| ["message", "detail"].iter().find_map(|key| error[*key].as_str()));
        Self {
            message: plain(message.unwrap_or_default()),
            kind: format!("{} {}", text("type"), text("code")),
            param: text("param").to_owned(),
        }
    }

    /// The optional field of the request that the error is about.
    fn names(&self) -> &str {
        const KNOWN: [&str; 5] =
            ["max_completion_tokens", "stream_options", "temperature", "stop_sequences", "max_tokens"];
        if !self.param.is_empty() {
            return &self.param;
        }
        KNOWN.into_iter().find(|name| self.message.contains(name)).unwrap_or_default()
    }

    /// Whether the account has no credit left, so that waiting does not help.
    pub(super) fn is_quota(&self) -> bool {
        self.kind.contains("insufficient_quota")
    }

    /// Whether the same request may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        let lasting = ["invalid", "authentication", "permission", "not_found", "too_large", "insufficient_quota"];
        !lasting.iter().any(|word| self.kind.contains(word))
    }
}

/// The beginning of a foreign text on one line, without control characters.
pub(super) fn plain(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The JSON data of an event.
pub(super) fn parse(event: &SseEvent) -> Result<Value, StreamError> {
    let value: Value = serde_json::from_str(&event.data).map_err(|_| StreamError::Garbage(quoted(&event.data)))?;
    let is_error = !value["error"].is_null() || value["type"] == "error";
    if is_error { Err(StreamError::Reported(ProviderError::read(&event.data))) } else { Ok(value) }
}

pub(super) fn quoted(text: &str) -> String {
    let shown: String = plain(text).chars().take(80).collect();
    format!("it begins with `{shown}`")
}

/// An address with a path appended, whether or not it ends in a slash or has a query.
pub(super) fn below(base: &str, path: &str) -> String {
    let (base, query) = base.split_once('?').map_or((base, None), |(base, query)| (base, Some(query)));
    let address = format!("{}/{path}", base.trim_end_matches('/'));
    match query {
        Some(query) => format!("{address}?{query}"),
        None => address,
    }
}

/// Whether an address leads to this machine.
#[must_use]
pub fn is_here(address: &str) -> bool {
    match url::Url::parse(address).as_ref().map(url::Url::host) {
        Ok(Some(url::Host::Domain(name))) => name == "localhost",
        Ok(Some(url::Host::Ipv4(address))) => address.is_loopback(),
        Ok(Some(url::Host::Ipv6(address))) => address.is_loopback(),
        _ => false,
    }
}

/// A header value that contains a key.
pub(super) fn secret_header(text: &str) -> Result<reqwest::header::HeaderValue, ModelError> {
    let mut value = reqwest::header::HeaderValue::from_str(text)
        .map_err(|_| ModelError::Key("the model's key has characters that no key can have".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_of_all_formats_are_parsed() {
        let message = |body: &str| ProviderError::read(body).message;
        assert_eq!(message(r#"{"error":{"message":"no\u001b[31m such\nmodel","type":"x"}}"#), "no [31m such model");
        assert_eq!(message(r#"{"error":"model not found"}"#), "model not found");
        assert_eq!(message(r#"{"detail":"Not Found"}"#), "Not Found");
        assert_eq!(
            message(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            "Overloaded"
        );
        assert_eq!(message("<html>\n<b>Bad\u{7}</b>"), "<html> <b>Bad </b>");
        assert_eq!(message(&"é".repeat(400)).chars().count(), REPEATED + 1);
        assert!(ProviderError::read(r#"{"error":{"type":"insufficient_quota"}}"#).is_quota());
    }

    #[test]
    fn each_rejected_field_is_dropped_once() {
        let complaint = |body: &str| ProviderError::read(body);
        let first = Dialect::default();
        let about = complaint(r#"{"error":{"message":"Unsupported value","param":"temperature"}}"#);
        let next = first.after(&about).unwrap();
        assert!(next.without_temperature && next.after(&about).is_none());
        let about = complaint(
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}"#,
        );
        assert!(first.after(&about).unwrap().other_limit);
        assert!(first.after(&complaint(r#"{"error":{"message":"no such model"}}"#)).is_none());
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for (address, expected) in [
            ("http://localhost:11434/v1", true),
            ("http://127.0.0.2/v1", true),
            ("http://[::1]:8000", true),
            ("http://localhost.example.com/v1", false),
            ("http://10.0.0.1/v1", false),
            ("nowhere", false),
        ] {
            assert_eq!(is_here(address), expected, "{address}");
        }
    }

    #[test]
    fn paths_are_appended_to_any_base_address() {
        assert_eq!(below("http://a/v1/", "chat/completions"), "http://a/v1/chat/completions");
        assert_eq!(below("http://a/v1?tenant=7", "models"), "http://a/v1/models?tenant=7");
    }
}
