//! `warpsmith check`: the rules over files and folders.

mod compile;
mod demotion;
mod files;
mod fix;
mod output;
mod project;
mod report;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rayon::prelude::*;

use super::compiler_setup::model;
use super::exit_status::{FAILED, FOUND};
use crate::workspace::Workspace;
use compile::Compiler;
use compiler::CompileTarget;
use model::api::Version;
use model::kernel;
use model::syntax::Source;
use project::{Overrides, Project, Projects};
use report::{Outcome, Report};
use rules::Diagnostic;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// Files and folders to check; `-` for standard input
    ///
    /// Folders are searched for `*.py`, without what `.gitignore` and `.ignore` name, hidden files, virtual
    /// environments and what the setting `exclude` names. Files given by name are always checked.
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: output::Format,
    /// Rules to run instead of those that the settings select: codes, prefixes (`L`) or names
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    select: Vec<String>,
    /// Rules not to run, besides those that the settings ignore
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Triton version to check against [default: that of the settings, else the installed one]
    #[arg(long, value_name = "VERSION")]
    triton_version: Option<Version>,
    /// Also compile each kernel with the project's Triton (family C); constants and decorators of the files run in the
    /// project's Python
    #[arg(long)]
    compile: bool,
    /// Device to compile for, such as `cuda:90` or `hip:gfx942` [default: that of the settings, else the GPU of this machine]
    #[arg(long, value_name = "DEVICE", requires = "compile")]
    target: Option<CompileTarget>,
    /// Apply safe fixes in place
    #[arg(long)]
    fix: bool,
    /// File name for standard input, for messages and to find its settings
    #[arg(long, value_name = "PATH")]
    stdin_filename: Option<PathBuf>,
}

pub(super) fn run(args: &CheckArgs, colour: bool, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    crate::settings::check_selectors(args.select.iter().chain(&args.ignore).map(String::as_str))
        .map_err(anyhow::Error::msg)?;
    let overrides = Overrides {
        select: args.select.clone(),
        ignore: args.ignore.clone(),
        triton: args.triton_version,
        device: args.target.clone(),
    };
    let projects = Projects::new(overrides);
    let reports = if args.paths.iter().any(|path| path.as_os_str() == "-") {
        vec![check_stdin(args, &projects)?]
    } else {
        check_files(args, projects)?
    };
    let mut failed = false;
    for report in &reports {
        match &report.outcome {
            Outcome::Checked => {}
            Outcome::Skipped(why) => eprintln!("warning: {}: {why}; skipped", report.path),
            Outcome::Failed(why) => {
                failed = true;
                eprintln!("error: {}: {why}", report.path);
            }
        }
    }
    output::write(args.format, &reports, colour, out)?;
    let found = reports.iter().any(|report| !report.findings.is_empty());
    Ok(ExitCode::from(if failed { FAILED } else { u8::from(found) * FOUND }))
}

fn check_files(args: &CheckArgs, projects: Projects) -> anyhow::Result<Vec<Report>> {
    let projects = std::sync::Arc::new(projects);
    let files = files::collect(&args.paths, &projects)?;
    if files.is_empty() {
        eprintln!("warning: no Python files to check");
    }
    // All settings are read first: an error in one must not stop --fix half-way.
    let with_projects: Vec<_> = files
        .iter()
        .map(|file| Ok((file, projects.of(file.folder())?)))
        .collect::<Result<_, config::SettingsError>>()?;
    let workspace = Workspace::default();
    let compiler = args.compile.then(Compiler::default);
    let check = |(file, project): &(&files::InputFile, std::sync::Arc<Project>)| {
        check_file(file, &Run { project, workspace: &workspace, compiler: compiler.as_ref(), fix: args.fix })
    };
    Ok(with_projects.par_iter().map(check).collect())
}

/// The options of one run.
struct Run<'a> {
    project: &'a Project,
    workspace: &'a Workspace,
    compiler: Option<&'a Compiler>,
    fix: bool,
}

fn check_file(file: &files::InputFile, run: &Run<'_>) -> Report {
    let skipped = |why: String| Report::without_findings(&file.shown, Outcome::Skipped(why));
    let bytes = match std::fs::read(&file.path) {
        Ok(bytes) => bytes,
        Err(error) => return skipped(format!("cannot be read ({error})")),
    };
    if memchr::memmem::find(&bytes, b"triton").is_none() {
        return Report::without_findings(&file.shown, Outcome::Checked);
    }
    if bytes.len() > kernel::MAX_TEXT {
        return skipped(format!("is longer than {} MiB", kernel::MAX_TEXT >> 20));
    }
    let Ok(text) = String::from_utf8(bytes) else { return skipped("is not UTF-8".to_owned()) };
    let mut report = check_text(file, text, run);
    if report.fixed > 0
        && let Some(source) = &report.source
        && let Err(error) = replace(&file.path, source.text())
    {
        report.outcome = Outcome::Failed(format!("cannot be written ({error})"));
        report.fixed = 0;
    }
    report
}

fn check_stdin(args: &CheckArgs, projects: &Projects) -> anyhow::Result<Report> {
    if args.paths.len() > 1 {
        bail!("`-` cannot stand beside other paths");
    }
    if args.fix {
        bail!("--fix needs a file: standard input cannot be changed");
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input cannot be read as UTF-8")?;
    let name = config::absolute(args.stdin_filename.as_deref().unwrap_or(Path::new("stdin")))?;
    let folder = name.parent().unwrap_or(&name);
    let project = projects.of(folder)?;
    let shown = args.stdin_filename.as_deref().map_or("<stdin>".into(), files::shown);
    let file = files::InputFile { path: name, shown };
    let (workspace, compiler) = (Workspace::default(), args.compile.then(Compiler::default));
    let run = Run { project: &project, workspace: &workspace, compiler: compiler.as_ref(), fix: false };
    Ok(check_text(&file, text, &run))
}

fn check_text(file: &files::InputFile, text: String, run: &Run<'_>) -> Report {
    let shown = &file.shown;
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let check = |text: &str| findings(file, text, run);
        if run.fix { fix::fix(text, check) } else { fix::Fixed { state: check(&text), count: 0 } }
    }));
    match checked {
        Ok(fix::Fixed { state: (source, findings), count }) => {
            let source = (count > 0 || !findings.is_empty()).then_some(source);
            Report { path: shown.to_owned(), source, findings, fixed: count, outcome: Outcome::Checked }
        }
        Err(_) => {
            let why = "checking it failed; this is a defect of Warpsmith, please report it".to_owned();
            Report::without_findings(shown, Outcome::Failed(why))
        }
    }
}

fn findings(file: &files::InputFile, text: &str, run: &Run<'_>) -> (Source, Vec<Diagnostic>) {
    let (source, module) = model(text, &file.path, run.workspace);
    let asked = run.compiler.map_or(Ok(()), |compiler| compiler.ask(run.project, (&source, &module, &file.path)));
    if let Err(why) = asked {
        eprintln!("warning: {}: Triton cannot be used: {why}", file.shown);
    }
    if let (Some(_), Some((_, triton))) = (run.compiler, &run.project.python) {
        demotion::demote(&source, &module, &run.project.memory, *triton);
    }
    let context = rules::RuleContext::new(&source, &module, run.project.target).at(Some(Path::new(&file.shown)));
    let findings = rules::check_with(&context, &run.project.selection, &run.project.memory);
    (source, findings)
}

/// Writes `text` to the file atomically.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A link is resolved, so that the file itself is replaced.
    let path = path.canonicalize()?;
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(std::fs::metadata(&path)?.permissions())?;
    file.persist(&path)?;
    Ok(())
}
