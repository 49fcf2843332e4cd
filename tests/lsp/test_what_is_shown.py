"""A file is opened: what the editor shows of it, and what the light bulb does."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

HEADS = """\
import torch
from torch import nn


# shapelens: Heads(24, 3)(f32[B:2, T:7, 24])
class Heads(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(b, t, self.heads, -1).transpose(1, 2)
        k = k.view(b, t, self.heads, -1).transpose(1, 3)
        v = v.view(b, t, self.heads, -1).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)).softmax(-1)
        return (scores @ v).transpose(1, 2).reshape(b, t, d)
"""


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines()) if part in line)


@pytest.mark.core
async def test_hints_stand_at_the_layers_the_values_and_the_parameters(editor: Editor, recipe: str) -> None:
    uri = editor.open("shown/hints.py", recipe)
    assert await editor.diagnostics(uri) == []
    hints = await editor.hints_when(uri)
    assert hints[line_of(recipe, "self.pool = ")] == "→ [B, 6, 14, 14] | [B, 16, 5, 5]"
    assert hints[line_of(recipe, "torch.flatten")] == "→ [B, 400]"
    assert hints[line_of(recipe, "def forward")] == "x: [B, 3, 32, 32]"
    assert hints[line_of(recipe, "return x")] == "→ [B, 10]"


@pytest.mark.core
async def test_only_the_hints_of_the_range_are_sent_and_tooltips_come_when_asked_for(editor: Editor, recipe: str) -> None:
    uri = editor.open("shown/range.py", recipe)
    await editor.hints_when(uri)
    number = line_of(recipe, "self.pool = ")
    one_line = types.Range(types.Position(number, 0), types.Position(number, 1))
    found = await editor.client.text_document_inlay_hint_async(types.InlayHintParams(types.TextDocumentIdentifier(uri), one_line))
    assert found is not None and [hint.label for hint in found] == ["→ [B, 6, 14, 14] | [B, 16, 5, 5]"]
    assert found[0].tooltip is None
    resolved = await editor.client.inlay_hint_resolve_async(found[0])
    assert isinstance(resolved.tooltip, types.MarkupContent) and "`[B, 6, 28, 28]` → `[B, 6, 14, 14]`" in resolved.tooltip.value


@pytest.mark.core
async def test_a_wrong_number_is_marked_explained_and_mended(editor: Editor, broken: str) -> None:
    uri = editor.open("shown/broken.py", broken)
    (finding,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, finding.range) == "16 * 6 * 6"
    assert (finding.code, finding.source, finding.severity) == ("linear-in-features", "ShapeLens", types.DiagnosticSeverity.Error)
    assert "fc1 gets 400 features" in finding.message and "in_features is 576" in finding.message
    related = {editor.text_of(uri, each.location.range): each.location.uri for each in finding.related_information or []}
    assert related["self.fc1(x)"] == uri

    fix = (await editor.actions(uri, finding))[0]
    assert fix.title == "Change in_features to 16 * 5 * 5 → [1024, 120]"
    assert (fix.kind, fix.is_preferred) == (types.CodeActionKind.QuickFix, True)
    assert fix.edit is not None
    editor.apply(fix.edit)
    assert "nn.Linear(16 * 5 * 5, 120)" in editor.texts[uri]
    assert await editor.diagnostics(uri) == []


@pytest.mark.core
async def test_fixes_follow_the_findings_once_they_have_been_tried(editor: Editor, broken: str) -> None:
    uri = editor.open("shown/followed.py", broken)
    titles: list[str] = []

    def have_fixes() -> bool:
        found = editor.published.get(uri)
        titles[:] = [fix["title"] for each in found.diagnostics for fix in each.data["fixes"]] if found is not None else []
        return bool(titles)

    await editor.until(have_fixes)
    assert titles == ["Change in_features to 16 * 5 * 5 → [1024, 120]"]


async def test_a_dim_that_is_wrong_long_before_the_failure_is_mended_there(editor: Editor) -> None:
    uri = editor.open("shown/heads.py", HEADS)
    (finding,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, finding.range) == "q @ k.transpose(-2, -1)"
    fix = (await editor.actions(uri, finding))[0]
    assert (fix.title, fix.is_preferred) == ("Change dim 3 of transpose to 2 → [2, 3, 7, 8]", True)
    assert fix.edit is not None
    editor.apply(fix.edit)
    assert "k = k.view(b, t, self.heads, -1).transpose(1, 2)" in editor.texts[uri]
    assert await editor.diagnostics(uri) == []


async def test_an_edit_ends_the_search_for_fixes(editor: Editor) -> None:
    uri = editor.open("shown/interrupted.py", HEADS)
    assert len(await editor.diagnostics(uri)) == 1
    editor.replace(uri, "transpose(1, 3)", "transpose(1, 2)")
    assert await editor.diagnostics(uri) == []
    last = line_of(HEADS, "return (scores")
    hints = await editor.hints_when(uri, lambda hints: last in hints and "[B, " in hints[last])
    assert hints[last] == "→ [B, T, 24]"


@pytest.mark.core
async def test_a_finding_can_be_silenced(editor: Editor, broken: str) -> None:
    uri = editor.open("shown/silenced.py", broken)
    (finding,) = await editor.diagnostics(uri)
    silence = (await editor.actions(uri, finding))[-1]
    assert silence.edit is not None and not silence.is_preferred
    editor.apply(silence.edit)
    assert "120)  # shapelens: ignore[linear-in-features]\n" in editor.texts[uri]
    assert await editor.diagnostics(uri) == []


@pytest.mark.core
async def test_an_old_fix_is_not_offered_for_a_text_that_has_changed(editor: Editor, broken: str) -> None:
    uri = editor.open("shown/stale.py", broken)
    (finding,) = await editor.diagnostics(uri)
    editor.replace(uri, "16 * 6 * 6", "7")
    assert [action.title for action in await editor.actions(uri, finding)] == ["Silence linear-in-features on this line"]


@pytest.mark.core
async def test_hovers_tell_of_layers_and_tensors(editor: Editor, recipe: str) -> None:
    uri = editor.open("shown/hovers.py", recipe)
    await editor.hints_when(uri)
    layer = await editor.hover(uri, "nn.Conv2d(3, 6, 5)")
    assert layer is not None and "[B, 3, 32, 32]" in layer and "[B, 6, 28, 28]" in layer and "weight" in layer
    assert await editor.hover(uri, "import torch.nn.functional") is None


async def test_a_long_example_is_shapes_in_the_lens_and_whole_in_what_a_click_gets(editor: Editor, recipe: str) -> None:
    example = f"Net()(torch.cat([{', '.join(8 * ['f32[2, 3, 32, 32]'])}]))"
    uri = editor.open("shown/long_lens.py", recipe.replace("Net()(f32[B:1024, 3, 32, 32])", example))
    await editor.hints_when(uri, lambda hints: "28, 28]" in str(hints))
    (lens,) = await editor.lenses(uri)
    assert lens.command is not None and lens.command.title.startswith("Net · x f32[16, 3, 32, 32] · given · 62")
    assert lens.command.tooltip == example
    assert list(lens.command.arguments or []) == [uri, "Net", example]


@pytest.mark.core
async def test_the_lens_shows_the_example_and_sets_another(editor: Editor, recipe: str) -> None:
    uri = editor.open("shown/lens.py", recipe)
    await editor.hints_when(uri)
    (lens,) = await editor.lenses(uri)
    assert lens.command is not None and "62 006 parameters" in lens.command.title.replace("\u202f", " ")
    assert lens.command.command == "shapelens.setExample"
    assert list(lens.command.arguments or []) == [uri, "Net", "Net()(f32[B:1024, 3, 32, 32])"]

    assert "column" in await editor.execute("shapelens.checkExample", uri, "Net", "Net()(f32[B:2, 3")
    assert await editor.execute("shapelens.checkExample", uri, "Net", "Net()(f32[N:4, 3, 32, 32])") is None
    assert await editor.execute("shapelens.applyExample", uri, "Net", "Net()(f32[N:4, 3, 32, 32])") is None
    assert "# shapelens: Net()(f32[N:4, 3, 32, 32])\n" in editor.texts[uri] and "1024" not in editor.texts[uri]
    hints = await editor.hints_when(uri, lambda hints: "→ [N, 400]" in hints.values())
    assert hints[line_of(recipe, "return x")] == "→ [N, 10]"


async def test_the_annotated_file_has_its_hints_in_the_margin(editor: Editor, recipe: str) -> None:
    uri = editor.open("shown/annotated.py", recipe)
    await editor.hints_when(uri)
    lines = (await editor.execute("shapelens.annotated", uri))["text"].splitlines()
    assert len(lines) == len(recipe.splitlines())
    (flatten,) = [line for line in lines if "torch.flatten" in line]
    assert flatten.startswith("        x = torch.flatten(x, 1)  ") and flatten.endswith("→ [B, 400]")


async def test_the_annotated_file_says_what_was_taken_for_granted(editor: Editor, recipe: str) -> None:
    condition = "        if x.sum() > 0:\n            x = x * 2\n        return x\n"
    uri = editor.open("shown/conditions.py", recipe.replace("        return x\n", condition))
    (note,) = await editor.diagnostics(uri)
    assert (note.code, note.severity) == ("data-dependent", types.DiagnosticSeverity.Hint)
    (line,) = [each for each in (await editor.execute("shapelens.annotated", uri))["text"].splitlines() if "if x.sum()" in each]
    assert line.endswith("this condition depends on data: what is shown is seen where it is false")


@pytest.mark.core
async def test_a_file_without_models_is_left_alone(editor: Editor) -> None:
    uri = editor.open("shown/plain.py", "import json\nprint(json.dumps({}))\nraise SystemExit\n")
    assert await editor.diagnostics(uri) == []
    assert await editor.hints(uri) == {} and await editor.lenses(uri) == []


async def test_a_long_run_shows_hints_while_it_goes_on(editor: Editor) -> None:
    text = """import threading
import torch
from torch import nn


# shapelens: Slow()(f32[B:2, 8])
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        y = self.fc(x)
        for _ in range(1000):
            threading.Event().wait(0.1)
            self.fc(x)
        return y
"""
    uri = editor.open("shown/slow.py", text)
    hints = await editor.hints_when(uri, lambda hints: len(hints) > 0)
    assert hints[9].startswith("→ [2, 4]") and hints[12] == "→ [2, 4]" and 16 not in hints
    editor.set_text(uri, text.replace("1000", "1"))
    hints = await editor.hints_when(uri)
    assert (hints[9], hints[12], hints[16]) == ("→ [B, 4] ×2", "→ [B, 4]", "→ [B, 4]")


async def test_a_program_that_was_cut_short_between_its_stages_is_followed_to_its_end(editor: Editor) -> None:
    """What it shows first, before its functions are called, is not all that it shows where the edit that cut it short is undone."""
    text = (
        "import torch\n\n\ndef slow(x: torch.Tensor):\n    n = sum(i for i in range(TURNS))\n    return x * n\n\n\n"
        "def centred(rows: torch.Tensor):\n    return rows - rows.mean(0)\n\n\ntable = torch.rand(7, 3)\n"
    )
    uri = editor.open("cut_short.py", text)
    await editor.hints_when(uri, lambda hints: "[7, 3]" in hints.get(12, ""))
    assert 9 not in await editor.hints(uri), "its functions are not called yet"
    editor.replace(uri, "table = ", "tables = ")
    editor.replace(uri, "tables = ", "table = ")
    await editor.hints_when(uri, lambda hints: 9 in hints)


SLOW_TWICE = """\
import threading

import torch
from torch import nn


def slowly(x):
    for _ in range(8):
        threading.Event().wait(0.1)
    return torch.relu(x)


# shapelens: Slow()(f32[B:2, 4])
class Slow(nn.Module):
    def forward(self, x):
        return slowly(x)


result = slowly(torch.zeros(3, 5))
"""


async def test_the_progress_of_a_program_goes_on_from_that_of_its_classes(editor: Editor) -> None:
    uri = editor.open("shown/slow_twice.py", SLOW_TWICE)
    assert "→ [3, 5]" in (await editor.hints_when(uri, lambda hints: "[3, 5]" in str(hints))).values()
    await editor.until(lambda: [value.get("kind") for value in editor.progress][-1:] == ["end"])
    running = next(number for number, value in enumerate(editor.progress) if value.get("message") == "Running slow_twice.py")
    assert [value.get("kind") for value in editor.progress[running + 1 :]] == ["end"]


async def test_the_extension_is_told_of_a_document_as_of_one_thing(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    await editor.start(initialization_options={"interpreter": TORCH_PYTHON, "settings": {}})
    uri = editor.open("slow_twice.py", SLOW_TWICE)
    await editor.hints_when(uri, lambda hints: "[3, 5]" in str(hints))
    await editor.until(lambda: editor.statuses[-1].state == "idle")
    assert [status.state for status in editor.statuses] == ["starting", "running", "idle"], "it is idle between two runs"
    await editor.stop()


FUNCTIONS = """\
import torch

x = torch.ones(2, 3)

def slow(a):
    n = sum(1 for _ in range(TURNS))
    return a.relu()

def late():
    y = torch.zeros(4, 5)
    return y
"""


@pytest.mark.parametrize("turns", ["10**7", "10**9"], ids=["slow", "ended by the limit of time"])
async def test_functions_keep_their_hints_until_the_program_has_come_to_them(editor: Editor, turns: str) -> None:
    """What statements show is there after an edit before functions have been called: those show what they did."""
    uri = editor.open("functions.py", FUNCTIONS.replace("TURNS", turns))
    await editor.hints_when(uri, lambda hints: "[2, 3]" in str(hints) and "[4, 5]" in str(hints))
    editor.replace(uri, "torch.ones(2, 3)", "torch.ones(2, 6)")
    assert "[4, 5]" in str(await editor.hints_when(uri, lambda hints: "[2, 6]" in str(hints)))


async def test_a_double_click_on_a_hint_writes_its_shape_as_a_comment(editor: Editor, recipe: str) -> None:
    uri = editor.open("written/hint.py", recipe)
    await editor.hints_when(uri)
    params = types.InlayHintParams(types.TextDocumentIdentifier(uri), types.Range(types.Position(0, 0), types.Position(100, 0)))
    hints = await editor.client.text_document_inlay_hint_async(params)
    assert hints is not None
    written = {hint.position.line: hint.text_edits[0].new_text for hint in hints if hint.text_edits}
    lines = recipe.splitlines()
    assert written[lines.index("        x = torch.flatten(x, 1)")] == "  # (B, 400)"
    assert written[lines.index("    def forward(self, x):")] == "  # x: (B, 3, 32, 32)"
    assert len(written) == 8


async def test_an_action_at_the_head_of_a_function_writes_its_shapes(editor: Editor, recipe: str) -> None:
    uri = editor.open("written/function.py", f"{recipe}\n\nscores = Net()(torch.ones(8, 3, 32, 32))\n")
    await editor.hints_when(uri, lambda hints: "[8, 10]" in str(hints))
    head, body = (editor.position(uri, recipe.index(text)) for text in ("forward(self", "torch.flatten(x"))
    found = []
    for place in (head, body):
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), types.Range(place, place), types.CodeActionContext([]))
        found.append([each for each in await editor.client.text_document_code_action_async(params) or [] if "as comments" in each.title])
    assert found[1] == []  # No light bulb at each line.
    (action,) = found[0]
    assert isinstance(action, types.CodeAction) and action.edit is not None and action.title == "Write the shapes of forward as comments"
    assert "(B, 16, 5, 5)" in str(action.edit) and "(B, 400)" in str(action.edit)
