//! Workflow commands of GitHub Actions, which become annotations of the changed lines.

use std::fmt::Write as _;
use std::io::Write;

use rules::Severity;

use super::region::Region;
use crate::cli::check::report::{Report, findings};

pub(super) fn write(reports: &[Report], out: &mut impl Write) -> anyhow::Result<()> {
    for (report, source, finding) in findings(reports) {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "notice",
        };
        let Region { line, column, end_line, end_column } = Region::of(source, finding.span);
        let mut place = format!("file={},line={line}", property(&report.path));
        // GitHub accepts columns only when the annotation is within one line.
        if line == end_line {
            let _ = write!(place, ",col={column},endColumn={end_column}");
        } else {
            let _ = write!(place, ",endLine={end_line}");
        }
        let title = property(&format!("{} {}", finding.code, finding.name));
        writeln!(out, "::{level} {place},title={title}::{}", data(&finding.message))?;
    }
    Ok(())
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn github_commands_escape_special_characters() {
        assert_eq!(data("50 %: a,\r\nb"), "50 %25: a,%0D%0Ab");
        assert_eq!(property("a,b:c%.py"), "a%2Cb%3Ac%25.py");
    }
}
