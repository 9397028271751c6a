//! The segments of a text with their syntax trees, and how they are reused after an edit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tree_sitter::{InputEdit, Node, Parser, Point, Tree};

use super::segmenter;

thread_local! {
    /// One parser for each thread: a parser keeps its allocations from one text to the next.
    static PARSER: RefCell<Parser> = RefCell::new({
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_python::LANGUAGE.into()).expect("the grammar is of a supported ABI");
        parser
    });
}

/// A run of whole top-level statements.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    start: usize,
    row: usize,
    /// One past the last byte that had to be read to find the end of this segment.
    seen: usize,
    is_plain: bool,
    parsed: Arc<Parsed>,
    /// The tree with offsets of the whole text; made on first use.
    moved: OnceLock<Tree>,
}

/// The part of a segment that does not depend on its position in the text.
#[derive(Debug)]
struct Parsed {
    /// The tree with offsets as if the segment were the whole text; made on first use.
    tree: OnceLock<Tree>,
    length: usize,
    /// Line breaks, as the parser counts them.
    rows: usize,
    /// Whether the segment holds nothing but comments and blank lines.
    is_quiet: bool,
    /// Whether the segment holds nothing but white space.
    is_blank: bool,
}

impl Segment {
    /// Byte offset of the segment's first byte in the text.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Byte offset one past the segment's last byte.
    pub(crate) fn end(&self) -> usize {
        self.start + self.parsed.length
    }

    /// The number of line feeds in the text before the segment.
    pub(crate) fn row(&self) -> usize {
        self.row
    }

    /// Whether the segment is a single function or class without decorators.
    pub(crate) fn is_plain_definition(&self) -> bool {
        self.is_plain
    }

    /// The root of the segment's tree; `text` is the whole text that the segment belongs to.
    pub(super) fn root(&self, text: &str) -> Node<'_> {
        let tree = self.parsed.tree.get_or_init(|| {
            let text = text.as_bytes().get(self.start..self.end()).unwrap_or_default();
            let tree = PARSER.with_borrow_mut(|parser| parser.parse(text, None));
            tree.expect("a parser with a language and no time limit parses")
        });
        if self.start == 0 {
            return tree.root_node();
        }
        let moved = self.moved.get_or_init(|| {
            let mut tree = tree.clone();
            tree.edit(&InputEdit {
                start_byte: 0,
                old_end_byte: 0,
                new_end_byte: self.start,
                start_position: Point::new(0, 0),
                old_end_position: Point::new(0, 0),
                new_end_position: Point::new(self.row, 0),
            });
            tree
        });
        moved.root_node()
    }

    /// Whether two segments are the same except for their positions.
    fn is_same(&self, other: &Self) -> bool {
        let (own, other) = (&self.parsed, &other.parsed);
        let are_blank = own.is_blank && other.is_blank && (own.length, own.rows) == (other.length, other.rows);
        are_blank || Arc::ptr_eq(own, other)
    }

    fn at(&self, start: usize, row: usize, seen: usize) -> Self {
        if (start, row, seen) == (self.start, self.row, self.seen) {
            return self.clone();
        }
        let (is_plain, parsed) = (self.is_plain, Arc::clone(&self.parsed));
        Self { start, row, seen, is_plain, parsed, moved: OnceLock::new() }
    }
}

impl Parsed {
    fn new(text: &str) -> Self {
        let rows = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let (is_quiet, is_blank) = (from_first_statement(text).is_empty(), text.trim_ascii().is_empty());
        Self { tree: OnceLock::new(), length: text.len(), rows, is_quiet, is_blank }
    }
}

/// The text of a segment without the blank lines and comments before its first statement.
pub(crate) fn from_first_statement(text: &str) -> &str {
    &text[segmenter::quiet_until(text.as_bytes(), 0)..]
}

/// Consecutive segments that are the same in two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatchingSegments {
    /// Index of the first of them in the old text.
    pub(crate) old: usize,
    /// Index of the first of them in the new text.
    pub(crate) new: usize,
    /// The number of segments.
    pub(crate) count: usize,
}

/// The runs of segments that two texts have in common, in order.
pub(crate) fn unchanged(old: &[Segment], new: &[Segment]) -> Vec<MatchingSegments> {
    let is_same = |(old, new): &(&Segment, &Segment)| old.is_same(new);
    let before = old.iter().zip(new).take_while(is_same).count();
    let after = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(is_same).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let mut runs = vec![MatchingSegments { old: 0, new: 0, count: before }];
    // When both ends of a text are edited, the middle is still reused.
    let mut places = HashMap::new();
    for (at, segment) in old.iter().enumerate().take(old_end).skip(before) {
        places.entry(Arc::as_ptr(&segment.parsed)).or_insert(at);
    }
    let (mut next, mut at) = (before, before);
    while at < new_end {
        // Comments are often identical, so a segment of comments cannot anchor a run.
        let place = places.get(&Arc::as_ptr(&new[at].parsed)).filter(|place| **place >= next);
        let place = place.filter(|_| !new[at].parsed.is_quiet);
        let count =
            place.map_or(0, |&place| old[place..old_end].iter().zip(&new[at..new_end]).take_while(is_same).count());
        if let Some(&place) = place {
            runs.push(MatchingSegments { old: place, new: at, count });
            next = place + count;
        }
        at += count.max(1);
    }
    runs.push(MatchingSegments { old: old_end, new: new_end, count: after });
    runs.retain(|run| run.count > 0);
    runs
}

/// Cuts a text into segments. Each is parsed when its tree is first needed.
pub(super) fn parse(text: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    read(&mut segments, text, |_| false, |text| Arc::new(Parsed::new(text)));
    segments
}

/// Cuts a text into segments, given those of an older version. The result equals that of [`parse`].
pub(super) fn parse_next(old: &[Segment], old_text: &str, text: &str) -> Vec<Segment> {
    let change = Change::between(old_text, text);
    // The edit lies behind everything that was read to find the ends of these segments.
    let kept = old.iter().take_while(|segment| segment.seen <= change.start).count();
    let mut segments = old[..kept].to_vec();
    let mut known: HashMap<&str, &Segment> = HashMap::new();
    for segment in &old[kept..] {
        if segment.start > change.old_end {
            break;
        }
        known.entry(&old_text[segment.start..segment.end()]).or_insert(segment);
    }
    let mut rest = None;
    read(
        &mut segments,
        text,
        |end| {
            let before = end.wrapping_add_signed(change.by.wrapping_neg());
            rest = old.binary_search_by_key(&before, |old| old.start).ok().filter(|_| before >= change.old_end);
            rest.is_some()
        },
        |text| match known.get(text) {
            Some(segment) => Arc::clone(&segment.parsed),
            None => Arc::new(Parsed::new(text)),
        },
    );
    let (mut row, mut at) = end_of(&segments);
    for segment in rest.map_or(&[][..], |rest| &old[rest..]) {
        segments.push(segment.at(at, row, segment.seen.wrapping_add_signed(change.by)));
        (row, at) = (row + segment.parsed.rows, at + segment.parsed.length);
    }
    segments
}

fn end_of(segments: &[Segment]) -> (usize, usize) {
    segments.last().map_or((0, 0), |last| (last.row + last.parsed.rows, last.end()))
}

/// Adds segments after the last one, until the text ends or `is_known` returns true for the offset that was reached.
fn read(
    segments: &mut Vec<Segment>,
    text: &str,
    mut is_known: impl FnMut(usize) -> bool,
    mut parsed: impl FnMut(&str) -> Arc<Parsed>,
) {
    let (mut row, mut start) = end_of(segments);
    loop {
        let found = segmenter::find(text.as_bytes(), start);
        let parsed = parsed(&text[start..found.end]);
        let rows = parsed.rows;
        segments.push(Segment {
            start,
            row,
            seen: found.seen,
            is_plain: found.is_plain,
            parsed,
            moved: OnceLock::new(),
        });
        (row, start) = (row + rows, found.end);
        if start == text.len() || is_known(start) {
            return;
        }
    }
}

/// The range in which two texts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    /// Its first byte, in both texts.
    start: usize,
    /// One past its last byte in the old text.
    old_end: usize,
    /// The length of the new text minus that of the old text, in bytes.
    by: isize,
}

impl Change {
    /// The shortest such range.
    fn between(old: &str, new: &str) -> Self {
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let start = common(old.chunks(BLOCK), new.chunks(BLOCK), old.iter(), new.iter());
        let (old_rest, new_rest) = (&old[start..], &new[start..]);
        let same =
            common(old_rest.rchunks(BLOCK), new_rest.rchunks(BLOCK), old_rest.iter().rev(), new_rest.iter().rev());
        Self { start, old_end: old.len() - same, by: new.len().wrapping_sub(old.len()).cast_signed() }
    }
}

/// Texts are first compared in blocks of this many bytes, which is as fast as memory can be read.
const BLOCK: usize = 256;

/// The length in bytes of the common prefix of two texts, or of the common suffix when the iterators run backwards.
fn common<'a>(
    old_blocks: impl Iterator<Item = &'a [u8]>,
    new_blocks: impl Iterator<Item = &'a [u8]>,
    old: impl Iterator<Item = &'a u8>,
    new: impl Iterator<Item = &'a u8>,
) -> usize {
    let whole = old_blocks.zip(new_blocks).take_while(|(a, b)| a.len() == BLOCK && a == b).count() * BLOCK;
    whole + old.skip(whole).zip(new.skip(whole)).take_while(|(a, b)| a == b).count()
}
