//! What can go wrong with a language model, and what to do then.

use std::fmt;
use std::time::Duration;

use store::StoreError;

use super::price::Money;

/// Why a model did not answer. No text holds a key.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Something is not set, or does not fit; the text says what.
    #[error("{0}")]
    Settings(String),
    /// There is no key where the settings say that there is one.
    #[error("{0}")]
    Key(String),
    /// Nobody waits for it any more.
    #[error("stopped")]
    Cancelled,
    /// It may cost more than is left.
    #[error("the budget {0}")]
    Budget(Overrun),
    /// The provider said no.
    #[error("the model's provider answered {status}{}{hint}", said(.message))]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What it said, without keys; may be empty.
        message: String,
        /// What to do, after a semicolon; may be empty.
        hint: String,
    },
    /// The provider reported an error where a reply was due.
    #[error("the model's provider reported an error{}; try again later", said(.0))]
    Failed(String),
    /// No connection.
    #[error("the model's provider cannot be reached ({0}); is `model.base-url` right, and the network up?")]
    Unreachable(String),
    /// The connection broke.
    #[error("the connection to the model's provider broke before the reply was whole ({0}); try again")]
    Broken(String),
    /// It took too long.
    #[error("the model {stage} within {} s (`model.timeouts.{setting}`)", .limit.as_secs_f64())]
    Slow {
        /// What it did not do.
        stage: &'static str,
        /// The key of the time.
        setting: &'static str,
        /// The time.
        limit: Duration,
    },
    /// What came is no reply.
    #[error("what came from the model's provider is no reply ({0}); are `model.provider` and `model.base-url` right?")]
    Garbage(String),
    /// The reply does not end.
    #[error("the model's reply is longer than {} MiB; it was not read further", .0 >> 20)]
    TooLong(usize),
    /// The file of replies has none for this request.
    #[error("{0}")]
    Script(String),
    /// The editor's model did not answer.
    #[error("{why}")]
    Editor {
        /// One sentence that says what to do.
        why: String,
        /// Whether the next request would be answered alike.
        is_lasting: bool,
    },
    /// What was spent today cannot be looked up.
    #[error("what language models have cost today cannot be kept: {0}")]
    Store(#[from] StoreError),
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// A budget that a request does not fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The setting: `run-tokens`
    pub setting: &'static str,
    /// What may be spent.
    pub limit: Amount,
    /// What is spent or set aside.
    pub spent: Amount,
    /// What the request may cost at most.
    pub needed: Amount,
}

/// Tokens or money.
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
            "`model.budget.{setting}` is used up: of {limit} {spent} are spent or set aside, and the next request may cost {needed}; raise it to go on"
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
