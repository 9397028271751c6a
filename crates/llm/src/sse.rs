//! A parser of server-sent events, as far as the providers use them.

/// An event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The event type; often empty.
    pub(super) name: String,
    /// The data of the event.
    pub(super) data: String,
}

/// Assembles events from pieces of a stream, which may be cut anywhere.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    /// The incomplete current line.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// Whether the last byte was a CR, which may be followed by an LF of the same line end.
    after_cr: bool,
}

impl SseParser {
    /// Parses a piece of the stream and calls `take` with each event that it completes.
    pub(super) fn feed<E>(&mut self, bytes: &[u8], mut take: impl FnMut(SseEvent) -> Result<(), E>) -> Result<(), E> {
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = bytes.is_empty();
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.line.extend_from_slice(&rest[..end]);
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if let Some(event) = self.end_of_line() {
                take(event)?;
            }
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    fn end_of_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            // An event without data is ignored.
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments keep the connection alive; `id` and `retry` are for streams that are resumed.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let (mut events, mut found) = (SseParser::default(), Vec::new());
        for piece in pieces {
            let take = |event: SseEvent| {
                found.push((event.name, event.data));
                Ok::<_, Infallible>(())
            };
            events.feed(piece, take).unwrap();
        }
        found
    }

    #[test]
    fn events_are_the_same_wherever_the_stream_is_cut() {
        let stream = "\u{feff}event: a\ndata: 1\r\ndata:  é\r\r: ping\n\nretry: 3\nid: 7\n\ndata\n\ndata:x\n\nevent: b\n\ndata: lost".as_bytes();
        let expected = [("a", "1\n é"), ("", ""), ("", "x")].map(|(name, data)| (name.to_owned(), data.to_owned()));
        assert_eq!(events(&[stream]), expected);
        for cut in 0..=stream.len() {
            assert_eq!(events(&[&stream[..cut], b"", &stream[cut..]]), expected, "{cut}");
        }
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(events(&single), expected);
    }

    #[test]
    fn invalid_utf8_in_events_is_replaced() {
        assert_eq!(events(&[b"data: \xff\n\n"]), [(String::new(), "\u{fffd}".to_owned())]);
    }
}
