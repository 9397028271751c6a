//! The transcript of a run: all requests to models and their replies, kept beside the journal for the user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use base::clock::now_milliseconds;
use llm::{ModelReply, ModelRequest};

/// A file of JSON lines, one for each reply, `.warpsmith/runs/RUN.transcript`.
pub(super) struct Transcript {
    file: Mutex<Option<File>>,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Milliseconds since 1970.
    at: i64,
    operator: &'a str,
    /// The node below which the candidate is to be placed.
    node: usize,
    model: &'a str,
    prompts: &'a str,
    temperature: Option<f64>,
    system: &'a str,
    messages: Vec<(&'static str, &'a str)>,
    reply: Option<&'a str>,
    input: u64,
    output: u64,
    error: Option<String>,
}

/// The identification of a line.
#[derive(Clone, Copy)]
pub(super) struct TranscriptContext<'a> {
    pub(super) operator: &'a str,
    pub(super) node: usize,
    pub(super) model: &'a str,
    /// The version of the prompts.
    pub(super) prompts: &'a str,
}

impl Transcript {
    /// The transcript of a run. Nothing is kept where it cannot be written or is not wanted.
    pub(super) fn of(workspace: &Path, run: &str, goes_on: bool, is_wanted: bool) -> Self {
        let open = || {
            let path = path(workspace, run);
            let mut options = OpenOptions::new();
            options.append(true);
            #[cfg(unix)]
            {
                use std::os::unix::fs::OpenOptionsExt;
                // A repository may contain a link here that leads elsewhere.
                options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
            }
            if goes_on {
                return options.create(true).open(path);
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            options.create_new(true).open(path)
        };
        let file = (is_wanted && !run.is_empty()).then(open).and_then(|opened| {
            opened.inspect_err(|error| tracing::warn!(%error, "the transcript of models cannot be written")).ok()
        });
        Self { file: Mutex::new(file) }
    }

    pub(super) fn note(
        &self,
        about: TranscriptContext<'_>,
        request: &ModelRequest,
        reply: Result<&ModelReply, String>,
    ) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = file.as_mut() else { return };
        let TranscriptContext { operator, node, model, prompts } = about;
        let usage = reply.as_ref().map(|reply| reply.usage).unwrap_or_default();
        let line = Line {
            at: now_milliseconds(),
            operator,
            node,
            model,
            prompts,
            temperature: request.temperature,
            system: &request.system,
            messages: request.messages.iter().map(|message| (message.role.name(), message.text.as_str())).collect(),
            reply: reply.as_ref().ok().map(|reply| reply.text.as_str()),
            input: usage.input,
            output: usage.output,
            error: reply.as_ref().err().cloned(),
        };
        let written = serde_json::to_vec(&line).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            open.write_all(&line)
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the transcript of models can no longer be written");
            *file = None;
        }
    }
}

/// The path of a run's transcript.
#[must_use]
pub fn path(workspace: &Path, run: &str) -> PathBuf {
    workspace.join(".warpsmith/runs").join(format!("{run}.transcript"))
}

/// Deletes the transcripts of a workspace and returns their number.
///
/// # Errors
/// Returns the system's error when the folder's entries cannot be read or a file cannot be removed. A missing
/// folder is no error.
pub fn delete_all(workspace: &Path) -> io::Result<usize> {
    let Ok(folder) = fs::read_dir(workspace.join(".warpsmith/runs")) else { return Ok(0) };
    let mut count = 0;
    for entry in folder {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "transcript") {
            fs::remove_file(path)?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_link_that_a_repository_has_put_there_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("profile"), path(folder.path(), "k-1"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let about = TranscriptContext { operator: "small", node: 1, model: "m", prompts: "p" };
        for goes_on in [true, false] {
            fs::write(&target, "mine\n").unwrap();
            let _ = fs::remove_file(&path);
            std::os::unix::fs::symlink(&target, &path).unwrap();
            let transcript = Transcript::of(folder.path(), "k-1", goes_on, true);
            transcript.note(about, &ModelRequest::of("s", "u"), Err("no".to_owned()));
            assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
        }
        let own = fs::read_to_string(&path).unwrap();
        assert!(own.contains("\"error\":\"no\""), "{own}");
        assert_eq!(delete_all(folder.path()).unwrap(), 1);
    }
}
