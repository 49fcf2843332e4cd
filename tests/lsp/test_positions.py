"""Where things stand: in both encodings, behind characters that take several units, with every kind of line end, while text moves."""

from __future__ import annotations

import pytest

from lsp.editor import Editor

# The wrong number stands behind characters outside the basic multilingual plane, on its own line and before.
NON_BMP = """\
from torch import nn
# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    '''𝕊hapes 😀'''
    def __init__(self):
        super().__init__()
        self.𝑓𝑐, self.fc = nn.ReLU(), nn.Linear(9, len('😀é😀é'))  # 😀
    def forward(self, x):
        return self.fc(x)
"""


@pytest.fixture(params=["utf-16", "utf-8"])
def any_editor(request: pytest.FixtureRequest) -> Editor:
    fixture: Editor = request.getfixturevalue("editor" if request.param == "utf-16" else "utf8_editor")
    return fixture


@pytest.mark.core
async def test_the_encoding_that_the_client_prefers_is_used(any_editor: Editor) -> None:
    uri = any_editor.open("positions/bmp.py", NON_BMP)
    (finding,) = await any_editor.diagnostics(uri)
    assert any_editor.text_of(uri, finding.range) == "9"
    fix = (await any_editor.actions(uri, finding))[0]
    assert fix.edit is not None
    any_editor.apply(fix.edit)
    assert "nn.Linear(8, len('😀é😀é'))  # 😀" in any_editor.texts[uri]
    assert await any_editor.diagnostics(uri) == []
    # An edit between such characters keeps server and client in step: else the next finding would be somewhere else.
    any_editor.replace(uri, "é😀é", "x😀éé")
    any_editor.replace(uri, "nn.Linear(8", "nn.Linear(7")
    (finding,) = await any_editor.diagnostics(uri)
    assert any_editor.text_of(uri, finding.range) == "7"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# \x0c form feed, next line \x85, line separator \u2028\n"])
async def test_line_ends_marks_and_separators(editor: Editor, broken: str, line_end: str, start: str) -> None:
    text = (start + broken).replace("\n", line_end)
    # A name of its own: an answer about the text before could still be on its way.
    uri = editor.open_uri((editor.root / "positions" / f"ends_{len(start)}_{len(line_end)}.py").as_uri(), text)
    (finding,) = await editor.diagnostics(uri)
    # Counted by hand: the harness splits lines at more places than LSP does.
    before = text[: text.index("16 * 6 * 6")]
    assert (finding.range.start.line, finding.range.start.character) == (before.count("\n"), len(before.rpartition("\n")[2]))
    assert finding.range.end.character - finding.range.start.character == len("16 * 6 * 6")


@pytest.mark.core
async def test_hints_move_with_the_text_before_anything_has_run_again(editor: Editor, recipe: str) -> None:
    uri = editor.open("positions/moving.py", recipe)
    before = await editor.hints_when(uri)
    # The text does not parse from here on, so that no run can answer.
    editor.replace(uri, "import torch\n", "import torch\nimport (\n\n")
    editor.replace(uri, "        x = torch.flatten(x, 1)\n", "")
    after = await editor.hints(uri)
    flatten = next(number for number, line in enumerate(recipe.splitlines()) if "flatten(x" in line)
    assert after == {line + 2 - (line > flatten): label for line, label in before.items() if line != flatten}


@pytest.mark.parametrize(
    "uri",
    ["untitled:Untitled-1", "file:///c%3A/work/net.py", "vscode-vfs://github/a/net.py", "file:///nowhere/at/all/net.py", "git:/net.py?ref"],
)
async def test_documents_that_no_file_of_this_machine_holds(editor: Editor, broken: str, uri: str) -> None:
    editor.open_uri(uri, broken)
    (finding,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, finding.range) == "16 * 6 * 6"
    assert {each.location.uri for each in finding.related_information or []} == {uri}
