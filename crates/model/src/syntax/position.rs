//! Lines and columns of a text, with columns in the units that clients use.

/// The unit in which columns are counted: bytes, UTF-16 code units or code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes of UTF-8.
    Utf8,
    /// UTF-16 code units, the default of LSP.
    Utf16,
    /// Unicode code points, the columns of the command line.
    Utf32,
}

impl Encoding {
    /// Length of `text` in this encoding's units.
    #[must_use]
    pub fn len(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Utf32 => text.chars().count(),
        }
    }

    fn char_len(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Byte offset of column `column` in `line`, clamped to the line's end; a column inside a character means its start.
    #[must_use]
    pub(crate) fn byte_in_line(self, line: &str, column: usize) -> usize {
        let mut seen = 0;
        for (byte, c) in line.char_indices() {
            if seen + self.char_len(c) > column {
                return byte;
            }
            seen += self.char_len(c);
        }
        line.len()
    }
}

/// A zero-based line and column; the column's unit is the [`Encoding`] it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Zero-based line.
    pub line: u32,
    /// Zero-based column.
    pub column: u32,
}

/// Byte offsets of the line starts of one text. A line ends at `\n`, `\r\n` or `\r`, as in LSP.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Finds the lines of `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n') {
                starts.push(at + 1);
            }
        }
        Self { starts }
    }

    /// Number of lines; an empty text has one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Zero-based line that holds byte `offset`.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset) - 1
    }

    /// Byte range of line `line`, without its line break. Lines past the end are empty at the end.
    #[must_use]
    pub fn range(&self, text: &str, line: usize) -> std::ops::Range<usize> {
        let Some(&start) = self.starts.get(line) else { return text.len()..text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let trimmed = text[start..end].trim_end_matches(['\n', '\r']).len();
        start..start + trimmed
    }

    /// Position of byte `offset` of `text`.
    #[must_use]
    pub fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_of(offset);
        let column = encoding.len(&text[self.starts[line]..offset]);
        Position { line: to_u32(line), column: to_u32(column) }
    }

    /// Byte offset of `position` in `text`, clamped to the line and to the text.
    #[must_use]
    pub fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let range = self.range(text, position.line as usize);
        range.start + encoding.byte_in_line(&text[range.clone()], position.column as usize)
    }
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_units_of_the_encoding() {
        let text = "aé😀z\r\nq\rr\x0cs\n";
        let lines = LineIndex::new(text);
        assert_eq!(lines.count(), 4);
        let z = text.find('z').unwrap();
        for (encoding, column) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            let position = lines.position(text, z, encoding);
            assert_eq!(position, Position { line: 0, column });
            assert_eq!(lines.offset(text, position, encoding), z);
        }
        assert_eq!(&text[lines.range(text, 2)], "r\x0cs");
    }

    #[test]
    fn positions_past_the_end_are_clamped() {
        let text = "ab\ncd";
        let lines = LineIndex::new(text);
        let at = |line, column| lines.offset(text, Position { line, column }, Encoding::Utf16);
        assert_eq!(at(0, 99), 2);
        assert_eq!(at(9, 0), 5);
    }
}
