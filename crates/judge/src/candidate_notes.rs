//! Notes on a candidate's text that the user should read, although they are no reason to refuse it: where it caches
//! values, depends on addresses, falls back, or names a narrower type than the original.

use std::collections::BTreeMap;

use tree_sitter::Node;

use model::syntax::{Source, each_node, field, node_span};

/// The kinds of notes, in the order in which they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Keeps,
    Address,
    Fallback,
    Narrow,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Keeps => "keeps values from call to call",
            Self::Address => "goes by the addresses of tensors",
            Self::Fallback => "does something else where something fails",
            Self::Narrow => "names a narrower type or precision",
        }
    }
}

/// The number of occurrences of each kind and wording, and the line of the first one.
type FindingCounts = BTreeMap<(Kind, String), (usize, usize)>;

/// Notes on what occurs more often in the candidate than in the original.
pub(super) fn notes(original: &str, candidate: &str) -> Vec<String> {
    let (before, after) = (found(original), found(candidate));
    let mut told = Vec::new();
    let mut last = None;
    for ((kind, text), (count, line)) in &after {
        let usual = before.get(&(*kind, text.clone())).map_or(0, |(count, _)| *count);
        if *count > usual && last != Some(*kind) {
            told.push(format!("{}, which the original does not: `{text}`, line {line}", kind.words()));
            last = Some(*kind);
        }
    }
    told
}

fn found(text: &str) -> FindingCounts {
    let source = Source::parse(text);
    let mut found = FindingCounts::new();
    for root in source.roots() {
        each_node(root, &mut |node| {
            if let Some(kind) = kind_of(node, &source) {
                let span = node_span(node);
                let shown = source.slice(span).lines().next().unwrap_or_default().to_owned();
                let line = text[..span.start].matches('\n').count() + 1;
                found.entry((kind, shown)).or_insert((0, line)).0 += 1;
            }
        });
    }
    found
}

fn kind_of(node: Node<'_>, source: &Source) -> Option<Kind> {
    let text = |node: Node<'_>| source.slice(node_span(node)).to_owned();
    match node.kind() {
        "global_statement" => Some(Kind::Keeps),
        "decorator" if text(node).contains("cache") => Some(Kind::Keeps),
        "try_statement" => {
            // A file imports an optional package in a guarded block.
            let body = field(node, "body").map(text).unwrap_or_default();
            let is_import = |line: &str| line.trim().starts_with("import ") || line.trim().starts_with("from ");
            (!body.lines().all(is_import)).then_some(Kind::Fallback)
        }
        "attribute" => match field(node, "attribute").map(text)?.as_str() {
            "data_ptr" => Some(Kind::Address),
            "float16" | "bfloat16" | "half" => Some(Kind::Narrow),
            name if name.starts_with("float8") => Some(Kind::Narrow),
            _ => None,
        },
        "keyword_argument" => {
            let name = field(node, "name").map(text)?;
            let value = field(node, "value").map(text)?;
            let is_narrow = match name.as_str() {
                "allow_tf32" => value == "True",
                "input_precision" => !value.contains("ieee"),
                _ => false,
            };
            is_narrow.then_some(Kind::Narrow)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_list_additions_of_the_candidate_with_their_line() {
        let original = "x = a.to(tl.float16)\n";
        let of = |candidate: &str| notes(original, candidate);
        assert_eq!(of(original), Vec::<String>::new());
        assert_eq!(
            of("x = a.to(tl.float16)\ny = tl.dot(a, b, input_precision='tf32')\n"),
            ["names a narrower type or precision, which the original does not: `input_precision='tf32'`, line 2"]
        );
        assert_eq!(
            of("def f(x):\n    global LAST\n    if x.data_ptr() == LAST: return\n"),
            [
                "keeps values from call to call, which the original does not: `global LAST`, line 2",
                "goes by the addresses of tensors, which the original does not: `x.data_ptr`, line 3",
            ]
        );
        let guarded = "try:\n    import torch\nexcept ImportError:\n    torch = None\n";
        assert_eq!(of(guarded), Vec::<String>::new());
        let falls = "try:\n    kernel[grid](x)\nexcept Exception:\n    x = torch.softmax(x, 1)\n";
        assert_eq!(
            of(falls),
            ["does something else where something fails, which the original does not: `try:`, line 1"]
        );
    }
}
