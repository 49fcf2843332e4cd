"""What user code calls itself is text in hovers: no link, picture or HTML comes of it."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from lsp.editor import Editor

TEXT = """\
import torch
from torch import nn


class Evil(nn.Module):
    def extra_repr(self):
        return "[click](command:x) ![x](https://example.com/x.png) <img src=x> `a` **b**"

    def forward(self, x):
        return x


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.evil = Evil()
        self.register_parameter("![x](command:y)", nn.Parameter(torch.zeros(2)))

    def forward(self, x):
        x = {"[k](command:x) `": x, "![p](https://example.com/y.png)": x}
        return self.evil(x["[k](command:x) `"]), x


# shapelens: Fails()(f32[B:2, 8])
class Fails(nn.Module):
    def forward(self, x):
        raise RuntimeError("[click](command:x) ![p](https://example.com/x.png) <b>bold</b>")
"""


async def test_it_stays_text(editor: Editor) -> None:
    uri = editor.open("evil.py", TEXT)
    await editor.hints_when(uri, lambda hints: any("[k]" in hint for hint in hints.values()))
    for word in ("= Evil()", "Fails(nn"):
        hover = await editor.hover(uri, word)
        assert hover is not None, word
        rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(hover)
        assert not re.findall(r"<(?:a|img|b)\b", rendered), rendered
