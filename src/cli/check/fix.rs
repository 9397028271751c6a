//! Applies the fixes that findings offer.

use model::syntax::Source;
use rules::{Diagnostic, Edit, apply_edits};

/// The maximum number of rounds: fixes may uncover findings with fixes of their own.
const ROUNDS: usize = 10;

/// A text after its fixes.
pub(super) struct Fixed {
    /// The fixed text and the remaining findings.
    pub(super) state: (Source, Vec<Diagnostic>),
    /// The number of applied fixes.
    pub(super) count: usize,
}

/// Applies all fixes to `text`, round after round, until there are none.
pub(super) fn fix(text: String, check: impl Fn(&str) -> (Source, Vec<Diagnostic>)) -> Fixed {
    let mut fixed = Fixed { state: check(&text), count: 0 };
    for _ in 0..ROUNDS {
        let (source, findings) = &fixed.state;
        let (edits, count) = compatible(findings);
        if count == 0 {
            break;
        }
        let next = check(&apply_edits(source.text(), &edits));
        let broke = |source: &Source| source.has_error();
        if broke(&next.0) && !broke(source) {
            // A fix that breaks the file is a defect of the rule, and is not applied.
            break;
        }
        fixed = Fixed { state: next, count: fixed.count + count };
    }
    fixed
}

/// The edits of as many fixes as can be applied together, and the number of these fixes.
fn compatible(findings: &[Diagnostic]) -> (Vec<Edit>, usize) {
    let mut edits: Vec<Edit> = Vec::new();
    let mut count = 0;
    for fix in findings.iter().filter_map(|finding| finding.fix.as_ref()) {
        let clash = fix.edits.iter().any(|edit| edits.iter().any(|made| made.span.meets(edit.span)));
        if !clash && !fix.edits.is_empty() {
            edits.extend(fix.edits.iter().cloned());
            count += 1;
        }
    }
    (edits, count)
}
