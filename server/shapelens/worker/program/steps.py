"""Steps of module classes that no program comes to: `training_step`, `loss_function`, `sample`. Each is called as `forward` was.

So is each other method that computes tensors, where neither a program nor the example of its class comes to it: `reparameterize`.
What a step is given is searched for (step_search.py). Where nothing fits, a step is followed with a batch that nobody knows, each statement
by itself, and nothing that goes wrong in it is said.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from typing import Any, List, Optional, Set, Tuple

import torch

from ...protocol import ExampleRun, Search
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.clocks import WorkClock
from ..sandbox.limits import TooLong, within
from ..search.code.sources import function_node
from ..search.code.tensor_code import is_of_tensors
from ..search.finder import Finder
from ..search.trials.trial import TrialRunner
from .class_examples import ClassExample, class_of, taken_apart, with_names_once
from .program import Program, gradients_assumed
from .step_search import StepSearch
from .unknown_inputs import UnknownInputs

STEPS = (
    *("training_step", "validation_step", "test_step", "predict_step", "shared_step", "compute_loss", "loss_function", "loss"),
    *("sample", "generate", "reconstruct", "inference", "encode", "decode", "predict"),
)
# What trainers of libraries call in classes that derive from them.
HOOKS = ("compute_loss", "training_step", "prediction_step")
# Methods that computing with tensors is not all they do: trainers call them, or they make, fill, read or write a model.
_NO_STEP = re.compile(r"_|forward$|on_|configure_|setup|teardown|prepare_|load|save|from_|init|reset|build|make_|add_|set_|\w*dataloader$")
MOST_SECONDS = 1.2  # for one step
SHARE = 0.7  # of the time that is left, for all steps


def call_steps(steps: StepCalls, runner: ExampleRunner, reached: Set[str]) -> None:
    """Call the steps that are not among the functions which were `reached`, and add what they saw to the trace."""
    known = {request.target: request for request in runner.run.known}
    for target in [*known, *[name for name in _module_classes(runner) if name not in known]]:
        cls = class_of(runner, target)
        others = _methods_of_tensors(cls, runner.run.file) if target in known else []
        names = [name for name in [*steps_of(cls, runner.run.file), *others] if "%s.%s" % (target, name) not in reached]
        if not names:
            continue
        before, runner.recorder.reached = runner.recorder.reached, set()
        given = taken_apart(runner, known[target]) if target in known else None
        by_example = set(runner.recorder.functions(runner.run.file) or ())
        runner.recorder.reached |= before
        names = [name for name in names if name not in others or "%s.%s" % (target, name) not in by_example]
        model = given.model if given is not None else steps.model_of(target, cls)
        if model is None:
            continue
        for name in names:
            if "%s.%s" % (target, name) not in reached:  # By the steps before it.
                reached |= steps.call(target, cls, name, model, given)
        if steps.is_over:
            return
    for target, cls in _trainer_classes(runner):
        for name in HOOKS:
            if _is_own(getattr(cls, name, None), runner.run.file) and "%s.%s" % (target, name) not in reached and not steps.is_over:
                reached |= steps.call_hook(target, cls, name)


def steps_of(cls: Any, file: str) -> List[str]:
    """The names of the steps of a class that stand in a file."""
    return [name for name in STEPS if isinstance(cls, type) and _is_own(getattr(cls, name, None), file)]


def _methods_of_tensors(cls: Any, file: str) -> List[str]:
    """The names of a class's own methods beside its steps that compute tensors, and do nothing else by their names."""
    own = vars(cls).items() if isinstance(cls, type) else ()
    found = [name for name, value in own if inspect.isfunction(value) and name not in STEPS and not _NO_STEP.match(name)]
    nodes = [(name, function_node(vars(cls)[name])) for name in found if _is_own(vars(cls)[name], file)]
    return [name for name, node in nodes if node is not None and any(map(is_of_tensors, node.body))]


def _is_own(function: Any, file: str) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code is not None and code.co_filename == file


def _module_classes(runner: ExampleRunner) -> List[str]:
    """The module classes at the document's top level, by name."""
    tree = ast.parse(runner.run.text.lstrip("\ufeff"))
    found = [(node.name, class_of(runner, node.name)) for node in tree.body if isinstance(node, ast.ClassDef)]
    return [name for name, cls in found if isinstance(cls, type) and issubclass(cls, torch.nn.Module)]


def _trainer_classes(runner: ExampleRunner) -> List[Tuple[str, type]]:
    """The classes of the document that derive from a trainer of a library, by name."""
    found = [
        (node.name, class_of(runner, node.name))
        for node in ast.parse(runner.run.text.lstrip("\ufeff")).body
        if isinstance(node, ast.ClassDef)
    ]
    classes = [(name, cls) for name, cls in found if isinstance(cls, type) and not issubclass(cls, torch.nn.Module)]
    return [(name, cls) for name, cls in classes if any(base.__name__.endswith("Trainer") for base in cls.__mro__[1:])]


class StepCalls:
    """The calls of steps, within so many seconds."""

    def __init__(self, runner: ExampleRunner, program: Program, inputs: UnknownInputs, seconds: float) -> None:
        """inputs: what modules are given by a step whose batch nobody knows."""
        self._runner = runner
        self._program = program
        self._inputs = inputs
        self._clock, self._seconds = WorkClock(), SHARE * seconds
        self._most_seconds = MOST_SECONDS * runner.run.patience

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    @property
    def _left(self) -> float:
        return self._seconds - self._clock()

    def model_of(self, target: str, cls: type) -> Optional[str]:
        """The expression that builds a class which has no example; None where none is found."""
        run = self._runner.run
        seconds = min(self._most_seconds, self._left)
        trials = TrialRunner(self._runner, self._runner.names, seconds)
        finder = Finder(trials, self._runner.names, run.file, run.text, Search(), lambda path: "")
        with contextlib.suppress(TooLong), within(max(seconds, 0.01)):
            return next((plan.text() for plan, _ in finder.models(target, cls)), None)
        return None

    def call(self, target: str, cls: type, name: str, model: str, given: Optional[ClassExample], surely: bool = False) -> Set[str]:
        """Call a step, and add what that saw to the trace, if a way to call it is found; the functions that it came to.

        surely: not with a batch that nobody knows.
        """
        seconds = min(self._most_seconds, self._left)
        if seconds <= 0:
            return set()
        with contextlib.suppress(TooLong, MemoryError):
            with within(seconds):
                trials = TrialRunner(self._runner, self._runner.names, seconds)
                step = StepSearch(trials, cls, name, model, given)
                expressions = step.expressions()
            reached: Set[str] = set()
            of_unknown = step.of_unknown() if not expressions and not surely else None
            if of_unknown is not None:
                return self._show_unknown("%s.%s" % (target, name), of_unknown)
            for expression in expressions:
                reached |= self._show("%s.%s" % (target, name), with_names_once(expression))
            return reached
        return set()

    def call_hook(self, target: str, cls: type, name: str) -> Set[str]:
        """Call what a trainer calls, with the program's model and a batch that nobody knows; the functions that it came to."""
        models = [key for key, value in self._program.names.items() if isinstance(value, torch.nn.Module)]
        given: List[str] = []
        for parameter in inspect.signature(getattr(cls, name)).parameters.values():
            if parameter.default is parameter.empty and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                is_model = bool(models) and parameter.name == "model"
                given.append((parameter.name if parameter.name in models else models[0]) if is_model else "unknown")
        with contextlib.suppress(TooLong, MemoryError):
            return self._show_unknown("%s.%s" % (target, name), "%s.%s(%s)" % (target, name, ", ".join(given)))
        return set()

    def _show_unknown(self, target: str, expression: str) -> Set[str]:
        """Follow a step with a batch that nobody knows, each statement by itself; what goes wrong under that is not said."""
        runner, trace = self._runner, self._runner.trace
        example = ExampleRun(target, expression, evidence="inferred", doubtful=True)
        names, runner.names = runner.names, self._program.names
        before = len(trace.mismatches)
        try:
            with within(self._most_seconds), gradients_assumed():
                runner.evaluation.watch_anew().of_unknown = self._inputs.call
                found = runner.evaluate(example)
        finally:
            runner.names = names
            runner.evaluation.watch_anew()
            del trace.mismatches[before:]
        example.error = None
        if found is not None:
            found.calls.mismatches.clear()
            found.remarks.clear()
            runner.record(found)
        return set(example.reached or ())

    def _show(self, target: str, expression: str) -> Set[str]:
        """Evaluate the example of a step, with names for its dims, and add it to the trace."""
        runner = self._runner
        example = ExampleRun(target, expression, evidence="inferred")
        with within(self._most_seconds):
            found = runner.evaluate(example)
        runner.evaluation.watch_anew()
        if found is not None:
            example.doubtful = True  # What it shows is no ground for an error.
            runner.record(found)
            runner.name_dims([found])
        return set(example.reached or ())
