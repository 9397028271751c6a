//! The capabilities of the client, as named flags, and those that this server announces.

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::Encoding;

use super::{
    code_action, completion, inspect, optimize, record, report, semantic_tokens, signature_help, skill_memory, survey,
};

/// The capabilities of the client.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientFeatures {
    /// It pulls diagnostics; then none are pushed.
    pub(super) pulls_diagnostics: bool,
    /// It accepts the request to pull diagnostics again.
    pub(super) refreshes_diagnostics: bool,
    /// It shows locations that explain a diagnostic.
    pub(super) related_information: bool,
    /// It sends a diagnostic's data back with a request for code actions.
    pub(super) diagnostic_data: bool,
    /// It marks unnecessary and deprecated code.
    pub(super) diagnostic_tags: bool,
    /// It shows the code of a diagnostic as a link.
    pub(super) code_description: bool,
    /// It accepts code actions, not only commands.
    pub(super) code_actions: bool,
    /// It shows disabled actions, with the reason.
    pub(super) disabled_actions: bool,
    /// Its workspace edits name the document version that they are for.
    pub(super) versioned_edits: bool,
    /// It asks the user before it applies an annotated edit.
    pub(super) annotated_edits: bool,
    /// It applies edits for the server.
    pub(super) applies_edits: bool,
    /// It answers requests for its settings.
    pub(super) configuration: bool,
    /// It allows the server to register for changes of settings.
    pub(super) registers_configuration: bool,
    /// It allows the server to register for changes of files.
    pub(super) registers_watched_files: bool,
    /// It shows the progress of work that the server starts.
    pub(super) progress: bool,
    /// It opens documents for the server.
    pub(super) shows_documents: bool,
    /// It renders Markdown in a hover.
    pub(super) markdown: bool,
    /// It supports characters that commit a completion.
    pub(super) commit_characters: bool,
    /// It lets the user choose whether a completion replaces the whole word.
    pub(super) insert_or_replace: bool,
    /// It shows the parameters beside a completion's name.
    pub(super) completion_label_details: bool,
    /// It accepts the offsets of parameters within a signature's label.
    pub(super) label_offsets: bool,
    /// It accepts a signature without an active parameter.
    pub(super) no_active_parameter: bool,
    /// It shows document symbols as a tree.
    pub(super) symbol_trees: bool,
    /// It accepts the request to pull inlay hints again.
    pub(super) refreshes_hints: bool,
    /// It accepts the notification `warpsmith/status`.
    pub(super) takes_status: bool,
    /// It accepts the notification `warpsmith/search`.
    pub(super) takes_search: bool,
    /// It answers `warpsmith/model`.
    pub(super) takes_model: bool,
    /// It accepts the request to pull code lenses again.
    pub(super) refreshes_lenses: bool,
}

impl ClientFeatures {
    /// Reads the flags from the capabilities that the client announces.
    pub(super) fn new(capabilities: &lsp::ClientCapabilities) -> Self {
        let workspace = capabilities.workspace.clone().unwrap_or_default();
        let text_document = capabilities.text_document.clone().unwrap_or_default();
        let window = capabilities.window.unwrap_or_default();
        let edit = workspace.workspace_edit.unwrap_or_default();
        let action = text_document.code_action.unwrap_or_default();
        let pulls_diagnostics = text_document.diagnostic.is_some();
        let diagnostics = match (text_document.diagnostic, text_document.publish_diagnostics) {
            // Before LSP 3.18 the content of a diagnostic was announced only for pushed ones.
            (Some(pull), None) => pull.diagnostics_capabilities,
            (_, push) => push.unwrap_or_default().diagnostics_capabilities,
        };
        let versioned_edits = edit.document_changes == Some(true);
        let completion = text_document.completion.unwrap_or_default().completion_item.unwrap_or_default();
        let signature = text_document.signature_help.unwrap_or_default().signature_information.unwrap_or_default();
        let symbols = text_document.document_symbol.unwrap_or_default();
        let formats = text_document.hover.unwrap_or_default().content_format.unwrap_or_default();
        Self {
            pulls_diagnostics,
            refreshes_diagnostics: workspace.diagnostics.unwrap_or_default().refresh_support == Some(true),
            related_information: diagnostics.related_information == Some(true),
            diagnostic_data: diagnostics.data_support == Some(true),
            diagnostic_tags: diagnostics.tag_support.is_some(),
            code_description: diagnostics.code_description_support == Some(true),
            code_actions: action.code_action_literal_support.is_some(),
            disabled_actions: action.disabled_support == Some(true),
            versioned_edits,
            // Annotations exist only in versioned edits; Neovim 0.12 announces annotations and omits versioned
            // edits.
            annotated_edits: edit.change_annotation_support.is_some(),
            applies_edits: workspace.apply_edit == Some(true),
            configuration: workspace.configuration == Some(true),
            registers_configuration: workspace.did_change_configuration.unwrap_or_default().dynamic_registration
                == Some(true),
            registers_watched_files: workspace.did_change_watched_files.unwrap_or_default().dynamic_registration
                == Some(true),
            progress: window.work_done_progress == Some(true),
            shows_documents: window.show_document.is_some_and(|show| show.support),
            markdown: formats.contains(&lsp::MarkupKind::Markdown),
            commit_characters: completion.commit_characters_support == Some(true),
            insert_or_replace: completion.insert_replace_support == Some(true),
            completion_label_details: completion.label_details_support == Some(true),
            label_offsets: signature.parameter_information.unwrap_or_default().label_offset_support == Some(true),
            no_active_parameter: signature.no_active_parameter_support == Some(true),
            symbol_trees: symbols.hierarchical_document_symbol_support == Some(true),
            takes_search: capabilities.experimental.as_ref().is_some_and(|own| own["warpsmithSearch"] == true),
            takes_model: capabilities.experimental.as_ref().is_some_and(|own| own["warpsmithModel"] == true),
            takes_status: capabilities.experimental.as_ref().is_some_and(|own| own["warpsmithStatus"] == true),
            refreshes_hints: workspace.inlay_hint.unwrap_or_default().refresh_support == Some(true),
            refreshes_lenses: workspace.code_lens.unwrap_or_default().refresh_support == Some(true),
        }
    }
}

fn characters(characters: &[&str]) -> Vec<String> {
    characters.iter().map(|character| (*character).to_owned()).collect()
}

/// The unit of columns: bytes when the client supports UTF-8, else UTF-16 code units, which every client supports.
pub(super) fn negotiate_encoding(capabilities: &lsp::ClientCapabilities) -> Encoding {
    let offered = capabilities.general.as_ref().and_then(|general| general.position_encodings.as_deref());
    if offered.is_some_and(|offered| offered.contains(&lsp::PositionEncodingKind::UTF8)) {
        Encoding::Utf8
    } else {
        Encoding::Utf16
    }
}

/// The answer to `initialize`.
pub(super) fn answer(client: &ClientFeatures, encoding: Encoding) -> lsp::InitializeResult {
    let capabilities = lsp::ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => lsp::PositionEncodingKind::UTF8,
            Encoding::Utf16 | Encoding::Utf32 => lsp::PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(lsp::TextDocumentSync::Options(lsp::TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(lsp::TextDocumentSyncKind::Incremental),
            save: Some(lsp::Save::SaveOptions(lsp::SaveOptions { include_text: Some(false) })),
            ..lsp::TextDocumentSyncOptions::default()
        })),
        notebook_document_sync: Some(lsp::NotebookDocumentSync::Options(lsp::NotebookDocumentSyncOptions {
            notebook_selector: vec![lsp::NotebookSelector::NotebookDocumentFilterWithCells(
                lsp::NotebookDocumentFilterWithCells {
                    notebook: None,
                    cells: vec![lsp::NotebookCellLanguage { language: "python".to_owned() }],
                },
            )],
            save: Some(true),
        })),
        hover_provider: Some(true.into()),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: Some(characters(&completion::TRIGGERS)),
            resolve_provider: Some(false),
            ..lsp::CompletionOptions::default()
        }),
        signature_help_provider: Some(lsp::SignatureHelpOptions {
            trigger_characters: Some(characters(&signature_help::TRIGGERS)),
            retrigger_characters: Some(characters(&signature_help::RETRIGGERS)),
            ..lsp::SignatureHelpOptions::default()
        }),
        definition_provider: Some(true.into()),
        references_provider: Some(true.into()),
        document_highlight_provider: Some(true.into()),
        document_symbol_provider: Some(true.into()),
        semantic_tokens_provider: Some(lsp::SemanticTokensProvider::SemanticTokensOptions(
            lsp::SemanticTokensOptions {
                legend: semantic_tokens::legend(),
                range: Some(true.into()),
                full: Some(true.into()),
                ..lsp::SemanticTokensOptions::default()
            },
        )),
        inlay_hint_provider: Some(true.into()),
        code_lens_provider: Some(lsp::CodeLensOptions {
            resolve_provider: Some(false),
            ..lsp::CodeLensOptions::default()
        }),
        code_action_provider: Some(lsp::CodeActionProvider::CodeActionOptions(lsp::CodeActionOptions {
            code_action_kinds: Some(code_action::kinds()),
            ..lsp::CodeActionOptions::default()
        })),
        execute_command_provider: Some(lsp::ExecuteCommandOptions {
            commands: [
                optimize::OPTIMIZE,
                optimize::CANCEL,
                survey::RESOURCES,
                report::REPORT,
                inspect::INSPECT,
                record::RECORD,
                skill_memory::MUTE,
                skill_memory::DISPUTE,
                skill_memory::REPRODUCER,
            ]
            .map(str::to_owned)
            .to_vec(),
            ..lsp::ExecuteCommandOptions::default()
        }),
        diagnostic_provider: client.pulls_diagnostics.then(|| {
            lsp::DiagnosticProvider::DiagnosticOptions(lsp::DiagnosticOptions {
                identifier: Some("warpsmith".to_owned()),
                ..lsp::DiagnosticOptions::default()
            })
        }),
        workspace: Some(lsp::WorkspaceOptions {
            workspace_folders: Some(lsp::WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(lsp::ChangeNotifications::Bool(true)),
            }),
            ..lsp::WorkspaceOptions::default()
        }),
        ..lsp::ServerCapabilities::default()
    };
    let info = lsp::ServerInfo { name: "warpsmith".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) };
    lsp::InitializeResult { capabilities, server_info: Some(info) }
}
