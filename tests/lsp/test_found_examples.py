"""Files without a directive: an example is found for each class, shown, chosen among others, written down, and kept through edits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from lsprotocol import types

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

TWO_SIZES = """\
import torch
from torch import nn


class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def test_small():
    assert Stem()(torch.randn(2, 3, 16, 16)).shape == (2, 8, 16, 16)


def test_large():
    assert Stem()(torch.randn(2, 3, 48, 48)).shape == (2, 8, 48, 48)
"""
UNKNOWABLE = """\
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = [row for row in table.rows_of("a", 3)]
        self.fc = nn.Linear(len(self.rows), 4)

    def forward(self, batch):
        if batch.kind != "sentence":
            raise ValueError(batch.kind)
        return self.fc(batch.words)
"""
FITTED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


class Trainer:
    def __init__(self, loader):
        self.loader = loader

    def fit(self, model):
        for batch in self.loader:
            self.step(model, batch)

    def step(self, model, batch):
        loss = model(batch).mean()
        loss.backward()


def pictures(side):
    for number in range(1, 3):
        yield torch.randn(16 * number, 3, side, side)


Trainer(pictures(40)).fit(Net())
"""


def without_directive(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "# shapelens:" not in line)


def titles(lenses: Iterable[types.CodeLens]) -> list[str]:
    return [lens.command.title.replace("\u202f", " ") for lens in lenses if lens.command is not None]


def told(lenses: Iterable[types.CodeLens]) -> list[str]:
    """What the lenses say when they are looked at closely: the whole expression, and the title."""
    return [f"{lens.command.tooltip or ''} {title}" for lens, title in zip(lenses, titles(lenses), strict=True) if lens.command is not None]


async def lenses_when(editor: Editor, uri: str, part: str) -> list[types.CodeLens]:
    """The lenses once one of them says this."""
    found: list[types.CodeLens] = []
    refreshes = -1
    while not any(part in title for title in told(found)):
        await editor.until(lambda seen=refreshes: editor.refreshes != seen)  # type: ignore[misc]
        refreshes = editor.refreshes
        found = list(await editor.lenses(uri))
    return found


@pytest.mark.core
async def test_a_file_without_a_directive_has_hints_a_lens_and_no_findings(editor: Editor, recipe: str) -> None:
    uri = editor.open("found/plain.py", without_directive(recipe))
    hints = await editor.hints_when(uri)
    assert "→ [B, 400]" in hints.values() and "x: [B, 3, 32, 32]" in hints.values()
    assert await editor.diagnostics(uri) == []
    first, *others = await lenses_when(editor, uri, "parameters")
    assert titles([first])[0] == "Net · x f32[B, 3, 32, 32] · guessed input · 62 006 parameters"
    assert first.command is not None and first.command.command == "shapelens.setExample"
    assert "Write as directive" in titles(others)


@pytest.mark.core
async def test_one_click_writes_the_example_down(editor: Editor, recipe: str) -> None:
    uri = editor.open("found/written.py", without_directive(recipe))
    await editor.hints_when(uri)
    (write,) = [
        lens.command for lens in await lenses_when(editor, uri, "Write as") if lens.command and lens.command.title.startswith("Write as")
    ]
    # The command is the server's own, so that it works in every editor.
    assert await editor.execute(write.command, *(write.arguments or [])) is None
    assert "# shapelens: Net()(f32[B:2, 3, 32, 32])\nclass Net" in editor.texts[uri]
    assert len(await lenses_when(editor, uri, "· given")) == 1


async def test_the_class_line_has_actions_that_write_it_down_or_choose_another(editor: Editor) -> None:
    uri = editor.open("found/actions.py", TWO_SIZES)
    await editor.hints_when(uri)
    start = editor.position(uri, editor.texts[uri].index("Stem(nn.Module)"))
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), types.Range(start, start), types.CodeActionContext([]))
    actions = await editor.client.text_document_code_action_async(params)
    assert actions is not None
    write, use = actions
    assert isinstance(write, types.CodeAction) and write.title == "Write the example down as a directive" and write.edit is not None
    assert use.title == "Use the example Stem()(f32[B:2, 3, 48, 48]) (from test_large(), line 18)"
    # This client takes an action that has nothing but a command for the command itself, and writes that as text.
    assert f"'shapelens.useExample', 'arguments': ['{uri}', 'Stem', 'Stem()(f32[B:2, 3, 48, 48])']" in str(use.command)
    assert await editor.execute("shapelens.useExample", uri, "Stem", "Stem()(f32[B:2, 3, 48, 48])") is None
    assert "x: [B, 3, 48, 48]" in (await editor.hints_when(uri, lambda hints: "48" in str(hints))).values()


async def test_another_example_is_chosen_and_the_choice_lasts(editor: Editor) -> None:
    uri = editor.open("found/chosen.py", TWO_SIZES)
    assert "16, 16]" in str(await editor.hints_when(uri))
    (first, *_) = await lenses_when(editor, uri, "from test_small(), line")
    assert first.command is not None and first.command.command == "shapelens.setExample"
    small, large = await editor.execute("shapelens.foundExamples", uri, "Stem")
    assert (small["evidence"], large["evidence"]) == ("from test_small(), line 14", "from test_large(), line 18")
    refused = await editor.execute("shapelens.useExample", uri, "Stem", "Stem()(f32[1])")
    assert "none of the examples" in refused
    assert await editor.execute("shapelens.useExample", uri, "Stem", large["expression"]) is None
    assert "48, 48]" in str(await editor.hints_when(uri, lambda hints: "48, 48]" in str(hints)))
    (first, *_) = await lenses_when(editor, uri, "from test_large()")

    editor.replace(uri, "nn.Conv2d(3, 8, 3", "nn.Conv2d(3, 12, 3")
    assert "12, 48, 48]" in str(await editor.hints_when(uri, lambda hints: "12, " in str(hints)))
    text = editor.texts[uri]
    editor.close(uri)
    uri = editor.open("found/chosen.py", text)
    assert "12, 48, 48]" in str(await editor.hints_when(uri))


async def test_an_edit_of_the_evidence_changes_the_example(editor: Editor) -> None:
    uri = editor.open("found/edited.py", TWO_SIZES)
    await editor.hints_when(uri)
    editor.replace(uri, "torch.randn(2, 3, 16, 16)", "torch.randn(2, 3, 20, 20)")
    assert "20, 20]" in str(await editor.hints_when(uri, lambda hints: "20, 20]" in str(hints)))


@pytest.mark.core
async def test_how_another_file_uses_a_class_is_evidence(editor: Editor) -> None:
    train = editor.root / "evidence" / "train7.py"
    train.parent.mkdir(parents=True, exist_ok=True)
    train.write_text("import torch\nfrom stem7 import Stem\n\nmodel = Stem()\nout = model(torch.randn(4, 3, 40, 24))\n")
    uri = editor.open("evidence/stem7.py", TWO_SIZES[: TWO_SIZES.index("def test_small")])
    assert "x: [B, 3, 40, 24]" in (await editor.hints_when(uri, lambda hints: "[B, 3, 40, 24]" in str(hints))).values()
    assert "from train7.py:5" in titles(await lenses_when(editor, uri, "train7"))[0]


async def test_how_a_notebook_uses_a_class_is_evidence(editor: Editor) -> None:
    sources = ["%matplotlib inline\nimport torch\nfrom stem8 import Stem", "stem = Stem()\nout = stem(torch.randn(4, 3, 40, 32))"]
    cells = [{"cell_type": "code", "source": source.splitlines(True), "outputs": []} for source in sources]
    explore = editor.root / "evidence" / "explore.ipynb"
    explore.parent.mkdir(parents=True, exist_ok=True)
    explore.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    uri = editor.open("evidence/stem8.py", TWO_SIZES[: TWO_SIZES.index("def test_small")])
    assert "x: [B, 3, 40, 32]" in (await editor.hints_when(uri, lambda hints: "[B, 3, 40, 32]" in str(hints))).values()
    assert "from explore.ipynb, cell 2, line 2" in titles(await lenses_when(editor, uri, "explore"))[0]


async def test_a_class_that_nothing_fits_is_no_error(editor: Editor) -> None:
    uri = editor.open("found/unknowable.py", UNKNOWABLE)
    found = await editor.diagnostics(uri)
    assert [(each.code, each.severity) for each in found] == [("no-example", types.DiagnosticSeverity.Hint)]
    (said,) = found
    assert editor.text_of(uri, said.range) == "Reader" and "# shapelens: Reader(…)(f32[…])" in said.message
    (lens,) = await editor.lenses(uri)
    assert titles([lens]) == ["no example found · Set example input…"]


@pytest.mark.core
async def test_an_edit_that_breaks_a_model_is_an_error_and_has_its_fix(editor: Editor, recipe: str) -> None:
    uri = editor.open("found/broken.py", without_directive(recipe))
    await editor.hints_when(uri)
    editor.replace(uri, "nn.Linear(84, 10)", "nn.Linear(48, 10)")
    await editor.until(lambda: bool(editor.published[uri].diagnostics) and editor.published[uri].version == editor.versions[uri])
    (finding,) = await editor.diagnostics(uri)
    assert (editor.text_of(uri, finding.range), finding.severity) == ("48", types.DiagnosticSeverity.Error)
    fix = (await editor.actions(uri, finding))[0]
    assert fix.edit is not None and fix.is_preferred
    editor.apply(fix.edit)
    assert editor.texts[uri] == without_directive(recipe)
    assert await editor.diagnostics(uri) == []


async def test_an_example_is_tried_while_it_is_typed(editor: Editor, recipe: str) -> None:
    uri = editor.open("found/tried.py", without_directive(recipe))
    await editor.hints_when(uri)
    fits = await editor.execute("shapelens.tryExample", uri, "Net", "Net()(f32[N:4, 3, 32, 32])")
    assert fits == {"works": True, "message": "→ [4, 10]"}
    fails = await editor.execute("shapelens.tryExample", uri, "Net", "Net()(f32[4, 1, 32, 32])")
    assert not fails["works"] and "size 3" in fails["message"]
    assert await editor.execute("shapelens.tryExample", uri, "Net", "Net()(f32[4, 1") is None
    assert "→ [B, 400]" in (await editor.hints(uri)).values()


SLOW = """\
import threading


class Slow(nn.Module):
    def forward(self, x):
        for _ in range(20):
            threading.Event().wait(0.1)
            x = torch.relu(x)
        return x.no_such_attribute
"""


async def test_the_hints_of_one_class_do_not_wait_for_the_search_for_another(editor: Editor) -> None:
    uri = editor.open("found/slow.py", TWO_SIZES.replace("\n\nclass Stem", f"\n{SLOW}\n\nclass Stem"))
    hints = await editor.hints_when(uri, lambda hints: "16, 16]" in str(hints))
    assert "→ [2, 8, 16, 16]" in hints.values() and uri not in editor.published
    await editor.until(lambda: any(value.get("message") == "Looking for example inputs" for value in editor.progress))
    # An edit ends the search, and does not begin again with what was found.
    editor.replace(uri, "nn.Conv2d(3, 8, 3", "nn.Conv2d(3, 12, 3")
    editor.replace(uri, "        return x.no_such_attribute\n", "        return x\n")
    assert "→ [B, 12, 16, 16]" in (await editor.hints_when(uri, lambda hints: "[B, 12" in str(hints))).values()


async def test_a_directive_does_not_wait_for_the_search_for_other_classes(editor: Editor, broken: str) -> None:
    uri = editor.open("found/waiting.py", f"{broken}\n\n{SLOW}")
    (finding,) = await editor.diagnostics(uri)
    assert finding.code == "linear-in-features"
    await editor.until(lambda: any(each.code == "no-example" for each in editor.published[uri].diagnostics))


FUNCTIONS = """\
import torch
import torch.nn.functional as F


def accuracy(logits, labels):
    hits = logits.argmax(dim=1) == labels
    return hits.float().mean()


def cosine(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    first = F.normalize(first, dim=-1)
    return first @ second.T
"""


async def test_a_file_of_functions_shows_what_they_are_called_with_and_one_click_writes_that_down(editor: Editor) -> None:
    uri = editor.open("found/metrics.py", FUNCTIONS)
    assert "logits: [B, 64], labels: i64[B]" in (await editor.hints_when(uri)).values()
    lenses = await lenses_when(editor, uri, "accuracy · logits f32[B, 64], labels i64[B] · guessed input")
    assert await editor.diagnostics(uri) == []
    write = next(lens.command for lens in lenses if lens.command and lens.command.title.startswith("Write as"))
    assert await editor.execute(write.command, *(write.arguments or [])) is None
    assert "# shapelens: accuracy(f32[B:2, 64], i64[B])\ndef accuracy(" in editor.texts[uri]
    await lenses_when(editor, uri, "· given")


TASKS = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.task = configs.task
        self.body = nn.Linear(12, 24)

    def forward(self, x):
        x = self.body(x)
        if self.task == "regression":
            return x.mean(-1)
        if self.task == "classification":
            return torch.stack([x, x], 1)
"""


async def test_what_only_another_setting_leads_into_is_shown_after_the_rest(editor: Editor) -> None:
    uri = editor.open("found/tasks.py", TASKS)
    hints = await editor.hints_when(uri, lambda hints: "→ [B, 2, 24]" in hints.values())
    assert "→ [B]" in hints.values() and await editor.diagnostics(uri) == []


async def test_what_the_program_calls_a_class_with_becomes_its_example(editor: Editor) -> None:
    """It is not said where a search reads it, but the program comes to it; after an edit it is there without the program."""
    uri = editor.open("train.py", FITTED)
    hints = await editor.hints_when(uri, lambda found: "[B, 8, 40, 40]" in str(found))
    assert hints[10] == "→ [B, 8, 40, 40]"
    found = await lenses_when(editor, uri, "Net()(f32[B:16, 3, 40, 40])")
    assert any("from line 23" in title for title in titles(found))
    editor.replace(uri, "nn.Conv2d(3, 8, 3, padding=1)", "nn.Conv2d(3, 9, 3, padding=1)")
    hints = await editor.hints_when(uri, lambda found: "[B, 9, 40, 40]" in str(found))
    editor.replace(uri, "pictures(40)", "pictures(48)")
    await editor.hints_when(uri, lambda found: "[B, 9, 48, 48]" in str(found))
    assert await editor.diagnostics(uri) == []
    editor.replace(uri, "nn.Conv2d(3, 9", "nn.Conv2d(4, 9")
    assert [found.code for found in await editor.diagnostics(uri)] == ["conv-in-channels"]
    editor.replace(uri, "nn.Conv2d(4, 9", "nn.Conv2d(3, 9")
    editor.replace(uri, "\nTrainer(pictures(48)).fit(Net())\n", "")
    assert not any("40" in title or "48" in title for title in told(await lenses_when(editor, uri, "guessed input")))


POSITIONS = """\
import torch
from torch import nn
class Positional(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim)
        self.pos = nn.Parameter(torch.zeros(1, 64, dim))
    def forward(self, x):
        b, n, d = x.shape
        q = self.to_q(x) + self.pos[:, :n]
        return q.reshape(b, n, self.heads, d // self.heads)
"""


async def test_an_example_that_failed_comes_back_when_it_runs_again(editor: Editor) -> None:
    uri = editor.open("found/positions.py", POSITIONS)
    await editor.hints_when(uri, lambda hints: "4, 16]" in str(hints))  # A lens is there before its example has run.
    for length in (7, 3):
        editor.set_text(uri, POSITIONS.replace("zeros(1, 64", f"zeros(1, {length}"))
        found = await lenses_when(editor, uri, f":{length}, 64])")
        assert any("guessed input" in title for title in titles(found))
    editor.set_text(uri, POSITIONS)
    await lenses_when(editor, uri, ":24,")


async def test_examples_of_an_older_text_are_searched_for_again_when_nobody_types(editor: Editor) -> None:
    """What is shown then is what opening the text shows; but an example that fails stays, as the edit is to blame."""
    short = POSITIONS.replace("Positional", "ShortPositional").replace("zeros(1, 64", "zeros(1, 7")
    uri = editor.open("found/short_positions.py", short)
    await lenses_when(editor, uri, "n:7,")
    editor.replace(uri, "zeros(1, 7", "zeros(1, 64")
    await lenses_when(editor, uri, ":24,")
    assert await editor.diagnostics(uri) == []
    editor.replace(uri, "nn.Linear(dim, dim)", "nn.Linear(dim, dim + 1)")
    wrong = [each.code for each in await editor.diagnostics(uri)]
    assert len(wrong) == 1
    await editor.idle()
    assert [each.code for each in await editor.diagnostics(uri)] == wrong
    assert ":24," in told(await editor.lenses(uri))[0]


OBSCURE = """

class Obscure(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(37, 4)
    def forward(self, x):
        return self.fc(x)
"""


async def test_a_class_for_which_nothing_would_be_found_keeps_its_example_and_the_rest_is_searched_for_again(editor: Editor) -> None:
    short = POSITIONS.replace("Positional", "OtherPositional").replace("zeros(1, 64", "zeros(1, 7")
    uri = editor.open("found/obscure.py", short + OBSCURE)
    await lenses_when(editor, uri, "n:7,")
    await lenses_when(editor, uri, "Obscure()(f32[B:2, 37])")
    editor.replace(uri, "        return self.fc(x)", "        assert x.ndim == 2 and x.shape[-1] * 7919 % 10007 == 2800\n        return x")
    await editor.hints_when(uri, lambda hints: "→ [B, 37]" in hints.values())
    editor.replace(uri, "        self.fc = nn.Linear(37, 4)", "        self.scale = 2")
    editor.replace(uri, "zeros(1, 7", "zeros(1, 64")
    await lenses_when(editor, uri, ":24,")
    assert any("Obscure()(f32[B:2, 37])" in title for title in told(await editor.lenses(uri)))
    assert "→ [B, 37]" in (await editor.hints(uri)).values()
    again = editor.open("found/obscure_again.py", editor.texts[uri])
    await lenses_when(editor, again, ":24,")
    assert not any("37" in title for title in told(await editor.lenses(again)))


async def test_a_client_that_asks_for_it_need_not_wait_for_a_pause(tmp_path: Path) -> None:
    """Once the server says that it is idle, all is shown that opening the text would show, and each fix was tried."""
    editor = Editor(tmp_path)
    await editor.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_TIMEOUTS": "pause=600"})
    wrong = "\n\n# shapelens: Wrong()(f32[B:2, 8])\nclass Wrong(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    wrong += "        self.fc = nn.Linear(9, 4)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    uri = editor.open("positions.py", POSITIONS.replace("zeros(1, 64", "zeros(1, 7") + wrong)
    await editor.idle()
    assert "n:7," in told(await editor.lenses(uri))[0]
    editor.replace(uri, "zeros(1, 7", "zeros(1, 64")
    await editor.idle(reopened=False)
    assert "n:7," in told(await editor.lenses(uri))[0]
    await editor.idle()
    assert ":24," in told(await editor.lenses(uri))[0]
    (finding,) = editor.published[uri].diagnostics
    assert finding.code == "linear-in-features" and await editor.actions(uri, finding)
    assert await editor.stop() == 0


FUNCTION = """\
import torch
from torch import nn

POSITIONS = torch.zeros(1, 7, 64)
to_q = nn.Linear(64, 64)


def with_positions(x):
    b, n, d = x.shape
    q = to_q(x) + POSITIONS[:, :n]
    return q.reshape(b, n, 4, d // 4)
"""


async def test_what_a_function_is_called_with_is_searched_for_again_when_nobody_types(editor: Editor) -> None:
    """The function is as it was, but what it goes through is not."""
    uri = editor.open("found/with_positions.py", FUNCTION)
    await lenses_when(editor, uri, "n:7,")
    editor.replace(uri, "zeros(1, 7", "zeros(1, 64")
    await lenses_when(editor, uri, ":16, 64])")
