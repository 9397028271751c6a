//! A static check of candidates: what a candidate does that its original does not and no kernel needs, read from its
//! syntax tree before any of it runs. The sandbox of the judge holds without this check; it names what was tried, and
//! spares the judge candidates that can only be a trick.
//!
//! Names are followed through imports and plain assignments. A name that cannot be followed, such as a module passed as
//! a value or a computed name, is itself an objection.

mod builtin_names;
mod imports;
mod names;
mod paths;
mod persistent_state;
mod precision_loss;
mod scopes;
mod unreadable_text;

use std::collections::BTreeMap;
use std::fmt;

use tree_sitter::Node;

use super::numbered_text::{Numbered, one_line};
use model::syntax::{Source, each_node, field, node_span};
use names::ImportedNames;
use scopes::Scopes;

/// The largest number of objections that are reported for a candidate.
const MOST: usize = 50;
/// The largest nesting depth that is checked. Code written by people is not nested deeper, and Python itself fails soon
/// after.
const DEEPEST: usize = 200;

/// The kind of an objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectionKind {
    /// The candidate imports what a kernel does not need.
    Import,
    /// The candidate runs text as code, or uses computed names.
    Dynamic,
    /// The candidate uses files, programs, the network or native code.
    Outside,
    /// The candidate depends on addresses of tensors or objects.
    Address,
    /// The candidate keeps values between calls.
    Keeps,
    /// The candidate changes modules, classes or settings of the process that it does not own.
    Patch,
    /// The candidate reads or changes the environment.
    Environment,
    /// The candidate leaves work to threads, streams or hooks.
    Concurrency,
    /// The candidate inspects its own process: frames, objects, the interpreter.
    Inspection,
    /// The candidate names a narrower type or precision.
    Precision,
    /// The candidate leaves work to torch.
    Fallback,
}

impl ObjectionKind {
    /// Whether the candidate is refused without being judged. The judge decides about the other kinds.
    fn refuses(self) -> bool {
        !matches!(self, Self::Precision | Self::Fallback)
    }
}

impl fmt::Display for ObjectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Import => "imports what a kernel does not need",
            Self::Dynamic => "runs text, or goes by names that nobody can follow",
            Self::Outside => "uses files, programs, the network or native code",
            Self::Address => "goes by addresses of tensors or objects",
            Self::Keeps => "keeps values from call to call",
            Self::Patch => "changes what belongs to others",
            Self::Environment => "reads or changes the environment",
            Self::Concurrency => "leaves work to threads, streams or hooks",
            Self::Inspection => "looks at its own process",
            Self::Precision => "names a narrower type or precision",
            Self::Fallback => "leaves work to torch",
        })
    }
}

/// An objection: something that a candidate does and its original does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The line of the candidate, from 1.
    pub(crate) line: usize,
    /// The kind of the objection.
    pub(crate) kind: ObjectionKind,
    /// One sentence for the report.
    pub text: String,
    /// Whether the candidate is refused without being judged.
    pub refuses: bool,
}

/// A use of something in a text.
#[derive(Debug)]
struct ScreenHit {
    kind: ObjectionKind,
    /// The byte offset in the text.
    at: usize,
    /// A key that is equal for equal uses.
    key: String,
}

/// The objections to a candidate, in the order of its text. What the original does, the candidate may do any number of
/// times, except for precision and operators of torch: it may have as many of these as the original.
pub fn screen(original: &str, candidate: &str) -> Vec<Objection> {
    let mut usual: BTreeMap<(ObjectionKind, String), usize> = BTreeMap::new();
    for ScreenHit { kind: what, key, .. } in found(original) {
        *usual.entry((what, key)).or_default() += 1;
    }
    let mut objections = Vec::new();
    let mut counts: BTreeMap<(ObjectionKind, String), usize> = BTreeMap::new();
    for ScreenHit { kind: what, at, key } in found(candidate) {
        let place = (what, key);
        let most = match usual.get(&place) {
            Some(_) if what.refuses() => continue,
            Some(count) => *count,
            None => 0,
        };
        let count = counts.entry(place.clone()).or_default();
        *count += 1;
        // Each objection is reported once.
        if *count == most + 1 {
            let shown = one_line(&place.1, 120).replace('`', "'");
            let (line, refuses) = (candidate.line_of(at), what.refuses());
            objections.push(Objection { line, kind: what, text: format!("line {line} {what}: `{shown}`"), refuses });
        }
        if objections.len() == MOST {
            break;
        }
    }
    objections
}

/// A text with what is known about its names.
struct Screened<'s> {
    source: &'s Source,
    names: ImportedNames,
    scopes: Scopes,
}

impl Screened<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.source.slice(node_span(node))
    }

    /// The text of a field of a node.
    fn named(&self, node: Node<'_>, name: &str) -> Option<&str> {
        field(node, name).map(|child| self.text(child))
    }

    /// The qualified names that an expression may have, such as `torch.cuda.Event`, if it begins with something
    /// imported. A name may refer to several things.
    fn paths(&self, node: Node<'_>) -> Vec<String> {
        self.names.paths(node, self.source)
    }
}

/// The position of a node that is nested too deeply to be checked, if there is one.
fn too_deep(source: &Source) -> Option<usize> {
    source.roots().find_map(|root| {
        let mut cursor = root.walk();
        loop {
            if cursor.depth() as usize > DEEPEST {
                return Some(cursor.node().start_byte());
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return None;
                }
            }
        }
    })
}

fn found(text: &str) -> Vec<ScreenHit> {
    let source = Source::parse(text);
    if let Some(at) = too_deep(&source) {
        return vec![ScreenHit {
            kind: ObjectionKind::Dynamic,
            at,
            key: "expressions inside of each other without end".to_owned(),
        }];
    }
    let (names, scopes) = (ImportedNames::of(&source), Scopes::of(&source));
    let mut found = unreadable_text::look(&source, &names);
    let screened = Screened { source: &source, names, scopes };
    for root in source.roots() {
        each_node(root, &mut |node| {
            let mut add = |what: ObjectionKind, key: &str| {
                // Whitespace does not distinguish uses.
                let key = one_line(key, 400);
                found.push(ScreenHit { kind: what, at: node.start_byte(), key });
            };
            imports::look(&screened, node, &mut add);
            builtin_names::look(&screened, node, &mut add);
            paths::look(&screened, node, &mut add);
            persistent_state::look(&screened, node, &mut add);
            precision_loss::look(&screened, node, &mut add);
        });
    }
    found.sort_by_key(|one| one.at);
    found
}

#[cfg(test)]
mod tests;
