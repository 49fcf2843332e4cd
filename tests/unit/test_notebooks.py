"""Notebooks: their code as one text, and what they say of the classes of a file."""

import ast
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from shapelens import notebooks
from shapelens.examples.importing_files import ImportingFiles
from shapelens.examples.settings import Settings
from shapelens.notebooks import UNKNOWN
from shapelens.worker.search.usages.importing_files import usages_elsewhere


def notebook(*cells: str) -> str:
    """A notebook of code cells, with a heading above them."""
    heading: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": ["# import net\n"]}
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": dedent(cell).lstrip("\n").splitlines(True)} for cell in cells]
    return json.dumps({"cells": [heading, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_the_cells_are_one_text() -> None:
    found = notebooks.read(notebook("import torch\nx = 1", "y = x"))
    assert found is not None and found.text == "import torch\nx = 1\ny = x\n"
    assert [found.place(line) for line in (1, 2, 3)] == ["cell 2, line 1", "cell 2, line 2", "cell 3, line 1"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%matplotlib inline\nx = 1", "\nx = 1"),
        ("for name in []:\n    !ls {name}\nx?", "for name in []:\n    pass\n"),
        ("%time y = net(x)", "pass; y = net(x)"),
        ("if x:\n    %timeit -n 10 -r3 net(x)", "if x:\n    pass;             net(x)"),
        ("%%bash\nls", "\n"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%capture out\nx = 1", f"out = {UNKNOWN}\nx = 1"),
        ("files = !ls data\nx = 1", f"files = {UNKNOWN}\nx = 1"),
        ("names['a'] = %sx ls \\\n  data\nx = 1", f"names['a'] = {UNKNOWN}\n\nx = 1"),
        ('!echo "it\'s" \\\n  here\nx = 1', "\n\nx = 1"),
        ("x = (3\n  % 2)\n!ls", "x = (3\n  % 2)\n"),
        ('text = """\n!ls\n%x\n"""\n%x', 'text = """\n!ls\n%x\n"""\n'),
        ("pip install torch\nx = 1", "\nx = 1"),
        ("ls\nx = 1", "\nx = 1"),
        ("x = a if a != 3 else 2\nprint(x, end='!')", "x = a if a != 3 else 2\nprint(x, end='!')"),
        ("x = 1\r\n!ls\r\ny = 2\r", "x = 1\r\n\r\ny = 2\n"),
    ],
)
def test_what_only_ipython_understands_is_left_out(cell: str, text: str) -> None:
    found = notebooks.read(notebook(cell))
    assert found is not None and found.text == text + "\n"


@pytest.mark.parametrize("content", ["", "[]", '{"cells": 3}', '{"cells": [{"source": []}]}', '{"cells": []}', notebook()])
def test_what_is_no_notebook_or_has_no_code(content: str) -> None:
    assert notebooks.read(content) is None


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("this is no Python\nx = 1", f"x = {UNKNOWN}\n"),
        ("import torch\nnet = Net(", f"import torch\nnet = {UNKNOWN}"),
        ("import torch as t, numpy as\n", f"t = {UNKNOWN}\n"),
        ("class A:\n  x = 1\n  def f(self:\nfor i, (k, v) in a:\n  loss = k +", f"A = i = k = v = loss = {UNKNOWN}\n\n\n\n"),
        ("a = b, c = d[0] = 1\nn: int = 3\ns += 1\nx == 3\nf(k=3)\n(", f"a = b = c = d = n = s = {UNKNOWN}\n\n\n\n\n"),
        ("x (", ""),
    ],
)
def test_what_a_cell_would_define_that_does_not_parse_is_unknown(cell: str, text: str) -> None:
    found = notebooks.read(notebook(cell, "z = 2"))
    assert found is not None and found.text == text + "\nz = 2\n"


def test_each_cell_keeps_its_lines() -> None:
    cells = ["%%html\n<b>", "x = 1\ny = (", "%%time", "!ls\n%x"]
    found = notebooks.read(notebook(*cells, "z = 2"))
    assert found is not None and [found.place(line) for line in (1, 3, 4, 5, 6, 8)] == [
        "cell 2, line 1",
        "cell 3, line 1",
        "cell 3, line 2",
        "cell 4, line 1",
        "cell 5, line 1",
        "cell 6, line 1",
    ]


def test_older_notebooks_and_those_of_other_languages() -> None:
    cells = [{"cell_type": "code", "input": ["x = 1\n", "y = 2"], "language": "python"}, {"cell_type": "code", "input": "z = 3"}]
    old = {"worksheets": [{"cells": cells[:1]}, {"cells": [{"cell_type": "heading", "source": "z"}, *cells[1:]]}], "nbformat": 3}
    found = notebooks.read(json.dumps(old))
    assert found is not None and found.text == "x = 1\ny = 2\nz = 3\n" and found.numbers == [1, 3]
    code = {"cell_type": "code", "source": "x <- 1"}
    for metadata in ({"kernelspec": {"language": "R"}}, {"language_info": {"name": "julia"}}):
        assert notebooks.read(json.dumps({"cells": [code], "metadata": metadata})) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is no notebook: it is not JSON (Expecting value: line 1 column 1 (char 0))"),
        ('{"cells": [', "is no notebook: it is not JSON (Expecting value: line 1 column 12 (char 11))"),
        ('{"cells":' + "[" * 100_000, "is no notebook: it is nested too deeply"),
        ("[1]", "is no notebook: it has no list of cells"),
        ('{"cells": {"a": 1}}', "is no notebook: it has no list of cells"),
        ('{"cells": [1]}', "is no notebook: it has no list of cells"),
        ('{"worksheets": 3}', "is no notebook: it has no list of cells"),
    ],
)
def test_what_is_no_notebook_says_why(content: str, why: str) -> None:
    with pytest.raises(notebooks.NoNotebook) as raised:
        notebooks.code_cells(content)
    assert str(raised.value) == why


def test_what_cells_can_do_without_is_no_mistake() -> None:
    code = [{"cell_type": "code"}, {"cell_type": "code", "source": 3}, {"cell_type": "code", "source": ["x = 1", None]}]
    content = "\ufeff" + json.dumps({"cells": code, "metadata": {"language_info": [], "kernelspec": None}})
    assert [cell.source for cell in notebooks.code_cells(content)] == ["", "", "x = 1"]


def test_a_call_in_a_later_cell_is_evidence() -> None:
    document = ast.parse("import torch.nn as nn\nclass Net(nn.Module):\n    def __init__(self, dim): ...\n")
    content = notebook("import torch\nfrom net import Net", "%time\nnet = Net(5)\ny = net(torch.rand(2, 5))")
    (found,) = usages_elsewhere(content, "/work/explore.ipynb", ["Net"], document, "/work/net.py")
    assert (found.constructor, found.arguments, found.where) == ("Net(5)", "f32[B:2, 5]", "explore.ipynb, cell 3, line 3")


def test_a_notebook_that_imports_a_file_is_found_and_never_run(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("")
    (tmp_path / "explore.ipynb").write_text(notebook("import net  # shapelens: Net()(f32[1])"))
    (tmp_path / "other.ipynb").write_text(notebook("import nothing"))
    (user,) = ImportingFiles().of(str(tmp_path / "net.py"), str(tmp_path), Settings(), {})
    assert user.path == str(tmp_path / "explore.ipynb") and not user.has_example


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("# %%\n%matplotlib inline\nx = 1\n", "# %%\n\nx = 1\n"),
        ("#%% a title\n!pip install \\\n  torch\nfor i in x:\n    !ls {i}\n", "#%% a title\n\n\nfor i in x:\n    pass\n"),
        ("x = 1\n# %% [markdown]\n# 1 % of it\n# %%\n%%time\n%time y = x\n", "x = 1\n# %% [markdown]\n# 1 % of it\n# %%\n\npass; y = x\n"),
        ("# %%\r\n%%bash\r\nls\r\n# %%\r\nx = 1\r\n", "# %%\r\n\r\n\r\n# %%\r\nx = 1\r\n"),
        ("# %%\nx = (1\n  % 2)\nnet?\n", "# %%\nx = (1\n  % 2)\n\n"),
    ],
)
def test_a_script_in_cells_is_what_its_cells_are(script: str, text: str) -> None:
    assert notebooks.script_as_python(script) == text


@pytest.mark.parametrize(
    "script",
    [
        "%matplotlib inline\nx = 1\n",  # without cells, which only a notebook has: a mistake, as Python says
        "# %%\nx = 1\n",
        "if x:\n# %%\n    y = (a\n% b)\n",
        "# Databricks notebook source\n# MAGIC %sql select 1\n# COMMAND ----------\n# MAGIC %%bash\n# MAGIC ls\nx = 1\n",
    ],
)
def test_any_other_script_stays_as_it_is(script: str) -> None:
    assert notebooks.script_as_python(script) == script
