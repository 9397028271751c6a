//! Source locations in assembly, where directives give the location of the following instructions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Frame, Origin, Row, number, quoted, unescaped};

/// The greatest depth of inlined calls; no compiler emits a deeper one.
const DEEP: usize = 64;

/// A location of `.loc`: file number, line, column.
type LocDirective = (u32, u32, u32);

/// The lines of PTX or AMDGCN assembly, without debug sections.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let files: HashMap<u32, Rc<str>> = text.lines().filter_map(file).collect();
    let mut places = Places { files, callers: HashMap::new() };
    let (mut rows, mut present, mut is_for_debuggers) = (Vec::new(), None, false);
    for line in text.lines() {
        let word = line.trim_start();
        if word.starts_with(".section") || word == ".text" || word.starts_with(".amdgpu_metadata") {
            is_for_debuggers = word.starts_with(".section") && word.contains(".debug_");
        }
        if is_for_debuggers || file(line).is_some() || is_label_for_debuggers(word) {
            continue;
        }
        if let Some(rest) = word.strip_prefix(".loc") {
            present = places.origin(rest);
            continue;
        }
        let is_instruction = line.starts_with(['\t', ' ']) && !word.is_empty() && !word.starts_with(['.', '/', ';']);
        let origin = present.clone().filter(|_| is_instruction);
        rows.push(Row { text: Cow::Borrowed(line), origin });
    }
    rows
}

/// Whether a word is a label for debuggers: `$L__tmp7:`, `.Ltmp7:`, `$L__func_begin0:`.
fn is_label_for_debuggers(word: &str) -> bool {
    let name = word.strip_prefix("$L__").or_else(|| word.strip_prefix(".L"));
    let name = name.and_then(|name| name.split_once(':')).map(|(name, _)| name);
    name.is_some_and(|name| ["tmp", "func_begin", "func_end"].iter().any(|start| name.starts_with(start)))
}

/// Parses `.file 1 "folder" "name"` or `.file 1 "path"`.
fn file(line: &str) -> Option<(u32, Rc<str>)> {
    let (at, rest) = number(line.trim_start().strip_prefix(".file")?.trim_start())?;
    let (first, rest) = quoted(rest)?;
    let path = match quoted(rest) {
        Some((name, _)) if name.starts_with('/') => unescaped(name, 8),
        Some((name, _)) => format!("{}/{}", unescaped(first, 8), unescaped(name, 8)),
        None => unescaped(first, 8),
    };
    Some((at, path.into()))
}

struct Places {
    files: HashMap<u32, Rc<str>>,
    /// The call site of the code that was last inlined at each location.
    callers: HashMap<LocDirective, LocDirective>,
}

impl Places {
    /// The origin of a `.loc`. Line 0 means that the compiler does not know it.
    fn origin(&mut self, loc: &str) -> Option<Origin> {
        let (place, rest) = place(loc)?;
        let Some(inner) = self.frame(place) else { return Some(Origin::default()) };
        let mut frames = vec![inner];
        match rest.split_once(" inlined_at ").and_then(|(_, caller)| self::place(caller)) {
            Some((caller, _)) => {
                self.callers.insert(place, caller);
                let mut next = Some(caller);
                while let Some(place) = next.filter(|_| frames.len() < DEEP) {
                    frames.extend(self.frame(place));
                    next = self.callers.get(&place).copied();
                }
            }
            None => {
                self.callers.remove(&place);
                frames.extend(rest.split("@[ ").skip(1).map_while(|call| self.named(call)));
            }
        }
        Some(frames.into())
    }

    fn frame(&self, (file, line, _): LocDirective) -> Option<Frame> {
        Some(Frame { file: Rc::clone(self.files.get(&file)?), line }).filter(|_| line > 0)
    }

    /// A location in a comment: `name.py:7:30`; `None` if several files have this name.
    fn named(&self, text: &str) -> Option<Frame> {
        let mut parts = text.split_whitespace().next()?.rsplitn(3, ':');
        let (_, line, name) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let is_it =
            |path: &&Rc<str>| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let mut found = self.files.values().filter(is_it);
        let file = found.next()?;
        found.all(|other| other == file).then(|| Frame { file: Rc::clone(file), line })
    }
}

/// Parses three numbers, and returns the rest after them.
fn place(text: &str) -> Option<(LocDirective, &str)> {
    let (file, rest) = number(text.trim_start())?;
    let (line, rest) = number(rest.trim_start())?;
    let (column, rest) = number(rest.trim_start())?;
    Some(((file, line, column), rest))
}

/// The lines of `nvdisasm`, which prints locations above the instructions, with inlined calls below each other.
pub(super) fn sass_rows(text: &str) -> Vec<Row<'_>> {
    let (mut rows, mut present, mut next) = (Vec::new(), None, Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("//## File ") {
            next.extend(quoted(rest).and_then(|(file, rest)| {
                let (line, _) = number(rest.strip_prefix(", line ")?)?;
                Some(Frame { file: unescaped(file, 8).into(), line })
            }));
            continue;
        }
        if !next.is_empty() {
            present = Some(Origin::from(std::mem::take(&mut next)));
        }
        let is_instruction = line.trim_start().starts_with("/*");
        let origin = present.clone().filter(|_| is_instruction);
        rows.push(Row { text: Cow::Borrowed(line), origin });
    }
    rows
}
