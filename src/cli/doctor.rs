//! `warpsmith doctor`: reports what works on this machine, what is missing and how to get it.

mod compiler;
mod evaluator;
mod facts;
mod model;
mod promises;
mod python;

use std::io::Write;
use std::process::ExitCode;

use super::exit_status::FOUND;
use config::LoadedSettings;
use facts::DoctorFacts;
use promises::{Promise, PromiseState};
use runtime::python::state_folder;

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Make one small call to the language model of the settings
    #[arg(long)]
    model: bool,
    /// Consent to that call without being asked
    #[arg(long, requires = "model")]
    send: bool,
    /// Start `evaluator.command`, or connect to `evaluator.pool`, and show what it provides
    #[arg(long)]
    evaluator: bool,
}

#[derive(serde::Serialize)]
struct Examination {
    #[serde(flatten)]
    facts: DoctorFacts,
    promises: Vec<Promise>,
}

pub(super) fn run(args: &DoctorArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let folder = std::env::current_dir()?;
    let (loaded, broken) = match crate::settings::load(&folder) {
        Ok(loaded) => (loaded, None),
        Err(error) => (LoadedSettings::default(), Some(error.to_string())),
    };
    let mut facts = DoctorFacts::gather(&loaded, &folder);
    facts.broken_settings = broken;
    if args.model {
        facts.model.answer = Some(model::ask(&loaded.settings.model, args.send, &state_folder()));
    }
    if let (true, Some(found)) = (args.evaluator, &mut facts.evaluator) {
        let python = facts.python.as_ref().map(|python| python.executable.as_path());
        found.answer = Some(evaluator::ask(&judge::RemoteJudges::from(&loaded.settings.evaluator), python));
    }
    facts.compiler = Some(compiler::examine(&loaded.settings.compiler, facts.python.as_ref()));
    let promises = promises::of(&facts);
    let is_away = facts.evaluator.as_ref().is_some_and(|found| matches!(found.answer, Some(Err(_))));
    let refused = is_away || facts.model.answer.as_ref().is_some_and(|answer| !answer.good);
    let examination = Examination { facts, promises };
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &examination)?;
        writeln!(out)?;
    } else {
        write_text(&examination, out)?;
    }
    Ok(ExitCode::from(u8::from(refused) * FOUND))
}

fn write_text(examination: &Examination, out: &mut impl Write) -> std::io::Result<()> {
    for (name, value) in examination.facts.lines() {
        writeln!(out, "{name:15} {value}")?;
    }
    writeln!(out)?;
    for promise in &examination.promises {
        let state = match promise.state {
            PromiseState::Works => "works",
            PromiseState::Missing => "missing",
            PromiseState::Set => "set, not asked",
            PromiseState::Off => "off",
        };
        writeln!(out, "{:15} {state}: {}", promise.name, promise.detail)?;
        for remedy in &promise.remedies {
            writeln!(out, "{:15} - {remedy}", "")?;
        }
    }
    Ok(())
}
