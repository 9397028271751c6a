//! The context of the cursor (word, open brackets, statement), read from the characters alone: the text need not parse.

use model::syntax::Span;

/// Keywords that cannot continue an expression: a line that begins with one closes every bracket that is still open.
const STATEMENTS: &[&str] = &[
    "assert", "break", "class", "continue", "def", "del", "global", "import", "pass", "raise", "return", "try",
    "while", "with",
];

/// Python's other keywords, which are not names either.
const KEYWORDS: &[&str] = &[
    "and", "as", "async", "await", "elif", "else", "except", "finally", "for", "from", "if", "in", "is", "lambda",
    "nonlocal", "not", "or", "yield",
];

/// The kind of text that a position is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Code.
    Code,
    /// A string.
    String,
    /// A comment.
    Comment,
}

/// A bracket that is open at the cursor.
#[derive(Clone, Debug, PartialEq)]
pub struct Bracket {
    /// `(`, `[` or `{`.
    pub kind: u8,
    /// What is called or indexed; absent for a bracket that groups, and for the parameters of a definition.
    pub callee: Option<Span>,
    /// The number of arguments before the one at the cursor.
    pub commas: usize,
    /// The keyword of the argument at the cursor.
    pub keyword: Option<Span>,
    /// The keywords of all arguments so far.
    pub keywords: Vec<Span>,
    /// Whether one of the arguments is `*args` or `**kwargs`.
    pub has_star: bool,
    open: usize,
    /// How many tokens the argument at the cursor has so far.
    tokens: usize,
    in_lambda: bool,
}

/// A position in a text, and its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    /// The position, as a byte offset.
    pub offset: usize,
    /// The kind of text that the position is in.
    pub inside: Inside,
    /// The span of the name around the position; empty where there is none.
    pub word: Span,
    /// The expression before the dot that precedes the word.
    pub receiver: Option<Span>,
    /// Whether the word follows a dot.
    pub after_dot: bool,
    /// The keyword right before the word.
    pub keyword: Option<Span>,
    /// The byte offset where the statement begins.
    pub statement: usize,
    /// The open brackets, outermost first.
    pub brackets: Vec<Bracket>,
}

impl Cursor {
    /// Reads `text` from `start`, where no bracket and no string is open, to `offset`.
    #[must_use]
    pub fn at(text: &str, start: usize, offset: usize) -> Self {
        let offset = floor(text, offset.min(text.len()));
        let before = text[..offset].char_indices().rev().take_while(|(at, c)| *at >= start && is_word(*c));
        let word_start = before.last().map_or(offset, |(at, _)| at);
        let word_end = text[offset..].find(|c| !is_word(c)).map_or(text.len(), |length| offset + length);
        let mut scan = Scan::new(text, start);
        let inside = scan.run(word_start);
        let after_dot = scan.last == Last::Dot;
        Self {
            offset,
            inside,
            word: Span::new(word_start, word_end),
            receiver: scan.primary.filter(|_| after_dot).map(|start| Span::new(start, scan.dot)),
            after_dot,
            keyword: (scan.last == Last::Keyword).then_some(scan.keyword),
            statement: scan.statement.unwrap_or(word_start),
            brackets: scan.brackets,
        }
    }

    /// The innermost open call, across lists, groups and indices inside its arguments.
    #[must_use]
    pub fn call(&self) -> Option<&Bracket> {
        let is_call = |bracket: &&Bracket| bracket.kind == b'(' && bracket.callee.is_some();
        self.brackets.iter().rev().find(is_call)
    }

    /// The call in whose argument the word is the first token, so that a keyword may be typed there.
    #[must_use]
    pub(crate) fn fresh_argument(&self) -> Option<&Bracket> {
        self.brackets.last().filter(|last| {
            last.kind == b'(' && last.callee.is_some() && last.tokens == 0 && !self.after_dot && !last.in_lambda
        })
    }
}

/// The byte offset where the statement around `cursor` ends, including the brackets that it opens.
#[must_use]
pub(crate) fn statement_end(text: &str, cursor: &Cursor) -> usize {
    let mut scan = Scan::new(text, cursor.statement);
    scan.stops = true;
    scan.run(text.len());
    scan.at
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn floor(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// No token of the statement yet.
    Start,
    /// A name, a closing bracket or a string: something that a dot or a call may follow.
    Value,
    Keyword,
    Dot,
    Other,
}

/// A scanner that goes through a text token by token.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    brackets: Vec<Bracket>,
    statement: Option<usize>,
    /// The start of the expression that ends with the last token, if any: that of the whole of `a.b[c]`.
    primary: Option<usize>,
    last: Last,
    dot: usize,
    keyword: Span,
    /// Whether the primary is the name of a definition.
    defines: bool,
    /// Whether to stop at the end of the first statement.
    stops: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, start: usize) -> Self {
        Self {
            text,
            at: start,
            brackets: Vec::new(),
            statement: None,
            primary: None,
            last: Last::Start,
            dot: 0,
            keyword: Span::new(start, start),
            defines: false,
            stops: false,
        }
    }

    /// Scans up to byte `end`, and returns the kind of text that `end` is in.
    fn run(&mut self, end: usize) -> Inside {
        let bytes = self.text.as_bytes();
        while self.at < end {
            let byte = bytes[self.at];
            match byte {
                b'\n' | b'\r' => {
                    if self.brackets.is_empty() {
                        if self.stops && self.statement.is_some() {
                            return Inside::Code;
                        }
                        self.end_statement();
                    } else if self.line_begins_statement(self.at + 1) {
                        if self.stops {
                            return Inside::Code;
                        }
                        self.brackets.clear();
                        self.end_statement();
                    }
                    self.at += 1;
                }
                b' ' | b'\t' | 0x0c => self.at += 1,
                b'\\' => self.at += 1 + self.text[self.at + 1..].chars().next().map_or(0, char::len_utf8),
                b'#' => {
                    self.at = memchr::memchr2(b'\n', b'\r', &bytes[self.at..]).map_or(bytes.len(), |n| self.at + n);
                    if self.at >= end {
                        return Inside::Comment;
                    }
                }
                b'"' | b'\'' => {
                    self.begin_token();
                    let is_finished = self.string(byte);
                    if self.at > end || (!is_finished && self.at == end) {
                        return Inside::String;
                    }
                    self.primary = None;
                    self.last = Last::Value;
                }
                _ => {
                    self.begin_token();
                    self.token(byte);
                }
            }
        }
        Inside::Code
    }

    fn end_statement(&mut self) {
        self.statement = None;
        self.primary = None;
        self.last = Last::Start;
    }

    fn begin_token(&mut self) {
        self.statement.get_or_insert(self.at);
    }

    /// Whether the line at `start` cannot continue an expression.
    fn line_begins_statement(&self, start: usize) -> bool {
        let rest = self.text.get(start..).unwrap_or("").trim_start_matches([' ', '\t']);
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let decorator = || rest.strip_prefix('@').is_some_and(|rest| rest.starts_with(is_word));
        STATEMENTS.contains(&word) || decorator()
    }

    /// Skips a string, and returns whether it is terminated. A string in single quotes ends with its line in any case.
    fn string(&mut self, quote: u8) -> bool {
        self.note_token();
        let bytes = self.text.as_bytes();
        let triple = bytes[self.at..].starts_with(&[quote; 3]);
        self.at += if triple { 3 } else { 1 };
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'\\' => self.at += 2,
                b'\n' | b'\r' if !triple => break,
                byte if byte == quote && (!triple || bytes[self.at..].starts_with(&[quote; 3])) => {
                    self.at += if triple { 3 } else { 1 };
                    return true;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(bytes.len());
        false
    }

    fn note_token(&mut self) {
        if let Some(top) = self.brackets.last_mut() {
            top.tokens += 1;
        }
    }

    fn token(&mut self, byte: u8) {
        let start = self.at;
        match byte {
            b'(' | b'[' | b'{' => {
                self.note_token();
                let callee = self.primary.filter(|_| self.last == Last::Value && byte != b'{' && !self.defines);
                let callee = callee.map(|from| Span::new(from, start));
                self.brackets.push(Bracket::new(byte, callee, start));
                (self.primary, self.last, self.defines) = (None, Last::Other, false);
                self.at += 1;
            }
            b')' | b']' | b'}' => {
                let opening = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if let Some(depth) = self.brackets.iter().rposition(|bracket| bracket.kind == opening) {
                    let closed = &self.brackets[depth];
                    self.primary = Some(closed.callee.map_or(closed.open, |callee| callee.start));
                    self.brackets.truncate(depth);
                }
                self.last = Last::Value;
                self.at += 1;
            }
            b'.' => {
                self.last = if self.last == Last::Value { Last::Dot } else { Last::Other };
                self.dot = start;
                self.at += 1;
                self.note_token();
            }
            b'0'..=b'9' => {
                let is_part = |c: char| is_word(c) || c == '.';
                self.at += self.text[start..].find(|c| !is_part(c)).unwrap_or(self.text.len() - start);
                self.other();
            }
            b',' | b'*' | b':' | b'=' | b'!' | b'<' | b'>' => self.punctuation(byte),
            _ => {
                let rest = &self.text[start..];
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                if length == 0 {
                    self.at += rest.chars().next().map_or(1, char::len_utf8);
                    self.other();
                } else {
                    self.at += length;
                    self.word(Span::new(start, start + length));
                }
            }
        }
    }

    fn punctuation(&mut self, byte: u8) {
        let (start, next) = (self.at, self.text.as_bytes().get(self.at + 1).copied());
        let (last, primary) = (self.last, self.primary);
        self.at += 1;
        if byte != b',' && byte != b'*' && next == Some(b'=') {
            self.at += 1; // `==`, `!=`, `<=`, `>=`, `:=`
            return self.other();
        }
        match self.brackets.last_mut() {
            Some(top) if byte == b',' && !top.in_lambda => {
                (top.commas, top.tokens, top.keyword) = (top.commas + 1, 0, None);
                (self.primary, self.last) = (None, Last::Other);
                return;
            }
            Some(top) if byte == b'*' && top.tokens == 0 => top.has_star = true,
            Some(top) if byte == b':' => top.in_lambda = false,
            Some(top) if byte == b'=' && top.tokens == 1 && last == Last::Value && !top.in_lambda => {
                if let Some(from) = primary {
                    let name = Span::new(from, from + self.text[from..start].trim_end().len());
                    top.keyword = Some(name);
                    top.keywords.push(name);
                }
            }
            _ => {}
        }
        self.other();
    }

    fn other(&mut self) {
        (self.primary, self.last) = (None, Last::Other);
        self.note_token();
    }

    fn word(&mut self, span: Span) {
        let word = &self.text[span.start..span.end];
        self.note_token();
        if self.last != Last::Dot && (STATEMENTS.contains(&word) || KEYWORDS.contains(&word)) {
            if word == "lambda"
                && let Some(top) = self.brackets.last_mut()
            {
                top.in_lambda = true;
            }
            (self.primary, self.last, self.keyword) = (None, Last::Keyword, span);
            return;
        }
        if self.last != Last::Dot {
            let keyword = &self.text[self.keyword.start..self.keyword.end];
            self.defines = self.last == Last::Keyword && matches!(keyword, "def" | "class");
            self.primary = Some(span.start);
        }
        self.last = Last::Value;
    }
}

impl Bracket {
    fn new(kind: u8, callee: Option<Span>, open: usize) -> Self {
        Self {
            kind,
            callee,
            commas: 0,
            keyword: None,
            keywords: Vec::new(),
            has_star: false,
            open,
            tokens: 0,
            in_lambda: false,
        }
    }
}
