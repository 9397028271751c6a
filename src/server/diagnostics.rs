//! Diagnostics in the client's terms.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use tower_lsp::gen_lsp_types as lsp;

use model::syntax::Encoding;
use rules::{Diagnostic, Tag};

use super::client_features::ClientFeatures;
use super::to_lsp;
use super::unit::{Unit, UnitDocument};

/// The source that the editor shows beside a diagnostic.
pub(crate) const SOURCE: &str = "warpsmith";

/// The data that a diagnostic carries for code actions, so that they need not check the file again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DiagnosticData {
    /// The version of the document that the diagnostic was found in.
    pub(crate) version: i32,
    /// The fix, if the rule has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<FixData>,
}

/// A fix in the client's terms.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FixData {
    /// The title of the fix.
    pub(crate) title: String,
    /// The document that it changes: the diagnostic's own, or another cell of the notebook.
    pub(crate) uri: lsp::Uri,
    /// The version that the edits are for.
    pub(crate) version: i32,
    /// The edits, which belong together.
    pub(crate) edits: Vec<lsp::TextEdit>,
}

/// The diagnostics of one document of a unit, in source order.
pub(crate) fn of_document(
    unit: &Unit,
    uri: &lsp::Uri,
    client: &ClientFeatures,
    encoding: Encoding,
) -> Vec<lsp::Diagnostic> {
    unit.findings()
        .iter()
        .filter_map(|finding| {
            let (part, range) = unit.locate(finding.span, encoding)?;
            (part.uri == *uri).then(|| diagnostic(unit, finding, part, range, client, encoding))
        })
        .collect()
}

fn diagnostic(
    unit: &Unit,
    finding: &Diagnostic,
    part: &UnitDocument,
    range: lsp::Range,
    client: &ClientFeatures,
    encoding: Encoding,
) -> lsp::Diagnostic {
    let href = || rules::url(finding.code)?.parse().ok();
    let related = || {
        let place = |related: &rules::Related| {
            let (part, range) = unit.locate(related.span, encoding)?;
            let location = lsp::Location { uri: part.uri.clone(), range };
            Some(lsp::DiagnosticRelatedInformation { location, message: related.message.clone() })
        };
        finding.related.iter().filter_map(place).collect::<Vec<_>>()
    };
    let fix = finding.fix.as_ref().and_then(|fix| {
        let (part, edits) = to_lsp::edits(unit, &fix.edits, encoding)?;
        Some(FixData { title: fix.title.clone(), uri: part.uri.clone(), version: part.version, edits })
    });
    let data = serde_json::to_value(DiagnosticData { version: part.version, fix }).ok();
    lsp::Diagnostic {
        range,
        severity: Some(to_lsp::severity(finding.severity)),
        code: Some(lsp::Code::String(finding.code.to_owned())),
        code_description: client.code_description.then(href).flatten().map(|href| lsp::CodeDescription { href }),
        source: Some(SOURCE.to_owned()),
        message: lsp::Message::String(finding.message.clone()),
        tags: client.diagnostic_tags.then(|| tags(finding.code)).filter(|tags| !tags.is_empty()),
        related_information: client.related_information.then(related).filter(|related| !related.is_empty()),
        data,
    }
}

/// The tags with which an editor draws the findings of the rule with this code.
fn tags(code: &str) -> Vec<lsp::DiagnosticTag> {
    let declared = rules::find(code).map_or(&[] as &[Tag], |rule| rule.declaration.tags);
    let to_lsp = |tag: &Tag| match tag {
        Tag::Unnecessary => lsp::DiagnosticTag::Unnecessary,
    };
    declared.iter().map(to_lsp).collect()
}

/// The answer to a pull request; it is "unchanged" when the client still has the same diagnostics.
pub(crate) fn report(
    version: i32,
    items: Vec<lsp::Diagnostic>,
    previous: Option<&str>,
) -> lsp::DocumentDiagnosticReport {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&items).unwrap_or_default().hash(&mut hasher);
    let id = format!("{version}-{:x}", hasher.finish());
    if previous == Some(&id) {
        lsp::DocumentDiagnosticReport::RelatedUnchangedDocumentDiagnosticReport(
            lsp::RelatedUnchangedDocumentDiagnosticReport {
                related_documents: None,
                unchanged_document_diagnostic_report: lsp::UnchangedDocumentDiagnosticReport { result_id: id },
            },
        )
    } else {
        full(Some(id), items)
    }
}

/// The empty answer for a document that is not open.
pub(crate) fn empty_report() -> lsp::DocumentDiagnosticReport {
    full(None, Vec::new())
}

fn full(result_id: Option<String>, items: Vec<lsp::Diagnostic>) -> lsp::DocumentDiagnosticReport {
    lsp::DocumentDiagnosticReport::RelatedFullDocumentDiagnosticReport(lsp::RelatedFullDocumentDiagnosticReport {
        related_documents: None,
        full_document_diagnostic_report: lsp::FullDocumentDiagnosticReport { result_id, items },
    })
}
