//! The common structure of several failing places: a syntax tree with wildcards and conditions, from which a query is
//! written.

use std::fmt::Write as _;

use model::syntax::Span;

/// A condition on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeCondition {
    /// The node's text is one of these.
    Text(Vec<String>),
    /// A predicate holds of the node and, for a binary predicate, of another part (by index).
    Holds { predicate: &'static str, words: Vec<String>, other: Option<usize> },
}

/// A node of a shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatternNode {
    /// The node kind in the grammar; `None` for any kind.
    pub(crate) kind: Option<String>,
    /// Whether it is a token such as `+`.
    pub(crate) is_token: bool,
    /// The field name of the node in its parent.
    pub(crate) field: Option<String>,
    /// The indices of the children that matter.
    pub(crate) children: Vec<usize>,
    /// Whether the node directly follows the previous child (or begins its parent).
    pub(crate) is_next: bool,
    /// Whether the last of `children` must be the last child of the node.
    pub(crate) is_closed: bool,
    /// The conditions that must hold of the node.
    pub(crate) conditions: Vec<NodeCondition>,
    /// The span of the node in each example.
    pub(crate) spans: Vec<Span>,
    /// Whether the part has been removed.
    pub(crate) is_gone: bool,
}

/// A tree of parts. The first part is the root, which is flagged.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct TreePattern {
    pub(crate) parts: Vec<PatternNode>,
}

/// A step that makes a shape more general.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generalization {
    /// Drops a condition of a part, given as the part and the index of the condition.
    Condition(usize, usize),
    /// Replaces a part by a wildcard.
    Open(usize),
    /// Removes a part.
    Remove(usize),
    /// Allows further children of a part.
    Unclose(usize),
}

impl TreePattern {
    /// The indices of the parts that have not been removed, in ascending order.
    pub(crate) fn present(&self) -> impl Iterator<Item = usize> {
        let mut all = vec![0];
        let mut at = 0;
        while at < all.len() {
            all.extend(self.parts[all[at]].children.iter().copied().filter(|child| !self.parts[*child].is_gone));
            at += 1;
        }
        all.sort_unstable();
        all.into_iter()
    }

    /// The remaining steps in the order in which they are tried: first texts and names, then structure, then conditions
    /// on values.
    pub(crate) fn steps(&self) -> Vec<Generalization> {
        let mut steps = Vec::new();
        for at in self.present() {
            let part = &self.parts[at];
            for (number, condition) in part.conditions.iter().enumerate() {
                steps.push((rank(condition), at, Generalization::Condition(at, number)));
            }
            if part.is_closed {
                steps.push((3, at, Generalization::Unclose(at)));
            }
            if at > 0 && !part.is_token && (part.kind.is_some() || !part.children.is_empty()) {
                steps.push((4, at, Generalization::Open(at)));
            }
            if at > 0 {
                steps.push((5, at, Generalization::Remove(at)));
            }
        }
        // Among steps of the same rank, parts near the root come first.
        steps.sort_by_key(|(rank, at, step)| (*rank, *at, std::cmp::Reverse(condition_of(step))));
        steps.into_iter().map(|(_, _, step)| step).collect()
    }

    /// The shape after a step; `None` when the step changes nothing.
    pub(crate) fn after(&self, step: Generalization) -> Option<Self> {
        let mut shape = self.clone();
        match step {
            Generalization::Condition(at, number) => {
                if number >= shape.parts[at].conditions.len() {
                    return None;
                }
                shape.parts[at].conditions.remove(number);
            }
            Generalization::Open(at) => {
                let part = &mut shape.parts[at];
                part.kind = None;
                part.is_closed = false;
                for child in std::mem::take(&mut part.children) {
                    shape.forget(child);
                }
            }
            Generalization::Remove(at) => shape.forget(at),
            Generalization::Unclose(at) => shape.parts[at].is_closed = false,
        }
        (shape != *self).then_some(shape)
    }

    fn forget(&mut self, at: usize) {
        self.parts[at].is_gone = true;
        for child in self.parts[at].children.clone() {
            self.forget(child);
        }
        // A condition on two parts is dropped with either of them.
        let gone: Vec<bool> = self.parts.iter().map(|part| part.is_gone).collect();
        for part in &mut self.parts {
            part.conditions.retain(|condition| match condition {
                NodeCondition::Holds { other: Some(other), .. } => !gone[*other],
                _ => true,
            });
        }
    }

    /// The shape as a tree-sitter query.
    pub(crate) fn query(&self) -> String {
        let mut asked = vec![false; self.parts.len()];
        for at in self.present() {
            for condition in &self.parts[at].conditions {
                asked[at] = true;
                if let NodeCondition::Holds { other: Some(other), .. } = condition {
                    asked[*other] = true;
                }
            }
        }
        let mut body = String::new();
        self.write(0, &asked, 1, &mut body);
        let mut predicates = String::new();
        for at in self.present() {
            for condition in &self.parts[at].conditions {
                _ = write!(predicates, "\n  {}", written(condition, at));
            }
        }
        format!("({body} @here{predicates})\n")
    }

    fn write(&self, at: usize, asked: &[bool], depth: usize, out: &mut String) {
        let part = &self.parts[at];
        let children: Vec<usize> = part.children.iter().copied().filter(|child| !self.parts[*child].is_gone).collect();
        match part.kind.as_deref() {
            Some(kind) if part.is_token => _ = write!(out, "{}", quoted(kind)),
            None if part.is_token => out.push('_'),
            kind => {
                _ = write!(out, "({}", kind.unwrap_or("_"));
                for child in &children {
                    _ = write!(out, "\n{}", "  ".repeat(depth));
                    let child_part = &self.parts[*child];
                    if child_part.is_next {
                        out.push_str(". ");
                    }
                    if let Some(field) = &child_part.field {
                        _ = write!(out, "{field}: ");
                    }
                    self.write(*child, asked, depth + 1, out);
                }
                if part.is_closed && !children.is_empty() {
                    out.push_str(" .");
                }
                out.push(')');
            }
        }
        if asked[at] {
            _ = write!(out, " @{}", capture(at));
        }
    }
}

/// The capture name of a part.
pub(crate) fn capture(at: usize) -> String {
    format!("p{at}")
}

fn condition_of(step: &Generalization) -> usize {
    if let Generalization::Condition(_, number) = step { *number } else { 0 }
}

/// The rank of a condition; conditions with a lower rank are dropped first.
fn rank(condition: &NodeCondition) -> u8 {
    match condition {
        NodeCondition::Text(_) => 1,
        NodeCondition::Holds { predicate, .. } => match *predicate {
            "api" => 2,
            "dtype" => 6,
            "rank" | "argument-count" | "inside" | "plain-parameter" | "value" => 7,
            "constexpr" | "not-constexpr" | "less" | "lanes-less" => 8,
            "kind" => 9,
            _ => 10,
        },
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn written(condition: &NodeCondition, at: usize) -> String {
    let name = capture(at);
    match condition {
        NodeCondition::Text(texts) if texts.len() == 1 => format!("(#eq? @{name} {})", quoted(&texts[0])),
        NodeCondition::Text(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            format!("(#any-of? @{name} {})", texts.join(" "))
        }
        NodeCondition::Holds { predicate, words, other } => {
            let other = other.map_or(String::new(), |other| format!(" @{}", capture(other)));
            let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
            format!("(#{predicate}? @{name}{other}{words})")
        }
    }
}
