//! Errors of language models, with advice for the user.

use std::fmt;
use std::time::Duration;

use store::StoreError;

use super::price::Money;

/// The reason why a model did not answer. No text contains a key.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A setting is missing or invalid; the text says which.
    #[error("{0}")]
    Settings(String),
    /// The key that the settings name does not exist.
    #[error("{0}")]
    Key(String),
    /// The caller no longer wants the reply.
    #[error("stopped")]
    Cancelled,
    /// The request may cost more than the rest of the budget.
    #[error("the budget {0}")]
    Budget(Overrun),
    /// The provider answered with an HTTP error.
    #[error("the model's provider answered {status}{}{hint}", said(.message))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's message without keys; may be empty.
        message: String,
        /// Advice for the user, beginning with a semicolon; may be empty.
        hint: String,
    },
    /// The provider reported an error in place of a reply.
    #[error("the model's provider reported an error{}; try again later", said(.0))]
    Failed(String),
    /// No connection could be made.
    #[error("the model's provider cannot be reached ({0}); is `model.base-url` right, and the network up?")]
    Unreachable(String),
    /// The connection broke before the reply was complete.
    #[error("the connection to the model's provider broke before the reply was whole ({0}); try again")]
    Broken(String),
    /// A time limit was exceeded.
    #[error("the model {stage} within {} s (`model.timeouts.{setting}`)", .limit.as_secs_f64())]
    Slow {
        /// What the model failed to do in time.
        stage: &'static str,
        /// The setting of the time limit.
        setting: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The answer is not a reply of the expected protocol.
    #[error("the model's provider did not send a valid reply ({0}); are `model.provider` and `model.base-url` right?")]
    Garbage(String),
    /// The reply is longer than this many bytes.
    #[error("the model's reply is longer than {} MiB; it was not read further", .0 >> 20)]
    TooLong(usize),
    /// The file of scripted replies has none for this request.
    #[error("{0}")]
    Script(String),
    /// The editor's model did not answer.
    #[error("{why}")]
    Editor {
        /// One sentence that tells the user what to do.
        why: String,
        /// Whether the next request would fail in the same way.
        is_lasting: bool,
    },
    /// The store that records what was spent today cannot be used.
    #[error("what language models have cost today cannot be kept: {0}")]
    Store(#[from] StoreError),
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// A limit of the budget that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The setting, such as `run-tokens`.
    pub setting: &'static str,
    /// The limit.
    pub limit: Amount,
    /// The amount that is spent or reserved.
    pub spent: Amount,
    /// The most that the request can cost.
    pub needed: Amount,
}

/// An amount of tokens or money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Tokens.
    Tokens(u64),
    /// Money.
    Money(Money),
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, limit, spent, needed } = self;
        write!(
            f,
            "`model.budget.{setting}` is used up: {spent} of {limit} are spent or reserved, and the next request may cost {needed}; raise it to continue"
        )
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(count) => write!(f, "{count} tokens"),
            Self::Money(money) => money.fmt(f),
        }
    }
}
