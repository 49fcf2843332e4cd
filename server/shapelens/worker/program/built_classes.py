"""The classes of a file that a program builds and does not come to call: as live models they are called with inputs that are found.

The data set is not there, say, so that no turn of the training loop runs. How the model is built is known all the same, whatever its
constructor was given: a matcher, a backbone, a namespace of options.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ...protocol import ExampleRun, FileSpan, Search, Trace, Value
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.clocks import WorkClock
from ..sandbox.limits import TooLong, within
from ..search.evidence import BuildPlan
from ..search.finder import Finder
from ..search.trials.judging import judge
from ..search.trials.trial import TrialRunner
from ..trace.value_summary import LAYER
from ..unknown import unknown_sizes
from .class_examples import NamesAndMore

MOST_CLASSES = 12
MOST_SECONDS = 3.0  # for the search of one class
NAME = "model"  # of the live model, in its example

Module = torch.nn.Module


class BuiltClasses:
    """Watches which models of a file's classes a program builds, and calls those classes of which it calls none."""

    def __init__(self, runner: ExampleRunner) -> None:
        self._runner = runner
        self._file = runner.run.followed_for or runner.run.file
        self._first: Dict[type, _Built] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Keeps the first model of each class."""
        initialise = Module.__init__

        def noted(model: Any, *args: Any, **kwargs: Any) -> None:
            initialise(model, *args, **kwargs)
            cls = type(model)
            if cls not in self._first and len(self._first) < MOST_CLASSES and self._is_of_file(cls):
                calls = self._runner.evaluation.calls
                self._first[cls] = _Built(model, calls.modules, calls.spans)

        Module.__init__ = noted  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Module.__init__ = initialise  # type: ignore[method-assign]

    def _is_of_file(self, cls: type) -> bool:
        code = getattr(vars(cls).get("forward"), "__code__", None)
        return code is not None and code.co_filename == self._file

    def call(self, seconds: float) -> bool:
        """Call what the program has built, and of which nothing was seen, with inputs that are found. `seconds`: for all of it.

        Returns whether that shows something.
        """
        clock, before = WorkClock(), len(self._runner.trace.examples)
        for cls, built in self._first.items():
            own = min(MOST_SECONDS * self._runner.run.patience, seconds - clock())
            if own <= 0:
                break
            if not self._shows_something(cls) and not _has_unknown_sizes(built.model):
                with contextlib.suppress(TooLong, MemoryError):
                    self._call(cls, built, own)
        return len(self._runner.trace.examples) > before

    def _shows_something(self, cls: type) -> bool:
        """True if an example of the class shows its methods, or the program does with all sizes known."""
        if any(request.target == cls.__qualname__ for request in self._runner.run.known):
            return True
        inside = cls.__qualname__ + "."
        seen = [each for each in self._runner.trace.observations if each.span.file == self._file and each.function.startswith(inside)]
        given = [each for each in seen if each.kind == "parameter" and not each.function.endswith(".__init__")]
        return any(value.shape and None not in value.shape for each in given for value in each.values)

    def _call(self, cls: type, built: "_Built", seconds: float) -> None:
        runner, evaluation, parts = self._runner, self._runner.evaluation, built.parts()
        module = sys.modules.get(cls.__module__)
        if module is None:
            return
        names: Dict[str, Any] = NamesAndMore(vars(module), {NAME: built.model})
        text = "".join(linecache.getlines(self._file))
        place = next((span for part, span in parts if part is built.model), None)
        before, runner.names, defined = runner.names, names, evaluation.calls.defined
        evaluation.watch_anew().defined = [*defined, *parts]
        try:
            trials = TrialRunner(runner, names, seconds)
            finder = Finder(trials, names, self._file, text, Search(classes=[cls.__name__]), lambda path: "")
            with within(2 * seconds):
                found = finder.example_of_plan(BuildPlan(NAME, {}, "usage", _worded(place, self._file)), cls.__name__, cls)
                certain = finder.mistakes(found) if found.doubtful else {}
            if found.doubtful and not certain:
                return
            example = ExampleRun(cls.__name__, found.expression, evidence=found.evidence, where=found.where)
            number, calls = len(runner.trace.examples), evaluation.calls
            with within(seconds):
                evaluated = runner.evaluate(example)
            evaluation.watch_anew()
            example.doubtful = True  # What it shows is no ground for another error.
            if evaluated is not None:
                judge(runner.trace, example, number, evaluated.first_layer, calls, certain)
                runner.record(evaluated)
                runner.name_dims([evaluated])
                _give_way(runner.trace, evaluated.example)
        finally:
            runner.names = before
            evaluation.watch_anew().defined = defined


class _Built(NamedTuple):
    """A model, and all modules that were constructed while it was, with the places where."""

    model: Any
    modules: List[Any]
    spans: List[Optional[FileSpan]]

    def parts(self) -> List[Tuple[Any, Optional[FileSpan]]]:
        """The parts of the model, each with the place where it was constructed, or the one that it is a copy of."""
        places = {id(part): number for number, part in enumerate(self.modules)}
        found = []
        for part in self.model.modules():
            number = places.get(id(part), part.__dict__.get(LAYER))
            is_known = number is not None and number < len(self.modules) and type(self.modules[number]) is type(part)
            found.append((part, self.spans[number] if is_known else None))
        return found


def _give_way(trace: Trace, number: int) -> None:
    """Leave out what the program showed with unknown sizes where an example shows it with names for them."""
    shown = {seen.span for seen in trace.observations if seen.example == number}
    trace.observations = [
        seen for seen in trace.observations if seen.example == number or seen.span not in shown or not any(map(_is_partial, seen.values))
    ]
    built = {layer.span for layer in trace.layers if layer.example == number and layer.calls}
    for layer in trace.layers:
        if layer.example != number and layer.span in built and any(_is_partial(call.output) for call in layer.calls):
            layer.calls = []


def _is_partial(value: Value) -> bool:
    """True if a size of a value, or of an item in it, is unknown."""
    return value.kind == "unknown" or None in (value.shape or ()) or any(map(_is_partial, value.items or ()))


def _has_unknown_sizes(model: Any) -> bool:
    """True if a size of a model rests on data: the number of classes of a data set, the width in a checkpoint. So too for a half-built
    model."""
    if not {"_parameters", "_modules"} <= model.__dict__.keys():
        return True
    return any(unknown_sizes.is_unknown(size) for tensor in (*model.parameters(), *model.buffers()) for size in tensor.shape)


def _worded(place: Optional[FileSpan], file: str) -> str:
    """A place as an example's `where` words it."""
    if place is None:
        return ""
    return "line %d" % place.line if place.file == file else "%s:%d" % (os.path.basename(place.file), place.line)
