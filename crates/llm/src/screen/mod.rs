//! What a candidate does that its original does not and no kernel needs, read off its syntax tree before anything of it runs. The
//! judge's fences hold without this; it names what was tried, and spares the judge what can only be a trick.
//!
//! Names are followed through imports and plain assignments. What can no longer be followed, as a module that is passed around or a
//! name that is computed, is an objection itself.

mod imports;
mod keeps;
mod names;
mod numbers;
mod paths;
mod powers;
mod scopes;
mod unread;

use std::collections::BTreeMap;
use std::fmt;

use tree_sitter::Node;

use super::lines::{Numbered, one_line};
use model::syntax::{Source, each_node, field, node_span};
use names::Names;
use scopes::Scopes;

/// So many objections are told of a candidate.
const MOST: usize = 50;
/// Nothing that people write is nested deeper. Python itself gives up soon after.
const DEEPEST: usize = 200;

/// What is objected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum What {
    /// It imports what a kernel does not need.
    Import,
    /// It runs text as code, or goes by names that are computed.
    Dynamic,
    /// It uses files, programs, the network or native code.
    Outside,
    /// It goes by the addresses of tensors or objects.
    Address,
    /// It keeps values from call to call.
    Keeps,
    /// It changes what belongs to others: modules, classes, settings of the process.
    Patch,
    /// It reads or changes the environment.
    Environment,
    /// It leaves work to threads, streams or hooks.
    Concurrency,
    /// It looks at its own process: frames, objects, the interpreter.
    Inspection,
    /// It names a narrower type or precision.
    Precision,
    /// It leaves work to torch.
    Fallback,
}

impl What {
    /// Whether a candidate that does it is not even judged. Of the others the judge decides.
    fn refuses(self) -> bool {
        !matches!(self, Self::Precision | Self::Fallback)
    }
}

impl fmt::Display for What {
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

/// Something that a candidate does and its original does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The line of the candidate, from 1.
    pub(crate) line: usize,
    /// What it is.
    pub(crate) what: What,
    /// One sentence for the report.
    pub text: String,
    /// Whether the candidate is not even judged.
    pub refuses: bool,
}

/// Something that stands in a text.
#[derive(Debug)]
struct Found {
    what: What,
    /// Where, in bytes.
    at: usize,
    /// What two of them that are the same have in common.
    key: String,
}

/// What a candidate does more than its original, in the order in which it stands there. What the original does may stand in the
/// candidate any number of times, but for precision and operators of torch: of these there may be as many as there were.
pub fn screen(original: &str, candidate: &str) -> Vec<Objection> {
    let mut usual: BTreeMap<(What, String), usize> = BTreeMap::new();
    for Found { what, key, .. } in found(original) {
        *usual.entry((what, key)).or_default() += 1;
    }
    let mut objections = Vec::new();
    let mut counts: BTreeMap<(What, String), usize> = BTreeMap::new();
    for Found { what, at, key } in found(candidate) {
        let place = (what, key);
        let most = match usual.get(&place) {
            Some(_) if what.refuses() => continue,
            Some(count) => *count,
            None => 0,
        };
        let count = counts.entry(place.clone()).or_default();
        *count += 1;
        // Each is told once.
        if *count == most + 1 {
            let shown = one_line(&place.1, 120).replace('`', "'");
            let (line, refuses) = (candidate.line_of(at), what.refuses());
            objections.push(Objection { line, what, text: format!("line {line} {what}: `{shown}`"), refuses });
        }
        if objections.len() == MOST {
            break;
        }
    }
    objections
}

/// One text with what is known of its names.
struct Screened<'s> {
    source: &'s Source,
    names: Names,
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

    /// `torch.cuda.Event` of whatever stands for it here, where it begins at something imported. A name may stand for several things.
    fn paths(&self, node: Node<'_>) -> Vec<String> {
        self.names.paths(node, self.source)
    }
}

/// Where a tree is so deep that looking at it takes too long.
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

fn found(text: &str) -> Vec<Found> {
    let source = Source::parse(text);
    if let Some(at) = too_deep(&source) {
        return vec![Found { what: What::Dynamic, at, key: "expressions inside of each other without end".to_owned() }];
    }
    let (names, scopes) = (Names::of(&source), Scopes::of(&source));
    let mut found = unread::look(&source, &names);
    let screened = Screened { source: &source, names, scopes };
    for root in source.roots() {
        each_node(root, &mut |node| {
            let mut add = |what: What, key: &str| {
                // Spaces and ends of lines say nothing.
                let key = one_line(key, 400);
                found.push(Found { what, at: node.start_byte(), key });
            };
            imports::look(&screened, node, &mut add);
            powers::look(&screened, node, &mut add);
            paths::look(&screened, node, &mut add);
            keeps::look(&screened, node, &mut add);
            numbers::look(&screened, node, &mut add);
        });
    }
    found.sort_by_key(|one| one.at);
    found
}

#[cfg(test)]
mod tests;
