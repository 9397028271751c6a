//! Delta debugging: the smallest part of a difference to a passing program that still causes the failure.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use model::syntax::Span;

use super::failure::{CompileFailure, ErrorSignature};
use super::oracle::OracleClient;

/// A failure with more hunks than this is not minimized.
const MOST: usize = 24;

/// A place where two texts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    old: std::ops::Range<usize>,
    new: String,
}

/// Minimizes the difference between a failure and its passing program while the error keeps its signature. Each step is
/// compiled.
pub(crate) fn smallest(failure: &CompileFailure, asker: &mut OracleClient<'_>) -> CompileFailure {
    let Some(passing) = &failure.passing else { return failure.clone() };
    let hunks = hunks(&passing.text, &failure.program.text);
    if hunks.len() < 2 || hunks.len() > MOST {
        return failure.clone();
    }
    let signature = ErrorSignature::of(&failure.failing);
    let mut best = failure.clone();
    let mut kept: Vec<usize> = (0..hunks.len()).collect();
    let mut size = kept.len().div_ceil(2);
    loop {
        let mut is_smaller = false;
        let mut start = 0;
        while start < kept.len() {
            let end = (start + size).min(kept.len());
            let rest: Vec<usize> = kept[..start].iter().chain(&kept[end..]).copied().collect();
            let program = passing.with(applied(&passing.text, rest.iter().map(|at| &hunks[*at])));
            let verdict = if rest.is_empty() { None } else { Some(asker.verdict(&program)) };
            match verdict.as_ref().and_then(|verdict| verdict.failing()) {
                Some(failing) if ErrorSignature::of(failing) == signature => {
                    best = CompileFailure { program, failing: failing.clone(), ..failure.clone() };
                    kept = rest;
                    is_smaller = true;
                }
                _ => start = end,
            }
        }
        if size == 1 && !is_smaller {
            return best;
        }
        size = (size / 2).max(1);
    }
}

/// The span of `new` that differs from `old`, extended to whole words and without surrounding blanks.
pub(crate) fn changed(old: &str, new: &str) -> Option<Span> {
    let prefix = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let most = (old.len() - prefix).min(new.len() - prefix);
    let suffix = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
    let is_word = |at: usize| {
        let byte = new.as_bytes().get(at).copied().unwrap_or(b' ');
        byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
    };
    let (mut start, mut end) = (prefix, new.len() - suffix);
    // Extends the span to whole words, then drops the blanks around it.
    while start > 0 && is_word(start) && is_word(start - 1) {
        start -= 1;
    }
    while end < new.len() && end > 0 && is_word(end) && is_word(end - 1) {
        end += 1;
    }
    let blank = |at: usize| new.as_bytes()[at].is_ascii_whitespace();
    while start < end && blank(start) {
        start += 1;
    }
    while end > start && blank(end - 1) {
        end -= 1;
    }
    (start <= end && new.is_char_boundary(start) && new.is_char_boundary(end)).then(|| Span::new(start, end))
}

fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old_words, new_words) = (words(old), words(new));
    let mut hunks: Vec<Hunk> = Vec::new();
    let offset = |words: &[&str], at: usize| words[..at].iter().map(|word| word.len()).sum::<usize>();
    for op in capture_diff_slices(Algorithm::Myers, &old_words, &new_words) {
        let (tag, old_range, new_range) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            continue;
        }
        let start = offset(&old_words, old_range.start);
        let hunk = Hunk { old: start..offset(&old_words, old_range.end), new: new_words[new_range].concat() };
        match hunks.last_mut() {
            // Changes that are at most three bytes apart form one hunk.
            Some(last) if start - last.old.end <= 3 => {
                last.new.push_str(&old[last.old.end..start]);
                last.new.push_str(&hunk.new);
                last.old.end = hunk.old.end;
            }
            _ => hunks.push(hunk),
        }
    }
    hunks
}

fn applied<'h>(old: &str, hunks: impl Iterator<Item = &'h Hunk>) -> String {
    let mut out = String::with_capacity(old.len());
    let mut done = 0;
    for hunk in hunks {
        out.push_str(&old[done..hunk.old.start]);
        out.push_str(&hunk.new);
        done = hunk.old.end;
    }
    out + &old[done..]
}

/// The words and runs of blanks of a text, with every other character on its own.
fn words(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 1,
        ' ' => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in text.char_indices() {
        if at > start && (class(c) != last || last == 0) {
            words.push(&text[start..at]);
            start = at;
        }
        last = class(c);
    }
    words.extend((start < text.len()).then(|| &text[start..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applying_all_hunks_gives_the_new_text() {
        let (old, new) = ("a = load(x + o)\nb = a * 2\nstore(y, b)\n", "a = laod(x)\nb = a * 2\nc = 1\nstore(y, bb)\n");
        let hunks = hunks(old, new);
        assert!(hunks.len() >= 3, "{hunks:?}");
        assert_eq!(applied(old, hunks.iter()), new);
        assert_eq!(applied(old, [].iter()), old);
    }

    #[test]
    fn the_changed_span_covers_whole_words() {
        let (old, new) = ("v = tl.max(x)\nw = v\n", "v = tl.mean(x)\nw = v\n");
        let span = changed(old, new).unwrap();
        assert_eq!(&new[span.start..span.end], "mean");
        let new = "v = tl.max(x)\nbreak\nw = v\n";
        let span = changed(old, new).unwrap();
        assert_eq!(&new[span.start..span.end], "break");
    }
}
