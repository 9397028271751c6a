//! Compilation failures, and the signature by which similar ones are grouped.

use super::oracle::Failing;
use super::program::KernelProgram;

/// A program that does not compile.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileFailure {
    /// Where the program comes from. Failures with the same origin do not count as independent.
    pub origin: String,
    /// The program that fails to compile.
    pub program: KernelProgram,
    /// The nearest known program that compiles, if there is one.
    pub passing: Option<KernelProgram>,
    /// The error that Triton reports.
    pub failing: Failing,
}

/// What failures of one kind have in common: the class of the exception, and its message without names, numbers and
/// types.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorSignature {
    /// The class name of the exception.
    pub kind: String,
    /// The normalized message, with `…` for names, numbers and types.
    pub template: String,
}

/// The placeholder for names, numbers and types in a template.
const ELLIPSIS: &str = "…";
/// The largest length of a template, in characters.
const LONGEST: usize = 160;

impl ErrorSignature {
    /// The signature of an error.
    #[must_use]
    pub fn of(failing: &Failing) -> Self {
        Self { kind: failing.kind.clone(), template: template(&failing.message) }
    }
}

/// Normalizes the first line of a message: quoted text, numbers, types, and names of functions and variables become
/// `…`.
#[must_use]
fn template(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let plain = without_types(&without_quoted(unwrapped(line)));
    let words: Vec<&str> = plain.split_whitespace().collect();
    let mut out: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = if at == 0 { "" } else { words[at - 1] };
        let is_named = ["variable", "modifier", "policy", "constexpr", "scope", "semantic"].contains(&before)
            || (before == "for" && words.get(at + 1) == Some(&"between"))
            || (at == 0 && words.get(1) == Some(&"is") && words.get(2) == Some(&"not"))
            || (at == 0 && words.get(1) == Some(&"is") && words.get(2) == Some(&"string"));
        out.push(if is_named { ELLIPSIS.to_owned() } else { general(word) });
    }
    out.dedup_by(|a, b| a == ELLIPSIS && b == ELLIPSIS);
    out.join(" ").chars().take(LONGEST).collect()
}

/// The message inside `SomeError('message')`.
fn unwrapped(line: &str) -> &str {
    let inner = line.split_once('(').filter(|(name, _)| {
        name.ends_with("Impl") || name.ends_with("Error") && name.chars().all(char::is_alphanumeric)
    });
    let inner = inner.and_then(|(_, rest)| rest.strip_suffix(')')).map(|rest| rest.trim_matches(['\'', '"']));
    inner.unwrap_or(line)
}

fn without_quoted(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(['\'', '"', '`']) {
        let quote = &rest[start..=start];
        // An apostrophe inside of a word opens nothing.
        let is_apostrophe = quote == "'" && rest[..start].ends_with(char::is_alphanumeric);
        match rest[start + 1..].find(quote).filter(|_| !is_apostrophe) {
            Some(length) => {
                out.push_str(&rest[..start]);
                out.push_str(ELLIPSIS);
                rest = &rest[start + length + 2..];
            }
            None => {
                out.push_str(&rest[..=start]);
                rest = &rest[start + 1..];
            }
        }
    }
    out + rest
}

/// Replaces types such as `<[…], fp32>` and lists by one placeholder.
fn without_types(line: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    for c in line.chars() {
        match c {
            '<' | '[' | '(' if depth > 0 || c != '(' => {
                if depth == 0 && !out.ends_with('…') {
                    out.push('…');
                }
                depth += 1;
            }
            '>' | ']' | ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    // A line with an unmatched bracket, such as a comparison, is kept.
    if depth == 0 { out } else { line.to_owned() }
}

/// A word, or the placeholder if it is a type, a number, a dotted name or a function.
fn general(word: &str) -> String {
    let core = word.trim_matches(|c: char| ",.:;()".contains(c));
    let tail = &word[word.rfind(core).map_or(0, |at| at + core.len())..];
    if is_type(core) || core.contains(ELLIPSIS) || core.chars().any(|c| c.is_ascii_digit()) {
        return ELLIPSIS.to_owned();
    }
    if word.ends_with("()") {
        return format!("{ELLIPSIS}()");
    }
    match core.rsplit_once('.') {
        // The module of a class is not part of the message.
        Some((module, name)) if !module.is_empty() && !name.is_empty() => format!("{ELLIPSIS}{tail}"),
        _ => word.to_owned(),
    }
}

fn is_type(word: &str) -> bool {
    let bare = word.trim_start_matches("triton.language.").trim_start_matches('*');
    let letters = bare.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters.len() < bare.len() && ["fp", "bf", "int", "uint", "float", "i", "u", "bfloat"].contains(&letters))
        || bare.starts_with("pointer")
        || ["fp8e4nv", "fp8e5", "fp8e4b15", "void"].contains(&bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_templates_omit_names_numbers_and_types() {
        for (message, expected) in [
            ("module 'triton.language' has no attribute 'mean'", "module … has no attribute …"),
            ("sum() got an unexpected keyword argument 'dim'", "…() got an unexpected keyword argument …"),
            ("SomeErrorImpl('invalid operands of type pointer<bf16> and int32')", "invalid operands of type … and …"),
            ("abs is not defined", "… is not defined"),
            ("unsupported AST node type: Break", "unsupported AST node type: Break"),
            (
                "Loop-carried variable acc has initial type int32 but is re-assigned to <['64'], fp32> in loop! Please",
                "Loop-carried variable … has initial type … but is re-assigned to … in loop! Please",
            ),
            ("invalid axis 1. Expected -1 <= axis < 1", "invalid axis … Expected … <= axis < …"),
            ("cannot convert abc of type <class 'str'> to tensor", "cannot convert abc of type … to tensor"),
            ("Mismatched type for w between then block (int32)", "Mismatched type for … between then block …"),
            ("arange's range must be a power of 2", "arange's range must be a power of …"),
        ] {
            assert_eq!(template(message), expected, "{message}");
        }
    }
}
