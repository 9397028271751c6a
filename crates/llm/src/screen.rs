//! A static check of candidates: what a candidate does that its original does not and no kernel needs, read from its
//! syntax tree before any of it runs. The sandbox of the judge holds without this check; it names what was tried, and
//! spares the judge candidates that can only be a trick.
//!
//! Names are followed through imports and plain assignments. A name that cannot be followed, such as a module passed as
//! a value or a computed name, is itself an objection.

mod builtin_names;
mod imports;
mod names;
mod objection;
mod paths;
mod persistent_state;
mod precision_loss;
mod scopes;
mod screened;
mod unreadable_text;

use std::collections::BTreeMap;

use super::numbered_text::{Numbered, one_line};
use model::syntax::{Source, each_node};
use names::ImportedNames;
pub use objection::Objection;
pub(crate) use objection::ObjectionKind;
use objection::ScreenHit;
use scopes::Scopes;
use screened::Screened;

/// The largest number of objections that are reported for a candidate.
const MOST: usize = 50;
/// The largest nesting depth that is checked. Code written by people is not nested deeper, and Python itself fails soon
/// after.
const DEEPEST: usize = 200;

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
