//! `# warpsmith: ignore[CODE]` comments.

use std::collections::HashMap;

use super::diagnostic::Diagnostic;
use crate::syntax::Source;

const MARK: &str = "warpsmith: ignore";

/// What a comment turns off: `None` for everything.
type Codes = Option<Vec<String>>;

/// The suppressions of one file.
///
/// At the end of a line a comment covers findings that start or end on that line; on a line of its own it covers the
/// next line of code; `ignore-file` covers the file.
pub(super) struct Suppressions {
    lines: HashMap<usize, Codes>,
    file: Vec<Codes>,
}

impl Suppressions {
    pub(super) fn read(source: &Source) -> Self {
        let mut found = Self { lines: HashMap::new(), file: Vec::new() };
        let text = source.text();
        for at in memchr::memmem::find_iter(text.as_bytes(), MARK) {
            let number = source.lines().line_of(at);
            let range = source.lines().range(text, number);
            let (before, rest) = (&text[range.start..at], &text[at + MARK.len()..range.end]);
            let Some(code) = before.trim_end().strip_suffix('#') else { continue };
            if let Some(rest) = rest.strip_prefix("-file") {
                found.file.push(codes(rest));
            } else if code.trim().is_empty() {
                found.add(next_code_line(source, number), codes(rest));
            } else {
                found.add(number, codes(rest));
            }
        }
        found
    }

    fn add(&mut self, line: usize, codes: Codes) {
        match (self.lines.get_mut(&line), codes) {
            (Some(Some(known)), Some(more)) => known.extend(more),
            (Some(known), None) => *known = None,
            (Some(None), Some(_)) => {}
            (None, codes) => {
                self.lines.insert(line, codes);
            }
        }
    }

    pub(super) fn cover(&self, diagnostic: &Diagnostic, source: &Source) -> bool {
        let named = |codes: &Codes| {
            codes.as_ref().is_none_or(|codes| {
                codes.iter().any(|code| code.eq_ignore_ascii_case(diagnostic.code) || code == diagnostic.name)
            })
        };
        let on = |offset| self.lines.get(&source.lines().line_of(offset)).is_some_and(named);
        self.file.iter().any(named) || on(diagnostic.span.start) || on(diagnostic.span.end)
    }
}

fn next_code_line(source: &Source, after: usize) -> usize {
    let is_code = |line: &usize| {
        let text = source.text()[source.lines().range(source.text(), *line)].trim();
        !text.is_empty() && !text.starts_with('#')
    };
    (after + 1..source.lines().count()).find(is_code).unwrap_or(after)
}

/// `[A, B]` → those; nothing → everything; anything else → nothing at all.
fn codes(rest: &str) -> Codes {
    let rest = rest.trim_start();
    match rest.strip_prefix('[') {
        Some(list) => {
            Some(list.split(']').next().unwrap_or("").split(',').map(|code| code.trim().to_owned()).collect())
        }
        None if rest.is_empty() || rest.starts_with('#') => None,
        None => Some(Vec::new()),
    }
}
