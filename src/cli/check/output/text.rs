//! Findings for people: the source lines, the message, the fix, and a summary.

use std::io::Write;

use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};

use model::syntax::Source;
use rules::{Diagnostic, Severity};

use crate::cli::check::report::{Report, findings};

pub(super) fn write(reports: &[Report], colour: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    for (report, source, finding) in findings(reports) {
        let groups = groups(report, source, finding);
        writeln!(out, "{}\n", renderer.render(&groups))?;
    }
    writeln!(out, "{}", summary(reports))?;
    Ok(())
}

fn groups<'a>(report: &'a Report, source: &'a Source, finding: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Hint => Level::INFO.with_name("hint"),
    };
    let (text, path) = (source.text().as_ref(), report.path.as_str());
    let marks = Snippet::source(text)
        .path(path)
        .annotation(AnnotationKind::Primary.span(finding.span.start..finding.span.end))
        .annotations(finding.related.iter().map(|related| {
            AnnotationKind::Context.span(related.span.start..related.span.end).label(related.message.as_str())
        }));
    let mut main = level.primary_title(finding.message.as_str()).id(finding.code).element(marks);
    // The user's own learned rules have no page in the manual.
    let place = rules::url(finding.code).unwrap_or_else(|| format!("`warpsmith explain {}`", finding.code));
    main = main.element(Level::HELP.message(format!("{}: {place}", finding.name)));
    let mut groups = vec![main];
    if let Some(fix) = &finding.fix {
        let patches = fix.edits.iter().map(|edit| Patch::new(edit.span.start..edit.span.end, edit.text.as_str()));
        groups.push(
            Level::HELP.secondary_title(fix.title.as_str()).element(Snippet::source(text).path(path).patches(patches)),
        );
    }
    groups
}

/// `Found 2 errors and 1 hint in 1 of 14 files; --fix mends 2 of them.`
fn summary(reports: &[Report]) -> String {
    let count = |severity| findings(reports).filter(|(_, _, finding)| finding.severity == severity).count();
    let kinds: Vec<String> = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Hint, "hint")]
        .into_iter()
        .map(|(severity, word)| (count(severity), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| plural(count, word))
        .collect();
    let fixed: usize = reports.iter().map(|report| report.fixed).sum();
    let fixed = if fixed > 0 { format!("Made {}. ", plural_es(fixed, "fix")) } else { String::new() };
    let files = plural(reports.len(), "file");
    let Some((last, rest)) = kinds.split_last() else { return format!("{fixed}Found nothing in {files}.") };
    let kinds = if rest.is_empty() { last.clone() } else { format!("{} and {last}", rest.join(", ")) };
    let hit = reports.iter().filter(|report| !report.findings.is_empty()).count();
    let fixable = findings(reports).filter(|(_, _, finding)| finding.fix.is_some()).count();
    let hint = if fixable > 0 { format!("; --fix fixes {fixable}") } else { String::new() };
    format!("{fixed}Found {kinds} in {hit} of {files}{hint}.")
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn plural_es(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "es" })
}
