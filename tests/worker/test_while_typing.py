"""What keeps an edit short: what is wrong comes first, and what is done in the background takes nothing from the next run."""

from __future__ import annotations

import sys
import time
import types
from pathlib import Path

import psutil
import pytest

from processes import children
from shapelens import protocol
from shapelens.protocol import Finished, Traced
from shapelens.worker.calls.exception_handlers import _guarded
from worker.process import WorkerProcess

RECIPE = (Path(__file__).parents[2] / "fixtures" / "recipe" / "recipe.py").read_text()
EXAMPLE = "Net()(f32[B:4, 3, 32, 32])"
WHERE_SLOW = ("first", "run")  # stages that are said where it takes long to look at what is wrong, or to name dims
ENDLESS = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        while True:\n            pass\n"


def test_what_is_wrong_comes_before_all_else(forking: WorkerProcess, tmp_path: Path) -> None:
    text = RECIPE.replace("16 * 5 * 5", "16 * 6 * 6")
    forking.start(tmp_path / "recipe.py", text, EXAMPLE, findings_first=True)
    traces: list[Traced] = []
    while not isinstance(message := forking.read(), Finished):
        if isinstance(message, Traced) and message.stage not in WHERE_SLOW:
            traces.append(message)
    assert [traced.stage for traced in traces] == ["findings", "named"]
    early, whole = (traced.trace for traced in traces)
    assert early.observations == [] and len(early.layers) < len(whole.layers)
    (found,), (same,) = early.mismatches, whole.mismatches
    assert found.layer is not None and same.layer is not None
    assert early.layers[found.layer].path == whole.layers[same.layer].path == "fc1"
    assert (found.code, found.message, found.span, found.need) == (same.code, same.message, same.span, same.need)
    steps = zip([*found.origins, *found.suspects], [*same.origins, *same.suspects], strict=True)
    for one, other in steps:
        assert (one.layer is None) == (other.layer is None)
        assert one.layer is None or early.layers[one.layer].path == whole.layers[other.layer or 0].path


def test_of_code_that_is_right_that_is_said_first_too(forking: WorkerProcess, tmp_path: Path) -> None:
    forking.start(tmp_path / "recipe.py", RECIPE, EXAMPLE, findings_first=True)
    stages = []
    while not isinstance(message := forking.read(), Finished):
        if isinstance(message, Traced) and message.stage not in WHERE_SLOW:
            stages.append((message.stage, message.trace.mismatches, bool(message.trace.observations)))
    assert stages == [("findings", [], False), ("named", [], True)]


def test_what_is_told_with_what_the_run_saw_is_told_with_all_of_it(forking: WorkerProcess, tmp_path: Path) -> None:
    text = RECIPE.replace("self.fc2(x)", "self.fc4(x)")
    forking.start(tmp_path / "recipe.py", text, EXAMPLE, findings_first=True)
    stages = []
    while not isinstance(message := forking.read(), Finished):
        stages += [message.stage] if isinstance(message, Traced) else []
    assert stages == ["run", "named"]


def test_a_run_in_the_background_keeps_no_other_one_waiting(forking: WorkerProcess, tmp_path: Path) -> None:
    file = tmp_path / "recipe.py"
    assert forking.run(file, RECIPE, EXAMPLE)[1].outcome == "ok"  # From here on there is something to fork from.
    behind = forking.start(file, ENDLESS, "Net()(f32[2])", background=True)
    trace, finished = forking.run(file, RECIPE.replace("16 * 5 * 5", "16 * 6 * 6"), EXAMPLE)
    assert trace is not None and finished.outcome == "ok" and len(trace.mismatches) == 1
    forking.send(protocol.Cancel(behind))
    assert forking.finish(behind)[1].outcome == "cancelled"


def test_beside_a_run_a_process_waits_for_the_next_one(forking: WorkerProcess, tmp_path: Path) -> None:
    file = tmp_path / "recipe.py"
    assert forking.run(file, RECIPE, EXAMPLE)[1].outcome == "ok"
    endless = forking.start(file, ENDLESS, "Net()(f32[2])")
    worker = psutil.Process(forking.process.pid)
    end = time.monotonic() + 20
    while max((len(children(zygote)) for zygote in children(worker)), default=0) < 2:
        assert time.monotonic() < end, "nothing waits"
        time.sleep(0.02)
    forking.send(protocol.Cancel(endless))
    assert forking.finish(endless)[1].outcome == "cancelled"
    assert forking.run(file, RECIPE, EXAMPLE)[1].outcome == "ok"


def test_runs_in_the_background_are_all_done(forking: WorkerProcess, tmp_path: Path) -> None:
    file = tmp_path / "recipe.py"
    assert forking.run(file, RECIPE, EXAMPLE)[1].outcome == "ok"
    for size in (5, 6, 7):
        trace, finished = forking.run(file, RECIPE.replace("16 * 5 * 5", f"16 * {size} * {size}"), EXAMPLE, background=True)
        assert finished.outcome == "ok" and trace is not None
        assert [found.need for found in trace.mismatches] == ([] if size == 5 else [16 * size * size])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no such tables")
def test_exception_tables_are_read_as_python_reads_them() -> None:
    import argparse
    import asyncio.base_events
    import dis
    import subprocess

    compared = 0

    def compare(code: types.CodeType) -> None:
        nonlocal compared
        expected = [(entry.start, entry.end) for entry in dis._parse_exception_table(code)]  # type: ignore[attr-defined]
        assert _guarded(code.co_exceptiontable) == expected
        compared += len(expected)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                compare(constant)

    for module in (argparse, subprocess, asyncio.base_events):
        assert module.__file__ is not None
        compare(compile(Path(module.__file__).read_text(encoding="utf-8"), module.__file__, "exec"))
    assert compared > 100
