//! A model whose replies are read from a file, for tests and for trials without a network.
//!
//! ```toml
//! [[reply]]
//! when = "def softmax"    # only to a request that has this text; to any unless set
//! text = '''
//! The reply.
//! '''
//! finish = "length"       # why it ends: `stop` (default), `length` or `refused`
//! input = 900             # the tokens that it is said to have taken; estimated unless all are set
//! cached = 0
//! output = 20
//! delay = 0.5             # seconds before it begins
//! again = true            # whether it may be given any number of times; else once
//!
//! [[reply]]
//! status = 429            # an error instead of a reply, as HTTP has it
//! retry-after = 1
//! ```
//!
//! A request gets the first remaining reply that matches it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use config::time;

use super::{Exchange, Failure, Finish, ModelError, ModelRequest, ProviderReply, ReplyObserver, TokenUsage, retry};

/// The scripted replies of a file.
#[derive(Debug)]
pub(super) struct Scripted {
    replies: Vec<Line>,
    /// The indices of replies that have been given.
    given: Mutex<HashSet<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    reply: Vec<Line>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Line {
    when: Option<String>,
    text: String,
    finish: Ending,
    input: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    delay: f64,
    again: bool,
    status: Option<u16>,
    retry_after: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ending {
    #[default]
    Stop,
    Length,
    Refused,
}

impl Scripted {
    pub(super) fn read(path: &Path) -> Result<Self, ModelError> {
        let failed = |why: String| ModelError::Script(format!("{}, the `model.script`, {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let script: Script = toml::from_str(&text).map_err(|error| failed(format!("cannot be used: {error}")))?;
        Ok(Self { replies: script.reply, given: Mutex::default() })
    }

    /// The next reply for a request.
    fn next(&self, request: &ModelRequest) -> Result<&Line, ModelError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |text: &str| {
            request.system.contains(text) || request.messages.iter().any(|message| message.text.contains(text))
        };
        let fits = |line: &Line| line.when.as_deref().is_none_or(has);
        let found = self.replies.iter().enumerate().find(|(at, line)| !given.contains(at) && fits(line));
        let Some((at, line)) = found else {
            let message = "the `model.script` has no reply left for this request; add one, or set `again = true`";
            return Err(ModelError::Script(message.to_owned()));
        };
        if !line.again {
            given.insert(at);
        }
        Ok(line)
    }
}

impl Exchange for Scripted {
    fn exchange(&self, request: &ModelRequest, watcher: &mut dyn ReplyObserver) -> Result<ProviderReply, Failure> {
        let line = self.next(request).map_err(Failure::lasting)?;
        retry::wait(time(line.delay), watcher).map_err(Failure::midway)?;
        if let Some(status) = line.status {
            let error = ModelError::Refused { status, message: line.text.clone(), hint: String::new() };
            let after = line.retry_after.map(time);
            return Err(Failure { again: retry::is_passing(status), after, ..Failure::lasting(error) });
        }
        for piece in line.text.split_inclusive('\n') {
            watcher.delta(piece);
        }
        let finish = match line.finish {
            Ending::Stop => Finish::Stop,
            Ending::Length => Finish::Length,
            Ending::Refused => Finish::Refused,
        };
        let usage = line.input.zip(line.output).map(|(input, output)| {
            let cached = line.cached.unwrap_or(0).min(input);
            TokenUsage { input, cached, output, estimated: false }
        });
        Ok(ProviderReply { text: line.text.clone(), finish, usage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Result<Scripted, ModelError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replies.toml");
        std::fs::write(&path, text).unwrap();
        Scripted::read(&path)
    }

    #[test]
    fn a_scripted_request_gets_the_first_unused_matching_reply() {
        let script = script(
            "[[reply]]\nwhen = 'softmax'\ntext = 'a\nb'\ninput = 3\noutput = 1\n[[reply]]\ntext = 'any'\nagain = true\n"
                .replace("'a\nb'", "\"a\\nb\"")
                .as_str(),
        )
        .unwrap();
        let ask = |question: &str| script.exchange(&ModelRequest::of("", question), &mut ()).unwrap();
        assert_eq!(ask("a matmul").text, "any");
        let reply = ask("a softmax");
        assert_eq!((reply.text.as_str(), reply.usage.map(|usage| usage.tokens())), ("a\nb", Some(4)));
        assert_eq!(ask("a softmax").text, "any");
    }

    #[test]
    fn errors_in_a_script_have_their_position() {
        let error = script("[[reply]]\ntxt = 'a'").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("unknown field `txt`"), "{error}");
        let empty = script("").unwrap();
        let error = empty.exchange(&ModelRequest::default(), &mut ()).unwrap_err().error.to_string();
        assert!(error.contains("no reply left"), "{error}");
    }
}
