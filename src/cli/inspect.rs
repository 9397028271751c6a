//! `warpsmith inspect FILE`: shows the output of Triton's compiler for a kernel, annotated with source lines.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};

use compiler::{
    CompileTarget, CompilerSession, CompilerStage, Inspection, InspectionError, Listing, ServiceStatus, StageSelection,
};
use model::kernel::{self, Kernel, Module};
use runtime::python::environment::PythonEnvironment;

use super::compiler_setup::{interpreter, local_device, model, no_interpreter};
use super::exit_status::FOUND;
use crate::workspace::Workspace;

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
pub(super) struct InspectArgs {
    /// The Python file with the kernel
    file: PathBuf,
    /// The kernel; needed when the file has several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// What to show: `ttir`, `ttgir`, `llir`, and `ptx` or `sass` (NVIDIA), `amdgcn` (AMD)
    #[arg(long, value_parser = stage, default_value = "ttgir")]
    stage: CompilerStage,
    /// Which of the ways to run the kernel that `warpsmith resources` lists, such as configurations, counted from 1
    #[arg(long, value_name = "NUMBER")]
    config: Option<usize>,
    /// Device to compile for, such as `cuda:90` or `hip:gfx942` [default: that of the settings, else the GPU of this machine,
    /// else `cuda:90`]
    #[arg(long, value_name = "DEVICE")]
    target: Option<CompileTarget>,
    /// A Python with Triton (default: the project's)
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Print Triton's output unchanged
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &InspectArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{} cannot be read", args.file.display()))?;
    if text.len() > kernel::MAX_TEXT {
        bail!("{} is longer than {} MiB", args.file.display(), kernel::MAX_TEXT >> 20);
    }
    let file = config::absolute(&args.file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut loaded = crate::settings::load(folder)?;
    if let Some(python) = &args.python {
        loaded.settings.python = Some(config::absolute(python)?);
    }
    let environment = PythonEnvironment::of_project(&loaded, folder);
    let Some((python, triton)) = interpreter(environment) else { bail!(no_interpreter(Some("--python"))) };
    let (source, module) = model(&text, &file, &Workspace::default());
    let kernel = chosen(args, &module)?;
    let device = args.target.clone().or_else(|| crate::settings::device(&loaded.settings.compiler));
    let device = device.or_else(local_device).unwrap_or_default();
    let wanted = StageSelection { stage: args.stage, config: args.config, device, triton };
    match Inspection::new(&source, &module, kernel, &file, &wanted).and_then(|inspection| compiled(inspection, python))
    {
        Ok(listing) => {
            for note in &listing.notes {
                eprintln!("{note}");
            }
            let text = if args.raw { listing.raw } else { listing.annotated() };
            writeln!(out, "{}", text.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            Ok(ExitCode::from(FOUND))
        }
    }
}

fn compiled(mut inspection: Inspection, python: PathBuf) -> Result<Listing, InspectionError> {
    let mut session = CompilerSession::new(python);
    // The session replaces the number.
    while let Some(request) = inspection.request(0) {
        let answer = session.answer(request).map_err(|why| InspectionError(format!("Triton cannot be used: {why}")))?;
        let triton = match session.status() {
            ServiceStatus::Ready { triton } => triton.clone(),
            _ => String::new(),
        };
        if let Some(found) = inspection.handle_reply(answer, &triton) {
            return found;
        }
    }
    Err(InspectionError("there is nothing to compile".to_owned()))
}

/// The named kernel, or the only one.
fn chosen<'a>(args: &InspectArgs, module: &'a Module) -> anyhow::Result<&'a Kernel> {
    let shown = args.file.display();
    let names = |kernels: &[&Kernel]| {
        let names: Vec<_> = kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect();
        names.join(", ")
    };
    let all: Vec<&Kernel> = module.kernels.iter().filter(|kernel| module.kernel(&kernel.name).is_some()).collect();
    if all.is_empty() {
        bail!("{shown} has no kernel");
    }
    if let Some(name) = &args.kernel {
        let named = all.iter().find(|kernel| kernel.name == *name);
        return named.copied().ok_or_else(|| anyhow!("{shown} has no kernel `{name}`, only {}", names(&all)));
    }
    // Kernels that other kernels call are helpers.
    let called = module.called_in_kernels();
    let own: Vec<&Kernel> = all.iter().copied().filter(|kernel| !called.contains(&kernel.name)).collect();
    match (&own[..], &all[..]) {
        ([only], _) | ([], [only]) => Ok(only),
        _ => bail!(
            "{shown} has several kernels; name one by --kernel: {}",
            names(if own.is_empty() { &all } else { &own })
        ),
    }
}

fn stage(name: &str) -> Result<CompilerStage, String> {
    let names = || CompilerStage::ALL.map(CompilerStage::name).join(", ");
    CompilerStage::parse(name).ok_or_else(|| format!("the stages are {}", names()))
}
