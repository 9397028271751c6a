//! Whether the language model in the settings answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use config::{ModelPrices, ModelSettings, ModelTimeouts, Provider};
use llm::{Account, Model, ModelClient, ModelError, ModelRequest, ReplyObserver, is_here};
use search::{key_source, recipient};

use super::super::send_consent::agreed;

/// The time limit for a connection in seconds, unless the settings have a lower one.
const CONNECT: f64 = 5.0;
const WHOLE: f64 = 60.0;
/// The number of models that are named; a gateway may offer hundreds.
const NAMED: usize = 5;
/// The token limit of the reply, with room for a model that thinks before it answers.
const TOKENS: u64 = 64;
const QUESTION: &str = "Reply with the single word: ready";

/// The settings of a language model, and its answer.
#[derive(Debug, Serialize)]
pub(super) struct ModelFacts {
    pub(super) provider: Provider,
    pub(super) name: Option<String>,
    /// The address, without a user name or password that it may contain.
    pub(super) base_url: Option<String>,
    /// The file with the replies of a scripted model.
    pub(super) script: Option<PathBuf>,
    /// The variable that holds the key.
    pub(super) api_key_env: Option<String>,
    /// Whether that variable is set. The key itself is never shown.
    pub(super) key_is_set: bool,
    /// Whether a command prints the key; it is run when the model is asked.
    pub(super) has_key_command: bool,
    /// The answer; `None` until the model was asked.
    pub(super) answer: Option<ModelCheck>,
}

/// The result of asking the model.
#[derive(Debug, Serialize)]
pub(super) struct ModelCheck {
    pub(super) good: bool,
    pub(super) detail: String,
}

impl ModelFacts {
    pub(super) fn of(settings: &ModelSettings) -> Self {
        let is_set = |name: &String| std::env::var_os(name).is_some_and(|key| !key.is_empty());
        Self {
            provider: settings.provider,
            name: settings.name.clone(),
            base_url: settings.base_url.as_deref().map(without_credentials),
            script: settings.script.clone().filter(|_| settings.provider == Provider::Scripted),
            api_key_env: settings.api_key_env.clone(),
            key_is_set: settings.api_key_env.as_ref().is_some_and(is_set),
            has_key_command: !settings.key_command.is_empty(),
            answer: None,
        }
    }

    /// The model and its address, if a model is set.
    pub(super) fn place(&self) -> Option<String> {
        if self.provider == Provider::Editor {
            return Some(format!("{} of the editor", self.name.as_deref().unwrap_or("a model")));
        }
        let file = self.script.as_ref().map(|file| file.display().to_string());
        let place = file.or_else(|| self.base_url.clone())?;
        Some(self.name.as_ref().map_or_else(|| place.clone(), |name| format!("{name} at {place}")))
    }

    /// The variable that should hold the key but is not set.
    pub(super) fn unset_key(&self) -> Option<&str> {
        self.api_key_env.as_deref().filter(|_| !self.key_is_set && !self.has_key_command)
    }
}

fn without_credentials(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else { return address.to_owned() };
    if url.set_username("").is_err() || url.set_password(None).is_err() {
        return address.to_owned();
    }
    url.into()
}

/// Makes one small call. `folder` has the user's store, whose daily budget applies.
///
/// The settings of a repository may name a command, or send a key elsewhere, so the user is asked first.
pub(super) fn ask(settings: &ModelSettings, sends: bool, folder: &Path) -> ModelCheck {
    let is_sent = settings.provider != Provider::Scripted && settings.base_url.is_some();
    if is_sent && !agreed(&format!("Ask {}?{}", recipient(settings), key_source(settings)), sends) {
        return ModelCheck { good: false, detail: "nothing was sent, since you did not agree to it".to_owned() };
    }
    match try_ask(settings, folder) {
        Ok(detail) => ModelCheck { good: true, detail },
        Err(error) => ModelCheck { good: false, detail: error.to_string() },
    }
}

fn try_ask(settings: &ModelSettings, folder: &Path) -> Result<String, ModelError> {
    let has_address = !matches!(settings.provider, Provider::Scripted | Provider::Editor);
    if settings.base_url.is_none() && has_address {
        let message = "no language model is set: put `model.base-url` into the settings";
        return Err(ModelError::Settings(message.to_owned()));
    }
    let times = &settings.timeouts;
    let timeouts = ModelTimeouts {
        connect: times.connect.min(CONNECT),
        first: times.first.min(WHOLE),
        between: times.between.min(WHOLE),
        whole: times.whole.min(WHOLE),
    };
    let settings = ModelSettings { retries: 0, timeouts, ..settings.clone() };
    if settings.name.is_none() && has_address {
        return Err(ModelError::Settings(choice(&ModelClient::offered(&settings, None)?)));
    }
    let account = Arc::new(Account::open(&settings.budget, folder)?);
    let client = ModelClient::open(&settings, None, Arc::clone(&account))?;
    let start = Instant::now();
    let mut first = First(None);
    let reply = client.complete(&ModelRequest { max_tokens: TOKENS, ..ModelRequest::of("", QUESTION) }, &mut first)?;
    let mut detail = format!("it answered in {} ms", start.elapsed().as_millis());
    if let First(Some(first)) = first {
        detail.push_str(&format!(", the first word after {} ms,", first.duration_since(start).as_millis()));
    }
    let spent = account.spent();
    detail.push_str(&match (settings.prices == ModelPrices::default(), reply.usage.tokens()) {
        (true, tokens) => format!(" with {tokens} tokens; no `model.prices` are set, so dollars are not counted"),
        (false, tokens) => format!(" with {tokens} tokens for {}", spent.cost),
    });
    if reply.usage.estimated {
        detail.push_str("; it does not say how many tokens it takes, so they are estimated, rather too high");
    }
    if is_readable(&settings) {
        detail.push_str("; its address is `http`, so what is sent, and a key, crosses the network unencrypted");
    }
    Ok(detail)
}

/// The time when the reply began.
struct First(Option<Instant>);

impl ReplyObserver for First {
    fn delta(&mut self, _text: &str) {
        self.0.get_or_insert_with(Instant::now);
    }
}

/// Whether others on the network can read what is sent.
fn is_readable(settings: &ModelSettings) -> bool {
    settings.base_url.as_deref().is_some_and(|address| address.starts_with("http://") && !is_here(address))
}

/// Advice for when no model is named.
fn choice(models: &[String]) -> String {
    if models.is_empty() {
        return "it answers; `model.name` must say which model (or deployment) is meant".to_owned();
    }
    let more = if models.len() > NAMED { ", …" } else { "" };
    let names = models.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("it answers; set `model.name` to one of its {} models: {names}{more}", models.len())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    /// Answers one request with `response`. Returns the address, and later the head of the request.
    fn server(status: &str, kind: &str, body: &str) -> (String, std::thread::JoinHandle<String>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n");
        let response = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            stream.write_all(response.as_bytes()).unwrap();
            head
        });
        (address, thread)
    }

    fn settings(base_url: String, name: Option<&str>) -> ModelSettings {
        ModelSettings {
            base_url: Some(base_url),
            name: name.map(str::to_owned),
            // A variable that is set in every test process.
            api_key_env: Some("CARGO_MANIFEST_DIR".to_owned()),
            ..ModelSettings::default()
        }
    }

    fn ask_safely(settings: &ModelSettings) -> ModelCheck {
        let _ = rustls::crypto::ring::default_provider().install_default();
        ask(settings, true, tempfile::tempdir().unwrap().path())
    }

    #[test]
    fn the_model_check_reports_time_and_cost_of_one_request() {
        let body = r#"{"choices":[{"message":{"content":"ready"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
        let (address, thread) = server("200 OK", "application/json", body);
        let priced = ModelPrices { input: 1.0, output: 1000.0, cached: None };
        let answer = ask_safely(&ModelSettings { prices: priced, ..settings(address, Some("m")) });
        assert!(answer.good && answer.detail.ends_with("ms, with 10 tokens for $0.0010"), "{}", answer.detail);
        let head = thread.join().unwrap().to_lowercase();
        assert!(head.starts_with("post /v1/chat/completions"), "{head}");
        assert!(
            head.contains(&format!("authorization: bearer {}", env!("CARGO_MANIFEST_DIR")).to_lowercase()),
            "{head}"
        );
    }

    #[test]
    fn the_model_check_lists_models_if_none_is_named() {
        let (address, thread) = server("200 OK", "application/json", r#"{"data":[{"id":"a"},{"id":"b 7"}]}"#);
        let answer = ask_safely(&settings(address, None));
        assert_eq!(answer.detail, "it answers; set `model.name` to one of its 2 models: a, b 7");
        assert!(!answer.good && thread.join().unwrap().to_lowercase().starts_with("get /v1/models"));
    }

    #[test]
    fn the_model_check_explains_a_refusal_without_the_key() {
        let echo = format!(r#"{{"error":{{"message":"no such key: {}"}}}}"#, env!("CARGO_MANIFEST_DIR"));
        let (address, thread) = server("401 Unauthorized", "application/json", &echo);
        let answer = ask_safely(&settings(address, Some("m")));
        thread.join().unwrap();
        assert!(!answer.good);
        let expected = "the model's provider answered 401: no such key: [key]; is the key of `model.api-key-env` or `model.key-command` right?";
        assert_eq!(answer.detail, expected);
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        // Port 9 of this machine, on which no program listens.
        let settings = settings("http://me:secret@127.0.0.1:9/v1".to_owned(), Some("m"));
        let answer = ask_safely(&settings);
        assert!(answer.detail.contains("cannot be reached"), "{}", answer.detail);
        let shown = format!("{:?} {answer:?}", ModelFacts::of(&settings));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
