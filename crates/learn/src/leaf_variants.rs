//! Variations of the words in a flagged expression, in place. A pattern often leaves open which type, option or number
//! stands at the bottom of what it flags, and another one compiles.

use model::syntax::{Span, node_span};
use tree_sitter::Node;

use super::counterexamples::{VariationBase, replaced_in_turn};
use super::program::KernelProgram;

/// Types that replace a type, or a string where a type may be meant.
const TYPES: &[&str] = &["float32", "int32", "float16", "int64", "uint32", "int1", "float8e5", "bfloat16"];
/// Values that options of Triton's functions take.
const OPTIONS: &[&str] = &[
    "zero",
    "nan",
    "evict_last",
    "relaxed",
    "gpu",
    "ieee",
    "e4m3",
    "add",
    ".cg",
    "acq_rel",
    "tf32",
    "rtne",
    "cta",
    "e5m2",
    "max",
    "",
];
/// Keyword arguments that replace one; a pattern may say only that there is one.
const KEYWORDS: &[&str] = &["hex=True", "axis=0", "mask=None", "keep_dims=True", "dim=0", "dtype=None", "sem=None"];
const NUMBERS: &[&str] = &["0", "1", "2", "16", "-1", "1.0"];

/// The programs in which one word of the expression at a place is another one. Each word has its turn.
pub(crate) fn leaf_variants(ground: &VariationBase<'_>, place: Span) -> Vec<KernelProgram> {
    let source = &ground.parsed.source;
    let (Some(node), Some(tl)) = (source.node_at(place), ground.language()) else { return Vec::new() };
    let mut leaves: Vec<(Span, Vec<String>)> = Vec::new();
    collect(node, source.text(), &tl, &mut leaves);
    replaced_in_turn(ground, &leaves)
}

/// Whether a name of `triton.language` begins as those of the element types do.
fn is_type(name: &str) -> bool {
    ["int", "uint", "float", "bfloat"].iter().any(|kind| name.starts_with(kind))
}

fn collect(node: Node<'_>, text: &str, tl: &str, leaves: &mut Vec<(Span, Vec<String>)>) {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let types = || TYPES.iter().map(|name| format!("{tl}{name}"));
    let of_node = || text.get(node.byte_range()).unwrap_or_default();
    let others = match node.kind() {
        "attribute" if of_node().strip_prefix(tl).is_some_and(is_type) => types().collect(),
        "string" => {
            let options = OPTIONS.iter().map(|option| format!("\"{option}\""));
            let mut others: Vec<String> = types().take(2).collect();
            others.extend(options);
            others
        }
        "integer" | "float" => owned(NUMBERS),
        "true" | "false" | "none" => owned(&["True", "False", "None"]),
        _ => Vec::new(),
    };
    match node.kind() {
        "tuple" | "list" => leaves.push((node_span(node), owned(&["()", "None"]))),
        "keyword_argument" => leaves.push((node_span(node), owned(KEYWORDS))),
        _ => {}
    }
    if !others.is_empty() {
        leaves.push((node_span(node), others));
        return;
    }
    let mut cursor = node.walk();
    node.named_children(&mut cursor).for_each(|child| collect(child, text, tl, leaves));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed_files::Parsed;

    #[test]
    fn types_options_and_numbers_are_varied_in_turn() {
        let text = "import triton\nimport triton.language as tl\n\n\n# warpsmith: signature p=*fp32\n@triton.jit\ndef k(p):\n    \
                    x = tl.atomic_add(p.to(tl.pointer_type(tl.int1)), 1, sem=\"weak\")\n";
        let (program, parsed) = (KernelProgram::new(text, "k"), Parsed::new(text));
        let start = text.find("tl.atomic_add").unwrap_or_default();
        let found = leaf_variants(&VariationBase::new(&program, &parsed), Span::new(start, text.len() - 1));
        let calls: Vec<&str> =
            found.iter().take(5).map(|program| program.text.get(start..).unwrap_or_default()).collect();
        assert_eq!(
            calls,
            [
                "tl.atomic_add(p.to(tl.pointer_type(tl.float32)), 1, sem=\"weak\")\n",
                "tl.atomic_add(p.to(tl.pointer_type(tl.int1)), 0, sem=\"weak\")\n",
                "tl.atomic_add(p.to(tl.pointer_type(tl.int1)), 1, hex=True)\n",
                "tl.atomic_add(p.to(tl.pointer_type(tl.int1)), 1, sem=tl.float32)\n",
                "tl.atomic_add(p.to(tl.pointer_type(tl.int32)), 1, sem=\"weak\")\n",
            ]
        );
    }
}
