//! Short programs with the verdicts of nine Triton releases: no rule may call an error what a release accepts.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use warpsmith::api::Target;
use warpsmith::rules::Severity;
use warpsmith::syntax::Source;

/// How many of the rejected programs (one for each program and release) are flagged on the line of Triton's error.
/// A better rule raises the number; a rule that loses some must say why here.
const FLAGGED: usize = 492;

fn snippets() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/frontend_snippets.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn rules_agree_with_the_compiler() {
    let data = snippets();
    let (mut rejected, mut flagged, mut false_alarms) = (0, 0, Vec::new());
    let mut by_code: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    let snippets = data["snippets"].as_array().unwrap();
    assert!(snippets.len() > 300, "the data is there");
    for snippet in snippets {
        let id = snippet["id"].as_str().unwrap();
        let source = Source::parse(snippet["source"].as_str().unwrap());
        for (version, verdict) in snippet["results"].as_object().unwrap() {
            let found = common::findings(&source, Target::of(version.parse().unwrap()));
            let errors = found.iter().filter(|found| found.severity == Severity::Error);
            let lines = errors.map(|found| (found.code, source.lines().line_of(found.span.start) as u64 + 1));
            if verdict["ok"] == Value::Bool(true) {
                false_alarms.extend(lines.map(|(code, line)| format!("{id} on {version}: {code} in line {line}")));
                continue;
            }
            rejected += 1;
            let right = lines.filter(|(_, line)| verdict["line"].as_u64() == Some(*line)).map(|(code, _)| code);
            let right: BTreeSet<&str> = right.collect();
            flagged += usize::from(!right.is_empty());
            for code in right {
                let (count, ids) = by_code.entry(code).or_default();
                *count += 1;
                ids.insert(id);
            }
        }
    }
    println!("{flagged} of {rejected} rejections are flagged on the right line");
    for (code, (count, ids)) in &by_code {
        println!("  {code}: {count} rejections, {} programs: {ids:?}", ids.len());
    }
    assert_eq!(false_alarms, [""; 0], "Triton accepts these programs");
    assert!(flagged >= FLAGGED, "{flagged} rejections are flagged, {FLAGGED} were before");
}
