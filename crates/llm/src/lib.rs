//! Language models: prompts, replies, their cost, and a client for several providers.
//!
//! A [`Model`] answers one request at a time on the calling thread. [`ModelClient`] is the model that the settings describe:
//! it keeps rate limits (`rate.rs`) and the budget (`account.rs`), and retries requests that failed temporarily. Below
//! it, an `Exchange` sends one request to a provider and reads the reply; its network version (`http.rs`) is the only
//! code that uses the async runtime. The models of an editor are passed in by the caller (`editor.rs`).
//!
//! `prompt/` writes prompts, `reply/` reads replies, and `screen/` checks the proposed code before any of it runs. All
//! three are pure functions of texts.

mod account;
mod anthropic;
mod client;
mod editor;
mod error;
mod http;
mod key;
pub mod numbered_text;
mod openai;
mod price;
pub mod prompt;
mod protocol;
mod rate;
pub mod reply;
mod reply_stream;
mod retry;
pub mod screen;
mod scripted;
mod sse;

use std::time::Duration;

pub use account::{Account, RunSpending};
pub use client::ModelClient;
pub use editor::EditorModel;
pub use error::ModelError;
pub use key::ApiKey;
pub use price::{Money, TokenUsage};
pub use protocol::is_here;

/// The interval at which a waiting thread checks whether it is cancelled.
const GLANCE: Duration = Duration::from_millis(50);

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The conversation so far; the last message is the user's.
    pub messages: Vec<ChatMessage>,
    /// The sampling temperature; the provider's default unless set.
    pub temperature: Option<f64>,
    /// The largest number of tokens of the reply; 0 means `model.max-tokens`, which is also the upper limit.
    pub max_tokens: u64,
    /// Stop sequences, after which the reply ends.
    pub stop: Vec<String>,
}

impl ModelRequest {
    /// A request with one question.
    #[must_use]
    pub fn of(system: impl Into<String>, question: impl Into<String>) -> Self {
        let question = ChatMessage { role: ChatRole::User, text: question.into() };
        Self { system: system.into(), messages: vec![question], ..Self::default() }
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// The role of its author.
    pub role: ChatRole,
    /// The text of the message.
    pub text: String,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    /// The user, in the sense of the protocols.
    User,
    /// The model.
    Assistant,
}

impl ChatRole {
    /// The role's name, which all protocols share.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The reply of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// The whole text.
    pub text: String,
    /// The reason why it ends.
    pub finish: Finish,
    /// The tokens that the request and the reply took.
    pub usage: TokenUsage,
}

/// The reason why a reply ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model had finished, or produced one of [`ModelRequest::stop`].
    #[default]
    Stop,
    /// The reply reached [`ModelRequest::max_tokens`].
    Length,
    /// The provider or the model refused to answer.
    Refused,
    /// Another reason, as the provider names it.
    Other(String),
}

/// Receives a reply while it arrives. Called on the thread of the request.
pub trait ReplyObserver {
    /// Called with each further piece of the reply.
    fn delta(&mut self, _text: &str) {}
    /// Whether the reply is no longer wanted; polled about twenty times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores the pieces and waits for the whole reply.
impl ReplyObserver for () {}

/// A language model. Several threads may call it at the same time, but no thread of an async runtime.
pub trait Model: Send + Sync {
    /// The model's name, for reports.
    fn name(&self) -> &str;

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// Returns [`ModelError`]; its text says what the user can do.
    fn complete(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ModelReply, ModelError>;
}

/// A transport to a provider.
trait Exchange: Send + Sync {
    /// Sends a request once, without retries.
    fn exchange(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ProviderReply, Failure>;
}

/// The answer of a provider.
#[derive(Debug, Default)]
pub struct ProviderReply {
    /// The whole text.
    pub text: String,
    /// The reason why it ends.
    pub finish: Finish,
    /// The tokens that it took, if the provider reports them.
    pub usage: Option<TokenUsage>,
}

/// The reason why one attempt failed.
#[derive(Debug)]
struct Failure {
    error: ModelError,
    /// Whether a retry may succeed.
    again: bool,
    /// How long the provider asks clients to wait.
    after: Option<Duration>,
    /// Whether the provider may bill the attempt.
    billed: bool,
}

impl Failure {
    /// A failure before anything was sent, which a retry would meet again.
    fn lasting(error: ModelError) -> Self {
        Self { error, again: false, after: None, billed: false }
    }

    /// A failure in the middle of a reply.
    fn midway(error: ModelError) -> Self {
        Self { billed: true, ..Self::lasting(error) }
    }
}

#[cfg(test)]
mod tests;
