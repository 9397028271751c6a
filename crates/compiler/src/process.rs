//! The process in the user's interpreter that asks Triton's front end.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{io, thread};

use runtime::python::{BYTECODE, ScriptError, end_within, unpack_scripts};

use super::protocol::{Message, Request};

/// The program: its files and their texts, the one that is started first.
const SCRIPTS: &[(&str, &str)] = &[
    ("warpsmith_compiler.py", include_str!("worker.py")),
    ("warpsmith_serving.py", include_str!("serving.py")),
    ("warpsmith_answers.py", include_str!("answers.py")),
    ("warpsmith_stages.py", include_str!("stages.py")),
    BYTECODE,
];

/// Why the process does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no place for the script.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The interpreter does not start.
    #[error("cannot start {python}: {source}; set `python` in warpsmith.toml to the project's interpreter")]
    Python {
        /// The interpreter.
        python: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is heard of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// It says something.
    Said(Message),
    /// It is gone.
    Ended,
}

/// So long a process may take to end what it has started and to remove its files.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A running process. It ends, with what it started, when dropped.
#[derive(Debug)]
pub struct Process {
    /// Until it is dropped.
    child: Option<Child>,
    lines: Option<Sender<Vec<u8>>>,
    id: u32,
}

impl Process {
    /// Starts the process, which with all that it starts uses so many processor cores (0 means half of them); `hear` is
    /// called, on a thread of its own, for everything that is heard of it, [`Heard::Ended`] last.
    ///
    /// # Errors
    /// [`StartError`] says what to do.
    pub fn start(python: &Path, cores: usize, hear: impl Fn(Heard) + Send + 'static) -> Result<Self, StartError> {
        let script = unpack_scripts("compiler", SCRIPTS)?;
        let failed = |source| StartError::Python { python: python.to_owned(), source };
        let mut child = Command::new(python)
            .arg(&script)
            .arg(cores.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Of the environment Triton's own switches count, but nothing is compiled for the user here.
            .env_remove("TRITON_INTERPRET")
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (lines, waiting) = channel::<Vec<u8>>();
        // Nobody waits for a process that does not read.
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
                    Ok(message) => hear(Heard::Said(message)),
                    Err(error) => tracing::warn!(%error, line, "the compiler's process says what nobody understands"),
                }
            }
            hear(Heard::Ended);
        });
        let id = child.id();
        Ok(Self { child: Some(child), lines: Some(lines), id })
    }

    /// Asks for a kernel.
    pub fn ask(&self, request: &Request) {
        self.send(serde_json::to_vec(request));
    }

    /// Takes a question back. It is answered, too: as cancelled, unless the answer was faster.
    pub fn cancel(&self, id: u64) {
        self.send(serde_json::to_vec(&serde_json::json!({ "cancel": id })));
    }

    fn send(&self, line: serde_json::Result<Vec<u8>>) {
        match line {
            Ok(mut line) => {
                line.push(b'\n');
                // A process that is gone has told so.
                let _ = self.lines.as_ref().map(|lines| lines.send(line));
            }
            Err(error) => tracing::error!(%error, "a question to the compiler cannot be written"),
        }
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where there is nothing more to read it ends by itself; when it is killed, its folders stay.
        drop(self.lines.take());
        if let Some(child) = self.child.take() {
            // Killed, it takes its children with it.
            thread::spawn(move || end_within(child, END_LIMIT));
        }
    }
}
