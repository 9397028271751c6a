//! An open document: a rope, and a tree that follows its edits.

use std::sync::Arc;

use ropey::Rope;
use tree_sitter::{InputEdit, Parser, Point, Tree};

use super::source::new_parser;
use super::{Encoding, Position, Source};

/// Why an edit could not be applied as it was sent. The document stays as it was.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EditError {
    /// The range ends before it starts.
    #[error("the edit's range ends ({end:?}) before it starts ({start:?}); close and reopen the document")]
    Inverted {
        /// Start of the range.
        start: Position,
        /// End of the range.
        end: Position,
    },
}

/// Longer texts (some 3,000 lines) are not parsed from scratch for a mistake in them: it would be felt at each key.
const FRESH_LIMIT: usize = 128 << 10;

/// A text that is edited, with the tree of its last parse.
///
/// Edits only move the old tree's nodes; [`Document::source`] parses once, when somebody asks. So a burst of edits
/// costs one parse.
pub struct Document {
    rope: Rope,
    tree: Option<Tree>,
    parser: Parser,
    parsed: Option<Source>,
    lone_cr: bool,
}

impl Document {
    /// A document that holds `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { rope: Rope::from_str(text), tree: None, parser: new_parser(), parsed: None, lone_cr: has_lone_cr(text) }
    }

    /// Replaces the whole text.
    pub fn set_text(&mut self, text: &str) {
        self.replace(0, self.rope.len_bytes(), text);
    }

    /// Replaces `start..end` by `text`.
    ///
    /// Positions past a line's end mean the line's end, past the last line the end of the text (what clients expect).
    /// Returns whether a position had to be clamped.
    ///
    /// # Errors
    /// [`EditError::Inverted`] when the range ends before it starts.
    pub fn edit(&mut self, start: Position, end: Position, text: &str, encoding: Encoding) -> Result<bool, EditError> {
        if end < start {
            return Err(EditError::Inverted { start, end });
        }
        let (start_byte, start_clamped) = self.byte_of(start, encoding);
        let (old_end_byte, end_clamped) = self.byte_of(end, encoding);
        self.replace(start_byte, old_end_byte, text);
        Ok(start_clamped || end_clamped)
    }

    fn replace(&mut self, start_byte: usize, old_end_byte: usize, text: &str) {
        // Editors and formatters send whole lines, or all of them, for a few characters: the parser uses the more of the
        // old tree the less has changed.
        // Asked of the whole text: cut to what differs, it may end a line that was ended by both.
        self.lone_cr |= has_lone_cr(text);
        let old = String::from(self.rope.byte_slice(start_byte..old_end_byte));
        let (before, after) = common_ends(&old, text);
        let (start_byte, old_end_byte) = (start_byte + before, old_end_byte - after);
        let text = &text[before..text.len() - after];
        if start_byte == old_end_byte && text.is_empty() {
            return;
        }
        let (start_point, old_end_point) = (self.point_of(start_byte), self.point_of(old_end_byte));
        let first = self.rope.byte_to_char(start_byte);
        self.rope.remove(first..self.rope.byte_to_char(old_end_byte));
        self.rope.insert(first, text);
        let new_end_byte = start_byte + text.len();
        let new_end_position = self.point_of(new_end_byte);
        if let Some(tree) = &mut self.tree {
            tree.edit(&InputEdit {
                start_byte,
                old_end_byte,
                new_end_byte,
                start_position: start_point,
                old_end_position: old_end_point,
                new_end_position,
            });
        }
        self.parsed = None;
    }

    /// Text, tree and lines of the present state; parses what changed since the last call.
    pub fn source(&mut self) -> Source {
        if let Some(source) = &self.parsed {
            return source.clone();
        }
        let text: Arc<str> = String::from(&self.rope).into();
        let old = self.tree.take();
        let mut tree = self.parse(&text, old.as_ref());
        if old.is_some() && text.len() <= FRESH_LIMIT && tree.root_node().has_error() {
            // What the parser makes of a mistake depends on what it reuses: the same text must give the same tree.
            tree = self.parse(&text, None);
        }
        self.tree = Some(tree.clone());
        let source = Source::from_parts(text, tree);
        self.parsed = Some(source.clone());
        source
    }

    fn parse(&mut self, text: &str, old: Option<&Tree>) -> Tree {
        self.parser.parse(text.as_bytes(), old).expect("a parser with a language and no time limit parses")
    }

    /// The present text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from(&self.rope)
    }

    /// Byte offset of a position, and whether it had to be clamped.
    fn byte_of(&self, position: Position, encoding: Encoding) -> (usize, bool) {
        let line = position.line as usize;
        if line >= self.rope.len_lines() {
            return (self.rope.len_bytes(), true);
        }
        let slice = self.rope.line(line);
        let owned;
        let text = match slice.as_str() {
            Some(text) => text,
            None => {
                owned = String::from(slice);
                &owned
            }
        };
        let content = text.trim_end_matches(['\n', '\r']);
        let column = position.column as usize;
        let byte = encoding.byte_in_line(content, column);
        (self.rope.line_to_byte(line) + byte, column > encoding.len(content))
    }

    /// Tree-sitter counts rows by `\n` alone and columns in bytes.
    fn point_of(&self, byte: usize) -> Point {
        if self.lone_cr {
            let head = String::from(self.rope.byte_slice(..byte));
            return Point { row: head.matches('\n').count(), column: byte - head.rfind('\n').map_or(0, |at| at + 1) };
        }
        let row = self.rope.byte_to_line(byte);
        Point { row, column: byte - self.rope.line_to_byte(row) }
    }
}

/// How many bytes two texts have in common at their beginning, and then at their end; never a part of a character.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let count = |pairs: &mut dyn Iterator<Item = (char, char)>| {
        pairs.take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum::<usize>()
    };
    let before = count(&mut old.chars().zip(new.chars()));
    let after = count(&mut old[before..].chars().rev().zip(new[before..].chars().rev()));
    (before, after)
}

/// Whether a `\r` ends a line by itself: a line for LSP and for the rope, none for tree-sitter.
fn has_lone_cr(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    #[test]
    fn edits_follow_utf16_and_clamp() {
        let mut document = Document::new("a😀b\nxyz\n");
        assert_eq!(document.edit(at(0, 3), at(0, 4), "B", Encoding::Utf16), Ok(false));
        assert_eq!(document.text(), "a😀B\nxyz\n");
        assert_eq!(document.edit(at(7, 2), at(9, 0), "end", Encoding::Utf16), Ok(true));
        assert_eq!(document.text(), "a😀B\nxyz\nend");
        assert!(document.edit(at(1, 0), at(0, 0), "", Encoding::Utf16).is_err());
        assert_eq!(document.text(), "a😀B\nxyz\nend");
    }
}
