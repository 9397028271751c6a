//! Words and indentation of a text.

/// A name that does not occur in a text: `base`, followed by underscores as needed.
pub(crate) fn fresh(text: &str, base: &str) -> String {
    let mut name = base.to_owned();
    while has_word(text, &name) {
        name.push('_');
    }
    name
}

/// Whether a character can be part of a name.
pub(crate) fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether a name occurs in a text as a whole word.
pub fn has_word(text: &str, name: &str) -> bool {
    text.split(|letter| !is_of_word(letter)).any(|word| word == name)
}

/// The indentation of the statement at `at`; `None` where something else precedes it on its line.
pub(crate) fn indent_of(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n')? + 1;
    Some(&text[line..at]).filter(|before| before.trim().is_empty())
}
