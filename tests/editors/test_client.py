"""The server driven by pytest-lsp, as three editors say that they are: a finding, the page of its rule, its fix.

WARPSMITH names the server, KERNEL a file with one mistake.
"""

import asyncio
import os
import pathlib

import attrs
import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

FILE = pathlib.Path(os.environ["KERNEL"])
TEXT = FILE.read_text()
LINE = next(number for number, line in enumerate(TEXT.splitlines()) if "tl.float32(n)" in line)


def make_client():
    """A client that does what the editors do, and pytest-lsp does not, though it says so in their name."""
    client = make_test_lsp_client()
    for method in (
        types.CLIENT_REGISTER_CAPABILITY,
        types.WORKSPACE_INLAY_HINT_REFRESH,
        types.WORKSPACE_CODE_LENS_REFRESH,
    ):
        client.feature(method)(lambda *_: None)

    # lsprotocol 2025.0.0 has no hook for the filter of notebooks where it may be absent.
    converter = client.protocol._converter
    filters = attrs.fields(types.NotebookDocumentFilterWithCells).notebook.type

    def structure(value, _):
        if value is None or isinstance(value, str):
            return value
        if "notebookType" in value:
            return converter.structure(value, types.NotebookDocumentFilterNotebookType)
        if "scheme" in value:
            return converter.structure(value, types.NotebookDocumentFilterScheme)
        return converter.structure(value, types.NotebookDocumentFilterPattern)

    converter.register_structure_hook(filters, structure)
    return client


@pytest_lsp.fixture(
    params=["visual_studio_code", "neovim", "emacs"],
    config=ClientServerConfig(server_command=[os.environ["WARPSMITH"], "serve"], client_factory=make_client),
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


def changed(client, changes):
    """The text with changes, whose columns count what was agreed."""
    is_utf8 = client.answer.capabilities.position_encoding == types.PositionEncodingKind.Utf8
    encoding = "utf-8" if is_utf8 else "utf-16-le"
    lines = [line.encode(encoding) for line in TEXT.splitlines(keepends=True)]
    width = 1 if is_utf8 else 2

    def offset(place):
        return sum(map(len, lines[: place.line])) + place.character * width

    text = b"".join(lines)
    for change in sorted(changes, key=lambda change: offset(change.range.start), reverse=True):
        text = text[: offset(change.range.start)] + change.new_text.encode(encoding) + text[offset(change.range.end) :]
    return text.decode(encoding)


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
    assert changed(client, changes) == TEXT.replace("tl.float32(n)", "tl.cast(n, tl.float32)")
    assert any(action.title == "Ignore L002 on this line" for action in actions)
