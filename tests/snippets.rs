//! Tests on short programs with the verdicts of nine Triton releases: no rule reports an error in a program that a
//! release accepts, and the error of a rejected program is found on the line that the release names.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]
#![expect(clippy::print_stdout, reason = "the figures are what one runs it for")]

mod common;
#[path = "common/snippets.rs"]
mod data;

use std::collections::BTreeMap;

use data::{program, snippets, verdicts};
use model::api::TritonTarget;
use model::syntax::Source;
use rules::Severity;
use serde_json::Value;

/// The least share of the programs rejected by a release, in the first set, that are flagged on the right line, in
/// percent.
const PERCENT: usize = 95;
/// How many rejections of the second set (one for each program and release) are flagged on the right line, at least. A
/// better analysis raises the number; a change that loses some must say why here.
const FLAGGED: usize = 5345;

/// The results of one program, or of several.
#[derive(Default)]
struct Score {
    /// By release, the number of rejections with a line and how many of them are flagged there.
    by_version: BTreeMap<String, (usize, usize)>,
    /// Errors reported in programs that a release accepts.
    false_alarms: Vec<String>,
    /// Rejections that are not flagged on the right line.
    missed: Vec<String>,
}

impl Score {
    fn add(&mut self, other: Self) {
        for (version, (rejected, flagged)) in other.by_version {
            let sum = self.by_version.entry(version).or_default();
            *sum = (sum.0 + rejected, sum.1 + flagged);
        }
        self.false_alarms.extend(other.false_alarms);
        self.missed.extend(other.missed);
    }

    fn print(&self, name: &str) {
        for (version, (rejected, flagged)) in &self.by_version {
            println!("{name}, {version}: {flagged} of {rejected} rejections are flagged on the right line");
        }
        self.missed.iter().for_each(|missed| println!("  missed: {missed}"));
    }
}

fn judge(snippet: &Value) -> Score {
    let id = snippet["id"].as_str().unwrap();
    let source = Source::parse(program(snippet));
    let mut score = Score::default();
    for (version, verdict) in verdicts(snippet) {
        let found = common::findings(&source, TritonTarget::of(version.parse().unwrap()));
        let errors = found.iter().filter(|found| found.severity == Severity::Error);
        let mut lines = errors.map(|found| (source.lines().line_of(found.span.start) as u64 + 1, found));
        if verdict["ok"] == Value::Bool(true) {
            score.false_alarms.extend(
                lines.map(|(line, found)| {
                    format!("{id} on {version}: {} in line {line}: {}", found.code, found.message)
                }),
            );
            continue;
        }
        // Some errors have no place.
        let Some(expected) = verdict["line"].as_u64() else { continue };
        let is_flagged = lines.any(|(line, _)| line == expected);
        score.by_version.insert(version.to_owned(), (1, usize::from(is_flagged)));
        if !is_flagged {
            score.missed.push(format!("{id} on {version}, line {expected}: {}", verdict["message"]));
        }
    }
    score
}

/// The programs are divided among threads, because there are many.
fn judge_all(name: &str) -> Score {
    let snippets = snippets(name);
    assert!(snippets.len() > 300, "the data is there");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let total = std::thread::scope(|scope| {
        let share = |chunk| scope.spawn(move || judge_some(chunk));
        let running: Vec<_> = snippets.chunks(snippets.len().div_ceil(threads)).map(share).collect();
        let mut total = Score::default();
        running.into_iter().for_each(|thread| total.add(thread.join().unwrap()));
        total
    });
    total.print(name);
    total
}

fn judge_some(snippets: &[Value]) -> Score {
    let mut total = Score::default();
    snippets.iter().for_each(|snippet| total.add(judge(snippet)));
    total
}

#[test]
fn rules_agree_with_the_compiler() {
    let score = judge_all("frontend_snippets");
    assert_eq!(score.false_alarms, [""; 0], "Triton accepts these programs");
    assert_eq!(score.by_version.len(), 9, "nine releases were asked");
    for (version, (rejected, flagged)) in &score.by_version {
        assert!(flagged * 100 >= rejected * PERCENT, "{version}: {flagged} of {rejected}");
    }
}

#[test]
fn rules_agree_with_the_compiler_about_more_programs() {
    let score = judge_all("frontend_more");
    let wrong = &score.false_alarms;
    assert!(wrong.is_empty(), "Triton accepts these {} programs: {wrong:#?}", wrong.len());
    let flagged: usize = score.by_version.values().map(|(_, flagged)| flagged).sum();
    assert!(flagged >= FLAGGED, "{flagged} rejections are flagged, {FLAGGED} were before");
}
