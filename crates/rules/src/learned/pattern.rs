//! Patterns: tree-sitter queries with predicates over the kernel model, run inside kernels.

use std::sync::LazyLock;

use tree_sitter::{Language, Node, Query, QueryCursor, QueryPredicate, QueryPredicateArg, StreamingIterator};

use model::syntax::{Span, node_span};

use super::compiled_branches;
use super::kernel_view::KernelView;
use super::predicates::{self, Predicate, PredicateInput};
use super::prefilter::Literals;
use crate::RuleContext;

/// The name of the capture to flag.
const HERE: &str = "here";

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_python::LANGUAGE.into());

/// An error in a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is not a tree-sitter query over Python's syntax.
    #[error("line {line}: {message}")]
    Query {
        /// The line, counted from 1.
        line: usize,
        /// The error message of tree-sitter.
        message: String,
    },
    /// The pattern has no capture `@here`.
    #[error("it needs a capture named `@here`, which marks the node to flag")]
    NoPlace,
    /// The text contains no pattern.
    #[error("it holds no pattern")]
    Empty,
    /// A predicate is unknown or used wrongly.
    #[error("`#{name}`: {what}")]
    Predicate {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern(PatternSet);

/// A match of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// The span to flag.
    pub span: Span,
    /// The spans of the captures, by name, in the order of the query.
    pub captures: Vec<(String, Span)>,
}

impl Pattern {
    /// Compiles a pattern: one query, or several alternatives.
    ///
    /// # Errors
    /// Returns an error when the text is not a valid query, lacks `@here`, or uses a predicate wrongly.
    pub fn compile(text: &str) -> Result<Self, PatternError> {
        PatternSet::compile(&[text]).map(Self)
    }

    /// The matches in a file, in source order and without duplicates. Only code counts that is inside of functions that
    /// Triton compiles, and that is certainly compiled.
    #[must_use]
    pub fn matches(&self, context: &RuleContext<'_>) -> Vec<Span> {
        let mut spans: Vec<Span> = (0..context.module.kernels.len())
            .flat_map(|index| self.0.run(context, index).into_iter().map(|(_, found)| found.span))
            .collect();
        spans.sort_unstable();
        spans.dedup();
        spans
    }

    /// Whether the pattern has a capture of this name.
    #[must_use]
    pub(crate) fn has_capture(&self, name: &str) -> bool {
        self.0.captures.iter().any(|known| known == name)
    }
}

/// Several patterns that run as one query.
#[derive(Debug)]
pub(super) struct PatternSet {
    query: Query,
    captures: Vec<String>,
    here: u32,
    /// The patterns of the query.
    parts: Vec<Part>,
}

/// One pattern of a query.
#[derive(Debug)]
struct Part {
    /// The index of the text that contains the pattern.
    owner: usize,
    conditions: Vec<Condition>,
    literals: Literals,
}

/// A predicate as a pattern uses it.
#[derive(Debug)]
struct Condition {
    predicate: &'static Predicate,
    /// The result that the predicate must have.
    wanted: bool,
    captures: Vec<u32>,
    words: Vec<String>,
}

impl PatternSet {
    /// Compiles several texts into one query. Each text must be a valid query by itself, so that none ends inside the
    /// next.
    pub(super) fn compile(texts: &[&str]) -> Result<Self, PatternError> {
        let joined = texts.join("\n");
        let query = parse(&joined)?;
        let ends: Vec<usize> = texts
            .iter()
            .scan(0, |end, text| {
                *end += text.len() + 1;
                Some(*end)
            })
            .collect();
        let here = query.capture_index_for_name(HERE).ok_or(PatternError::NoPlace)?;
        let captures = query.capture_names().iter().map(|&name| name.to_owned()).collect();
        let mut parts = Vec::new();
        for at in 0..query.pattern_count() {
            let owner = ends.partition_point(|end| *end <= query.start_byte_for_pattern(at));
            if query.property_settings(at).len() + query.property_predicates(at).len() > 0 {
                let what = "patterns have no properties".to_owned();
                return Err(PatternError::Predicate { name: "set!".to_owned(), what });
            }
            let written = query.general_predicates(at).iter();
            let conditions = written.map(Condition::read).collect::<Result<Vec<Condition>, _>>()?;
            let mut literals = Literals::of(&query, at, &joined[range_of(&query, at)]);
            conditions.iter().for_each(|condition| condition.add_literals(&mut literals));
            parts.push(Part { owner, conditions, literals });
        }
        Ok(Self { query, captures, here, parts })
    }

    /// The matches in the kernel `context.module.kernels[index]`, each with the index of its text; sorted, without
    /// duplicates.
    pub(super) fn run(&self, context: &RuleContext<'_>, index: usize) -> Vec<(usize, Match)> {
        let subject = KernelView::new(context, index);
        let mut found = Vec::new();
        let may_match = |part: &Part| part.literals.are_in(context.source, context.module, subject.kernel);
        let open: Vec<bool> = self.parts.iter().map(may_match).collect();
        if !open.contains(&true) {
            return found;
        }
        let is_shallow = |root: &Node<'_>| context.is_shallow(index, || is_shallow(*root));
        let Some(root) = subject.root().filter(is_shallow) else { return found };
        let mut cursor = QueryCursor::new();
        let mut matches = cursor.matches(&self.query, root, context.source.text().as_bytes());
        while let Some(matched) = matches.next() {
            if !open[matched.pattern_index] {
                continue;
            }
            let caught = matched.captures();
            let nodes = |capture: u32| caught.iter().filter(move |it| it.index == capture).map(|it| it.node);
            let Some(span) = nodes(self.here).map(node_span).reduce(|a, b| Span::new(a.start, b.end)) else { continue };
            let part = &self.parts[matched.pattern_index];
            if !part.conditions.iter().all(|condition| condition.holds(&subject, &nodes)) {
                continue;
            }
            let is_certain = nodes(self.here).all(|node| compiled_branches::is_compiled(&subject, node));
            if is_certain {
                let captures = caught.iter().map(|it| (self.captures[it.index as usize].clone(), node_span(it.node)));
                found.push((part.owner, Match { span, captures: captures.collect() }));
            }
        }
        found.sort_unstable();
        found.dedup_by(|a, b| a.0 == b.0 && a.1.span == b.1.span);
        found
    }
}

/// Whether the tree below a node is shallow enough to run patterns on. The cost of a query grows with the square of the
/// depth, and no handwritten code is nested so deeply.
fn is_shallow(root: Node<'_>) -> bool {
    const DEEPEST: u32 = 200;
    let mut cursor = root.walk();
    loop {
        if cursor.goto_first_child() {
            if cursor.depth() > DEEPEST {
                return false;
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}

fn parse(text: &str) -> Result<Query, PatternError> {
    let query = Query::new(&LANGUAGE, text).map_err(|error| {
        let message = error.message.lines().next().unwrap_or_default().trim().to_owned();
        PatternError::Query { line: error.row + 1, message: format!("{:?}: {message}", error.kind) }
    })?;
    if query.pattern_count() == 0 {
        return Err(PatternError::Empty);
    }
    // A pattern without the capture would never match.
    let here = query.capture_index_for_name(HERE).ok_or(PatternError::NoPlace)? as usize;
    let has_place = |at: usize| text.get(range_of(&query, at)).is_some_and(|text| names(text, HERE));
    let is_complete = here < query.capture_names().len() && (0..query.pattern_count()).all(has_place);
    if is_complete { Ok(query) } else { Err(PatternError::NoPlace) }
}

fn range_of(query: &Query, pattern: usize) -> std::ops::Range<usize> {
    query.start_byte_for_pattern(pattern)..query.end_byte_for_pattern(pattern)
}

/// Whether `@name` occurs in a pattern.
fn names(pattern: &str, name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    pattern.match_indices('@').any(|(at, _)| {
        let rest = &pattern[at + 1..];
        rest.strip_prefix(name).is_some_and(|rest| !rest.bytes().next().is_some_and(is_word))
    })
}

impl Condition {
    fn read(written: &QueryPredicate) -> Result<Self, PatternError> {
        let error = |what: String| PatternError::Predicate { name: written.operator.to_string(), what };
        let Some((predicate, wanted)) = predicates::find(&written.operator) else {
            return Err(error(format!("there is no such predicate; there are {}", predicates::names())));
        };
        let (mut captures, mut words) = (Vec::new(), Vec::new());
        for argument in &written.args {
            match argument {
                QueryPredicateArg::Capture(capture) if words.is_empty() => captures.push(*capture),
                QueryPredicateArg::Capture(_) => return Err(error("captures come before words".to_owned())),
                QueryPredicateArg::String(word) => words.push(word.to_string()),
            }
        }
        predicate.check(captures.len(), &words).map_err(error)?;
        Ok(Self { predicate, wanted, captures, words })
    }

    /// Adds the words that the text must contain for the predicate to hold.
    fn add_literals(&self, literals: &mut Literals) {
        if self.wanted && self.predicate.names_paths() {
            literals.add_paths(self.words.iter().map(|word| predicates::full(word)));
        } else if self.wanted && self.predicate.names_keywords() {
            literals.add_paths(self.words.iter().cloned());
        }
    }

    /// Whether the predicate certainly holds for all nodes of its captures, each of which must have caught a node.
    fn holds<'t, I: Iterator<Item = Node<'t>>>(&self, subject: &KernelView<'_>, nodes: &dyn Fn(u32) -> I) -> bool {
        let mut rows: Vec<Vec<Node<'t>>> = vec![Vec::new()];
        for &capture in &self.captures {
            let caught: Vec<Node<'t>> = nodes(capture).collect();
            let longer = |row: &Vec<Node<'t>>| {
                let with = |node: &Node<'t>| row.iter().copied().chain([*node]).collect::<Vec<_>>();
                caught.iter().map(with).collect::<Vec<_>>()
            };
            rows = rows.iter().flat_map(longer).collect();
        }
        let says = |row: &Vec<Node<'_>>| {
            (self.predicate.holds)(subject, &PredicateInput { nodes: row, words: &self.words }) == Some(self.wanted)
        };
        !rows.is_empty() && rows.iter().all(says)
    }
}
