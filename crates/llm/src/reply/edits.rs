//! Application of edits to the places where their old text occurs.

use memchr::memmem;

use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::nearest::nearest;
use super::{Replacement, ReplyError};
use crate::numbered_text::Numbered;

/// The largest number of places that an error lists for an ambiguous text.
const PLACES: usize = 8;
/// The number of bytes of an old text that an error repeats.
const SHOWN: usize = 2000;

/// Applies all edits, each at its only place in the original text.
pub(super) fn apply(replacements: &[Replacement], source: &str) -> Result<String, ReplyError> {
    let mut edits = Vec::new();
    for Replacement { old, new } in replacements {
        edits.push(edit(&ended_as(source, old), &ended_as(source, new), source)?);
    }
    edits.sort_by_key(|edit| edit.span.start);
    if let Some(pair) = edits.windows(2).find(|pair| pair[1].span.start < pair[0].span.end) {
        return Err(ReplyError::Overlap { line: source.line_of(pair[1].span.start) });
    }
    Ok(apply_edits(source, &edits))
}

/// A text with the line ends of the source.
fn ended_as(source: &str, text: &str) -> String {
    if source.contains("\r\n") { text.replace('\n', "\r\n") } else { text.to_owned() }
}

fn edit(old: &str, new: &str, source: &str) -> Result<Edit, ReplyError> {
    if old.trim().is_empty() {
        return Err(ReplyError::Empty);
    }
    // Whole lines are tried first, because an indented line also occurs inside lines that are indented further.
    let whole = places(old, source, is_whole);
    let places = if whole.is_empty() { places(old, source, |_, _| true) } else { whole };
    match places.as_slice() {
        [start] => Ok(replaced(source, Span::new(*start, start + old.len()), new)),
        [] => {
            let (line, nearest) = nearest(old, source);
            Err(ReplyError::Nowhere { old: shown(old), line, nearest })
        }
        several => {
            let lines = several.iter().map(|at| source.line_of(*at)).collect();
            Err(ReplyError::Several { old: shown(old), lines })
        }
    }
}

/// The edit for a span; deleted lines also lose their line end.
fn replaced(source: &str, mut span: Span, new: &str) -> Edit {
    if new.is_empty() && is_whole(source, span) {
        span.end += source[span.end..].find('\n').map_or(0, |end| end + 1);
    }
    Edit { span, text: new.to_owned() }
}

fn is_whole(source: &str, span: Span) -> bool {
    let behind = &source[span.end..];
    (span.start == 0 || source.as_bytes()[span.start - 1] == b'\n')
        && (behind.is_empty() || behind.starts_with('\n') || behind.starts_with("\r\n"))
}

/// The first places where a text occurs; they may overlap.
fn places(old: &str, source: &str, is_meant: impl Fn(&str, Span) -> bool) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&source.as_bytes()[from..]).map(|at| from + at) {
        if is_meant(source, Span::new(at, at + old.len())) {
            found.push(at);
        }
        if found.len() == PLACES {
            break;
        }
        from = at + 1;
    }
    found
}

/// The beginning of an old text, short enough for the next prompt.
fn shown(old: &str) -> String {
    match old.char_indices().find(|(at, _)| *at >= SHOWN) {
        Some((end, _)) => format!("{}…", &old[..end]),
        None => old.to_owned(),
    }
}
