//! The boundaries of segments. A text is parsed in segments, each a run of whole top-level statements.
//!
//! In valid Python a segment parses by itself to the same statements as within the whole file, and a mistake in one
//! segment does not reach the next: a bracket that is never closed ends where a definition begins, because no bracket
//! can contain one.

/// A run of short statements is cut once it is longer than this, in bytes.
const LONG_RUN: usize = 4 << 10;

/// The end of one segment, as the scan found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentExtent {
    /// One past the last byte of the segment.
    pub(super) end: usize,
    /// One past the last byte that the scan had to read to find the end; past the end of the text when the scan reached
    /// it.
    pub(super) seen: usize,
    /// Whether the segment is a single function or class without decorators.
    pub(super) is_plain: bool,
}

/// An open construct around the position of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Bracket,
    String {
        quote: u8,
        triple: bool,
        format: bool,
        raw: bool,
    },
    /// `{…}` of an f-string.
    Field,
    /// The format specification of a field: the part after its `:`.
    Spec,
}

/// Finds the segment that begins at `start`, which must be the beginning of a line. The text before it has no
/// influence.
pub(super) fn find(text: &[u8], start: usize) -> SegmentExtent {
    let mut scan = Scan { text, at: start, start, frames: Vec::new(), pending: None };
    scan.run()
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    start: usize,
    frames: Vec<Frame>,
    /// Inside brackets: the offset of decorators that a definition may follow, and the number of frames at that offset.
    pending: Option<(usize, usize)>,
}

impl Scan<'_> {
    fn run(&mut self) -> SegmentExtent {
        let mut line = Line::of(self.text, self.start);
        let is_definition = matches!(line, Line::Decorator | Line::Definition);
        let mut is_plain = line == Line::Definition;
        let mut looked = self.at;
        while self.at < self.text.len() {
            let is_line_end = match self.frames.last() {
                Some(&Frame::String { quote, triple, format, raw }) => self.string(quote, triple, format, raw),
                Some(Frame::Spec) => self.spec(),
                None | Some(Frame::Bracket | Frame::Field) => self.code(),
            };
            if !is_line_end || self.at >= self.text.len() {
                continue;
            }
            let (before, now) = (line, Line::of(self.text, self.at));
            if let Some(end) = self.recover(now) {
                return SegmentExtent { end, seen: self.at + SEEN, is_plain: false };
            }
            // Blank lines and comments do not belong to the statement before them, so that edits of them leave it
            // unchanged.
            if self.frames.is_empty() && now == Line::Other && looked <= self.at {
                looked = quiet_until(self.text, self.at);
                if looked > self.at && self.ends_before(line, looked) {
                    return SegmentExtent { end: self.at, seen: looked + SEEN, is_plain };
                }
            }
            if !self.frames.is_empty() || matches!(now, Line::Other | Line::Clause) {
                is_plain &= !self.frames.is_empty() || b" \t\r\n#".contains(&self.text[self.at]);
                continue;
            }
            line = now;
            let follows = before == Line::Decorator && matches!(now, Line::Decorator | Line::Definition);
            let begins = is_definition || matches!(now, Line::Decorator | Line::Definition);
            if !follows && (begins || self.at - self.start > LONG_RUN) {
                return SegmentExtent { end: self.at, seen: self.at + SEEN, is_plain };
            }
        }
        SegmentExtent { end: self.text.len(), seen: self.text.len() + 1, is_plain: is_plain && self.frames.is_empty() }
    }

    /// Whether the segment, whose last statement is `last`, ends before the blank lines and comments up to `next`.
    fn ends_before(&self, last: Line, next: usize) -> bool {
        let ends = next == self.text.len() || !matches!(Line::of(self.text, next), Line::Other | Line::Clause);
        ends && matches!(last, Line::Definition | Line::Statement)
    }

    /// Inside brackets: the offset at which a definition (with its decorators) begins nevertheless, so that the segment
    /// ends.
    fn recover(&mut self, now: Line) -> Option<usize> {
        if self.frames.is_empty() {
            self.pending = None;
            return None;
        }
        match now {
            Line::Definition => return Some(self.pending.map_or(self.at, |(at, _)| at)),
            // A decorator with an open bracket of its own is left to the parser's error recovery.
            Line::Decorator if self.pending.is_none_or(|(_, depth)| depth < self.frames.len()) => {
                self.pending = Some((self.at, self.frames.len()));
            }
            Line::Decorator | Line::Other => {}
            Line::Clause | Line::Statement => self.pending = None,
        }
        None
    }

    /// Steps over one token or character of code. Returns whether it ended a line.
    fn code(&mut self) -> bool {
        let plain = |&byte: &u8| {
            !matches!(byte, b'\n' | b'\\' | b'#' | b'\'' | b'"' | b'(' | b'[' | b'{' | b')' | b']' | b'}' | b':')
        };
        while self.text.get(self.at).is_some_and(plain) {
            self.at += 1;
        }
        let Some(&byte) = self.text.get(self.at) else { return false };
        self.at += 1;
        match byte {
            b'\n' => return true,
            b'\\' => self.line_continuation(),
            b'#' => self.at += memchr::memchr(b'\n', &self.text[self.at..]).unwrap_or(self.text.len() - self.at),
            b'(' | b'[' | b'{' => self.frames.push(Frame::Bracket),
            b'}' if self.frames.last() == Some(&Frame::Field) => drop(self.frames.pop()),
            b')' | b']' | b'}' if self.frames.last() == Some(&Frame::Bracket) => drop(self.frames.pop()),
            b':' => {
                if let Some(field @ Frame::Field) = self.frames.last_mut() {
                    *field = Frame::Spec;
                }
            }
            b'\'' | b'"' => self.begin_string(byte),
            _ => {}
        }
        false
    }

    fn line_continuation(&mut self) {
        match self.text.get(self.at..) {
            Some([b'\r', b'\n', ..]) => self.at += 2,
            Some([b'\n', ..]) => self.at += 1,
            _ => {}
        }
    }

    fn begin_string(&mut self, quote: u8) {
        let before = &self.text[self.start..self.at - 1];
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || !byte.is_ascii();
        let prefix = &before[before.len() - before.iter().rev().take_while(is_word).take(4).count()..];
        let is_prefix = prefix.len() < 4 && prefix.iter().all(|byte| b"fFtTrRbBuU".contains(byte));
        let has = |wanted: &[u8]| is_prefix && prefix.iter().any(|byte| wanted.contains(byte));
        let triple = self.text[self.at..].starts_with(&[quote, quote]);
        self.at += if triple { 2 } else { 0 };
        self.frames.push(Frame::String { quote, triple, format: has(b"fFtT"), raw: has(b"rR") });
    }

    /// Steps over one part of a string. Returns whether it ended a line of code, which happens when the string is not
    /// closed.
    fn string(&mut self, quote: u8, triple: bool, format: bool, raw: bool) -> bool {
        let rest = &self.text[self.at..];
        let is_special = |byte: u8| {
            byte == quote || byte == b'\\' || byte == b'\n' && !triple || format && matches!(byte, b'{' | b'}')
        };
        let Some(length) = rest.iter().position(|&byte| is_special(byte)) else {
            self.at = self.text.len();
            return false;
        };
        self.at += length;
        let rest = &rest[length..];
        match rest[0] {
            b'\\' => self.at += escape_length(rest, format, raw),
            b'\n' => {
                let outermost =
                    self.frames.iter().position(|frame| matches!(frame, Frame::String { triple: false, .. }));
                self.frames.truncate(outermost.unwrap_or(0));
                self.at += 1;
                return true;
            }
            byte @ (b'{' | b'}') if byte != quote => {
                let doubled = rest.get(1) == Some(&byte);
                if byte == b'{' && !doubled {
                    self.frames.push(Frame::Field);
                }
                self.at += if doubled { 2 } else { 1 };
            }
            _ if !triple || rest.starts_with(&[quote; 3]) => {
                self.frames.pop();
                self.at += if triple { 3 } else { 1 };
            }
            _ => self.at += 1,
        }
        false
    }

    /// Steps over one part of a format specification. Returns whether it ended a line.
    fn spec(&mut self) -> bool {
        let quote = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::String { quote, triple: false, .. } => Some(*quote),
            _ => None,
        });
        let byte = self.text[self.at];
        match byte {
            b'{' => self.frames.push(Frame::Field),
            b'}' => drop(self.frames.pop()),
            // The string or its line ends here; the next step handles that.
            b'\n' if quote.is_some() => {
                self.frames.pop();
                return false;
            }
            _ if quote == Some(byte) => {
                self.frames.pop();
                return false;
            }
            _ => {}
        }
        self.at += 1;
        byte == b'\n'
    }
}

/// The number of bytes that an escape sequence takes, including its `\`.
fn escape_length(rest: &[u8], format: bool, raw: bool) -> usize {
    match rest.get(1) {
        Some(b'\r') if rest.get(2) == Some(&b'\n') => 3,
        Some(b'{' | b'}') if format => 1,
        // `\N{DASH}` is not a field.
        Some(b'N') if format && !raw && rest.get(2) == Some(&b'{') => {
            rest.iter().take(100).position(|&byte| byte == b'}').map_or(2, |at| at + 1)
        }
        Some(_) => 2,
        None => 1,
    }
}

/// The end of the blank lines and comments that begin at `at`, the beginning of a line. Only comments that begin in the
/// first column count.
pub(super) fn quiet_until(text: &[u8], mut at: usize) -> usize {
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length + 1);
        let line = text[at..end].trim_ascii_end();
        // Some readers take a lone carriage return as the end of a line.
        if !line.is_empty() && (line[0] != b'#' || line.contains(&b'\r')) {
            break;
        }
        at = end;
    }
    at
}

/// The number of bytes of a line that [`Line::of`] reads.
const SEEN: usize = 16;

/// The class of a line, by what it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// `@`
    Decorator,
    /// `def`, `class`, `async def`
    Definition,
    /// `else` and similar clauses, which continue the statement before them.
    Clause,
    /// Anything else that may begin a statement.
    Statement,
    /// A blank line, a comment, a bracket, or anything else that may continue the line before.
    Other,
}

impl Line {
    fn of(text: &[u8], at: usize) -> Self {
        let line = &text[at..text.len().min(at + SEEN)];
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        let length = line.iter().take_while(|byte| is_word(byte)).count();
        match &line[..length] {
            b"" if line.first() == Some(&b'@') => Self::Decorator,
            b"def" | b"class" => Self::Definition,
            b"async" if line[length..].trim_ascii_start().starts_with(b"def") => Self::Definition,
            b"else" | b"elif" | b"except" | b"finally" => Self::Clause,
            [first, ..] if !first.is_ascii_digit() && first.is_ascii() => Self::Statement,
            _ => Self::Other,
        }
    }
}
