"""What a file changes in torch, builtins, the standard library or another package is seen by no run of another text: each sees what a
process sees that has loaded nothing else."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from forked_workers import forked_workers as forked_workers
from shapelens import protocol
from shapelens.runner import Worker
from shapelens.worker.sandbox import monkeypatches
from worker.process import shapes

HEAD = """\
import math
import os
import random
import torch
from torch import nn
import torch.nn.functional as F
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)
    def forward(self, x):
        h = F.relu(self.fc(x.to(torch.get_default_dtype())))
        s = h.sum(1)
        n = torch.zeros(abs(-2), int(math.pi))
        d = torch.zeros(1) if torch.get_default_dtype() == torch.float64 else torch.zeros(2)
        e = torch.zeros(7 if "SIZES" in os.environ else 3)
        r = torch.zeros(2 if hasattr(random, "random") else 3)
        t = torch.zeros(2 if hasattr(torch, "tiles") else 4)
        return h
"""
EXPECTED = {"h": [[[5, 6]]], "s": [[[5]]], "n": [[[2, 3]]], "d": [[[2]]], "e": [[[3]]], "r": [[[2]]], "t": [[[4]]]}
NARROW = "lambda x: x[:, :1]"

# What the definitions of a file change, and a name that has another shape then.
PATCHES = {
    "a class": ("nn.Linear = type('L', (nn.Linear,), {'__init__': lambda self, i, o: nn.Linear.__base__.__init__(self)})", ""),
    "a function": (f"F.relu = {NARROW}", "h"),
    "a method": ("nn.Linear.forward = lambda self, x: x[:, :1]", "h"),
    "a method of tensors": ("torch.Tensor.sum = lambda self, dim: self", "s"),
    "a builtin": ("import builtins; builtins.abs = lambda number: 9", ""),
    "a constant of the standard library": ("math.pi = 5.0", "n"),
    "a computed name": (f"setattr(F, 're' + 'lu', {NARROW})", "h"),
    "a value of torch's": ("F.relu = torch.Tensor.t", "h"),
    "the namespace": (f"F.__dict__['relu'] = {NARROW}", "h"),
    "the code of a function": ("F.relu.__code__ = eval('lambda input, inplace=False: input[:, :1]').__code__", "h"),
    "the default dtype": ("torch.set_default_dtype(torch.float64)", "d"),
    "the environment": ("os.environ['SIZES'] = '7'", "e"),
    "a hook of all modules": ("nn.modules.module.register_module_forward_hook(lambda module, inputs, output: output[:, :1])", "h"),
    "a new name": ("torch.tiles = 3", "t"),
    "another module": ("import sys; sys.modules['random'] = math", ""),
}


def patching(patch: str) -> str:
    """A file whose definitions patch."""
    return f"{HEAD}class Patches:\n    {patch}\n{NET}"


class Runs:
    """A worker, and the runs that a test gives it."""

    def __init__(self, *, fork: bool | None = None) -> None:
        self.worker = Worker(sys.executable, fork=fork)
        self._ids = 0

    async def shapes(self, file: Path, text: str) -> dict[str, Any]:
        """What the names of `NET` hold."""
        self._ids += 1
        traces: list[protocol.Traced] = []
        request = protocol.ExampleRequest("", "Net()(f32[5, 4])")
        finished = await self.worker.submit(protocol.Run(self._ids, str(file), text, str(file.parent), [request]), traces.append)
        assert finished.outcome == "ok", finished
        trace = traces[-1].trace
        return {name: shapes(trace, name) for name in EXPECTED} if not trace.mismatches else {"wrong": trace.mismatches[0].message}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs() -> AsyncIterator[Runs]:
    runs = Runs()
    yield runs
    await runs.worker.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def unforked() -> AsyncIterator[Runs]:
    runs = Runs(fork=False)
    yield runs
    await runs.worker.stop()


@pytest.mark.parametrize("patch", PATCHES)
async def test_definitions_that_patch_are_not_seen_by_another_file_nor_without_their_line(runs: Runs, patch: str, tmp_path: Path) -> None:
    line, name = PATCHES[patch]
    file, other = tmp_path / "patching.py", tmp_path / "other.py"
    own = await runs.shapes(file, patching(line))
    assert not name or (own[name] != EXPECTED[name]), "it sees its own"
    assert await runs.shapes(other, HEAD + NET) == EXPECTED
    assert await runs.shapes(file, patching(line)) == own
    assert await runs.shapes(file, patching("pass")) == EXPECTED


async def test_a_patch_in_a_module_that_another_file_does_not_import(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "setup_torch.py").write_text(patching(f"F.relu = {NARROW}"))
    with_it = await runs.shapes(tmp_path / "patching.py", "import setup_torch\n" + HEAD + NET)
    assert with_it["h"] == [[[5, 1]]]
    assert await runs.shapes(tmp_path / "other.py", HEAD + NET) == EXPECTED
    assert await runs.shapes(tmp_path / "patching.py", HEAD + NET) == EXPECTED


@pytest.mark.parametrize("patch", ["a function", "a method of tensors", "the environment", "a hook of all modules"])
async def test_a_forward_that_patches_is_not_seen_by_the_edits_after_it(runs: Runs, patch: str, tmp_path: Path) -> None:
    line, name = PATCHES[patch]
    file = tmp_path / "net.py"
    patches = (HEAD + NET).replace("        h = F", f"        {line}\n        h = F")
    for turn in range(4):
        assert (await runs.shapes(file, f"{patches}# {turn}\n"))[name] != EXPECTED[name]
        assert await runs.shapes(file, HEAD + NET + "# \n" * turn) == EXPECTED


@pytest.mark.parametrize("patch", ["a function", "a hook of all modules"])
async def test_without_fork_the_process_is_replaced(unforked: Runs, patch: str, tmp_path: Path) -> None:
    line, name = PATCHES[patch]
    assert await unforked.shapes(tmp_path / "other.py", HEAD + NET) == EXPECTED
    pid = unforked.worker.pid
    assert await unforked.shapes(tmp_path / "other.py", HEAD + NET) == EXPECTED
    assert unforked.worker.pid == pid
    assert (await unforked.shapes(tmp_path / "patching.py", patching(line)))[name] != EXPECTED[name]
    assert await unforked.shapes(tmp_path / "other.py", HEAD + NET) == EXPECTED
    assert unforked.worker.pid != pid


@pytest.mark.parametrize(("fork", "preloaded"), [(None, True), (None, False), (False, False)])
async def test_a_package_that_patches_is_seen_by_those_who_import_it(
    fork: bool | None, preloaded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "narrower"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"import torch.nn.functional as F\nF.relu = {NARROW}\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    runs = Runs(fork=fork)
    if preloaded:
        runs.worker.preload(["narrower"], [])
    importing = "import narrower\n" + HEAD + NET
    try:
        for turn in range(3):
            assert (await runs.shapes(workspace / "importing.py", importing + "# \n" * turn))["h"] == [[[5, 1]]]
        assert await runs.shapes(workspace / "other.py", HEAD + NET) == EXPECTED
        assert (await runs.shapes(workspace / "importing.py", importing))["h"] == [[[5, 1]]]
        assert await runs.shapes(workspace / "importing.py", HEAD + NET) == EXPECTED
    finally:
        await runs.worker.stop()


def changed_by(text: str, owner: str, name: str, now: Any) -> set[str]:
    """What counts as a monkeypatch of a project with this text, where an attribute that was None has another value."""
    change = monkeypatches.AttributeChange(owner, name, None, now)
    built_in = {"sys", "threading", "torch", "tempfile", "json"}
    return set(monkeypatches.found_in([change], lambda module: False, lambda: monkeypatches.ProjectText([text]), built_in).by_project)


def test_streams_and_locks_that_a_process_replaces_are_no_patches_of_code_that_computes_names() -> None:
    text = "import sys, threading, torch\nsetattr(layer, name, value)"
    assert not changed_by(text, "sys", "stdout", sys.__stdout__)
    assert not changed_by(text, "threading", "_active_limbo_lock", threading.RLock())
    assert changed_by(text, "torch.nn.functional", "relu", torch.nn.functional.silu) == {"torch.nn.functional.relu"}


def test_what_a_module_makes_when_it_is_first_asked_is_no_patch_unless_the_code_assigns_it() -> None:
    names = tempfile._RandomNameSequence()  # type: ignore[attr-defined]
    assert not changed_by("import tempfile\nsetattr(layer, name, value)", "tempfile", "_name_sequence", names)
    assert changed_by("import tempfile\ntempfile._name_sequence = Names()", "tempfile", "_name_sequence", names)
    assert changed_by("import tempfile\nsetattr(layer, name, value)", "tempfile", "gettempdir", tempfile.gettempprefix)


def test_code_that_computes_names_changes_no_package_that_it_does_not_speak_of() -> None:
    assert not changed_by("import torch\nsetattr(layer, name, value)", "json.decoder", "scanstring", json.loads)
    assert changed_by("import json.decoder\nsetattr(layer, name, value)", "json.decoder", "scanstring", json.loads)
    assert changed_by("setattr(__builtins__, name, value)", "builtins", "abs", json.loads)


def test_what_reads_variables_of_libraries_or_shows_warnings_is_no_patch() -> None:
    state, text = (
        monkeypatches.ProcessState(),
        'os.environ["OMP_NUM_THREADS"] = "1"\nos.environ["SIZES"] = "7"\nwarnings.showwarning = show',
    )
    before = dict(os.environ)
    try:
        os.environ.update(OMP_NUM_THREADS="1", SIZES="7")
        assert state.monkeypatches({}, lambda: [text], []).by_project == {"os.environ['SIZES']"}
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert not changed_by(text, "warnings", "showwarning", json.loads)


def test_a_name_in_a_string_or_an_assignment_is_found_in_any_file_of_the_project() -> None:
    text = monkeypatches.ProjectText(["x = 1\nself.width = 2", "F.relu = f", "mock.patch('torch.nn.functional.silu')", "torch.gelu == f"])
    assert [name for name in ("relu", "silu", "gelu", "width", "x") if text.assigns(name)] == ["relu", "silu"]
    assert text.computes and not text.replaces_modules and not text.names("tor") and text.names("torch")


async def test_what_a_library_makes_late_costs_no_edit_another_process(runs: Runs, tmp_path: Path) -> None:
    late = "import tempfile\nclass Kind:\n    pass\nsetattr(Kind, 'kind', 1)\nNAME = next(tempfile._get_candidate_names())\n"
    net = NET.replace("torch.zeros(abs(-2), int(math.pi))", "torch.zeros(os.getppid())")
    parents = [(await runs.shapes(tmp_path / "late.py", f"{HEAD}{late}SIZE = {turn}\n{net}"))["n"] for turn in range(4)]
    assert parents[1] == parents[2] == parents[3], "the process that has loaded the file, which those that run it are forked of"
