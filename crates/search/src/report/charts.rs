//! The pictures of a report, as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Report, TriedCandidate};

const WIDTH: f64 = 860.0;
const ROW: f64 = 9.0;
const COLUMN: f64 = 64.0;
const MARGIN: f64 = 36.0;

/// The text with the characters escaped that HTML reserves.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The tree of candidates, from left to right, with children to the right of their parents.
pub(super) fn tree(report: &Report) -> String {
    let mut below: BTreeMap<usize, Vec<&TriedCandidate>> = BTreeMap::new();
    for tried in &report.candidates {
        below.entry(tried.parent).or_default().push(tried);
    }
    let (mut out, mut next) = (String::new(), MARGIN);
    let mut depth = 0;
    // The root, and the original below it.
    for start in [0, 1] {
        let at = (MARGIN, next);
        let label = if start == 0 { "anew" } else { "as written" };
        let _ = write!(
            out,
            "<circle class=\"start\" cx=\"{}\" cy=\"{}\" r=\"4\"><title>{label}</title></circle>",
            at.0, at.1
        );
        depth = depth.max(branch(&below, start, at, 1, &mut next, &mut out));
        next += 2.0 * ROW;
    }
    let width = (2.0 * MARGIN + COLUMN * f64::from(depth)).max(200.0);
    format!(
        "<svg role=\"img\" aria-label=\"tree of candidates\" viewBox=\"0 0 {width} {next}\" width=\"{width}\" height=\"{next}\">{out}</svg>"
    )
}

/// Draws the children of a node. Returns the depth of the deepest one.
fn branch(
    below: &BTreeMap<usize, Vec<&TriedCandidate>>,
    id: usize,
    from: (f64, f64),
    depth: u32,
    next: &mut f64,
    out: &mut String,
) -> u32 {
    let mut deepest = depth;
    for (at, tried) in below.get(&id).into_iter().flatten().enumerate() {
        if at > 0 {
            *next += ROW;
        }
        let place = (MARGIN + COLUMN * f64::from(depth), *next);
        let speedup = tried.speedup.map_or_else(|| tried.result.to_owned(), |speedup| format!("{speedup:.2}×"));
        let judged_on = tried.judged_on.as_ref().map(|it| format!("; judged on {}", it.place())).unwrap_or_default();
        let label = escaped(&format!("{speedup}: {}{judged_on}", tried.change));
        let class = if tried.large { "large" } else { "small" };
        let radius = tried.speedup.map_or(2.5, |speedup| (2.0 + 2.0 * speedup).clamp(2.5, 8.0));
        let _ = write!(
            out,
            "<path class=\"{class}\" d=\"M{},{} H{} V{} H{}\"/>",
            from.0,
            from.1,
            place.0 - COLUMN / 2.0,
            place.1,
            place.0
        );
        let _ = write!(
            out,
            "<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{radius}\"><title>{label}</title></circle>",
            tried.result, place.0, place.1
        );
        deepest = deepest.max(branch(below, tried.id, place, depth + 1, next, out));
    }
    deepest
}

/// The best speedup over time.
pub(super) fn progress(report: &Report) -> String {
    const HEIGHT: f64 = 220.0;
    let end = report.seconds.max(1.0);
    let top = report.best.last().map_or(1.0, |(_, best)| *best).max(1.1);
    let x = |seconds: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * seconds / end;
    let y = |speedup: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (speedup - 1.0) / (top - 1.0);
    let mut path = format!("M{:.1},{:.1}", x(0.0), y(1.0));
    for (seconds, best) in &report.best {
        let _ = write!(path, " H{:.1} V{:.1}", x(*seconds), y(*best));
    }
    let _ = write!(path, " H{:.1}", x(end));
    let dots: String = report
        .candidates
        .iter()
        .filter_map(|tried| {
            let (seconds, speedup) = (tried.seconds?, tried.speedup?.clamp(1.0, top));
            let title = escaped(&format!("{speedup:.2}×: {}", tried.change));
            Some(format!(
                "<circle class=\"right\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"><title>{title}</title></circle>",
                x(seconds),
                y(speedup)
            ))
        })
        .collect();
    format!(
        "<svg role=\"img\" aria-label=\"best speedup over time\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\">{dots}<path class=\"best\" d=\"{path}\"/>\
         <text x=\"4\" y=\"{:.0}\">1×</text><text x=\"4\" y=\"{:.0}\">{top:.2}×</text><text x=\"{:.0}\" y=\"{:.0}\">{end:.0} s</text></svg>",
        y(1.0),
        y(top) + 4.0,
        WIDTH - 2.0 * MARGIN,
        HEIGHT - 8.0
    )
}

/// For each call the times of original and candidate, beside the least time that the memory's bandwidth allows.
pub(super) fn bounds(report: &Report) -> Option<String> {
    const LINE: f64 = 18.0;
    let calls = &report.speedup.as_ref()?.calls;
    let longest = calls.iter().map(|call| call.before_ms).fold(0.0, f64::max);
    let (mut out, mut y) = (String::new(), 4.0);
    for call in calls {
        let floor = call.floor_share.map(|(before, _)| ("the memory's least", "floor", call.before_ms * before));
        let bars = [Some(("as written", "before", call.before_ms)), Some(("faster", "after", call.after_ms)), floor];
        for (name, class, time) in bars.into_iter().flatten() {
            let width = 500.0 * time / longest.max(f64::MIN_POSITIVE);
            let _ = write!(
                out,
                "<text x=\"4\" y=\"{:.0}\">{name}</text><rect class=\"{class}\" x=\"140\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"13\"/><text x=\"{:.0}\" y=\"{:.0}\">{time:.4} ms</text>",
                y + 11.0,
                148.0 + width,
                y + 11.0
            );
            y += LINE;
        }
        y += LINE / 2.0;
    }
    Some(format!(
        "<svg role=\"img\" aria-label=\"times and bounds\" viewBox=\"0 0 {WIDTH} {y}\" width=\"{WIDTH}\">{out}</svg>"
    ))
}
