"""The command that runs the models of a file for real: what it finds is shown until the next edit; it may be given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp.editor import Editor

ROOT = Path(__file__).resolve().parent.parent.parent
IGNORED = (ROOT / "fixtures" / "deep" / "ignored.py").read_text(encoding="utf-8")


async def codes(editor: Editor, uri: str) -> list[Any]:
    await editor.idle()
    return sorted(str(each.code) for each in await editor.diagnostics(uri))


@pytest.mark.core
async def test_what_depends_on_what_is_shown_until_the_next_edit(editor: Editor) -> None:
    uri = editor.open("deep/ignored.py", IGNORED)
    before = await codes(editor, uri)
    assert "ignored-input" not in before
    answer = await editor.execute("shapelens.examine", uri)
    assert (answer["message"], answer["found"]) == ("3 findings.", 3)
    found = {"ignored-input", "batch-mix"}
    await editor.until(lambda: {str(each.code) for each in editor.published[uri].diagnostics} > found)
    assert any("mask is never used" in each.message for each in editor.published[uri].diagnostics)
    editor.replace(uri, "nn.Linear(8, 10)  #>", "nn.Linear(8, 11)  #>")
    assert await codes(editor, uri) == before
    assert (await editor.execute("shapelens.examine", uri))["found"] == 3


async def test_an_edit_and_the_client_may_end_it(editor: Editor) -> None:
    uri = editor.open("deep/ended.py", IGNORED)
    await editor.diagnostics(uri)
    asked = asyncio.ensure_future(editor.execute("shapelens.examine", uri))
    await asyncio.sleep(0.5)
    editor.replace(uri, "nn.Linear(8, 10)  #>", "nn.Linear(8, 12)  #>")
    assert (await asked)["found"] is None
    before = await codes(editor, uri)
    asked = asyncio.ensure_future(editor.execute("shapelens.examine", uri))
    await asyncio.sleep(0.5)
    (number,) = editor.client.protocol._request_futures
    editor.client.protocol.notify("$/cancelRequest", types.CancelParams(number))
    with pytest.raises(JsonRpcException):
        await asked
    assert await codes(editor, uri) == before
    assert await editor.execute("shapelens.examine", "file:///nowhere.py") is None
