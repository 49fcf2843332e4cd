"""The stage of a run in which the document is followed as a program: what it saw becomes one more example of the trace.

Steps of its classes that the program does not come to are called after that (steps.py), each as an example of its own, and classes are
built with other settings (settings/other_settings.py).
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Callable, Iterator

from ...protocol import ExampleRun, FileSpan, Mismatch
from ...traces import PROGRAM
from ..calls import device_mismatches, state_dicts
from ..calls.mismatches import one_line
from ..calls.optimizers import Optimizers, remarks_of_tape
from ..evaluation.evaluated import Evaluated
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.run_context import refused_at
from ..meta.gradients import training
from ..sandbox.clocks import WorkClock
from ..sandbox.limits import DeadlineReached, Limit
from ..shims import checkpoints, file_access
from ..trace.devices import devices
from ..trace.recorder import SeenValues
from ..trace.tape import tape
from ..unknown import unknown_sizes
from .built_classes import BuiltClasses
from .class_examples import class_examples
from .earlier_classes import call_earlier_classes
from .functions import FunctionCalls, functions_shown
from .plain_classes import call_methods
from .program import Program
from .settings.other_settings import show_other_settings
from .steps import StepCalls, call_steps
from .sure_failures import sure_failures
from .unknown_inputs import UnknownInputs

MOST_SECONDS_TO_LOOK_AGAIN = 0.3  # that the program has taken
MOST_SECONDS_FOR_SETTINGS = 4.0  # for classes with other settings
LEAST_SECONDS = 1.0  # for steps, and for functions, however long the program has taken


def follow_program(runner: ExampleRunner, tell: Callable[[], None]) -> bool:
    """Follow the document for `run.program` seconds, and add what it saw to the trace; `tell` is called when the trace has more to show.

    Returns whether there was time for all of it. Raises what ends a run.
    """
    clock, built = WorkClock(), BuiltClasses(runner)
    in_time = _follow(runner, tell, built)
    with contextlib.suppress(DeadlineReached):
        if built.call(max(runner.run.program - clock(), LEAST_SECONDS)):
            tell()
    return in_time


def _follow(runner: ExampleRunner, tell: Callable[[], None], built: BuiltClasses) -> bool:
    run, trace, evaluation = runner.run, runner.trace, runner.evaluation
    start, clock, ended = time.perf_counter(), WorkClock(), Limit.ended
    program = Program(run.file, run.text, sys.modules[runner.names["__name__"]], runner.context.finder.unobserved)
    example = ExampleRun("", "", evidence=PROGRAM)
    trace.examples.append(example)
    examples = class_examples(runner)
    unknown_inputs = UnknownInputs(runner, {each.target: each for each in examples}, run.program / 3)
    evaluation.watch_anew().of_unknown = unknown_inputs.call
    runner.recorder.reached = set()
    runner.recorder.unknown.clear()
    evaluation.start(len(trace.examples) - 1)
    optimizers = Optimizers(evaluation.frames)
    with contextlib.ExitStack() as watched:
        watched.enter_context(built.watching())
        watched.enter_context(optimizers.watched())
        watched.enter_context(tape.watching(evaluation.frames, runner.recorder))
        watched.enter_context(checkpoints.files_of_its_own())
        watched.enter_context(state_dicts.watching(evaluation))
        if device_mismatches.may_be_told(run.text):
            watched.enter_context(device_mismatches.watching(evaluation))
        finished = program.follow(run.program, lambda: _turn_aside(runner), lambda said: _last_turn(runner, said))
        of_tape = remarks_of_tape(len(trace.examples) - 1)
        failed_lines = [line for line, _ in program.failures]
        device_mismatches.without_unsure(evaluation, failed_lines)
        state_dicts.without_unsure(evaluation, run.file, run.text, failed_lines)
        number = trace.examples.index(example)
        failures = sure_failures(program, evaluation, number)
    evaluation.calls.ended = True
    example.seconds, example.reached = time.perf_counter() - start, runner.recorder.functions(run.file)
    example.doubtful = bool(file_access.made_up)
    if not finished:
        example.error, example.error_kind = "followed for %g s" % run.program, "deadline"
    trace.held = [FileSpan(run.file, *place) for place in program.held()]
    trace.mismatches += [*evaluation.calls.mismatches, *failures]
    said = {found.span for found in trace.mismatches}
    for refusal in program.refused:
        at = refused_at(refusal, run.file)
        if at is not None and at not in said:
            trace.mismatches.append(Mismatch("syntax", refusal.msg, "SyntaxError", at, [at], number))
    for line, error in program.gone.items():  # Else the shapes there would say that nothing is wrong.
        span = evaluation.frames.line(run.file, line)
        trace.mismatches.append(Mismatch("exception", one_line(error), "AttributeError", span, [span], number))
    found = runner.seen_so_far()
    found.remarks = evaluation.remarks.found
    found.remarks += of_tape
    # Nothing failed, and nothing was missing, that could have left an optimizer without its parameters.
    if finished and optimizers.all_else_ran(program.failures) and not trace.notes:
        trace.mismatches += optimizers.mismatches(number)
        if training.steps:
            found.remarks += optimizers.remarks(evaluation.calls, number) + optimizers.unregistered(evaluation.calls, number)
    if finished and clock() < MOST_SECONDS_TO_LOOK_AGAIN:
        _add_other_branches(runner, program, found)
    runner.record(found)
    trace.remarks += found.remarks
    tell()
    in_time = False
    with contextlib.suppress(DeadlineReached):  # What was seen until then counts: nobody has asked for what follows.
        call_earlier_classes(runner, program, LEAST_SECONDS)
        shown = functions_shown(runner, set(found.sites))
        steps = StepCalls(runner, program, unknown_inputs, max(run.program - clock(), LEAST_SECONDS))
        call_steps(steps, runner, set(example.reached or ()))
        seconds = min(max(run.program - clock(), LEAST_SECONDS), MOST_SECONDS_FOR_SETTINGS * run.patience)
        show_other_settings(runner, StepCalls(runner, program, unknown_inputs, seconds), seconds)
        left = max(run.program - clock(), LEAST_SECONDS)
        known = {request.target: request.expression for request in run.known}
        functions = FunctionCalls(runner, program, examples, known, left)
        functions.call(shown)
        call_methods(runner, program, functions, examples)
        in_time = finished and not steps.is_over and clock() < run.program and Limit.ended == ended
    shown_at = {seen.span for seen in trace.observations if seen.kind in ("assign", "return")}
    trace.observations += runner.recorder.unknown_observations(runner.recorder.unknown, trace.examples.index(example), shown_at)
    tell()
    return in_time


@contextlib.contextmanager
def _turn_aside(runner: ExampleRunner) -> Iterator[None]:
    """Adds the values of the meantime where no others are known, and drops the mistakes: the real program may never run that way."""
    evaluation, recorder = runner.evaluation, runner.recorder
    seen, recorder.seen = recorder.seen, {}
    mismatches, remarks, state = evaluation.calls.mismatches, evaluation.remarks.found, dict(vars(unknown_sizes.state))
    before = len(mismatches), len(remarks)
    try:
        with tape.aside(), devices.aside(), checkpoints.aside():
            yield
    finally:
        others, recorder.seen = recorder.seen, seen
        del mismatches[before[0] :], remarks[before[1] :]
        vars(unknown_sizes.state).update(state)
        for number, other in others.items():
            seen.setdefault(number, other)


@contextlib.contextmanager
def _last_turn(runner: ExampleRunner, said: str) -> Iterator[None]:
    """A turn with the last, smaller batch of a loader goes on meanwhile: nothing of it is shown, but what fails there alone is said."""
    evaluation, recorder = runner.evaluation, runner.recorder
    calls, seen, recorder.seen = evaluation.calls, recorder.seen, {}
    of_layers, calls.seen = calls.seen, {}
    remarks, state, before = evaluation.remarks.found, dict(vars(unknown_sizes.state)), len(calls.mismatches)
    odd = len(remarks)
    try:
        with tape.aside():
            yield
    finally:
        recorder.seen, calls.seen = seen, of_layers
        del remarks[odd:]
        vars(unknown_sizes.state).update(state)
        found, calls.mismatches[before:] = calls.mismatches[before:], []
        places = {(each.code, each.span) for each in calls.mismatches}
        for each in found:
            if (each.code, each.span) not in places:
                each.remainder = said
                calls.mismatches.append(each)


def _add_other_branches(runner: ExampleRunner, program: Program, found: Evaluated) -> None:
    """Add what the branches show that no turn has taken, `if step % 100 == 0:` say: first those that go on, then those that leave a block.

    What is wrong in them is not said, as nobody may ever take them so.
    """
    evaluation, recorder = runner.evaluation, runner.recorder
    for leaves in (False, True):
        turned = {branches: branch for branches, branch in program.not_taken.items() if branch[2] is leaves}
        if not turned:
            continue
        of_unknown = found.calls.of_unknown
        with evaluation.aside():
            evaluation.watch_anew().of_unknown = of_unknown
            evaluation.start(found.example)
            program.look_again(MOST_SECONDS_TO_LOOK_AGAIN, turned)
            seen = recorder.seen
        for number, other in seen.items():
            line = recorder.sites[number].place[0]
            is_there = any(first <= line <= last for first, last, _ in turned.values())
            if is_there and number not in found.sites and recorder.file_of(number) == runner.run.file and not _holds_layer(other):
                found.sites[number] = other


def _holds_layer(seen: SeenValues) -> bool:
    """True if a value is a layer: the evaluation that made a layer numbers it."""
    return any(key is not None and key[0] == "layer" for key in seen.counts)
