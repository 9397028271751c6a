//! The user's file with its arithmetic lifted to double precision. Without that, kernels that cast to `tl.float32`
//! would stay in single precision however wide their inputs are.

use model::syntax::{Source, Span, each_node, field, node_span};
use tree_sitter::Node;

/// A file that was rewritten to calculate in double precision. It may fail to run, or compute something else, so the
/// caller has to check it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DoublePrecisionFile {
    pub(super) text: String,
    /// Whether the file casts its inputs to single precision, as opposed to only creating such numbers itself. A file
    /// that casts does so for inputs in double precision as well.
    pub(super) casts: bool,
}

/// The file with `float64` in place of `float32`, in kernels and in host code; `None` where it does not name `float32`.
pub(super) fn lifted(text: &str) -> Option<DoublePrecisionFile> {
    let source = Source::parse(text);
    let mut edits: Vec<(Span, &str)> = Vec::new();
    let mut casts = false;
    for root in source.roots() {
        each_node(root, &mut |node| {
            if let Some(edit) = edit(&source, node) {
                edits.push(edit);
                casts |= is_cast(&source, node);
            }
        });
    }
    let mut text = text.to_owned();
    for (span, new) in edits.iter().rev() {
        text.replace_range(span.start..span.end, new);
    }
    (!edits.is_empty()).then_some(DoublePrecisionFile { text, casts })
}

/// Whether a dtype name is the argument of `….to(…)` or `tl.cast(…)`, or the node is a `….float()`.
fn is_cast(source: &Source, node: Node<'_>) -> bool {
    let is_to = |call: Node<'_>| {
        let function = field(call, "function").filter(|function| function.kind() == "attribute");
        let name = function.and_then(|function| field(function, "attribute"));
        name.is_some_and(|name| matches!(source.slice(node_span(name)), "to" | "cast" | "float"))
    };
    std::iter::successors(node.parent(), Node::parent).take(3).any(|above| above.kind() == "call" && is_to(above))
}

fn edit<'a>(source: &Source, node: Node<'_>) -> Option<(Span, &'a str)> {
    let text = |node: Node<'_>| source.slice(node_span(node));
    match node.kind() {
        "attribute" => {
            let (of, name) = (field(node, "object")?, field(node, "attribute")?);
            let is_call =
                || node.parent().is_some_and(|call| call.kind() == "call" && field(call, "function") == Some(node));
            let new = match text(name) {
                // NumPy arrays are no results of kernels.
                "float32" if !matches!(text(of), "np" | "numpy") => "float64",
                "float" if text(of) == "torch" => "double",
                "float" if is_call() => "double",
                _ => return None,
            };
            Some((node_span(name), new))
        }
        // `from triton.language import float32`
        "dotted_name" if text(node) == "float32" && node.parent()?.kind() == "import_from_statement" => {
            Some((node_span(node), "float64 as float32"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{DoublePrecisionFile, lifted};

    #[test]
    fn single_precision_becomes_double_precision() {
        let text = "\
from triton.language import float32
import triton.language as tl

# float32 stays here
def kernel(x, EPS: tl.constexpr = 1e-5):
    y = tl.load(x).to(tl.float32)
    z = tl.zeros((4,), dtype=tl.float32) + y.to(tl.float16) + y.to(float32)


def call(x):
    x.float().to(torch.float32), torch.empty(3, dtype=torch.float), x.to(np.float32), float(3), 'tl.float32', x.float
";
        let expected = "\
from triton.language import float64 as float32
import triton.language as tl

# float32 stays here
def kernel(x, EPS: tl.constexpr = 1e-5):
    y = tl.load(x).to(tl.float64)
    z = tl.zeros((4,), dtype=tl.float64) + y.to(tl.float16) + y.to(float32)


def call(x):
    x.double().to(torch.float64), torch.empty(3, dtype=torch.double), x.to(np.float32), float(3), 'tl.float32', x.float
";
        assert_eq!(lifted(text), Some(DoublePrecisionFile { text: expected.to_owned(), casts: true }));
        assert_eq!(lifted("x = 1\n"), None);
    }

    #[test]
    fn casts_of_inputs_are_distinguished_from_new_fp32_values() {
        for (text, expected) in [
            ("y = x.to(tl.float32)", true),
            ("y = x.to(dtype=tl.float32)", true),
            ("y = tl.cast(x, tl.float32)", true),
            ("y = x.float()", true),
            ("y = tl.zeros((4,), dtype=tl.float32)", false),
            ("y = x.to(tl.zeros((4,), dtype=tl.float32).dtype)", false),
            ("if x.dtype == torch.float32: pass", false),
        ] {
            assert_eq!(lifted(text).map(|lifted| lifted.casts), Some(expected), "{text}");
        }
    }
}
