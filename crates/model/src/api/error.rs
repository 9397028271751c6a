//! Errors of Triton, as failures and learned rules refer to them.

use serde::Serialize;

/// An error that Triton raised, or that a learned rule predicts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TritonError {
    /// The type of the exception, for example `TypeError`.
    pub kind: String,
    /// The message. In a rule, `…` replaces parts that vary, and `{name}` the text of the pattern's capture `@name`.
    pub message: String,
}

impl TritonError {
    /// The part that errors of one kind share, for example `TypeError: load() got an unexpected keyword argument …`:
    /// the first line of the message without quoted text and numbers.
    #[must_use]
    pub fn signature(&self) -> String {
        let line = self.message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        // Triton does not quote the name in this message.
        let undefined = line.strip_suffix(" is not defined").filter(|name| !name.contains(' '));
        let line = if undefined.is_some() { "… is not defined" } else { line };
        let mut out = String::new();
        let mut rest = line.chars().peekable();
        let mut before = ' ';
        while let Some(c) = rest.next() {
            let begins = !before.is_alphanumeric();
            if matches!(c, '\'' | '"' | '`') && begins && rest.clone().any(|other| other == c) {
                rest.by_ref().find(|other| *other == c);
                out.push('…');
            } else if c.is_ascii_digit() && begins && before != '_' {
                while rest.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
                out.push('…');
            } else {
                out.push(c);
            }
            before = c;
        }
        format!("{}: {out}", self.kind)
    }
}
