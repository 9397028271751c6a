//! Omits masks in calls whose sizes are multiples of the tiles.

mod proof;

use base::rng::Rng;
use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Span;
use protocol::{ArgumentValue, LaunchRecord};
use rules::Edit;

use super::candidate::Change;
use super::heuristic;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::fresh;

use proof::{Even, EvenSizesProof};

/// Computes for a size, by `@triton.heuristics` and so anew in each call, whether all of its tiles are full:
/// `(offsets < n) | EVEN_N`. Where that constexpr of the kernel is true, Triton drops that part of the mask, and the
/// selections that depend on it. Other calls work as before.
pub(super) struct EvenSizes;

impl Skill for EvenSizes {
    fn name(&self) -> &'static str {
        "even_sizes"
    }

    fn about(&self) -> &'static str {
        "No masks where a size is a multiple of its tile: `@triton.heuristics` decides that for each call, and calls of other sizes keep them."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let kernel = subject.kernel;
        if !heuristic::is_open(subject) {
            return Vec::new();
        }
        let comparisons = comparisons(subject);
        let mut found: Vec<&Even<'_>> = Vec::new();
        for (_, even) in &comparisons {
            if !found.contains(&even) && !is_said(kernel, even) && is_met(subject, even) {
                found.push(even);
            }
        }
        // Those in loops gain the most.
        found.sort_by_key(|even| !even.in_rounds);
        let turn = |even: &Even<'_>| {
            let of_it = comparisons.iter().filter(|(_, other)| other == even).map(|(span, _)| *span);
            let edits = edits(subject, even, of_it)?;
            let what = format!("no masks where {} is a multiple of {}", even.size, even.tile);
            Some(Proposal { kind: "even_sizes".to_owned(), edits, changes: vec![Change::Structure(what)] })
        };
        found.into_iter().filter_map(turn).collect()
    }
}

/// The comparisons that hold for all elements of a tile when a size is even.
fn comparisons<'a>(subject: &'a Subject<'a>) -> Vec<(Span, Even<'a>)> {
    let proof = EvenSizesProof::of(subject);
    let mut found = Vec::new();
    walk_expressions(&subject.kernel.body, &mut |expr: &Expr| {
        let ExprKind::Compare { left, rest } = &expr.kind else { return };
        let even = match rest.as_slice() {
            [(op, right)] if op == "<" => proof.less(left, right),
            [(op, right)] if op == ">" => proof.less(right, left),
            _ => None,
        };
        found.extend(even.map(|even| (expr.span, even)));
    });
    found
}

fn name_of(even: &Even<'_>) -> String {
    format!("EVEN_{}", even.size.to_uppercase())
}

/// Whether the kernel has that condition already.
fn is_said(kernel: &Kernel, even: &Even<'_>) -> bool {
    kernel.params.iter().any(|param| param.name.starts_with(&name_of(even)))
}

/// Whether some recorded launch has such sizes, as far as they were recorded.
fn is_met(subject: &Subject<'_>, even: &Even<'_>) -> bool {
    let is_even = |launch: &LaunchRecord| {
        let number = |name: &str| {
            let mut passed = launch.keywords.iter().chain(&launch.arguments).filter(|(passed, _)| passed == name);
            passed.find_map(|(_, value)| if let ArgumentValue::Int(number) = value { Some(*number) } else { None })
        };
        let (Some(size), Some(tile)) = (number(even.size), number(even.tile)) else { return true };
        if even.has_start { tile > 0 && size % tile == 0 } else { size >= tile }
    };
    let mut launches = subject.records().peekable();
    launches.peek().is_none() || launches.any(is_even)
}

fn edits(subject: &Subject<'_>, even: &Even<'_>, comparisons: impl Iterator<Item = Span>) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let name = fresh(text, &name_of(even));
    let (size, tile) = (even.size, even.tile);
    let test = if even.has_start {
        format!("args[\"{size}\"] % args[\"{tile}\"] == 0")
    } else {
        format!("args[\"{size}\"] >= args[\"{tile}\"]")
    };
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    let mut edits = heuristic::decided(subject, &name, &test)?;
    for span in comparisons {
        let (before, behind) =
            if is_apart(text, span) { ("(", format!(") | {name}")) } else { ("((", format!(") | {name})")) };
        edits.push(put(span.start, before.to_owned()));
        edits.push(put(span.end, behind));
    }
    Some(edits)
}

/// Whether a comparison can become an operand of another expression: it is in parentheses, or is a whole value.
fn is_apart(text: &str, span: Span) -> bool {
    let (before, after) = (text[..span.start].trim_end(), text[span.end..].trim_start_matches(' '));
    let is_value = before.ends_with('=') && !["==", "<=", ">=", "!="].iter().any(|op| before.ends_with(op));
    let is_enclosed = before.ends_with('(') && after.starts_with([')', ',']);
    is_enclosed || is_value && (after.is_empty() || after.starts_with([',', ')', '\n', '#']))
}

#[cfg(test)]
mod tests;
