"""When a run that was done before stands for another one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shapelens.cache.runs import KeptRun, RunCache
from shapelens.cache.store import Store
from shapelens.protocol import ExampleRequest, ExampleRun, Finished, Hello, Known, Note, Run, Search, Trace, Traced


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project of a few files, beside an environment with a library."""
    (tmp_path / "env" / "site-packages" / "torch").mkdir(parents=True)
    (tmp_path / "env" / "python").write_text("an interpreter")
    (tmp_path / "project").mkdir()
    for name in ("net.py", "layers.py", "user.py"):
        (tmp_path / "project" / name).write_text(f"# {name}\n")
    return tmp_path


def hello(place: Path, torch: str = "2.13.0") -> Hello:
    return Hello(1, "3.12.1", sys.executable, 1, True, torch, path=[str(place / "env" / "site-packages")])


def cache(place: Path) -> RunCache:
    found = RunCache(Store(place / "cache"))
    found.learn(str(place / "env" / "python"), hello(place))
    return found


def run_of(place: Path) -> Run:
    file = str(place / "project" / "net.py")
    search = Search(users=[str(place / "project" / "user.py")], classes=["Net"])
    return Run(7, file, "class Net: ...", str(place / "project"), [ExampleRequest("Other", "Other()")], search=search)


def kept(run: Run, *notes: Note) -> KeptRun:
    layers = str(Path(run.root, "layers.py"))
    examples = [ExampleRun("Other", "Other()"), ExampleRun("Net", "Net()(f32[2])", evidence="usage", where="user.py:3")]
    return KeptRun(Traced(7, "named", Trace(run.file, examples, files=[layers], notes=list(notes))), Finished(7, "ok", seconds=0.5))


def found(place: Path, run: Run) -> KeptRun | None:
    """What another process finds."""
    return RunCache(Store(place / "cache")).find(run, str(place / "env" / "python"))


def test_an_unchanged_run_is_found_by_another_process_under_its_own_number(place: Path) -> None:
    run = run_of(place)
    cache(place).keep(run, str(place / "env" / "python"), kept(run))
    again = found(place, replace(run, run_id=11))
    assert again is not None
    assert list(again.read[0]) == [str(place / "project" / "layers.py"), str(place / "project" / "user.py")]
    assert again.traced == replace(kept(run).traced, run_id=11) and again.finished == Finished(11, "ok", seconds=0.5)


CHANGES: dict[str, Callable[[Path, Run], Run | None]] = {
    "text": lambda place, run: replace(run, text="class Net: pass"),
    "examples": lambda place, run: replace(run, examples=[]),
    "an unsaved text": lambda place, run: replace(run, overlays={str(place / "project" / "layers.py"): ""}),
    "classes": lambda place, run: replace(run, search=replace(run.search, classes=["Net", "Head"])),  # type: ignore[type-var]
    "users": lambda place, run: replace(run, search=replace(run.search, users=[run.file])),  # type: ignore[type-var]
    "another example is known": lambda place, run: replace(run, search=replace(run.search, known=[Known("Net", "Net()(f32[3])")])),  # type: ignore[type-var]
    "an imported file is to be shown": lambda place, run: replace(run, observe=[str(place / "project" / "layers.py")]),
    "an imported file": lambda place, run: (place / "project" / "layers.py").write_text("# other\n") and None,
    "a file with usages": lambda place, run: (place / "project" / "user.py").unlink(),
    "an installed package": lambda place, run: (place / "env" / "site-packages" / "einops").mkdir(),
    "the interpreter": lambda place, run: os.utime(place / "env" / "python", (1, 1)),
    "torch": lambda place, run: RunCache(Store(place / "cache")).learn(str(place / "env" / "python"), hello(place, "2.14.0")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_what_it_depends_on_makes_it_another_run(place: Path, change: str) -> None:
    run = run_of(place)
    cache(place).keep(run, str(place / "env" / "python"), kept(run))
    assert found(place, run) is not None
    assert found(place, CHANGES[change](place, run) or run) is None


def test_what_makes_no_difference_does_not_make_it_another_run(place: Path) -> None:
    run = run_of(place)
    cache(place).keep(run, str(place / "env" / "python"), kept(run))
    (place / "project" / "layers.py").write_text("# layers.py\n")
    (place / "project" / "new.py").write_text("")
    assert run.search is not None
    same = replace(run.search, users=[], known=[Known("Net", "Net()(f32[2])", proven=True)])
    assert found(place, replace(run, search=same, observe=[str(place / "project" / "elsewhere.py")])) is not None


def test_a_program_is_another_run_than_its_examples_and_with_other_examples_of_classes(place: Path) -> None:
    run = replace(run_of(place), text="class Net: ...\ndef show(net): ...", examples=[], search=None)
    program = replace(run, program=3.0)
    cache(place).keep(program, str(place / "env" / "python"), kept(program))
    assert found(place, run) is None
    assert found(place, replace(program, program=30.0, known=[ExampleRequest("show", "show(unknown)")])) is not None
    assert found(place, replace(program, known=[ExampleRequest("Net", "Net()(f32[2])")])) is None


def test_a_module_that_was_missing_appears(place: Path) -> None:
    run = run_of(place)
    cache(place).keep(run, str(place / "env" / "python"), kept(run, Note("missing-import", "No module named 'blocks'", None)))
    assert found(place, run) is not None
    (place / "project" / "blocks.py").write_text("")
    assert found(place, run) is None


def test_what_did_not_come_to_its_end_is_not_kept(place: Path) -> None:
    run, python = run_of(place), str(place / "env" / "python")
    for finished in (Finished(7, "cancelled"), Finished(7, "deadline"), Finished(7, "crash")):
        cache(place).keep(run, python, replace(kept(run), finished=finished))
    cut_short = kept(run)
    cut_short.finished.seconds = 3.5
    cut_short.traced.trace.examples[1].doubtful = True
    cache(place).keep(run, python, cut_short)
    assert found(place, run) is None


def test_what_a_worker_saw_that_began_in_another_environment_is_not_kept(place: Path) -> None:
    run, python = run_of(place), str(place / "env" / "python")
    began = cache(place)
    (place / "env" / "site-packages" / "einops").mkdir()
    began.keep(run, python, kept(run))
    assert found(place, run) is None
    began.learn(python, hello(place))
    began.keep(run, python, kept(run))
    assert found(place, run) is not None


def test_an_entry_that_is_not_of_our_making_is_ignored(place: Path) -> None:
    run, python = run_of(place), str(place / "env" / "python")
    cache(place).keep(run, python, kept(run))
    store = Store(place / "cache")
    keys = [path.parent.name + path.name for path in store.folder.glob("*/*")]
    for value in ({}, [], {"read": [{}, {}], "traced": {"stage": 3}}, {"read": 1, "traced": {}, "finished": {}}):
        for key in keys:
            store.put(key, value)
        assert found(place, run) is None
