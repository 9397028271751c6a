//! A search for the lines that the old text of an edit probably means.

/// The number of lines that are shown.
const SHOWN: usize = 12;
/// The number of characters of a line that are compared and shown.
const COMPARED: usize = 160;

/// The lines of `source` that are most similar to `old`, with the line where they begin, from 1.
pub(super) fn nearest(old: &str, source: &str) -> (usize, String) {
    let cut = |line: &str| line.trim_end().chars().take(COMPARED).collect::<String>();
    let wanted: Vec<String> = old.lines().map(cut).filter(|line| !line.trim().is_empty()).take(SHOWN).collect();
    let lines: Vec<String> = source.lines().map(cut).collect();
    let alike = |one: &str, other: &str| strsim::sorensen_dice(one.trim(), other.trim());
    // The longest line identifies the place best.
    let Some(anchor) = (0..wanted.len()).max_by_key(|at| wanted[*at].trim().len()) else { return (1, String::new()) };
    let mut best = (0.0, 0);
    for (at, line) in lines.iter().enumerate() {
        let likeness = alike(&wanted[anchor], line);
        if likeness > best.0 {
            best = (likeness, at);
        }
    }
    let from = best.1.saturating_sub(anchor);
    let until = (from + wanted.len()).min(lines.len());
    (from + 1, lines[from..until].join("\n"))
}
