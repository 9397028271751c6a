//! `warpsmith rules`: lists the rules.

use learn::SkillMemory as _;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use rules::learned::LearnedRule;
use rules::{RuleFamily, Severity};
use runtime::python::state_folder;
use store::Store;

use super::list_format::Format;

#[derive(Debug, clap::Args)]
pub(super) struct RulesArgs {
    /// How to write the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    code: String,
    name: String,
    family: String,
    severity: Severity,
    summary: String,
    /// The version that introduced the rule; `None` for a learned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'static str>,
    fixable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

pub(super) fn run(args: &RulesArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let memory = Store::memory_in(&state_folder())?;
    let learned = memory.rules().filter(|rule| memory.shows(rule)).map(Entry::of_learned);
    let entries: Vec<Entry> = rules::all().iter().map(|rule| Entry::of(&rule.declaration)).chain(learned).collect();
    match args.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &entries)?;
            writeln!(out)?;
        }
        Format::Text => {
            let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
            for entry in &entries {
                let fix = if entry.fixable { "fix" } else { "" };
                let severity = entry.severity.to_string();
                writeln!(out, "{}  {:width$}  {severity:7}  {fix:3}  {}", entry.code, entry.name, entry.summary)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Entry {
    fn of(declaration: &rules::Declaration) -> Self {
        Self {
            code: declaration.code.to_owned(),
            name: declaration.name.to_owned(),
            family: declaration.family().to_string(),
            severity: declaration.severity,
            summary: declaration.summary.to_owned(),
            since: Some(declaration.since),
            fixable: declaration.fixable,
            url: Some(declaration.url()),
        }
    }

    fn of_learned(rule: &LearnedRule) -> Self {
        Self {
            code: rule.code.clone(),
            name: rule.name.clone(),
            family: RuleFamily::Skill.to_string(),
            severity: Severity::Warning,
            summary: rule.plain_sentence(),
            since: None,
            fixable: false,
            url: rule.url(),
        }
    }
}
