//! `warpsmith skills`: lists the skills, and what searches have learned about them.

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use runtime::python::state_folder;
use search::skills;
use store::{Lesson, Store};

use super::list_format::Format;

/// Arguments of `skills`.
#[derive(Debug, clap::Args)]
pub(super) struct SkillsArgs {
    /// How to write the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Delete the lessons of earlier searches
    #[arg(long)]
    forget: bool,
}

pub(super) fn run(args: &SkillsArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut store = Store::of_user(&state_folder())?;
    if args.forget {
        let count = store.forget_lessons()?;
        writeln!(out, "deleted the lessons about {count} kinds of changes")?;
        return Ok(ExitCode::SUCCESS);
    }
    let lessons = store.lessons(None)?;
    match args.format {
        Format::Json => {
            let all = json!({ "skills": skills().collect::<Vec<_>>(), "learned": lessons });
            writeln!(out, "{all:#}")?;
        }
        Format::Text => show(&lessons, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(lessons: &[Lesson], out: &mut impl Write) -> std::io::Result<()> {
    let width = skills().map(|skill| skill.name.len()).max().unwrap_or(0);
    for skill in skills() {
        let step = if skill.is_large { "large" } else { "small" };
        writeln!(out, "{:width$}  {step}  {}", skill.name, skill.about)?;
    }
    let mut device = None;
    let width = lessons.iter().map(|lesson| lesson.kind.chars().count()).max().unwrap_or(0);
    for lesson in lessons {
        if device.replace(&lesson.device) != Some(&lesson.device) {
            writeln!(
                out,
                "\nLearned on {}: how often it was tried and refused, how much faster it made kernels, at best",
                lesson.device
            )?;
        }
        let Lesson { class, bound, kind, count, refused, best, .. } = lesson;
        let mean = (lesson.gain / f64::from((*count).max(1))).exp();
        writeln!(out, "{class:9}  {bound:6}  {kind:width$}  {count:5} {refused:5}  {mean:5.2}×  {best:5.2}×")?;
    }
    if lessons.is_empty() {
        writeln!(out, "\nNothing is learned yet; `warpsmith optimize FILE` does.")?;
    }
    Ok(())
}
