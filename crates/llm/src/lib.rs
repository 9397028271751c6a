//! Language models: what is asked, what comes back, and what it may cost.
//!
//! A [`Model`] answers one request after the other, on the thread that asks. [`Client`] is the one that the settings describe:
//! it keeps to rate limits (`rate.rs`) and to the budget (`account.rs`), and sends again what failed for a while. Below it an
//! `Exchange` carries one request to a provider and its reply back, once; over the network (`http.rs`) that is the only code
//! that knows the async runtime. The models that an editor has come from above (`editor.rs`).
//!
//! What is asked comes from `prompt/`, what comes back is read by `reply/`, and what it proposes is looked at by `screen/` before any of it
//! runs. All three are functions of texts.

mod account;
mod anthropic;
mod client;
mod editor;
mod error;
mod http;
mod key;
pub mod lines;
mod openai;
mod price;
pub mod prompt;
mod protocol;
mod rate;
mod reading;
pub mod reply;
mod retry;
pub mod screen;
mod scripted;
mod sse;

use std::time::Duration;

pub use account::{Account, Spent};
pub use client::Client;
pub use editor::EditorModel;
pub use error::ModelError;
pub use key::Key;
pub use price::{Money, Usage};
pub use protocol::is_here;

/// So often whoever waits looks whether it is cancelled.
const GLANCE: Duration = Duration::from_millis(50);

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// What holds for the whole conversation.
    pub system: String,
    /// The conversation so far; the last one is the user's.
    pub messages: Vec<Message>,
    /// How much chance there is in the reply; the provider's own default unless set.
    pub temperature: Option<f64>,
    /// How many tokens the reply may have; 0 means `model.max-tokens`, which is also the most.
    pub max_tokens: u64,
    /// Texts after which the reply ends.
    pub stop: Vec<String>,
}

impl Request {
    /// One question.
    #[must_use]
    pub fn of(system: impl Into<String>, question: impl Into<String>) -> Self {
        let question = Message { role: Role::User, text: question.into() };
        Self { system: system.into(), messages: vec![question], ..Self::default() }
    }
}

/// A part of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whose it is.
    pub role: Role,
    /// What it says.
    pub text: String,
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// As all protocols call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The whole text.
    pub text: String,
    /// Why it ends.
    pub finish: Finish,
    /// The tokens that it took.
    pub usage: Usage,
}

/// Why a reply ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or came to a text in [`Request::stop`].
    #[default]
    Stop,
    /// It would have gone on beyond [`Request::max_tokens`].
    Length,
    /// The provider or the model would not answer.
    Refused,
    /// Something else, in the provider's word.
    Other(String),
}

/// Who waits for a reply. Called from the thread that asked.
pub trait Watcher {
    /// More of the reply has come.
    fn delta(&mut self, _text: &str) {}
    /// Whether nobody wants the reply any more; asked some twenty times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Waits for the whole reply.
impl Watcher for () {}

/// A language model. It may be asked by several threads at a time, none of which belongs to an async runtime.
pub trait Model: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> &str;

    /// Asks, and waits for the reply.
    ///
    /// # Errors
    /// [`ModelError`]; its text says what to do.
    fn complete(&self, request: &Request, watcher: &mut dyn Watcher) -> Result<Reply, ModelError>;
}

/// A way to a provider.
trait Exchange: Send + Sync {
    /// Sends a request once.
    fn exchange(&self, request: &Request, watcher: &mut dyn Watcher) -> Result<Answer, Failure>;
}

/// What a provider answered.
#[derive(Debug, Default)]
pub struct Answer {
    /// The whole text.
    pub text: String,
    /// Why it ends.
    pub finish: Finish,
    /// The tokens that it took, unless the provider left them out.
    pub usage: Option<Usage>,
}

/// Why one attempt came to nothing.
#[derive(Debug)]
struct Failure {
    error: ModelError,
    /// Whether it may go better the next time.
    again: bool,
    /// How long the provider wants to be left alone.
    after: Option<Duration>,
    /// Whether the provider may have worked, and count it.
    billed: bool,
}

impl Failure {
    /// One that the next attempt will meet as well, before anything was sent.
    fn lasting(error: ModelError) -> Self {
        Self { error, again: false, after: None, billed: false }
    }

    /// One in the middle of a reply.
    fn midway(error: ModelError) -> Self {
        Self { billed: true, ..Self::lasting(error) }
    }
}

#[cfg(test)]
mod tests;
