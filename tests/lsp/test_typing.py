"""While somebody types: nothing flickers, the newest text wins, and files that import the one being edited follow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

BLOCKS = """\
from torch import nn
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, 16)
    def forward(self, x):
        return self.fc(x)
"""
MODEL = """\
from torch import nn
from blocks import Block
# shapelens: Model()(f32[B:2, 8])
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(8)
        self.head = nn.Linear(16, 4)
    def forward(self, x):
        return self.head(self.block(x))
"""
UNUSED = """\
from torch import nn
# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.spare = nn.Linear(4, 4)
    def forward(self, x):
        y = self.fc(x)
        return y
"""

# Deep enough that its first mistake is said before the last one is met.
DEEP = """\
from torch import nn
# shapelens: Net()(f32[B:2, 16])
class Layer(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(16), nn.Linear(16, 16 + number - number)
    def forward(self, x):
        return x + self.fc(self.norm(x)).relu()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.layers = nn.Sequential(*[Layer(number) for number in range(60)])
        self.last = nn.Linear(17, 4)
    def forward(self, x):
        return self.last(self.layers(self.first(x)))
"""


@pytest.mark.core
async def test_what_is_wrong_stays_wrong_while_something_before_it_is_found(editor: Editor) -> None:
    uri = editor.open("typing/deep.py", DEEP)
    await editor.diagnostics(uri)
    await editor.hints_when(uri)
    await asyncio.sleep(1.0)  # Until it is rehearsed: else there is no need to be patient.
    begin = len(editor.publications)
    for old, new in (("nn.Linear(16, 16)\n", "nn.Linear(15, 16)\n"), ("nn.Linear(15, 16)\n", "nn.Linear(14, 16)\n")):
        editor.replace(uri, old, new)
        await editor.until(lambda: any(each.version == editor.versions[uri] and len(each.diagnostics) == 2 for each in editor.publications))
    editor.replace(uri, "nn.Linear(14, 16)\n", "nn.Linear(16, 16)\n")
    assert [editor.text_of(uri, each.range) for each in await editor.diagnostics(uri)] == ["17"]
    said = [[editor.text_of(uri, each.range) for each in published.diagnostics] for published in editor.publications[begin:]]
    assert [words for words in said if "17" not in words] == []


@pytest.mark.core
async def test_hints_and_findings_stay_while_the_text_does_not_parse(editor: Editor, broken: str) -> None:
    uri = editor.open("typing/syntax.py", broken)
    await editor.diagnostics(uri)
    before = await editor.hints_when(uri)
    editor.replace(uri, "x = self.fc3(x)", "x = self.fc3(x")
    (finding,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, finding.range) == "16 * 6 * 6"
    assert await editor.hints(uri) == before
    editor.replace(uri, "x = self.fc3(x", "x = self.fc3(x)")
    assert len(await editor.diagnostics(uri)) == 1
    assert await editor.hints(uri) == before


async def test_what_is_cut_and_pasted_back_at_once_has_its_hints(editor: Editor, recipe: str) -> None:
    uri = editor.open("typing/cut.py", recipe)
    before = await editor.hints_when(uri, lambda hints: "→ [B, 10]" in hints.values())
    for _ in range(3):
        editor.set_text(uri, recipe[: len(recipe) // 2])
        editor.set_text(uri, recipe)  # Before anybody has parsed the other text.
        await editor.diagnostics(uri)
        assert await editor.hints_when(uri, lambda hints: hints == before)


async def test_a_file_that_does_not_parse_when_it_is_opened_says_where(editor: Editor, recipe: str) -> None:
    uri = editor.open("typing/unparsable.py", recipe.replace("x = self.fc3(x)", "x = self.fc3(x"))
    (finding,) = await editor.diagnostics(uri)
    assert (finding.code, finding.range.start.line) == ("syntax", recipe[: recipe.index("x = self.fc3(x)")].count("\n"))
    editor.replace(uri, "x = self.fc3(x", "x = self.fc3(x)")
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    assert await editor.diagnostics(uri) == []


@pytest.mark.core
async def test_of_thirty_fast_edits_the_last_one_counts(editor: Editor, recipe: str) -> None:
    uri = editor.open("typing/fast.py", recipe)
    assert await editor.diagnostics(uri) == []
    for size in range(401, 431):
        editor.replace(uri, "16 * 5 * 5" if size == 401 else str(size - 1), str(size))
    (finding,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, finding.range) == "430" and "430" in finding.message
    # Old versions may be left out, and never come after newer ones.
    versions = [each.version or 0 for each in editor.publications if each.uri == uri]
    assert versions == sorted(versions) and versions[-1] == 31


@pytest.mark.core
async def test_edits_of_an_imported_file_are_seen_before_they_are_saved(editor: Editor) -> None:
    blocks = editor.open("typing/blocks.py", BLOCKS)
    model = editor.open("typing/model.py", MODEL)
    assert await editor.diagnostics(model) == []
    editor.replace(blocks, "nn.Linear(size, 16)", "nn.Linear(size, 12)")
    await editor.until(lambda: bool(editor.published[model].diagnostics))
    (finding,) = await editor.diagnostics(model)
    assert editor.text_of(model, finding.range) == "16" and "12" in finding.message
    places = {(each.location.uri, editor.text_of(each.location.uri, each.location.range)) for each in finding.related_information or []}
    assert (blocks, "12") in places
    editor.replace(blocks, "nn.Linear(size, 12)", "nn.Linear(size, 16)")
    await editor.until(lambda: not editor.published[model].diagnostics)


async def test_a_document_that_is_closed_while_it_runs_leaves_nothing_behind(editor: Editor, recipe: str) -> None:
    endless = recipe.replace("def forward(self, x):\n", "def forward(self, x):\n        while True: pass\n")
    uri = editor.open("typing/closed.py", endless)
    await editor.until_running("closed.py")
    editor.close(uri)
    await editor.until(lambda: uri in editor.published)
    assert not editor.published[uri].diagnostics
    other = editor.open("typing/other.py", recipe)
    assert await editor.diagnostics(other) == []
    assert not editor.published[uri].diagnostics


async def test_many_documents_each_keep_their_own(editor: Editor, recipe: str, broken: str) -> None:
    uris = [editor.open(f"typing/many{number}.py", broken if number % 2 else recipe) for number in range(8)]
    assert [len(await editor.diagnostics(uri)) for uri in uris] == [0, 1] * 4
    editor.replace(uris[0], "16 * 5 * 5", "16 * 6 * 6")
    assert len(await editor.diagnostics(uris[0])) == 1
    assert len((await editor.hints_when(uris[6])).values()) > 10


async def test_what_is_noticed_does_not_vanish_during_an_edit(editor: Editor) -> None:
    uri = editor.open("typing/noticed.py", UNUSED)
    await editor.diagnostics(uri)
    await editor.until(lambda: [each.code for each in editor.published[uri].diagnostics] == ["unused-layer"])
    begin = len(editor.publications)
    editor.replace(uri, "nn.Linear(8, 4)", "nn.Linear(8, 5)")
    await editor.hints_when(uri, lambda hints: "[B, 5]" in str(hints))
    editor.replace(uri, "nn.Linear(8, 5)", "nn.Linear(9, 5)")
    # Until all of a network has run, a lint stays that is not told of one that fails.
    await editor.until(lambda: any(len(published.diagnostics) == 2 for published in editor.publications[begin:]))
    said = [[each.code for each in published.diagnostics] for published in editor.publications[begin:] if published.uri == uri]
    until = next(number for number, codes in enumerate(said) if len(codes) == 2)
    assert all("unused-layer" in codes for codes in said[:until])


async def test_hints_stay_below_a_part_that_is_not_written_yet(editor: Editor) -> None:
    uri = editor.open("typing/parts.py", UNUSED.replace("        return y", "        z = self.spare(y)\n        return z"))
    assert (await editor.hints_when(uri))[9] == "→ [B, 4]"
    editor.replace(uri, "        z = ", "        y = self.drop(y)\n        k = self.spare(self.fc(x))\n        z = ")
    hints = await editor.hints_when(uri, lambda hints: 10 in hints)
    assert [hints.get(line) for line in (8, 9, 10, 11, 12)] == ["→ [B, 4]", None, "→ [B, 4]", "→ [?, 4]", "→ [?, 4]"]
    (finding,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, finding.range) == "self.drop"
    editor.replace(uri, "        self.spare = ", "        self.drop = nn.Dropout()\n        self.spare = ")
    hints = await editor.hints_when(uri, lambda hints: "?" not in str(hints))
    assert [hints.get(line) for line in (9, 10, 11, 12, 13)] == ["→ [B, 4]"] * 5
    assert await editor.diagnostics(uri) == []


async def test_hints_of_parts_stay_when_what_calls_them_cannot_be_built_any_more(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    await editor.start(initialization_options={"interpreter": TORCH_PYTHON, "settings": {}})
    whole = "class Model(nn.Module):"
    text = BLOCKS + MODEL[MODEL.index(whole) :].replace("Block(8)", "Block(size=8)")
    uri = editor.open("built.py", text)
    before = await editor.hints_when(uri, lambda hints: "[B, 4]" in hints.get(13, ""))
    assert before[6] == "→ [B, 16]"
    await editor.until(lambda: editor.statuses[-1].state == "idle")  # From then on only what an edit has to do with runs.
    editor.replace(uri, "Block(size=8)", "Block(depth=8)")
    seen: list[dict[int, str]] = []
    while not seen or not editor.published[uri].diagnostics or len(seen) < 100:
        seen.append(await editor.hints(uri))
        await asyncio.sleep(0.01)
    assert all(6 in hints for hints in seen)
    hints = await editor.hints_when(uri, lambda hints: 13 not in hints)
    assert hints[6].startswith("→ [B, ")
    assert await editor.stop() == 0


async def test_what_a_program_saw_is_not_said_of_a_layer_that_is_mended(editor: Editor) -> None:
    text = UNUSED.replace("# shapelens: Net()(f32[B:2, 8])\n", "").replace("nn.Linear(8, 4)", "nn.Linear(9, 4)")
    uri = editor.open("typing/mended.py", f"{text}\nimport torch\nscores = Net()(torch.ones(2, 8))\n")
    await editor.until(lambda: uri in editor.published and "linear-in-features" in str(editor.published[uri].diagnostics))
    await editor.idle()
    begin = len(editor.publications)
    editor.replace(uri, "nn.Linear(9, 4)", "nn.Linear(8, 4)")
    await editor.hints_when(uri, lambda hints: "[2, 4]" in str(hints))
    await editor.idle()
    said = [each.code for published in editor.publications[begin:] if published.uri == uri for each in published.diagnostics]
    assert "linear-in-features" not in said
