//! `warpsmith memory list|show|learn|prove|export|import|forget`: the rules that were learned from kernels that Triton
//! refused.

mod import;
mod learn;
mod prove;
mod rule_lookup;

use ::learn::SkillMemory as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;

use rules::learned::{LearnedRule, LearnedRules, Patterns, RuleState, write};
use runtime::python::state_folder;
use store::{RuleObjection, Store};

use rule_lookup::found;

use super::exit_status::FOUND;
use super::list_format::Format;

/// Arguments of `memory`.
#[derive(Debug, clap::Args)]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the learned rules: those that are shipped and your own
    List {
        /// How to write the list
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show rules: sentence, error, examples, pattern
    Show {
        /// Codes or names of rules
        #[arg(required = true, value_name = "RULE")]
        which: Vec<String>,
        /// How to write them
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Compile the kernels below some folders with Triton, and learn from all failures so far
    Learn(learn::LearnArgs),
    /// Test your own rules: their examples must fail, and nothing that they flag may compile
    Prove(prove::ProveArgs),
    /// Write your own rules as a memory file, to give to others
    Export {
        /// The file [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The rules that are shipped, too
        #[arg(long)]
        all: bool,
    },
    /// Import rules from memory files, or from lines `sentence||count`, as candidates that are not shown until they are proven
    Import {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Delete your own rules, or hide the findings of shipped ones
    Forget {
        /// Codes or names of rules
        #[arg(required_unless_present_any = ["all", "failures"], value_name = "RULE")]
        which: Vec<String>,
        /// All of your own rules, and all objections to shipped ones
        #[arg(long, conflicts_with = "which")]
        all: bool,
        /// The stored kernels that rules are learned from
        #[arg(long)]
        failures: bool,
        /// Show rules again that were forgotten or disproved here
        #[arg(long, conflicts_with_all = ["all", "failures"])]
        undo: bool,
    },
}

/// A rule, with this user's objections to it.
#[derive(Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    rule: &'a LearnedRule,
    shown: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    objection: Option<&'a RuleObjection>,
}

pub(super) fn run(args: &MemoryArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut store = Store::of_user(&state_folder())?;
    match &args.action {
        Action::List { format } => list(&store, *format, out),
        Action::Show { which, format } => show(&store, which, *format, out),
        Action::Learn(args) => learn::run(&mut store, args, out),
        Action::Prove(args) => prove::run(&mut store, args, out),
        Action::Export { out: file, all } => export(&store, file.as_ref(), *all, out),
        Action::Import { files } => import::run(&mut store, files, out),
        Action::Forget { which, all, failures, undo } => {
            if *failures {
                let count = store.forget_failures()?;
                writeln!(out, "forgot {count} kernels that were refused or taken")?;
            }
            let codes: Vec<String> = if *all {
                forget_all(&mut store)?
            } else {
                found(&store.memory()?, which)?.into_iter().map(|rule| rule.code.clone()).collect()
            };
            for code in codes {
                forget(&mut store, &code, *undo, out)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(store: &Store, format: Format, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let (memory, objections) = (store.memory()?, store.objections()?);
    let entries: Vec<Entry<'_>> = memory.rules().map(|rule| entry(&memory, &objections, rule)).collect();
    match format {
        Format::Json => {
            let failures = store.failure_signatures()?;
            let failures: Vec<_> =
                failures.iter().map(|(signature, count)| json!({ "signature": signature, "count": count })).collect();
            writeln!(out, "{:#}", json!({ "rules": entries, "failures": failures }))?;
        }
        Format::Text => {
            for entry in &entries {
                let LearnedRule { code, met, .. } = entry.rule;
                let (state, range) = (state(entry), entry.rule.triton.range());
                writeln!(out, "{code}  {state:9}  {met:6}  {range:10}  {}", entry.rule.plain_sentence())?;
            }
            let failures: u64 = store.failure_signatures()?.iter().map(|(_, count)| count).sum();
            if entries.is_empty() {
                writeln!(out, "Nothing is learned yet.")?;
            }
            if failures > 0 {
                writeln!(out, "\n{failures} kernels that Triton refused are kept to learn from.")?;
            }
        }
    }
    Ok(if entries.is_empty() { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

fn entry<'a>(memory: &LearnedRules, objections: &'a [RuleObjection], rule: &'a LearnedRule) -> Entry<'a> {
    let objection = objections.iter().find(|one| one.code == rule.code && (one.muted || ::learn::disproves(one, rule)));
    Entry { rule, shown: memory.shows(rule), objection }
}

/// The state of a rule in one word.
fn state(entry: &Entry<'_>) -> &'static str {
    match entry.rule.state {
        RuleState::Promoted if entry.objection.is_some_and(|one| one.muted) => "muted",
        RuleState::Promoted if !entry.rule.covered_by.is_empty() => "covered",
        state => state.name(),
    }
}

fn show(store: &Store, which: &[String], format: Format, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let (memory, objections) = (store.memory()?, store.objections()?);
    let rules = found(&memory, which)?;
    if let Format::Json = format {
        let entries: Vec<Entry<'_>> = rules.into_iter().map(|rule| entry(&memory, &objections, rule)).collect();
        writeln!(out, "{:#}", json!(entries))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (at, rule) in rules.into_iter().enumerate() {
        let (gap, page) = (if at > 0 { "\n" } else { "" }, rule.page());
        write!(out, "{gap}{page}")?;
        let objection = entry(&memory, &objections, rule).objection;
        if let Some(RuleObjection { kernel: Some(kernel), triton: Some(triton), .. }) = objection {
            write!(
                out,
                "\n## What disproves it\n\nTriton {triton} compiles this:\n\n```python\n{}\n```\n",
                kernel.trim_end()
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn export(store: &Store, file: Option<&PathBuf>, all: bool, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let rules: Vec<LearnedRule> = if all { store.memory()?.rules().cloned().collect() } else { store.own_rules()? };
    let text = write(&rules, Patterns::Inside);
    match file {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))?;
            writeln!(out, "wrote {} rules into {}", rules.len(), file.display())?;
        }
        None => out.write_all(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the user's objections to shipped rules. Returns the codes of the user's own rules.
fn forget_all(store: &mut Store) -> anyhow::Result<Vec<String>> {
    for objection in store.objections()? {
        store.drop_objection(&objection.code)?;
    }
    Ok(store.own_rules()?.into_iter().map(|rule| rule.code).collect())
}

fn forget(store: &mut Store, code: &str, undo: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let is_own = store.own_rules()?.iter().any(|rule| rule.code == code);
    if undo {
        let was_there = store.drop_objection(code)?;
        let what = if was_there { "its objections are removed" } else { "it had no objections" };
        writeln!(out, "{code}: {what}")?;
    } else if is_own {
        store.forget_rule(code)?;
        writeln!(out, "forgot {code}")?;
    } else {
        store.mute(code, true)?;
        writeln!(out, "{code} is shipped: its findings are hidden now (`--undo` shows them again)")?;
    }
    Ok(())
}
