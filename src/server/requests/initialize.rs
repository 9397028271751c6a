//! The request `initialize`: the client and the server exchange their capabilities.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use model::syntax::Encoding;

use super::{code_action, completion, execute_command, semantic_tokens, signature_help};
use crate::server::client_features::{ClientFeatures, negotiate_encoding};
use crate::server::owner::Owner;
use crate::server::{parent_process, settings};

/// Reads what the client can do, its settings and its folders.
pub(crate) fn handle(owner: &mut Owner, params: lsp::InitializeParams) -> Result<lsp::InitializeResult> {
    owner.capabilities = ClientFeatures::new(&params.capabilities);
    owner.encoding = negotiate_encoding(&params.capabilities);
    let options = settings::options(params.initialization_options);
    owner.trusted = options.trusted;
    // It is read once the client has this answer.
    owner.waits_for_memory = true;
    owner.capabilities.takes_status |= options.status;
    owner.capabilities.takes_search |= options.search;
    owner.capabilities.takes_model |= options.language_model;
    owner.settings.set_initial(options.settings, options.interpreter);
    owner.folders = match params.workspace_folders_initialize_params.workspace_folders {
        Some(lsp::WorkspaceFolders::WorkspaceFolderList(folders)) => {
            folders.into_iter().map(|folder| folder.uri).collect()
        }
        #[expect(deprecated, reason = "older clients have only this")]
        Some(lsp::WorkspaceFolders::Null) | None => params.root_uri.into_iter().collect(),
    };
    // From now on: a client sends documents only after its settings can be asked for.
    owner.waits_for_settings = owner.capabilities.configuration;
    if let Some(id) = params.process_id {
        parent_process::watch_parent(id);
    }
    tracing::info!(client = ?params.client_info, encoding = ?owner.encoding, "a client is there");
    Ok(answer(&owner.capabilities, owner.encoding))
}

/// The capabilities of the server.
fn answer(client: &ClientFeatures, encoding: Encoding) -> lsp::InitializeResult {
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
            commands: execute_command::COMMANDS.map(str::to_owned).to_vec(),
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

fn characters(characters: &[&str]) -> Vec<String> {
    characters.iter().map(|character| (*character).to_owned()).collect()
}
