//! Source locations in Triton's MLIR dialects, where an operation ends with its location, mostly as a numbered alias.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Frame, Origin, Row, number, quoted, unescaped};

/// The greatest nesting of locations; MLIR emits no deeper one.
const DEEP: usize = 64;

/// The lines of a module.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut table = Table::default();
    for line in text.lines() {
        if let Some((name, location)) = definition(line) {
            table.texts.insert(name, location);
        }
    }
    let (mut rows, mut open): (Vec<Row<'_>>, Vec<usize>) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| definition(line).is_none()) {
        let (stripped, location) = stripped(line);
        let origin = location.map(|location| table.origin(location));
        let (is_start, is_end) = (stripped.ends_with('{'), stripped.trim_start().starts_with('}'));
        let opened = if is_end { open.pop() } else { None };
        if let (Some(opened), Some(origin)) = (opened, &origin) {
            // The location of an operation with a body is after the body.
            rows[opened].origin = Some(Rc::clone(origin));
        }
        if is_start {
            open.push(opened.unwrap_or(rows.len()));
        }
        rows.push(Row { text: stripped, origin: origin.filter(|_| !is_end) });
    }
    rows
}

/// Parses an alias, `#loc7 = loc(…)`, into its name and the text in parentheses.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, location) = line.strip_prefix("#loc").and_then(|_| line.split_once(" = loc("))?;
    Some((name, location.strip_suffix(')')?))
}

/// A line without its locations, and the last of them.
fn stripped(line: &str) -> (Cow<'_, str>, Option<&str>) {
    if !line.contains(" loc(") {
        return (Cow::Borrowed(line), None);
    }
    let (mut left, mut rest, mut last) = (String::with_capacity(line.len()), line, None);
    while let Some((before, after)) = rest.split_once(" loc(") {
        left += before;
        let Some(end) = closing(after) else { return (Cow::Borrowed(line), None) };
        last = Some(&after[..end]);
        rest = &after[end + 1..];
    }
    // A location before the end of a parameter list belongs to a parameter.
    let is_its_own = rest.trim().is_empty();
    left += rest;
    (Cow::Owned(left), last.filter(|_| is_its_own))
}

/// The index of the parenthesis that closes the one in which the text starts.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[derive(Default)]
struct Table<'a> {
    texts: HashMap<&'a str, &'a str>,
    known: HashMap<&'a str, Origin>,
    files: HashMap<&'a str, Rc<str>>,
}

impl<'a> Table<'a> {
    fn origin(&mut self, location: &'a str) -> Origin {
        if let Some(known) = self.known.get(location) {
            return Rc::clone(known);
        }
        let mut frames = Vec::new();
        self.read(location, 0, &mut frames);
        let origin: Origin = frames.into();
        self.known.insert(location, Rc::clone(&origin));
        origin
    }

    /// Adds the frames of the location at the start of a text. Returns the rest after it.
    fn read(&mut self, text: &'a str, depth: usize, frames: &mut Vec<Frame>) -> &'a str {
        if depth > DEEP {
            return "";
        }
        let text = text.trim_start();
        if text.starts_with("#loc") {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '#').unwrap_or(text.len());
            if let Some(meant) = self.texts.get(&text[..end]).copied() {
                self.read(meant, depth + 1, frames);
            }
            return &text[end..];
        }
        if let Some(rest) = text.strip_prefix("callsite(") {
            let rest = self.read(rest, depth + 1, frames);
            let rest = rest.trim_start().strip_prefix("at ").map_or(rest, |rest| self.read(rest, depth + 1, frames));
            return rest.strip_prefix(')').unwrap_or(rest);
        }
        if text.starts_with("fused") {
            // Of fused locations, the first known one is used.
            let mut rest = text.find('[').map_or("", |at| &text[at + 1..]);
            let mut found = Vec::new();
            loop {
                let mut next = Vec::new();
                rest = self.read(rest, depth + 1, &mut next).trim_start();
                found = if found.is_empty() { next } else { found };
                match rest.strip_prefix(',') {
                    Some(more) => rest = more,
                    None => break,
                }
            }
            frames.extend(found);
            return rest.strip_prefix(']').unwrap_or(rest);
        }
        let Some((name, rest)) = quoted(text).filter(|_| text.starts_with('"')) else {
            // `unknown`
            let end = text.find([')', ',', ']', ' ']).unwrap_or(text.len());
            return &text[end..];
        };
        if let Some(inner) = rest.strip_prefix('(') {
            let rest = self.read(inner, depth + 1, frames);
            return rest.strip_prefix(')').unwrap_or(rest);
        }
        if let Some((line, rest)) = rest.strip_prefix(':').and_then(number) {
            let file = self.files.entry(name).or_insert_with(|| unescaped(name, 16).into());
            frames.push(Frame { file: Rc::clone(file), line });
            // The column and the end of the range are skipped.
            let end = rest.find([')', ',', ']']).unwrap_or(rest.len());
            return &rest[rest.find(" at ").map_or(end, |at| at.min(end))..];
        }
        rest
    }
}
