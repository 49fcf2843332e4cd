"""An edit inside of functions is done to what is loaded: what a run sees is the same as if all had been loaded anew."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from worker.process import WorkerProcess
from worker.test_reload import comparable

DOCUMENT = """import functools
import torch
from torch import nn

SIZES = {"wide": [8, 6]}
COUNT = 0


def told(made):
    print("executed")
    made.size = width()
    return made


def plainly(function):
    def inner(*arguments):
        return function(*arguments)
    return inner


def width():
    return 4


@functools.lru_cache(maxsize=None)
def height(number):
    return number + 1


def scaled(x, by=2):
    h = x * by
    return [part + h for part in (h, h)][0]


@told
class Net(nn.Module):
    made = 0

    def __init__(self, out=2):
        super().__init__()
        self.fc = nn.Linear(self.size, 6)
        self.head = nn.Linear(6, out)
        Net.made += 0

    @staticmethod
    def folded(x):
        y = x.reshape(2, -1)
        return y

    @property
    def weight(self):
        w = self.fc.weight
        return w

    @plainly
    def hidden(self, x):
        z = self.fc(x)
        return z

    def forward(self, x):
        a = scaled(x)
        b = self.hidden(a)
        c = self.folded(b)
        d = self.weight
        e = torch.zeros(height(1), COUNT + 1)
        f = (lambda g: g.t())(e)
        return self.head(b)


def end():
    pass
"""
EXAMPLE = "Net()(f32[B:6, 4])"

INSIDE = [
    ("        a = scaled(x)\n", "        a = scaled(x)\n        aa = a + 1\n"),
    ("self.fc = nn.Linear(self.size, 6)", "self.fc = nn.Linear(self.size, 7)"),
    ("y = x.reshape(2, -1)", "y = x.reshape(3, -1)"),
    ("w = self.fc.weight", "w = self.fc.weight.t()"),
    ("z = self.fc(x)", "z = self.fc(x)[1:]"),
    ("h = x * by", "h = x.repeat(by, 1)"),
    ("lambda g: g.t()", "lambda g: g.flatten()"),
    ("def end():\n    pass", "def end():\n    return scaled"),
    ("    return number + 1", "    return number + 2"),
    ("class Net(nn.Module):\n", "class Net(nn.Module):\n    # of two layers\n"),
    ("        return self.head(b)\n", "        return self.head(b).undefined\n"),
]
BEYOND = [
    ("def scaled(x, by=2):", "def scaled(x, by=3):"),
    ("def __init__(self, out=2):", "def __init__(self, out=5):"),
    ("    return 4\n", "    return 5\n"),
    ('SIZES = {"wide": [8, 6]}', 'SIZES = {"wide": [8, 7]}'),
    ("    made = 0\n", "    made = 1\n"),
    ("    @plainly\n", ""),
    ("    return made\n", "    made.made = 3\n    return made\n"),
    ("    @property\n    def weight(self):", "    @property\n    def weight(self) -> torch.Tensor:"),
    ("        super().__init__()\n", "        nn.Module.__init__(self)\n"),
    ("class Net(nn.Module):", "class Net(torch.nn.Module):"),
    ("def end():\n    pass\n", ""),
]


@pytest.fixture
def file(forking: WorkerProcess, tmp_path: Path) -> Path:
    """The document, which is loaded."""
    found = tmp_path / "net.py"
    forking.run(found, DOCUMENT, EXAMPLE)
    for _ in range(50):
        forking.run(found, DOCUMENT, EXAMPLE)
        if forking.runs not in forking.loading:
            return found
        time.sleep(0.1)
    raise AssertionError("nothing is loaded")


def compare(forking: WorkerProcess, unforked: WorkerProcess, file: Path, text: str, what: object) -> bool:
    """Run a text with what is loaded, and with nothing; whether the former has executed it."""
    quick, _ = forking.run(file, text, EXAMPLE)
    executed = "executed" in forking.output
    fresh, _ = unforked.run(file, text, EXAMPLE)
    assert comparable(quick) == comparable(fresh), what
    return executed


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_edits_inside_of_functions_execute_nothing(forking: WorkerProcess, unforked: WorkerProcess, file: Path, pause: float) -> None:
    text = DOCUMENT
    for old, new in INSIDE:
        assert old in text
        text = text.replace(old, new, 1)
        time.sleep(pause)  # Time to rehearse: the next edit is one of what has been rehearsed.
        assert not compare(forking, unforked, file, text, (old, new)), (old, new)


def test_all_other_edits_execute_the_document(forking: WorkerProcess, unforked: WorkerProcess, file: Path) -> None:
    for old, new in BEYOND:
        assert old in DOCUMENT
        time.sleep(0.2)
        assert compare(forking, unforked, file, DOCUMENT.replace(old, new, 1), (old, new)), (old, new)


CHANGES = {
    "a number": "        global COUNT\n        COUNT += 1\n",
    "a list": '        SIZES["wide"].append(9)\n        self.width = len(SIZES["wide"])\n        w = torch.zeros(self.width)\n',
    "a class": "        Net.made += 1\n        w = torch.zeros(Net.made)\n",
    "a function": '        scaled.times = getattr(scaled, "times", 0) + 1\n        w = torch.zeros(scaled.times)\n',
    "a new name": '        globals().setdefault("SEEN", []).append(1)\n        w = torch.zeros(len(globals()["SEEN"]))\n',
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_rehearsal_has_changed_is_loaded_anew(forking: WorkerProcess, unforked: WorkerProcess, file: Path, what: str) -> None:
    text = DOCUMENT.replace("        a = scaled(x)\n", CHANGES[what] + "        a = scaled(x)\n")
    for size in (6, 7):
        time.sleep(0.3)
        compare(forking, unforked, file, text.replace("nn.Linear(self.size, 6)", f"nn.Linear(self.size, {size})"), size)
    time.sleep(0.3)
    assert compare(forking, unforked, file, text, what)


BESIDE = """import sys
import torch
from torch import nn

sys.path.append("parts")
torch.set_default_dtype(torch.float64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.__fc = nn.Linear(4, 6)

    def __hidden(self, x):
        h = self.__fc(x)
        return h

    def forward(self, x):
        from scales import scaled
        a = torch.zeros(2)
        b = self.__hidden(x)
        return scaled(b)
"""


def test_what_a_document_sets_for_all_holds_until_it_is_set_no_more(
    forking: WorkerProcess, unforked: WorkerProcess, tmp_path: Path
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "scales.py").write_text("def scaled(x):\n    y = x + x\n    return y\n")
    file, text = tmp_path / "net.py", BESIDE
    example = "Net()(f64[B:6, 4])"
    for old, new in [
        ("import torch\n", "import torch\n"),
        ("nn.Linear(4, 6)", "nn.Linear(4, 7)"),
        ("torch.zeros(2)", "torch.zeros(3)"),
        ("h = self.__fc(x)", "h = self.__fc(x).t()"),
        ("torch.set_default_dtype(torch.float64)\n", ""),
        ("torch.zeros(3)", "torch.zeros(4)"),
    ]:
        time.sleep(0.3)
        text = text.replace(old, new)
        quick, _ = forking.run(file, text, example)
        fresh, _ = unforked.run(file, text, example)
        assert fresh is not None and not fresh.examples[0].error
        assert comparable(quick) == comparable(fresh), (old, new)
