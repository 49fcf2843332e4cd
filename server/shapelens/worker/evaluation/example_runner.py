"""Evaluates the examples of a run and puts what they show into its trace: first as they are, then with other sizes, to name dims."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import CodeType
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set

import torch

from ...protocol import ExampleRun, LayerSeen, Observation, Run, Trace, Traced, Value
from ..axes import tracking as axes
from ..axes.evidence import names_samples
from ..calls.mismatches import meant_name, mismatch_of, one_line
from ..calls.module_calls import shift
from ..calls.optimizers import left_in_lists
from ..remarks.remarks import name_remarks
from ..sandbox.clocks import WorkClock
from ..sandbox.exceptions import traceback_of
from ..sandbox.limits import Interrupted, TooLong, within
from ..sandbox.originals import time
from ..trace import module_tree
from ..trace.dim_names import Sizes, distinct, name_shape
from ..trace.module_memory import has_known_sizes
from ..trace.progress import EVERY, SOON
from ..trace.recorder import SeenValues
from ..trace.value_summary import value_of
from ..unknown import unknown_sizes
from ..unknown.conditions import LONGEST, ConditionPlace, branches, gave_up
from .axis_run import LEAST_SECONDS, TIMES, Sized, add_remarks_of_axes, stated_batch_sizes
from .axis_run import LONGEST as LONGEST_WITH_AXES
from .branch_exploration import explore
from .early_findings import EarlyFindings
from .evaluated import Evaluated, named_calls
from .evaluation import EXITS, NONE_TURNED, RUN_IS_OVER, exit_message
from .expression import Resized, compile_expression, evaluate
from .going_past import GoingPast
from .line_by_line import line_by_line
from .probing import invariant_part, probes
from .run_context import RunContext

MOST_NAMED_DIMS = 6  # each costs a probe

Evaluate = Callable[[], Optional[BaseException]]


class ExampleRunner:
    """Evaluates the examples of a run, one after the other. `names` are those of the loaded document."""

    def __init__(self, run: Run, send: Callable[[Any], None], context: RunContext, known: Callable[[], None]) -> None:
        self.run = run
        self.send = send
        self.context = context
        self.names: Dict[str, Any] = {}
        self.evaluation, self.recorder, self.frames = context.evaluation, context.recorder, context.frames
        self.progress = context.progress
        self.past = GoingPast(context.evaluation, context.finder)
        self.progress.send = self._send_so_far
        self.progress.first = EVERY if run.search is None else SOON
        self.findings = EarlyFindings(run, send, self.progress, known)
        self.attempts: List[ExampleRun] = []  # what the search tries, as long as there is no example
        self.first_path: Callable[[ExampleRun, Evaluate], Optional[BaseException]] = lambda example, run_it: run_it()
        """Does an example for the first time; whoever writes down what is built and called takes part here."""

    @property
    def trace(self) -> Trace:
        """The trace of the run, as far as it has come."""
        return self.context.trace

    # --- one example ---

    def compiled(self, example: ExampleRun, expression: str = "") -> Optional[CodeType]:
        """Add an example to the trace and compile it, or the `expression` that stands for it; None where that is no expression."""
        self.trace.examples.append(example)
        try:
            return compile_expression(expression or example.expression)
        except (SyntaxError, ValueError) as error:
            example.error, example.error_kind = getattr(error, "msg", None) or str(error), "syntax"
            return None

    def evaluate(self, example: ExampleRun, expression: str = "", *, goes_past: bool = True) -> Optional[Evaluated]:
        """Evaluate an example, or the `expression` that stands for it, and add it to the trace, but for what it saw: `record` does that.

        goes_past: an exception of a statement does not end it (going_past.py).

        None where it does not compile. Raises what ends more than the example (evaluation.py).
        """
        unknown = set(self.recorder.unknown)
        self.recorder.unknown.clear()
        try:
            return self._evaluated(example, expression, goes_past=goes_past)
        finally:  # Of the program that the example is called by.
            self.recorder.unknown.update(unknown)

    def _evaluated(self, example: ExampleRun, expression: str, *, goes_past: bool) -> Optional[Evaluated]:
        index, code = len(self.trace.examples), self.compiled(example, expression)
        if code is None:
            return None
        axes.state.may_mix = False
        start, clock, self.recorder.reached = time.perf_counter(), WorkClock(), set()
        is_user_file = self.frames.is_user_file
        follow = partial(self._follow, example, index, partial(evaluate, code, self.names, {}, example.dims))
        error = self.first_path(example, follow)
        turned = branches.last(is_user_file)
        while turned and gave_up(error, self.evaluation.calls.mismatches, is_user_file):
            # A condition on data led into a path that ends; where no other path goes on, the first is what is told of.
            error = follow(branches.turned | turned)
            turned = branches.last(is_user_file)
        if branches.turned and gave_up(error, self.evaluation.calls.mismatches, is_user_file):
            error = follow()
        while goes_past and self.past.is_prepared_for(error):
            error = follow(branches.turned)
        calls, end = self.evaluation.calls, self._end_of(error)
        seconds = clock()
        alone = branches.places(is_user_file) if seconds < LONGEST else []
        is_explored = (
            seconds < self.run.deadline / 10
            and (unknown_sizes.state.cut or bool(branches.asked))
            and explore(self.evaluation, partial(evaluate, code, self.names, {}, {}), alone)
        )
        example.seconds, example.reached = time.perf_counter() - start, self.recorder.functions(self.run.file)
        calls.ended = True
        self.trace.mismatches += calls.mismatches
        line = self.frames.line
        notes = [*branches.notes(is_user_file, line), *self.context.absences()]
        self.trace.notes += [note for note in notes if note not in self.trace.notes]
        if error is not None:
            self.failed(example, index, error, len(self.trace.layers))
        if calls.models:
            own = example.target.rpartition(".")[2]  # Others may be called on the way: what stands for a logger.
            _measure(next((model for model in calls.models if type(model).__name__ == own), calls.models[0]), example)
        found = Evaluated(self.recorder.seen, calls, example.dims, end)
        found.code, found.first_layer = code, len(self.trace.layers)
        found.refused = [mismatch.inputs for mismatch in self.trace.mismatches if mismatch.example == index]
        found.remarks, found.may_mix = self.evaluation.remarks.found, axes.state.may_mix
        if error is None:
            found.remarks += left_in_lists(calls, index)
        found.turned, found.is_explored, found.turned_alone = branches.turned, is_explored, alone
        if error is None and not calls.mismatches:  # What else is unknown follows a mistake.
            found.unknown = frozenset(self.recorder.unknown)
        return found

    def lines_shown(self) -> Set[int]:
        """The lines of the document of which the trace holds something."""
        return {seen.span.line for seen in self.trace.observations if seen.span.file == self.run.file}

    def take_back(self) -> None:
        """The last example of the trace, of which nothing is recorded yet, as if it had not been evaluated."""
        self.trace.examples.pop()
        number = len(self.trace.examples)
        self.trace.mismatches = [kept for kept in self.trace.mismatches if kept.example != number]

    def _follow(
        self, example: ExampleRun, index: int, run_it: Callable[[], None], turned: FrozenSet[ConditionPlace] = NONE_TURNED
    ) -> Optional[BaseException]:
        """Evaluate an example with these conditions on data turned; the exception that ended it, if one did."""

        def start() -> None:
            self.evaluation.start(index, turned)
            self.findings.expect_first(self.evaluation.calls, lambda: self.trace)
            self.progress.begin()

        def tell(file: str, line: int) -> None:
            example.error_span = self.frames.line(file, line)
            self._send_so_far()

        try:
            if not self.run.line_by_line:
                return self.evaluation.run(start, run_it)
            error = self.evaluation.run(start, partial(line_by_line, run_it, self.frames.is_user_file, tell))
            example.error_span = None
            return error
        except Interrupted:
            raise
        except RUN_IS_OVER as stop:
            example.error = one_line(stop) or type(stop).__name__
            self.record(self.seen_so_far())
            self.trace.mismatches += self.evaluation.calls.mismatches
            raise
        finally:
            self.progress.end()

    def seen_so_far(self) -> Evaluated:
        """Returns the record of the evaluation under way until now."""
        found = Evaluated(self.recorder.seen, self.evaluation.calls)
        found.first_layer = len(self.trace.layers)
        return found

    def _send_so_far(self) -> None:
        """Send what the example that runs has shown until now, without its mismatches: they are told when it has ended."""
        whole = self.trace
        told = list(whole.mismatches)
        self.context.trace = replace(whole, examples=whole.examples or self.attempts, layers=list(whole.layers), mismatches=told)
        try:
            self._record(self.seen_so_far(), [])
            self.send(Traced(self.run.run_id, "partial", self.trace))
        finally:
            self.context.trace = whole

    def failed(self, example: ExampleRun, index: int, error: BaseException, first_layer: int) -> None:
        """Put the exception that ended an example into the trace."""
        found = mismatch_of(error, index, self.frames, self.evaluation.meta, self.evaluation.calls)
        example.error = "%s: %s" % (found.exception, found.message)
        example.error_span = found.span
        if not found.trail:
            # Raised by the expression itself: a name that does not exist, arguments that do not fit.
            example.error_kind = "example"
            return
        if isinstance(error, EXITS):
            example.error, example.error_kind = exit_message(error), "exit"
            return
        if found.code == "definition":  # Of something that failed there, which has been said.
            example.error_kind = "mismatch"
            return
        shift(found, first_layer)
        found.meant = meant_name(error)
        example.error_kind = "exception" if found.code == "exception" else "mismatch"
        self.trace.mismatches.append(found)

    def _end_of(self, error: Optional[BaseException]) -> Any:
        """Where an exception ended an example; None where it ran to its end."""
        if error is None:
            return None
        trail = self.frames.trail_of(traceback_of(error))
        return type(error).__name__, trail[-1] if trail else None

    # --- what it saw ---

    def record(self, found: Evaluated) -> None:
        """Put what an evaluation of an example saw into the trace, for the first time."""
        for mismatch in found.calls.mismatches:
            shift(mismatch, found.first_layer)
        for remark in found.remarks:
            shift(remark, found.first_layer)
        self._record(found, [])

    def _record(self, found: Evaluated, others: List[Evaluated]) -> None:
        """Put what an evaluation saw into the trace, in the place of what is there of this example, with names of dims by `others`."""
        self.progress.look()
        own = {name: found.sizes[name] for name in others[0].sizes} if others else found.sizes
        sizes = [own] + [other.sizes for other in others]
        first, index, trace = found.first_layer, found.example, self.trace

        def name_site(number: int, seen: SeenValues) -> Any:
            return distinct(seen, [other.sites.get(number) for other in others], sizes)

        held, self.recorder.seen = self.recorder.seen, found.sites
        trace.files, trace.called = list(dict.fromkeys(self.context.finder.loaded)), self.recorder.always_reached(self.run.file)
        observations: List[Observation] = self.recorder.observations(index, name_site, self._shown())
        if first:
            for observation in observations:
                observation.values = [_of_layer(value, first) for value in observation.values]
        self.recorder.seen = held
        shown_at = {seen.span for seen in observations}
        observations += self.recorder.unknown_observations(found.unknown, index, shown_at)
        layers: List[LayerSeen] = found.calls.layers(first, lambda number, seen: named_calls(number, others, sizes, seen))
        name_remarks(found.remarks, [other.remarks for other in others], sizes)
        _name_refused(found.refused, [other.refused for other in others], sizes)
        trace.observations = [item for item in trace.observations if item.example != index] + observations
        trace.layers[first : first + len(layers)] = layers
        count = len(trace.layers)
        for observation in observations:
            if any((value.layer or 0) >= count for value in observation.values):  # Of a model that an earlier attempt has built.
                observation.values = [replace(value, layer=None) if (value.layer or 0) >= count else value for value in observation.values]

    def _shown(self) -> Set[str]:
        """The files whose values are sent: open documents, and those that a mismatch lies in or was called from."""
        led_there = {span.file for mismatch in self.trace.mismatches + self.evaluation.calls.mismatches for span in mismatch.trail}
        return {self.run.file, *self.run.observe, *led_there}

    # --- named dims ---

    def seconds_to_name(self, examples: List[Evaluated]) -> float:
        """Returns the approximate duration of `name_dims`, in seconds."""
        return sum(self.trace.examples[found.example].seconds * len(found.sizes) for found in examples)

    def name_dims(self, examples: List[Evaluated]) -> None:
        """Evaluate examples again with other sizes, and record them with names for their dims."""
        for found in examples:
            if not found.sizes or len(found.sizes) > MOST_NAMED_DIMS:
                continue
            mismatches = [invariant_part(mismatch) for mismatch in found.calls.mismatches]
            example, self.recorder.reached = self.trace.examples[found.example], set()
            others = probes(found, partial(self._probe, found, mismatches), any_size=bool(example.evidence))
            example.reached = self.recorder.functions(self.run.file, also=example.reached)
            if others:
                self._record(found, others)

    def follow_axes(self, examples: List[Evaluated]) -> None:
        """Evaluate examples once more to see which axes of their inputs each dim is made of, for remarks of what is mixed up."""
        stated = stated_batch_sizes(self.run.text)
        for found in examples:
            example = self.trace.examples[found.example]
            first = list(found.sizes)[:1]
            samples = [
                name for name in first if found.sizes[name] in stated or (example.evidence in ("", "annotation") and names_samples(name))
            ]
            if example.seconds < LONGEST_WITH_AXES and found.end is None and not example.doubtful:
                mismatches = [invariant_part(mismatch) for mismatch in found.calls.mismatches]
                again = partial(self._probe_sized, found, mismatches, LEAST_SECONDS + TIMES * example.seconds)
                add_remarks_of_axes(found, self.frames, again, samples=samples, expression=example.expression)

    def _probe_sized(
        self, found: Evaluated, mismatches: List[Any], seconds: float, sized: Sized, outputs: List[Any]
    ) -> Optional[Evaluated]:
        try:
            with within(seconds):  # A loop over the pixels of a larger picture takes many times as long.
                return self._probe(found, mismatches, sized.names, outputs, sized.resized)
        except TooLong:
            return None

    def _probe(
        self, found: Evaluated, mismatches: List[Any], sizes: Sizes, outputs: Optional[List[Any]] = None, resized: Optional[Resized] = None
    ) -> Optional[Evaluated]:
        """An example with other sizes; None where it goes another way than the run did. What it gives is put into `outputs`."""
        evaluation = self.evaluation
        dims: Sizes = {}

        def give() -> None:
            given = evaluate(found.code, self.names, sizes, dims, resized)
            if outputs is not None:
                outputs[:] = [given]

        error = evaluation.run(lambda: evaluation.start(0, found.turned), give)
        met = evaluation.calls.mismatches
        # A size that the model cannot take ends the probe elsewhere than the run, or brings other mismatches.
        if dims != sizes or self._end_of(error) != found.end or [invariant_part(mismatch) for mismatch in met] != mismatches:
            return None
        probe = Evaluated(self.recorder.seen, evaluation.calls, dict(sizes))
        failed = list(met)
        if error is not None and found.end[1] is not None:
            failed.append(mismatch_of(error, 0, self.frames, evaluation.meta, evaluation.calls))
        probe.refused = [mismatch.inputs for mismatch in failed]
        probe.remarks = evaluation.remarks.found
        again = partial(evaluate, found.code, self.names, sizes, {})
        if found.is_explored and outputs is None and not explore(evaluation, again, found.turned_alone):
            return None
        return probe


def _measure(model: Any, example: ExampleRun) -> None:
    """Note how many parameters a model has, and how large it is, unless the size of one of them is unknown."""
    with torch._C.DisableTorchFunction():  # Tensors answer without the mode of the run.
        parameters, buffers = list(module_tree.parameters(model)), list(module_tree.buffers(model))
        if not all(map(has_known_sizes, (*parameters, *buffers))):
            return
        example.parameter_count = sum(parameter.numel() for parameter in parameters)
        example.bytes = sum(tensor.numel() * tensor.element_size() for tensor in (*parameters, *buffers))


def _of_layer(value: Value, first: int) -> Value:
    """A value whose layer, if it is one, is counted from the first layer of its example."""
    return value if value.layer is None else value_of(("layer", value.layer + first))


def _name_refused(refused: List[List[Value]], others: List[List[List[Value]]], sizes: List[Sizes]) -> None:
    """Give names to the dims of what was refused, by what other sizes gave."""
    for given, *same_given in zip(refused, *others) if others else ():
        for number, (value, *same) in enumerate(zip(given, *same_given)):
            shapes = [part.shape for part in [value] + same]
            if all(shape is not None and len(shape) == len(value.shape or []) for shape in shapes):
                given[number] = replace(value, named=list(name_shape(shapes, sizes)))
