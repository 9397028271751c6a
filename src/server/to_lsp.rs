//! Conversions from the server's types to those of LSP.

use std::collections::HashMap;

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::{Encoding, Position, Span};
use rules::{Edit, Severity};

use super::client_features::ClientFeatures;
use super::unit::{Unit, UnitDocument};

/// The position with the same line and column.
pub(crate) fn position(position: Position) -> lsp::Position {
    lsp::Position { line: position.line, character: position.column }
}

/// A severity.
pub(crate) fn severity(severity: Severity) -> lsp::DiagnosticSeverity {
    match severity {
        Severity::Error => lsp::DiagnosticSeverity::Error,
        Severity::Warning => lsp::DiagnosticSeverity::Warning,
        Severity::Hint => lsp::DiagnosticSeverity::Hint,
    }
}

/// The location of a span of a unit.
pub(crate) fn location(unit: &Unit, span: Span, encoding: Encoding) -> Option<lsp::Location> {
    let (part, range) = unit.locate(span, encoding)?;
    Some(lsp::Location { uri: part.uri.clone(), range })
}

/// Edits of one document of a unit. `None` when they belong to several documents or cross the border of one.
pub(crate) fn edits<'a>(
    unit: &'a Unit,
    edits: &[Edit],
    encoding: Encoding,
) -> Option<(&'a UnitDocument, Vec<lsp::TextEdit>)> {
    let mut document: Option<&UnitDocument> = None;
    let mut out = Vec::with_capacity(edits.len());
    for edit in edits {
        let (part, range) = unit.locate_within(edit.span, encoding)?;
        if document.is_some_and(|document| document.uri != part.uri) {
            return None;
        }
        document = Some(part);
        out.push(lsp::TextEdit { range, new_text: edit.text.clone() });
    }
    Some((document?, out))
}

/// A workspace edit of one version of a document; it names the version where the client supports that.
pub(crate) fn workspace_edit(
    client: &ClientFeatures,
    uri: &lsp::Uri,
    version: i32,
    edits: Vec<lsp::TextEdit>,
) -> lsp::WorkspaceEdit {
    if client.versioned_edits {
        let edits = edits.into_iter().map(lsp::Edit::TextEdit).collect();
        lsp::WorkspaceEdit { document_changes: Some(vec![document_edit(uri, version, edits)]), ..Default::default() }
    } else {
        lsp::WorkspaceEdit { changes: Some(HashMap::from([(uri.clone(), edits)])), ..Default::default() }
    }
}

/// The same under an annotation that the user must confirm, with the job's name as its identifier.
pub(crate) fn annotated_edit(
    uri: &lsp::Uri,
    version: i32,
    edits: Vec<lsp::TextEdit>,
    label: &str,
    description: String,
    job: &str,
) -> lsp::WorkspaceEdit {
    let annotation_id = job.to_owned();
    let annotation = lsp::ChangeAnnotation {
        label: label.to_owned(),
        needs_confirmation: Some(true),
        description: Some(description),
    };
    let edits = edits
        .into_iter()
        .map(|text_edit| {
            lsp::Edit::AnnotatedTextEdit(lsp::AnnotatedTextEdit { annotation_id: annotation_id.clone(), text_edit })
        })
        .collect();
    lsp::WorkspaceEdit {
        changes: None,
        document_changes: Some(vec![document_edit(uri, version, edits)]),
        change_annotations: Some(HashMap::from([(annotation_id, annotation)])),
    }
}

fn document_edit(uri: &lsp::Uri, version: i32, edits: Vec<lsp::Edit>) -> lsp::DocumentChange {
    lsp::DocumentChange::TextDocumentEdit(lsp::TextDocumentEdit {
        text_document: lsp::OptionalVersionedTextDocumentIdentifier {
            version: Some(version),
            text_document_identifier: lsp::TextDocumentIdentifier { uri: uri.clone() },
        },
        edits,
    })
}
