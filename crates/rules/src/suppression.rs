//! Suppression comments: `# warpsmith: ignore[CODE]`.

use std::collections::HashMap;

use model::syntax::{Source, Span};

use super::diagnostic::Diagnostic;

/// The codes and names that a comment suppresses; `None` for all.
type Codes = Option<Vec<String>>;

/// The suppression comments of one file.
///
/// A comment at the end of a line covers findings that start or end on that line; a comment on its own line covers the
/// next line of code; `ignore-file` covers the file. Only comments count, not the contents of strings.
pub(super) struct Suppressions {
    lines: HashMap<usize, Codes>,
    file: Vec<Codes>,
}

impl Suppressions {
    pub(super) fn read(source: &Source) -> Self {
        let mut found = Self { lines: HashMap::new(), file: Vec::new() };
        let text = source.text();
        let mut done = 0;
        for at in memchr::memmem::find_iter(text.as_bytes(), "warpsmith:") {
            let node = source.node_at(Span::new(at, at));
            let Some(comment) = node.filter(|node| at >= done && node.kind() == "comment") else { continue };
            done = comment.end_byte();
            let line = source.lines().line_of(at);
            // For the parser, a comment continues after a carriage return.
            let start = source.lines().range(text, line).start.min(comment.start_byte());
            let alone = text[start..comment.start_byte()].trim().is_empty();
            for (whole_file, codes) in text[comment.byte_range()].split('#').filter_map(directive) {
                match (whole_file, alone) {
                    (true, _) => found.file.push(codes),
                    (false, true) => found.add(next_code_line(source, line), codes),
                    (false, false) => found.add(line, codes),
                }
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

/// Parses the text after a `#`: whether the directive covers the whole file, and its codes.
///
/// Codes are in brackets, and a reason may follow them. Without brackets nothing may follow, so that `ignore L003` does
/// not suppress more than was meant.
fn directive(comment: &str) -> Option<(bool, Codes)> {
    let rest = comment.trim_start().strip_prefix("warpsmith:")?.trim_start().strip_prefix("ignore")?;
    let (whole_file, rest) = match rest.strip_prefix("-file") {
        Some(rest) => (true, rest.trim()),
        None => (false, rest.trim()),
    };
    if rest.is_empty() {
        return Some((whole_file, None));
    }
    let (list, _reason) = rest.strip_prefix('[')?.split_once(']')?;
    Some((whole_file, Some(list.split(',').map(|code| code.trim().to_owned()).collect())))
}
