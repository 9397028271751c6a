//! `warpsmith workloads list|show|rm`: shows recorded calls, and removes them.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use base::clock;
use protocol::{ArgumentValue, LaunchRecord, TensorContents, TensorSpec, Workload, WorkloadSource};
use store::{Store, StoredWorkload, shapes, short};

use super::exit_status::FOUND;

/// Arguments of `workloads`.
#[derive(Debug, clap::Args)]
pub(super) struct WorkloadsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the recorded calls of this workspace
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all details of recorded calls
    Show {
        /// Numbers of calls, or names of functions [default: all calls]
        which: Vec<String>,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove recorded calls
    Rm {
        /// Numbers of calls, or names of functions
        #[arg(required_unless_present = "all")]
        which: Vec<String>,
        /// Remove all of them
        #[arg(long, conflicts_with = "which")]
        all: bool,
    },
}

pub(super) fn run(args: &WorkloadsArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    let workspace = crate::settings::load(&folder)?.project(&folder);
    if !workspace.join(".warpsmith").is_dir() {
        if matches!(args.action, Action::List { json: true } | Action::Show { json: true, .. }) {
            writeln!(out, "[]")?;
        } else {
            writeln!(out, "nothing is recorded; `warpsmith record -- python FILE` records calls")?;
        }
        return Ok(ExitCode::from(FOUND));
    }
    let mut store = workload::store(&workspace)?;
    let is_any = match &args.action {
        Action::List { json } => list(&store.workloads(None, None)?, &workspace, *json, out)?,
        Action::Show { which, json } => show(&chosen(&store, which)?, *json, out)?,
        Action::Rm { which, all } => remove(&mut store, which, *all, &workspace, out)?,
    };
    Ok(if is_any { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

fn chosen(store: &Store, which: &[String]) -> anyhow::Result<Vec<StoredWorkload>> {
    if which.is_empty() {
        return Ok(store.workloads(None, None)?);
    }
    let mut rows = Vec::new();
    for word in which {
        let found = match word.parse() {
            Ok(id) => store.workload(id)?.into_iter().collect(),
            Err(_) => store.workloads(None, Some(word))?,
        };
        if found.is_empty() {
            bail!("no recorded call `{word}`; `warpsmith workloads list` lists them");
        }
        rows.extend(found);
    }
    Ok(rows)
}

fn list(rows: &[StoredWorkload], workspace: &Path, json: bool, out: &mut impl Write) -> anyhow::Result<bool> {
    if json {
        let all: Vec<Json> = rows.iter().map(summary).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(!rows.is_empty());
    }
    if rows.is_empty() {
        writeln!(out, "nothing is recorded; `warpsmith record -- python FILE` records calls")?;
        return Ok(false);
    }
    let titles = ["ID", "ENTRY", "FILE", "CALLS", "AGE", "LAUNCHES", "SHAPES"].map(str::to_owned);
    let lines: Vec<[String; 7]> = std::iter::once(titles).chain(rows.iter().map(|row| cells(row, workspace))).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}  "));
        writeln!(out, "{}{}", padded.collect::<String>(), line[6])?;
    }
    Ok(true)
}

fn cells(row: &StoredWorkload, workspace: &Path) -> [String; 7] {
    const LONGEST: usize = 80;
    let Workload { file, count, gradients, .. } = &row.workload;
    let file = file.strip_prefix(workspace).unwrap_or(file).display().to_string();
    let entry = format!("{}{}", row.workload.entry, if *gradients { " (gradients)" } else { "" });
    let mut shapes = shapes(&row.workload);
    if shapes.chars().count() > LONGEST {
        shapes = shapes.chars().take(LONGEST - 1).chain(['…']).collect();
    }
    [row.id.to_string(), entry, file, count.to_string(), age(row.recorded), row.workload.kernels().join(", "), shapes]
}

fn summary(row: &StoredWorkload) -> Json {
    let workload = &row.workload;
    json!({
        "id": row.id,
        "entry": workload.entry,
        "file": workload.file,
        "source": workload.source,
        "gradients": workload.gradients,
        "shapes": shapes(workload),
        "count": workload.count,
        "launches": workload.kernels(),
        "recorded": row.recorded,
        "command": row.command,
        "bytes": row.size,
        "obstacle": workload.obstacle(),
    })
}

/// `3 min`, `2 h`, `5 days`
fn age(recorded: i64) -> String {
    let seconds = clock::now().as_secs().saturating_sub(u64::try_from(recorded / 1000).unwrap_or(0));
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn show(rows: &[StoredWorkload], json: bool, out: &mut impl Write) -> anyhow::Result<bool> {
    if json {
        let all: Vec<Json> = rows
            .iter()
            .map(|row| {
                let mut all = summary(row);
                all["workload"] = json!(row.workload);
                all
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(!rows.is_empty());
    }
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        describe(row, out)?;
    }
    Ok(!rows.is_empty())
}

fn describe(row: &StoredWorkload, out: &mut impl Write) -> anyhow::Result<()> {
    let workload = &row.workload;
    let Workload { entry, file, count, environment, .. } = workload;
    let calls = if *count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
    let gradients = if workload.gradients { ", with gradients" } else { "" };
    writeln!(out, "{} {entry} in {}: {calls}{gradients}", row.id, file.display())?;
    if workload.source == WorkloadSource::Launch {
        writeln!(out, "  a launch on its own: no function that can be called again performs it")?;
    }
    if let Some(what) = workload.obstacle() {
        writeln!(out, "  cannot be run again: {what}")?;
    }
    if !row.command.is_empty() {
        writeln!(out, "  recorded   {} ago, by {}", age(row.recorded).replace("now", "a moment"), row.command)?;
    }
    let device = if environment.device.is_empty() { "no GPU" } else { &environment.device };
    let (torch, triton, python) = (&environment.torch, &environment.triton, &environment.python);
    writeln!(out, "  on         {device}, torch {torch}, Triton {triton}, Python {python}")?;
    for (at, value) in workload.args.iter().enumerate() {
        writeln!(out, "  argument   {at}: {}", long(value))?;
    }
    for (name, value) in &workload.kwargs {
        writeln!(out, "  argument   {name}: {}", long(value))?;
    }
    if !workload.mutated.is_empty() {
        let changed: Vec<String> = workload.mutated.iter().map(ToString::to_string).collect();
        writeln!(out, "  changes    tensor {}", changed.join(", "))?;
    }
    workload.launches.iter().try_for_each(|launch| writeln!(out, "  launches   {}", launched(launch)))?;
    Ok(())
}

fn long(value: &ArgumentValue) -> String {
    let mut specs: Vec<&TensorSpec> = Vec::new();
    value.tensors(&mut |spec| specs.push(spec));
    let notes: Vec<String> = specs.iter().map(|spec| format!("tensor {}: {}", spec.id, contents(spec))).collect();
    if notes.is_empty() { short(value) } else { format!("{} ({})", short(value), notes.join("; ")) }
}

fn contents(spec: &TensorSpec) -> String {
    let on = if spec.device == "cpu" { "cpu".to_owned() } else { format!("{}:{}", spec.device, spec.device_index) };
    let gradient = if spec.requires_grad { ", requires a gradient" } else { "" };
    let values = match &spec.data {
        TensorContents::Floats(values) => format!("{} values", values.len()),
        TensorContents::Integers(values) => format!("{} integers", values.len()),
        TensorContents::Range { low, high, sorted, .. } => {
            format!("integers from {low} to {high}{}", if *sorted { ", ascending" } else { "" })
        }
        TensorContents::Normal { mean, std, low, high, .. } => {
            format!("mean {mean:.3}, deviation {std:.3}, from {low:.3} to {high:.3}")
        }
    };
    format!("{on}, storage {}{gradient}, {values}", spec.storage)
}

/// `k[19](n=300, BLOCK=16) num_warps=4`
fn launched(launch: &LaunchRecord) -> String {
    let named = |pairs: &mut dyn Iterator<Item = &(String, ArgumentValue)>| {
        pairs.map(|(name, value)| format!("{name}={}", short(value))).collect::<Vec<_>>()
    };
    let arguments = named(&mut launch.arguments.iter()).join(", ");
    let is_option = |(name, _): &&(String, ArgumentValue)| launch.arguments.iter().all(|(known, _)| known != name);
    let options = named(&mut launch.keywords.iter().filter(is_option));
    let grid: Vec<String> = launch.grid.iter().map(ToString::to_string).collect();
    let options = options.iter().map(|option| format!(" {option}")).collect::<String>();
    format!("{}[{}]({arguments}){options}", launch.kernel, grid.join(", "))
}

fn remove(
    store: &mut Store,
    which: &[String],
    all: bool,
    workspace: &Path,
    out: &mut impl Write,
) -> anyhow::Result<bool> {
    let mut removed = if all { store.remove_workloads()? } else { 0 };
    for word in which {
        let count = match word.parse() {
            Ok(id) => usize::from(store.remove_workload(id)?),
            Err(_) => store.remove_entry(word)?,
        };
        if count == 0 {
            bail!("no recorded call `{word}`; `warpsmith workloads list` lists them");
        }
        removed += count;
    }
    workload::touch(workspace)?;
    writeln!(out, "removed {removed} {}", if removed == 1 { "call" } else { "calls" })?;
    Ok(removed > 0)
}
