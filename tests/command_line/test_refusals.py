"""What cannot be done is said in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line.commands import run

REFUSALS = {
    "no such file": (["show", "nothing.py"], "nothing.py: no such file"),
    "a folder": (["show", "."], ". is a folder, not a Python file"),
    "binary": (["show", "binary.py"], "binary.py is a binary file"),
    "another encoding": (["show", "latin.py"], "latin.py is not Python text"),
    "not Python": (["show", "notes.txt"], "notes.txt is not a Python file"),
    "no such class": (["show", "model.py::Nett"], "model.py has no module class Nett; it has Net"),
    "class without example": (["show", "model.py::Net"], "Net has no example"),
    "bad example": (["show", "model.py", "--example", "Net()(f32[B:2, "], "--example: "),
    "no such interpreter": (["show", "model.py", "--example", "Net()", "--interpreter", "/no/python"], "/no/python does not exist"),
    "interpreter without torch": (["show", "model.py", "--example", "Net()", "--interpreter", "{bare}"], "PyTorch is not installed for"),
    "no such path to check": (["check", "model.py", "nothing"], "nothing: no such file or folder"),
    "no such code": (
        ["check", "model.py", "--select", "cat,brodcast"],
        "--select brodcast: there is no such code (did you mean broadcast?)",
    ),
    "no such rule": (["rule", "xview"], "xview: there is no such code (did you mean view?); `shapelens rule` lists them"),
    "no such dim": (["summary", "mlp.py", "--dim", "b=4"], "--dim b: the example has no dim b; it has B, T: did you mean B?"),
    "no dim with a name": (
        ["summary", "mlp.py", "-e", "Net()(f32[3, 8])", "--batch", "4"],
        "the example has no dim B; it has none with a name",
    ),
    "no such dim to fit": (["summary", "mlp.py", "--memory", "1GB", "--of", "H"], "--of H: the example has no dim H; it has B, T"),
    "no such device": (
        ["check", "model.py", "--memory", "RTX 4091"],
        "--memory RTX 4091 is no memory like 24 GB or 800 MB, and no device that is known (did you mean RTX 4090?): T4, ",
    ),
    "a device of several memories": (
        ["summary", "mlp.py", "--memory", "a100"],
        "--memory a100 comes with several memories: A100 40GB or A100 80GB",
    ),
    "no such folder for the doctor": (["doctor", "nothing"], "nothing: no such folder"),
}


@pytest.mark.core
@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_is_one_clear_line(case: str, folder: Path) -> None:
    arguments, message = REFUSALS[case]
    done = run(
        *(argument.format(bare=folder / "bare" / "bin" / "python") if "{bare}" in argument else argument for argument in arguments),
        cwd=folder,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("shapelens: ") and message in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


@pytest.mark.core
def test_a_bad_example_says_at_which_column(folder: Path) -> None:
    assert "column" in run("show", "model.py", "--example", "Net()(f32[B:2], x y)", cwd=folder).stderr


def test_a_file_that_does_not_parse_is_shown_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x:\n        return x\n")
    done = run("show", "half.py", cwd=tmp_path)
    assert done.returncode == 1 and not done.stderr
    assert "[syntax]" in done.stdout and "1 error" in done.stdout


@pytest.mark.core
def test_a_file_without_an_example_is_shown_and_says_how_to_get_one(folder: Path) -> None:
    done = run("show", "model.py", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("no example to run: write one above the class, `# shapelens: Net(...)")
