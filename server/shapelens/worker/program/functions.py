"""Functions that no program comes to are called: with what their annotations and docstrings say, and what the search finds that fits.

What tensors a function is given the search of examples finds out (worker/search); what else it is given `function_arguments` knows. A
function is followed as the program is, so that a statement that fails ends alone; where nothing is found that fits, with arguments that
nobody knows. It is called again with other settings where those lead into a branch of which nothing was seen. What is shown of it is no
ground for an error, but for what a model that a function makes without arguments would fail at whatever it is given.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import re
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ...protocol import ExampleRun, FileSpan, Remark, Search, Trace
from ...traces import PROGRAM
from ..calls.optimizers import never_set_back
from ..evaluation.example_runner import ExampleRunner
from ..rewrite.resilient import CHANCE
from ..sandbox.clocks import WorkClock
from ..sandbox.limits import TooLong, within
from ..search.code.settings_branches import branches_of_function
from ..search.code.tensor_code import is_of_tensors
from ..search.evidence import BuildPlan, InputShape
from ..search.finder import Finder
from ..search.inputs.forms import Form
from ..search.inputs.input_search import InputSearch, last_of
from ..search.text.annotations import input_shapes
from ..search.trials.doubtful_examples import is_mismatch
from ..search.trials.trial import RefusedInput, TrialRunner
from ..search.usages.documented import documented_calls
from ..shims import chance
from ..shims.chance import HIGH, LOW
from ..trace.recorder import SeenValues
from .class_examples import ClassExample, NamesAndMore, with_names_once
from .function_arguments import FunctionArguments, form_of
from .program import Program, gradients_assumed
from .settings.function_settings import UNKNOWN_TEXT, values_of, with_setting
from .step_search import StepSearch
from .sure_failures import sure_whatever_is_given, tell_certain, tell_of_no_example, tell_sure

MOST_TRIES = 60  # of one function
MOST_CALLS = 10  # of one function that the examples of classes speak for
MOST_SECONDS = 0.6  # for one function
MORE_SECONDS = 2.0  # when the time is up, for functions that are called with what nobody knows: that needs no search
MOST_SETTINGS = 8  # that are tried of one function
MOST_OF_MODEL = 3.0  # seconds for the model that a function makes
LONGEST_RUN = 1.0  # seconds that an example which was found may run
# What a program is begun with, or what only builds: nothing of it is worth a search.
_SKIPPED = ("parse_args", "get_args", "get_parser", "setup", "cleanup", "set_seed", "seed_everything")

_LARGE = re.compile(r"(?<![\w.])\d{4,}\b")

_COUNTS = ("n", "N", "num", "m", "M")

_OBJECT = "__shapelens_object__"  # whose method is called, while what fits is searched for

Definition = ast.FunctionDef


class Callee(NamedTuple):
    """A function to call, or a method of an object."""

    name: str  # as sites call it: "Agent.act"
    text: str  # what is called, as an expression: "Agent(8).act"
    node: Definition  # without `self`
    function: Any  # None where the object cannot be built: a program's statements that fail end alone
    cls: Optional[type] = None  # that a method is of
    made: Any = None  # the object
    given: Optional[ClassExample] = None  # of the model that the object holds


class FunctionCalls:
    """The functions of a document that show nothing yet, each called once with what fits."""

    def __init__(
        self, runner: ExampleRunner, program: Program, examples: List[ClassExample], known: Mapping[str, str], seconds: float
    ) -> None:
        """known: the examples that were found for functions before, by their names; examples: of the document's classes."""
        self._runner = runner
        self._program = program
        self._examples = examples
        self._known = known
        self._clock, self._seconds = WorkClock(), seconds
        self._most_seconds = MOST_SECONDS * runner.run.patience
        self._given = _given(runner.trace, runner.run.file)
        self._lines = runner.run.text.splitlines()
        self._tree = ast.parse(runner.run.text.lstrip("\ufeff"))
        self._is_sure_to_fail = False  # the function that was called last, whatever it is given
        self._ran = set(runner.recorder.functions(runner.run.file) or ())

    @property
    def left(self) -> float:
        """The seconds that are left; fewer than none while what needs no search may still be called."""
        return self._seconds - self._clock()

    def call(self, shown: Set[str]) -> None:
        """Call the functions that are not `shown`, or in which a statement has failed; then those that were shown, with the settings that
        lead into branches of which nothing was. What each saw, and nothing else has shown, is added to the trace. Raises what ends a run.
        """
        callees: List[Callee] = []
        for node in _definitions(self._tree.body):
            if self.left <= -MORE_SECONDS:
                return
            function = self._function(node.name)
            if function is not None and node.name not in _SKIPPED and not node.name.startswith("test_"):
                callee = Callee(node.name, node.name, node, function)
                if self.is_whole(callee.name, node, shown):
                    callees.append(callee)
                self.call_one(callee, shown)
        for callee in callees:
            if callee.name in shown and self.left > 0:
                self._show_branches_of_shown(callee)

    def call_one(self, callee: Callee, shown: Set[str]) -> None:
        """Call what is not `shown`, or in which a statement has failed; `shown` gets the functions that this has shown."""
        if self.is_whole(callee.name, callee.node, shown):
            return
        left, failed = self.left, len(self._program.failures)
        expression: Optional[str] = None
        # What was tried may ask for more memory than there is: that is no fault of the function.
        with contextlib.suppress(TooLong, MemoryError), gradients_assumed():
            drawn: Optional[float] = None
            if left > 0 and callee.function is not None:
                with contextlib.suppress(TooLong), within(min(left, self._most_seconds)):
                    expression, drawn = self._found(callee, min(left, self._most_seconds))
            with chance.decided(drawn):
                found = self._show(callee.name, expression) if expression is not None else None
                found = found if found is not None else self._show(callee.name, of_unknown(callee.text, callee.node))
            shown |= found or set()
            tell_of_no_example(self._runner, sure_whatever_is_given(self._program, self._runner.evaluation, failed))
            if self._is_sure_to_fail:
                self._is_sure_to_fail = False
                tell_sure(self._runner, ExampleRun(callee.name, expression or of_unknown(callee.text, callee.node), evidence="inferred"))
            if found is not None:
                self._tell_of_gradients(callee)
            if expression is not None and found:
                self._show_other_settings(callee, expression)
            if found is not None:
                self._show_other_branches(callee, expression or of_unknown(callee.text, callee.node))
        if expression == "%s()" % callee.name and callee.cls is None:
            with contextlib.suppress(TooLong, MemoryError), within(MOST_OF_MODEL * self._runner.run.patience):
                self._call_model(callee.name, expression)

    def _tell_of_gradients(self, callee: Callee) -> None:
        """Tell of a loop that trains, and of which the text says that nothing sets gradients back. What it is given nobody knows."""
        step = never_set_back(callee.node, self._runner.run.file)
        number = next((number for number, each in enumerate(self._runner.trace.examples) if each.evidence == PROGRAM), None)
        if step is not None and number is not None:
            place = step.lineno, step.col_offset, step.end_lineno or step.lineno, step.end_col_offset or step.col_offset
            span = FileSpan(self._runner.run.file, *place)
            self._runner.trace.remarks.append(Remark("no-zero-grad", "", span, number))

    def _call_model(self, name: str, expression: str) -> None:
        """Call the model that a function makes as its class is called, and tell of mistakes that no input avoids."""
        if self.left <= 0:
            return
        runner = self._runner
        trials = TrialRunner(runner, runner.names, min(self.left, MOST_OF_MODEL * runner.run.patience))
        made = trials.whole(expression).result
        given = next((each for each in self._examples if each.target == type(made).__qualname__), None)
        if given is None or not isinstance(made, torch.nn.Module):
            return
        finder = Finder(trials, runner.names, runner.run.file, runner.run.text, Search(), lambda path: "")
        plan = BuildPlan(expression, {}, "factory", expression)
        found = finder.example_built_so(plan, given.target, type(made), ", ".join(given.arguments))
        if not found.doubtful:
            self._show(name, found.expression)
        elif not trials.is_over:
            certain = finder.mistakes(found)
            if certain:
                tell_certain(runner, ExampleRun(name, found.expression, evidence="factory", where="%s()" % name), certain)

    def is_whole(self, name: str, node: Definition, shown: Set[str]) -> bool:
        """True if the trace already has all that it needs of a function."""
        failed = [line for line, _ in self._program.failures]
        has_failed = any(node.lineno < line <= (node.end_lineno or 0) for line in failed)
        is_known = name in self._ran and not self._has_unknown(name)
        if name in shown and not has_failed and (is_known or not self._shows_little(node)):
            return True
        return name in self._ran and not self._may_hold_tensors(name, node)

    def _show_branches_of_shown(self, callee: Callee) -> None:
        """Call a function that something else has shown with the settings that lead into branches of which nothing was seen."""
        arguments = FunctionArguments(callee.function, self._examples, {}, {})
        branches = branches_of_function(callee.node)
        unseen = [branch for branch in branches if not branch.lines & self._runner.lines_shown()]
        if not any(values_of(branch, branches, arguments.parameter(branch.name), callee.node, "", {}) for branch in unseen):
            return
        with contextlib.suppress(TooLong, MemoryError), gradients_assumed():
            expression: Optional[str] = None
            with contextlib.suppress(TooLong), within(min(self.left, self._most_seconds)):
                expression, _ = self._found(callee, min(self.left, self._most_seconds))
            if expression is not None:
                self._show_other_settings(callee, expression)

    def _show_other_settings(self, callee: Callee, expression: str) -> None:
        """Call a function with the settings that lead into branches of which nothing was seen."""
        arguments = FunctionArguments(callee.function, self._examples, {}, {})
        branches = branches_of_function(callee.node)
        tried: Set[str] = set()
        seen = self._tensors_seen(callee.name)
        for branch in branches:
            for value in values_of(branch, branches, arguments.parameter(branch.name), callee.node, expression, seen):
                other = with_setting(expression, callee.node, branch.name, value)
                if len(tried) >= MOST_SETTINGS or self._seconds <= self._clock():
                    return
                if other is None or other in tried or branch.lines & self._runner.lines_shown():
                    continue
                tried.add(other)
                trials = TrialRunner(self._runner, self._runner.names, self._most_seconds)
                with contextlib.suppress(TooLong, MemoryError), within(self._most_seconds):
                    if value == UNKNOWN_TEXT or (trials.whole(other).error is None and not self._runner.evaluation.remarks.found):
                        self._show(callee.name, other)

    def _tensors_seen(self, function: str) -> Dict[str, str]:
        """The tensors that the names of a function have held, as text, by these names."""
        found: Dict[str, str] = {}
        for seen in self._runner.trace.observations:
            is_own = seen.function == function and seen.span.file == self._runner.run.file and seen.kind in ("parameter", "assign")
            form = form_of(seen.values[0]) if is_own and seen.values else None
            if form is not None:
                found.setdefault(seen.name, form.template)
        return found

    def _show_other_branches(self, callee: Callee, expression: str) -> None:
        """Call it again with the conditions on settings, counts and chance that went one way going the other; last those that leave."""
        node, flow = callee.node, self._program.flow
        for leaves in (False, True):
            ways = flow.turned(node.lineno, node.end_lineno or 0, leaves)
            if ways and self.left > 0:
                with flow.going(ways):
                    self._show(callee.name, expression)

    def _may_hold_tensors(self, name: str, node: Definition) -> bool:
        """True if a function that the program called, without anything shown, may have tensors: it computes some, or was given an
        unknown."""
        return self._has_unknown(name) or any(isinstance(each, ast.expr) and is_of_tensors(each) for each in ast.walk(node))

    def _has_unknown(self, name: str) -> bool:
        """True if a function, or one within, met an unknown value."""
        recorder = self._runner.recorder
        return any((recorder.sites[number].function + ".").startswith(name + ".") for number in recorder.unknown)

    def _shows_little(self, node: Definition) -> bool:
        """True if most of the values that a function computes are unknown: the program gave it unknown arguments."""
        lines = self._runner.lines_shown()
        computed = [
            each.lineno
            for each in ast.walk(node)
            if isinstance(each, ast.Assign) and isinstance(each.value, (ast.Call, ast.BinOp, ast.Subscript)) and is_of_tensors(each.value)
        ]
        return 2 * sum(line in lines for line in computed) < len(computed)

    def _function(self, name: str) -> Any:
        try:
            function = self._runner.names[name]
        except KeyError:
            return None
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) and not isinstance(function, type) else None
        return function if code is not None and code.co_filename == self._runner.run.file else None

    def _found(self, callee: Callee, seconds: float) -> Tuple[Optional[str], Optional[float]]:
        """The expression that calls a function, None where nothing fits; and the number drawn by chance with which most of it runs, None
        where it draws none.
        """
        names = self._runner.names if callee.made is None else NamesAndMore(self._runner.names, {_OBJECT: callee.made})
        text = callee.text if callee.made is None else "%s.%s" % (_OBJECT, callee.node.name)
        trials = TrialRunner(self._runner, names, seconds)
        calls = [ast.unparse(each.func) for each in ast.walk(callee.node) if isinstance(each, ast.Call)]
        found, best, furthest = None, None, -1
        for drawn in (HIGH, LOW) if any(map(CHANCE.fullmatch, calls)) else (None,):
            with chance.decided(drawn):
                other = self._fitting(callee._replace(text=text), trials)
                reached = trials.whole(other).reached if other is not None and drawn is not None else 0
            if other is not None and reached > furthest:
                found, best, furthest = other, drawn, reached
        return with_names_once(found.replace(text, callee.text, 1)) if found is not None else None, best

    def _fitting(self, callee: Callee, trials: TrialRunner) -> Optional[str]:
        """The same, with the text that trials know it by."""
        text, node, function = callee.text, callee.node, callee.function
        known = self._known.get(callee.name)
        if known is not None and trials.whole(known).error is None:
            return known
        for documented in documented_calls(self._tree, node, [example.target for example in self._examples])[:MOST_CALLS]:
            if trials.whole(documented).error is None:
                return with_names_once(documented)
        if callee.cls is not None and callee.given is not None:
            made, _, method = text.rpartition(".")
            for expression in StepSearch(trials, callee.cls, method, made, callee.given).as_given():
                return with_names_once(expression)
        shapes = self._input_shapes(node)
        said = [name for name, shape in shapes.items() if shape.dims is not None or shape.pattern or shape.alternatives or shape.container]
        arguments = FunctionArguments(function, self._examples, self._given.get(callee.name, {}), said, callee.cls)
        is_said = any(shape.source != "body" for shape in shapes.values())
        for given in itertools.islice(() if is_said or arguments.is_known else arguments.calls(), MOST_CALLS):
            usual = "%s(%s)" % (text, given)
            if trials.whole(usual).error is None and not self._runner.evaluation.remarks.found:
                return with_names_once(usual)
        return self._searched(callee, trials, shapes, said, arguments)

    def _searched(
        self, callee: Callee, trials: TrialRunner, shapes: Mapping[str, InputShape], said: Sequence[str], arguments: FunctionArguments
    ) -> Optional[str]:
        """The call that a search of its inputs finds. said: the parameters of which the text says a shape."""
        parts = {each.name: arguments.parts(each) for each in arguments.parameters()}
        known_parts = {name: given for name, given in parts.items() if given is not None}
        shapes = {name: shape for name, shape in shapes.items() if name in said or name not in known_parts}
        inputs = InputSearch(trials, shapes, MOST_TRIES, lambda made, error: [], arguments.forms, known_parts)
        best = last_of(inputs.search(BuildPlan(callee.text), callee.function))
        if best is None or best.trial is None:
            return None
        if (best.trial.error is not None and is_mismatch(best.trial)) or self._is_strange(best.expression):
            return None
        return with_names_once(best.expression)

    def _is_strange(self, expression: str) -> bool:
        """True if an example has large sizes that no text names: they fit by chance."""
        return any(number not in self._runner.run.text for number in _LARGE.findall(expression))

    def _input_shapes(self, node: Definition) -> Dict[str, InputShape]:
        """Returns the shapes of the parameters as the text states them; `n = x.size(0)` is a batch in a function of several tensors."""
        shapes = input_shapes(node, self._lines, None, self._tree)
        return {name: _with_batch(shape) for name, shape in shapes.items()} if len(shapes) > 1 else shapes

    def _show(self, name: str, expression: str) -> Optional[Set[str]]:
        """Evaluate the example of a function, with names for its dims, and add it to the trace; the functions that showed a tensor.

        None where it leads to empty tensors: what it is given is of no use to the function.
        """
        runner = self._runner
        example = ExampleRun(name, expression, evidence="inferred")
        names, runner.names = runner.names, self._program.names
        try:
            # Past what its made-up arguments do not fit, where nothing is said, it would show what nobody computes.
            calls = runner.evaluation.watch_anew()
            with within(LONGEST_RUN * runner.run.patience), runner.evaluation.ending_at_first_mismatch(RefusedInput):
                found = runner.evaluate(example)
                runner.evaluation.watch_anew()
                self._is_sure_to_fail |= calls.met_sure
                example.doubtful = True  # What it shows is no ground for an error.
                example.error = None
                if found is None:
                    return set()
                if _has_empty_tensors(found.sites.values()):
                    runner.take_back()
                    return None
                before = {seen.span for seen in runner.trace.observations}
                runner.record(found)
                runner.name_dims([found])
                number = found.example
                runner.trace.observations = [
                    seen for seen in runner.trace.observations if seen.example != number or seen.span not in before
                ]
                self._forget_made(found.first_layer)
                return functions_shown(runner, set(found.sites))
        finally:
            runner.names = names

    def _forget_made(self, first: int) -> None:
        """The models that the example built were made by no statement: `model.train()` only hands one back."""
        layers = self._runner.trace.layers
        for number, layer in enumerate(layers[first:], start=first):
            line = self._lines[layer.span.line - 1] if layer.span is not None and layer.span.line <= len(self._lines) else ""
            if layer.path == "" and layer.class_name + "(" not in line:
                layers[number] = replace(layer, span=None)


def of_unknown(text: str, node: Definition) -> str:
    """The call of a function with arguments of which nothing is known. node: without `self`."""
    required = len(node.args.posonlyargs + node.args.args) - len(node.args.defaults)
    named = [part.arg for part, default in zip(node.args.kwonlyargs, node.args.kw_defaults) if default is None]
    return "%s(%s)" % (text, ", ".join(["unknown"] * required + [name + "=unknown" for name in named]))


def _has_empty_tensors(seen: Iterable[SeenValues]) -> bool:
    """True if one of the recorded tensors has no element."""
    return any(key[0] == "tensor" and 0 in key[1] for values in seen for key in values.counts)


def _given(trace: Trace, file: str) -> Dict[str, Dict[str, Optional[Form]]]:
    """The tensors that functions of a file were given until now: by their names, and those of their parameters; None for several in one."""
    found: Dict[str, Dict[str, Optional[Form]]] = {}
    for seen in trace.observations:
        if seen.kind == "parameter" and seen.span.file == file and seen.values:
            forms = found.setdefault(seen.function, {})
            form = form_of(seen.values[0])
            if forms.get(seen.name) is None or (form is not None and _is_batch(form) and not _is_batch(forms[seen.name])):
                forms[seen.name] = form
    return found


def _is_batch(form: Optional[Form]) -> bool:
    """True if a form names the dim of a batch."""
    return form is not None and "B:" in form.template


def functions_shown(runner: ExampleRunner, sites: Set[int]) -> Set[str]:
    """The functions of the document in which one of these sites has held a tensor."""
    recorder = runner.recorder
    own = [recorder.sites[number] for number in sites if recorder.file_of(number) == runner.run.file]
    return {site.function for site in own if site.function}


def _definitions(body: List[ast.stmt]) -> List[Definition]:
    """The functions at module level, in their order."""
    found: List[Definition] = []
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.append(node)
        elif isinstance(node, (ast.If, ast.Try)):
            found += _definitions(node.body + node.orelse)
    return found


def _with_batch(shape: InputShape) -> InputShape:
    dims, pattern = shape.dims, shape.pattern
    if dims and len(dims) > 1 and dims[0] in _COUNTS:
        return replace(shape, dims=("B", *dims[1:]))
    return replace(shape, pattern=("B", *pattern[1:])) if pattern and pattern[0] in _COUNTS else shape
