"""Steps of module classes that no program comes to: `training_step`, `loss_function`, `sample`. Each is called as `forward` was.

A step is given what the example of its class gives to `forward`, in the forms that steps take it: as a batch with targets, by name. Of the
ways to call it the first counts in which nothing is wrong; where there is none, nothing is shown and nothing is said.
"""

from __future__ import annotations

import inspect
import time
from functools import partial
from typing import Any, Iterator, Optional, Set

from ...protocol import ExampleRun
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.expression import compile_expression, evaluate
from ..sandbox.limits import TooLong, within
from .class_examples import ClassExample, class_of, taken_apart, targets_of, with_names_once

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


def call_steps(runner: ExampleRunner, reached: Set[str], seconds: float) -> None:
    """Call the steps that are not among the functions which were `reached`, for so many seconds, and add what they saw to the trace."""
    end = time.perf_counter() + seconds
    for request in runner.run.known:
        cls = class_of(runner, request.target)
        for name in STEPS:
            function = getattr(cls, name, None)
            if function is None or not _is_own(function, runner.run.file) or "%s.%s" % (request.target, name) in reached:
                continue
            left = end - time.perf_counter()
            if left <= 0:
                return
            given = taken_apart(runner, request)
            if given is None:
                break
            try:
                with within(left):
                    expression = _one_that_fits(runner, function, name, given)
                    if expression is not None:
                        _show(runner, "%s.%s" % (request.target, name), expression)
            except TooLong:
                return


def _is_own(function: Any, file: str) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code.co_filename == file


def _one_that_fits(runner: ExampleRunner, function: Any, name: str, given: ClassExample) -> Optional[str]:
    """The expression of the first call in which nothing is wrong."""
    for number, arguments in enumerate(_ways(function, given)):
        if number >= MOST_TRIALS:
            return None
        expression = with_names_once("%s.%s(%s)" % (given.model, name, arguments))
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


def _ways(function: Any, given: ClassExample) -> Iterator[str]:
    """The arguments to try: where a step takes a batch, `forward`'s own with each form of targets; else `forward`'s own as they stand."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return
    wanted = [each for each in parameters if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    numbers = [str(NUMBERS[each.name]) for each in wanted if each.name in NUMBERS]
    others = [each.name for each in wanted if each.name not in NUMBERS]
    own = ", ".join(given.arguments)
    targets = list(targets_of(given))
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


def _show(runner: ExampleRunner, target: str, expression: str) -> None:
    """Evaluate the example of a step, with names for its dims, and add it to the trace."""
    example = ExampleRun(target, expression, evidence="inferred")
    found = runner.evaluate(example)
    runner.evaluation.watch_anew()
    if found is not None:
        example.doubtful = True  # What it shows is no ground for an error.
        runner.record(found)
        runner.name_dims([found])
