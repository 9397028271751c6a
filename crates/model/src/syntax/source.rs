//! One immutable version of a file: its text, its syntax trees and its lines.

use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;
use serde::Serialize;
use tree_sitter::{Language, Node};

use super::segments::{self, Segment};
use super::{Encoding, LineIndex, Position};

/// A half-open range of bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span `start..end`.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Whether `other` lies within this span.
    #[must_use]
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether byte `offset` lies in this span or at its end.
    #[must_use]
    pub fn touches(self, offset: usize) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Whether the two spans share a byte or touch.
    #[must_use]
    pub fn meets(self, other: Span) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The span of a tree-sitter node.
#[must_use]
pub fn node_span(node: Node<'_>) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}

/// The child of a node in a field of the grammar, as `child_by_field_name` finds it. That function compares all names
/// of fields at each call; this one looks the name up in a table.
#[must_use]
pub fn field<'t>(node: Node<'t>, name: &str) -> Option<Node<'t>> {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_python::LANGUAGE.into());
    static FIELDS: LazyLock<FxHashMap<&str, u16>> = LazyLock::new(|| {
        let count = u16::try_from(LANGUAGE.field_count()).unwrap_or(u16::MAX);
        (1..=count).filter_map(|id| Some((LANGUAGE.field_name_for_id(id)?, id))).collect()
    });
    node.child_by_field_id(*FIELDS.get(name)?)
}

/// Calls `visit` on a node and all nodes below it, in source order. The walk is iterative, because the trees of hostile
/// files are deeper than the stack.
pub fn each_node<'t>(node: Node<'t>, visit: &mut dyn FnMut(Node<'t>)) {
    let mut cursor = node.walk();
    loop {
        visit(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            // The walk starts at `node` and cannot leave it.
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// One version of a file: its text, trees and lines.
///
/// The text is parsed in segments, runs of whole top-level statements, so that the cost of an edit depends on what it
/// touches and a mistake affects its own segment only. A segment is parsed when its tree is first needed. Nodes have
/// the offsets that they have in the whole text.
#[derive(Clone, Debug)]
pub struct Source {
    text: Arc<str>,
    lines: LineIndex,
    segments: Arc<[Segment]>,
}

impl Source {
    /// Parses `text` from scratch. Parsing never fails: text that is not Python becomes error nodes.
    #[must_use]
    pub fn parse(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let segments = segments::parse(&text);
        Self::from_parts(text, segments)
    }

    /// The same as [`Self::parse`] of `text`, in a time that depends on how much it differs from this text.
    pub(super) fn parse_next(&self, text: Arc<str>) -> Self {
        let segments = segments::parse_next(&self.segments, &self.text, &text);
        Self::from_parts(text, segments)
    }

    fn from_parts(text: Arc<str>, segments: Vec<Segment>) -> Self {
        let lines = LineIndex::new(&text);
        Self { text, lines, segments: segments.into() }
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The roots of the syntax trees, in source order. Each root has some of the top-level statements as its children.
    pub fn roots(&self) -> impl DoubleEndedIterator<Item = Node<'_>> + ExactSizeIterator {
        self.segments.iter().map(|segment| segment.root(&self.text))
    }

    /// The root of the tree that byte `offset` is in.
    #[must_use]
    pub fn root_at(&self, offset: usize) -> Option<Node<'_>> {
        let at = self.segments.partition_point(|segment| segment.start() <= offset).checked_sub(1)?;
        Some(self.segments[at].root(&self.text))
    }

    /// The smallest node that holds `span`.
    #[must_use]
    pub fn node_at(&self, span: Span) -> Option<Node<'_>> {
        self.root_at(span.start)?.descendant_for_byte_range(span.start, span.end)
    }

    /// Whether a syntax tree contains an error. Parses all segments.
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.roots().any(|root| root.has_error())
    }

    /// The segments of the text, in order.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The root of the syntax tree of `segment`.
    pub(crate) fn root<'a>(&self, segment: &'a Segment) -> Node<'a> {
        segment.root(&self.text)
    }

    /// The lines of [`Self::text`].
    #[must_use]
    pub fn lines(&self) -> &LineIndex {
        &self.lines
    }

    /// The text of `span`; empty when the span does not lie in this text.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// Position of byte `offset`, with columns in units of `encoding`.
    #[must_use]
    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        self.lines.position(&self.text, offset, encoding)
    }

    /// Byte offset of `position`, clamped to its line and to the text.
    #[must_use]
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        self.lines.offset(&self.text, position, encoding)
    }
}
