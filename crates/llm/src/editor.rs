//! Language models of an editor. The editor chooses the model, asks the user for consent and sends the request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::protocol::plain;
use super::reply_stream::LONGEST_TEXT;
use super::{Exchange, Failure, ModelError, ModelRequest, ProviderReply, ReplyObserver};

/// An editor that offers language models.
pub trait EditorModel: Send + Sync {
    /// Lets the model of this name reply, or one that the editor chooses, and blocks until it has. `cancelled` returns
    /// whether the reply is no longer wanted; it should be polled about twenty times a second.
    ///
    /// # Errors
    /// Returns [`ModelError::Editor`], or [`ModelError::Cancelled`] when the request was cancelled.
    fn complete(
        &self,
        model: Option<&str>,
        request: &ModelRequest,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<ProviderReply, ModelError>;
}

/// One language model of an editor.
pub(super) struct Editor {
    models: Arc<dyn EditorModel>,
    name: Option<String>,
    /// The time limit of a reply.
    limit: Duration,
}

impl Editor {
    pub(super) fn new(models: Arc<dyn EditorModel>, name: Option<String>, limit: Duration) -> Self {
        Self { models, name, limit }
    }
}

impl Exchange for Editor {
    fn exchange(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ProviderReply, Failure> {
        let start = Instant::now();
        let is_over = || watcher.cancelled() || start.elapsed() > self.limit;
        let answer = self.models.complete(self.name.as_deref(), request, &is_over);
        let answer = answer.map_err(|error| match error {
            ModelError::Cancelled if !watcher.cancelled() => Failure::midway(self.slow()),
            ModelError::Cancelled => Failure::midway(error),
            ModelError::Editor { why, is_lasting } => {
                Failure::lasting(ModelError::Editor { why: plain(&why), is_lasting })
            }
            error => Failure::lasting(error),
        })?;
        if answer.text.len() > LONGEST_TEXT {
            return Err(Failure::midway(ModelError::TooLong(LONGEST_TEXT)));
        }
        watcher.delta(&answer.text);
        Ok(answer)
    }
}

impl Editor {
    fn slow(&self) -> ModelError {
        ModelError::Slow { stage: "did not finish its reply", setting: "whole", limit: self.limit }
    }
}

/// The error for a run without an editor.
pub(super) fn missing() -> ModelError {
    let why = "`model.provider = \"editor\"` works in an editor only, and in one that lets Warpsmith use its language models, such as \
               VS Code; elsewhere set another `model.provider`";
    ModelError::Settings(why.to_owned())
}
