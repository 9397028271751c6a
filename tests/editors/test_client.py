"""The server driven by pytest-lsp, as three editors say that they are: a finding, the page of its rule, its fix.

WARPSMITH names the server, KERNEL a file with one mistake.
"""

import asyncio
import os
import pathlib

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

FILE = pathlib.Path(os.environ["KERNEL"])
TEXT = FILE.read_text()
LINE = next(number for number, line in enumerate(TEXT.splitlines()) if "tl.float32(n)" in line)


@pytest_lsp.fixture(
    params=["visual_studio_code", "neovim", "emacs"],
    config=ClientServerConfig(server_command=[os.environ["WARPSMITH"], "serve"]),
)
async def client(request, lsp_client: LanguageClient):
    parameters = types.InitializeParams(
        capabilities=client_capabilities(request.param), root_uri=FILE.parent.as_uri()
    )
    lsp_client.answer = await lsp_client.initialize_session(parameters)
    yield
    await lsp_client.shutdown_session()


def column(client, needle):
    """The column of a place in the line with the mistake, counted as it was agreed."""
    before = TEXT.splitlines()[LINE].split(needle)[0]
    if client.answer.capabilities.position_encoding == types.PositionEncodingKind.Utf8:
        return len(before.encode())
    return len(before.encode("utf-16-le")) // 2


async def findings(client, uri):
    """The findings of the file: asked for where that was agreed, else as they come."""
    if client.answer.capabilities.diagnostic_provider:
        asked = types.DocumentDiagnosticParams(text_document=types.TextDocumentIdentifier(uri=uri))
        return (await client.text_document_diagnostic_async(asked)).items
    while not client.diagnostics.get(uri):
        await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return client.diagnostics[uri]


@pytest.mark.asyncio
async def test_a_mistake_is_found_explained_and_mended(client: LanguageClient):
    uri = FILE.as_uri()
    document = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=TEXT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=document))
    [finding] = await asyncio.wait_for(findings(client, uri), 60)
    assert finding.code == "L002"
    assert finding.range.start == types.Position(line=LINE, character=column(client, "tl.float32"))

    identifier = types.TextDocumentIdentifier(uri=uri)
    position = types.Position(line=LINE, character=column(client, "float32"))
    hover = await client.text_document_hover_async(types.HoverParams(text_document=identifier, position=position))
    assert "dtype-called" in hover.contents.value

    context = types.CodeActionContext(diagnostics=[finding], only=[types.CodeActionKind.QuickFix])
    asked = types.CodeActionParams(text_document=identifier, range=finding.range, context=context)
    actions = await client.text_document_code_action_async(asked)
    [fix] = [action for action in actions if action.is_preferred]
    changes = fix.edit.document_changes[0].edits if fix.edit.document_changes else fix.edit.changes[uri]
    assert "".join(change.new_text for change in changes).count("tl.cast(n, tl.float32)") == 1
    assert any(action.title == "Ignore L002 on this line" for action in actions)
