"""What shows a file may be much more than its own run. Fixes that its own run can judge do not wait for that."""

from __future__ import annotations

import pytest

from lsp.editor import Editor

LAYERS = """\
from torch import nn


# shapelens: {name}Block()(f32[B:2, 8])
class {name}Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 16)
        self.out = nn.Linear(16, 12)

    def forward(self, x):
        return self.out(self.fc(x))


class {name}Head(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.fc = nn.Linear(plan.widths("head")[0], 4)

    def forward(self, x):
        return self.fc(x)
"""
# It takes a second or two, and fits one of the two sizes that mend the file above.
MODEL = """\
from torch import nn
from {module} import {name}Block, {name}Head


class {name}Plan:
    def widths(self, part):
        return [16] if part == "head" else []


# shapelens: {name}Model()(f32[B:2, 8])
class {name}Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = {name}Block().fc
        self.head = {name}Head({name}Plan())

    def forward(self, x):
        for _ in range(3_000_000):
            pass
        return self.head(self.first(x))
"""
MENDED = "Change in_features to 16"
BREAKS_THE_MODEL = "Change out_features of fc to 10"


def fixes(editor: Editor, uri: str) -> list[str]:
    """The fixes that the editor was told of, of all findings."""
    found = editor.published.get(uri)
    return [fix["title"].partition(" → ")[0] for each in found.diagnostics for fix in each.data["fixes"]] if found is not None else []


def runs(editor: Editor, name: str) -> int:
    """How often the examples of a class have been run to their end, as far as somebody waited for that."""
    begun = [text.split(":")[1].strip() for text in editor.log if text.startswith("lsp.runs: run ") and f": {name} of " in text]
    return sum(f"lsp.runs: {run} ended: ok" in editor.log for run in begun)


async def broken(editor: Editor, name: str) -> str:
    """A file of layers that shows one of them by a file that uses it, once an edit has made a mistake in the other one."""
    (editor.root / f"{name.lower()}_model.py").write_text(MODEL.format(module=f"{name.lower()}_layers", name=name))
    uri = editor.open(f"{name.lower()}_layers.py", LAYERS.format(name=name))
    assert await editor.hints_when(uri, lambda hints: "→ [B, 4]" in hints.values())
    await editor.until(lambda: runs(editor, f"{name}Model") == 1)
    editor.replace(uri, "nn.Linear(16, 12)", "nn.Linear(10, 12)")
    return uri


@pytest.mark.slow("waits for each run of two files")
async def test_a_fix_that_the_files_own_example_can_judge_does_not_wait_for_a_file_that_uses_it(watched: Editor) -> None:
    uri = await broken(watched, "Early")
    await watched.until(lambda: bool(fixes(watched, uri)))
    assert fixes(watched, uri)[0] == MENDED
    assert runs(watched, "EarlyModel") == 1
    await watched.until(lambda: runs(watched, "EarlyModel") == 2)
    assert MENDED in fixes(watched, uri), "it stays while that file runs"


@pytest.mark.slow("waits for each run of two files")
async def test_a_fix_is_taken_back_where_it_breaks_a_file_that_uses_it(watched: Editor) -> None:
    uri = await broken(watched, "Refuted")
    await watched.until(lambda: BREAKS_THE_MODEL in fixes(watched, uri))
    await watched.until(lambda: BREAKS_THE_MODEL not in fixes(watched, uri))
    assert fixes(watched, uri) == [MENDED]
