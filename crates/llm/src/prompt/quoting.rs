//! Foreign text as templates receive it: inside a fence, or on one line.

use minijinja::{Value, context};

use super::{Attempt, PromptContext};
use crate::numbered_text::one_line;

/// The number of characters of a line that are shown.
const LONGEST_LINE: usize = 1000;
/// The number of characters of a name that are shown.
const LONGEST_NAME: usize = 200;

/// Marks by which servers separate the messages of a conversation. Some servers recognize them anywhere.
const MARKS: &[&str] = &[
    "<|",
    "|>",
    "</s>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<eos>",
    "<think>",
    "</think>",
];

/// The optional parts that a prompt includes.
#[derive(Clone, Debug)]
pub(super) struct IncludedParts {
    pub(super) pool: Vec<bool>,
    pub(super) branch: Vec<bool>,
    pub(super) skills: Vec<bool>,
    pub(super) rules: Vec<bool>,
}

/// The values that templates may refer to.
pub(super) fn shown(context: &PromptContext<'_>, choice: &IncludedParts) -> Value {
    let lines = |lines: &[String]| lines.iter().map(|text| line(text)).collect::<Vec<String>>();
    let kept = |texts: &[String], kept: &[bool]| -> Vec<String> {
        texts.iter().zip(kept).filter(|(_, kept)| **kept).map(|(text, _)| line(text)).collect()
    };
    let attempt =
        |attempt: &Attempt| context! { change => fenced(&attempt.change, ""), outcome => line(&attempt.outcome) };
    let branch = context.branch.iter().zip(&choice.branch).filter(|(_, kept)| **kept).map(|(one, _)| attempt(one));
    let pool = context.pool.iter().zip(&choice.pool).filter(|(_, kept)| **kept);
    let pool = pool.map(|(one, _)| context! { text => fenced(&one.text, "python"), speedup => times(one.speedup) });
    context! {
        file_name => name(context.file_name),
        kernels => context.kernels.iter().map(|kernel| name(kernel)).collect::<Vec<String>>(),
        entry => name(context.entry),
        workload => lines(&context.workload),
        device => line(context.device),
        triton => line(context.triton),
        torch => context.torch.map(line),
        original => code(context.original),
        base => code(context.base),
        branch => branch.collect::<Vec<Value>>(),
        pool => pool.collect::<Vec<Value>>(),
        facts => lines(&context.facts),
        skills => kept(&context.skills, &choice.skills),
        rules => kept(&context.rules, &choice.rules),
        goal => times(context.goal),
        mistake => context.mistake.map(|mistake| fenced(mistake, "")),
    }
}

/// Formats a speedup, as in `1.31 times`.
pub(super) fn times(speedup: f64) -> String {
    format!("{speedup:.2} times")
}

/// Fenced code; empty for an empty text.
fn code(text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { fenced(text, "python") }
}

/// A text inside a fence that is longer than any run of backticks in it.
pub(super) fn fenced(text: &str, info: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{info}\n{}\n{fence}", quiet(text.trim_end_matches('\n')))
}

/// A text on one line that cannot begin a fence.
pub(super) fn line(text: &str) -> String {
    let text = one_line(text, LONGEST_LINE);
    quiet(&text.replace("```", "'''").replace("~~~", "---"))
}

/// A name in code quotes.
fn name(text: &str) -> String {
    format!("`{}`", quiet(&one_line(text, LONGEST_NAME).replace('`', "'")))
}

/// A text in which no server finds the end of a message, because a space splits what would be a mark.
fn quiet(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in MARKS {
        if text.contains(mark) {
            text = text.replace(mark, &format!("{} {}", &mark[..1], &mark[1..]));
        }
    }
    text
}
