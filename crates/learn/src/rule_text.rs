//! The name and the sentence of a rule, written from its pattern.

use model::syntax::Span;

use super::tree_pattern::{NodeCondition, PatternNode, TreePattern, capture};

/// The number of alternative words that a sentence lists.
const NAMED: usize = 5;

/// The sentence of a rule; `text` is the text of the shape's first example.
pub(crate) fn sentence(shape: &TreePattern, text: &str) -> String {
    let root = &shape.parts[0];
    let holds = |name: &str| {
        root.conditions.iter().any(|it| matches!(it, NodeCondition::Holds { predicate, .. } if *predicate == name))
    };
    let here = capture(0);
    if root.kind.as_deref() == Some("attribute") && holds("unknown-member") {
        return format!("You cannot use `{{{here}}}`: Triton has no such member.");
    }
    if holds("undefined") {
        return format!("You cannot use `{{{here}}}` without defining it.");
    }
    if holds("plain-global") {
        return format!("You cannot use the global `{{{here}}}` in a kernel unless it is a `tl.constexpr(…)`.");
    }
    if holds("python-builtin") || (root.kind.as_deref() == Some("identifier") && holds("api")) {
        return format!("You cannot use Python's `{{{here}}}` in a kernel.");
    }
    let mut notes = Vec::new();
    let mut letters = 'a'..='z';
    let code = code(shape, 0, text, &mut notes, &mut letters);
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'").replace(['{', '}'], "");
    if notes.is_empty() {
        format!("You cannot write `{code}` in a kernel.")
    } else {
        format!("You cannot write `{code}` in a kernel when {}.", notes.join(" and "))
    }
}

/// The code of a part, with `…` or a letter for wildcards.
fn code(
    shape: &TreePattern,
    at: usize,
    text: &str,
    notes: &mut Vec<String>,
    letters: &mut std::ops::RangeInclusive<char>,
) -> String {
    let part = &shape.parts[at];
    let span = part.spans[0];
    let own = text.get(span.start..span.end).unwrap_or_default();
    let mut words: Vec<&String> = Vec::new();
    let mut conditions = Vec::new();
    for condition in &part.conditions {
        match condition {
            NodeCondition::Text(texts) => words.extend(texts),
            NodeCondition::Holds { predicate: "api", words: paths, .. } => words.extend(paths),
            NodeCondition::Holds { predicate, words, other } => {
                conditions.extend(phrase(predicate, words, other.is_some()));
            }
        }
    }
    if let Some(first) = words.first() {
        let shown = first.replace("tl.tensor.", "x.").replace("builtins.", "");
        if words.len() > 1 {
            let more: Vec<String> = words
                .iter()
                .skip(1)
                .take(NAMED)
                .map(|word| format!("`{}`", word.rsplit('.').next().unwrap_or(word).replace(['{', '}', '`', '\n'], "")))
                .collect();
            let rest = if words.len() > NAMED + 1 { " and others" } else { "" };
            notes.push(format!("it is `{}`, or {}{rest}", shown.replace('`', "'"), more.join(", ")));
        }
        if part.children.iter().all(|child| shape.parts[*child].is_gone) || at > 0 {
            return shown;
        }
    }
    let children: Vec<usize> = part.children.iter().copied().filter(|child| !shape.parts[*child].is_gone).collect();
    if at > 0 && part.kind.is_none() && children.is_empty() && !part.is_token {
        if conditions.is_empty() {
            return "…".to_owned();
        }
        let letter = letters.next().unwrap_or('z');
        notes.push(format!("`{letter}` is {}", conditions.join(" and ")));
        return letter.to_string();
    }
    if part.is_token {
        return own.to_owned();
    }
    if is_leaf(part) {
        if !conditions.is_empty() && at > 0 {
            let letter = letters.next().unwrap_or('z');
            notes.push(format!("`{letter}` is {}", conditions.join(" and ")));
            return letter.to_string();
        }
        return if is_leaf(part) && part.conditions.is_empty() && at > 0 { "…".to_owned() } else { shortened(own) };
    }
    assembled(shape, &children, span, text, notes, letters)
}

fn is_leaf(part: &PatternNode) -> bool {
    part.children.is_empty()
}

/// Joins the code of children with the text between them; text that belongs to no child becomes `…`.
fn assembled(
    shape: &TreePattern,
    children: &[usize],
    span: Span,
    text: &str,
    notes: &mut Vec<String>,
    letters: &mut std::ops::RangeInclusive<char>,
) -> String {
    let mut out = String::new();
    let mut done = span.start;
    for &child in children {
        let inner = shape.parts[child].spans[0];
        if inner.start < done || inner.end > span.end {
            continue;
        }
        out.push_str(&between(text.get(done..inner.start).unwrap_or_default()));
        out.push_str(&code(shape, child, text, notes, letters));
        done = inner.end;
    }
    out + &between(text.get(done..span.end).unwrap_or_default())
}

/// The text between two parts: punctuation and keywords are kept, everything else becomes `…`.
fn between(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let is_plain = line.chars().all(|c| !c.is_alphanumeric() && c != '_' && c != '"' && c != '\'');
    let keywords = ["for", "in", "if", "while", "else", "lambda", "not", "is", "with", "as"];
    if is_plain || line.split_whitespace().all(|word| keywords.contains(&word.trim_matches([':', '(', ')']))) {
        return line.to_owned();
    }
    let open: String = line.chars().take_while(|c| "(,.[ ".contains(*c)).collect();
    let close: String = line.chars().rev().take_while(|c| "),]: ".contains(*c)).collect();
    let close: String = close.chars().rev().collect();
    format!("{open}…{close}")
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(50).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn phrase(predicate: &str, words: &[String], is_pair: bool) -> Option<String> {
    let list = words.join(" or ");
    Some(match predicate {
        "kind" => match list.as_str() {
            "pointer" | "float" | "bool" | "tuple" | "string" | "descriptor" | "function" | "module" => {
                format!("a {list}")
            }
            "int" => "an integer".to_owned(),
            "block" => "a tile".to_owned(),
            "scalar" => "a scalar".to_owned(),
            "none" => "`None`".to_owned(),
            "dtype" => "a type".to_owned(),
            _ => format!("a {}", list.replace('-', " ")),
        },
        "dtype" => format!("of type {list}"),
        "rank" if list == "0" => "without axes".to_owned(),
        "rank" => format!("of {list} axes"),
        "constexpr" => "known while compiling".to_owned(),
        "not-constexpr" => "not known while compiling".to_owned(),
        "not-power-of-two" => "no power of two".to_owned(),
        "less" => format!("less than {list}"),
        "lanes-less" => format!("shorter than {list} along an axis"),
        "shapes-differ" if is_pair => "of other axes than what it meets".to_owned(),
        "not-broadcast" => "of a shape that does not fit to what it meets".to_owned(),
        "not-same-dtype" => "of another type than what it meets".to_owned(),
        "unknown-keyword" => "no argument that the function takes".to_owned(),
        "undefined" => "defined nowhere".to_owned(),
        "python-builtin" => "a function of Python".to_owned(),
        "unknown-member" => "no member of Triton".to_owned(),
        "too-many-arguments" => "given too many arguments".to_owned(),
        "missing-argument" => "lacking an argument".to_owned(),
        "global" => format!("a global ({list})"),
        "inside" => "in a loop".to_owned(),
        _ => return None,
    })
}

/// A name in kebab case.
pub(crate) fn name(shape: &TreePattern, template: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for at in shape.present() {
        let part = &shape.parts[at];
        for condition in &part.conditions {
            match condition {
                NodeCondition::Text(texts) if texts.len() == 1 => words.push(texts[0].clone()),
                NodeCondition::Holds { predicate: "api", words: paths, .. } if paths.len() == 1 => {
                    words.extend(paths[0].rsplit('.').next().map(str::to_owned));
                }
                NodeCondition::Holds { predicate: "kind", words, .. } => told.extend(words.first().cloned()),
                NodeCondition::Holds { predicate, .. } if *predicate != "api" => told.push((*predicate).to_owned()),
                _ => {}
            }
        }
    }
    if words.is_empty() {
        words.extend(shape.parts[0].kind.clone());
    }
    if told.is_empty() {
        let plain = template.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
        told.extend(plain.take(3).map(str::to_lowercase));
    }
    let all: Vec<String> = words.into_iter().take(2).chain(told.into_iter().take(3)).collect();
    let mut slug = String::new();
    for c in all.join("-").chars() {
        match c {
            _ if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if !slug.ends_with('-') && !slug.is_empty() => slug.push('-'),
            _ => {}
        }
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() || slug.starts_with(|c: char| c.is_ascii_digit()) {
        format!("refused-{slug}").trim_end_matches('-').to_owned()
    } else {
        slug.to_owned()
    }
}
