"""Steps of module classes that no program comes to: `training_step`, `loss_function`, `sample`. Each is called as `forward` was.

A step is given what the example of its class gives to `forward`, in the forms that steps take it: as a batch with targets, by name. Of the
ways to call it the first counts in which nothing is wrong; where there is none, nothing is shown and nothing is said.
"""

from __future__ import annotations

import ast
import inspect
import re
import time
from functools import partial
from typing import Any, Iterator, List, NamedTuple, Optional, Set

from ...protocol import ExampleRequest, ExampleRun
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.expression import compile_expression, evaluate
from ..sandbox.limits import TooLong, within

STEPS = (
    *("training_step", "validation_step", "test_step", "predict_step", "shared_step", "compute_loss", "loss_function", "loss"),
    *("sample", "generate", "reconstruct", "inference", "encode", "decode", "predict"),
)
# Parameters of steps that are numbers, with a value for each.
NUMBERS = {
    "batch_idx": 0, "dataloader_idx": 0, "optimizer_idx": 0, "batch_index": 0, "batch_nb": 0, "epoch": 0,
    "n": 2, "num_samples": 2, "n_samples": 2, "batch_size": 2, "num_steps": 2, "max_length": 8, "max_new_tokens": 2,
}  # fmt: skip
BATCHES = ("batch", "train_batch", "val_batch", "test_batch", "data")
LONGEST_TRIAL = 0.5  # seconds
MOST_TRIALS = 12  # of one step


class _Given(NamedTuple):
    """An example of a class, taken apart: the text that builds the model, and those of the arguments of `forward`."""

    model: str
    arguments: List[str]
    output: Optional[str]  # a shorthand for a tensor like what `forward` gives


def call_steps(runner: ExampleRunner, reached: Set[str], seconds: float) -> None:
    """Call the steps that are not among the functions which were `reached`, for so many seconds, and add what they saw to the trace."""
    end = time.perf_counter() + seconds
    for request in runner.run.known:
        cls = _class_of(runner, request.target)
        for name in STEPS:
            function = getattr(cls, name, None)
            if function is None or not _is_own(function, runner.run.file) or "%s.%s" % (request.target, name) in reached:
                continue
            left = end - time.perf_counter()
            if left <= 0:
                return
            given = _taken_apart(runner, request)
            if given is None:
                break
            try:
                with within(left):
                    expression = _one_that_fits(runner, function, name, given)
                    if expression is not None:
                        _show(runner, "%s.%s" % (request.target, name), expression)
            except TooLong:
                return


def _class_of(runner: ExampleRunner, target: str) -> Any:
    """The class of the document that an example belongs to; None where it is not there."""
    outer, *inner = target.split(".")
    try:
        found = runner.names[outer]
    except KeyError:
        return None
    for name in inner:
        found = getattr(found, name, None)
    return found


def _is_own(function: Any, file: str) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code.co_filename == file


def _taken_apart(runner: ExampleRunner, request: ExampleRequest) -> Optional[_Given]:
    try:
        tree = ast.parse(request.expression.strip(), mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Call) or tree.keywords or not isinstance(tree.func, (ast.Call, ast.Name)):
        return None
    output: List[Any] = []
    with_output = compile_expression("__shapelens_output__(%s)" % request.expression)
    names = _NamesAndMore(runner.names, {"__shapelens_output__": output.append})
    runner.evaluation.run(runner.evaluation.start, partial(evaluate, with_output, names, {}, {}), tried=True)
    first = output[0][0] if output and isinstance(output[0], (tuple, list)) and output[0] else output[0] if output else None
    shape = None if first is None or not hasattr(first, "shape") else _shorthand(first, ast.unparse(tree))
    return _Given(ast.unparse(tree.func), [ast.unparse(argument) for argument in tree.args], shape)


class _NamesAndMore(dict):  # type: ignore[type-arg]
    """The names of a document, and some more."""

    def __init__(self, names: Any, more: Any) -> None:
        super().__init__(more)
        self._names = names

    def __missing__(self, name: str) -> Any:
        return self._names[name]


def _shorthand(tensor: Any, expression: str) -> str:
    """`f32[B, 10]`: a tensor like this one, of the same batch as the example's."""
    dtype = {"torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16", "torch.int64": "i64"}.get(str(tensor.dtype), "f32")
    sizes = [str(int(size)) for size in tensor.shape]
    if sizes and "B:%s" % sizes[0] in expression:
        sizes[0] = "B:%s" % sizes[0]
    return "%s[%s]" % (dtype, ", ".join(sizes) or "()")


def _one_that_fits(runner: ExampleRunner, function: Any, name: str, given: _Given) -> Optional[str]:
    """The expression of the first call in which nothing is wrong."""
    for number, arguments in enumerate(_ways(function, given)):
        if number >= MOST_TRIALS:
            return None
        expression = _with_names_once("%s.%s(%s)" % (given.model, name, arguments))
        try:
            code = compile_expression(expression)
            with within(LONGEST_TRIAL):
                run_it = partial(evaluate, code, runner.names, {}, {})
                error = runner.evaluation.run(runner.evaluation.start, run_it, tried=True)
        except (SyntaxError, ValueError, TooLong):
            continue
        if error is None and not runner.evaluation.calls.mismatches and not runner.evaluation.remarks.found:
            return expression
    return None


def _ways(function: Any, given: _Given) -> Iterator[str]:
    """The arguments to try: where a step takes a batch, `forward`'s own with each form of targets; else `forward`'s own as they stand."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return
    wanted = [each for each in parameters if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    numbers = [str(NUMBERS[each.name]) for each in wanted if each.name in NUMBERS]
    others = [each.name for each in wanted if each.name not in NUMBERS]
    own = ", ".join(given.arguments)
    targets = list(_targets(given))
    if others and (others[0] in BATCHES or (len(others) == 1 and numbers)):
        for target in targets:
            yield ", ".join(["(%s, %s)" % (own, target), *numbers])
        yield ", ".join([own if len(given.arguments) == 1 else "(%s,)" % own, *numbers])
        yield ", ".join(["(%s,)" % own, *numbers])
    elif "loss" in getattr(function, "__name__", "") and len(others) == 2 and given.output is not None:
        yield from (", ".join([given.output, target, *numbers]) for target in targets)
    elif len(others) == len(given.arguments):
        yield ", ".join([*given.arguments, *numbers])
        yield from (", ".join([each, *numbers]) for each in ([given.output] if given.output and len(others) == 1 else []))
    elif len(others) == len(given.arguments) + 1:
        yield from (", ".join([*given.arguments, target, *numbers]) for target in targets)
        yield from (", ".join([given.output, target, *numbers]) for target in targets if given.output and len(others) == 2)
    elif not others:
        yield ", ".join(numbers)


def _targets(given: _Given) -> Iterator[str]:
    """The forms that targets have: a class for each example or each place of it, a tensor like the output, a number for each example."""
    named = [found.group() for argument in given.arguments for found in [re.search(r"B:\d+", argument)] if found is not None]
    batch = named[0] if named else "2"
    yield "i64[%s]" % batch
    if given.output is not None:
        sizes = given.output[given.output.index("[") + 1 : -1].split(", ")
        if len(sizes) > 2:
            yield "i64[%s]" % ", ".join([sizes[0], *sizes[2:]])
            yield "i64[%s]" % ", ".join(sizes[:-1])
        yield given.output
    yield "f32[%s]" % batch
    yield "f32[%s, 1]" % batch
    yield from given.arguments[:1]


def _with_names_once(expression: str) -> str:
    """The expression with the size of the batch at the first of its names only: `f(f32[B:2, 8], i64[B])`."""
    first = expression.find("B:") + 2
    return expression[:first] + re.sub(r"\bB:\d+", "B", expression[first:]) if first > 1 else expression


def _show(runner: ExampleRunner, target: str, expression: str) -> None:
    """Evaluate the example of a step, with names for its dims, and add it to the trace."""
    example = ExampleRun(target, expression, evidence="inferred")
    found = runner.evaluate(example)
    runner.evaluation.watch_anew()
    if found is not None:
        example.doubtful = True  # What it shows is no ground for an error.
        runner.record(found)
        runner.name_dims([found])
