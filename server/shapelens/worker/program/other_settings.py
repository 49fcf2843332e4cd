"""Classes once more with other settings than their examples have: what only runs with those is shown too.

A model of which an example was found is built with another value of a setting that its text compares with something, or asks for, where
that leads into a branch that nothing was seen of. It is called as the example calls it, or as a search finds. Where nothing fits,
nothing is shown and nothing is said.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from typing import Any, Iterable, List, Optional, Set

from ...protocol import ExampleRequest, ExampleRun, Search
from ..evaluation.evaluated import Evaluated
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.limits import TooLong, WorkClock, within
from ..search.adjusting.expression_edit import Draft, EditableArgument
from ..search.candidates.configs import looks_like_config
from ..search.code.settings_branches import Branch, OtherThan, branches_by_settings, literals_of
from ..search.evidence import BuildPlan
from ..search.finder import Finder
from ..search.trials.trial import TrialRunner
from ..search.usages.project_settings import Current, ProjectSettings
from .class_examples import class_of

MOST = 8  # other settings of one class
MOST_SECONDS = 1.2  # for one of them


def show_other_settings(runner: ExampleRunner, seconds: float) -> None:
    """Evaluate the classes whose examples were found with other settings, for so many seconds, and add what that saw to the trace."""
    clock, run = WorkClock(), runner.run
    Current.settings = ProjectSettings(run.file, run.root)
    for request in run.known:
        cls = class_of(runner, request.target)
        if request.found and isinstance(cls, type) and clock() < seconds:
            with contextlib.suppress(TooLong, MemoryError):
                _Settings(runner, cls, request, lambda: seconds - clock()).show()


class _Settings:
    """The other settings of one class."""

    def __init__(self, runner: ExampleRunner, cls: type, request: ExampleRequest, left: Any) -> None:
        self._runner = runner
        self._cls = cls
        self._request = request
        self._left = left
        self._seen: Set[int] = set()  # lines of the document

    def show(self) -> None:
        """Evaluate the class with the settings that lead into branches of which nothing was seen."""
        branches = branches_by_settings(self._cls, self._runner.run.file)
        call = _call(self._request.expression) if branches else None
        if call is None:
            return
        trials = TrialRunner(self._runner, self._runner.names, MOST_SECONDS)
        if trials.whole(self._request.expression).error is not None or trials.seen is None:
            return
        self._seen |= self._lines_of(trials.seen)
        tried: Set[str] = set()
        for branch in branches:
            if len(tried) >= MOST or self._left() <= 0:
                return
            if branch.lines & self._seen:
                continue
            for model in self._models(ast.unparse(call.func), branch, branches):
                if model not in tried and not branch.lines & self._seen and len(tried) < MOST:
                    tried.add(model)
                    self._show(model, _arguments(call))

    def _models(self, model: str, branch: Branch, branches: List[Branch]) -> List[str]:
        """The text that builds the model with the setting of a branch; [] where that setting cannot be changed."""
        draft = Draft(BuildPlan(model))
        values: Iterable[Any] = [branch.value]
        if isinstance(branch.value, OtherThan):
            values = [value for value in literals_of(branches, branch.name) if value not in branch.value.values]
        argument = self._argument(draft, branch.name)
        if argument is None:
            return []
        return [argument.changed(repr(value)).text() for value in values if self._may_be(argument, value)][:2]

    def _argument(self, draft: Draft, name: str) -> Optional[EditableArgument]:
        """Where a setting is said in the text that builds the model, or could be."""
        given = draft.named(name)
        if given:
            return given[0]
        if isinstance(draft.tree, ast.Call):
            parameters = _parameters(self._cls)
            if name in parameters:
                place = parameters.index(name)
                return EditableArgument(draft, draft.tree, name, place if place < len(draft.tree.args) else None)
        for argument in draft.arguments():
            value = argument.value
            if isinstance(value, ast.Call) and looks_like_config(argument.name):
                made = class_of_call(self._runner, value)
                if made is not None and name in _parameters(made):
                    return EditableArgument(draft, value, name)
        for part in ast.walk(draft.tree):
            if isinstance(part, ast.Dict) and None in part.keys:  # Beside the settings that an object has.
                return EditableArgument(draft, part, name)
        return None

    def _may_be(self, argument: EditableArgument, value: Any) -> bool:
        """Whether a setting may have this value: a number or text takes no truth."""
        given = argument.value
        if given is None:
            return True
        return isinstance(given, ast.Constant) and (given.value is None or type(given.value) is type(value)) and given.value != value

    def _show(self, model: str, arguments: str) -> None:
        """Evaluate the class as it is built so, with names for its dims, and add what that saw to the trace, if nothing fails there."""
        run = self._runner.run
        seconds = min(MOST_SECONDS, max(self._left(), 0.01))
        with contextlib.suppress(TooLong, MemoryError):
            with within(seconds):
                trials = TrialRunner(self._runner, self._runner.names, seconds)
                finder = Finder(trials, self._runner.names, run.file, run.text, Search(), lambda path: "")
                found = finder.built_so(self._request.target, self._cls, model, arguments)
                if found is None or not self._is_called_alike(trials, found, arguments):
                    return
            with within(seconds):
                self._record(found)

    def _is_called_alike(self, trials: TrialRunner, found: str, arguments: str) -> bool:
        """Whether an example gives what the one of the class gives, or something of the same ranks with which that one runs too."""
        call = _call(found)
        given = "" if call is None else _arguments(call)
        if given == arguments or call is None:
            return call is not None
        if any(rank != other for rank, other in zip(_ranks(given), _ranks(arguments))):
            return False
        own = _call(self._request.expression)
        return own is not None and trials.whole("%s(%s)" % (ast.unparse(own.func), given)).error is None

    def _record(self, expression: str) -> None:
        runner, trace = self._runner, self._runner.trace
        mismatches, notes = len(trace.mismatches), len(trace.notes)
        example = ExampleRun("", expression, evidence="inferred", doubtful=True)  # What it shows is no ground for an error.
        evaluated: Optional[Evaluated] = runner.evaluate(example)
        runner.evaluation.watch_anew()
        failed = example.error is not None or len(trace.mismatches) > mismatches
        del trace.mismatches[mismatches:], trace.notes[notes:]
        if evaluated is not None and not failed:
            runner.record(evaluated)
            runner.name_dims([evaluated])
            self._seen |= self._lines_of(evaluated.sites)

    def _lines_of(self, sites: Iterable[int]) -> Set[int]:
        recorder, file = self._runner.recorder, self._runner.run.file
        return {recorder.sites[number].place[0] for number in sites if recorder.file_of(number) == file}


def class_of_call(runner: ExampleRunner, call: ast.Call) -> Optional[type]:
    """The class that a call in an expression builds an object of; None where it calls something else."""
    found = class_of(runner, ast.unparse(call.func)) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
    return found if isinstance(found, type) else None


def _call(expression: str) -> Optional[ast.Call]:
    """The call of a model in an example; None where it is something else."""
    tree = ast.parse(expression.strip(), mode="eval").body
    return tree if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Call) else None


def _arguments(call: ast.Call) -> str:
    return ", ".join([*map(ast.unparse, call.args), *map(_keyword, call.keywords)])


def _ranks(arguments: str) -> List[int]:
    """The ranks of the tensors in the arguments of a call."""
    return [found.group(1).count(",") + 1 for found in re.finditer(r"\w\[([^\[\]]*)\]", arguments)]


def _keyword(keyword: ast.keyword) -> str:
    return ("%s=%s" if keyword.arg is not None else "**%s%s") % (keyword.arg or "", ast.unparse(keyword.value))


def _parameters(cls: type) -> List[str]:
    try:
        return list(inspect.signature(cls).parameters)
    except (TypeError, ValueError):
        return []
