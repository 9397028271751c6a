//! An open document: the rope that edits change, and the source of its last parse.

use std::sync::Arc;

use super::{Encoding, Position, Source};
use ropey::Rope;

/// The reason why an edit was rejected. The document keeps the text that it had.
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

/// The text of a file that is being edited, with the syntax trees of its last parse.
///
/// Edits only change the rope; [`Document::source`] parses it when the trees are needed. So a burst of edits costs one
/// parse.
pub struct Document {
    rope: Rope,
    parsed: Option<Source>,
    is_current: bool,
}

impl Document {
    /// A document that holds `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { rope: Rope::from_str(text), parsed: None, is_current: false }
    }

    /// Replaces the whole text.
    pub fn set_text(&mut self, text: &str) {
        self.replace(0, self.rope.len_bytes(), text);
    }

    /// Replaces `start..end` by `text`.
    ///
    /// A position past the end of a line means the end of that line, and a position past the last line means the end of
    /// the text, as clients expect. Returns whether a position had to be clamped.
    ///
    /// # Errors
    /// Returns [`EditError::Inverted`] when the range ends before it starts.
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
        let first = self.rope.byte_to_char(start_byte);
        self.rope.remove(first..self.rope.byte_to_char(old_end_byte));
        self.rope.insert(first, text);
        self.is_current = false;
    }

    /// The current text with its trees and lines. Parses only what changed since the last call.
    pub fn source(&mut self) -> Source {
        let parsed = match self.parsed.take() {
            Some(parsed) if self.is_current => parsed,
            Some(parsed) => {
                let text: Arc<str> = String::from(&self.rope).into();
                parsed.parse_next(text)
            }
            None => Source::parse(String::from(&self.rope)),
        };
        self.is_current = true;
        self.parsed.insert(parsed).clone()
    }

    /// The current text, copied out of the rope.
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
