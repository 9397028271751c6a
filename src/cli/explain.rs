//! `warpsmith explain`: the page of a rule.

use learn::SkillMemory as _;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;

use runtime::python::state_folder;
use store::Store;

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// Code (`L001`) or name (`unknown-member`) of the rule
    #[arg(value_name = "RULE")]
    rule: String,
}

pub(super) fn run(args: &ExplainArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let Some(rule) = rules::find(&args.rule) else {
        // The user's own rules are in the store.
        let memory = Store::memory_in(&state_folder())?;
        if let Some(rule) = memory.find(&args.rule) {
            out.write_all(rule.page().as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        let known = rules::all().iter().flat_map(|rule| [rule.declaration.name, rule.declaration.code]);
        match config::nearest(&args.rule, known) {
            Some(name) => bail!("there is no rule `{}`; did you mean `{name}`?", args.rule),
            None => bail!("there is no rule `{}`; `warpsmith rules` lists them", args.rule),
        }
    };
    out.write_all(rule.declaration.page().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
