//! The incremental parser of a reply.

use super::protocol::{Partial, Protocol, StreamError};
use super::sse::{SseEvent, SseParser};
use super::{Failure, ModelError, ProviderReply, ReplyObserver};

/// The largest length of a reply's text, in bytes; a kernel has a few thousand.
pub(super) const LONGEST_TEXT: usize = 4 << 20;
/// The largest length of a reply's body, in bytes. Each token comes in an event of its own.
const LONGEST_BODY: usize = 64 << 20;

/// A reply that is being read.
#[derive(Debug, Default)]
pub(super) struct ReplyStream {
    /// Whether the reply comes as a whole although a stream was requested.
    is_whole: bool,
    events: SseParser,
    body: Vec<u8>,
    partial: Partial,
    /// The number of bytes that have arrived.
    size: usize,
}

impl ReplyStream {
    /// A reader of a body with this content type.
    pub(super) fn of(kind: &str) -> Self {
        Self { is_whole: kind.contains("json"), ..Self::default() }
    }

    /// The number of bytes that have arrived.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether part of the text has arrived.
    pub(super) fn has_begun(&self) -> bool {
        !self.partial.text.is_empty()
    }

    /// Whether the reason for the end of the reply has arrived.
    pub(super) fn has_finish(&self) -> bool {
        self.partial.finish.is_some()
    }

    /// Whether the reply is complete.
    pub(super) fn is_done(&self) -> bool {
        self.partial.is_done
    }

    /// Parses a piece of the body, or its end.
    pub(super) fn take(
        &mut self,
        protocol: &dyn Protocol,
        piece: Option<&[u8]>,
        watcher: &mut dyn ReplyObserver,
    ) -> Result<(), Failure> {
        let Self { is_whole, events, body, partial, size } = self;
        *size += piece.map_or(0, <[u8]>::len);
        if *size > LONGEST_BODY {
            return Err(Failure::midway(ModelError::TooLong(LONGEST_BODY)));
        }
        let mut take = |event: SseEvent| {
            let before = partial.text.len();
            protocol.take(&event, partial).map_err(|trouble| failed(trouble, partial))?;
            if partial.text.len() > LONGEST_TEXT {
                return Err(Failure::midway(ModelError::TooLong(LONGEST_TEXT)));
            }
            let fresh = &partial.text[before..];
            if !fresh.is_empty() {
                watcher.delta(fresh);
            }
            Ok(())
        };
        match (piece, *is_whole) {
            (Some(piece), true) => body.extend_from_slice(piece),
            (Some(piece), false) => events.feed(piece, take)?,
            (None, true) => take(SseEvent { name: String::new(), data: String::from_utf8_lossy(body).into_owned() })?,
            (None, false) => {}
        }
        Ok(())
    }

    /// The reply, if it is complete.
    pub(super) fn answer(self) -> Result<ProviderReply, Failure> {
        let Partial { text, finish, usage, is_done } = self.partial;
        let is_reply = finish.is_some() || (is_done && !text.is_empty());
        if !is_reply {
            let error = ModelError::Broken("it ended early".to_owned());
            return Err(Failure { again: text.is_empty(), ..Failure::midway(error) });
        }
        Ok(ProviderReply { text, finish: finish.unwrap_or_default(), usage })
    }
}

fn failed(trouble: StreamError, partial: &Partial) -> Failure {
    match trouble {
        StreamError::Garbage(what) => Failure::midway(ModelError::Garbage(what)),
        StreamError::Reported(complaint) => {
            let again = complaint.is_passing() && partial.text.is_empty();
            Failure { again, ..Failure::midway(ModelError::Failed(complaint.message)) }
        }
    }
}
