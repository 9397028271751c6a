//! `warpsmith memory import`: imports rules as candidates.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use learn::{ImportedRules, SkillMemory as _, imported_rules};
use store::Store;

pub(super) fn run(store: &mut Store, files: &[PathBuf], out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let ImportedRules { rules, left_out } =
            imported_rules(file, &text).with_context(|| file.display().to_string())?;
        for why in left_out {
            eprintln!("warning: {}: {why}", file.display());
        }
        all.extend(rules);
    }
    let mut codes = store.add_rules(&all)?;
    codes.sort();
    codes.dedup();
    let (count, range) = (codes.len(), codes.first().zip(codes.last()));
    match range {
        Some((first, last)) => {
            writeln!(out, "{count} candidates, {first} to {last}: `warpsmith memory prove` tries them")?
        }
        None => writeln!(out, "there is no rule in these files")?,
    }
    Ok(ExitCode::SUCCESS)
}
