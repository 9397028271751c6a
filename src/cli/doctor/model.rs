//! Whether the language model of the settings answers.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::settings::ModelSettings;

const PATIENCE: Duration = Duration::from_secs(5);
/// So many models are named; a gateway may offer hundreds.
const NAMED: usize = 5;

/// What the settings say about a language model, and what it said.
#[derive(Debug, Serialize)]
pub(super) struct ModelFacts {
    /// The address, without a user name or password that it may carry.
    pub(super) base_url: Option<String>,
    /// The variable that holds the key.
    pub(super) api_key_env: Option<String>,
    /// Whether that variable is set. The key itself is never shown.
    pub(super) key_is_set: bool,
    /// The answer, when it was asked.
    pub(super) answer: Option<Answer>,
}

/// How asking went.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) good: bool,
    pub(super) detail: String,
}

impl ModelFacts {
    pub(super) fn of(settings: &ModelSettings) -> Self {
        Self {
            base_url: settings.base_url.as_deref().map(without_credentials),
            api_key_env: settings.api_key_env.clone(),
            key_is_set: key(settings).is_some(),
            answer: None,
        }
    }
}

fn key(settings: &ModelSettings) -> Option<String> {
    std::env::var(settings.api_key_env.as_ref()?).ok().filter(|key| !key.is_empty())
}

fn without_credentials(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else { return address.to_owned() };
    if url.set_username("").is_err() || url.set_password(None).is_err() {
        return address.to_owned();
    }
    url.into()
}

/// Asks for the list of models: the cheapest call that shows that address and key are right.
pub(super) fn ask(settings: &ModelSettings) -> Answer {
    match try_ask(settings) {
        Ok(detail) => Answer { good: true, detail },
        Err(detail) => Answer { good: false, detail },
    }
}

fn try_ask(settings: &ModelSettings) -> Result<String, String> {
    let base =
        settings.base_url.as_deref().ok_or("no language model is set: put `model.base-url` into the settings")?;
    // The address may hold a password, and errors would repeat it.
    let plain = |error: reqwest::Error| describe(&error.without_url());
    let client = reqwest::blocking::Client::builder().timeout(PATIENCE).build().map_err(plain)?;
    let mut request = client.get(format!("{}/models", base.trim_end_matches('/')));
    if let Some(key) = key(settings) {
        request = request.bearer_auth(key);
    }
    let start = Instant::now();
    let response = request.send().map_err(plain)?;
    let status = response.status();
    if !status.is_success() {
        let hint = match (status.as_u16(), &settings.api_key_env) {
            (401 | 403, Some(name)) => format!("; is the key in `{name}` right?"),
            (401 | 403, None) => "; it wants a key: name its environment variable in `model.api-key-env`".to_owned(),
            (404, _) => "; is the address right? It usually ends in `/v1`".to_owned(),
            _ => String::new(),
        };
        return Err(format!("it answered {status}{hint}"));
    }
    let body: serde_json::Value =
        response.json().map_err(|_| "it answered, but not with a list of models: is the address right?".to_owned())?;
    let models: Vec<&str> =
        body["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str()).collect();
    let more = if models.len() > NAMED { ", …" } else { "" };
    let names = models.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    Ok(format!("it answered in {} ms with {} models: {names}{more}", start.elapsed().as_millis(), models.len()))
}

/// An error with its causes, which say what happened.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it did not answer within {} s", PATIENCE.as_secs());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    format!("it cannot be reached ({text})")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    /// Answers one request with `response`; gives the address and, in the end, the request's head.
    fn server(response: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            stream.write_all(response.as_bytes()).unwrap();
            head
        });
        (address, thread)
    }

    fn settings(base_url: String) -> ModelSettings {
        // A variable that every test process has.
        ModelSettings { base_url: Some(base_url), api_key_env: Some("CARGO_MANIFEST_DIR".to_owned()) }
    }

    fn ask_safely(settings: &ModelSettings) -> Answer {
        let _ = rustls::crypto::ring::default_provider().install_default();
        ask(settings)
    }

    #[test]
    fn lists_the_models_and_sends_the_key() {
        let (address, thread) = server(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 34\r\n\r\n{\"data\":[{\"id\":\"a\"},{\"id\":\"b 7\"}]}",
        );
        let answer = ask_safely(&settings(address));
        assert!(answer.good && answer.detail.ends_with("with 2 models: a, b 7"), "{}", answer.detail);
        let head = thread.join().unwrap().to_lowercase();
        assert!(head.starts_with("get /v1/models"), "{head}");
        assert!(
            head.contains(&format!("authorization: bearer {}", env!("CARGO_MANIFEST_DIR")).to_lowercase()),
            "{head}"
        );
    }

    #[test]
    fn says_what_a_refusal_means_and_never_the_key() {
        let (address, thread) = server("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
        let answer = ask_safely(&settings(address));
        thread.join().unwrap();
        assert!(!answer.good);
        assert_eq!(answer.detail, "it answered 401 Unauthorized; is the key in `CARGO_MANIFEST_DIR` right?");
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        // Port 9 of this machine: nobody listens there.
        let settings = settings("http://me:secret@127.0.0.1:9/v1".to_owned());
        let shown = format!("{:?} {:?}", ModelFacts::of(&settings), ask_safely(&settings));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
