"""Many documents at once, changes on disk below them, and a client that says things in the wrong order."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from lsprotocol import types

from lsp.editor import Editor

NET = """import torch
from torch import nn
{imported}

# shapelens: Net{number}()(f32[B:2, 8])
class Net{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, {size})

    def forward(self, x):
        y = self.fc(x)
        return y
"""
MANY = 50
CHANGED = 200


def net(number: int, size: int | str = 6, imported: str = "") -> str:
    return NET.format(number=number, size=size, imported=imported)


async def shows(editor: Editor, uri: str, label: str) -> None:
    await editor.hints_when(uri, lambda hints: label in hints.values())


@pytest.mark.slow("fifty files run twice")
async def test_fifty_files_are_open_closed_and_open_again(editor: Editor) -> None:
    uris = [editor.open(f"many/net{number}.py", net(number)) for number in range(MANY)]
    for uri in uris:
        await shows(editor, uri, "→ [B, 6]")
    for uri in uris[::2]:
        editor.close(uri)
    again = {number: editor.open(f"many/net{number}.py", net(number, 7)) for number in range(0, MANY, 2)}
    for uri in again.values():
        await shows(editor, uri, "→ [B, 7]")
    for uri in uris[1::2]:
        assert "→ [B, 6]" in (await editor.hints(uri)).values()


async def test_a_client_that_says_things_in_the_wrong_order(editor: Editor) -> None:
    uri = editor.open("many/order.py", net(0))
    await shows(editor, uri, "→ [B, 6]")
    said = len(editor.log)
    client = editor.client
    for version in (7, 3, 3, -1):  # The texts follow each other as they come.
        changed = types.TextDocumentContentChangeWholeDocument(net(0, 8))
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(uri=uri, version=version), [changed])
        )
    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    closed = types.TextDocumentIdentifier("file:///not/open.py")
    nothing = await client.text_document_inlay_hint_async(types.InlayHintParams(closed, whole))
    assert not nothing
    asked = [asyncio.ensure_future(client.text_document_code_lens_async(types.CodeLensParams(closed))) for _ in range(20)]
    asked += [asyncio.ensure_future(client.text_document_code_lens_async(types.CodeLensParams(types.TextDocumentIdentifier(uri))))]
    for number in range(40):
        client.cancel_request(types.CancelParams(number))
    client.text_document_did_close(types.DidCloseTextDocumentParams(closed))
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(uri=closed.uri, version=2), [types.TextDocumentContentChangeWholeDocument("x = 1")]
        )
    )
    for each in asked:
        with contextlib.suppress(Exception):  # Cancelled, which is an answer.
            await each
    editor.set_text(uri, net(0, 9))
    await shows(editor, uri, "→ [B, 9]")
    assert not [line for line in editor.log[said:] if "Traceback" in line]


async def test_another_branch_is_checked_out_below_open_files(editor: Editor) -> None:
    folder = editor.root / "many"
    folder.mkdir(exist_ok=True)
    for number in range(CHANGED):
        (folder / f"size{number}.py").write_text("SIZE = 5\n")
    uris = [editor.open(f"many/user{number}.py", net(number, "SIZE", f"from size{number} import SIZE")) for number in range(0, CHANGED, 40)]
    for uri in uris:
        await shows(editor, uri, "→ [B, 5]")
    for number in range(CHANGED):
        (folder / f"size{number}.py").write_text("SIZE = 12\n")
    events = [types.FileEvent((folder / f"size{number}.py").as_uri(), types.FileChangeType.Changed) for number in range(CHANGED)]
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))
    for uri in uris:
        await shows(editor, uri, "→ [B, 12]")
