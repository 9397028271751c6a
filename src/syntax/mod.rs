//! Text and trees: spans, positions in the encodings that editors use, incremental parsing.
//!
//! Pure: no I/O, no LSP types, no async.

mod document;
mod position;
mod source;

pub use document::{Document, EditError};
pub use position::{Encoding, LineIndex, Position};
pub use source::{Source, Span, node_span};
