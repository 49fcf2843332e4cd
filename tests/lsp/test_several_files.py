"""Files that are seen from the examples of other files, while both are being edited."""

from __future__ import annotations

import pytest
import torch
from lsprotocol import types

from lsp.editor import Editor

BLOCKS = """\
from torch import nn
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, 16)
        self.out = nn.Linear(16, 12)
    def forward(self, x):
        return self.out(self.fc(x))
"""
MODEL = """\
from torch import nn
from {module} import Block
# shapelens: Model()(f32[B:2, 8])
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(8)
        self.head = nn.Linear(12, 4)
    def forward(self, x):
        return self.head(self.block(x))
"""


def on_disk(editor: Editor, name: str, text: str) -> None:
    """A file of the workspace that is not open."""
    path = editor.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.core
async def test_edits_of_a_file_of_layers_show_in_it_and_in_the_model_that_uses_it(editor: Editor) -> None:
    model = editor.open("several/model1.py", MODEL.format(module="blocks1"))
    blocks = editor.open("several/blocks1.py", BLOCKS)
    hints = await editor.hints_when(blocks)
    assert hints == {4: "→ [B, 16]", 5: "→ [B, 12]", 6: "x: [B, 8]", 7: "→ [B, 12]"}
    editor.replace(blocks, "nn.Linear(16, 12)", "nn.Linear(10, 12)")
    await editor.until(lambda: bool(editor.published[blocks].diagnostics and editor.published[model].diagnostics))
    (here,), (there,) = await editor.diagnostics(blocks), await editor.diagnostics(model)
    assert editor.text_of(blocks, here.range) == "10" and "out gets 16 features" in here.message
    assert editor.text_of(model, there.range) == "self.block(x)"
    fixes = [action.edit for action in await editor.actions(blocks, here) if action.is_preferred]
    assert fixes and fixes[0] is not None
    editor.apply(fixes[0])
    assert editor.texts[blocks] == BLOCKS
    await editor.until(lambda: not editor.published[blocks].diagnostics and not editor.published[model].diagnostics)
    editor.replace(blocks, "nn.Linear(size, 16)", "nn.Linear(size, 20)")
    editor.replace(blocks, "nn.Linear(16, 12)", "nn.Linear(20, 12)")
    assert (await editor.hints_when(blocks, lambda hints: "20" in str(hints)))[4] == "→ [B, 20]"


async def test_an_edit_of_the_model_shows_in_the_file_of_layers(editor: Editor) -> None:
    blocks = editor.open("several/blocks2.py", BLOCKS)
    model = editor.open("several/model2.py", MODEL.format(module="blocks2"))
    await editor.hints_when(blocks)
    editor.replace(model, "f32[B:2, 8]", "f32[B:2, T:7, 8]")
    assert (await editor.hints_when(blocks, lambda hints: "T" in str(hints)))[6] == "x: [B, T, 8]"


async def test_positions_follow_what_is_typed_above_them(editor: Editor) -> None:
    editor.open("several/model3.py", MODEL.format(module="blocks3"))
    blocks = editor.open("several/blocks3.py", BLOCKS)
    before = await editor.hints_when(blocks)
    editor.replace(blocks, "class Block", "import os\n\nclass Block")
    assert await editor.hints(blocks) == {line + 2: label for line, label in before.items()}
    editor.replace(blocks, "class Block", "value = (\nclass Block")
    assert await editor.hints(blocks) == {line + 3: label for line, label in before.items()}


async def test_the_model_runs_on_while_its_blocks_do_not_parse(editor: Editor) -> None:
    blocks = editor.open("several/blocks4.py", BLOCKS)
    model = editor.open("several/model4.py", MODEL.format(module="blocks4"))
    await editor.hints_when(model)
    editor.replace(blocks, "self.out(self.fc(x))", "self.out(self.fc(x)")
    editor.replace(model, "nn.Linear(12, 4)", "nn.Linear(12, 5)")
    assert "→ [B, 5]" in (await editor.hints_when(model, lambda hints: "5]" in str(hints))).values()
    assert await editor.diagnostics(model) == []


@pytest.mark.core
async def test_a_file_that_is_not_open_lends_its_example(editor: Editor) -> None:
    on_disk(editor, "lending/layers/__init__.py", "from .blocks5 import Block\n")
    on_disk(editor, "lending/model5.py", MODEL.format(module="layers"))
    blocks = editor.open("lending/layers/blocks5.py", BLOCKS)
    assert (await editor.hints_when(blocks))[5] == "→ [B, 12]"
    (lens,) = await editor.lenses(blocks)
    assert lens.command is not None and "f32[B, " in lens.command.title and "part of Model" in lens.command.title
    assert "weight" in (await editor.hover(blocks, "self.fc(x)") or "")
    editor.replace(blocks, "nn.Linear(16, 12)", "nn.Linear(10, 12)")
    await editor.until(lambda: bool(editor.published[blocks].diagnostics))


async def test_a_mistake_that_shows_in_a_closed_file_is_said_where_the_open_one_leads_there(editor: Editor) -> None:
    on_disk(editor, "several/inner8.py", BLOCKS.replace("Block", "Inner"))
    on_disk(editor, "several/model8.py", MODEL.format(module="part8"))
    part = editor.open(
        "several/part8.py",
        """\
from torch import nn
from inner8 import Inner
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.up = nn.Linear(size, 32)
        self.inner = Inner(32)
    def forward(self, x):
        x = self.up(x)
        return self.inner(x)
""",
    )
    assert (await editor.hints_when(part))[9] == "→ [B, 12]"
    assert not await editor.diagnostics(part)
    editor.replace(part, "nn.Linear(size, 32)", "nn.Linear(size, 33)")
    await editor.until(lambda: bool(editor.published[part].diagnostics))
    (found,) = await editor.diagnostics(part)
    assert editor.text_of(part, found.range) == "self.inner(x)" and "fc gets 33 features" in found.message


async def test_what_a_closed_file_showed_comes_from_disk(editor: Editor) -> None:
    blocks = editor.open("several/blocks6.py", BLOCKS)
    model = editor.open("several/model6.py", MODEL.format(module="blocks6"))
    await editor.hints_when(blocks)
    editor.replace(model, "f32[B:2, 8]", "f32[B:2, T:7, 8]")
    await editor.hints_when(blocks, lambda hints: "T" in str(hints))
    editor.close(model)
    await editor.hints_when(blocks, lambda hints: "T" not in str(hints) and hints.get(6) == "x: [B, 8]")


async def test_parts_that_nothing_shows_are_seen_in_a_model_that_is_found_in_a_closed_file(editor: Editor) -> None:
    parts = """\
from torch import nn
class Layer(nn.Module):
    def __init__(self, attention, size):
        super().__init__()
        self.attention = attention
        self.norm = nn.LayerNorm(size)
    def forward(self, x, context):
        mixed, weights = self.attention(x, keys=context)
        return self.norm(x + mixed), weights
"""
    model = """\
import a_package_that_is_not_here
from torch import nn
from parts7 import Layer
class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, 24)
    def forward(self, x, keys):
        weights = self.query(x) @ keys.transpose(1, 2)
        return weights @ keys, weights
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 24)
        self.layer = Layer(Attention(24), 24)
    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.layer(x, x)[0]
"""
    on_disk(editor, "found/model7.py", model)
    opened = editor.open("found/parts7.py", parts)
    hints = await editor.hints_when(opened, lambda hints: 5 in hints)
    assert hints[5] == "→ [B, T, 24]" and hints[7] == "mixed: [B, T, 24], weights: [B, T, T]"
    assert not await editor.diagnostics(opened)
    (lens,) = await editor.lenses(opened)
    assert lens.command is not None and "f32[B, " in lens.command.title and "part of Model" in lens.command.title
    editor.replace(opened, "self.norm(x + mixed)", "self.norm(x + mixed).mean(1)")
    assert (await editor.hints_when(opened, lambda hints: "[B, 24]" in hints.get(8, "")))[8] == "→ ([B, 24], [B, T, T])"


async def test_branches_that_no_model_takes_are_shown_as_the_examples_of_the_parts_take_them(editor: Editor) -> None:
    parts = """\
from torch import nn
class Pool(nn.Module):
    def __init__(self, size=24, mean=True):
        super().__init__()
        self.fc = nn.Linear(size, 6)
        self.mean = mean
    def forward(self, x):
        x = self.fc(x)
        if self.mean:
            return x.mean(1)
        return x.amax(1)
"""
    model = MODEL.replace("Block(8)", "Pool(8, mean=False)").replace("Block", "Pool").replace("f32[B:2, 8]", "f32[B:2, T:7, 8]")
    opened = editor.open("branches/parts8.py", parts)
    assert (await editor.hints_when(opened, lambda hints: "B" in hints.get(9, "")))[6] == "x: [B, 24]"
    editor.open("branches/model8.py", model.replace("(12, 4)", "(6, 4)").format(module="parts8"))
    shown = {4: "→ [B, T, 6]", 6: "x: [B, T, 8] | [B, 24]", 7: "→ [B, T, 6]", 9: "→ [B]", 10: "→ [B, 6]"}
    await editor.hints_when(opened, lambda hints: hints == shown)
    editor.replace(opened, "x.mean(1)", "x.mean(1) + 1")
    editor.replace(opened, "x.amax(1)", "x.amax(1, keepdim=True)")
    await editor.hints_when(opened, lambda hints: hints == {**shown, 10: "→ [B, 1, 6]"})


async def test_what_a_closed_program_gives_a_file_of_losses_is_shown_in_it(editor: Editor) -> None:
    """A function is seen as the program that imports it calls it, which no search would find; an edit there shows as well."""
    train = (
        "import torch\nfrom losses import Pyramid, weighted\n\n\ndef main():\n    criterion = Pyramid({'low': 4, 'high': 2})\n"
        "    for step in range(10):\n        features = {'low': torch.randn(6, 8, 4, 4), 'high': torch.randn(6, 8, 2, 2)}\n"
        "        loss = criterion(features, torch.randn(6, 8))\n        print(weighted(features['low'], torch.rand(6)))\n\n\nmain()\n"
    )
    on_disk(editor, "program/train.py", train)
    uri = editor.open(
        "program/losses.py",
        "import torch\nfrom torch import nn\n\n\nclass Pyramid(nn.Module):\n    def __init__(self, sizes):\n        super().__init__()\n"
        "        self.sizes = sizes\n\n    def forward(self, features, target):\n        total = 0\n"
        "        for name, size in self.sizes.items():\n            pooled = features[name].reshape(-1, 8, size * size).mean(2)\n"
        "            total = total + (pooled - target).pow(2).mean()\n        return total\n\n\n"
        "def weighted(values, weights):\n    rows = values.flatten(1)\n    return (rows * weights[:, None]).sum(1)\n",
    )
    hints = await editor.hints_when(uri, lambda found: found.get(18) == "→ [6, 128]")
    assert hints[12] == "→ [B, 8]" and hints[14] == "→ []" and hints[17] == "values: [6, 8, 4, 4], weights: [6]"
    titles = [lens.command.title for lens in await editor.lenses(uri) if lens.command is not None]
    assert any(title.endswith(" · as train.py calls it") for title in titles) and not any("unknown" in title for title in titles)
    editor.replace(uri, "flatten(1)", "flatten(1)[:, :5]")
    await editor.hints_when(uri, lambda found: found.get(18) == "→ [6, 5]")
    assert await editor.diagnostics(uri) == []


async def test_functions_that_a_closed_file_has_led_into_follow_their_edits(editor: Editor) -> None:
    text = MODEL.format(module="blocks21").replace("self.block(x)", "double(self.block(x))")
    text = text.replace("import Block\n", "import Block\nfrom ops21 import double\n")
    on_disk(editor, "several/model21.py", text)
    functions = editor.open("several/ops21.py", "def double(x):\n    y = x + x\n    return y\n")
    editor.open("several/blocks21.py", BLOCKS)
    assert (await editor.hints_when(functions, lambda hints: "[B, 12]" in str(hints)))[1] == "→ [B, 12]"
    editor.replace(functions, "x + x", "x[None]")
    assert (await editor.hints_when(functions, lambda hints: "[1, B, 12]" in str(hints)))[2] == "→ [1, B, 12]"
    editor.replace(functions, "x[None]", "x.t()")
    editor.replace(functions, "x.t()", "x + x")
    assert (await editor.hints_when(functions, lambda hints: "[1, B, 12]" not in str(hints)))[2] == "→ [B, 12]"


async def test_a_part_whose_inputs_are_guessed_is_shown_in_a_closed_file_after_edits_too(editor: Editor) -> None:
    parts = """\
import torch
from torch import nn
class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, q, k):
        scores = q @ k.transpose(-1, -2)
        return self.scale * scores
"""
    model = """\
from torch import nn
from parts9 import Scores
class Twice(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, 24)
        self.scores = Scores()
    def forward(self, x):
        q = self.query(x) * 2
        return self.scores(q, q).softmax(-1)
class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, 24)
        self.scores = Scores()
    def forward(self, x):
        q = self.query(x)
        return self.scores(q, q).softmax(-1)
def entropy(scores):
    return -(scores * scores.log()).sum(-1)
"""
    on_disk(editor, "found/model9.py", model)
    opened = editor.open("found/parts9.py", parts)
    await editor.hints_when(opened, lambda hints: "24]" in hints.get(6, ""))
    editor.set_text(opened, parts.replace("scores = q", "scores = q @"))
    editor.set_text(opened, parts.replace("scores = q @ k", "scores = q[:, :3] @ k"))
    hints = await editor.hints_when(opened, lambda hints: "3, " in hints.get(7, "") and "24]" in hints.get(6, ""))
    assert hints[7] == "→ [B, 3, T]"
    editor.set_text(opened, parts)
    await editor.hints_when(opened, lambda hints: hints.get(7) == "→ [B, T, T]" and "24]" in hints.get(6, ""))
    (lens,) = await editor.lenses(opened)
    assert lens.command is not None and "part of Model" in lens.command.title, "as it was opened: the last class first"


async def test_an_example_of_a_closed_file_for_an_older_text_is_searched_for_again_when_nobody_types(editor: Editor) -> None:
    part = """\
import torch
from torch import nn
class Placed(nn.Module):
    def __init__(self, attention, size):
        super().__init__()
        self.attention = attention
        self.places = nn.Parameter(torch.zeros(1, 7, size))
    def forward(self, x):
        mixed, weights = self.attention(x, keys=x)
        return mixed + self.places[:, : x.shape[1]], weights
"""
    model = """\
from torch import nn
from parts31 import Placed
class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, 24)
    def forward(self, x, keys):
        weights = self.query(x) @ keys.transpose(1, 2)
        return weights @ keys, weights
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 24)
        self.layer = Placed(Attention(24), 24)
    def forward(self, tokens):
        return self.layer(self.embedding(tokens))[0]
"""
    on_disk(editor, "found/model31.py", model)
    uri = editor.open("found/parts31.py", part)

    async def example() -> str:
        return " ".join(lens.command.tooltip or "" for lens in await editor.lenses(uri) if lens.command is not None)

    await editor.when(example, lambda title: "Model()(i64[B:2, T:7])" in title)
    editor.replace(uri, "zeros(1, 7, size)", "zeros(1, 64, size)")
    await editor.when(example, lambda title: "Model()(i64[B:2, T:16])" in title)


LOADING = """\
import torch
from torch import nn
model = nn.Linear(8, 2)
model.load_state_dict(torch.load("weights.pt"))
x = model(torch.randn(4, 8))
"""


async def test_a_checkpoint_that_changes_on_disk_is_compared_again(editor: Editor) -> None:
    path = editor.root / "loading" / "weights.pt"
    path.parent.mkdir()

    def saved(prefix: str) -> None:
        torch.save({f"{prefix}weight": torch.zeros(2, 8), f"{prefix}bias": torch.zeros(2)}, path)
        event = types.FileEvent(path.as_uri(), types.FileChangeType.Changed)
        editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    uri = editor.open("loading/train.py", LOADING)
    await editor.hints_when(uri, lambda hints: "[4, 2]" in str(hints))
    saved("module.")
    await editor.until(lambda: any(found.code == "checkpoint" for found in editor.published[uri].diagnostics))
    saved("")
    await editor.until(lambda: all(found.code != "checkpoint" for found in editor.published[uri].diagnostics))
