//! A filter in front of the protocol library that lets only well-formed messages through, because the library stops
//! reading at the first malformed one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memmem;
use serde_json::json;
use tokio::io::{AsyncRead, ReadBuf};
use tower_lsp::jsonrpc::Request;

/// The method of the request that replaces a malformed message; its answer has the id `null` and the code of a
/// parse error, as JSON-RPC requires.
pub(crate) const MALFORMED: &str = "$/warpsmith/malformed";

/// Greatest length of a header, in bytes; a longer one is invalid.
const MAX_HEADER: usize = 8 << 10;
/// Greatest length of a message, in bytes; a longer one is invalid.
const MAX_BODY: usize = 1 << 30;
const CHUNK: usize = 16 << 10;

/// A reader that passes well-formed messages on from an arbitrary stream.
pub(crate) struct FrameReader<R> {
    inner: R,
    /// Bytes that were read and do not form a message yet.
    pending: Vec<u8>,
    /// Bytes that may be passed on, and how many of them were.
    ready: Vec<u8>,
    handed: usize,
}

impl<R> FrameReader<R> {
    /// Creates a reader of `inner`.
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, pending: Vec::new(), ready: Vec::new(), handed: 0 }
    }

    /// Moves the next message, or the replacement of a malformed one, from `pending` to `ready`.
    fn advance(&mut self) -> bool {
        let (used, body) = match split(&self.pending) {
            Split::Incomplete => return false,
            Split::Garbage(used) => (used, malformed("this is not a message header")),
            Split::Body { start, end } => {
                let body = &self.pending[start..end];
                (end, problem(body).map_or_else(|| body.to_vec(), |problem| malformed(&problem)))
            }
        };
        self.pending.drain(..used);
        self.ready = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        self.ready.extend(body);
        self.handed = 0;
        true
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FrameReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.handed == this.ready.len() && !this.advance() {
            let mut chunk = [0; CHUNK];
            let mut buffer = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(())); // the end; half a message is dropped
            }
            this.pending.extend_from_slice(buffer.filled());
        }
        let rest = &this.ready[this.handed..];
        let count = rest.len().min(out.remaining());
        out.put_slice(&rest[..count]);
        this.handed += count;
        Poll::Ready(Ok(()))
    }
}

/// The classification of the start of the pending bytes.
enum Split {
    /// Too few bytes to decide.
    Incomplete,
    /// This many bytes belong to no message.
    Garbage(usize),
    /// A whole message.
    Body { start: usize, end: usize },
}

fn split(bytes: &[u8]) -> Split {
    let Some(header_end) = memmem::find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > MAX_HEADER { Split::Garbage(garbage(bytes)) } else { Split::Incomplete };
    };
    let length = std::str::from_utf8(&bytes[..header_end]).ok().and_then(content_length);
    let Some(length) = length.filter(|&length| length <= MAX_BODY) else { return Split::Garbage(garbage(bytes)) };
    let start = header_end + 4;
    if bytes.len() < start + length { Split::Incomplete } else { Split::Body { start, end: start + length } }
}

fn content_length(header: &str) -> Option<usize> {
    header.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
    })
}

/// Number of bytes to skip: up to the next possible header, at least one.
fn garbage(bytes: &[u8]) -> usize {
    memmem::find(&bytes[1..], b"Content-Length").map_or(bytes.len(), |at| at + 1)
}

/// The defect of a message, if it has one. Answers have no method and also parse as requests.
fn problem(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Request>(body).err().map(|error| error.to_string())
}

fn malformed(reason: &str) -> Vec<u8> {
    tracing::warn!(reason, "a message cannot be read");
    json!({ "jsonrpc": "2.0", "id": null, "method": MALFORMED, "params": reason }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn passed(input: &[u8]) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut out = Vec::new();
        runtime.block_on(FrameReader::new(input).read_to_end(&mut out)).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    const EXIT: &str = r#"{"jsonrpc":"2.0","method":"exit"}"#;

    #[test]
    fn messages_pass_unchanged_whatever_their_header_looks_like() {
        let answer = r#"{"jsonrpc":"2.0","id":"a","result":null}"#;
        let input = format!(
            "content-length:{}\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\nX: y\r\n\r\n{EXIT}{}",
            EXIT.len(),
            framed(answer)
        );
        assert_eq!(passed(input.as_bytes()), framed(EXIT) + &framed(answer));
    }

    #[test]
    fn malformed_messages_are_replaced_and_later_ones_are_read() {
        let deep = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for bad in [
            framed("{nonsense"),
            framed("[]"),
            framed(r#"{"method":"m"}"#),
            framed(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#),
            framed(&deep),
            "Content-Length: many\r\n\r\n".to_owned(),
            "Content-Length: 99999999999999\r\n\r\n".to_owned(),
            "hello\r\n\r\n".to_owned(),
            "x".repeat(MAX_HEADER + 1),
        ] {
            let out = passed((bad.clone() + &framed(EXIT)).as_bytes());
            assert!(out.contains(MALFORMED), "{bad:.60}: {out}");
            assert!(out.ends_with(&framed(EXIT)), "{bad:.60}: {out}");
        }
        let mut bad = framed("\"xx\"").into_bytes();
        let at = bad.len() - 2;
        bad[at] = 0xff;
        bad.extend(framed(EXIT).bytes());
        assert!(passed(&bad).contains(MALFORMED));
    }

    #[test]
    fn half_a_message_at_the_end_is_dropped() {
        assert_eq!(passed(&framed(EXIT).as_bytes()[..30]), "");
    }
}
