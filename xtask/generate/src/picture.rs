//! Draws the output of a command in a terminal as an SVG.

use std::fmt::Write as _;

/// Width of a character and height of a line, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
/// Space around the text, and the height of the title bar.
const MARGIN: f64 = 16.0;
const BAR: f64 = 34.0;
/// The width in characters at which lines wrap, as in a window.
const COLUMNS: usize = 108;

/// A run of characters in the same style.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    text: String,
    look: Look,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    bold: bool,
    /// One of the terminal's sixteen colours.
    colour: Option<u8>,
}

/// The output up to its third finding, which is enough for a picture. `None` when there is no finding.
pub(crate) fn until_third_finding(output: &str) -> Option<&str> {
    let mut ends = output.match_indices("\n\n").map(|(at, _)| at);
    // The last piece is the summary.
    let first = ends.next()?;
    let end = ends.nth(1).unwrap_or(first);
    Some(&output[..end])
}

/// A picture of a window with `title` and the text, in which colour escapes are interpreted.
pub(crate) fn draw(title: &str, text: &str) -> String {
    let mut look = Look::default();
    let lines: Vec<Vec<Run>> = text.lines().flat_map(|line| wrap(runs(line, &mut look))).collect();
    let columns = |line: &Vec<Run>| line.iter().map(|run| run.text.chars().count()).sum::<usize>();
    let longest = lines.iter().map(columns).max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a terminal has few columns and lines")]
    let (width, height) = (longest as f64 * CELL.0 + 2.0 * MARGIN, lines.len() as f64 * CELL.1 + BAR + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e2127\"/>\n\
         <g fill=\"#3b4048\"><circle cx=\"20\" cy=\"18\" r=\"5\"/><circle cx=\"38\" cy=\"18\" r=\"5\"/><circle cx=\"56\" cy=\"18\" r=\"5\"/></g>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#c8ccd4\" xml:space=\"preserve\">\n\
         <text x=\"76\" y=\"23\" fill=\"#7f8793\">$ {title}</text>\n",
        title = escape(title),
    );
    let mut y = BAR + MARGIN;
    for line in &lines {
        let _ = writeln!(out, "<text y=\"{y:.0}\">{}</text>", spans(line));
        y += CELL.1;
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// Each run at its own column, so that any monospace font lines up.
fn spans(line: &[Run]) -> String {
    let mut out = String::new();
    let mut column = 0_u32;
    for run in line {
        let length = u32::try_from(run.text.chars().count()).unwrap_or(0);
        if !run.text.trim().is_empty() {
            let x = MARGIN + f64::from(column) * CELL.0;
            let weight = if run.look.bold { " font-weight=\"bold\"" } else { "" };
            let fill = run.look.colour.map_or(String::new(), |colour| format!(" fill=\"{}\"", hex(colour)));
            let width = f64::from(length) * CELL.0;
            let _ = write!(
                out,
                "<tspan x=\"{x:.1}\" textLength=\"{width:.1}\"{weight}{fill}>{}</tspan>",
                escape(&run.text)
            );
        }
        column += length;
    }
    out
}

/// Splits a line at its escapes; `look` carries over to the next line.
fn runs(line: &str, look: &mut Look) -> Vec<Run> {
    let mut out = Vec::new();
    for (index, piece) in line.split("\u{1b}[").enumerate() {
        let text = match piece.split_once('m') {
            Some((codes, text)) if index > 0 => {
                apply(codes, look);
                text
            }
            _ => piece,
        };
        if !text.is_empty() {
            out.push(Run { text: text.to_owned(), look: *look });
        }
    }
    out
}

/// Breaks a long line at its spaces.
fn wrap(line: Vec<Run>) -> Vec<Vec<Run>> {
    let mut lines = vec![Vec::new()];
    let mut column = 0;
    for Run { text, look } in line {
        for word in text.split_inclusive(' ') {
            let length = word.chars().count();
            if column > 0 && column + word.trim_end().chars().count() > COLUMNS {
                lines.push(Vec::new());
                column = 0;
            }
            column += length;
            let line = lines.last_mut().expect("there is always a line");
            match line.last_mut() {
                Some(Run { text, look: last }) if *last == look => text.push_str(word),
                _ => line.push(Run { text: word.to_owned(), look }),
            }
        }
    }
    lines
}

fn apply(codes: &str, look: &mut Look) {
    let mut codes = codes.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
    while let Some(code) = codes.next() {
        match code {
            0 => *look = Look::default(),
            1 => look.bold = true,
            22 => look.bold = false,
            30..=37 => look.colour = Some(code - 30),
            38 if codes.next() == Some(5) => look.colour = codes.next().filter(|colour| *colour < 16),
            39 => look.colour = None,
            90..=97 => look.colour = Some(code - 82),
            _ => {}
        }
    }
}

fn hex(colour: u8) -> &'static str {
    match colour % 8 {
        0 => "#7f8793",
        1 => "#f0717b",
        2 => "#98c379",
        3 => "#e5c07b",
        4 => "#61afef",
        5 => "#c678dd",
        6 => "#56b6c2",
        _ => "#ffffff",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_escapes_are_parsed() {
        let mut look = Look::default();
        let line = runs("\u{1b}[1m\u{1b}[91merror\u{1b}[0m: a < b", &mut look);
        let run = |text: &str, bold, colour| Run { text: text.to_owned(), look: Look { bold, colour } };
        assert_eq!(line, [run("error", true, Some(9)), run(": a < b", false, None)]);
        assert_eq!(runs("\u{1b}[38;5;12mx", &mut look), [run("x", false, Some(12))]);
        assert!(spans(&line).contains("a &lt; b"));
    }

    #[test]
    fn long_lines_go_on_below() {
        let run = |text: &str| Run { text: text.to_owned(), look: Look::default() };
        let (long, short) = ("x".repeat(COLUMNS - 2), "y".repeat(4));
        assert_eq!(
            wrap(vec![run(&format!("{long} {short} z"))]),
            [vec![run(&format!("{long} "))], vec![run("yyyy z")]]
        );
        assert_eq!(wrap(Vec::new()), [Vec::new()]);
    }
}
