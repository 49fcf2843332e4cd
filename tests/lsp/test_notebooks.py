"""Notebooks: what is seen of their cells, what edits of cells change of that, and what is left behind: nothing."""

from __future__ import annotations

import json

import pytest
from lsprotocol import types

from lsp.editor import Editor
from lsp.notebook_editor import Notebook, content

IMPORTS = "import torch\nfrom torch import nn"
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 4)
    def forward(self, x):
        return self.fc2(self.fc1(x).relu())"""
USE = "net = Net()\nx = torch.rand(32, 8)\ny = net(x)"
LOSS = "loss = nn.functional.cross_entropy(y, torch.zeros(32, dtype=torch.long))"
SHAPES = "→ [B, 4]"


@pytest.mark.core
async def test_hints_and_hovers_stand_in_the_cell_that_they_belong_to(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/net.ipynb", IMPORTS, NET, USE, LOSS)
    hints = await notebook.hints_when(3, "→ []")
    assert hints[0] == {}
    assert hints[1] == {3: "→ [B, 16]", 4: "→ [B, 4]", 5: "x: [B, 8]", 6: "→ [B, 4]"}
    assert hints[2] == {0: "gives [32, 4]", 1: "→ [32, 8]", 2: "→ [32, 4]"}
    assert "[B, 8]" in (await editor.hover(notebook.cells[1], "self.fc1(x)") or "")
    lenses = await editor.lenses(notebook.cells[1])
    assert {lens.range.start.line for lens in lenses} == {0} and "cell 3, line 3" in str(lenses)
    (program,) = await editor.lenses(notebook.cells[2])
    assert program.command is not None and program.command.title.startswith("as a program")


async def test_the_model_of_a_class_in_a_notebook_leads_to_its_cells(editor: Editor) -> None:
    """Asked for in the cell of the class; places are lines of cells."""
    notebook = Notebook.open(editor, "notebooks/model.ipynb", IMPORTS, NET, USE)
    await notebook.hints_when(2, "gives [32, 4]", "→ [32, 8]", "→ [32, 4]")
    shown = (await editor.execute("shapelens.model", notebook.cells[1], "", 3, {}))["model"]
    (net,) = shown["tree"]
    assert (net["class"], net["outputs"]) == ("Net", ["[B, 4]"])
    first = net["rows"][0]
    assert [(first[place]["file"], first[place]["line"]) for place in ("constructor", "call")] == [
        (notebook.cells[1], 4),
        (notebook.cells[1], 7),
    ]


@pytest.mark.core
async def test_a_wrong_number_is_marked_in_its_cell_and_mended_there(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/wrong.ipynb", IMPORTS, NET.replace("Linear(16, 4)", "Linear(15, 4)"), USE)
    (diagnostic,) = await notebook.wrong(1, "15")
    assert "cell 2, line 4" in diagnostic.message
    assert not any(editor.published[uri].diagnostics for uri in (notebook.cells[0], notebook.cells[2]) if uri in editor.published)
    (fix, *_) = await editor.actions(notebook.cells[1], diagnostic)
    assert fix.title.partition(" → ")[0].endswith("16") and fix.edit is not None
    notebook.apply(fix.edit)
    await notebook.wrong(1)
    assert "Linear(16, 4)" in notebook.texts[1]


async def test_a_comment_silences_a_finding_in_its_cell(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/silenced.ipynb", IMPORTS, NET.replace("Linear(16, 4)", "Linear(15, 4)"), USE)
    (diagnostic,) = await notebook.wrong(1, "15")
    silence = (await editor.actions(notebook.cells[1], diagnostic))[-1]
    assert silence.edit is not None
    notebook.apply(silence.edit)
    await notebook.wrong(1)
    assert notebook.texts[1].splitlines()[4].endswith("# shapelens: ignore[linear-in-features]")


async def test_an_example_is_written_into_the_cell_of_its_class(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/directive.ipynb", IMPORTS, "\n\n" + NET)
    await notebook.hints_when(1, "→ [B, 16]", "→ [B, 4]", "x: [B, 8]", "→ [B, 4]")
    where = types.Range(types.Position(2, 0), types.Position(2, 0))
    params = types.CodeActionParams(types.TextDocumentIdentifier(notebook.cells[1]), where, types.CodeActionContext(diagnostics=[]))
    found = await editor.client.text_document_code_action_async(params) or []
    (write,) = [each for each in found if isinstance(each, types.CodeAction) and each.title.startswith("Write")]
    assert write.edit is not None
    notebook.apply(write.edit)
    assert notebook.texts[1].splitlines()[2].startswith("# shapelens: Net()(f32[B:2, 8])")


@pytest.mark.core
async def test_typing_in_one_cell_shows_in_the_others(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/typing.ipynb", IMPORTS, NET, USE)
    await notebook.hints_when(2, "gives [32, 4]", "→ [32, 8]", "→ [32, 4]")
    notebook.replace(1, "Linear(16, 4)", "Linear(16, 5)")
    await notebook.hints_when(2, "gives [32, 5]", "→ [32, 8]", "→ [32, 5]")
    notebook.replace(2, "32", "7")
    await notebook.hints_when(2, "gives [7, 5]", "→ [7, 8]", "→ [7, 5]")
    notebook.replace(2, "net = Net()", "# one more line\nnet = Net()")
    await editor.hints_when(notebook.cells[2], lambda hints: hints == {1: "gives [7, 5]", 2: "→ [7, 8]", 3: "→ [7, 5]"})


async def test_what_was_seen_stays_while_a_cell_does_not_parse_and_is_typed_in(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/broken_for_now.ipynb", IMPORTS, NET, USE, LOSS)
    await notebook.hints_when(3, "→ []")
    notebook.replace(2, "net(x)", "net(x")
    hints = await notebook.hints()
    assert hints[1][6] == "→ [B, 4]" and hints[2] == {0: "gives [32, 4]", 1: "→ [32, 8]", 2: "→ [32, 4]"} and hints[3] == {0: "→ []"}
    notebook.replace(2, "net(x", "net(x[:3])")
    await notebook.hints_when(2, "gives [3, 4]", "→ [32, 8]", "→ [3, 4]")


@pytest.mark.core
async def test_a_cell_that_does_not_parse_ends_alone(editor: Editor) -> None:
    notebook = Notebook.open(
        editor, "notebooks/broken.ipynb", IMPORTS, NET, "net = Net(\nx = torch.rand(32, 8", USE.splitlines()[2], "z = torch.rand(3)"
    )
    await notebook.hints_when(4, "→ [3]")
    await notebook.hints_when(3, "→ ?")
    assert [each for each in editor.published.values() if each.diagnostics and each.uri in notebook.cells] == []
    notebook.set_text(2, USE)
    await notebook.hints_when(2, "gives [32, 4]", "→ [32, 8]", "→ [32, 4]")


async def test_magics_keep_their_lines_and_do_nothing(editor: Editor) -> None:
    cells = [
        "%matplotlib inline\n!pip install \\\n    torch\nimport torch",
        "%%time\nx = torch.rand(2, 3)\n%time y = x.T\nfiles = !ls\nx.shape?",
        "%%bash\nls",
        "for name in files:\n    !cat {name}\nz = y @ x",
    ]
    notebook = Notebook.open(editor, "notebooks/magics.ipynb", *cells)
    await notebook.hints_when(3, "→ [3, 3]")
    assert await notebook.hints() == [{}, {1: "→ [2, 3]", 2: "→ [3, 2]"}, {}, {2: "→ [3, 3]"}]


async def test_cells_come_go_and_move(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/cells.ipynb", IMPORTS, "x = torch.rand(2, 3)", "y = x.T")
    await notebook.hints_when(2, "→ [3, 2]")
    notebook.insert(1, "w = torch.rand(3, 5)")
    notebook.replace(3, "x.T", "x @ w")
    await notebook.hints_when(3, "→ [2, 5]")
    assert await notebook.hints() == [{}, {0: "→ [3, 5]"}, {0: "→ [2, 3]"}, {0: "→ [2, 5]"}]
    wrong = notebook.insert(4, "v = y @ w")
    await notebook.wrong(4, "y @ w")
    notebook.move(1, 2)
    await notebook.hints_when(3, "→ [2, 5]")
    notebook.delete(4)
    await editor.until(lambda: not editor.published[wrong].diagnostics)
    notebook.split(3, 0)
    notebook.join(3)
    notebook.to_markdown_and_back(1, "x = torch.rand(4, 3)")
    await notebook.hints_when(3, "→ [4, 5]")


async def test_a_cell_that_comes_back_as_it_was_has_its_hints_again(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/back.ipynb", IMPORTS, "x = torch.rand(2, 3)", "y = x.T")
    await notebook.hints_when(2, "→ [3, 2]")
    notebook.to_markdown_and_back(2)
    notebook.delete(notebook.cells.index(notebook.insert(3, "")))
    await notebook.hints_when(2, "→ [3, 2]")


async def test_a_finding_goes_where_its_line_goes(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/split.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x")
    await notebook.wrong(1, "x @ x")
    notebook.split(1, 1)
    await notebook.wrong(2, "x @ x")
    assert not editor.published[notebook.cells[1]].diagnostics
    notebook.join(1)
    (diagnostic,) = await notebook.wrong(1, "x @ x")
    assert diagnostic.range.start.line == 1


async def test_closing_leaves_nothing_behind(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/closed.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x")
    await notebook.wrong(1, "x @ x")
    uri = notebook.cells[1]
    notebook.close()
    await editor.until(lambda: not editor.published[uri].diagnostics)
    again = Notebook.open(editor, "notebooks/closed.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x")
    await again.wrong(1, "x @ x")
    again.close()


async def test_an_untitled_notebook_has_shapes_too(editor: Editor) -> None:
    notebook = Notebook.open(editor, "Untitled-1.ipynb", IMPORTS, "x = torch.rand(2, 3)", saved=False)
    await notebook.hints_when(1, "→ [2, 3]")
    notebook.close()


async def test_what_is_typed_into_an_interactive_window_has_shapes(editor: Editor) -> None:
    window = Notebook.open(editor, "", IMPORTS, uri="vscode-interactive:/Interactive-1.interactive", kind="interactive")
    window.insert(1, "x = torch.rand(2, 3)")
    window.insert(2, "y = x.T")
    assert await window.hints_when(2, "→ [3, 2]") == [{}, {0: "→ [2, 3]"}, {0: "→ [3, 2]"}]
    window.insert(3, "z = x @ x")
    await window.wrong(3, "x @ x")
    window.close()


async def test_what_stands_in_the_outputs_of_cells_is_not_believed(editor: Editor) -> None:
    texts = [IMPORTS, "x = torch.rand(2, 3)\nx.shape", "y = x @ x.T"]
    written = json.loads(content(texts))
    shape = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": ["torch.Size([5, 7])"]}}
    error = {"output_type": "error", "ename": "RuntimeError", "evalue": "mat1 and mat2 shapes cannot be multiplied", "traceback": []}
    written["cells"][2]["outputs"], written["cells"][3]["outputs"] = [shape], [error]
    file = editor.root / "outputs.ipynb"
    file.write_text(json.dumps(written))
    notebook = Notebook.open(editor, file.name, *texts, uri=file.as_uri())
    assert await notebook.hints_when(2, "→ [2, 2]") == [{}, {0: "→ [2, 3]"}, {0: "→ [2, 2]"}]
    await notebook.wrong(2)
    assert json.loads(file.read_text()) == written
    notebook.close()


async def test_running_a_cell_runs_nothing_here(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/ran.ipynb", IMPORTS, "x = torch.rand(2, 3)")
    await notebook.hints_when(1, "→ [2, 3]")
    refreshes = len(editor.statuses)
    notebook.ran(1, 1)
    assert (await notebook.hints())[1] == {0: "→ [2, 3]"} and len(editor.statuses) == refreshes


async def test_what_is_not_known_is_no_error(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/unknown.ipynb", IMPORTS, "x = torch.rand(2, 3)")
    await notebook.hints_when(1, "→ [2, 3]")
    errors = [line for line in editor.log if "Traceback" in line]
    stranger = Notebook(editor, "file:///nowhere.ipynb", ["vscode-notebook-cell:/nowhere.ipynb#W1"], made=1)
    editor.texts[stranger.cells[0]], editor.versions[stranger.cells[0]] = "x = 1", 1
    stranger.replace(0, "1", "2")
    stranger.delete(0)
    uri = "vscode-notebook-cell:/elsewhere#W9"
    editor.texts[uri], editor.versions[uri] = "x = 1", 1
    notebook._splice(7, 3, [uri])
    editor.texts.pop(uri)
    notebook.cells.pop()
    await notebook.hints_when(1, "→ [2, 3]")
    assert [line for line in editor.log if "Traceback" in line] == errors


async def test_a_name_that_another_notebook_gives_is_no_error(editor: Editor) -> None:
    net = NET.replace("self.fc1(x)", "helper(x)")
    for name, first, severity in (
        ("alone", "", types.DiagnosticSeverity.Error),
        ("runs", "%run helpers.ipynb", types.DiagnosticSeverity.Hint),
    ):
        notebook = Notebook.open(editor, f"notebooks/{name}.ipynb", first, IMPORTS, net)
        (finding,) = await editor.diagnostics(notebook.cells[2])
        assert finding.severity is severity and "'helper' is not defined" in finding.message
        notebook.close()


async def test_cells_follow_a_file_that_they_import(editor: Editor) -> None:
    model = editor.open("notebooks_imports/tiny_net.py", IMPORTS + "\n" + NET)
    notebook = Notebook.open(editor, "notebooks_imports/use.ipynb", "import torch\nfrom tiny_net import Net", "y = Net()(torch.rand(5, 8))")
    await notebook.hints_when(1, "→ [5, 4]")
    editor.replace(model, "Linear(16, 4)", "Linear(16, 6)")
    await notebook.hints_when(1, "→ [5, 6]")
    notebook.close()


async def test_a_script_in_cells_may_hold_magics(editor: Editor) -> None:
    uri = editor.open("cells.py", "# %%\n%matplotlib inline\nimport torch\n# %%\nx = torch.rand(2, 3)\n%time y = x.T\n")
    await editor.hints_when(uri, lambda hints: hints == {4: "→ [2, 3]", 5: "→ [3, 2]"})
    assert await editor.diagnostics(uri) == []
    editor.replace(uri, "inline\n", "notebook\n!pip install \\\n    torch\n")
    editor.replace(uri, "rand(2, 3)", "rand(2, 5)\nx?\n")
    await editor.hints_when(uri, lambda hints: hints == {6: "→ [2, 5]", 9: "→ [5, 2]"})
    editor.replace(uri, "x.T", "x @ x")
    await editor.until(lambda: [each.range.start.line for each in editor.published[uri].diagnostics] == [9])
    editor.replace(uri, "%time ", "")
    (diagnostic,) = await editor.diagnostics(uri)
    assert editor.text_of(uri, diagnostic.range) == "x @ x"


async def test_cells_that_have_run_can_follow_each_other_as_they_ran(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/executed.ipynb", IMPORTS, "y = x.T", "x = torch.rand(2, 3)", "z = x.sum(0)")
    await notebook.hints_when(3, "→ [3]")
    assert (await notebook.hints())[1] == {}
    try:
        editor.configure({"notebooks": {"order": "execution"}})
        notebook.ran(2, 1)
        notebook.ran(1, 2)
        assert await notebook.hints_when(1, "→ [3, 2]") == [{}, {0: "→ [3, 2]"}, {0: "→ [2, 3]"}, {0: "→ [3]"}]
        notebook.replace(1, "x.T", "x @ x")
        await notebook.wrong(1, "x @ x")
    finally:
        editor.configure({})
    await notebook.wrong(1)


async def test_a_notebook_that_is_renamed_has_its_shapes_under_its_new_name(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/old_name.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x")
    await notebook.wrong(1, "x @ x")
    old = notebook.cells[1]
    renamed = notebook.rename("notebooks/new_name.ipynb")
    await renamed.wrong(1, "x @ x")
    assert not editor.published[old].diagnostics
    renamed.replace(1, "x @ x", "x @ x.T")
    await renamed.wrong(1)
    renamed.save()
    await renamed.hints_when(1, "→ [2, 3]", "→ [2, 2]")


async def test_a_notebook_that_is_opened_twice_is_the_one_that_was_opened_last(editor: Editor) -> None:
    first = Notebook.open(editor, "notebooks/twice.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x")
    await first.wrong(1, "x @ x")
    again = Notebook.open(editor, "notebooks/twice.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x", "z = x.T")
    await again.hints_when(2, "→ [3, 2]")
    again.replace(1, "x @ x", "x @ x.T")
    await again.wrong(1)
    again.close()


async def test_another_kernel_is_no_other_notebook(editor: Editor) -> None:
    notebook = Notebook.open(editor, "notebooks/kernel.ipynb", IMPORTS, "x = torch.rand(2, 3)\ny = x @ x")
    await notebook.wrong(1, "x @ x")
    notebook.set_metadata({"kernelspec": {"name": "another", "language": "python"}})
    assert (await notebook.hints())[1][0] == "→ [2, 3]"
    notebook.replace(1, "x @ x", "x @ x.T")
    await notebook.wrong(1)
