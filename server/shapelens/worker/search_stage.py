"""The search as a stage of a run: runs each example that it finds, and sends what that saw before the search for the rest is over."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any, Dict, List, NamedTuple, Optional, Set

from ..protocol import ExampleRequest, ExampleRun, LayerSeen, Search, Traced
from .calls.module_calls import shift
from .evaluation.early_findings import say_what_is_wrong
from .evaluation.probing import Sight, as_seen
from .sandbox.limits import DeadlineReached, TooLong, within
from .search.events import AlternativesFound, Attempted, EditSuspected, ExampleFound, ExampleKept, FoundExample
from .search.finder import Finder
from .search.trials.doubts import is_one_mistake
from .search.trials.trace_marks import Marks
from .search.trials.trial import Bench, sources_first

LONGEST_RUN = 2.0  # seconds that an example which was found may run, past its mismatches


def find_examples(job: Any, names: Dict[str, Any], search: Search, sights: List[Any]) -> bool:
    """Find and run examples for the classes that those that were run do not reach. What they saw is added to `sights` and to the trace.

    Returns whether that was done before the run's deadline; what was seen until then is in the trace.
    """
    stage = _Stage(job, names, search, sights)
    try:
        stage.run()
    except DeadlineReached:  # Nobody asked for these examples: that there is no time for all of them is no mistake of the file.
        for example in job.trace.examples[len(job.run.examples) :]:
            if not example.seconds:
                example.evidence, example.doubtful, example.error_kind = example.evidence or "inferred", True, "deadline"
        return False
    return True


class _Run(NamedTuple):
    """What became of one example."""

    example: ExampleRun
    number: int
    first_layer: int
    code: Any
    sight: Any  # None for an expression that does not compile
    calls: Any

    def fits(self) -> bool:
        """Whether the example ran to its end, and nothing was wrong on the way."""
        return self.example.error is None and not self.calls.mismatches


class _Stage:
    """One search, and what was made of its events so far."""

    def __init__(self, job: Any, names: Dict[str, Any], search: Search, sights: List[Any]) -> None:
        self._job, self._names, self._sights = job, names, sights
        self._bench = Bench(job, names, search.seconds)
        self._finder = Finder(self._bench, names, job.run.file, job.run.text, search, self._text_of)
        self._finder.given = {request.target for request in job.run.examples}
        self._finder.shows = bool(job.trace.observations)
        for _, _, calls, _ in sights:  # Where an example that was given fails, what it did not come to has no other one either.
            self._finder.reached.update(type(module) for module in calls.modules)
        self._shown: List[bool] = []  # whether it was doubtful, of what was shown before the first example ran
        self._last: Optional[_Run] = None
        self._before = Marks(job.trace)  # the last run
        self._runs: Dict[str, ExampleRun] = {}  # by class

    def run(self) -> None:
        """Turn all events of the search into what is in the trace, and send it."""
        for event in self._finder.events():
            if isinstance(event, Attempted):
                self._show(event.example)
            elif isinstance(event, EditSuspected):
                self._say_what_is_wrong()
            elif isinstance(event, ExampleFound):
                self._run_example(event.example, event.instead)
            elif isinstance(event, ExampleKept):
                self._keep(event.example)
            elif isinstance(event, AlternativesFound):
                self._runs[event.target].others = event.alternatives
        self._job.calls = self._job.next_calls()

    def _text_of(self, path: str) -> str:
        try:
            text: str = self._job.finder.text_of(path)
        except (OSError, SyntaxError, ValueError):  # It was removed since it was found, or is no text.
            return ""
        return text

    def _run_example(self, found: FoundExample, instead: bool) -> None:
        if instead:
            self._before.restore(self._job.trace)
        self._before = Marks(self._job.trace)
        run = self._last = _run(self._job, found, self._names, self._bench)
        if found.untried and not run.fits():  # Another example may come in its place, or another word on it.
            self._finder.ran([], False)
        else:
            self._record(run, found)

    def _keep(self, found: FoundExample) -> None:
        run = self._last
        if run is not None:
            self._job.calls = run.calls
            _describe(run.example, found, run.calls)
            self._record(run, found)

    def _record(self, run: _Run, found: FoundExample) -> None:
        job = self._job
        self._runs[found.target] = run.example
        if run.sight is not None:
            job.record(run.sight, [], run.number, run.first_layer)
            self._sights.append((run.code, run.sight, run.calls, run.first_layer))
            if not found.untried:  # What was known before shows already.
                job.send(Traced(job.run.run_id, "partial", job.trace))
        self._finder.ran(run.calls.called_classes() if run.sight is not None else [], True)

    def _show(self, found: FoundExample) -> None:
        """Send what an attempt saw, so that something shows before the example itself has run, or before there is one."""
        job = self._job
        if job.trace.observations or found.doubtful in self._shown or False in self._shown:
            return
        self._shown.append(found.doubtful)
        before = Marks(job.trace)
        job.trace.examples.append(
            ExampleRun(found.target, found.expression, evidence=found.evidence, where=found.where, doubtful=found.doubtful)
        )
        job.record(Sight(self._bench.seen_so_far, job.calls.seen, {}), [], len(job.trace.examples) - 1, len(job.trace.layers))
        job.send(Traced(job.run.run_id, "partial", job.trace))
        before.restore(job.trace)

    def _say_what_is_wrong(self) -> None:
        """The edit is the likeliest cause of what fails in the last run, and what else there may be takes its time."""
        job, run = self._job, self._last
        if run is None:
            return
        trace = replace(job.trace, mismatches=copy.deepcopy(job.trace.mismatches))
        for found in trace.mismatches:
            if found.example == run.number:
                shift(found, run.first_layer)
        say_what_is_wrong(job, trace, partial(_layers, job, run))
        job.said = None  # It may have been wrong.


def _run(job: Any, found: FoundExample, names: Dict[str, Any], bench: Bench) -> _Run:
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


def _layers(job: Any, run: _Run, wanted: Set[int]) -> List[LayerSeen]:
    """Layers by their indices, also those of an example that is not recorded yet."""
    known = [job.trace.layers[index] for index in sorted(wanted) if index < run.first_layer]
    own = {index - run.first_layer for index in wanted if index >= run.first_layer}
    layers: List[LayerSeen] = run.calls.layers(run.first_layer, as_seen, own)
    return known + layers


def _describe(example: ExampleRun, found: FoundExample, calls: Any) -> None:
    example.evidence, example.where, example.tried, example.doubtful = found.evidence, found.where, found.tried, found.doubtful
    if found.doubtful and found.exhausted and is_one_mistake(calls.mismatches, example.error):
        example.doubtful = False
