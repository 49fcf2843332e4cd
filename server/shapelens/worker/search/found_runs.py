"""Runs what the search found, one class after the other, and sends what it saw: something shows before the search for the rest is over."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Set, Tuple

from ...protocol import ExampleRequest, ExampleRun, LayerSeen, Search, Traced
from ..calls.module_calls import shift
from ..evaluation.early_findings import say_what_is_wrong
from ..evaluation.probing import Sight, as_seen
from ..sandbox.confinement import DeadlineReached, TooLong, within
from .finder import Finder, Found
from .trials.doubts import is_one_mistake
from .trials.trace_marks import Marks
from .trials.trial import Bench, sources_first

if TYPE_CHECKING:
    from ..run import Job

LONGEST_RUN = 2.0  # seconds that an example which was found may run, past its mismatches


def find_examples(job: "Job", names: Dict[str, Any], search: Search, sights: List[Any]) -> bool:
    """Find and run examples for the classes that those that were run do not reach. What they saw is added to `sights` and to the trace.

    Returns whether that was done before the run's deadline; what was seen until then is in the trace.
    """
    try:
        _find_all(job, names, search, sights)
    except DeadlineReached:  # Nobody asked for these examples: that there is no time for all of them is no mistake of the file.
        for example in job.trace.examples[len(job.run.examples) :]:
            if not example.seconds:
                example.evidence, example.doubtful, example.error_kind = example.evidence or "inferred", True, "deadline"
        return False
    return True


def _find_all(job: "Job", names: Dict[str, Any], search: Search, sights: List[Any]) -> None:
    shown: List[bool] = []  # whether it was doubtful, of what was shown before the first example ran

    def show(found: Found) -> None:
        if not job.trace.observations and found.doubtful not in shown and False not in shown:
            shown.append(found.doubtful)
            _show_attempt(job, found, finder.bench)

    def suspect() -> None:
        for run in last:
            trace = replace(job.trace, mismatches=copy.deepcopy(job.trace.mismatches))
            for found in trace.mismatches:
                if found.example == run.number:
                    shift(found, run.first_layer)
            say_what_is_wrong(job, trace, partial(_layers, job, run))
            job.said = None  # It may have been wrong.

    last: List[_Run] = []
    finder = Finder(job, names, search, show, suspect)
    told: List[Tuple[Found, ExampleRun]] = []
    finder.given = {request.target for request in job.run.examples}
    for _, _, calls, _ in sights:  # Where an example that was given fails, what it did not come to has no other one either.
        finder.reached.update(type(module) for module in calls.modules)
    finder.has_shown = bool(job.trace.observations)
    for found in finder.examples():
        before = Marks(job.trace)
        run = _run(job, found, names, finder.bench)
        last[:] = [run]
        if found.untried and (run.example.error is not None or job.calls.mismatches):
            other = finder.again(found)
            if other is not None and other.expression != found.expression:
                before.restore(job.trace)
                run = _run(job, other, names, finder.bench)
            elif other is not None:
                job.calls = run.calls
                _describe(run.example, other, run.calls)
            found = other or found
        finder.has_shown = True
        told.append((found, run.example))
        if run.sight is not None:
            job.record(run.sight, [], run.number, run.first_layer)
            sights.append((run.code, run.sight, run.calls, run.first_layer))
            finder.reached.update(run.calls.called_classes())
            if not found.untried:  # What was known before shows already.
                job.send(Traced(job.run.run_id, "partial", job.trace))
    for found, example in told:  # When all classes have one.
        example.others = finder.others(found)
    job.calls = job.next_calls()


class _Run(NamedTuple):
    """What became of one example."""

    example: ExampleRun
    number: int
    first_layer: int
    code: Any
    sight: Any  # None for an expression that does not compile
    calls: Any


def _run(job: "Job", found: Found, names: Dict[str, Any], bench: Bench) -> _Run:
    request = ExampleRequest(found.target, found.expression)
    code = job.compiled(request, sources_first(bench, found.where))
    example, index, first_layer = job.trace.examples[-1], len(job.trace.examples) - 1, len(job.trace.layers)
    job.calls = job.next_calls()
    # What is known before the end, which a deadline may keep it from reaching.
    example.evidence, example.where, example.doubtful = found.evidence, found.where, found.doubtful
    sight = None
    try:
        with within(LONGEST_RUN):
            sight = job.evaluate(index, request, code, names) if code is not None else None
    except TooLong:  # The other classes are to have examples too. It has no dims to be named by more such runs.
        sight = Sight(job.recorder.seen, job.calls.seen, {})
        job.trace.mismatches += job.calls.mismatches
        example.error, example.error_kind = "it takes too long to run it to its end", "exception"
    _describe(example, found, job.calls)
    return _Run(example, index, first_layer, code, sight, job.calls)


def _layers(job: "Job", run: _Run, wanted: Set[int]) -> List[LayerSeen]:
    """Layers by their indices, also those of an example that is not recorded yet."""
    known = [job.trace.layers[index] for index in sorted(wanted) if index < run.first_layer]
    own = {index - run.first_layer for index in wanted if index >= run.first_layer}
    layers: List[LayerSeen] = run.calls.layers(run.first_layer, as_seen, own)
    return known + layers


def _show_attempt(job: "Job", found: Found, bench: Bench) -> None:
    """Send what an attempt saw, so that something shows before the example itself has run, or before there is one."""
    before = Marks(job.trace)
    job.trace.examples.append(
        ExampleRun(found.target, found.expression, evidence=found.evidence, where=found.where, doubtful=found.doubtful)
    )
    job.record(Sight(bench.seen_so_far, job.calls.seen, {}), [], len(job.trace.examples) - 1, len(job.trace.layers))
    job.send(Traced(job.run.run_id, "partial", job.trace))
    before.restore(job.trace)


def _describe(example: ExampleRun, found: Found, calls: Any) -> None:
    example.evidence, example.where, example.tried, example.doubtful = found.evidence, found.where, found.tried, found.doubtful
    if found.doubtful and found.exhausted and is_one_mistake(calls.mismatches, example.error):
        example.doubtful = False
