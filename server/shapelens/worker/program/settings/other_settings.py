"""Classes once more with other settings than their examples have: what only runs with those is shown too.

A model of which an example was found is built with another value of a setting that its text compares with something, or asks for, where
that leads into a branch that nothing was seen of. It is called as the example calls it, or as a search finds, or with another value of a
setting that its `forward` takes (`return_attention=True`); where the branch is one of a step, that step is called then. Where nothing fits,
what is wrong in the branch whatever the class is given is said, and nothing else.
"""

from __future__ import annotations

import ast
import contextlib
import re
import traceback
from dataclasses import replace
from functools import partial
from inspect import isfunction
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple

from ....protocol import ExampleRequest, ExampleRun, Mismatch, Search
from ...calls.module_calls import Mistake
from ...evaluation.evaluated import Evaluated
from ...evaluation.example_runner import ExampleRunner
from ...sandbox.clocks import WorkClock
from ...sandbox.exceptions import traceback_of
from ...sandbox.limits import TooLong, within
from ...search.candidates.document_scope import DocumentScope
from ...search.code.settings_branches import SIZE, Branch, branches_by_settings
from ...search.code.sources import function_node, methods
from ...search.events import FoundExample
from ...search.evidence import BuildPlan
from ...search.finder import Finder
from ...search.trials.trial import TrialRunner, parameters_of
from ...search.usages.project_settings import Current, ProjectSettings
from ..class_examples import NamesAndMore, class_of, taken_apart
from ..steps import StepCalls, steps_of
from ..sure_failures import Spans, tell_certain
from .omitted_inputs import call_with_input, omitted_inputs, values_for
from .once_more import build_with, call_once_more
from .setting_texts import SettingTexts

MOST = 12  # other settings of one class and its parts
MOST_INPUTS = 24  # that are tried for all branches of one class and its parts which ask whether something is given
MOST_TENSORS = 8  # that are tried for parameters which the example of the class leaves out
MOST_SECONDS = 1.2  # for one of them
MOST_SECONDS_OF_PROOF = 6.0  # that no other guess avoids what fails with one of them
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
        self._most_seconds = MOST_SECONDS * runner.run.patience
        layer = DocumentScope(runner.names, ast.parse(runner.run.text)).layer("Identity")
        self._texts = SettingTexts(cls, partial(class_of, runner), layer)
        self._seen: Set[int] = set()  # lines of the document
        self._tried: Dict[str, Optional[str]] = {}  # by what was tried: the expression that ran
        self._led_there: List[Tuple[Branch, ast.Call]] = []  # the calls that led into a branch
        self._failing: List[Callable[[], None]] = []  # say what is wrong in branches in which nothing ran

    def show(self) -> None:
        """Evaluate the class with the settings that lead into branches of which nothing was seen."""
        call = _call(self._request.expression)
        if call is None:
            return
        trials = TrialRunner(self._runner, self._runner.names, self._most_seconds)
        trial = trials.whole(self._request.expression)
        if trial.error is not None or trials.seen is None:
            return
        self._seen |= self._lines_of(trials.seen) | self._runner.lines_shown()
        owners = [self._cls, *sorted(trial.classes - {self._cls}, key=lambda cls: cls.__name__)]
        for owner in owners:
            branches = branches_by_settings(owner, self._runner.run.file)
            for branch in branches:
                if branch.lines & self._seen:
                    # What led into one branch of a setting leads into the others with that value, and to what stands in them.
                    same = [inside for other, inside in self._led_there if (other.name, other.value) == (branch.name, branch.value)]
                    self._led_there += [(branch, inside) for inside in same[:1]]
                    continue
                around = next((inside for outer, inside in reversed(self._led_there) if branch.lines < outer.lines), call)
                for expression in self._texts.expressions(around, owner, branch, branches):
                    found = self._attempt(expression, branch, partial(self._show, expression, owner, branch))
                    inside = _call(found) if found is not None else None
                    if inside is not None:
                        self._led_there.append((branch, inside))
                    if found is not None and owner is self._cls:
                        self._call_steps(found, branch)
                for setting in self._texts.settings_of_part(owner, branch, branches):
                    self._attempt("%s: %r" % (owner.__name__, setting), branch, partial(self._show_part, owner, setting))
                for setting in self._texts.settings_that_build_part(owner, branch, branches):
                    self._attempt("%s(%r)" % (owner.__name__, setting), branch, partial(self._show_built_part, owner, setting))
        self._show_omitted_inputs(owners, trials.seen)
        for say_mistakes in self._failing:
            if self._left() > 0:
                say_mistakes()

    def _attempt(self, key: str, branch: Branch, show: Callable[[], Optional[str]]) -> Optional[str]:
        """Try what may lead into a branch of which nothing was seen, once, as long as there is time; the expression that ran."""
        if branch.lines & self._seen:
            return None
        if key not in self._tried and len(self._tried) < MOST and self._left() > 0:
            self._tried[key] = show()
        return self._tried.get(key)

    def _show_omitted_inputs(self, owners: List[type], seen: Iterable[int]) -> None:
        """Evaluate the example once more for each branch that asks whether something is given, with what may be given.

        seen: the sites that the example reached.
        """
        runner, file = self._runner, self._runner.run.file
        sites = runner.recorder.sites
        reached = {sites[number].function for number in seen if runner.recorder.file_of(number) == file}
        functions = [function for name in sorted(reached) if (function := self._function(name)) is not None]
        tried = 0
        for omitted in omitted_inputs(owners, functions, file):
            if omitted.branch.lines & self._seen or tried >= MOST_INPUTS or self._left() <= 0:
                continue  # What it may be given need not be thought of.
            for value in values_for(omitted, runner.recorder, file, runner.run.text):
                if omitted.branch.lines & self._seen or tried >= MOST_INPUTS or self._left() <= 0:
                    break
                tried += 1
                self._evaluate_once_more(partial(call_with_input, omitted, value, runner.recorder, file))

    def _function(self, name: str) -> Any:
        """A function of the document, by its name; None for what is none."""
        try:
            found = self._runner.names[name]
        except KeyError:
            return None
        return found if isfunction(found) else None

    def _show_part(self, owner: type, setting: Dict[str, Any]) -> None:
        """Evaluate the example once more, with a second call of the first part of this class: with another value of a setting."""
        self._evaluate_once_more(partial(call_once_more, owner, setting))

    def _show_built_part(self, owner: type, setting: Dict[str, Any]) -> None:
        """Evaluate the example once more, with the parts of this class built with another value of a setting."""
        self._evaluate_once_more(partial(build_with, owner, setting))

    def _evaluate_once_more(self, once_more: Callable[[Callable[[], Any]], Any]) -> None:
        """Evaluate the example as a function that is given it does, and add what that saw to the trace, if nothing fails there."""
        runner, names = self._runner, self._runner.names
        runner.names = NamesAndMore(names, {_ONCE_MORE: once_more})
        try:
            with contextlib.suppress(TooLong, MemoryError), within(min(self._most_seconds, max(self._left(), 0.01))):
                self._record("%s(lambda: %s)" % (_ONCE_MORE, self._request.expression))
        finally:
            runner.names = names

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

    def _show(self, expression: str, owner: type, branch: Branch) -> Optional[str]:
        """Evaluate an example of the class, with names for its dims, and add what that saw to the trace, if nothing fails there.

        A statement of the branch may fail (an attribute that this version of a package does not have): it makes something unknown.

        Returns the expression that was evaluated: the class may be called with something else.
        """
        run, call = self._runner.run, _call(expression)
        if call is None:
            return None
        model, arguments = ast.unparse(call.func), _arguments(call)
        seconds = min(self._most_seconds, max(self._left(), 0.01))
        failing: Optional[FoundExample] = None
        with contextlib.suppress(TooLong, MemoryError):
            with within(seconds):
                trials = TrialRunner(self._runner, self._runner.names, seconds)
                finder = Finder(trials, self._runner.names, run.file, run.text, Search(), lambda path: "")
                found = self._as_it_is(trials, branch, "%s(%s)" % (model, arguments))
                found = found or self._with_optional_tensors(trials, model, arguments)
                if found is None:
                    built = finder.example_built_so(BuildPlan(model), self._request.target, self._cls, arguments)
                    found, failing = (None, built) if built.doubtful else (built.expression, None)
                # Another size that is given may come with other inputs: tokens, where there are features without it.
                if found is not None and not (branch.value is SIZE or self._is_called_alike(trials, found, arguments)):
                    return None
            if failing is not None:
                self._failing.append(partial(self._say_mistakes, finder, failing, owner, branch))
            if found is None:
                return None
            with within(seconds):
                self._record(found, branch.lines)
            return found
        return None

    def _say_mistakes(self, finder: Finder, failing: FoundExample, owner: type, branch: Branch) -> None:
        """Add what is wrong in a branch whatever else the class is given to the trace, unless something runs there.

        failing: an example that comes there, and fails.
        """
        runner, trace, setting = self._runner, self._runner.trace, self._texts.said_in(_call(failing.expression), owner, branch)
        if branch.lines & self._seen:
            return
        variants = [text for text in failing.variants if self._texts.said_in(_call(text), owner, branch) == setting]
        mistakes: Mapping[Mistake, Mismatch] = {}
        with contextlib.suppress(TooLong, MemoryError), within(MOST_SECONDS_OF_PROOF):
            mistakes = finder.mistakes(replace(failing, variants=tuple(variants)))
        said = {each.span for each in trace.mismatches}
        with contextlib.suppress(TooLong, MemoryError), within(self._most_seconds):
            example = ExampleRun("", failing.expression, evidence="inferred")
            if mistakes:
                tell_certain(
                    runner, example, mistakes, lambda found, spans: found.span not in said and self._comes_from(branch, found, spans)
                )

    def _comes_from(self, branch: Branch, found: Mismatch, spans: Spans) -> bool:
        """True if a mismatch arose in a branch, beside it where no other run came, or in a layer constructed there."""
        made = spans[found.layer] if found.layer is not None and found.layer < len(spans) else None
        places = [place for place in (*found.trail, made) if place is not None]
        lines = (branch.lines | branch.around) - self._seen
        return any(place.file == self._runner.run.file and place.line in lines for place in places)

    def _as_it_is(self, trials: TrialRunner, branch: Branch, expression: str) -> Optional[str]:
        """The expression, if it runs, or fails in a statement of the branch with an exception that no other arguments prevent."""
        call = _call(expression)
        error = trials.whole(ast.unparse(call)).error if call is not None else None
        if call is None or (error is not None and not isinstance(error, (AttributeError, NameError))):
            return None
        frames = traceback.walk_tb(traceback_of(error)) if error is not None else ()
        lines = {line for frame, line in frames if frame.f_code.co_filename == self._runner.run.file}
        return expression if error is None or lines & branch.lines else None

    def _with_optional_tensors(self, trials: TrialRunner, model: str, arguments: str) -> Optional[str]:
        """The example of the class, as it is built so, with a tensor for a parameter that `forward` has besides; None where none runs.

        A tensor has the shape of one that the example gives: a mask is most often that of the input.
        """
        call = _call("%s(%s)" % (model, arguments))
        if call is None:
            return None
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
        """True if an example has the arguments of the class's example, or ones of the same ranks with which that one runs too."""
        call = _call(found)
        given = "" if call is None else _arguments(call)
        if given == arguments or call is None:
            return call is not None
        if any(rank != other for rank, other in zip(_ranks(given), _ranks(arguments))):
            return False
        own = _call(self._request.expression)
        return own is not None and trials.whole("%s(%s)" % (ast.unparse(own.func), given)).error is None

    def _record(self, expression: str, tolerated: FrozenSet[int] = frozenset()) -> None:
        """tolerated: lines whose exceptions are gone past; what they would have made is unknown."""
        runner, trace, run = self._runner, self._runner.trace, self._runner.run
        mismatches, notes = len(trace.mismatches), len(trace.notes)
        example = ExampleRun("", expression, evidence="inferred", doubtful=True)  # What it shows is no ground for an error.
        runner.past.guesses = not tolerated
        try:
            evaluated: Optional[Evaluated] = runner.evaluate(example)
        finally:
            runner.past.guesses = True
        runner.evaluation.watch_anew()
        found = trace.mismatches[mismatches:]
        failed = example.error is not None or any(not _is_in(each, run.file, tolerated) for each in found)
        del trace.notes[notes:], trace.mismatches[mismatches:]
        if evaluated is None or failed:
            runner.take_back()
        else:
            runner.record(evaluated)
            runner.name_dims([evaluated])
            self._seen |= self._lines_of(evaluated.sites)

    def _lines_of(self, sites: Iterable[int]) -> Set[int]:
        recorder, file = self._runner.recorder, self._runner.run.file
        return {recorder.sites[number].place[0] for number in sites if recorder.file_of(number) == file}


def _names_one_of(method: Any, names: Set[str]) -> bool:
    """True if a method is one of these, or its text names one."""
    node = function_node(method)
    return node is not None and (
        node.name in names or any(isinstance(part, ast.Attribute) and part.attr in names for part in ast.walk(node))
    )


def _is_in(found: Mismatch, file: str, lines: FrozenSet[int]) -> bool:
    """True if it is an exception of a statement on one of these lines."""
    return found.code == "exception" and any(span.file == file and span.line in lines for span in found.trail)


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
