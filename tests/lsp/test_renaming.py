"""A dim is renamed in the directive, the comments and the annotations of its class."""

from __future__ import annotations

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp.editor import Editor

TEXT = """from jaxtyping import Float
import torch
from torch import Tensor, nn


# shapelens: Net()(f32[B:2, T:7, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Float[Tensor, "B T 8"]) -> Float[Tensor, "B*T 4"]:
        x = self.fc(x)  # é (B, T, 4)
        T = x.shape[1]
        y = x.view(-1, 4)  # (B*T, 4), not call(T, 1)
        return y


# shapelens: Other()(f32[B:2, T:7, 8])
class Other(nn.Module):
    def forward(self, x):
        return x + 1  # (B, T, 8)
"""
RENAMED = (
    TEXT.replace("f32[B:2, T:7, 8]", "f32[B:2, Steps:7, 8]", 1)
    .replace('"B T 8"', '"B Steps 8"')
    .replace('"B*T 4"', '"B*Steps 4"')
    .replace("(B, T, 4)", "(B, Steps, 4)")
    .replace("(B*T, 4)", "(B*Steps, 4)")
)


def _at(editor: Editor, uri: str, text: str, inside: int) -> types.Position:
    return editor.position(uri, TEXT.index(text) + inside)


@pytest.mark.parametrize(("text", "inside"), [("T:7", 0), ("B T 8", 2), ("(B, T, 4)", 4), ("(B*T, 4)", 3)])
async def test_a_dim_is_renamed_wherever_its_class_speaks_of_it(editor: Editor, text: str, inside: int) -> None:
    uri = editor.open("renaming/net.py", TEXT)
    document, place = types.TextDocumentIdentifier(uri), _at(editor, uri, text, inside)
    prepared = await editor.client.text_document_prepare_rename_async(types.PrepareRenameParams(document, place))
    assert isinstance(prepared, types.Range) and editor.text_of(uri, prepared) == "T"
    edit = await editor.client.text_document_rename_async(types.RenameParams(document, place, "Steps"))
    assert edit is not None
    editor.apply(edit)
    assert editor.texts[uri] == RENAMED
    editor.close(uri)


async def test_what_is_no_dim_is_not_renamed_nor_two_dims_made_one(editor: Editor) -> None:
    uri = editor.open("renaming/other.py", TEXT)
    document = types.TextDocumentIdentifier(uri)
    for text in ("T = x.shape", "class Net", "call(T"):
        place = _at(editor, uri, text, text.index("T") if "T" in text else 7)
        assert await editor.client.text_document_prepare_rename_async(types.PrepareRenameParams(document, place)) is None
        assert await editor.client.text_document_rename_async(types.RenameParams(document, place, "Steps")) is None
    for name, words in (("B", "B is another dim here"), ("2x", "2x is no name of a dim")):
        with pytest.raises(JsonRpcException, match=words):
            await editor.client.text_document_rename_async(types.RenameParams(document, _at(editor, uri, "T:7", 0), name))
    editor.close(uri)
