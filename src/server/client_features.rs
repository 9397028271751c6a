//! The capabilities of the client, as named flags.

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::Encoding;

/// The capabilities of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientFeatures {
    /// It pulls diagnostics; then none are pushed.
    pub(crate) pulls_diagnostics: bool,
    /// It accepts the request to pull diagnostics again.
    pub(crate) refreshes_diagnostics: bool,
    /// It shows locations that explain a diagnostic.
    pub(crate) related_information: bool,
    /// It sends a diagnostic's data back with a request for code actions.
    pub(crate) diagnostic_data: bool,
    /// It marks unnecessary and deprecated code.
    pub(crate) diagnostic_tags: bool,
    /// It shows the code of a diagnostic as a link.
    pub(crate) code_description: bool,
    /// It accepts code actions, not only commands.
    pub(crate) code_actions: bool,
    /// It shows disabled actions, with the reason.
    pub(crate) disabled_actions: bool,
    /// Its workspace edits name the document version that they are for.
    pub(crate) versioned_edits: bool,
    /// It asks the user before it applies an annotated edit.
    pub(crate) annotated_edits: bool,
    /// It applies edits for the server.
    pub(crate) applies_edits: bool,
    /// It answers requests for its settings.
    pub(crate) configuration: bool,
    /// It allows the server to register for changes of settings.
    pub(crate) registers_configuration: bool,
    /// It allows the server to register for changes of files.
    pub(crate) registers_watched_files: bool,
    /// It shows the progress of work that the server starts.
    pub(crate) progress: bool,
    /// It opens documents for the server.
    pub(crate) shows_documents: bool,
    /// It renders Markdown in a hover.
    pub(crate) markdown: bool,
    /// It supports characters that commit a completion.
    pub(crate) commit_characters: bool,
    /// It lets the user choose whether a completion replaces the whole word.
    pub(crate) insert_or_replace: bool,
    /// It shows the parameters beside a completion's name.
    pub(crate) completion_label_details: bool,
    /// It accepts the offsets of parameters within a signature's label.
    pub(crate) label_offsets: bool,
    /// It accepts a signature without an active parameter.
    pub(crate) no_active_parameter: bool,
    /// It shows document symbols as a tree.
    pub(crate) symbol_trees: bool,
    /// It accepts the request to pull inlay hints again.
    pub(crate) refreshes_hints: bool,
    /// It accepts the notification `warpsmith/status`.
    pub(crate) takes_status: bool,
    /// It accepts the notification `warpsmith/search`.
    pub(crate) takes_search: bool,
    /// It answers `warpsmith/model`.
    pub(crate) takes_model: bool,
    /// It accepts the request to pull code lenses again.
    pub(crate) refreshes_lenses: bool,
}

impl ClientFeatures {
    /// Reads the flags from the capabilities that the client announces.
    pub(crate) fn new(capabilities: &lsp::ClientCapabilities) -> Self {
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

/// The unit of columns: bytes when the client supports UTF-8, else UTF-16 code units, which every client supports.
pub(crate) fn negotiate_encoding(capabilities: &lsp::ClientCapabilities) -> Encoding {
    let offered = capabilities.general.as_ref().and_then(|general| general.position_encodings.as_deref());
    if offered.is_some_and(|offered| offered.contains(&lsp::PositionEncodingKind::UTF8)) {
        Encoding::Utf8
    } else {
        Encoding::Utf16
    }
}
