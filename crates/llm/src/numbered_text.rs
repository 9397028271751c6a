//! Helpers for lines of text: line numbers, and foreign text shown on one line.

/// A text whose lines are counted from 1.
pub(super) trait Numbered {
    /// The number of the line that contains byte `at`.
    fn line_of(&self, at: usize) -> usize;
}

impl Numbered for str {
    fn line_of(&self, at: usize) -> usize {
        self.as_bytes()[..at.min(self.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Whether a character is invisible, or changes the position of others.
pub(super) fn hidden(letter: char) -> bool {
    let is_blank = matches!(letter, '\n' | '\r' | '\t');
    (letter.is_control() && !is_blank)
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The position of a CR without an LF, where a line ends for Python but not for most other programs.
pub(super) fn bare_return(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'\r', bytes).find(|at| bytes.get(at + 1) != Some(&b'\n'))
}

/// A text on one line of at most `most` characters, without invisible characters.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for word in text.split_whitespace() {
        let word: String = word.chars().filter(|letter| !hidden(*letter)).take(left + 1).collect();
        if word.is_empty() {
            continue;
        }
        let (space, letters) = (usize::from(!line.is_empty()), word.chars().count());
        if space + letters > left {
            let rest = left.saturating_sub(space + 1);
            if rest > 0 {
                line.push_str(if space > 0 { " " } else { "" });
                line.extend(word.chars().take(rest));
            }
            line.push('…');
            return line;
        }
        line.push_str(if space > 0 { " " } else { "" });
        line.push_str(&word);
        left -= space + letters;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_limits_the_length_and_removes_controls() {
        assert_eq!(one_line(" a\n\tb  c\u{202e}d ", 20), "a b cd");
        assert_eq!(one_line("one two three", 7), "one two…".chars().take(7).collect::<String>() + "…");
        assert_eq!(one_line("\u{1b}[31mred", 20), "[31mred");
        for most in 1..20 {
            assert!(one_line("größer als viel und mehr", most).chars().count() <= most + 1, "{most}");
        }
        assert!(one_line(&"x".repeat(1 << 20), 300).chars().count() <= 301);
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(("a\nb".line_of(0), "a\nb".line_of(1), "a\nb".line_of(2), "a\nb".line_of(9)), (1, 1, 2, 2));
    }
}
