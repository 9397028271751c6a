//! Tests that the key is sent to its provider and appears nowhere else.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use super::*;

/// Everything that is logged.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// A subscriber that records all messages of all threads from now on; a connection has threads of its own.
    pub(super) fn start() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        let _ = subscriber.with_writer(move || writer.clone()).try_init();
        log
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

fn contents(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

#[test]
fn the_key_appears_in_no_error_or_log() {
    let log = Log::start();
    let mut shown = String::new();
    for speech in BOTH {
        // A server that repeats the key in every part of its response.
        let server = Server::start(move |number, _| {
            let error =
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("bad {KEY}")}});
            match number {
                0 => answer(401, "application/json", &error.to_string()),
                1 => answer(400, "text/plain", &format!("bad key {}****", &KEY[..14])),
                2 => vec![stream(), piece(&format!("data: {error}\n\n")), end()],
                3 => vec![stream(), piece(&format!("data: {KEY}\n\n")), end()],
                4 => speech.whole(&format!("your key is {KEY}."), 1, 1),
                5 => speech.streamed(&["your key is ", &KEY[..5], &KEY[5..], "."], 1, 1),
                _ => vec![Act::Send(format!("HTTP/1.1 {KEY}\r\n\r\n").into_bytes()), Act::Close],
            }
        });
        let bench = Bench::new(&ModelSettings { retries: 1, ..speech.settings(&server) });
        for number in 0..7 {
            let mut notes = Notes::default();
            let result = bench.client.complete(&question(), &mut notes);
            if let Ok(reply) = &result {
                assert_eq!(
                    (reply.text.as_str(), notes.deltas.concat().as_str()),
                    ("your key is [key].", "your key is [key].")
                );
            }
            assert_eq!(result.is_ok(), matches!(number, 4 | 5), "{number}: {result:?}");
            shown.push_str(&format!("{result:?} {:?}", notes.deltas));
            shown.extend(result.err().map(|error| error.to_string()));
        }
        assert!(server.received().iter().all(|received| received.head.contains(KEY)), "it was sent");
        shown.push_str(&contents(bench.folder.path()));
    }
    let logged = log.text();
    assert!(logged.contains("a request to a model is sent again"), "{logged}");
    shown.push_str(&logged);
    // No part of the key appears either.
    let parts = (0..=KEY.len() - 8).map(|at| &KEY[at..at + 8]);
    for part in parts.filter(|part| !part.starts_with("sk-plant")) {
        assert!(!shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains(KEY));
}
