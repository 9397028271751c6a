//! The position of a finding.

use serde::Serialize;

use model::syntax::{Encoding, Source, Span};

/// A span in lines and columns from 1. Columns count code points, and the end is one past the last column.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Region {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) end_line: u32,
    pub(super) end_column: u32,
}

impl Region {
    pub(super) fn of(source: &Source, span: Span) -> Self {
        let start = source.position(span.start, Encoding::Utf32);
        let end = source.position(span.end, Encoding::Utf32);
        Self { line: start.line + 1, column: start.column + 1, end_line: end.line + 1, end_column: end.column + 1 }
    }
}
