//! Trials that take another branch of the entry than the recorded call, as far as the file names the alternatives:
//! strings that an argument is compared with, arguments that the call leaves out, and arguments that it gives.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use model::syntax::{Source, each_node, field, node_span};
use protocol::{ArgumentValue, Workload, WorkloadSource};

use super::trials::text as worded;

/// The most choices that are tried.
const MOST: usize = 8;

/// A variant of the recorded call with another choice of arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// The name for reports.
    pub(super) name: String,
    /// Replaced arguments, by their index.
    pub(super) others: Vec<(usize, ArgumentValue)>,
    /// Arguments that the recorded call leaves out, by name.
    pub(super) added: Vec<(String, ArgumentValue)>,
}

/// The choices that `text`, the text of the entry's file, names.
pub(super) fn choices(workload: &Workload, text: &str) -> Vec<Choice> {
    if !matches!(workload.source, WorkloadSource::Recorded | WorkloadSource::Comment) {
        return Vec::new();
    }
    let source = Source::parse(text);
    let parameters = parameters(&source, &workload.entry);
    let words = Words::find(&source);
    let mut found = Vec::new();
    let count = workload.args.len();
    for (at, value) in workload.values().enumerate() {
        let named = at.checked_sub(count).map(|at| workload.kwargs[at].0.clone());
        let name = named.or_else(|| parameters.get(at).map(|one| one.name.clone())).unwrap_or_default();
        let default = parameters.iter().find(|one| one.name == name).and_then(|one| one.default.as_ref());
        let mut others: Vec<ArgumentValue> = Vec::new();
        if let ArgumentValue::Str(old) = value {
            others.extend(words.beside(&name, old).into_iter().map(ArgumentValue::Str));
        }
        if default == Some(&ArgumentValue::None) && *value != ArgumentValue::None {
            others.push(ArgumentValue::None);
        }
        found.extend(others.into_iter().map(|new| Choice {
            name: format!("`{name}` {} → {}", worded(value), worded(&new)),
            others: vec![(at, new)],
            added: Vec::new(),
        }));
    }
    let given = |name: &str| workload.kwargs.iter().any(|(given, _)| given == name);
    for Parameter { name, default } in parameters.iter().skip(count).filter(|one| !given(&one.name)) {
        let others = match default {
            Some(ArgumentValue::Bool(old)) => vec![ArgumentValue::Bool(!old)],
            Some(ArgumentValue::Str(old)) => words.beside(name, old).into_iter().map(ArgumentValue::Str).collect(),
            _ => Vec::new(),
        };
        found.extend(others.into_iter().map(|new| Choice {
            name: format!("`{name}` {}", worded(&new)),
            others: Vec::new(),
            added: vec![(name.clone(), new)],
        }));
    }
    found.truncate(MOST);
    found
}

struct Parameter {
    name: String,
    /// The default value, if it is a plain literal.
    default: Option<ArgumentValue>,
}

/// The parameters of the entry.
fn parameters(source: &Source, entry: &str) -> Vec<Parameter> {
    let mut steps: Vec<&str> = entry.split('.').collect();
    let is_apply = steps.len() > 1 && steps.last() == Some(&"apply");
    if is_apply && let Some(last) = steps.last_mut() {
        *last = "forward";
    }
    let text = |node: Node<'_>| source.slice(node_span(node));
    let mut found = Vec::new();
    for root in source.roots() {
        each_node(root, &mut |node| {
            if node.kind() == "function_definition" && path_of(source, node) == steps {
                found = field(node, "parameters").map_or_else(Vec::new, |all| {
                    let mut cursor = all.walk();
                    all.named_children(&mut cursor).filter_map(|one| parameter(&text, one)).collect()
                });
            }
        });
    }
    // The caller does not pass the context of an autograd function.
    found.drain(..usize::from(is_apply).min(found.len()));
    found
}

fn parameter<'a>(text: &dyn Fn(Node<'_>) -> &'a str, node: Node<'_>) -> Option<Parameter> {
    match node.kind() {
        "identifier" => Some(Parameter { name: text(node).to_owned(), default: None }),
        "typed_parameter" => Some(Parameter { name: text(node.named_child(0)?).to_owned(), default: None }),
        "default_parameter" | "typed_default_parameter" => {
            let default = field(node, "value").and_then(|value| literal(text, value));
            Some(Parameter { name: text(field(node, "name")?).to_owned(), default })
        }
        _ => None,
    }
}

fn literal<'a>(text: &dyn Fn(Node<'_>) -> &'a str, node: Node<'_>) -> Option<ArgumentValue> {
    match node.kind() {
        "none" => Some(ArgumentValue::None),
        "true" => Some(ArgumentValue::Bool(true)),
        "false" => Some(ArgumentValue::Bool(false)),
        _ => word(text, node).map(ArgumentValue::Str),
    }
}

/// The contents of a plain string.
fn word<'a>(text: &dyn Fn(Node<'_>) -> &'a str, node: Node<'_>) -> Option<String> {
    let content = node.named_child(1).filter(|one| one.kind() == "string_content" && node.named_child_count() == 3)?;
    (node.kind() == "string" && content.named_child_count() == 0).then(|| text(content).to_owned())
}

/// The names of the classes and functions that enclose a function, and its own name.
fn path_of<'a>(source: &'a Source, function: Node<'_>) -> Vec<&'a str> {
    let named = |node: Node<'_>| matches!(node.kind(), "function_definition" | "class_definition");
    let around = std::iter::successors(Some(function), Node::parent).filter(|node| named(*node));
    let mut path: Vec<&str> =
        around.filter_map(|node| field(node, "name")).map(|name| source.slice(node_span(name))).collect();
    path.reverse();
    path
}

/// Strings that are compared with the same expression, by the text of the expression.
struct Words(BTreeMap<String, BTreeSet<String>>);

impl Words {
    fn find(source: &Source) -> Self {
        let text = |node: Node<'_>| source.slice(node_span(node));
        let (mut all, mut tables) = (Self(BTreeMap::new()), BTreeMap::new());
        for root in source.roots() {
            each_node(root, &mut |node| {
                if node.kind() == "assignment"
                    && let (Some(left), Some(right)) = (field(node, "left"), field(node, "right"))
                    && right.kind() == "dictionary"
                {
                    tables.insert(text(left).to_owned(), words_in(&text, right));
                }
            });
        }
        for root in source.roots() {
            each_node(root, &mut |node| match node.kind() {
                "comparison_operator" if node.named_child_count() == 2 => {
                    if let (Some(left), Some(right)) = (node.named_child(0), node.named_child(1)) {
                        all.add(text(left), words_in(&text, right));
                        all.add(text(right), words_in(&text, left));
                    }
                }
                "subscript" => {
                    if let (Some(of), Some(by)) = (field(node, "value"), field(node, "subscript")) {
                        let known = tables.get(text(of)).cloned();
                        all.add(text(by), known.unwrap_or_else(|| words_in(&text, of)));
                    }
                }
                "match_statement" => {
                    let mut words = BTreeSet::new();
                    each_node(node, &mut |inner| {
                        if inner.kind() == "case_pattern" {
                            words.extend(words_in(&text, inner));
                        }
                    });
                    if let Some(subject) = field(node, "subject") {
                        all.add(text(subject), words);
                    }
                }
                _ => {}
            });
        }
        all
    }

    fn add(&mut self, of: &str, words: BTreeSet<String>) {
        if !words.is_empty() {
            self.0.entry(of.to_owned()).or_default().extend(words);
        }
    }

    /// The alternatives to the string `old` for an argument of this name.
    fn beside(&self, name: &str, old: &str) -> Vec<String> {
        let groups = self.0.iter().filter(|(of, words)| *of == name || words.contains(old));
        let words: BTreeSet<&String> = groups.flat_map(|(_, words)| words).filter(|word| *word != old).collect();
        words.into_iter().cloned().collect()
    }
}

/// The strings in a node: a string itself, the items of a list, or the keys of a dictionary.
fn words_in<'a>(text: &dyn Fn(Node<'_>) -> &'a str, node: Node<'_>) -> BTreeSet<String> {
    let mut cursor = node.walk();
    match node.kind() {
        "string" => word(text, node).into_iter().collect(),
        "list" | "tuple" | "set" | "parenthesized_expression" | "case_pattern" | "union_pattern" => {
            node.named_children(&mut cursor).flat_map(|one| words_in(text, one)).collect()
        }
        "dictionary" => {
            let keys = node.named_children(&mut cursor).filter_map(|pair| field(pair, "key"));
            keys.filter_map(|key| word(text, key)).collect()
        }
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_variants::tests::called;

    const FILE: &str = r#"
KINDS = {"sum": 0, "mean": 1}

def entry(x, y, kind="sum", act="none", bias=None, fast=False, mode="a", *, name=f"{1}", shape="b"):
    if act == "relu" or act in ("gelu", "tanh"):
        pass
    match mode:
        case "a" | "c":
            pass
    return KINDS[kind], x.device.type == "cuda", shape == name

class Both(Function):
    @staticmethod
    def forward(ctx, x, y, scale=None):
        return x
"#;

    fn names(workload: &Workload) -> Vec<String> {
        choices(workload, FILE).into_iter().map(|choice| choice.name).collect()
    }

    fn word(text: &str) -> ArgumentValue {
        ArgumentValue::Str(text.to_owned())
    }

    #[test]
    fn strings_that_an_argument_is_compared_with_become_variants() {
        // The first is a tensor.
        let mut workload =
            called(vec![ArgumentValue::Int(3), word("mean"), word("none"), ArgumentValue::Int(1)], Vec::new());
        workload.entry = "entry".to_owned();
        let expected = [
            "`kind` \"mean\" → \"sum\"",
            "`act` \"none\" → \"gelu\"",
            "`act` \"none\" → \"relu\"",
            "`act` \"none\" → \"tanh\"",
            "`bias` 1 → None",
            "`fast` True",
            "`mode` \"c\"",
        ];
        assert_eq!(names(&workload), expected);
        let all = choices(&workload, FILE);
        assert_eq!(all[0].others, [(2, word("sum"))]);
        assert_eq!(all[5].added, [("fast".to_owned(), ArgumentValue::Bool(true))]);
    }

    #[test]
    fn the_autograd_context_is_not_counted_as_an_argument() {
        let mut workload = called(vec![ArgumentValue::Int(3), ArgumentValue::Float(2.0)], Vec::new());
        workload.entry = "Both.apply".to_owned();
        assert_eq!(names(&workload), ["`scale` 2 → None"]);
        workload.entry = "Missing.apply".to_owned();
        assert_eq!(names(&workload), [""; 0]);
    }
}
