//! A fake provider that speaks HTTP over a socket and follows a script.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// An action of the server on a connection.
pub(super) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends the same bytes again and again, with a pause, until the other side closes the connection.
    Drip(Vec<u8>, Duration),
    Close,
}

/// A received request.
#[derive(Clone)]
pub(super) struct Received {
    /// `POST /v1/messages`
    pub(super) line: String,
    /// The headers in lower case.
    pub(super) head: String,
    pub(super) body: serde_json::Value,
}

/// A server that lives as long as the test.
pub(super) struct Server {
    pub(super) address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// Starts a server; `answer` gets the number of a request, from 0, and the request.
    pub(super) fn start(answer: impl Fn(usize, &Received) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (answer, kept) = (Arc::new(answer), Arc::clone(&received));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { address, received }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

/// Answers the requests on one connection, until either side closes it.
fn serve(
    mut stream: TcpStream,
    received: &Mutex<Vec<Received>>,
    answer: &dyn Fn(usize, &Received) -> Vec<Act>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let request = read(&mut reader)?;
        let number = {
            let mut received = received.lock().unwrap();
            received.push(request.clone());
            received.len() - 1
        };
        for act in answer(number, &request) {
            match act {
                Act::Send(bytes) => stream.write_all(&bytes).ok()?,
                Act::Wait(time) => thread::sleep(time),
                Act::Drip(bytes, pause) => loop {
                    stream.write_all(&bytes).ok()?;
                    thread::sleep(pause);
                },
                Act::Close => return None,
            }
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Received> {
    let (mut line, mut head) = (String::new(), String::new());
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        if field.trim().is_empty() {
            break;
        }
        let field = field.to_lowercase();
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&field);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Received { line, head, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// A complete response.
pub(super) fn answer(status: u16, kind: &str, body: &str) -> Vec<Act> {
    answer_with(status, kind, "", body)
}

/// A response with further headers, each with its line end.
pub(super) fn answer_with(status: u16, kind: &str, heads: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    vec![Act::Send(
        format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{heads}content-length: {length}\r\n\r\n{body}")
            .into_bytes(),
    )]
}

/// The head of a streamed response.
pub(super) fn stream() -> Act {
    Act::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec())
}

/// A piece of a streamed response.
pub(super) fn piece(text: &str) -> Act {
    Act::Send(chunk(text))
}

pub(super) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The end of a streamed response.
pub(super) fn end() -> Act {
    Act::Send(b"0\r\n\r\n".to_vec())
}
