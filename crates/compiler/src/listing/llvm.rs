//! Source locations in LLVM IR, where an instruction refers to a numbered metadata node at the end of the module.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Frame, Origin, Row, number, quoted, unescaped};

/// The greatest nesting of scopes and inlined calls; LLVM emits no deeper one.
const DEEP: usize = 64;

/// The lines of a module.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut nodes = Nodes::default();
    for line in text.lines() {
        if let Some((number, node)) = node(line) {
            nodes.texts.insert(number, node);
        }
    }
    let is_place = |line: &&str| node(line).is_none_or(|(_, node)| !node.contains("!DI")) && !is_units(line);
    let rows = text.lines().filter(is_place).map(|line| {
        let place = line.split_once("!dbg !").and_then(|(before, after)| Some((before, number(after)?)));
        let Some((before, (number, rest))) = place else {
            let is_instruction = line.strip_prefix("  ").is_some_and(|rest| !rest.starts_with([' ', ';', ']']));
            return Row { text: Cow::Borrowed(line), origin: is_instruction.then(Origin::default) };
        };
        let before = before.trim_end_matches([',', ' ']);
        Row { text: Cow::Owned(format!("{before}{rest}")), origin: Some(nodes.origin(number)) }
    });
    rows.collect()
}

/// Whether a line only lists debug compile units.
fn is_units(line: &str) -> bool {
    line.starts_with("!llvm.dbg.cu")
}

/// Parses a metadata node, `!7 = …`, into its number and contents.
fn node(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = number(line.strip_prefix('!')?)?;
    Some((number, rest.strip_prefix(" = ")?))
}

#[derive(Default)]
struct Nodes<'a> {
    texts: HashMap<u32, &'a str>,
    known: HashMap<u32, Origin>,
    files: HashMap<u32, Option<Rc<str>>>,
}

impl<'a> Nodes<'a> {
    fn origin(&mut self, node: u32) -> Origin {
        if let Some(known) = self.known.get(&node) {
            return Rc::clone(known);
        }
        let (mut frames, mut next) = (Vec::new(), Some(node));
        while let Some(place) = next.filter(|_| frames.len() < DEEP) {
            let Some(text) = self.texts.get(&place).copied() else { break };
            let line = field(text, "line: ").and_then(number).map_or(0, |(line, _)| line);
            match self.file(place, 0) {
                Some(file) if line > 0 => frames.push(Frame { file, line }),
                _ => {}
            }
            next = reference(text, "inlinedAt: !").filter(|outer| *outer != place);
        }
        let origin: Origin = frames.into();
        self.known.insert(node, Rc::clone(&origin));
        origin
    }

    /// The file of a location or of its scope.
    fn file(&mut self, node: u32, depth: usize) -> Option<Rc<str>> {
        if let Some(known) = self.files.get(&node) {
            return known.clone();
        }
        let text = self.texts.get(&node).copied().filter(|_| depth < DEEP)?;
        let found = if text.contains("!DIFile(") {
            let part = |name| field(text, name).and_then(quoted).map(|(part, _)| unescaped(part, 16));
            let (name, folder) = (part("filename: ")?, part("directory: ").unwrap_or_default());
            Some(if folder.is_empty() { name } else { format!("{folder}/{name}") }.into())
        } else {
            let next = reference(text, "file: !").or_else(|| reference(text, "scope: !"))?;
            self.file(next, depth + 1)
        };
        self.files.insert(node, found.clone());
        found
    }
}

/// The text after a field's name.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.match_indices(name).find(|(at, _)| text[..*at].ends_with(['(', ' '])).map(|(at, _)| &text[at + name.len()..])
}

fn reference(text: &str, name: &str) -> Option<u32> {
    Some(number(field(text, name)?)?.0)
}
