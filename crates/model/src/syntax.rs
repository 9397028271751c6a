//! Source text and its syntax trees: spans, positions in the encodings that editors use, and incremental parsing.
//!
//! This layer is pure: it does no input or output, knows no LSP types and is not asynchronous.

mod document;
mod normal_form;
mod position;
mod segmenter;
mod segments;
mod source;

pub use document::{Document, EditError};
pub use normal_form::normal_form;
pub use normal_form::{is_nothing, write_form};
pub use position::{Encoding, LineIndex, Position};
pub(crate) use segments::{Segment, from_first_statement, unchanged};
pub use source::{Source, Span, each_node, field, node_span};
