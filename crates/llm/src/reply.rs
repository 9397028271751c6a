//! A tolerant parser of model replies: edits, a whole file, a diagnosis. A reply is untrusted input. It becomes a text
//! or an error message for the model and nothing else; paths, commands and other languages in it have no effect.

mod blocks;
mod defined_names;
mod edits;
mod error;
mod fences;
mod nearest;

use std::collections::BTreeSet;

pub use error::ReplyError;

use model::syntax::{Source, each_node, node_span};

use super::numbered_text::{Numbered, bare_return, hidden, one_line};

/// The largest length of a reply, in bytes.
const LONGEST_REPLY: usize = 1 << 20;
/// The largest length of a candidate, in bytes, or twice the length of its source if that is more.
const LONGEST_FILE: usize = 256 << 10;
/// The largest length of a diagnosis, in characters.
const LONGEST_DIAGNOSIS: usize = 300;

/// An edit that replaces a text of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replacement {
    /// The text in the source.
    pub(crate) old: String,
    /// The text that replaces it.
    pub(crate) new: String,
}

/// Applies a small step: the edits of a reply, each of which must match exactly one place of `source`.
///
/// # Errors
/// Returns [`ReplyError`]; its text tells the model how to correct the reply.
pub fn small_step(reply: &str, source: &str) -> Result<String, ReplyError> {
    let reply = answer(reply)?;
    let edits = blocks::replacements(&reply)?;
    let text = edits::apply(&edits, source)?;
    check(&text, source)?;
    if text == source { Err(ReplyError::Unchanged) } else { Ok(text) }
}

/// Reads a large step, a repair or a newly written kernel: the file of a reply, which must define all names of
/// `must_define` (`softmax`, `Op.forward`).
///
/// # Errors
/// Returns [`ReplyError`]; its text tells the model how to correct the reply.
pub fn whole_file(reply: &str, must_define: &[&str]) -> Result<String, ReplyError> {
    let reply = answer(reply)?;
    let mut problem = None;
    for text in fences::files(&reply) {
        if text.len() > LONGEST_FILE {
            let error = ReplyError::TooLong { bytes: text.len(), most: LONGEST_FILE };
            problem.get_or_insert((usize::MAX, error));
            continue;
        }
        let missing = defined_names::missing(&text, must_define);
        match check(&text, "") {
            Ok(()) if missing.is_empty() => return Ok(text),
            found => {
                // The candidate with the fewest missing names gives the most useful error.
                let (count, error) = (missing.len(), found.err().unwrap_or(ReplyError::Missing { names: missing }));
                if problem.as_ref().is_none_or(|(fewest, _)| count < *fewest) {
                    problem = Some((count, error));
                }
            }
        }
    }
    Err(problem.map_or(ReplyError::NoFile, |(_, error)| error))
}

/// The model's diagnosis of the kernel, written before its edits: one line of at most 300 characters, for reports.
pub fn diagnosis(reply: &str) -> Option<String> {
    let reply = answer(reply).ok()?;
    let is_code = |line: &str| fences::opens(line).is_some() || blocks::is_marker(line);
    let prose: Vec<&str> = reply.lines().take_while(|line| !is_code(line)).collect();
    let bare = |line: &str| line.trim_matches(|c: char| c.is_whitespace() || "*#_>-:".contains(c)).to_owned();
    let is_titled = |line: &&str| bare(line).to_ascii_lowercase().starts_with("diagnosis");
    let from = prose.iter().position(is_titled).unwrap_or_default();
    let mut said = String::new();
    for line in &prose[from..] {
        let text = bare(line);
        let text = match text.get(.."diagnosis".len()) {
            Some(title) if title.eq_ignore_ascii_case("diagnosis") => bare(&text["diagnosis".len()..]),
            _ => text,
        };
        if text.is_empty() && !said.is_empty() {
            break;
        }
        said = format!("{said} {text}").trim().to_owned();
        if said.len() > 8 * LONGEST_DIAGNOSIS {
            break;
        }
    }
    let said = one_line(&said, LONGEST_DIAGNOSIS);
    (!said.is_empty()).then_some(said)
}

/// A reply without the model's thinking, with LF line ends.
fn answer(reply: &str) -> Result<String, ReplyError> {
    if reply.len() > LONGEST_REPLY {
        return Err(ReplyError::TooLong { bytes: reply.len(), most: LONGEST_REPLY });
    }
    let said = reply.rsplit_once("</think>").map_or(reply, |(_, said)| said);
    Ok(said.replace("\r\n", "\n"))
}

/// Checks that a text can be a candidate derived from `source`: not too long, no invisible characters, valid Python.
fn check(text: &str, source: &str) -> Result<(), ReplyError> {
    let most = LONGEST_FILE.max(2 * source.len());
    if text.len() > most {
        return Err(ReplyError::TooLong { bytes: text.len(), most });
    }
    let usual: BTreeSet<char> = source.chars().filter(|c| hidden(*c)).collect();
    if let Some((at, letter)) = text.char_indices().find(|(_, c)| hidden(*c) && !usual.contains(c)) {
        return Err(ReplyError::Hidden { line: text.line_of(at), code: u32::from(letter) });
    }
    if let Some(at) = bare_return(text).filter(|_| bare_return(source).is_none()) {
        return Err(ReplyError::Hidden { line: text.line_of(at), code: u32::from('\r') });
    }
    let parsed = Source::parse(text);
    if parsed.has_error() && !Source::parse(source).has_error() {
        return Err(first_error(&parsed));
    }
    Ok(())
}

fn first_error(source: &Source) -> ReplyError {
    let mut first: Option<usize> = None;
    for root in source.roots() {
        each_node(root, &mut |node| {
            if node.is_error() || node.is_missing() {
                let at = node_span(node).start;
                first = Some(first.map_or(at, |known| known.min(at)));
            }
        });
    }
    let text = source.text();
    let line = text.line_of(first.unwrap_or_default());
    let shown = one_line(text.lines().nth(line - 1).unwrap_or_default(), 160);
    ReplyError::Syntax { line, shown }
}

#[cfg(test)]
mod tests;
