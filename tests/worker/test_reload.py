"""Runs that follow on what an earlier one has loaded: they see what a run sees that loads everything, and load only what has changed."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import pytest

from shapelens.protocol import Cancel, ExampleRequest, Trace
from worker.process import WorkerProcess, shapes

BLOCKS = """
import torch
from torch import nn
print("blocks are loaded")
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, 6)
    def forward(self, x):
        h = self.fc(x)
        return h
"""
NET = """import torch
from torch import nn
from zoo.blocks import Block

SCALE = torch.ones(3)


def twice(x):
    y = x + x
    return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(4)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        a = twice(x)
        b = self.block(a)
        return self.head(b)


@torch.no_grad()
def last(x):
    z = x.sum(0)
    return z
"""
EXAMPLE = "Net()(f32[B:5, 4])"


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """A package whose `__init__` imports the document, which imports a module of the package."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .net import Net\nfrom .derived import Wide\n")
    (folder / "blocks.py").write_text(BLOCKS)
    (folder / "net.py").write_text(NET)
    (folder / "derived.py").write_text("from .net import Net\nclass Wide(Net):\n    pass\n")
    return folder


def settle(worker: WorkerProcess, file: Path, text: str) -> None:
    """Run until what the document imports is loaded no more."""
    for _ in range(50):
        worker.run(file, text, EXAMPLE)
        if "loaded" not in worker.output:
            return
        time.sleep(0.2)
    raise AssertionError("each run loads all of its imports")


def comparable(trace: Trace | None) -> Any:
    """A trace without what differs from run to run."""
    assert trace is not None
    for example in trace.examples:
        example.seconds = 0.0
    return dataclasses.asdict(trace)


def test_imports_are_loaded_once(forking: WorkerProcess, zoo: Path) -> None:
    file = zoo / "net.py"
    trace, _ = forking.run(file, NET, EXAMPLE)
    assert "blocks are loaded" in forking.output and trace is not None and shapes(trace, "b") == [[[5, 6]]]
    assert forking.runs in forking.loading
    settle(forking, file, NET)
    trace, _ = forking.run(file, NET.replace("Block(4)", "Block(3)"), EXAMPLE)
    assert "loaded" not in forking.output and trace is not None and forking.runs not in forking.loading
    assert [found.code for found in trace.mismatches] == ["linear-in-features"]


EDITS = [
    ("SCALE = torch.ones(3)\n\n\n", "SCALE = torch.ones(3)\n"),
    ("self.head = nn.Linear(6, 2)", "self.head = nn.Linear(7, 2)"),
    ("\n\n\nclass Net", "\n\n\nADDED = torch.zeros(2, 3)\n\n\nclass Net"),
    ("    y = x + x\n", "    # a comment\n    y = x + x\n    w = y.t()\n"),
    ("SCALE = torch.ones(3)\n", ""),
    ("    z = x.sum(0)\n", "    z = x.mean(0)\n"),
    ("import torch\n", "import torch; import math\n"),
    ("        a = twice(x)\n", "        a = thrice(x)\n"),
    ("def twice(x):\n", "\n\ndef thrice(x):\n    return x @ x\n\n\ndef twice(x):\n"),
    ("from zoo.blocks import Block\n", 'from zoo.blocks import Block\n"""a text\nof two lines"""\n'),
    ("        return self.head(b)\n", "        return self.head(b)[:, :1]\n"),
    ("import torch; import math\n", "import torch\n\n\n\n\n"),
    ("import torch\n\n\n\n\n", "import torch\n"),
]


def test_what_an_edited_document_shows_is_what_a_fresh_process_sees(forking: WorkerProcess, unforked: WorkerProcess, zoo: Path) -> None:
    file, text = zoo / "net.py", NET
    settle(forking, file, NET)
    for old, new in EDITS:
        assert old in text
        text = text.replace(old, new, 1)
        quick, _ = forking.run(file, text, EXAMPLE)
        assert "loaded" not in forking.output
        fresh, _ = unforked.run(file, text, EXAMPLE)
        assert comparable(quick) == comparable(fresh), (old, new)


def test_a_changed_import_is_loaded_again(forking: WorkerProcess, zoo: Path) -> None:
    file, blocks = zoo / "net.py", zoo / "blocks.py"
    settle(forking, file, NET)
    for size in (7, 8):
        blocks.write_text(BLOCKS.replace("6", str(size)))
        os.utime(blocks, ns=(size * 10**9, size * 10**9))
        trace, _ = forking.run(file, NET, EXAMPLE)
        assert trace is not None and shapes(trace, "b") == [[[5, size]]]
    unsaved = BLOCKS.replace("6", "9")
    trace, _ = forking.run(file, NET, EXAMPLE, overlays={str(blocks): unsaved})
    assert trace is not None and shapes(trace, "b") == [[[5, 9]]]
    trace, _ = forking.run(file, NET, EXAMPLE)
    assert trace is not None and shapes(trace, "b") == [[[5, 8]]]


def test_a_changed_module_that_is_taken_from_its_package_is_loaded_again(forking: WorkerProcess, tmp_path: Path) -> None:
    file, blocks = tmp_path / "use.py", tmp_path / "parts" / "blocks.py"
    blocks.parent.mkdir()
    (blocks.parent / "__init__.py").touch()
    blocks.write_text(BLOCKS)
    text = NET.replace("from zoo.blocks import Block", "from parts import blocks").replace("Block(4)", "blocks.Block(4)")
    settle(forking, file, text)
    for size in ("6", "7", "6", "8", "6"):
        trace, _ = forking.run(file, text, EXAMPLE, overlays={str(blocks): BLOCKS.replace("6", size)})
        assert trace is not None and shapes(trace, "b") == [[[5, int(size)]]]


def test_what_is_loaded_is_at_its_lines_after_another_text_has_moved_it(forking: WorkerProcess, tmp_path: Path) -> None:
    """Lines are taken away above a function, and come back: the text is that which was loaded first."""
    file, method = tmp_path / "moved.py", "\n    def other(self, x):\n        return x\n"
    text = f"""import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(4, size)

    def forward(self, x):
        return self.fc(x)
{method}

def build(size):
    net = Net(size)
    y = net.fc(torch.ones(2, 4))
    return net
"""
    for each in (text, text.replace(method, ""), text, text.replace(method, ""), text):
        for expression in ("Net(3)(f32[B:2, 4])", "build(3)(f32[B:2, 4])"):
            trace, _ = forking.run(file, each, expression)
        assert trace is not None
        lines = {item.span.line for item in trace.observations if item.function == "build" and item.name == "y"}
        assert lines == {each.split("\n").index("    y = net.fc(torch.ones(2, 4))") + 1}


def test_another_document_of_the_project_is_run_with_what_the_first_has_loaded(forking: WorkerProcess, zoo: Path) -> None:
    settle(forking, zoo / "net.py", NET)
    text = (zoo / "derived.py").read_text() + "    def forward(self, x):\n        c = super().forward(x)\n        return c\n"
    trace, finished = forking.run(zoo / "derived.py", text, "Wide()(f32[B:5, 4])")
    assert finished.outcome == "ok" and "loaded" not in forking.output
    assert trace is not None and shapes(trace, "c") == [[[5, 2]]]


def test_a_document_that_the_next_one_imports_is_one_of_its_files(forking: WorkerProcess, zoo: Path) -> None:
    (zoo / "__init__.py").write_text("")
    forking.run(zoo / "blocks.py", BLOCKS, "Block(4)(f32[5, 4])")
    trace, finished = forking.run(zoo / "net.py", NET, EXAMPLE)
    assert trace is not None and "loaded" not in forking.output and str(zoo / "blocks.py") in trace.files
    assert {str(zoo / "blocks.py"), str(zoo / "net.py")} <= set(finished.read)


def test_what_a_module_that_imports_the_document_knows_is_its_newest_class(forking: WorkerProcess, zoo: Path) -> None:
    file = zoo / "net.py"
    text = NET + "\n\ndef build():\n    import zoo\n    return zoo.Net()\n"
    settle(forking, file, text)
    trace, _ = forking.run(file, text.replace("nn.Linear(6, 2)", "nn.Linear(6, 3)") + "\n", "build()(f32[B:5, 4])")
    assert trace is not None and "loaded" not in forking.output
    assert [5, 3] in [value.shape for item in trace.observations if item.function == "Net.forward" for value in item.values]


def test_a_definition_that_fails_only_the_second_time_does_not_fail(forking: WorkerProcess, zoo: Path) -> None:
    (zoo / "blocks.py").write_text(BLOCKS + "\nregistry = {}\ndef register(cls):\n    assert cls.__name__ not in registry\n"
                                   "    registry[cls.__name__] = cls\n    return cls\n")  # fmt: skip
    text = NET.replace("import Block", "import Block, register").replace("class Net", "@register\nclass Net")
    for count in range(8):
        text = text.replace(f"nn.Linear(6, {2 + count})", f"nn.Linear(6, {3 + count})")
        trace, finished = forking.run(zoo / "net.py", text, EXAMPLE)
        assert trace is not None and finished.outcome == "ok" and trace.mismatches == []
        assert shapes(trace, "b") == [[[5, 6]]]
        assert [5, 3 + count] in [value.shape for item in trace.observations if item.kind == "return" for value in item.values]
        time.sleep(0.3)


def test_a_missing_package_is_told_of_each_time(forking: WorkerProcess, zoo: Path) -> None:
    (zoo / "blocks.py").write_text("import not_there_either\n" + BLOCKS)
    text = NET.replace("import torch\n", "import torch\nimport not_there\n", 1)
    settle(forking, zoo / "net.py", text)
    for edited in (text, "\n" + text, text.replace("import not_there\n", "import not_there as gone\n")):
        trace, _ = forking.run(zoo / "net.py", edited, EXAMPLE)
        assert trace is not None and "loaded" not in forking.output
        lines = edited.splitlines()
        notes = {(note.message.rpartition(" ")[2], lines[note.span.line - 1].partition(" as ")[0]) for note in trace.notes
                 if note.span is not None and note.span.file == str(zoo / "net.py")}  # fmt: skip
        assert notes == {("'not_there'", "import not_there"), ("'not_there_either'", "from zoo.blocks import Block")}
    (zoo / "other.py").write_text(BLOCKS.replace("import torch\n", "import torch\nimport not_there\n", 1))
    trace, _ = forking.run(zoo / "other.py", (zoo / "other.py").read_text(), "Block(4)(f32[5, 4])")
    own = [note.message for note in trace.notes if note.span is not None and note.span.file == str(zoo / "other.py")] if trace else []
    assert own == ["ModuleNotFoundError: No module named 'not_there'"]


def test_a_cancelled_run_does_not_begin_to_load_again(forking: WorkerProcess, zoo: Path) -> None:
    (zoo / "blocks.py").write_text(BLOCKS + "\nimport threading\nthreading.Event().wait(1)\n")
    first = forking.start(zoo / "net.py", NET, EXAMPLE)
    time.sleep(0.3)
    forking.send(Cancel(first))
    trace, finished = forking.finish(first)
    assert trace is None and finished.outcome == "cancelled"
    printed = forking.output
    trace, _ = forking.run(zoo / "net.py", NET.replace("nn.Linear(6, 2)", "nn.Linear(6, 3)"), EXAMPLE)
    assert (printed + forking.output).count("blocks are loaded") == 1
    assert trace is not None and [5, 3] in [value.shape for item in trace.observations if item.kind == "return" for value in item.values]


def test_a_class_that_ends_the_process_says_so_each_time_and_the_rest_runs(forking: WorkerProcess, zoo: Path) -> None:
    for code in (3, 4):
        trace, finished = forking.run(zoo / "net.py", NET + f"\n\nclass Gone:\n    exit({code})\n", EXAMPLE)
        assert finished.outcome == "ok" and trace is not None and trace.observations
        assert [(found.code, found.message) for found in trace.mismatches] == [("definition", str(code))]
    settle(forking, zoo / "net.py", NET)


def test_who_imports_a_package_only_by_its_name_is_not_loaded_again(forking: WorkerProcess, zoo: Path) -> None:
    (zoo / "sizes.py").write_text('import zoo.blocks\nprint("sizes are loaded")\ndef size():\n    return zoo.SIZE\n')
    (zoo / "__init__.py").write_text("from .net import Net, SIZE\n")
    text = NET.replace("import Block\n", "import Block\nfrom zoo.sizes import size\nSIZE = 4\n")
    text += "\n\ndef build():\n    return Net()(torch.empty(size(), 4))\n"
    settle(forking, zoo / "net.py", text)
    for width in (5, 6):
        trace, finished = forking.run(zoo / "net.py", text.replace("SIZE = 4", f"SIZE = {width}"), "build()")
        assert trace is not None and finished.outcome == "ok" and "loaded" not in forking.output
        assert shapes(trace, "b") == [[[width, 6]]]


def test_what_an_earlier_text_was_told_is_forgotten(forking: WorkerProcess, zoo: Path) -> None:
    file = zoo / "net.py"
    settle(forking, file, NET)
    wrong = NET.replace("def last(x)", "def last(x: nt)")
    trace, _ = forking.run(file, wrong, EXAMPLE)
    assert trace is not None and [found.message for found in trace.mismatches] == ["name 'nt' is not defined"]
    for number in range(5):  # One of them is rehearsed by a process that has loaded the wrong text, and hands itself on.
        for text in (NET + "\n" * number, NET.replace("def last(x):", f"def last(x):\n    number = {number}")):
            trace, _ = forking.run(file, text, EXAMPLE)
            assert trace is not None and trace.mismatches == []
            time.sleep(0.2)


def test_a_model_that_forgets_all_modules_takes_none_from_the_next_one(forking: WorkerProcess, tmp_path: Path) -> None:
    """The second document takes the place of the first: as many modules are loaded as before, but others."""
    first = "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    forking.run(tmp_path / "first.py", first, "Net()(f32[B:5, 4])")
    text = "import sys\nfrom torch import nn\n"
    text += "class Clears(nn.Module):\n    def forward(self, x):\n        sys.modules.clear()\n        return x\n"
    text += "class Looks(nn.Module):\n    def forward(self, x):\n        y = x[:, :2] if __name__ in sys.modules else x\n        return y\n"
    for _ in range(3):
        trace, finished = forking.run(tmp_path / "second.py", text, "Clears()(f32[B:5, 4])", "Looks()(f32[B:5, 4])")
        assert finished.outcome == "ok" and trace is not None and shapes(trace, "y") == [[[5, 2]]]


def test_a_document_of_before_shows_its_values_to_the_one_that_imports_it(forking: WorkerProcess, tmp_path: Path) -> None:
    """The process that children come from has parsed it ahead of them, and never loaded it."""
    head = "from torch import nn\n"
    other = head + "class Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    part = head + "class Part(nn.Module):\n    def forward(self, x):\n        y = x[:, :2]\n        return y\n"
    whole = head + "from part import Part\nclass Whole(nn.Module):\n    def forward(self, x):\n        return Part()(x)\n"
    for name, text in (("other", other), ("part", part), ("whole", whole)):
        (tmp_path / (name + ".py")).write_text(text)
    forking.run(tmp_path / "other.py", other, "Net()(f32[B:5, 4])")
    forking.run(tmp_path / "part.py", part, "Part()(f32[B:5, 4])")
    trace, finished = forking.run(tmp_path / "whole.py", whole, "Whole()(f32[B:5, 4])", observe=[str(tmp_path / "part.py")])
    assert finished.outcome == "ok" and trace is not None and shapes(trace, "y") == [[[5, 2]]]


def test_what_an_earlier_text_made_of_something_unknown_excuses_no_mistake(forking: WorkerProcess, tmp_path: Path) -> None:
    net = "class Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    settle(forking, tmp_path / "net.py", "from torch import nn\nimport nowhere\nlimit = nowhere.limit()\nsize = [limit + 1]\n" + net)
    trace, finished = forking.run(tmp_path / "net.py", net, "Net()(f32[B:5, 4])")
    assert finished.outcome == "ok" and trace is not None
    assert [(found.code, found.message) for found in trace.mismatches] == [("definition", "name 'nn' is not defined")]


def test_what_other_settings_were_tried_with_ends_no_later_run(forking: WorkerProcess, tmp_path: Path) -> None:
    """Attempts end at the first mismatch; a run goes past it."""
    head = "import torch\nfrom torch import nn\n"
    up = head + "class Up(nn.Module):\n    def __init__(self, wide=False):\n        super().__init__()\n        if wide:\n"
    up += "            self.up = nn.Linear(3, 9)\n        else:\n            self.up = nn.Linear(4, 9)\n"
    up += "    def forward(self, x):\n        return self.up(x)\n"
    net = head + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.first = nn.Linear(5, 6)\n"
    net += "    def forward(self, x):\n        y = self.first(x)\n        return y\n"
    forking.run(tmp_path / "up.py", up, program=3.0, known=[ExampleRequest("Up", "Up()(f32[B:2, 4])", True)])
    trace, finished = forking.run(tmp_path / "net.py", net, "Net()(f32[B:7, 4])")
    assert finished.outcome == "ok" and trace is not None
    assert [found.code for found in trace.mismatches] == ["linear-in-features"] and shapes(trace, "y") == [[[7, 6]]]


MENDED = """import os
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=7):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = x.flatten(1)
        return self.norm(h)


def rates(known=(3, 2, 1)):
    return known
"""
FAILING = {
    "a definition fails": MENDED.replace("(3, 2, 1)", "(3, 2, RATE)"),
    "a definition reads a file that is not there": MENDED.replace("(3, 2, 1)", "os.listdir('pictures')"),
    "a definition made something of unknown size": MENDED.replace("(3, 2, 1)", "len(os.listdir('pictures'))"),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING.keys())
def test_a_size_near_an_unknown_one_is_known_once_what_was_unknown_is_mended(forking: WorkerProcess, tmp_path: Path, failing: str) -> None:
    """524288 is a 32th of what stands for an unknown size; what an earlier text did not know is no reason to take it for one."""
    file = tmp_path / "net.py"
    given = "Net()(f32[B:2, 512, 512, 2])"
    trace, _ = forking.run(file, failing, given)
    assert trace is not None and shapes(trace, "h") == [[[2, None]]]
    trace, _ = forking.run(file, MENDED, given)
    assert trace is not None and shapes(trace, "h") == [[[2, 524288]]]
    assert [found.code for found in trace.mismatches] == ["norm-normalized-shape"]


def test_what_a_module_that_stays_loaded_holds_as_unknown_is_so_for_the_documents_that_import_it(
    forking: WorkerProcess, tmp_path: Path
) -> None:
    given = "Net()(f32[B:2, 512, 512, 2])"
    counted = "import os\ndef rates(known=len(os.listdir('pictures'))):\n    return known\n"
    importing = MENDED.replace("import os\n", "from counted import rates\n").partition("\n\ndef")[0]
    (tmp_path / "counted.py").write_text(counted)
    for text in (importing, importing.replace("width=7", "width=8")):
        trace, _ = forking.run(tmp_path / "net.py", text, given)
        assert trace is not None and shapes(trace, "h") == [[[2, None]]]
    trace, _ = forking.run(tmp_path / "other.py", MENDED, given)
    assert trace is not None and shapes(trace, "h") == [[[2, 524288]]]
