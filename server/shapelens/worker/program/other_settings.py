"""Classes once more with other settings than their examples have: what only runs with those is shown too.

A model of which an example was found is built with another value of a setting that its text compares with something, or asks for, where
that leads into a branch that nothing was seen of. It is called as the example calls it, or as a search finds, or with another value of a
setting that its `forward` takes (`return_attention=True`); where the branch is one of a step, that step is called then. Where nothing fits,
nothing is shown and nothing is said.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from ...protocol import ExampleRequest, ExampleRun, Search
from ..evaluation.evaluated import Evaluated
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.clocks import WorkClock
from ..sandbox.limits import TooLong, within
from ..search.adjusting.expression_edit import Draft, EditableArgument
from ..search.candidates.configs import looks_like_config
from ..search.code.settings_branches import Branch, OtherThan, branches_by_settings, literals_of
from ..search.code.sources import function_node, methods
from ..search.evidence import BuildPlan
from ..search.finder import Finder
from ..search.trials.trial import TrialRunner, parameters_of
from ..search.usages.project_settings import Current, ProjectSettings
from .class_examples import NamesAndMore, class_of, taken_apart
from .steps import StepCalls, steps_of

MOST = 8  # other settings of one class
MOST_TENSORS = 8  # that are tried for parameters which the example of the class leaves out
MOST_SECONDS = 1.2  # for one of them
SOME_SIZE = 16  # for one that may be any but what the text compares it with
_ONCE_MORE = "__shapelens_once_more__"


def show_other_settings(runner: ExampleRunner, steps: StepCalls, seconds: float) -> None:
    """Evaluate the classes whose examples were found with other settings, for so many seconds, and add what that saw to the trace.

    steps: calls their steps.
    """
    clock, run = WorkClock(), runner.run
    Current.settings = ProjectSettings(run.file, run.root)
    for request in run.known:
        cls = class_of(runner, request.target)
        if request.found and isinstance(cls, type) and clock() < seconds:
            with contextlib.suppress(TooLong, MemoryError):
                _Settings(runner, steps, cls, request, lambda: seconds - clock()).show()


class _Settings:
    """The other settings of one class."""

    def __init__(self, runner: ExampleRunner, steps: StepCalls, cls: type, request: ExampleRequest, left: Any) -> None:
        self._runner = runner
        self._steps = steps
        self._cls = cls
        self._request = request
        self._left = left
        self._seen: Set[int] = set()  # lines of the document

    def show(self) -> None:
        """Evaluate the class with the settings that lead into branches of which nothing was seen."""
        call = _call(self._request.expression)
        if call is None:
            return
        trials = TrialRunner(self._runner, self._runner.names, MOST_SECONDS)
        trial = trials.whole(self._request.expression)
        if trial.error is not None or trials.seen is None:
            return
        self._seen |= self._lines_of(trials.seen) | self._runner.lines_shown()
        tried: Dict[Tuple[str, str], Optional[str]] = {}  # by the texts of the model and its arguments: the expression that was evaluated
        led_there: List[Tuple[Branch, ast.Call]] = []  # the calls that led into a branch
        for owner in [self._cls, *sorted(trial.classes - {self._cls}, key=lambda cls: cls.__name__)]:
            branches = branches_by_settings(owner, self._runner.run.file)
            for branch in branches:
                if branch.lines & self._seen:
                    continue
                around = next((inside for outer, inside in reversed(led_there) if branch.lines < outer.lines), call)
                built = [(model, _arguments(around)) for model in self._models(ast.unparse(around.func), owner, branch, branches)]
                called = [(ast.unparse(around.func), arguments) for arguments in self._calls(around, branch, branches)]
                for texts in built + called:
                    if (len(tried) >= MOST and texts not in tried) or self._left() <= 0:
                        return
                    if branch.lines & self._seen:
                        break
                    if texts not in tried:
                        tried[texts] = self._show(*texts)
                    found = tried[texts]
                    inside = _call(found) if found is not None else None
                    if inside is not None:
                        led_there.append((branch, inside))
                    if found is not None and owner is self._cls:
                        self._call_steps(found, branch)
                for value in self._settings_of_part(owner, branch, branches):
                    setting = (owner.__name__, "%s=%r" % (branch.name, value))
                    if (len(tried) >= MOST and setting not in tried) or self._left() <= 0:
                        return
                    if setting not in tried and not branch.lines & self._seen:
                        tried[setting] = self._show_part(owner, branch.name, value)

    def _models(self, model: str, owner: type, branch: Branch, branches: List[Branch]) -> List[str]:
        """The text that builds the model with the setting of a branch of `owner`; [] where that setting cannot be changed."""
        if branch.name == "training":
            return [model + (".train()" if branch.value is True else ".eval()")]
        draft = Draft(BuildPlan(model))
        argument = self._argument(draft, owner, branch.name)
        if argument is None:
            return []
        return [argument.changed(repr(value)).text() for value in _values_of(branch, branches) if _may_be(argument.value, value)][:2]

    def _calls(self, call: ast.Call, branch: Branch, branches: List[Branch]) -> List[str]:
        """The arguments that call the model with the setting of a branch; [] where `forward` takes none of that name."""
        setting = _setting_of_forward(self._cls, branch.name, len(call.args))
        if setting is None:
            return []
        given = {keyword.arg: keyword.value for keyword in call.keywords}.get(setting.name, ast.Constant(setting.default))
        found = []
        for value in _values_of(branch, branches):
            if _may_be(given, value):
                keywords = [keyword for keyword in call.keywords if keyword.arg != setting.name]
                changed = ast.keyword(setting.name, ast.Constant(value))
                found.append(_arguments(ast.Call(call.func, call.args, [*keywords, changed])))
        return found[:2]

    def _argument(self, draft: Draft, owner: type, name: str) -> Optional[EditableArgument]:
        """Where a setting of `owner` is said in the text that builds the model, or could be."""
        calls, parameters = draft.calls(owner.__name__), _parameters(owner)
        if calls and name in parameters:
            place = parameters.index(name)
            return EditableArgument(draft, calls[0], name, place if place < len(calls[0].args) else None)
        if owner is not self._cls and name in parameters:
            whole, own = draft.calls(self._cls.__name__), _parameters(self._cls)
            if whole and name in own:  # It may hand it on.
                return EditableArgument(draft, whole[0], name, own.index(name) if own.index(name) < len(whole[0].args) else None)
            if whole and _hands_on(self._cls):
                return EditableArgument(draft, whole[0], name)
            return None  # What builds it says what it is.
        given = draft.named(name)
        if given:
            return given[0]
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

    def _settings_of_part(self, owner: type, branch: Branch, branches: List[Branch]) -> List[Any]:
        """The values for a branch that its setting may have where the `forward` of a part takes it, and that of the class does not."""
        setting = _setting_of_forward(owner, branch.name)
        if owner is self._cls or setting is None or _setting_of_forward(self._cls, branch.name) is not None:
            return []
        return [value for value in _values_of(branch, branches) if _may_be(ast.Constant(setting.default), value)][:2]

    def _show_part(self, owner: type, name: str, value: Any) -> Optional[str]:
        """Evaluate the example once more, with a second call of the first part of this class: with another value of a setting."""
        runner, names = self._runner, self._runner.names
        runner.names = NamesAndMore(names, {_ONCE_MORE: partial(_once_more, owner, {name: value})})
        expression = "%s(lambda: %s)" % (_ONCE_MORE, self._request.expression)
        try:
            with contextlib.suppress(TooLong, MemoryError), within(min(MOST_SECONDS, max(self._left(), 0.01))):
                self._record(expression)
        finally:
            runner.names = names
        return None

    def _call_steps(self, expression: str, branch: Branch) -> None:
        """Call the steps that come to a branch of which nothing was seen yet, as the class is built in an expression."""
        given = taken_apart(self._runner, replace(self._request, expression=expression))
        around = {node.name for _, node in methods(self._cls) if node.lineno <= min(branch.lines) <= (node.end_lineno or 0)}
        if given is None:
            return
        for name in steps_of(self._cls, self._runner.run.file):
            if not branch.lines & self._seen and self._left() > 0 and _names_one_of(getattr(self._cls, name), around):
                self._steps.call(self._request.target, self._cls, name, given.model, given, surely=True)
                self._seen |= self._runner.lines_shown()

    def _show(self, model: str, arguments: str) -> Optional[str]:
        """Evaluate the class as it is built so, with names for its dims, and add what that saw to the trace, if nothing fails there.

        Returns the expression that was evaluated.
        """
        run = self._runner.run
        seconds = min(MOST_SECONDS, max(self._left(), 0.01))
        with contextlib.suppress(TooLong, MemoryError):
            with within(seconds):
                trials = TrialRunner(self._runner, self._runner.names, seconds)
                finder = Finder(trials, self._runner.names, run.file, run.text, Search(), lambda path: "")
                found = self._with_optional_tensors(trials, model, arguments)
                found = found or finder.built_so(self._request.target, self._cls, model, arguments)
                if found is None or not self._is_called_alike(trials, found, arguments):
                    return None
            with within(seconds):
                self._record(found)
            return found
        return None

    def _with_optional_tensors(self, trials: TrialRunner, model: str, arguments: str) -> Optional[str]:
        """The example of the class, as it is built so, with a tensor for a parameter that `forward` has besides; None where none runs.

        A tensor has the shape of one that the example gives: a mask is most often that of the input.
        """
        call = _call("%s(%s)" % (model, arguments))
        if call is None or trials.whole(ast.unparse(call)).error is None:
            return None if call is None else "%s(%s)" % (model, arguments)
        parameters = parameters_of(getattr(self._cls, "forward", None))[1:]
        given = {keyword.arg for keyword in call.keywords} | {each.name for each in parameters[: len(call.args)]}
        tensors = dict.fromkeys(found.group() for found in re.finditer(r"\b[a-z]+\d+\[[^\[\]]*\]", arguments))
        tried = 0
        for parameter in parameters:
            for tensor in tensors if parameter.default is None and parameter.name not in given else ():
                expression = "%s(%s, %s=%s)" % (model, arguments, parameter.name, tensor)
                tried += 1
                if tried <= MOST_TENSORS and not trials.is_over and trials.whole(expression).error is None:
                    return expression
        return None

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
        del trace.notes[notes:]
        if evaluated is None or failed:
            runner.take_back()
        else:
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


def _once_more(cls: type, settings: Dict[str, Any], example: Callable[[], Any]) -> Any:
    """What an example gives, whose first call of a module of this class is preceded by one with other settings."""
    forward: Any = cls.forward  # type: ignore[attr-defined]
    is_own = "forward" in vars(cls)
    calls: List[Any] = []

    @functools.wraps(forward)
    def twice(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(self)
        if len(calls) == 1:
            forward(self, *args, **{**kwargs, **settings})
        return forward(self, *args, **kwargs)

    cls.forward = twice  # type: ignore[attr-defined]
    try:
        return example()
    finally:
        if is_own:
            cls.forward = forward  # type: ignore[attr-defined]
        else:
            del cls.forward  # type: ignore[attr-defined]


def _setting_of_forward(cls: type, name: str, given: int = 0) -> Optional[inspect.Parameter]:
    """The parameter of this name that `forward` has behind so many arguments, with a number, truth or text as its default."""
    parameters = parameters_of(getattr(cls, "forward", None))[1 + given :]
    return next((each for each in parameters if each.name == name and isinstance(each.default, (bool, int, str))), None)


def _values_of(branch: Branch, branches: List[Branch]) -> List[Any]:
    """The values of its setting that lead into a branch, as far as the text names them."""
    if not isinstance(branch.value, OtherThan):
        return [branch.value]
    values = [value for value in literals_of(branches, branch.name) if value not in branch.value.values]
    is_size = not values and all(type(value) is int for value in branch.value.values)
    return [SOME_SIZE] if is_size and SOME_SIZE not in branch.value.values else values


def _may_be(given: Optional[ast.AST], value: Any) -> bool:
    """Whether a setting that is given so may have this value: a number or text takes no truth."""
    if given is None:
        return True
    return isinstance(given, ast.Constant) and (given.value is None or type(given.value) is type(value)) and given.value != value


def _names_one_of(method: Any, names: Set[str]) -> bool:
    """Whether a method is one of these, or its text speaks of one."""
    node = function_node(method)
    return node is not None and (
        node.name in names or any(isinstance(part, ast.Attribute) and part.attr in names for part in ast.walk(node))
    )


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
    return [each.name for each in parameters_of(cls)]


def _hands_on(cls: type) -> bool:
    """Whether a class takes keywords that it does not name: it hands them on to its parts."""
    return any(each.kind is each.VAR_KEYWORD for each in parameters_of(cls))
