//! The edits of a reply in the forms in which models write them: between merge markers, as the prompt asks, between
//! tags, or in fences named `old` and `new`.

use super::fences;
use super::{Replacement, ReplyError};

/// The largest number of edits in a small step.
const MOST_EDITS: usize = 64;

/// The role of a line in an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Old,
    Between,
    New,
}

/// The distinct edits of a reply, in their order.
pub(super) fn replacements(reply: &str) -> Result<Vec<Replacement>, ReplyError> {
    let mut found = merges(reply)?;
    if found.is_empty() {
        found = tags(reply);
    }
    if found.is_empty() {
        found = named_fences(reply);
    }
    let mut once: Vec<Replacement> = Vec::new();
    let count = found.len();
    if count > MOST_EDITS {
        return Err(ReplyError::Many { count, most: MOST_EDITS });
    }
    // Models sometimes repeat an earlier edit at the end.
    for edit in found {
        if !once.contains(&edit) {
            once.push(edit);
        }
    }
    if once.is_empty() { Err(ReplyError::NoBlock) } else { Ok(once) }
}

/// Whether a line begins or ends a part of an edit.
pub(super) fn is_marker(line: &str) -> bool {
    matches!(marker(line), Some(Marker::Old | Marker::New)) || matches!(line.trim(), "<old>" | "<new>")
}

/// The marker on a line: `<<<<<<< OLD`, `=======`, `>>>>>>> NEW`, or the names that other tools use. It must begin the
/// line.
fn marker(line: &str) -> Option<Marker> {
    let line = line.trim_end();
    let word = |rest: &str| rest.trim().trim_end_matches(':').to_ascii_uppercase();
    if let Some(rest) = line.strip_prefix("<<<<<<<") {
        return matches!(word(rest).as_str(), "OLD" | "SEARCH" | "ORIGINAL" | "HEAD" | "").then_some(Marker::Old);
    }
    if let Some(rest) = line.strip_prefix(">>>>>>>") {
        return matches!(word(rest).as_str(), "NEW" | "REPLACE" | "UPDATED" | "").then_some(Marker::New);
    }
    (line == "=======").then_some(Marker::Between)
}

/// An edit whose end has not been found.
struct Open<'r> {
    /// The line of the reply on which it begins, from 1.
    line: usize,
    old: Vec<&'r str>,
    /// The lines of the new text, once it has begun.
    new: Option<Vec<&'r str>>,
}

fn merges(reply: &str) -> Result<Vec<Replacement>, ReplyError> {
    let mut found = Vec::new();
    let mut open: Option<Open<'_>> = None;
    for (at, line) in reply.lines().enumerate() {
        let Some(edit) = &mut open else {
            if marker(line) == Some(Marker::Old) {
                open = Some(Open { line: at + 1, old: Vec::new(), new: None });
            }
            continue;
        };
        match (marker(line), &mut edit.new) {
            // An edit in which another one begins has no end.
            (Some(Marker::Old), _) => return Err(ReplyError::Unfinished { line: edit.line }),
            (Some(Marker::Between), None) => edit.new = Some(Vec::new()),
            (Some(Marker::New), Some(new)) => {
                found.push(Replacement { old: unfenced(&edit.old.join("\n")), new: unfenced(&new.join("\n")) });
                open = None;
            }
            (_, Some(new)) => new.push(line),
            (_, None) => edit.old.push(line),
        }
    }
    open.map_or(Ok(found), |edit| Err(ReplyError::Unfinished { line: edit.line }))
}

/// `<old>…</old>` followed by `<new>…</new>`.
fn tags(reply: &str) -> Vec<Replacement> {
    let mut found = Vec::new();
    let mut rest = reply;
    while let Some((old, behind)) = tagged(rest, "<old>", "</old>") {
        let Some((new, behind)) = tagged(behind, "<new>", "</new>") else { break };
        found.push(Replacement { old: inside(old), new: inside(new) });
        rest = behind;
    }
    found
}

fn tagged<'r>(text: &'r str, open: &str, close: &str) -> Option<(&'r str, &'r str)> {
    let (_, behind) = text.split_once(open)?;
    behind.split_once(close)
}

/// The text inside a tag, without the line ends next to the tags.
fn inside(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text).trim_end_matches([' ', '\t']);
    unfenced(text.strip_suffix('\n').unwrap_or(text))
}

/// A part of an edit, without a fence around all of it.
fn unfenced(part: &str) -> String {
    if part.lines().next().and_then(fences::opens).is_none() {
        return part.to_owned();
    }
    match fences::blocks(part).as_slice() {
        [only] => only.text.strip_suffix('\n').unwrap_or(&only.text).to_owned(),
        _ => part.to_owned(),
    }
}

/// Fences named `old`, each followed by one named `new`.
fn named_fences(reply: &str) -> Vec<Replacement> {
    let blocks = fences::blocks(reply);
    let is = |name: &str, info: &str| info.split_whitespace().any(|word| word.eq_ignore_ascii_case(name));
    let pairs = blocks.windows(2).filter(|pair| is("old", &pair[0].info) && is("new", &pair[1].info));
    let text = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
    pairs.map(|pair| Replacement { old: text(&pair[0].text), new: text(&pair[1].text) }).collect()
}
