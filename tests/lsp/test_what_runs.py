"""After an edit only those examples run that come to what it changed; what cannot change a shape runs nothing, and moves what is shown.

The server logs each run that it asks for, with the classes whose examples are in it.
"""

from __future__ import annotations

import re

import pytest

from lsp.editor import Editor

TWO = """\
from torch import nn

SIZE = 16


def widened(size):
    return 2 * size


def four():
    return 4


FOUR = four()


# shapelens: First()(f32[B:2, 8])
class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, widened(8))

    def forward(self, x):
        return self.one(x)

    def never(self, x):
        return x + 1


# shapelens: Second()(f32[B:2, 4])
class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.two = nn.Linear(FOUR, SIZE)

    def forward(self, x):
        x = self.two(x)
        return x
"""
FOUND = TWO.replace("# shapelens: ", "# ")
BOTH = "First, Second"


def runs_of(editor: Editor, uri: str) -> dict[int, str]:
    """The runs of a file up to now: their numbers, and the classes whose examples are in them."""
    found = [re.fullmatch(r"lsp\.runs: run (\d+): (.*) of (.*)", text) for text in editor.log]
    return {int(each[1]): each[2] for each in found if each is not None and uri.endswith(each[3])}


async def settled(editor: Editor, uri: str) -> list[str]:
    """The runs of a file when its newest version has been answered and the newest of them has ended."""
    await editor.diagnostics(uri)
    await editor.until(lambda: f"lsp.runs: run {max(runs_of(editor, uri))} ended: ok" in editor.log)
    return list(runs_of(editor, uri).values())


async def opened(editor: Editor, name: str, text: str) -> tuple[str, int]:
    """Open a file and wait until it has run to its end; its URI and how many runs that took."""
    uri = editor.open(name, text)
    return uri, len(await settled(editor, uri))


EDITS = {
    "a comment": ("SIZE = 16\n", "SIZE = 16  # of Second\n", []),
    "a comment above": ("SIZE = 16\n", "# how wide\nSIZE = 16\n", []),
    "blank lines": ("SIZE = 16\n", "\n\n\nSIZE = 16\n", []),
    "formatting of what is shown": ("nn.Linear(FOUR, SIZE)", "nn.Linear(\n            FOUR,  # in\n            SIZE\n        )", [BOTH]),
    "formatting elsewhere": ("return x + 1", "return (\n            x+1  # one more\n        )", []),
    "a docstring": ("    return 2 * size", '    """Twice as wide."""\n    return 2 * size', []),
    "a function that does not run": ("return x + 1", "return x + 100", []),
    "a function of one network": ("x = self.two(x)\n", "x = self.two(x) * 2\n", ["Second"]),
    "a function that one network calls": ("return 2 * size", "return 3 * size", ["First"]),
    "a function that the module calls": ("return 4", "return 4 * 1", [BOTH]),
    "a value of the module": ("SIZE = 16", "SIZE = 15", [BOTH]),
    "a signature": ("def never(self, x)", "def never(self, x, y)", [BOTH]),
    "an example": ("First()(f32[B:2, 8])", "First()(f32[B:2, N:3, 8])", [BOTH]),
}


@pytest.mark.core
@pytest.mark.parametrize("case", EDITS)
async def test_what_an_edit_runs(watched: Editor, case: str) -> None:
    old, new, expected = EDITS[case]
    uri, before = await opened(watched, f"runs/{case.replace(' ', '_')}.py", TWO)
    watched.replace(uri, old, new)
    assert await watched.diagnostics(uri) == []
    assert (await settled(watched, uri))[before:] == expected
    # The hints are those of a server that sees this text for the first time.
    again = watched.open(f"runs/fresh_{case.replace(' ', '_')}.py", watched.texts[uri])
    await watched.diagnostics(again)
    expected_hints = await watched.hints_when(again, lambda hints: "[B" in str(hints) and len(hints) > 6)
    assert await watched.hints_when(uri, lambda hints: hints == expected_hints)


async def test_an_edit_before_the_dims_have_their_names_does_not_run_everything_first(watched: Editor) -> None:
    slow = TWO.replace("from torch", "import threading\nfrom torch").replace(
        "        return self.one(x)", "        threading.Event().wait(0.5)\n        return self.one(x)"
    )
    uri = watched.open("runs/slow.py", slow)
    await watched.hints_when(uri, lambda hints: "[2, 16]" in str(hints))  # Sizes are there, and names are still being found.
    watched.replace(uri, "x = self.two(x)\n", "x = self.two(x) * 2\n")
    assert await watched.diagnostics(uri) == []
    await watched.until(lambda: list(runs_of(watched, uri).values()) == [BOTH, "Second", BOTH])
    first, *others = runs_of(watched, uri)
    assert f"lsp.runs: run {first} ended: cancelled" in watched.log
    await watched.until(lambda: all(f"lsp.runs: run {number} ended: ok" in watched.log for number in others))
    assert await watched.hints_when(uri, lambda hints: "[B, 16]" in str(hints) and "[2, 16]" not in str(hints))


SEARCHED = """\
import threading
from torch import nn
# shapelens: Given()(f32[B:2, 8])
class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
    def forward(self, x):
        return self.fc(x)
class Sought(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 4)
    def forward(self, x):
        threading.Event().wait(0.5)
        return self.fc(x)
"""


async def test_an_edit_while_examples_are_sought_runs_what_it_concerns(watched: Editor) -> None:
    uri = watched.open("runs/sought.py", SEARCHED)
    assert await watched.diagnostics(uri) == []
    watched.replace(uri, "nn.Linear(8, 4)", "nn.Linear(9, 4)")
    (finding,) = await watched.diagnostics(uri)
    assert watched.text_of(uri, finding.range) == "9"
    assert list(runs_of(watched, uri).values())[:2] == ["Given, Sought", "Given"]
    assert await watched.hints_when(uri, lambda hints: "[B, 16]" in str(hints))  # It is sought after that.


async def test_a_class_that_nobody_gave_an_example_keeps_the_one_that_was_found(watched: Editor) -> None:
    uri, before = await opened(watched, "runs/found.py", FOUND)
    lenses = await watched.lenses(uri)
    watched.replace(uri, "return x + 1", "return x + 2")
    assert await watched.diagnostics(uri) == []
    watched.replace(uri, "SIZE = 16\n", "\nSIZE = 16  # wide\n")
    assert await watched.diagnostics(uri) == []
    assert (await settled(watched, uri))[before:] == []
    assert [lens.range.start.line for lens in await watched.lenses(uri)] == [lens.range.start.line + 1 for lens in lenses]
    watched.replace(uri, "x = self.two(x)\n", "x = self.two(x).flatten()\n")
    assert await watched.diagnostics(uri) == []
    await watched.hints_when(uri, lambda hints: "→ [32]" in str(hints) or "→ [16·B]" in str(hints))
    assert (await settled(watched, uri))[before:] == ["Second"]


async def test_findings_and_fixes_of_one_network_stay_while_another_is_edited(watched: Editor) -> None:
    wrong = TWO.replace("nn.Linear(8, widened(8))", "nn.Linear(9, widened(8))")
    uri, before = await opened(watched, "runs/wrong.py", wrong)
    (finding,) = await watched.diagnostics(uri)
    fixes = [each.title for each in await watched.actions(uri, finding)]
    watched.replace(uri, "SIZE = 16\n", "SIZE = 16\n\n# more of it\n")
    (moved,) = await watched.diagnostics(uri)
    assert moved.range.start.line == finding.range.start.line + 2 and moved.message == finding.message
    assert [each.title for each in await watched.actions(uri, moved)] == fixes
    assert (await settled(watched, uri))[before:] == []
    watched.replace(uri, "x = self.two(x)\n", "x = self.two(x[0])\n")
    (still,) = await watched.diagnostics(uri)
    assert still.range.start.line == moved.range.start.line and still.message == finding.message
    assert (await settled(watched, uri))[before:] == ["Second"]
    watched.replace(uri, "nn.Linear(9, widened(8))", "nn.Linear(8, widened(8))")
    assert await watched.diagnostics(uri) == []
    assert (await settled(watched, uri))[before:] == ["Second", "First"]


@pytest.mark.core
async def test_an_undone_edit_shows_what_was_there_before_without_a_run(watched: Editor) -> None:
    uri, before = await opened(watched, "runs/undone.py", TWO)
    hints = await watched.hints(uri)
    watched.replace(uri, "    return 2 * size", "    return 2 * size)")
    await watched.diagnostics(uri)
    watched.replace(uri, "    return 2 * size)", "    return 2 * size")
    assert await watched.diagnostics(uri) == []
    assert await watched.hints_when(uri, lambda found: found == hints)
    assert (await settled(watched, uri))[before:] == []


async def test_an_edit_undone_while_it_runs_leaves_the_fixes_of_another_network(watched: Editor) -> None:
    uri, _ = await opened(watched, "runs/hasty.py", TWO.replace("nn.Linear(8, widened(8))", "nn.Linear(9, widened(8))"))
    (finding,) = await watched.diagnostics(uri)
    fixes = [each.title for each in await watched.actions(uri, finding)]
    assert fixes
    for _ in range(5):
        watched.replace(uri, "x = self.two(x)\n", "x = self.two(x[0])\n")
        watched.replace(uri, "x = self.two(x[0])\n", "x = self.two(x)\n")
    (still,) = await watched.diagnostics(uri)
    assert still.message == finding.message
    assert [each.title for each in await watched.actions(uri, still)] == fixes
