"""Says what is wrong after an edit ahead of the run itself: an evaluation that takes over from the rehearsal what the edit has left alone.

The run follows, and takes over nothing: should it find something else, that is said then.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from ...protocol import ExampleRequest, ExampleRun, LayerSeen
from ..calls.module_calls import Calls, shift
from ..evaluation.evaluated import as_seen
from ..evaluation.evaluation import EXITS
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.expression import evaluate
from ..loading.hot_patch import LoadedDocument
from ..meta import op_cache
from ..rewrite.sites import UNWATCHED
from ..sandbox.output import muted
from ..trace.recorder import Recorder
from ..unknown import unknown_sizes
from ..unknown.conditions import branches
from .construction import set_builder
from .memo import Memo
from .recording import Recording
from .replay import Replay

# What has to be saved of the time that the examples took as they were rehearsed: else they are not worth being evaluated twice.
WORTH_SECONDS = 0.002
WORTH_SHARE = 0.25

ExampleKey = Tuple[str, str]


class RehearsedExamples:
    """Holds what the examples of a run that was rehearsed built and computed, for the run that comes next."""

    def __init__(self) -> None:
        self.is_open = True  # examples are still being rehearsed
        self.memos: Dict[ExampleKey, Memo] = {}
        self.went_well = True  # nothing was wrong
        self.seen: Any = None  # what sites held: it takes as long to be given back as a small evaluation
        self._patched: Tuple[Optional[LoadedDocument], Optional[Recorder]] = None, None
        self.is_undisturbed: Callable[[], bool] = lambda: False  # whether what is loaded still is as it was loaded

    def memo_of(self, request: ExampleRequest) -> Optional[Memo]:
        """The memo of an example, if there is one."""
        return self.memos.get((request.target, request.expression))

    def for_patched(self, loaded: LoadedDocument, recorder: Recorder) -> RehearsedExamples:
        """The same, for a document that has been patched since."""
        self.is_open, self._patched = False, (loaded, recorder)
        self.is_undisturbed = partial(loaded.is_as_it_was, at_once=False)  # What is wrong has been said by then.
        return self

    def replaced(self) -> Optional[FrozenSet[int]]:
        """The sites of functions that have other code now; None where it cannot be told what that concerns."""
        loaded, recorder = self._patched
        if loaded is None or recorder is None:
            return None
        replaced = loaded.replaced()
        unwatched = any(recorder.sites[number].kind == "entry" and recorder.sites[number].name == UNWATCHED for number in replaced)
        return None if unwatched else replaced

    def record(self, runner: ExampleRunner, example: ExampleRun, follow: Callable[[], Optional[BaseException]]) -> Optional[BaseException]:
        """Evaluate an example by `follow`, and write down what it builds and computes; the exception that ended it, if one did."""
        calls = runner.evaluation.calls
        recording = calls.recording = Recording(calls)
        set_builder(recording)
        try:
            error = follow()
        finally:
            set_builder(None)
            calls.recording = None
        self.seen = runner.recorder.seen
        self.went_well &= error is None and not calls.mismatches
        if not op_cache.state.off:  # Else it was evaluated twice.
            self.memos[example.target, example.expression] = recording.memo()
        return error


class Abandoned(Exception):
    """An evaluation came to something of which only the run itself can tell."""


def diagnose_early(runner: ExampleRunner, rehearsed: RehearsedExamples) -> bool:
    """Send what is wrong, if that can be told by taking over from what was rehearsed; whether the run may go on with what is loaded."""
    requests, evaluation, context = runner.run.examples, runner.evaluation, runner.context
    found = [rehearsed.memo_of(request) for request in requests]
    memos = [memo for memo in found if memo is not None]
    seconds = sum(memo.seconds for memo in memos)
    if rehearsed.is_open or len(memos) < len(found) or seconds < WORTH_SECONDS:
        return True
    replaced = rehearsed.replaced()
    if replaced is None or sum(memo.seconds_without(replaced) for memo in memos) < max(WORTH_SECONDS, WORTH_SHARE * seconds):
        return True
    whole = context.trace
    context.trace = replace(whole, examples=[], mismatches=list(whole.mismatches), notes=list(whole.notes))
    evaluated: List[Tuple[int, Calls]] = []
    first = 0
    try:
        for request, memo in zip(requests, memos):
            calls = evaluation.watch_anew()
            replay = calls.recording = calls.replay = Replay(memo, replaced, calls)
            _evaluate(runner, ExampleRun(request.target, request.expression), replay, first)
            evaluated.append((first, calls))
            first += len(calls.modules)

        def layers(wanted: Set[int]) -> List[LayerSeen]:
            found: List[LayerSeen] = []
            for start, watched in evaluated:
                own = {index - start for index in wanted if start <= index < start + len(watched.modules)}
                found += watched.layers(start, as_seen, own) if own else []
            return found

        runner.findings.say(runner.trace, layers)
    except Abandoned:
        pass
    finally:
        context.trace = whole
        evaluation.watch_anew()
    return rehearsed.is_undisturbed()


def _evaluate(runner: ExampleRunner, example: ExampleRun, replay: Replay, first_layer: int) -> None:
    """Evaluate an example; what is wrong goes to the trace. Raises Abandoned."""
    index, code = len(runner.trace.examples), runner.compiled(example)
    if code is None:
        raise Abandoned
    evaluation, recorder = runner.evaluation, runner.recorder
    evaluation.start(index)
    runner.findings.expect_first(evaluation.calls, lambda: runner.trace)
    recorder.reached = set()
    recorder.is_brief = True
    set_builder(replay)
    try:
        with muted():  # The run will print it.
            error = evaluation.attempt(partial(evaluate, code, runner.names, {}, example.dims))
        if isinstance(error, EXITS):
            raise error
    except (op_cache.NeedsGraph, *EXITS, MemoryError) as raised:  # The run will come to that itself.
        raise Abandoned from raised
    finally:
        recorder.is_brief = False
        set_builder(None)
    if branches.asked or unknown_sizes.state.cut:
        raise Abandoned
    example.reached = recorder.functions(runner.run.file)
    for mismatch in evaluation.calls.mismatches:
        shift(mismatch, first_layer)
    runner.trace.mismatches += evaluation.calls.mismatches
    if error is not None:
        runner.failed(example, index, error, first_layer)
