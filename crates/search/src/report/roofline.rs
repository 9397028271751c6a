//! The roofline (Williams, Waterman, Patterson 2009): original and offer under the limits of memory bandwidth and
//! compute units.

use std::fmt::Write;

use judge::Counted;

use super::charts::escaped;
use crate::speedup::Speedup;

const SIZE: (f64, f64) = (560.0, 320.0);
const MARGIN: f64 = 52.0;
/// Margin around the data, in decades.
const BEYOND: f64 = 0.5;

/// The position of a kernel: operations per byte, and operations per second.
type Point = (f64, f64);

fn point(does: &Counted, milliseconds: f64) -> Option<Point> {
    let point = (does.operations / does.bytes, does.operations / milliseconds * 1000.0);
    (point.0.is_finite() && point.1.is_finite() && point.0 > 0.0 && point.1 > 0.0).then_some(point)
}

/// The ranges of the two logarithmic axes, in decades.
struct Axes {
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    /// The axes that contain all points and the ridge points of the roofs.
    fn of(points: &[Point], roofs: &[Counted]) -> Self {
        let bends = roofs.iter().map(|roof| (roof.peak / roof.bandwidth, roof.peak));
        let all: Vec<Point> = points.iter().copied().chain(bends).collect();
        let range = |of: fn(&Point) -> f64| {
            let logs = || all.iter().map(|point| of(point).log10());
            (logs().fold(f64::INFINITY, f64::min) - BEYOND, logs().fold(f64::NEG_INFINITY, f64::max) + BEYOND)
        };
        Self { x: range(|point| point.0), y: range(|point| point.1) }
    }

    fn place(&self, (x, y): Point) -> Point {
        let share = |value: f64, (low, high): (f64, f64)| (value.log10() - low) / (high - low);
        let (width, height) = (SIZE.0 - 2.0 * MARGIN, SIZE.1 - 2.0 * MARGIN);
        (MARGIN + width * share(x, self.x), SIZE.1 - MARGIN - height * share(y, self.y))
    }

    /// The roof: from the left edge along the memory's bandwidth to the peak, and on to the right edge.
    fn roof(&self, roof: &Counted) -> String {
        // The line may enter the picture from below and not from the left.
        let from = self.x.0.max(self.y.0 - roof.bandwidth.log10());
        let [begin, bend, end] = [
            (10f64.powf(from), 10f64.powf(from) * roof.bandwidth),
            (roof.peak / roof.bandwidth, roof.peak),
            (10f64.powf(self.x.1), roof.peak),
        ]
        .map(|point| self.place(point));
        format!(
            "<path class=\"roof\" d=\"M{:.1},{:.1} L{:.1},{:.1} H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            begin.0,
            begin.1,
            bend.0,
            bend.1,
            end.0,
            end.0,
            end.1 - 6.0,
            rate(roof.peak)
        )
    }
}

/// A rate in words: `990 TFLOP/s`.
fn rate(operations: f64) -> String {
    if operations >= 1e12 {
        format!("{:.3} TFLOP/s", Digits(operations / 1e12))
    } else {
        format!("{:.3} GFLOP/s", Digits(operations / 1e9))
    }
}

/// A number with the given count of significant digits, without trailing zeros after the decimal point.
struct Digits(f64);

impl std::fmt::Display for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(3);
        let whole = if self.0 > 0.0 { self.0.log10().floor() as i32 + 1 } else { 1 };
        let behind = usize::try_from(i32::try_from(digits).unwrap_or(3) - whole).unwrap_or(0);
        let text = format!("{:.behind$}", self.0);
        let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        f.write_str(short)
    }
}

/// The picture; `None` where nothing was counted.
pub(super) fn picture(speedup: &Speedup) -> Option<String> {
    let mut both: Vec<(&str, Point, Point)> = Vec::new();
    let mut roofs: Vec<Counted> = Vec::new();
    for call in &speedup.calls {
        let Some((before, after)) = &call.counted else { continue };
        if let (Some(from), Some(to)) = (point(before, call.before_ms), point(after, call.after_ms)) {
            both.push((&call.call, from, to));
            roofs.extend([before, after]);
        }
    }
    roofs.sort_by(|one, other| one.peak.total_cmp(&other.peak));
    roofs.dedup_by_key(|roof| roof.peak);
    let bandwidth = roofs.first()?.bandwidth;
    let points: Vec<Point> = both.iter().flat_map(|(_, from, to)| [*from, *to]).collect();
    let axes = Axes::of(&points, &roofs);
    let mut out: String = roofs.iter().map(|roof| axes.roof(roof)).collect();
    for (call, from, to) in both {
        let [start, end] = [from, to].map(|point| axes.place(point));
        let _ = write!(out, "<path class=\"then\" d=\"M{:.1},{:.1} L{:.1},{:.1}\"/>", start.0, start.1, end.0, end.1);
        for (class, name, place, (x, y)) in [("before", "as written", start, from), ("after", "faster", end, to)] {
            let title = escaped(&format!("{call}, {name}: {:.3} FLOP/byte, {}", Digits(x), rate(y)));
            let _ = write!(
                out,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"><title>{title}</title></circle>",
                place.0, place.1
            );
        }
    }
    let (width, height) = SIZE;
    Some(format!(
        "<svg role=\"img\" aria-label=\"roofline\" viewBox=\"0 0 {width} {height}\" width=\"{width}\">{out}\
         <text x=\"{MARGIN}\" y=\"{:.0}\">FLOP/byte (log), {:.3} to {:.3}</text><text x=\"{MARGIN}\" y=\"20\">FLOP/s (log); the memory gives {:.3} TB/s</text>\
         <path d=\"M{MARGIN},{MARGIN} V{:.0} H{:.0}\"/></svg>",
        height - MARGIN / 2.0,
        Digits(10f64.powf(axes.x.0)),
        Digits(10f64.powf(axes.x.1)),
        Digits(bandwidth / 1e12),
        height - MARGIN,
        width - MARGIN
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speedup::CallSpeedup;

    fn does(bytes: f64, operations: f64, peak: f64) -> Counted {
        Counted { bytes, operations, peak, bandwidth: 4e12 }
    }

    #[test]
    fn kernels_are_drawn_at_their_rates_in_the_roofline() {
        let counted = Some((does(2e8, 1e8, 6e13), does(1e8, 1e8, 6e13)));
        let call = CallSpeedup {
            call: "f(x<1>)".to_owned(),
            before_ms: 0.1,
            after_ms: 0.05,
            counted,
            ..CallSpeedup::default()
        };
        let picture = picture(&Speedup { calls: vec![call], ..Speedup::default() }).unwrap();
        assert!(picture.contains("f(x&lt;1&gt;), as written: 0.5 FLOP/byte, 1 TFLOP/s"), "{picture}");
        assert!(picture.contains("faster: 1 FLOP/byte, 2 TFLOP/s"), "{picture}");
        assert!(picture.contains("60 TFLOP/s") && picture.contains("gives 4 TB/s"), "{picture}");
        // Original and offer share one roof.
        assert_eq!((picture.matches("class=\"roof\"").count(), picture.matches("<circle").count()), (1, 2));
    }

    #[test]
    fn a_kernel_at_the_memory_rate_is_drawn_on_the_roof() {
        let roof = does(1.0, 1.0, 6e13);
        let axes = Axes::of(&[(0.5, 2e12)], &[roof]);
        let (on, bend) = (axes.place((0.5, 2e12)), axes.place((15.0, 6e13)));
        let path = axes.roof(&roof);
        assert!(path.contains(&format!("L{:.1},{:.1}", bend.0, bend.1)), "{path}");
        // Both axes have the same scale along the roof, so a straight line goes through the point.
        let slope = |from: Point, to: Point| (to.1 - from.1) / (to.0 - from.0);
        let begin = axes.place((1.0, 4e12));
        assert!((slope(on, begin) - slope(begin, bend)).abs() < 1e-6);
    }

    #[test]
    fn where_nothing_was_counted_there_is_no_picture() {
        let idle = CallSpeedup { counted: Some((Counted::default(), Counted::default())), ..CallSpeedup::default() };
        for calls in [Vec::new(), vec![CallSpeedup::default()], vec![idle]] {
            assert_eq!(picture(&Speedup { calls, ..Speedup::default() }), None);
        }
        assert_eq!([rate(9.9e14), rate(1.234e12), rate(5e8)], ["990 TFLOP/s", "1.23 TFLOP/s", "0.5 GFLOP/s"]);
    }
}
