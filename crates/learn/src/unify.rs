//! Anti-unification: the most specific shape that matches several places.

use tree_sitter::Node;

use model::syntax::node_span;
use rules::learned::Probe;

use super::tree_pattern::{NodeCondition, PatternNode, TreePattern};

/// A place in a failing program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailingNode<'a> {
    pub(crate) text: &'a str,
    pub(crate) probe: &'a Probe<'a>,
    pub(crate) node: Node<'a>,
}

/// The depth below the root at which syntax trees are cut off.
const DEPTH: usize = 5;

/// Node kinds that contain other statements. Their content has nothing to do with the place.
const BODIES: &[&str] = &["block", "else_clause", "elif_clause", "except_clause", "finally_clause", "case_clause"];

/// The most specific common shape of several places; `None` when there are none or their node kinds differ.
pub(crate) fn unify(examples: &[FailingNode<'_>]) -> Option<TreePattern> {
    let nodes: Vec<Node<'_>> = examples.iter().map(|example| example.node).collect();
    let kind = nodes.first()?.kind();
    if nodes.iter().any(|node| node.kind() != kind) {
        return None;
    }
    let mut builder = Builder { examples, shape: TreePattern::default() };
    builder.part(&nodes, None, 0);
    builder.pairs();
    Some(builder.shape)
}

struct Builder<'e, 'a> {
    examples: &'e [FailingNode<'a>],
    shape: TreePattern,
}

impl<'a> Builder<'_, 'a> {
    fn text(&self, at: usize, node: Node<'_>) -> &'a str {
        self.examples[at].text.get(node.byte_range()).unwrap_or_default()
    }

    fn texts(&self, nodes: &[Node<'a>]) -> Vec<String> {
        let mut texts: Vec<String> =
            nodes.iter().enumerate().map(|(at, node)| self.text(at, *node).to_owned()).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    fn all(&self, nodes: &[Node<'a>], predicate: &str, words: &[String]) -> bool {
        let mut pairs = self.examples.iter().zip(nodes);
        pairs.all(|(example, node)| example.probe.holds(predicate, &[*node], words))
    }

    fn part(&mut self, nodes: &[Node<'a>], field: Option<&'a str>, depth: usize) -> usize {
        let at = self.shape.parts.len();
        let kind = nodes[0].kind();
        let is_same = nodes.iter().all(|node| node.kind() == kind);
        let is_token = nodes.iter().any(|node| !node.is_named());
        self.shape.parts.push(PatternNode {
            kind: is_same.then(|| kind.to_owned()),
            is_token,
            field: field.map(str::to_owned),
            children: Vec::new(),
            is_next: false,
            is_closed: false,
            conditions: Vec::new(),
            spans: nodes.iter().map(|node| node_span(*node)).collect(),
            is_gone: false,
        });
        if is_token {
            if !is_same {
                let texts = self.texts(nodes);
                self.shape.parts[at].conditions.push(NodeCondition::Text(texts));
            }
            return at;
        }
        self.shape.parts[at].conditions = self.conditions(nodes, field, (kind, at));
        if BODIES.contains(&kind) || self.is_reference(at, nodes) {
            return at;
        }
        let is_leaf = |node: &Node<'_>| node.named_child_count() == 0 || node.kind() == "string";
        if is_same && nodes.iter().all(is_leaf) {
            let is_local = self.examples.iter().zip(nodes).any(|(example, node)| example.probe.is_local(*node));
            let is_word = field == Some("attribute") || field == Some("name");
            if (!is_local || is_word) && nodes[0].child_count() <= 2 && is_telling(kind) {
                let texts = self.texts(nodes);
                self.shape.parts[at].conditions.push(NodeCondition::Text(texts));
            }
        } else if is_same && depth < DEPTH && !nodes.iter().any(is_leaf) {
            self.children(at, nodes, depth);
        }
        at
    }

    /// Whether a node refers to something with a qualified name. Then the way in which the file writes it does not
    /// matter.
    fn is_reference(&mut self, at: usize, nodes: &[Node<'a>]) -> bool {
        if nodes.iter().any(|node| !matches!(node.kind(), "attribute" | "identifier")) {
            return false;
        }
        let paths: Option<Vec<String>> =
            self.examples.iter().zip(nodes).map(|(example, node)| example.probe.path(*node)).collect();
        let Some(mut paths) = paths else { return false };
        paths.sort();
        paths.dedup();
        let is_method = paths.iter().any(|path| path.starts_with("tl.tensor."));
        let condition = NodeCondition::Holds { predicate: "api", words: paths, other: None };
        self.shape.parts[at].conditions.push(condition);
        if !is_method && at > 0 {
            self.shape.parts[at].kind = None;
        }
        !is_method
    }

    fn conditions(&self, nodes: &[Node<'a>], field: Option<&str>, (kind, part): (&str, usize)) -> Vec<NodeCondition> {
        let mut found = Vec::new();
        let mut add = |predicate: &'static str, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            if self.all(nodes, predicate, &words) {
                found.push(NodeCondition::Holds { predicate, words, other: None });
            }
        };
        if field == Some("name") && nodes[0].parent().is_some_and(|parent| parent.kind() == "keyword_argument") {
            add("unknown-keyword", &[]);
            return found;
        }
        if field == Some("attribute") || matches!(kind, "argument_list" | "keyword_argument") {
            return found;
        }
        if kind.ends_with("_statement") || BODIES.contains(&kind) {
            if matches!(kind, "break_statement" | "continue_statement" | "return_statement") {
                add("inside", &["for_statement", "while_statement"]);
            }
            return found;
        }
        for predicate in STRONG {
            add(predicate, &[]);
        }
        for word in GLOBALS {
            add("global", &[*word]);
        }
        // The failing expression itself has no value.
        if part == 0 {
            return found;
        }
        for word in KINDS {
            add("kind", &[*word]);
        }
        for word in TYPES {
            add("dtype", &[*word]);
        }
        for word in ["0", "1", "2", "3"] {
            add("rank", &[word]);
        }
        for predicate in ["constexpr", "not-constexpr", "not-power-of-two"] {
            add(predicate, &[]);
        }
        add("less", &["1"]);
        add("lanes-less", &["16"]);
        found
    }

    fn children(&mut self, at: usize, nodes: &[Node<'a>], depth: usize) {
        if nodes[0].kind() == "argument_list" {
            return self.arguments(at, nodes, depth);
        }
        // For each example, the children with their field names.
        let all: Vec<Vec<(Option<&'a str>, Node<'a>)>> = nodes.iter().map(|node| fielded(*node)).collect();
        let mut done: Vec<&'a str> = Vec::new();
        for (field, _) in &all[0] {
            let Some(field) = field.filter(|field| !done.contains(field)) else { continue };
            done.push(field);
            let of_field: Vec<Vec<Node<'a>>> = all
                .iter()
                .map(|children| children.iter().filter(|(one, _)| *one == Some(field)).map(|(_, node)| *node).collect())
                .collect();
            let count = of_field[0].len();
            if of_field.iter().any(|children: &Vec<Node<'a>>| children.len() != count) {
                continue;
            }
            for number in 0..count {
                let row: Vec<Node<'a>> = of_field.iter().map(|children| children[number]).collect();
                if row.iter().any(|node| node.kind() == "block") {
                    continue;
                }
                let child = self.part(&row, Some(field), depth + 1);
                self.shape.parts[child].is_next = count > 1 && number > 0 && !self.shape.parts[child].is_token;
                self.shape.parts[at].children.push(child);
            }
        }
        let plain: Vec<Vec<Node<'a>>> = all
            .iter()
            .map(|children| children.iter().filter(|(field, _)| field.is_none()).map(|(_, node)| *node).collect())
            .collect();
        if done.is_empty() {
            self.listed(at, &plain, depth);
        }
    }

    /// Aligns children without a field by their position.
    fn listed(&mut self, at: usize, rows: &[Vec<Node<'a>>], depth: usize) {
        let shortest = rows.iter().map(Vec::len).min().unwrap_or(0);
        for number in 0..shortest {
            let row: Vec<Node<'a>> = rows.iter().map(|children| children[number]).collect();
            let child = self.part(&row, None, depth + 1);
            self.shape.parts[child].is_next = true;
            self.shape.parts[at].children.push(child);
        }
        self.shape.parts[at].is_closed = shortest > 0 && rows.iter().all(|children| children.len() == shortest);
    }

    /// Aligns positional arguments by position, and keyword arguments by name.
    fn arguments(&mut self, at: usize, nodes: &[Node<'a>], depth: usize) {
        let all: Vec<Vec<Node<'a>>> = nodes.iter().map(|node| named(*node)).collect();
        let is_keyword = |node: &Node<'_>| node.kind() == "keyword_argument";
        let positional: Vec<Vec<Node<'a>>> = all
            .iter()
            .map(|arguments| arguments.iter().copied().take_while(|argument| !is_keyword(argument)).collect())
            .collect();
        self.listed(at, &positional, depth);
        let mut aligned = 0;
        let name = |example: usize, node: Node<'a>| {
            node.child_by_field_name("name").map(|name| self.examples[example].text[name.byte_range()].to_owned())
        };
        let names: Vec<Vec<(String, Node<'a>)>> = all
            .iter()
            .enumerate()
            .map(|(example, arguments)| {
                let keywords = arguments.iter().copied().filter(is_keyword);
                keywords.filter_map(|node| Some((name(example, node)?, node))).collect()
            })
            .collect();
        let mut rows: Vec<Vec<Node<'a>>> = Vec::new();
        for (word, _) in &names[0] {
            let of_name = |keywords: &Vec<(String, Node<'a>)>| {
                keywords.iter().find(|(one, _)| one == word).map(|(_, node)| *node)
            };
            rows.extend(names.iter().map(of_name).collect::<Option<Vec<Node<'a>>>>());
        }
        // The names of unknown keywords may differ between examples.
        let unknown = |(example, keywords): (usize, &Vec<(String, Node<'a>)>)| {
            let is_unknown = |node: &Node<'a>| {
                let name = node.child_by_field_name("name");
                name.is_some_and(|name| self.examples[example].probe.holds("unknown-keyword", &[name], &[]))
            };
            keywords.iter().map(|(_, node)| *node).find(is_unknown)
        };
        let unknown: Option<Vec<Node<'a>>> = names.iter().enumerate().map(unknown).collect();
        rows.extend(unknown.filter(|row| !rows.contains(row)));
        for row in rows {
            let child = self.part(&row, None, depth + 1);
            self.shape.parts[at].children.push(child);
            aligned += 1;
        }
        let by_position = positional[0].len();
        let is_all = all.iter().all(|arguments| arguments.len() == by_position + aligned);
        self.shape.parts[at].is_closed &= is_all && aligned == 0;
    }

    /// Adds conditions on pairs of parts: operands and arguments.
    fn pairs(&mut self) {
        let parts: Vec<usize> = self.shape.present().collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in parts {
            let part = &self.shape.parts[at];
            if matches!(
                part.kind.as_deref(),
                Some("binary_operator" | "comparison_operator" | "argument_list" | "augmented_assignment")
            ) {
                let value = |child: &usize| match self.shape.parts[*child].kind.as_deref() {
                    Some("keyword_argument") => self.shape.parts[*child].children.last().copied(),
                    _ => Some(*child),
                };
                groups.push(part.children.iter().filter_map(value).take(4).collect());
            }
        }
        for group in groups {
            for (number, &one) in group.iter().enumerate() {
                for &other in &group[number + 1..] {
                    if self.is_scalar(one) || self.is_scalar(other) {
                        continue;
                    }
                    for predicate in ["shapes-differ", "not-broadcast", "not-same-dtype"] {
                        if self.both(one, other, predicate) {
                            let condition = NodeCondition::Holds { predicate, words: Vec::new(), other: Some(other) };
                            self.shape.parts[one].conditions.push(condition);
                        }
                    }
                }
            }
        }
    }

    fn is_scalar(&self, at: usize) -> bool {
        let says_so = |condition: &NodeCondition| matches!(condition, NodeCondition::Holds { predicate: "rank", words, .. } if words[0] == "0");
        self.shape.parts[at].conditions.iter().any(says_so)
    }

    fn both(&self, one: usize, other: usize, predicate: &str) -> bool {
        (0..self.examples.len()).all(|at| {
            let example = &self.examples[at];
            let node = |part: usize| {
                let span = self.shape.parts[part].spans[at];
                example.node.descendant_for_byte_range(span.start, span.end)
            };
            let (Some(one), Some(other)) = (node(one), node(other)) else { return false };
            example.probe.holds(predicate, &[one, other], &[])
        })
    }
}

const KINDS: &[&str] = &[
    "pointer",
    "int",
    "float",
    "bool",
    "block",
    "scalar",
    "tuple",
    "none",
    "string",
    "dtype",
    "block-pointer",
    "descriptor",
];
const TYPES: &[&str] = &["fp16", "bf16", "fp32", "fp64", "i32", "i64", "i1"];
/// The predicates that by themselves indicate a mistake.
pub(crate) const STRONG: &[&str] =
    &["unknown-member", "undefined", "python-builtin", "plain-global", "too-many-arguments", "missing-argument"];
const GLOBALS: &[&str] = &["assigned", "function", "class", "import", "kernel"];

/// Whether the text of such a leaf is informative.
fn is_telling(kind: &str) -> bool {
    matches!(kind, "identifier" | "integer" | "float" | "string" | "true" | "false" | "none" | "argument_list")
}

fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

/// The named children, and tokens that have a field name, such as operators.
fn fielded<'t>(node: Node<'t>) -> Vec<(Option<&'t str>, Node<'t>)> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    if cursor.goto_first_child() {
        loop {
            let (child, field) = (cursor.node(), cursor.field_name());
            if child.kind() != "comment" && (child.is_named() || field.is_some()) {
                found.push((field, child));
            }
            if !cursor.goto_next_sibling() {
                break;
            }
        }
    }
    found
}
