//! `warpsmith memory prove`: tests the user's own rules against the installed Triton.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use learn::{Oracle, RuleAssessment, SkillMemory as _, prove_stored};
use rules::learned::RuleState;
use store::Store;

use super::rule_lookup::found;
use crate::cli::exit_status::FOUND;

/// Arguments of `memory prove`.
#[derive(Debug, clap::Args)]
pub(super) struct ProveArgs {
    /// Codes or names of rules; all of your own when left out
    #[arg(value_name = "RULE")]
    which: Vec<String>,
    /// The interpreter whose Triton is used
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    python: PathBuf,
}

pub(super) fn run(store: &mut Store, args: &ProveArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut rules = store.own_rules()?;
    if !args.which.is_empty() {
        let memory = store.memory()?;
        let wanted: Vec<String> = found(&memory, &args.which)?.into_iter().map(|rule| rule.code.clone()).collect();
        rules = memory.rules().filter(|rule| wanted.contains(&rule.code)).cloned().collect();
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let oracle = Oracle::start(args.python.clone(), jobs)?;
    let assessments = prove_stored(store, &oracle, &rules)?;
    for (rule, RuleAssessment { state, why, .. }) in rules.iter().zip(&assessments) {
        writeln!(
            out,
            "{}  {:9}  {}\n    {}",
            rule.code,
            state.name(),
            rule.plain_sentence(),
            why.replace('\n', "\n    ")
        )?;
    }
    let is_sound = assessments.iter().all(|assessment| assessment.state == RuleState::Promoted);
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}
