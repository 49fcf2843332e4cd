"""The runner with real workers: what it makes of bad interpreters, of runs that pile up, and of workers that die or hang."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from shapelens import protocol
from shapelens.runner import StartFailure, Worker, WorkerState, interpreter
from shapelens.runner import process as process_module
from shapelens.runner import worker as worker_module

NET = """\
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
    def forward(self, x):
        {statement}
        return self.fc(x)
"""
ENDLESS = "while True: pass"


class Runs:
    """A worker, and the runs that a test gives it."""

    def __init__(self) -> None:
        self.worker = Worker(sys.executable, on_state=self._enter)
        self.states: list[WorkerState] = []
        self._changed = asyncio.Event()
        self.traces: list[protocol.Traced] = []
        self._ids = 0

    def submit(self, statement: str = "pass", deadline: float = 30.0) -> asyncio.Future[protocol.Finished]:
        self._ids += 1
        request = protocol.ExampleRequest("Net", "Net()(f32[B:2, 8])")
        run = protocol.Run(self._ids, "/nowhere/net.py", NET.format(statement=statement), "", [request], deadline=deadline)
        return self.worker.submit(run, self.traces.append)

    async def reached(self, name: str) -> None:
        """Wait for a state."""
        while self.worker.state.name != name:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 60)

    def _enter(self, state: WorkerState) -> None:
        self.states.append(state)
        self._changed.set()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs() -> AsyncIterator[Runs]:
    runs = Runs()
    yield runs
    await runs.worker.stop()


async def test_a_run_is_traced_and_finished(runs: Runs) -> None:
    finished = await runs.submit()
    assert (finished.outcome, finished.detail) == ("ok", "")
    assert [traced.stage for traced in runs.traces] == ["run", "named"]
    assert [state.name for state in runs.states][:2] == ["starting", "running"]


async def test_the_newest_run_wins(runs: Runs) -> None:
    runs.traces.clear()
    futures = [runs.submit(ENDLESS), *(runs.submit() for _ in range(5))]
    outcomes = [(await future).outcome for future in futures]
    assert outcomes == ["cancelled"] * 5 + ["ok"]
    assert {traced.run_id for traced in runs.traces} == {runs._ids}


async def test_a_run_that_is_under_way_is_cancelled(runs: Runs) -> None:
    under_way = runs.submit(ENDLESS)
    await runs.reached("running")
    newer = runs.submit()
    assert (await under_way).outcome == "cancelled"
    assert (await newer).outcome == "ok"


async def test_a_worker_that_does_not_keep_the_deadline_is_replaced(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(process_module.Process, "is_suspended", lambda process: False)
    assert (await runs.submit()).outcome == "ok"
    pid = runs.worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # It cannot answer any more, as if it hung.
    finished = await runs.submit(deadline=0.3)
    assert (finished.outcome, finished.detail) == ("deadline", "The run did not end within its deadline of 0.3 s.")
    assert not Path(f"/proc/{pid}").exists()
    monkeypatch.undo()
    assert (await runs.submit()).outcome == "ok"


@pytest.mark.slow("a stopped worker is waited for")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processes are stopped")
async def test_a_worker_that_somebody_has_stopped_is_replaced_and_no_code_blamed(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "GRACE_SECONDS", 0.2)
    assert (await runs.submit()).outcome == "ok"
    pid = runs.worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert (await runs.submit(deadline=10.0)).outcome == "ok"
    assert runs.worker.pid != pid and not Path(f"/proc/{pid}").exists()


@pytest.mark.slow("workers start from nothing, again and again")
async def test_deaths_leave_neither_processes_nor_files_open(runs: Runs) -> None:
    assert (await runs.submit()).outcome == "ok"
    before = open_files()
    for _ in range(2):
        under_way = runs.submit(ENDLESS)
        killed: list[int | None] = [None]
        for _ in range(2):  # The first time another process does the run.
            while runs.worker.pid in killed or runs.worker.state.name != "running":
                await asyncio.sleep(0.01)
            killed.append(runs.worker.pid)
            os.kill(runs.worker.pid or 0, signal.SIGKILL)
        finished = await under_way
        assert finished.outcome == "crash" and "SIGKILL" in finished.detail
        assert not any(Path(f"/proc/{pid}").exists() for pid in killed[1:]), "a zombie"
        assert (await runs.submit()).outcome == "ok"
    assert open_files() == before


async def test_a_run_whose_process_somebody_has_killed_is_done_by_another(runs: Runs) -> None:
    assert (await runs.submit()).outcome == "ok"
    under_way = runs.submit(ENDLESS, deadline=1.0)
    await runs.reached("running")
    os.kill(runs.worker.pid or 0, signal.SIGKILL)
    assert (await under_way).outcome == "deadline"


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_bad_interpreters_are_called_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("hello")
    prints = f'case "$1" in -X) echo "Welcome to this machine, have a nice day";; esac\nexec "{sys.executable}" "$@"'
    expected = {
        str(tmp_path / "nothing"): "does not exist",
        str(tmp_path): "is a folder without",
        str(tmp_path / "plain.txt"): "is not executable",
        "/bin/true": "is not a working Python interpreter",
        script(tmp_path / "old", "echo version 2 7"): "is Python 2.7; ShapeLens needs 3.9 or newer",
        script(tmp_path / "chatty", prints): "it printed 'Welcome to this machine",
    }
    for path, words in expected.items():
        worker = Worker(path)
        failure = await worker.start()
        assert isinstance(failure, StartFailure) and failure.name == "failed"
        assert words in failure.message and path in failure.message and "\n" not in failure.message
        assert failure.action and worker.state.name == "failed"
        await worker.stop()


async def test_another_version_of_the_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "VERSION", 99)
    worker = Worker(sys.executable)
    failure = await worker.start()
    assert isinstance(failure, StartFailure) and "protocol version 1, the server 99" in failure.message
    await worker.stop()


def test_which_interpreter_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    assert interpreter.find(str(tmp_path), None) == sys.executable
    environments = {name: tmp_path / name / "bin" / "python" for name in (".venv", "conda", "active", "chosen")}
    for python in environments.values():
        python.parent.mkdir(parents=True)
        python.touch()
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    assert interpreter.find(str(tmp_path), None) == str(environments[".venv"])
    assert interpreter.find("", None) == str(environments["conda"])
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert interpreter.find(str(tmp_path), None) == str(environments["active"])
    for setting in ("chosen", "./chosen/bin/python", "${workspaceFolder}/chosen", str(environments["chosen"])):
        assert interpreter.find(str(tmp_path), setting) == str(environments["chosen"])
    assert interpreter.find(str(tmp_path), "no-such-python-anywhere") == "no-such-python-anywhere"
