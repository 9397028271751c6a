//! Memory files: one TOML table per rule, in the order of the codes, so that git can merge the rules of two users.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use model::api::TritonError;

use super::pattern::{Pattern, PatternError};

use model::api::Version;

use super::rule::{LearnedRule, Releases, RuleOrigin, RuleState, number, placeholders};

/// The format version in the first line of a memory file.
const FORMAT: u32 = 1;

/// An error in a memory file; it names the rule at fault.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The file is not a memory file.
    #[error("it is not a skill memory of Warpsmith: {0}")]
    Syntax(String),
    /// A newer release of Warpsmith wrote the file.
    #[error("it was written by a newer warpsmith (format {found}, this one knows {FORMAT}); update warpsmith")]
    Newer {
        /// The format version of the file.
        found: u32,
    },
    /// Something about a rule is wrong.
    #[error("{code}: {what}")]
    Rule {
        /// The rule.
        code: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The pattern of a rule is invalid.
    #[error("{code}: the pattern of `{name}` cannot be used: {error}")]
    Pattern {
        /// The rule.
        code: String,
        /// Its name.
        name: String,
        /// The error in the pattern.
        error: PatternError,
    },
}

/// Where the patterns of a memory file are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patterns {
    /// In the memory file itself.
    Inside,
    /// In separate files that are named after the rules.
    Beside,
}

#[derive(Deserialize)]
struct File {
    format: u32,
    #[serde(flatten)]
    rules: BTreeMap<String, toml::Table>,
}

/// A rule as its TOML table holds it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    name: String,
    sentence: String,
    state: RuleState,
    origin: RuleOrigin,
    #[serde(default)]
    covered_by: Vec<String>,
    failures: u32,
    met: u64,
    first_seen: String,
    last_seen: String,
    #[serde(default)]
    exception: String,
    #[serde(default)]
    message: String,
    since: Option<Version>,
    until: Option<Version>,
    #[serde(default)]
    tried: Vec<Version>,
    #[serde(default)]
    pattern: String,
    #[serde(default)]
    bad: String,
    #[serde(default)]
    good: String,
}

impl Entry {
    fn rule(self, code: String) -> LearnedRule {
        LearnedRule {
            code,
            name: self.name,
            sentence: self.sentence,
            state: self.state,
            origin: self.origin,
            covered_by: self.covered_by,
            failures: self.failures,
            met: self.met,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            error: TritonError { kind: self.exception, message: self.message },
            triton: Releases { since: self.since, until: self.until, tried: self.tried },
            pattern: self.pattern,
            bad: self.bad,
            good: self.good,
        }
    }
}

/// Parses and checks the rules of a memory file. `pattern_of` returns the patterns that are in separate files, by the
/// names of the rules.
///
/// # Errors
/// Returns a [`MemoryError`] for the first error in the file.
pub fn parse(text: &str, pattern_of: &dyn Fn(&str) -> Option<String>) -> Result<Vec<LearnedRule>, MemoryError> {
    let rules = read(text, pattern_of)?;
    rules.iter().try_for_each(check)?;
    Ok(rules)
}

/// The same without [`check`], which compiles each pattern: for files that were checked before.
pub(super) fn read(text: &str, pattern_of: &dyn Fn(&str) -> Option<String>) -> Result<Vec<LearnedRule>, MemoryError> {
    let syntax = |error: toml::de::Error| MemoryError::Syntax(error.to_string().trim().to_owned());
    let file: File = toml::from_str(text).map_err(syntax)?;
    if file.format > FORMAT {
        return Err(MemoryError::Newer { found: file.format });
    }
    let mut rules = Vec::new();
    for (code, table) in file.rules {
        let wrong = |what: &str| MemoryError::Rule { code: code.clone(), what: what.to_owned() };
        let entry: Entry = table.try_into().map_err(|error: toml::de::Error| wrong(error.message()))?;
        let mut rule = entry.rule(code);
        if rule.pattern.is_empty()
            && let Some(pattern) = pattern_of(&rule.name)
        {
            rule.pattern = pattern;
        }
        rules.push(rule);
    }
    rules.sort_by_key(|rule| number(&rule.code));
    for pair in 0..rules.len() {
        let twin = rules[..pair].iter().find(|other| other.name == rules[pair].name);
        if let Some(twin) = twin {
            let what = format!("its name, `{}`, is that of {}, too; rename one", twin.name, twin.code);
            return Err(MemoryError::Rule { code: rules[pair].code.clone(), what });
        }
    }
    Ok(rules)
}

/// Checks that a rule is complete and that its pattern compiles.
///
/// # Errors
/// Returns an error for the first problem of the rule.
pub fn check(rule: &LearnedRule) -> Result<(), MemoryError> {
    let wrong = |what: &str| Err(MemoryError::Rule { code: rule.code.clone(), what: what.to_owned() });
    if number(&rule.code).is_none() {
        return wrong("a code is `S` and three digits, such as `S012`");
    }
    let is_kebab = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !rule.name.starts_with(|c: char| c.is_ascii_lowercase()) || !rule.name.bytes().all(is_kebab) {
        return wrong("its name must be in kebab case, such as `no-keyword-axis`");
    }
    let is_sentence = rule.sentence.starts_with("You cannot ") && rule.sentence.ends_with('.');
    if !is_sentence || rule.sentence.contains('\n') {
        return wrong("its sentence must read `You cannot ….`, on one line");
    }
    if rule.state == RuleState::Promoted && (rule.pattern.is_empty() || rule.triton.since.is_none()) {
        return wrong("a promoted rule needs a pattern and a release on which it was proven");
    }
    if rule.pattern.is_empty() {
        return Ok(());
    }
    let pattern = Pattern::compile(&rule.pattern).map_err(|error| MemoryError::Pattern {
        code: rule.code.clone(),
        name: rule.name.clone(),
        error,
    })?;
    let unknown = placeholders(&rule.sentence).into_iter().find(|name| !pattern.has_capture(name));
    match unknown {
        Some(name) => wrong(&format!("its sentence has `{{{name}}}`, but its pattern captures no `@{name}`")),
        None => Ok(()),
    }
}

/// The text of a memory file with these rules. It does not depend on their order.
#[must_use]
pub fn write(rules: &[LearnedRule], patterns: Patterns) -> String {
    let mut rules: Vec<&LearnedRule> = rules.iter().collect();
    rules.sort_by_key(|rule| number(&rule.code));
    let mut out = format!(
        "# What was learned from kernels that Triton refused; `warpsmith memory show CODE` shows a rule.\nformat = {FORMAT}\n"
    );
    for rule in rules {
        let _ = write!(out, "\n[{}]\n{}", rule.code, table(rule, patterns));
    }
    out
}

fn table(rule: &LearnedRule, patterns: Patterns) -> String {
    let mut out = String::new();
    let mut add = |key: &str, value: String| {
        let _ = writeln!(out, "{key} = {value}");
    };
    add("name", text(&rule.name));
    add("sentence", text(&rule.sentence));
    add("state", text(rule.state.name()));
    add("origin", text(&rule.origin.to_string()));
    if !rule.covered_by.is_empty() {
        add("covered-by", list(&rule.covered_by));
    }
    add("failures", rule.failures.to_string());
    add("met", rule.met.to_string());
    add("first-seen", text(&rule.first_seen));
    add("last-seen", text(&rule.last_seen));
    add("exception", text(&rule.error.kind));
    add("message", text(&rule.error.message));
    for (key, version) in [("since", rule.triton.since), ("until", rule.triton.until)] {
        version.into_iter().for_each(|version| add(key, text(&version.to_string())));
    }
    let mut tried = rule.triton.tried.clone();
    tried.sort_unstable();
    tried.dedup();
    add("tried", list(&tried));
    let pattern = if patterns == Patterns::Inside { rule.pattern.as_str() } else { "" };
    for (key, value) in [("pattern", pattern), ("bad", &rule.bad), ("good", &rule.good)] {
        if !value.is_empty() {
            add(key, text(value));
        }
    }
    out
}

fn list(items: &[impl ToString]) -> String {
    let items: Vec<String> = items.iter().map(|item| text(&item.to_string())).collect();
    format!("[{}]", items.join(", "))
}

/// A string in TOML: a multi-line string where possible.
fn text(value: &str) -> String {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if value.contains('\n') && value.chars().all(is_plain) && !value.contains("'''") && !value.ends_with('\'') {
        return format!("'''\n{value}'''");
    }
    let mut out = "\"".to_owned();
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::super::tests::rule;
    use super::*;

    fn inside(text: &str) -> Result<Vec<LearnedRule>, MemoryError> {
        parse(text, &|_| None)
    }

    #[test]
    fn memory_files_round_trip() {
        let mut odd = rule("S1000");
        odd.name = "odd".to_owned();
        odd.error.message = "it's \"odd\"\tand\\ \u{1}\nwith lines".to_owned();
        odd.bad = "x = '''\n'''\n".to_owned();
        odd.covered_by = vec!["L001".to_owned(), "L002".to_owned()];
        odd.triton.until = Some("3.5.0".parse().unwrap());
        odd.origin = RuleOrigin::Imported("a \"b\" c.txt".to_owned());
        let rules = [odd, rule("S002")];
        let written = write(&rules, Patterns::Inside);
        let read = inside(&written).unwrap();
        assert_eq!(read.iter().map(|rule| rule.code.as_str()).collect::<Vec<_>>(), ["S002", "S1000"]);
        assert!(rules.iter().all(|rule| read.contains(rule)), "{written}");
        assert_eq!(write(&read, Patterns::Inside), written);
        let pattern = rules[1].pattern.clone();
        let beside = write(&rules[1..], Patterns::Beside);
        assert!(!beside.contains("(call"), "{beside}");
        assert_eq!(parse(&beside, &|name| (name == "no-axis").then(|| pattern.clone())).unwrap(), [rule("S002")]);
    }

    #[test]
    fn memory_files_have_a_readable_layout() {
        let written = write(&[rule("S002")], Patterns::Beside);
        expect_test::expect![[r##"
            # What was learned from kernels that Triton refused; `warpsmith memory show CODE` shows a rule.
            format = 1

            [S002]
            name = "no-axis"
            sentence = "You cannot pass `{here}` to `{f}`."
            state = "promoted"
            origin = "synthesised with seed 1"
            failures = 3
            met = 7
            first-seen = "2026-11-24"
            last-seen = "2026-11-25"
            exception = "TypeError"
            message = "load() got an unexpected keyword argument '{here}'"
            since = "3.1.0"
            tried = ["3.1.0", "3.2.0", "3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"]
            bad = '''
            @triton.jit
            def k(x):
                tl.load(x, axis=0)
            '''
            good = '''
            @triton.jit
            def k(x):
                tl.load(x)
            '''
        "##]]
        .assert_eq(&written);
    }

    #[test]
    fn errors_say_which_rule_and_what_to_do() {
        let of = |change: &dyn Fn(&mut LearnedRule)| {
            let mut rule = rule("S002");
            change(&mut rule);
            inside(&write(&[rule], Patterns::Inside)).unwrap_err().to_string()
        };
        assert_eq!(of(&|rule| rule.code = "S2".to_owned()), "S2: a code is `S` and three digits, such as `S012`");
        assert!(of(&|rule| rule.name = "No Axis".to_owned()).starts_with("S002: its name must be in kebab case"));
        assert!(of(&|rule| rule.sentence = "Never do it.".to_owned()).contains("must read `You cannot ….`"));
        assert!(of(&|rule| rule.pattern = String::new()).contains("a promoted rule needs a pattern"));
        assert!(of(&|rule| rule.triton.since = None).contains("a release on which it was proven"));
        assert!(
            of(&|rule| rule.pattern = "(call".to_owned()).starts_with("S002: the pattern of `no-axis` cannot be used")
        );
        assert!(of(&|rule| rule.sentence = "You cannot {do} it.".to_owned()).contains("captures no `@do`"));
        let text = write(&[rule("S002")], Patterns::Inside);
        assert!(inside(&text.replace("failures =", "failing =")).unwrap_err().to_string().contains("S002: "));
        assert!(inside(&text.replace("format = 1", "format = 2")).unwrap_err().to_string().contains("newer warpsmith"));
        assert!(inside("<<<<<<< HEAD").unwrap_err().to_string().starts_with("it is not a skill memory of Warpsmith"));
        let twice = write(&[rule("S002"), rule("S003")], Patterns::Inside);
        assert!(inside(&twice).unwrap_err().to_string().contains("is that of S002, too"));
    }
}
