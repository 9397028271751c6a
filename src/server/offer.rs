//! Rebases an offer onto the present text.

use std::path::Path;

use similar::{Algorithm, DiffOp, TextDiff};

use model::syntax::Span;
use rules::Edit;
use search::Offer;

/// Converts edits of the text `old` to edits of `new`, the user's later version. Returns `None` when a line that an
/// edit touches, or a line of `meant` (kernels and functions of `old`), has changed.
pub(crate) fn rebase(old: &str, edits: &[Edit], meant: &[Span], new: &str) -> Option<Vec<Edit>> {
    if old == new {
        return Some(edits.to_vec());
    }
    let blocks = equal_blocks(old, new);
    // The new position of `span`, if the lines around it are unchanged.
    let shift = |span: Span, lines: Span| {
        let around = |&&(start, length, _): &&(usize, usize, usize)| Span::new(start, start + length).contains(lines);
        let &(start, _, to) = blocks.iter().find(around)?;
        Some(Span::new(span.start - start + to, span.end - start + to))
    };
    if !meant.iter().all(|&span| shift(span, span).is_some()) {
        return None;
    }
    edits
        .iter()
        .map(|edit| Some(Edit { span: shift(edit.span, whole_lines(old, edit.span))?, text: edit.text.clone() }))
        .collect()
}

/// The blocks of equal lines: first byte in `old`, length, first byte in `new`.
fn equal_blocks(old: &str, new: &str) -> Vec<(usize, usize, usize)> {
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(old, new);
    let starts = |lines: Vec<&str>| {
        lines
            .iter()
            .scan(0, |at, line| Some(std::mem::replace(at, *at + line.len())))
            .chain([lines.iter().map(|line| line.len()).sum()])
            .collect::<Vec<usize>>()
    };
    let old_starts = starts(diff.iter_old_slices().collect());
    let new_starts = starts(diff.iter_new_slices().collect());
    diff.ops()
        .iter()
        .filter_map(|op| match *op {
            DiffOp::Equal { old_index, new_index, len } => {
                let start = old_starts[old_index];
                Some((start, old_starts[old_index + len] - start, new_starts[new_index]))
            }
            _ => None,
        })
        .collect()
}

/// `span` extended to whole lines, without the end of the last one.
fn whole_lines(text: &str, span: Span) -> Span {
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at);
    Span::new(start, end)
}

/// The change of a file as a unified diff, as `patch` reads it.
pub(crate) fn diff(old: &str, new: &str, path: Option<&Path>) -> String {
    let name = path.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    TextDiff::from_lines(old, new).unified_diff().header(&name, &name).to_string()
}

/// The changes of an offer, and the conditions of its speedup.
pub(crate) fn description(offer: &Offer) -> String {
    format!("{} · {}", offer.change, offer.speedup.conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::apply_edits;

    const OLD: &str = "import a\n\n\ndef k():\n    return 1\n\n\ndef host():\n    k(4)\n";

    fn rebased(new: &str) -> Option<String> {
        let replace = |from: &str, to: &str| {
            let start = OLD.find(from).unwrap();
            Edit { span: Span::new(start, start + from.len()), text: to.to_owned() }
        };
        let start = OLD.find("def k").unwrap();
        let kernel = Span::new(start, OLD.find("\n\n\ndef host").unwrap());
        let edits = [replace("return 1", "return 2"), replace("k(4)", "k(8)")];
        rebase(OLD, &edits, &[kernel], new).map(|edits| apply_edits(new, &edits))
    }

    #[test]
    fn edits_follow_changes_elsewhere() {
        for new in [
            OLD.to_owned(),
            format!("# new\n{OLD}# end"),
            OLD.replace("import a", "import a, b"),
            OLD.replace("\n\n\ndef host", "\n\nx = 1\n\n\ndef host"),
            OLD.replace("    k(4)", "    y = 0\n    k(4)"),
        ] {
            let expected = new.replace("return 1", "return 2").replace("k(4)", "k(8)");
            assert_eq!(rebased(&new).as_deref(), Some(expected.as_str()));
        }
    }

    #[test]
    fn edits_of_changed_lines_are_refused() {
        for new in [
            OLD.replace("return 1", "return 3"),
            OLD.replace("def k()", "def k(x)"),
            OLD.replace("def k():\n", "def k():\n    # note\n"),
            OLD.replace("k(4)", "k(5)"),
            OLD.replace("    k(4)\n", "    k(4)  # tune\n"),
            String::new(),
        ] {
            assert_eq!(rebased(&new), None, "{new}");
        }
    }
}
