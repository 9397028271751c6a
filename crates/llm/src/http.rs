//! One HTTP request to a provider, and its reply. The only code of the search that uses an async runtime.

use std::error::Error as _;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Certificate, Response, redirect};
use tokio::runtime::Runtime;

use config::{ModelSettings, ModelTimeouts, time};

use super::protocol::{Dialect, Protocol, ProviderError, is_here, plain, quoted};
use super::reply_stream::ReplyStream;
use super::{ApiKey, Exchange, Failure, GLANCE, ModelError, ModelRequest, ProviderReply, ReplyObserver, retry};

/// The largest part of an error message (`LONGEST_COMPLAINT`) and of a list of models (`LONGEST_LIST`) that is read, in
/// bytes.
const LONGEST_COMPLAINT: usize = 64 << 10;
const LONGEST_LIST: usize = 4 << 20;
/// The time for which an idle connection is kept. Some servers close them after 5 s, and a request that meets a closed
/// one counts as sent.
const IDLE: Duration = Duration::from_secs(4);
/// The number of times that a request is changed after the provider rejected one of its fields.
const DIALECTS: usize = 4;

/// The HTTP client of one provider.
pub(super) struct Http {
    protocol: Box<dyn Protocol>,
    dialect: Mutex<Dialect>,
    client: reqwest::Client,
    key: Option<ApiKey>,
    waits: Waits,
    /// Always `Some` until the client is dropped.
    runtime: Option<Runtime>,
}

/// The time limits.
#[derive(Clone, Copy, Debug)]
struct Waits {
    connect: Duration,
    first: Duration,
    between: Duration,
    whole: Duration,
}

impl Waits {
    fn of(settings: &ModelTimeouts) -> Self {
        Self {
            connect: time(settings.connect),
            first: time(settings.first),
            between: time(settings.between),
            whole: time(settings.whole),
        }
    }

    /// The deadline of the next piece, and the setting that gives it. The connection has a limit of its own.
    fn limit(&self, start: Instant, is_first: bool) -> (Instant, &'static str) {
        let next = if is_first { (start + self.first, "first") } else { (Instant::now() + self.between, "between") };
        let whole = start + self.whole;
        if whole < next.0 { (whole, "whole") } else { next }
    }

    fn slow(&self, setting: &'static str) -> ModelError {
        let (stage, limit) = match setting {
            "connect" => ("could not be connected to", self.connect),
            "first" => ("did not begin to answer", self.first),
            "between" => ("stopped in the middle of its reply", self.between),
            _ => ("did not come to an end", self.whole),
        };
        ModelError::Slow { stage, setting, limit }
    }
}

impl Http {
    pub(super) fn new(
        protocol: Box<dyn Protocol>,
        key: Option<ApiKey>,
        settings: &ModelSettings,
    ) -> Result<Self, ModelError> {
        let waits = Waits::of(&settings.timeouts);
        // A redirect is most likely a mistake, and following it would send the headers with the key along.
        let mut builder = reqwest::Client::builder()
            .connect_timeout(waits.connect)
            .pool_idle_timeout(IDLE)
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("warpsmith/", env!("CARGO_PKG_VERSION")));
        let named = settings.ca_file.as_deref().map(certificates).transpose()?.unwrap_or_default();
        builder = match protocol.address().starts_with("http://") {
            // Plain HTTP works on machines without any certificates.
            true => builder.tls_certs_only(named),
            false => builder.tls_certs_merge(named),
        };
        if is_here(protocol.address()) {
            // A proxy would look for the local server on its own machine.
            builder = builder.no_proxy();
        }
        let failed = |error: String| ModelError::Settings(format!("no connections can be made: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("model")
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let client = builder.build().map_err(|error| {
            let why = cause(&error.without_url());
            let hint = "; install the system's (`ca-certificates`), or name a file of them in `model.ca-file`";
            failed(format!("{why}{}", if why.contains("certificates") { hint } else { "" }))
        })?;
        Ok(Self { protocol, dialect: Mutex::default(), client, key, waits, runtime: Some(runtime) })
    }

    /// The models that the provider offers; empty when it has no list.
    pub(super) fn models(&self) -> Result<Vec<String>, ModelError> {
        let Some(address) = self.protocol.list() else { return Ok(Vec::new()) };
        let headers = self.protocol.headers(self.key.as_ref())?;
        let ask = async {
            let request = self.client.get(address).headers(headers).timeout(self.waits.first);
            let response = request.send().await.map_err(|error| self.lost(error).error)?;
            if !response.status().is_success() {
                return Err(self.refusal(response).await.0.error);
            }
            let body = beginning(response, LONGEST_LIST).await;
            serde_json::from_slice::<serde_json::Value>(&body)
                .map_err(|_| ModelError::Garbage(self.redacted(&quoted(&String::from_utf8_lossy(&body)))))
        };
        let list = self.block_on(ask)?;
        let models = list["data"].as_array().into_iter().flatten();
        Ok(models.filter_map(|model| Some(plain(model["id"].as_str()?))).collect())
    }

    fn block_on<T>(&self, future: impl Future<Output = Result<T, ModelError>>) -> Result<T, ModelError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(future),
            None => Err(ModelError::Cancelled),
        }
    }

    fn redacted(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn attempt(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ProviderReply, Failure> {
        for _ in 0..DIALECTS {
            let dialect = self.dialect();
            let start = Instant::now();
            let response = self.send(request, dialect, watcher, start).await?;
            if response.status().is_success() {
                return self.read(response, watcher, start).await;
            }
            let status = response.status().as_u16();
            let (failure, complaint) = self.refusal(response).await;
            match dialect.after(&complaint).filter(|_| matches!(status, 400 | 422)) {
                Some(next) => *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = next,
                None => return Err(failure),
            }
        }
        let message = "the model's provider refuses all ways in which a request can be put".to_owned();
        Err(Failure::lasting(ModelError::Settings(message)))
    }

    async fn send(
        &self,
        request: &ModelRequest,
        dialect: Dialect,
        watcher: &dyn ReplyObserver,
        start: Instant,
    ) -> Result<Response, Failure> {
        let headers = self.protocol.headers(self.key.as_ref()).map_err(Failure::lasting)?;
        let body = self.protocol.body(request, dialect);
        let sent = self.client.post(self.protocol.address()).headers(headers).json(&body).send();
        let (limit, setting) = self.waits.limit(start, true);
        match within(limit, || self.waits.slow(setting), watcher, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.lost(error)),
            Err(error) => Err(Failure::midway(error)),
        }
    }

    /// The failure of a connection that was not made, or broke.
    fn lost(&self, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        let why = self.redacted(&plain(&cause(&error)));
        if error.is_builder() {
            let message = format!("`model.base-url` is not a valid address ({why})");
            return Failure::lasting(ModelError::Settings(message));
        }
        if !error.is_connect() {
            return Failure { again: true, ..Failure::midway(ModelError::Broken(why)) };
        }
        let error = match why {
            _ if error.is_timeout() => self.waits.slow("connect"),
            why if why.contains("certificate") => {
                let hint = "set `model.ca-file` to a file with its authority's certificate";
                return Failure::lasting(ModelError::Unreachable(format!("{why}; {hint}")));
            }
            why => ModelError::Unreachable(why),
        };
        Failure { again: true, ..Failure::lasting(error) }
    }

    /// The failure of a response with an error status.
    async fn refusal(&self, response: Response) -> (Failure, ProviderError) {
        let status = response.status().as_u16();
        let after = retry::asked(response.headers(), SystemTime::now());
        // A longer wait for the error text would not help the user.
        let read = tokio::time::timeout(Duration::from_millis(500), beginning(response, LONGEST_COMPLAINT));
        let body = read.await.unwrap_or_default();
        let complaint = ProviderError::read(&String::from_utf8_lossy(&body));
        let message = self.redacted(&complaint.message);
        let hint = hint(status, complaint.is_quota());
        let again = retry::is_passing(status) && !complaint.is_quota();
        let error = ModelError::Refused { status, message, hint: hint.to_owned() };
        (Failure { error, again, after, billed: false }, complaint)
    }

    async fn read(
        &self,
        mut response: Response,
        watcher: &mut dyn ReplyObserver,
        start: Instant,
    ) -> Result<ProviderReply, Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(Failure::midway(ModelError::Garbage("a web page".to_owned())));
        }
        let mut reading = ReplyStream::of(kind);
        loop {
            let (limit, setting) = self.waits.limit(start, reading.size() == 0);
            let slow = || self.waits.slow(setting);
            let piece = match within(limit, slow, watcher, response.chunk()).await {
                Ok(Ok(piece)) => piece,
                // If the connection breaks after the end of the reply, the reply is complete.
                Ok(Err(_)) if reading.has_finish() => None,
                Ok(Err(error)) => {
                    let failure = self.lost(error);
                    return Err(Failure { again: !reading.has_begun(), ..failure });
                }
                Err(error) => return Err(Failure::midway(error)),
            };
            let ended = piece.is_none();
            reading.take(&*self.protocol, piece.as_deref(), watcher).map_err(|failure| self.told(failure))?;
            if ended || reading.is_done() {
                return reading.answer().map_err(|failure| self.told(failure));
            }
        }
    }

    /// The failure with the provider's text, from which the key is removed.
    fn told(&self, mut failure: Failure) -> Failure {
        if let ModelError::Garbage(text) | ModelError::Failed(text) | ModelError::Broken(text) = &mut failure.error {
            *text = self.redacted(text);
        }
        failure
    }
}

impl Exchange for Http {
    fn exchange(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ProviderReply, Failure> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(self.attempt(request, watcher)),
            None => Err(Failure::lasting(ModelError::Cancelled)),
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // Does not wait for connections, and may run on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The beginning of a response's body, up to a length.
async fn beginning(mut response: Response, longest: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await
        && body.len() <= longest
    {
        body.extend_from_slice(&piece);
    }
    body
}

/// The result of `future`, unless the deadline passes or the caller cancels.
async fn within<T>(
    end: Instant,
    slow: impl FnOnce() -> ModelError,
    watcher: &dyn ReplyObserver,
    future: impl Future<Output = T>,
) -> Result<T, ModelError> {
    let mut future = pin!(future);
    loop {
        if watcher.cancelled() {
            return Err(ModelError::Cancelled);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(slow());
        }
        if let Ok(made) = tokio::time::timeout(left.min(GLANCE), &mut future).await {
            return Ok(made);
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, ModelError> {
    let failed = |why: String| ModelError::Settings(format!("{}, the `model.ca-file`, {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let found = Certificate::from_pem_bundle(&bytes)
        .map_err(|error| failed(format!("holds no certificates: {}", cause(&error))))?;
    if found.is_empty() { Err(failed("holds no certificates".to_owned())) } else { Ok(found) }
}

/// The innermost source of an error, which says what happened.
fn cause(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        text = error.to_string();
        inner = error.source();
    }
    text
}

/// Advice for the user after a response with this status.
fn hint(status: u16, is_quota: bool) -> &'static str {
    match status {
        _ if is_quota => "; the account has no credit left",
        300..=399 => "; set `model.base-url` to where that leads",
        401 | 403 => "; is the key of `model.api-key-env` or `model.key-command` right?",
        404 => "; are `model.base-url` (it usually ends in `/v1`) and `model.name` right?",
        413 => "; the request is too long for this model",
        429 => "; lower `model.limits`, or try again later",
        408 | 500..=599 => "; try again later",
        _ => "",
    }
}
