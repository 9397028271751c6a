//! An error of Triton's, as failures and learned rules name it.

use serde::Serialize;

/// An error of Triton: one that it raised, or one that a learned rule predicts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TritonError {
    /// The exception behind it: `TypeError`
    pub kind: String,
    /// Its text; in a rule `…` for what differs, `{name}` for what the pattern's capture `@name` has caught.
    pub message: String,
}

impl TritonError {
    /// What errors of one kind have in common: `TypeError: load() got an unexpected keyword argument …`. The first line, without what is
    /// quoted and without numbers.
    #[must_use]
    pub fn signature(&self) -> String {
        let line = self.message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        // Triton does not quote this name.
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
