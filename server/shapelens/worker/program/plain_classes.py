"""Methods of classes that are no modules: of agents and trainers that hold networks, of losses and transforms, of data sets.

An object is built as the project does, or as a module would be, with the document's models for parameters that are models; else with
arguments that nobody knows. Its methods that compute tensors, and that nothing has shown, are called as functions are (functions.py).
"""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import re
import types
from enum import Enum
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ...protocol import Search
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.limits import TooLong, within
from ..search.code.sources import function_node, initialiser
from ..search.code.tensor_code import is_of_tensors
from ..search.evidence import with_sizes
from ..search.finder import Finder
from ..search.trials.trial import TrialRunner
from ..unknown.stand_ins import is_absent
from .class_examples import ClassExample, class_of, with_names_once
from .function_arguments import UNKNOWN, FunctionArguments
from .functions import Callee, FunctionCalls, of_unknown
from .program import Program

MOST_SECONDS = 0.8  # to build an object of one class
# Methods that trainers of libraries call, and those that make, read or write what the others use.
_NO_STEP = re.compile(
    r"on_|configure_|setup|teardown|prepare_|_?load|_?save|from_|_?init|_?reset|_?build|make_|add_|set_|\w*dataloader$|test_"
)
_SPECIAL = ("__call__", "__getitem__")


def call_methods(runner: ExampleRunner, program: Program, functions: FunctionCalls, examples: Sequence[ClassExample]) -> None:
    """Call the methods of the document's classes that are no modules; what each saw is added to the trace. Raises what ends a run."""
    shown = {seen.function for seen in runner.trace.observations if seen.span.file == runner.run.file and seen.function}
    for name, cls in plain_classes(runner):
        left = [each for each in methods_of_tensors(name, cls, runner.run.file) if not functions.is_whole(each[0], each[2], shown)]
        if not left or functions.left <= 0:
            continue
        text = _Constructors(runner, examples).text(name, cls, functions.left)
        made = _made(runner, program, text, cls)
        for qualified, method, node in left:
            function = getattr(made, method, None)
            callee = Callee(qualified, "%s.%s" % (text, method), node, function, cls, made, _model_in(made, examples))
            if functions.left > 0:
                functions.call_one(callee, shown)


def plain_classes(runner: ExampleRunner) -> Iterator[Tuple[str, type]]:
    """The classes at the document's top level that are no modules, by their names."""
    for node in ast.parse(runner.run.text.lstrip("\ufeff")).body:
        cls = class_of(runner, node.name) if isinstance(node, ast.ClassDef) else None
        if isinstance(cls, type) and not is_absent(cls) and not issubclass(cls, (torch.nn.Module, BaseException, Enum, type)):
            yield cls.__name__, cls


def methods_of_tensors(name: str, cls: type, file: str) -> List[Tuple[str, str, ast.FunctionDef]]:
    """The methods of a class that compute tensors by their text, or call what may: as sites call them, by their names, with their text
    without `self`.
    """
    found: List[Tuple[str, str, ast.FunctionDef]] = []
    for method, value in vars(cls).items():
        function = inspect.unwrap(value.__func__ if isinstance(value, (staticmethod, classmethod)) else value)
        is_own = inspect.isfunction(function) and function.__code__.co_filename == file
        if not is_own or _NO_STEP.match(method) or (method.startswith("__") and method not in _SPECIAL):
            continue
        node = function_node(function)
        if not isinstance(node, ast.FunctionDef) or inspect.isgeneratorfunction(function):
            continue
        if not any(is_of_tensors(each) or _calls_what_is_held(each, cls) for each in node.body):
            continue
        found.append(("%s.%s" % (name, method), method, node if isinstance(value, staticmethod) else _without_first(node)))
    return found


def _calls_what_is_held(node: ast.AST, cls: type) -> bool:
    """True if code calls an attribute of `self` that is no method: a network, a loss."""
    called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
    return any(isinstance(each.value, ast.Name) and each.value.id == "self" and not hasattr(cls, each.attr) for each in called)


class _Constructors:
    """Finds out how an object of a class is built."""

    def __init__(self, runner: ExampleRunner, examples: Sequence[ClassExample]) -> None:
        self._runner = runner
        self._examples = examples

    def text(self, name: str, cls: type, left: float) -> str:
        """The expression that builds an object, with arguments that nobody knows where none are found."""
        run = self._runner.run
        seconds = min(MOST_SECONDS * run.patience, left)
        trials = TrialRunner(self._runner, self._runner.names, seconds)
        finder = Finder(trials, self._runner.names, run.file, run.text, Search(), lambda path: "", kind=object)
        given = self._given(cls)
        unknown = _of_unknown(name, cls, given)
        with contextlib.suppress(TooLong, MemoryError), within(seconds):
            plan = next((plan for plan, _ in finder.models(name, cls)), None)
            if plan is not None and (plan.evidence != "inferred" or not given):
                return plan.text()
            for text in [*([_with(plan.text(), given)] if plan is not None else []), unknown]:
                if trials.build(text)[1].error is None:
                    return text
            return _with(finder.first_way(name, cls).text(), given)
        return unknown

    def _given(self, cls: type) -> Dict[str, str]:
        """Returns the arguments of a constructor that are neither numbers nor texts: models, loaders, optimizers."""
        position = initialiser(cls)
        init = position[1] if position is not None else None
        if not inspect.isfunction(init):
            return {}
        arguments = FunctionArguments(types.MethodType(init, object()), self._examples, {}, {}, cls)
        required = [each for each in inspect.signature(init).parameters.values() if each.default is each.empty][1:]
        forms = {each.name: arguments.forms(each) for each in required if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
        is_loader = {name for name, found in forms.items() if found and found[0].template.startswith("batches(")}
        first = {name: found[0] for name, found in forms.items() if UNKNOWN in found or name in is_loader}
        return {name: with_names_once(with_sizes(form.template, form.sizes)) for name, form in first.items()}


def _made(runner: ExampleRunner, program: Program, text: str, cls: type) -> Any:
    """The object that an expression builds, as a program does: of its constructor the statements that fail end alone; None where all does.

    Its methods are those of the class as it was loaded: what fails in them tells what does not fit.
    """
    seconds = MOST_SECONDS * runner.run.patience
    with contextlib.suppress(TooLong, MemoryError), within(seconds):
        made, trial = TrialRunner(runner, program.names, seconds).build(text)
        if trial.error is None and type(made).__name__ == cls.__name__:
            with contextlib.suppress(TypeError):  # Of classes that have another layout.
                object.__setattr__(made, "__class__", cls)
                return made
    return None


def _model_in(made: Any, examples: Sequence[ClassExample]) -> Optional[ClassExample]:
    """The example of the first model of the document's that an object holds."""
    held = [type(value).__qualname__ for value in vars(made).values()] if hasattr(made, "__dict__") else []
    by_class = {example.target: example for example in examples}
    return next((by_class[name] for name in held if name in by_class), None)


def _of_unknown(name: str, cls: type, given: Dict[str, str]) -> str:
    """The call of a class with arguments of which nothing is known but those that are given."""
    position = initialiser(cls)
    node = function_node(position[1]) if position is not None and inspect.isfunction(position[1]) else None
    return name + "()" if not isinstance(node, ast.FunctionDef) else _with(of_unknown(name, _without_first(node)), given, node)


def _with(text: str, given: Dict[str, str], init: Optional[ast.FunctionDef] = None) -> str:
    """The call of a class with these arguments in the places of those that it has. init: says what arguments by position are."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        return text
    names = [each.arg for each in init.args.posonlyargs + init.args.args][1:] if init is not None else []
    for place, name in enumerate(names[: len(call.args)]):
        call.args[place] = ast.parse(given[name], mode="eval").body if name in given else call.args[place]
    for keyword in call.keywords:
        keyword.value = ast.parse(given[keyword.arg], mode="eval").body if keyword.arg in given else keyword.value
    return ast.unparse(call)


def _without_first(node: ast.FunctionDef) -> ast.FunctionDef:
    """A method without its `self`."""
    other = copy.copy(node)
    other.args = copy.copy(node.args)
    if node.args.posonlyargs:
        other.args.posonlyargs = node.args.posonlyargs[1:]
    else:
        other.args.args = node.args.args[1:]
    return other
