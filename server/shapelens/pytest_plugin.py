"""The pytest plugin: `pytest --shapelens` makes a test of each module class, which fails where its example has an error.

pytest loads this file in every run of an environment that has ShapeLens, so it imports the rest only once the option is given.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from shapelens.batch import Analysed, Batch
    from shapelens.checking import CheckedFinding

_Result = TypeVar("_Result")
_RUNNER = pytest.StashKey["_Runner"]()
_ALLOWED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("shapelens", "shapes of tensors")
    group.addoption("--shapelens", action="store_true", help="Run each module class of the collected files on its example; errors fail.")
    group.addoption("--deep", action="store_true", help="With --shapelens: run small models for real besides; what that finds fails.")
    group.addoption("--shapelens-interpreter", metavar="PYTHON", help="The Python that has your torch. Default: the one that runs pytest.")
    group.addoption(
        "--shapelens-allow",
        metavar="ACT",
        action="append",
        default=[],
        help="Let your code use the network or start processes, or write below a folder: network, processes, a path; may be repeated.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Reads the acts that the user allows, before pytest collects anything."""
    if config.getoption("--shapelens"):
        from shapelens.examples.settings import acts_from_here

        config.stash[_ALLOWED], wrong = acts_from_here(config.getoption("--shapelens-allow"))
        if wrong:
            raise pytest.UsageError(wrong[0])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A Python file that has to do with torch."""
    if not parent.config.getoption("--shapelens") or file_path.suffix != ".py":
        return None
    return ShapeLensFile.from_parent(parent, path=file_path)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the workers."""
    runner = session.config.stash.get(_RUNNER, None)
    if runner is not None:
        runner.stop()


class ShapeLensFile(pytest.File):
    """A file, whose classes are tests."""

    _analysed: Analysed | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each module class, and one for what is wrong outside of them."""
        from shapelens.examples.programs import is_program
        from shapelens.source.files import Unreadable, read
        from shapelens.source.module import parse

        try:
            text = read(self.path)
        except Unreadable:
            return
        module = parse(text)
        if "torch" not in text or not (module.classes or is_program(module)):
            return
        self.classes = [cls.qualname for cls in module.classes]
        for name in self.classes:
            yield ShapesOfClass.from_parent(self, name=f"shapes of {name}", module_class=name)
        yield ShapesOfClass.from_parent(self, name="shapes of the module", module_class="")

    def analysed(self) -> Analysed:
        """Returns the analysis of the file, made once."""
        from shapelens.source.files import read

        if self._analysed is None:
            stash, option = self.config.stash, self.config.getoption
            if _RUNNER not in stash:
                stash[_RUNNER] = _Runner(option("--shapelens-interpreter"), stash[_ALLOWED], deep=option("--deep"))
            self._analysed = stash[_RUNNER].analyse(self.path, read(self.path))
        return self._analysed


class WrongShapes(Exception):
    """The findings in a class."""

    def __init__(self, path: Path, findings: list[CheckedFinding]) -> None:
        super().__init__("\n".join(f"{path}:{each.line}:{each.column + 1}: {each.code}: {each.message}" for each in findings))


class ShapesOfClass(pytest.Item):
    """The test of one class; of no class, it is about what is wrong outside of all."""

    def __init__(self, *, module_class: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.module_class = module_class

    def runtest(self) -> None:
        """Fails with the errors of the class; skips where no example of it is known."""
        from shapelens.analysis.findings.codes import is_deep
        from shapelens.analysis.traces.views import constructed
        from shapelens.checking import checked_file

        assert isinstance(self.parent, ShapeLensFile)
        analysed = self.parent.analysed()
        found = [each for each in checked_file(analysed).findings if each.severity == "error" or is_deep(each.code)]
        wrong = [each for each in found if _class_of(each.scope, self.parent.classes) == self.module_class]
        if wrong:
            raise WrongShapes(self.path, wrong)
        seen = {run.target for run in analysed.trace.examples} | constructed(analysed.trace)
        if self.module_class and not seen & {self.module_class, self.module_class.rpartition(".")[2]}:
            pytest.skip(f"no example of {self.module_class} was given or found")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The findings, a line each, without a traceback."""
        from shapelens.batch import Unavailable

        if isinstance(excinfo.value, WrongShapes | Unavailable):
            return f"{excinfo.value} {getattr(excinfo.value, 'action', '')}".strip()
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is, and what it is called."""
        return self.path, None, self.name


def _class_of(scope: str, classes: list[str]) -> str:
    """The module class that a finding's scope lies in, the innermost one; "" for none."""
    around = [name for name in classes if scope == name or scope.startswith(f"{name}.")]
    return max(around, key=len, default="")


class _Runner:
    """Analyses files on a loop of its own thread; one worker for all of them that have the same interpreter."""

    def __init__(self, python: str | None, allow: list[str], *, deep: bool = False) -> None:
        from shapelens.project_scope import ProjectScope

        self._python = python
        self._deep = deep
        self._scope = ProjectScope(allow=allow)
        self._batch: Batch | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="shapelens", daemon=True).start()

    def analyse(self, path: Path, text: str) -> Analysed:
        """Returns the analysis of a file. Raises batch.Unavailable."""
        return self._wait(self._analyse(path, text))

    def stop(self) -> None:
        """End the worker and the loop."""
        if self._batch is not None:
            self._wait(self._batch.worker.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _analyse(self, path: Path, text: str) -> Analysed:
        import sys

        from shapelens.batch import Batch

        root = self._scope.project_root(path.absolute())
        if self._batch is None:
            self._batch = Batch(self._python or sys.executable, root=root, scope=self._scope)
        return await self._batch.analyse(path, text, programs=False, fixes=False, deep=self._deep)

    def _wait(self, what: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()
