//! The protocol of OpenAI's Chat Completions API, which most other providers offer too.

use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Map, Value, json};

use super::protocol::{Dialect, Partial, Protocol, StreamError, below, parse, secret_header};
use super::sse::SseEvent;
use super::{ApiKey, Finish, ModelError, ModelRequest, TokenUsage};

/// The version of Azure's API.
const AZURE_VERSION: &str = "2024-10-21";

/// OpenAI, Azure, and servers that offer the same API.
#[derive(Debug)]
pub(super) struct OpenAi {
    model: String,
    address: String,
    list: Option<String>,
    is_azure: bool,
    /// Whether the endpoint is known to want the newer name of the token limit, as OpenAI's own does.
    is_newer: bool,
}

impl OpenAi {
    pub(super) fn new(base: &str, model: &str) -> Self {
        let is_newer = url::Url::parse(base).is_ok_and(|url| url.host_str() == Some("api.openai.com"));
        Self {
            model: model.to_owned(),
            address: below(base, "chat/completions"),
            list: Some(below(base, "models")),
            is_azure: false,
            is_newer,
        }
    }

    /// A deployment on Azure.
    pub(super) fn azure(base: &str, deployment: &str, version: Option<&str>) -> Self {
        let base = base.trim_end_matches('/').trim_end_matches("/openai");
        // A path segment is escaped differently from other text.
        let address = url::Url::parse(base).map(|mut url| {
            if let Ok(mut path) = url.path_segments_mut() {
                path.pop_if_empty().extend(["openai", "deployments", deployment, "chat", "completions"]);
            }
            url.query_pairs_mut().append_pair("api-version", version.unwrap_or(AZURE_VERSION));
            url.to_string()
        });
        Self {
            model: deployment.to_owned(),
            // An invalid address fails when it is called.
            address: address.unwrap_or_else(|_| base.to_owned()),
            list: None,
            is_azure: true,
            is_newer: true,
        }
    }
}

impl Protocol for OpenAi {
    fn address(&self) -> &str {
        &self.address
    }

    fn list(&self) -> Option<&str> {
        self.list.as_deref()
    }

    fn headers(&self, key: Option<&ApiKey>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        match key {
            Some(key) if self.is_azure => drop(headers.insert("api-key", secret_header(key.secret())?)),
            Some(key) => {
                let bearer = secrecy::SecretString::from(format!("Bearer {}", key.secret()));
                headers.insert(AUTHORIZATION, secret_header(secrecy::ExposeSecret::expose_secret(&bearer))?);
            }
            None => {}
        }
        Ok(headers)
    }

    fn body(&self, request: &ModelRequest, dialect: Dialect) -> Value {
        let system = (!request.system.is_empty()).then(|| json!({"role": "system", "content": request.system}));
        let messages =
            request.messages.iter().map(|message| json!({"role": message.role.name(), "content": message.text}));
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
        set("model", json!(self.model));
        set("messages", system.into_iter().chain(messages).collect());
        set("stream", json!(true));
        if !dialect.without_usage {
            set("stream_options", json!({"include_usage": true}));
        }
        let limit = if self.is_newer == dialect.other_limit { "max_tokens" } else { "max_completion_tokens" };
        set(limit, json!(request.max_tokens));
        if let Some(temperature) = request.temperature.filter(|_| !dialect.without_temperature) {
            set("temperature", json!(temperature));
        }
        if !request.stop.is_empty() && !dialect.without_stop {
            set("stop", json!(request.stop));
        }
        Value::Object(body)
    }

    fn take(&self, event: &SseEvent, partial: &mut Partial) -> Result<(), StreamError> {
        if event.data.trim() == "[DONE]" {
            partial.is_done = true;
            return Ok(());
        }
        let value = parse(event)?;
        // The last event, which has the usage, contains no choice.
        let choice = &value["choices"][0];
        let said = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        partial.text.push_str(said["content"].as_str().unwrap_or_default());
        if let Some(reason) = choice["finish_reason"].as_str() {
            partial.finish = Some(finish(reason));
        }
        if let Some(usage) = usage(&value["usage"]) {
            partial.usage = Some(usage);
        }
        if value["choices"].is_null() && value["usage"].is_null() {
            return Err(StreamError::Garbage("an answer without `choices`".to_owned()));
        }
        Ok(())
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "content_filter" => Finish::Refused,
        other => Finish::Other(super::protocol::plain(other)),
    }
}

fn usage(value: &Value) -> Option<TokenUsage> {
    let (input, output) = (value["prompt_tokens"].as_u64()?, value["completion_tokens"].as_u64()?);
    let cached = value["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0);
    Some(TokenUsage { input, cached: cached.min(input), output, estimated: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ModelRequest {
        ModelRequest {
            temperature: Some(0.5),
            max_tokens: 7,
            stop: vec!["END".to_owned()],
            ..ModelRequest::of("be brief", "hi")
        }
    }

    #[test]
    fn openai_bodies_have_the_expected_fields() {
        let local = OpenAi::new("http://localhost:11434/v1/", "m");
        assert_eq!(local.address(), "http://localhost:11434/v1/chat/completions");
        let expected = json!({
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 7,
            "temperature": 0.5,
            "stop": ["END"],
        });
        assert_eq!(local.body(&request(), Dialect::default()), expected);
        let dialect = Dialect { without_temperature: true, without_stop: true, without_usage: true, other_limit: true };
        let body = local.body(&request(), dialect);
        assert_eq!(body["max_completion_tokens"], 7);
        for key in ["max_tokens", "temperature", "stop", "stream_options"] {
            assert!(body[key].is_null(), "{key}");
        }
        assert_eq!(
            OpenAi::new("https://api.openai.com/v1", "m").body(&request(), Dialect::default())["max_completion_tokens"],
            7
        );
    }

    #[test]
    fn azure_requests_use_the_deployment_path_and_api_key_header() {
        let azure = OpenAi::azure("https://r.openai.azure.com/openai/", "gpt 5/x", None);
        let expected =
            "https://r.openai.azure.com/openai/deployments/gpt%205%2Fx/chat/completions?api-version=2024-10-21";
        assert_eq!(azure.address(), expected);
        let key = ApiKey::new("secret-azure-key".to_owned());
        let headers = azure.headers(key.as_ref()).unwrap();
        assert_eq!(headers["api-key"], "secret-azure-key");
        assert!(
            headers.get(AUTHORIZATION).is_none() && !format!("{headers:?}").contains("secret-azure"),
            "{headers:?}"
        );
    }
}
