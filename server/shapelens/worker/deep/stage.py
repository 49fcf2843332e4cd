"""Evaluates one example for real: its sizes made small and unlike each other, its model called with one part of its input after the other
changed.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from functools import partial
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from ...dependences import INSIDE, MOST_BYTES, MOST_PARAMETERS, DeepReport, DeepRequest, Dependence
from ...protocol import FileSpan
from ..calls.mismatches import one_line
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.expression import MAKE, Maker, Namespace, compile_expression, evaluate
from ..sandbox.originals import time
from ..trace.module_memory import parts_of
from ..unknown import stand_ins
from . import drawing
from .experiment import Experiment, NoAnswer, Said
from .output_names import name_of, output_names
from .real_mode import RealMode
from .said_causal import said_by_text

_plainly = torch._C.DisableTorchFunction

MOST_MODELS = 3
SMALL = (5, 11, 7, 13, 9, 17, 19, 23)  # sizes for named dims, in their order, but for those that the example says


def examine(runner: ExampleRunner, request: DeepRequest) -> DeepReport:
    """Returns the dependences in the model of the run's one example. Raises what ends a run."""
    start, report = time.perf_counter(), DeepReport()
    example = runner.run.examples[0]
    try:
        code = compile_expression(example.expression)
    except (SyntaxError, ValueError) as error:
        report.skipped = getattr(error, "msg", None) or str(error)
        return report
    try:
        sizes = _small_sizes(runner, code)
        _Real(runner, code, sizes, report, partial(said_by_text, runner.run.file, runner.run.text)).run()
    except NoAnswer as why:
        report.skipped = str(why)
    report.seconds = time.perf_counter() - start
    return report


def _small_sizes(runner: ExampleRunner, code: Any) -> Dict[str, int]:
    """Sizes of the example's named dims, small and unlike each other as far as it runs with them on the meta device. Raises NoAnswer."""
    dims = _dims_of(runner, code, {})
    if dims is None:
        raise NoAnswer("it does not run to its end")
    said = {int(number) for number in re.findall(r"\d+", runner.run.examples[0].expression)}
    sizes = dict(zip(dims, [size for size in SMALL if size not in said or size in dims.values()]))
    if _dims_of(runner, code, sizes) is not None:
        return sizes
    kept: Dict[str, int] = {}
    for name, size in sizes.items():
        if _dims_of(runner, code, {**kept, name: size}) is not None:
            kept[name] = size
    return kept


def _dims_of(runner: ExampleRunner, code: Any, sizes: Dict[str, int]) -> Optional[Dict[str, int]]:
    """The named dims of an example, evaluated on the meta device; None where it fails. Raises NoAnswer where its model is too large."""
    evaluation, dims = runner.evaluation, {}  # type: Any, Dict[str, int]
    evaluation.watch_anew()
    runner.recorder.is_brief = True
    try:
        error = evaluation.run(lambda: evaluation.start(0), lambda: evaluate(code, runner.names, sizes, dims))
    finally:
        runner.recorder.is_brief = False
    if error is not None or evaluation.calls.mismatches:
        return None
    with _plainly():
        held = {id(tensor): tensor for model in evaluation.calls.models for tensor in _tensors_of(model)}
        count = sum(tensor.numel() for tensor in held.values())
        if count > MOST_PARAMETERS or sum(tensor.numel() * tensor.element_size() for tensor in held.values()) > MOST_BYTES:
            raise NoAnswer("it has %d million parameters, more than %d million" % (round(count / 1e6), MOST_PARAMETERS // 10**6))
    return dims


def _tensors_of(model: Any) -> Iterator[Any]:
    for part in parts_of(model):
        for held in (part._parameters, part._buffers):
            yield from (tensor for tensor in held.values() if tensor is not None and not torch.nn.parameter.is_lazy(tensor))


class _Over(BaseException):
    """Ends the example once its answer is known."""


class _RealMaker(Maker):
    """Makes the tensors of an example with numbers."""

    def __call__(self, shorthand: str, dims: Any) -> torch.Tensor:
        made = super().__call__(shorthand, dims)
        with _plainly():
            return drawing.draw(made.shape, made.dtype)


class _Real:
    """One evaluation of an example for real."""

    def __init__(self, runner: ExampleRunner, code: Any, sizes: Dict[str, int], report: DeepReport, said: Said) -> None:
        self._runner, self._code, self._sizes, self._report, self._said = runner, code, sizes, report, said
        self._mode = RealMode(runner.frames)
        self._depth = 0
        self._models: List[Any] = []

    def run(self) -> None:
        """Evaluate it. Raises NoAnswer, and what ends a run."""
        evaluation = self._runner.evaluation
        evaluation.watch_anew()
        self._runner.recorder.is_brief = True
        try:
            error = evaluation.run(lambda: evaluation.start(0), self._follow)
        finally:
            self._runner.recorder.is_brief = False
        if isinstance(error, NoAnswer):
            raise error
        if error is not None and not isinstance(error, _Over) and not self._report.dependences:
            raise NoAnswer("it fails with real numbers: %s: %s" % (type(error).__name__, one_line(error)))
        if not self._models:
            raise NoAnswer("it calls no module of the project")

    def _follow(self) -> None:
        namespace = Namespace(self._runner.names)
        namespace[MAKE] = _RealMaker(namespace, self._sizes, {})
        namespace["__builtins__"] = __builtins__
        drawing.seed(0)
        with self._mode.active(), self._calls():
            eval(self._code, namespace)

    @contextlib.contextmanager
    def _calls(self) -> Iterator[None]:
        """Have calls of modules come by here."""
        original = torch.nn.Module.__call__

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            self._runner.progress.tick()
            return self._call(module, args, kwargs)

        torch.nn.Module.__call__ = call  # type: ignore[method-assign]
        try:
            yield
        finally:
            torch.nn.Module.__call__ = original  # type: ignore[method-assign]

    def _call(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        if self._depth or len(self._models) >= MOST_MODELS or any(module is model for model in self._models):
            return self._mode.call(module, args, kwargs)
        if not self._runner.frames.is_user_file(inspect.getsourcefile(type(module)) or "" if _has_source(type(module)) else ""):
            return self._mode.call(module, args, kwargs)
        self._models.append(module)
        self._depth += 1
        experiment = Experiment(self._mode, module, args, kwargs, self._said)
        try:
            experiment.run()
        finally:
            self._depth -= 1
            self._report.runs += experiment.runs
        if stand_ins.called:
            raise NoAnswer("it uses a package that is not there")
        names = output_names(type(module)) if experiment.found else {}
        for found in experiment.found:
            found.definition = _definition(type(module))
            found.output = name_of(found.output, names) if found.output != INSIDE else INSIDE
            self._report.dependences.append(found)
        if self._runner.run.examples[0].target.rpartition(".")[2] in ("", type(module).__name__):
            raise _Over
        return self._mode.call(module, args, kwargs)


def _has_source(cls: type) -> bool:
    try:
        return bool(inspect.getsourcefile(cls))
    except (TypeError, OSError):
        return False


def _definition(cls: type) -> Optional[FileSpan]:
    """The first line of a class's forward."""
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    return FileSpan(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0) if code is not None else None


__all__ = ["Dependence", "examine"]
