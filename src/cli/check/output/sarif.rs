//! SARIF 2.1.0, which code scanning services read.

use std::io::Write;

use serde::Serialize;

use model::syntax::{Source, Span};
use rules::{Declaration, Diagnostic, Fix, Severity};

use super::region::Region;
use crate::cli::check::report::{Report, findings};

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool,
    column_kind: &'static str,
    results: Vec<SarifResult<'a>>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<RuleOf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleOf {
    id: &'static str,
    name: &'static str,
    short_description: Text<String>,
    help: Help,
    help_uri: String,
    default_configuration: Configuration,
    properties: Properties,
}

#[derive(Serialize)]
struct Help {
    text: &'static str,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Properties {
    tags: [String; 1],
}

#[derive(Serialize)]
struct Text<T> {
    text: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Text<&'a str>,
    locations: [Location<'a>; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<FixOf<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    physical_location: Physical,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text<&'a str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    region: SarifRegion,
}

#[derive(Clone, Serialize)]
struct Artifact {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRegion {
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FixOf<'a> {
    description: Text<&'a str>,
    artifact_changes: [Change<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    artifact_location: Artifact,
    replacements: Vec<Replacement<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement<'a> {
    deleted_region: SarifRegion,
    inserted_content: Text<&'a str>,
}

pub(super) fn write(reports: &[Report], out: &mut impl Write) -> anyhow::Result<()> {
    let rules = rules::all().iter().map(|rule| rule_of(&rule.declaration)).collect();
    let driver = Driver { name: "Warpsmith", version: env!("CARGO_PKG_VERSION"), rules };
    let results = findings(reports).map(|(report, source, finding)| found(report, source, finding)).collect();
    let log = Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [Run { tool: Tool { driver }, column_kind: "unicodeCodePoints", results }],
    };
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)?;
    Ok(())
}

fn rule_of(declaration: &Declaration) -> RuleOf {
    RuleOf {
        id: declaration.code,
        name: declaration.name,
        short_description: Text { text: format!("Finds {}", declaration.summary) },
        help: Help { text: declaration.doc.trim(), markdown: declaration.page() },
        help_uri: declaration.url(),
        default_configuration: Configuration { level: level(declaration.severity) },
        properties: Properties { tags: [declaration.family().to_string()] },
    }
}

fn found<'a>(report: &Report, source: &Source, finding: &'a Diagnostic) -> SarifResult<'a> {
    let artifact = Artifact { uri: uri(&report.path) };
    let location = |span: Span, message: Option<&'a str>| Location {
        physical_location: Physical { artifact_location: artifact.clone(), region: place(source, span) },
        message: message.map(|text| Text { text }),
    };
    SarifResult {
        rule_id: finding.code,
        rule_index: rules::all().iter().position(|rule| rule.declaration.code == finding.code),
        level: level(finding.severity),
        message: Text { text: &finding.message },
        locations: [location(finding.span, None)],
        related_locations: finding.related.iter().map(|it| location(it.span, Some(&it.message))).collect(),
        fixes: finding.fix.iter().map(|fix| fix_of(&artifact, source, fix)).collect(),
    }
}

fn fix_of<'a>(artifact: &Artifact, source: &Source, fix: &'a Fix) -> FixOf<'a> {
    let replacement = |edit: &'a rules::Edit| Replacement {
        deleted_region: place(source, edit.span),
        inserted_content: Text { text: &edit.text },
    };
    let replacements = fix.edits.iter().map(replacement).collect();
    FixOf {
        description: Text { text: &fix.title },
        artifact_changes: [Change { artifact_location: artifact.clone(), replacements }],
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

fn place(source: &Source, span: Span) -> SarifRegion {
    let Region { line, column, end_line, end_column } = Region::of(source, span);
    SarifRegion { start_line: line, start_column: column, end_line, end_column }
}

/// A path as a reference relative to where the command ran, or as a `file:` address when it is absolute.
fn uri(path: &str) -> String {
    if let Ok(address) = url::Url::from_file_path(path) {
        return address.into();
    }
    let mut out = String::with_capacity(path.len());
    for &byte in path.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_addresses() {
        assert_eq!(uri("a b/é:c.py"), "a%20b/%C3%A9%3Ac.py");
        assert_eq!(uri("/x/a b.py"), "file:///x/a%20b.py");
    }
}
