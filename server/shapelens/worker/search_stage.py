"""The search as a stage of a run: runs each example that it finds, and sends what that saw before the search for the rest is over."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Container, Dict, List, NamedTuple, Optional, Set, Tuple

from ..protocol import Evaluating, ExampleRun, FileSpan, LayerSeen, Search, Trace, Traced
from ..traces import outermost
from .calls.module_calls import Calls, shift
from .evaluation.evaluated import Evaluated, as_seen
from .evaluation.example_runner import ExampleRunner
from .sandbox.limits import DeadlineReached, TooLong, within
from .search.events import AlternativesFound, Attempted, ClassBegun, EditSuspected, ExampleFound, ExampleKept, FoundExample
from .search.finder import Finder
from .search.trials.judging import judge
from .search.trials.trace_marks import Marks
from .search.trials.trial import TrialRunner, sources_first
from .search.usages.project_settings import Current, ProjectSettings

LONGEST_RUN = 2.0  # seconds that an example which was found may run, past its mismatches; half of those of the search if that is more


def find_examples(runner: ExampleRunner, search: Search, evaluated: List[Evaluated]) -> bool:
    """Find and run examples for the classes that those that were run do not reach. What they saw is added to `evaluated` and to the trace.

    Returns whether that was done before the run's deadline; what was seen until then is in the trace.
    """
    stage = _SearchStage(runner, search, evaluated)
    try:
        stage.run()
    except DeadlineReached:  # Nobody asked for these examples: that there is no time for all of them is no mistake of the file.
        for example in runner.trace.examples[len(runner.run.examples) :]:
            if not example.seconds:
                example.evidence, example.doubtful, example.error_kind = example.evidence or "inferred", True, "deadline"
        return False
    return True


def let_guesses_give_way(trace: Trace) -> None:
    """Take back what examples that may be wrong show of classes that others show, which fit."""
    giving = {number for number, run in enumerate(trace.examples) if run.doubtful and run.evidence}
    fitting = [seen for seen in trace.observations if seen.example not in giving]
    names = {outermost(seen) for seen in fitting if seen.span.file == trace.file}
    left = [seen for seen in trace.observations if seen.example in giving and outermost(seen) in names]
    if not left:
        return
    taken, shown = set(map(id, left)), {_line(seen.span) for seen in left} & {_line(seen.span) for seen in fitting}
    trace.observations = [seen for seen in trace.observations if id(seen) not in taken]
    trace.mismatches = [found for found in trace.mismatches if not found.guessed or found.span is None or _line(found.span) not in shown]
    _take_back_calls(trace, giving)


def _take_back_calls(trace: Trace, giving: Container[int]) -> None:
    """Take back the calls of layers in these examples that others call."""
    called = {layer.span for layer in trace.layers if layer.calls and layer.example not in giving}
    for layer in trace.layers:
        if layer.example in giving and layer.span in called:
            layer.calls = []


def _line(span: FileSpan) -> Tuple[str, int]:
    return span.file, span.line


class _ExampleOutcome(NamedTuple):
    """The outcome of one example."""

    example: ExampleRun
    number: int
    first_layer: int
    evaluated: Optional[Evaluated]  # None for an expression that does not compile
    calls: Calls
    took_too_long: bool

    def fits(self) -> bool:
        """True if the example ran to its end, and nothing was wrong on the way."""
        return self.example.error is None and not self.calls.mismatches


class _SearchStage:
    """One search, and what was made of its events so far."""

    def __init__(self, runner: ExampleRunner, search: Search, evaluated: List[Evaluated]) -> None:
        run = runner.run
        self._runner, self._evaluated = runner, evaluated
        self._trial_runner = TrialRunner(runner, runner.names, search.seconds)
        Current.settings = ProjectSettings(run.file, run.root)
        self._finder = Finder(self._trial_runner, runner.names, run.file, run.text, search, self._text_of)
        self._finder.given = {request.target for request in run.examples}
        self._finder.shows = bool(runner.trace.observations)
        for given in evaluated:  # Where an example that was given fails, what it did not come to has no other one either.
            self._finder.reached.update(type(module) for module in given.calls.modules)
        self._shown: List[bool] = []  # whether it was doubtful, of what was shown before the first example ran
        self._last: Optional[_ExampleOutcome] = None
        self._before = Marks(runner.trace)  # the last run
        self._runs: Dict[str, ExampleRun] = {}  # by class
        self._known = {known.target for known in search.known}

    def run(self) -> None:
        """Turn all events of the search into what is in the trace, and send it."""
        for event in self._finder.events():
            if isinstance(event, ClassBegun):
                self._runner.send(Evaluating(self._runner.run.run_id, event.target))
            elif isinstance(event, Attempted):
                self._show(event.example)
            elif isinstance(event, EditSuspected):
                self._say_what_is_wrong()
            elif isinstance(event, ExampleFound):
                self._run_example(event.example, event.instead)
            elif isinstance(event, ExampleKept):
                self._keep(event.example)
            elif isinstance(event, AlternativesFound):
                self._runs[event.target].others = event.alternatives
        self._runner.evaluation.watch_anew()

    def _text_of(self, path: str) -> str:
        try:
            text: str = self._runner.context.finder.text_of(path)
        except (OSError, SyntaxError, ValueError):  # It was removed since it was found, or is no text.
            return ""
        return text

    def _run_example(self, found: FoundExample, instead: bool) -> None:
        if instead:
            self._before.restore(self._runner.trace)
        self._before = Marks(self._runner.trace)
        run = self._last = _run(self._runner, found, self._trial_runner)
        if found.untried and not run.fits():  # Another example may come in its place, or another word on it.
            self._finder.ran([], False, run.took_too_long)
        else:
            self._judge(run, found)
            self._record(run, found)

    def _keep(self, found: FoundExample) -> None:
        run = self._last
        if run is not None:
            self._runner.evaluation.calls = run.calls
            _describe(run.example, found)
            self._judge(run, found)
            self._record(run, found)

    def _judge(self, run: _ExampleOutcome, found: FoundExample) -> None:
        """Tell what is certain among the mismatches of a doubtful example from what its guesses may have brought about."""
        if found.doubtful and any(each.example == run.number for each in self._runner.trace.mismatches):
            judge(self._runner.trace, run.example, run.number, run.first_layer, run.calls, self._finder.mistakes(found))

    def _record(self, run: _ExampleOutcome, found: FoundExample) -> None:
        runner = self._runner
        self._runs[found.target] = run.example
        if run.evaluated is not None:
            runner.record(run.evaluated)
            self._evaluated.append(run.evaluated)
            if found.target not in self._known:  # What was known before shows already.
                runner.send(Traced(runner.run.run_id, "partial", runner.trace))
        self._finder.ran(run.calls.called_classes() if run.evaluated is not None else [], True)

    def _show(self, found: FoundExample) -> None:
        """Send what an attempt saw, so that something shows before the example itself has run, or before there is one."""
        runner = self._runner
        if runner.trace.observations or found.doubtful in self._shown or False in self._shown:
            return
        self._shown.append(found.doubtful)
        before = Marks(runner.trace)
        runner.trace.examples.append(
            ExampleRun(found.target, found.expression, evidence=found.evidence, where=found.where, doubtful=found.doubtful)
        )
        seen = Evaluated(self._trial_runner.seen_so_far, runner.evaluation.calls)
        seen.example, seen.first_layer = len(runner.trace.examples) - 1, len(runner.trace.layers)
        runner.record(seen)
        runner.send(Traced(runner.run.run_id, "partial", runner.trace))
        before.restore(runner.trace)

    def _say_what_is_wrong(self) -> None:
        """The edit is the likeliest cause of what fails in the last run, and what else there may be takes its time."""
        runner, run = self._runner, self._last
        if run is None:
            return
        trace = replace(runner.trace, mismatches=copy.deepcopy(runner.trace.mismatches))
        for found in trace.mismatches:
            if found.example == run.number:
                shift(found, run.first_layer)
        runner.findings.say(trace, partial(_layers, runner, run), suspected=True)


def _run(runner: ExampleRunner, found: FoundExample, trial_runner: TrialRunner) -> _ExampleOutcome:
    # What is known before the end, which a deadline may keep it from reaching.
    example = ExampleRun(
        found.target, found.expression, evidence=found.evidence, where=found.where, call=found.call, doubtful=found.doubtful
    )
    expression = sources_first(trial_runner, found.where) % found.expression
    number, first_layer = len(runner.trace.examples), len(runner.trace.layers)
    calls = runner.evaluation.watch_anew()
    evaluated: Optional[Evaluated] = None
    took_too_long = False
    try:
        with within(max(LONGEST_RUN, trial_runner.until / 2)):
            evaluated = runner.evaluate(example, expression, goes_past=not found.doubtful)
    except TooLong:  # The other classes are to have examples too. It has no dims to be named by more such runs.
        evaluated, took_too_long = runner.seen_so_far(), True
        runner.trace.mismatches += calls.mismatches
        example.error, example.error_kind = "it takes too long to run it to its end", "exception"
    _describe(example, found)
    return _ExampleOutcome(example, number, first_layer, evaluated, calls, took_too_long)


def _layers(runner: ExampleRunner, run: _ExampleOutcome, wanted: Set[int]) -> List[LayerSeen]:
    """Layers by their indices, also those of an example that is not recorded yet."""
    known = [runner.trace.layers[index] for index in sorted(wanted) if index < run.first_layer]
    own = {index - run.first_layer for index in wanted if index >= run.first_layer}
    layers: List[LayerSeen] = run.calls.layers(run.first_layer, as_seen, own)
    return known + layers


def _describe(example: ExampleRun, found: FoundExample) -> None:
    example.evidence, example.where, example.call = found.evidence, found.where, found.call
    example.tried, example.doubtful = found.tried, found.doubtful
