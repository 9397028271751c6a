//! The model that the settings describe, with limits, prices and budget.

use std::sync::Arc;
use std::time::Instant;

use base::clock;
use config::{ModelSettings, Provider, time};
use store::Reserved;

use super::account::Account;
use super::anthropic::Anthropic;
use super::editor::{self, Editor};
use super::http::Http;
use super::key::KeyRedactor;
use super::openai::OpenAi;
use super::price::{Prices, likely_input, most_input};
use super::protocol::Protocol;
use super::rate::RateLimiter;
use super::retry::{self, Backoff};
use super::scripted::Scripted;
use super::{
    ApiKey, EditorModel, Exchange, Failure, Model, ModelError, ModelReply, ModelRequest, ProviderReply, ReplyObserver,
    TokenUsage,
};

/// A model with its rate limits, prices and budget.
pub struct ModelClient {
    name: String,
    exchange: Box<dyn Exchange>,
    key: Option<ApiKey>,
    gate: RateLimiter,
    account: Arc<Account>,
    prices: Prices,
    max_tokens: u64,
    retries: u32,
    /// A factor on the pauses between attempts; 1 except in tests.
    haste: f64,
}

impl ModelClient {
    /// Creates the model of the settings, which spends from `account`. `key` is the key that an editor hands in;
    /// without it, the key that the settings name is used. Nothing is sent yet.
    ///
    /// # Errors
    /// Returns an error when a setting is missing, or when the key that the settings name does not exist.
    pub fn open(settings: &ModelSettings, key: Option<ApiKey>, account: Arc<Account>) -> Result<Self, ModelError> {
        let Some(name) = settings.name.clone().or_else(|| usual_name(settings)) else {
            return Err(ModelError::Settings("no language model is set: put its name into `model.name`".to_owned()));
        };
        let key = match key {
            Some(key) => Some(key),
            None if matches!(settings.provider, Provider::Scripted | Provider::Editor) => None,
            None => ApiKey::of(settings)?,
        };
        let exchange: Box<dyn Exchange> = if settings.provider == Provider::Scripted {
            let path = settings.script.as_ref();
            let unset = || ModelError::Settings("set `model.script` to the file with the replies".to_owned());
            Box::new(Scripted::read(path.ok_or_else(unset)?)?)
        } else {
            Box::new(Http::new(protocol(settings, &name)?, key.clone(), settings)?)
        };
        Ok(Self::over(exchange, name, key, settings, account))
    }

    /// Creates a model that uses an editor's language models and spends from `account`.
    #[must_use]
    pub fn in_editor(settings: &ModelSettings, models: Arc<dyn EditorModel>, account: Arc<Account>) -> Self {
        let exchange = Editor::new(models, settings.name.clone(), time(settings.timeouts.whole));
        let name = settings.name.clone().or_else(|| usual_name(settings)).unwrap_or_default();
        Self::over(Box::new(exchange), name, None, settings, account)
    }

    fn over(
        exchange: Box<dyn Exchange>,
        name: String,
        key: Option<ApiKey>,
        settings: &ModelSettings,
        account: Arc<Account>,
    ) -> Self {
        Self {
            name,
            exchange,
            key,
            gate: RateLimiter::new(&settings.limits),
            account,
            prices: Prices::of(&settings.prices),
            max_tokens: settings.max_tokens,
            retries: settings.retries,
            haste: 1.0,
        }
    }

    /// Multiplies the pauses between attempts by `haste`.
    #[cfg(test)]
    pub(super) fn with_pause_factor(mut self, haste: f64) -> Self {
        self.haste = haste;
        self
    }

    /// The names of the models that a provider offers, for a user who has not chosen one.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Model::complete`].
    pub fn offered(settings: &ModelSettings, key: Option<ApiKey>) -> Result<Vec<String>, ModelError> {
        if settings.provider == Provider::Scripted {
            return Ok(Vec::new());
        }
        let key = key.map_or_else(|| ApiKey::of(settings), |key| Ok(Some(key)))?;
        Http::new(protocol(settings, "")?, key, settings)?.models()
    }

    fn attempt(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ModelReply, Failure> {
        let most = TokenUsage { input: most_input(request), output: request.max_tokens, cached: 0, estimated: true };
        let expected = likely_input(request).saturating_add(request.max_tokens);
        let pass = self.gate.pass(expected, watcher).map_err(Failure::lasting)?;
        let reserved = Reserved { tokens: most.tokens(), cost: self.prices.most(&most).parts() };
        let reservation = self.account.reserve(&self.name, reserved, watcher).map_err(Failure::lasting)?;
        let start = Instant::now();
        let mut sieved = Sieved { watcher, sieve: KeyRedactor::new(self.key.as_ref()) };
        let answer = self.exchange.exchange(request, &mut sieved);
        sieved.finish();
        match answer {
            Ok(answer) => {
                let reply = self.reply(answer, &most);
                let cost = self.prices.cost(&reply.usage);
                tracing::debug!(model = self.name, usage = ?reply.usage, %cost, took = ?start.elapsed(), "a model replied");
                pass.took(reply.usage.tokens());
                reservation.settle(reply.usage, cost);
                Ok(reply)
            }
            // A request that was begun may be billed by an unknown amount, so the most that it can cost is charged.
            Err(failure) if failure.billed => {
                reservation.settle(most, self.prices.most(&most));
                Err(failure)
            }
            Err(failure) => {
                pass.took(0);
                reservation.release();
                Err(failure)
            }
        }
    }

    /// Builds the reply: removes the key, which a server may have repeated, and estimates missing token counts.
    fn reply(&self, answer: ProviderReply, most: &TokenUsage) -> ModelReply {
        let ProviderReply { text, finish, usage } = answer;
        // Some servers do not count tokens and report 0.
        let usage = usage.filter(|usage| usage.input > 0 && (usage.output > 0 || text.is_empty()));
        let usage = usage.unwrap_or(TokenUsage { output: most.output.min(text.len() as u64), ..*most });
        let mut sieve = KeyRedactor::new(self.key.as_ref());
        let text = sieve.pass(&text) + &sieve.rest();
        ModelReply { text, finish, usage }
    }
}

impl Model for ModelClient {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ModelReply, ModelError> {
        let most = match request.max_tokens {
            0 => self.max_tokens,
            wanted => wanted.min(self.max_tokens),
        };
        let request = ModelRequest { max_tokens: most, ..request.clone() };
        let seed = clock::now().as_nanos() as u64;
        let mut pauses = Backoff::new(seed, self.haste);
        let mut left = self.retries;
        loop {
            let Failure { error, again, after, .. } = match self.attempt(&request, watcher) {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            if let Some(asked) = after.filter(|asked| *asked <= retry::LONGEST_ASKED) {
                self.gate.close_for(asked);
            }
            let is_too_long = after.is_some_and(|asked| asked > retry::LONGEST_ASKED);
            if !again || left == 0 || is_too_long {
                return Err(error);
            }
            left -= 1;
            let pause = pauses.next(after);
            tracing::info!(model = self.name, %error, ?pause, "a request to a model is sent again");
            retry::wait(pause, watcher)?;
        }
    }
}

/// Passes pieces of a reply on with the key removed.
struct Sieved<'a> {
    watcher: &'a mut dyn ReplyObserver,
    sieve: KeyRedactor<'a>,
}

impl Sieved<'_> {
    fn finish(&mut self) {
        let rest = self.sieve.rest();
        if !rest.is_empty() {
            self.watcher.delta(&rest);
        }
    }
}

impl ReplyObserver for Sieved<'_> {
    fn delta(&mut self, text: &str) {
        let passed = self.sieve.pass(text);
        if !passed.is_empty() {
            self.watcher.delta(&passed);
        }
    }

    fn cancelled(&self) -> bool {
        self.watcher.cancelled()
    }
}

/// The model name of providers that do not need one.
fn usual_name(settings: &ModelSettings) -> Option<String> {
    match settings.provider {
        Provider::Scripted => Some("scripted".to_owned()),
        Provider::Editor => Some("editor".to_owned()),
        Provider::Openai | Provider::Azure | Provider::Anthropic => None,
    }
}

fn protocol(settings: &ModelSettings, name: &str) -> Result<Box<dyn Protocol>, ModelError> {
    if settings.provider == Provider::Editor {
        return Err(editor::missing());
    }
    let unset = || ModelError::Settings("set `model.base-url` to the address of the model's provider".to_owned());
    let base = settings.base_url.as_deref().ok_or_else(unset)?;
    let version = settings.api_version.as_deref();
    Ok(match settings.provider {
        Provider::Azure => Box::new(OpenAi::azure(base, name, version)),
        Provider::Anthropic => Box::new(Anthropic::new(base, name, version)?),
        Provider::Openai | Provider::Scripted | Provider::Editor => Box::new(OpenAi::new(base, name)),
    })
}
