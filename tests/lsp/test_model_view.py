"""A model as a whole, as a client asks for it: from the newest analysis, after an edit, and where there is nothing to show."""

from __future__ import annotations

import re
from typing import Any

import jsonschema

from lsp.editor import Editor
from shapelens.report.model_document import schema

NET = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 32)
        self.second = nn.Linear(32, width)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(8) for _ in range(3)])
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.blocks(x))


class Alone(nn.Module):
    def __init__(self, mystery):
        raise ValueError("no")
"""


async def test_a_model_is_shown_and_follows_edits(editor: Editor) -> None:
    """The tree, the class that is a part of another one, the message where something fails, sizes that the user has chosen."""
    uri = editor.open("net.py", NET)
    await editor.hints_when(uri)

    async def model(name: str, line: int = 1, **options: Any) -> Any:
        return await editor.execute("shapelens.model", uri, name, line, options)

    shown = (await model("Net"))["model"]
    jsonschema.validate(shown, schema())
    (net,) = shown["tree"]
    assert [row["path"] for row in net["rows"]] == ["blocks", "head"]
    assert net["outputs"] == ["[B, 4]"]
    assert (await model("", line=10))["model"]["path"] == "blocks.0"
    assert (await model("Net", sizes={"B": 7}))["model"]["tree"][0]["sizes"] == ["[7, 4]"]
    page = (await model("Net", format="html"))["text"]
    assert '<script id="model" type="application/json">' in page
    assert str(editor.root) not in page
    editor.replace(uri, "nn.Linear(8, 4)", "nn.Linear(9, 4)")
    assert await editor.diagnostics(uri)
    (net,) = (await model("Net"))["model"]["tree"]
    head = net["rows"][1]
    assert head["failure"]["code"] == "linear-in-features"
    assert head["outputs"] == ["[B, 4]"]
    assert not net["rows"][0]["failure"]
    assert "no example" in (await model("Alone"))["message"]
    empty = editor.open("empty.py", "x = 1")
    await editor.diagnostics(empty)
    assert "ShapeLens has not seen" in (await editor.execute("shapelens.model", empty, "", 1, {}))["message"]


async def test_the_model_comes_before_its_memory_and_memory_follows_a_size(editor: Editor) -> None:
    """What comes first has names and no memory; the memory with another size is what a run with it says, at once from the second on."""
    uri = editor.open("net.py", NET)
    await editor.hints_when(uri)

    async def ask(**options: Any) -> Any:
        return await editor.execute("shapelens.model", uri, "Net", 1, options)

    first = (await ask(first=True))["model"]
    jsonschema.validate(first, schema())
    assert not first["complete"]
    assert first["tree"][0]["outputs"] == ["[B, 4]"]
    assert first["memory"]["training"] is None
    whole = (await ask())["model"]
    assert whole["complete"]
    assert whole["tree"][0]["flops"] == 2 * 2 * (3 * 2 * 8 * 32 + 8 * 4)
    for size in (3, 1000):
        run = (await ask(sizes={"B": size}))["model"]["memory"]
        said = await ask(sizes={"B": size}, memory="B", limit=1 << 30)
        assert said["memory"]["training"] == run["training"]
        assert said["memory"]["inference"] is None
    assert (await ask(memory="B", limit=24 << 30))["largest"] > said["largest"]  # More than 31 bits.
    fits = (await ask(sizes={"B": said["largest"]}))["model"]["memory"]["training"]["peak"]
    over = (await ask(sizes={"B": said["largest"] + 1}))["model"]["memory"]["training"]["peak"]
    assert fits <= 1 << 30 < over


BRANCHING = """
import torch
from torch import nn


# shapelens: Branching()(f32[B:2, 8])
class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 1024)
        self.second = nn.Linear(1024, 4)

    def forward(self, x):
        x = self.first(x)
        if x.shape[0] >= 64:
            x = torch.sin(torch.cos(torch.tanh(x)))
        return self.second(x)
"""


async def test_a_model_that_goes_another_way_with_large_sizes_has_no_formula(editor: Editor) -> None:
    """The largest size that fits is that of the way that large sizes go."""
    uri = editor.open("branching.py", BRANCHING)
    await editor.hints_when(uri)

    async def ask(size: int, **options: Any) -> Any:
        return await editor.execute("shapelens.model", uri, "Branching", 1, {"sizes": {"B": size}, **options})

    limit = 8 << 20
    largest = (await ask(2, memory="B", limit=limit))["largest"]
    assert largest > 64
    peaks = [(await ask(size))["model"]["memory"]["training"]["peak"] for size in (largest, largest + 1)]
    assert peaks[0] <= limit < peaks[1]
    assert (await ask(80, memory="B"))["memory"]["training"] == (await ask(80))["model"]["memory"]["training"]


async def test_a_class_says_what_fits_the_device(editor: Editor) -> None:
    """The lens where the settings name the memory of a device, also after an edit; without it, the hover alone says the memory."""
    uri = editor.open("fits.py", NET)
    await editor.hints_when(uri)
    hovered = await editor.when(lambda: editor.hover(uri, "s Net("), lambda text: "training step" in str(text))
    assert "AdamW" in str(hovered) and "fits" not in str(hovered)
    assert "training step" not in str(await editor.lenses(uri))
    try:
        editor.configure({"deviceMemory": 0.001})
        before = await editor.when(lambda: editor.lenses(uri), lambda lenses: "fits 1.02 MB" in str(lenses))
        editor.replace(uri, "nn.Linear(width, 32)", "nn.Linear(width, 16)")
        editor.replace(uri, "nn.Linear(32, width)", "nn.Linear(16, width)")
        after = await editor.when(lambda: editor.lenses(uri), lambda lenses: "fits 1.02 MB" in str(lenses) and lenses != before)
        (small,), (large,) = (re.findall(r"B ≤ (\d+) fits", str(found)) for found in (before, after))
        assert 100 < int(small) < int(large)
    finally:
        editor.configure({})
