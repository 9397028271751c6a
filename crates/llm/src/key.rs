//! API keys of providers: where they are read from, and how they are kept out of all output.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};

use config::ModelSettings;

use super::ModelError;

/// The time limit of a key command, which may ask for a password.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time that a key command's output may take after the command has ended.
const LAST: Duration = Duration::from_secs(2);
/// The largest length of a key, in bytes.
const LONGEST: u64 = 16 << 10;
/// The number of consecutive characters of the key that give it away. Shorter keys (`EMPTY`) are not secret.
const TELLING: usize = 8;
/// The least length of keys that are removed from replies. Shorter ones, for servers that accept any key, may be words
/// of a reply (`token-abc123`).
const LEAST: usize = 16;
const HIDDEN: &str = "[key]";

/// A provider's key. Formatting hides it, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct ApiKey(SecretString);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl ApiKey {
    /// A key from an editor that stores it.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        let trimmed = text.trim();
        let key = (!trimmed.is_empty()).then(|| Self(SecretString::from(trimmed)));
        drop(SecretString::from(text));
        key
    }

    /// The key that the settings name; `None` when they name none.
    ///
    /// # Errors
    /// Returns an error when the key is not where the settings say.
    pub fn of(settings: &ModelSettings) -> Result<Option<Self>, ModelError> {
        let named = settings.api_key_env.as_deref();
        if let Some(key) = named.and_then(|name| std::env::var(name).ok()).and_then(Self::new) {
            return Ok(Some(key));
        }
        match (named, settings.key_command.split_first()) {
            (_, Some((program, arguments))) => Self::printed(program, arguments).map(Some),
            (Some(name), None) => Err(ModelError::Key(format!(
                "the environment variable `{name}`, which should hold the model's key, is not set"
            ))),
            (None, None) => Ok(None),
        }
    }

    /// The key printed by a command. Its standard output is captured, and its standard error is passed through.
    fn printed(program: &str, arguments: &[String]) -> Result<Self, ModelError> {
        let failed = |why: &str| ModelError::Key(format!("`{program}`, the `model.key-command`, {why}"));
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| failed(&format!("cannot be started: {error}")))?;
        let (send, receive) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                // Only the first line is read: password managers write notes below it, and a process that they leave
                // running may keep the pipe open.
                let mut line = String::new();
                let read = BufReader::new(output.take(LONGEST)).read_line(&mut line);
                let key = Self::new(line);
                let _ = send.send(read.ok().and(key));
            });
        }
        let end = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed(&format!("did not end within {} s", PATIENCE.as_secs())));
                }
                Err(error) => return Err(failed(&error.to_string())),
            }
        };
        if !status.success() {
            return Err(failed(&format!("failed ({status})")));
        }
        receive.recv_timeout(LAST).ok().flatten().ok_or_else(|| failed("printed no key"))
    }

    /// The key in plain text, for a request header.
    pub(super) fn secret(&self) -> &str {
        self.0.expose_secret()
    }

    /// `text` with all parts of the key hidden. Providers repeat keys in error messages, sometimes in part.
    #[must_use]
    pub(crate) fn redact(&self, text: &str) -> String {
        let key: Vec<char> = self.secret().chars().collect();
        let text: Vec<char> = text.chars().collect();
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let alike = (0..key.len()).map(|from| alike(&key[from..], rest)).max().unwrap_or(0);
            if alike >= TELLING {
                out.push_str(HIDDEN);
                at += alike;
            } else {
                out.push(rest[0]);
                at += 1;
            }
        }
        out
    }
}

/// The length of the common prefix of two texts, in characters.
fn alike(one: &[char], other: &[char]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Removes a key from a text that arrives in pieces.
#[derive(Debug)]
pub(super) struct KeyRedactor<'a> {
    key: Option<&'a ApiKey>,
    /// Text that may be the beginning of the key.
    held: String,
}

impl<'a> KeyRedactor<'a> {
    pub(super) fn new(key: Option<&'a ApiKey>) -> Self {
        Self { key: key.filter(|key| key.secret().len() >= LEAST), held: String::new() }
    }

    /// The part of the text so far that can be passed on.
    pub(super) fn pass(&mut self, piece: &str) -> String {
        let Some(key) = self.key else { return piece.to_owned() };
        let key = key.secret();
        self.held.push_str(piece);
        let text = self.held.replace(key, HIDDEN);
        let lengths = (1..key.len().min(text.len() + 1)).rev();
        let kept =
            lengths.into_iter().find(|length| text.as_bytes().ends_with(&key.as_bytes()[..*length])).unwrap_or(0);
        let mut cut = text.len() - kept;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        self.held = text[cut..].to_owned();
        text[..cut].to_owned()
    }

    /// The text that was held back.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &str = "sk-planted-0123456789abcdef";

    fn key() -> ApiKey {
        ApiKey::new(format!(" {PLANTED}\n")).unwrap()
    }

    fn command(words: &[&str]) -> Result<Option<ApiKey>, ModelError> {
        let key_command = words.iter().map(|word| (*word).to_owned()).collect();
        ApiKey::of(&ModelSettings { key_command, ..ModelSettings::default() })
    }

    #[test]
    fn the_key_and_its_parts_are_redacted() {
        let key = key();
        assert_eq!(key.redact(&format!("bad key {PLANTED}!")), "bad key [key]!");
        assert_eq!(key.redact("Incorrect API key: sk-plant****cdef é"), "Incorrect API key: [key]****cdef é");
        assert_eq!(key.redact("0123456 is too short to tell"), "0123456 is too short to tell");
        assert_eq!(format!("{key:?}"), "[key]");
    }

    #[test]
    fn a_key_is_redacted_across_stream_pieces() {
        let key = key();
        let text = format!("a sk-plan {PLANTED}é sk-");
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut sieve = KeyRedactor::new(Some(&key));
            let out = sieve.pass(&text[..cut]) + &sieve.pass(&text[cut..]) + &sieve.rest();
            assert_eq!(out, "a sk-plan [key]é sk-", "{cut}");
        }
    }

    #[test]
    fn placeholder_keys_are_not_redacted() {
        let key = ApiKey::new("EMPTY".to_owned()).unwrap();
        assert_eq!(key.redact("the key EMPTY is wrong"), "the key EMPTY is wrong");
        let key = ApiKey::new("token-abc123".to_owned());
        assert_eq!(KeyRedactor::new(key.as_ref()).pass("x = 'token-abc123'"), "x = 'token-abc123'");
    }

    #[test]
    fn a_command_is_run_without_a_shell() {
        let printed = command(&["printf", "%s", "$HOME;id"]).unwrap().unwrap();
        assert_eq!(printed.secret(), "$HOME;id");
        for (words, expected) in [
            (&["false"][..], "failed"),
            (&["true"], "printed no key"),
            (&["warpsmith-no-such-program"], "cannot be started"),
        ] {
            let error = command(words).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("model.key-command"), "{error}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let settings =
            ModelSettings { api_key_env: Some("WARPSMITH_NO_SUCH_KEY".to_owned()), ..ModelSettings::default() };
        let error = ApiKey::of(&settings).unwrap_err().to_string();
        assert!(error.contains("`WARPSMITH_NO_SUCH_KEY`"), "{error}");
        assert!(ApiKey::of(&ModelSettings::default()).unwrap().is_none());
    }
}
