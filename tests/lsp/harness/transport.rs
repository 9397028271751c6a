//! The pipes to a server in its own process or in this one.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use warpsmith::server::Tools;

/// The pipes to a server.
pub(super) enum Transport {
    Process { child: Child, stderr: Arc<Mutex<String>> },
    Thread { input: WriteHalf<DuplexStream>, thread: JoinHandle<bool> },
}

impl Transport {
    /// Starts a server in its own process, which keeps its state in `state`.
    pub(super) fn spawn(folder: &Path, state: &Path, fake_device: bool, messages: mpsc::Sender<Value>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
            .envs(fake_device.then_some(("WARPSMITH_FAKE_DEVICE", "toy")))
            .arg("serve")
            .current_dir(folder)
            .env("WARPSMITH_LOG", "info")
            .env("XDG_STATE_HOME", state)
            .env_remove("VIRTUAL_ENV")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || read_messages(BufReader::new(stdout), &messages));
        let (stderr, mut pipe) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let log = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                log.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
        });
        Self::Process { child, stderr }
    }

    pub(super) fn in_process(tools: Tools, messages: mpsc::Sender<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let serve = move || warpsmith::server::serve_on(input, output, tools).unwrap();
        let thread =
            std::thread::spawn(move || format!("{:?}", serve()) == format!("{:?}", std::process::ExitCode::SUCCESS));
        let (reader, writer) = tokio::io::split(ours);
        std::thread::spawn(move || read_messages(BufReader::new(Blocking(reader)), &messages));
        Self::Thread { input: writer, thread }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Process { child, .. } => {
                let stdin = child.stdin.as_mut().unwrap();
                stdin.write_all(bytes)?;
                stdin.flush()
            }
            Self::Thread { input, .. } => block_on(input.write_all(bytes)),
        }
    }
}

/// An asynchronous stream, read by a thread that may block.
struct Blocking(ReadHalf<DuplexStream>);

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        block_on(self.0.read(buffer))
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn read_messages(mut stream: impl BufRead, messages: &mpsc::Sender<Value>) {
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() || messages.send(serde_json::from_slice(&body).unwrap()).is_err() {
            return;
        }
    }
}
