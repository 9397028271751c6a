//! `warpsmith resources`: shows the resources that kernels use on a device.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::Serialize;

use compiler::{CompileTarget, CompilerSession, Survey};
use model::analysis::resources::{CompilationResult, CompiledVariant, LaunchCertainty, Resources};
use runtime::python::environment::PythonEnvironment;

use super::compiler_setup::{interpreter, local_device, model, no_interpreter};
use super::exit_status::FOUND;
use super::list_format::Format;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(super) struct ResourcesArgs {
    /// The file
    file: PathBuf,
    /// The kernel [default: all of the file]
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Device to compile for, such as `cuda:90` or `hip:gfx942` [default: that of the settings, else the GPU of this machine]
    #[arg(long, value_name = "DEVICE")]
    target: Option<CompileTarget>,
    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A variant in which a kernel runs.
#[derive(Serialize)]
struct Entry<'a> {
    kernel: &'a str,
    device: &'a str,
    setting: &'a str,
    /// Whether the parameters are guessed.
    guessed: bool,
    /// Whether the program certainly runs this variant.
    certain: bool,
    registers: Option<u32>,
    spills: Option<u32>,
    stack: Option<u32>,
    shared: Option<u32>,
    warps: Option<u32>,
    /// The number of programs that are on a multiprocessor at once.
    programs: Option<u32>,
    /// The occupancy in percent.
    occupancy: Option<f64>,
    limit: Option<String>,
    /// The reason why the variant does not run.
    problem: Option<String>,
}

pub(super) fn run(args: &ResourcesArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let path = config::absolute(&args.file)?;
    let folder = path.parent().unwrap_or(&path);
    let loaded = crate::settings::load(folder)?;
    let device = args.target.clone().or_else(|| crate::settings::device(&loaded.settings.compiler));
    let Some(device) = device.or_else(local_device) else {
        bail!("there is no GPU here: name a device by --target, such as `cuda:90`");
    };
    let Some((python, triton)) = interpreter(PythonEnvironment::of_project(&loaded, folder)) else {
        bail!(no_interpreter(None))
    };
    let text = std::fs::read_to_string(&path).with_context(|| args.file.display().to_string())?;
    let (source, module) = model(&text, &path, &Workspace::default());
    let is_wanted = |name: &str| args.kernel.as_deref().is_none_or(|wanted| wanted == name);
    let kernels: Vec<_> =
        module.kernels.iter().filter(|it| is_wanted(&it.name) && module.kernel(&it.name).is_some()).collect();
    if kernels.is_empty() {
        bail!("{}: there is no such kernel", args.file.display());
    }
    let mut session = CompilerSession::new(python);
    let mut found = Vec::new();
    for kernel in kernels {
        match Survey::of(&source, &module, kernel, &device, triton) {
            Ok(survey) => {
                let resources = session.survey(survey, &module, kernel).map_err(anyhow::Error::msg)?;
                found.push((kernel.name.as_str(), resources));
            }
            Err(why) => eprintln!("warning: `{}` cannot be compiled: {why}", kernel.name),
        }
    }
    write(args.format, &found, out)?;
    let is_any = found.iter().any(|(_, resources)| !resources.rows.is_empty());
    Ok(if is_any { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

fn write(format: Format, found: &[(&str, Resources)], out: &mut impl Write) -> anyhow::Result<()> {
    if let Format::Json = format {
        let rows = |(kernel, resources)| resources_rows(kernel, resources);
        let entries: Vec<Entry<'_>> =
            found.iter().map(|(kernel, resources)| (*kernel, resources)).flat_map(rows).collect();
        serde_json::to_writer_pretty(&mut *out, &entries)?;
        writeln!(out)?;
        return Ok(());
    }
    for (kernel, resources) in found {
        let caveat = resources.caveat().map_or_else(String::new, |caveat| format!(" ({caveat})"));
        writeln!(out, "{kernel} on {}{caveat}", resources.device)?;
        for row in &resources.rows {
            let setting = if row.setting.is_empty() { "as launched" } else { row.setting.as_str() };
            writeln!(out, "  {setting}: {}", resources.describe(row))?;
        }
        if resources.left_out > 0 {
            writeln!(out, "  and {} more", resources.left_out)?;
        }
    }
    Ok(())
}

fn resources_rows<'a>(kernel: &'a str, resources: &'a Resources) -> impl Iterator<Item = Entry<'a>> {
    resources.rows.iter().map(move |row| entry(kernel, resources, row))
}

fn entry<'a>(kernel: &'a str, resources: &'a Resources, row: &'a CompiledVariant) -> Entry<'a> {
    let taken = match &row.outcome {
        CompilationResult::Compiled(taken) => Some(taken),
        CompilationResult::Failed { .. } | CompilationResult::Refused(_) | CompilationResult::Unknown(_) => None,
    };
    let occupancy = resources.occupancy(row);
    let problem = resources.missing_resource(row).or_else(|| taken.is_none().then(|| resources.describe(row)));
    Entry {
        kernel,
        device: &resources.device,
        setting: &row.setting,
        guessed: row.certainty == LaunchCertainty::Guessed,
        certain: row.certainty == LaunchCertainty::Certain,
        registers: taken.and_then(|taken| taken.registers),
        spills: taken.and_then(|taken| taken.spills),
        stack: taken.and_then(|taken| taken.stack),
        shared: taken.map(|taken| taken.shared),
        warps: taken.map(|taken| taken.warps),
        programs: occupancy.map(|occupancy| occupancy.blocks),
        occupancy: occupancy.map(|occupancy| occupancy.percent()),
        limit: occupancy.and_then(|occupancy| occupancy.limit).map(|limit| limit.to_string()),
        problem,
    }
}
