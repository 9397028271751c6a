//! The client's copy of a text, with columns in UTF-16.

use serde_json::{Value, json};

/// A document that the client has opened.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) uri: String,
    pub(crate) version: i32,
    pub(crate) text: String,
}

impl Document {
    /// The position of byte `offset`, in UTF-16.
    pub(crate) fn position(&self, offset: usize) -> Value {
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        json!({ "line": before.matches('\n').count(), "character": before[line_start..].encode_utf16().count() })
    }

    /// The range of the first `text`, in UTF-16.
    pub(crate) fn range_of(&self, text: &str) -> Value {
        let start = self.text.find(text).unwrap_or_else(|| panic!("no `{text}` in {}", self.text));
        json!({ "start": self.position(start), "end": self.position(start + text.len()) })
    }

    /// The text with edits applied, whose columns are in UTF-16.
    pub(crate) fn edited(&self, edits: &Value) -> String {
        let offset = |position: &Value| {
            let line = position["line"].as_u64().unwrap() as usize;
            let start: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
            let mut column = position["character"].as_u64().unwrap();
            let mut at = start;
            for c in self.text[start..].chars() {
                if column == 0 {
                    break;
                }
                column -= c.len_utf16() as u64;
                at += c.len_utf8();
            }
            at
        };
        let edits = edits.as_array().unwrap().iter().map(|edit| {
            let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
            (start, end, edit["newText"].as_str().unwrap())
        });
        let mut edits: Vec<_> = edits.collect();
        edits.sort_unstable();
        let mut text = self.text.clone();
        for (start, end, new) in edits.into_iter().rev() {
            text.replace_range(start..end, new);
        }
        text
    }
}
