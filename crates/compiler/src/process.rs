//! The process in the user's interpreter that runs Triton's front end.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{io, thread};

use runtime::python::{BYTECODE, ScriptError, end_within, unpack_scripts};

use super::protocol::{CompilerMessage, LoweringRequest};

/// The Python files of the program with their texts; the first is the one to start.
const SCRIPTS: &[(&str, &str)] = &[
    ("warpsmith_compiler.py", include_str!("worker.py")),
    ("warpsmith_serving.py", include_str!("serving.py")),
    ("warpsmith_answers.py", include_str!("answers.py")),
    ("warpsmith_stages.py", include_str!("stages.py")),
    BYTECODE,
];

/// Why the process cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The Python files cannot be written.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The interpreter cannot be started.
    #[error("cannot start {python}: {source}; set `python` in warpsmith.toml to the project's interpreter")]
    Python {
        /// The interpreter.
        python: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// An event of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum ProcessOutput {
    /// It sent a message.
    Message(CompilerMessage),
    /// It has ended.
    Ended,
}

/// The time limit for a process to end its children and remove its files.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A running process. When dropped, it ends with all processes that it started.
#[derive(Debug)]
pub struct CompilerProcess {
    /// The child process; taken when dropped.
    child: Option<Child>,
    lines: Option<Sender<Vec<u8>>>,
    id: u32,
}

impl CompilerProcess {
    /// Starts the process. It and its children use `cores` processor cores; 0 means half of them. `hear` is called for
    /// each event, on a thread of its own; the last event is [`ProcessOutput::Ended`].
    ///
    /// # Errors
    /// Returns [`StartError`] when the process cannot be started.
    pub fn start(
        python: &Path,
        cores: usize,
        hear: impl Fn(ProcessOutput) + Send + 'static,
    ) -> Result<Self, StartError> {
        let script = unpack_scripts("compiler", SCRIPTS)?;
        let failed = |source| StartError::Python { python: python.to_owned(), source };
        let mut child = Command::new(python)
            .arg(&script)
            .arg(cores.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Triton's own environment variables apply, except for the interpreter, which would not compile.
            .env_remove("TRITON_INTERPRET")
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (lines, waiting) = channel::<Vec<u8>>();
        // A thread writes the requests, so that a process that does not read blocks no other thread.
        thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            while let Ok(line) = waiting.recv() {
                if stdin.write_all(&line).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            let lines = stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines);
            for line in lines.map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(message) => hear(ProcessOutput::Message(message)),
                    Err(error) => tracing::warn!(%error, line, "the compiler process sent an invalid message"),
                }
            }
            hear(ProcessOutput::Ended);
        });
        let id = child.id();
        Ok(Self { child: Some(child), lines: Some(lines), id })
    }

    /// Sends a request.
    pub fn ask(&self, request: &LoweringRequest) {
        self.send(serde_json::to_vec(request));
    }

    /// Cancels a request. It is still answered: as cancelled, unless its answer was faster.
    pub fn cancel(&self, id: u64) {
        self.send(serde_json::to_vec(&serde_json::json!({ "cancel": id })));
    }

    fn send(&self, line: serde_json::Result<Vec<u8>>) {
        match line {
            Ok(mut line) => {
                line.push(b'\n');
                // If the process has ended, `ProcessOutput::Ended` reports that.
                let _ = self.lines.as_ref().map(|lines| lines.send(line));
            }
            Err(error) => tracing::error!(%error, "a compiler request cannot be serialized"),
        }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for CompilerProcess {
    fn drop(&mut self) {
        // It ends by itself at the end of its input. If it is killed, its folders remain.
        drop(self.lines.take());
        if let Some(child) = self.child.take() {
            // If it is killed, its children end with it.
            thread::spawn(move || end_within(child, END_LIMIT));
        }
    }
}
