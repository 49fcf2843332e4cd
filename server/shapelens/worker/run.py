"""One run: load the document, evaluate its examples, and send what was seen.

The run itself comes first and its trace is sent at once, as findings need nothing more. Then each example is run again with other sizes
(dim_names.py), and the trace is sent again with its dims named.
"""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from dataclasses import replace
from functools import partial
from types import CodeType
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

import torch

from ..protocol import ExampleRequest, ExampleRun, Finished, LayerSeen, Observation, Run, Trace, Traced, Value
from .calls.mismatches import mismatch_of, one_line
from .calls.module_calls import Calls, shift
from .evaluation.branch_exploration import look_again
from .evaluation.early_findings import expect_mismatch, say_what_is_wrong
from .evaluation.expression import compile_expression, evaluate
from .evaluation.probing import Sight, as_seen, named_calls, probes, what
from .evaluation.workspace import Workspace
from .memo.early_diagnosis import recorded, say_quickly
from .meta import (  # noqa: F401  These modules add their rules to those of the mode.
    constants,
    data_dependent,
    known_outcomes,
    op_cache,
    shape_rules,
    sparse,
)
from .reload.loaded_project import Standing, Unsuitable
from .sandbox import read_files
from .sandbox.limits import DeadlineReached, Interrupted, TooLong
from .search_stage import find_examples
from .shims import file_access
from .trace.dim_names import Sizes, distinct, name_shape
from .trace.progress import EVERY, SHOWING_SECONDS, SOON
from .trace.recorder import Seen
from .trace.remarks import name_remarks
from .trace.value_summary import value_of
from .unknown import stand_ins, unknown_sizes
from .unknown.conditions import LONGEST, Place, branches, gave_up

Send = Callable[[Any], None]

MOST_NAMED_DIMS = 6  # each costs a probe
SOON_NAMED = 0.2  # seconds for which what is complete but for the names of dims is not worth sending


def _of_workspace(name: str) -> Any:
    return property(lambda job: getattr(job.workspace, name), lambda job, value: setattr(job.workspace, name, value))


class Job:
    """A run under way."""

    def __init__(self, run: Run, send: Send, workspace: Optional[Workspace] = None, known: Callable[[], None] = lambda: None) -> None:
        self.run = run
        self.send = send
        self.known = known  # told when it is known what is wrong: what follows takes its time
        self.workspace = workspace or Workspace(run)
        self.trace = Trace(run.file)
        self.recorder, self.meta, self.frames = self.workspace.recorder, self.workspace.meta, self.workspace.frames
        self.finder, self.progress, self.remarks = self.workspace.finder, self.workspace.progress, self.workspace.remarks
        self.progress.send = self._send_so_far
        self.progress.first = EVERY if run.search is None else SOON
        self.said: Optional[Trace] = None  # what is wrong, where it was sent
        self.has_spoken = False  # something of that has been sent, or is not wanted
        self.attempts: List[ExampleRun] = []  # what the search tries, as long as there is no example

    # What is sent, and what watches the modules of the evaluation under way.
    trace: Trace = _of_workspace("trace")
    calls: Calls = _of_workspace("calls")

    def execute(self) -> Finished:
        """Do the run in an environment of its own, which ends with it."""
        with self.workspace.environment():
            return self.finish(self.workspace.load)

    def finish(self, load: Callable[[], Dict[str, Any]]) -> Finished:
        """Load the document and evaluate its examples; returns how that ended. `BaseException`s that are no ordinary errors of user code
        (exit, the deadline) end it early."""
        start = time.perf_counter()
        outcome, detail = "ok", ""
        try:
            self.progress.look()
            names = self._load(load)
            self.progress.look()
            if names is not None:
                self._examples(names)
        except DeadlineReached:
            outcome, detail = "deadline", "the run took longer than its deadline of %g s" % self.run.deadline
            self._stopped(outcome, detail)
        except MemoryError:
            outcome, detail = "memory", "the run needed more than its memory limit of %d MB" % (self.run.memory_limit >> 20)
            self._stopped(outcome, detail)
        except (SystemExit, KeyboardInterrupt) as error:
            called = "sys.exit(%s)" % error if isinstance(error, SystemExit) else "for an interrupt"
            outcome, detail = "exit", "the file called %s" % called
            self._stopped(outcome, detail, error)
        return Finished(self.run.run_id, outcome, detail, time.perf_counter() - start, read_files.files())

    def _load(self, load: Callable[[], Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        try:
            return load()
        except SyntaxError as error:
            # The server knows better where; a run of such a text happens only in a race.
            self._all_failed("syntax", "%s (line %s)" % (error.msg, error.lineno))
            return None

    # --- examples ---

    def _examples(self, names: Dict[str, Any]) -> None:
        sights: List[Tuple[CodeType, Sight, Calls, int]] = []
        rehearsed, search = self.workspace.rehearsed, self.run.search
        if rehearsed is not None and self.run.findings_first and search is None and not say_quickly(self, names, rehearsed):
            raise Unsuitable("running the document has changed it")
        for index, request in enumerate(self.run.examples):
            code = self.compiled(request)
            if code is None:
                continue
            first_layer = len(self.trace.layers)
            sight = self.evaluate(index, request, code, names)
            if len(self.run.examples) == 1 and search is None:
                say_what_is_wrong(self, self.trace, partial(self.calls.layers, 0, as_seen))
                self.progress.after(SHOWING_SECONDS, self.known)
            self.record(sight, [], index, first_layer)
            sights.append((code, sight, self.calls, first_layer))
            self.calls = self.next_calls()
        in_time = True
        if search is not None:
            if sights:  # What was asked for does not wait for what is looked for.
                self.send(Traced(self.run.run_id, "given", self.trace))
            in_time = find_examples(self, names, search, sights)
        # Remarks come with the last trace: they can wait, and the names of dims help to judge them.
        said = not self.run.brief or self.trace.mismatches or any(sight.remarks for _, sight, _, _ in sights)
        to_be_named = self.run.named and in_time and said and any(sight.sizes for _, sight, _, _ in sights)
        if not to_be_named:
            self.trace.remarks = [remark for _, sight, _, _ in sights for remark in sight.remarks]
        if len(self.run.examples) != 1 or search is not None:
            say_what_is_wrong(self, self.trace, lambda wanted: [self.trace.layers[index] for index in sorted(wanted)])
            self.progress.after(SHOWING_SECONDS, self.known)
        if not (to_be_named and self.said is not None and self._seconds_to_name(sights) < SOON_NAMED):
            self.send(Traced(self.run.run_id, "run", self.trace))
        if to_be_named:
            with contextlib.suppress(DeadlineReached):  # The run itself is complete: what could not be named in time stays numbers.
                self._name(sights, names)
            self.trace.remarks = [remark for _, sight, _, _ in sights for remark in sight.remarks]
            self.send(Traced(self.run.run_id, "named", self.trace))

    def next_calls(self) -> Calls:
        """A watch over modules for the next evaluation."""
        return Calls(self.recorder, self.meta, self.frames, self.calls.defined)

    def compiled(self, request: ExampleRequest, before: str = "%s") -> Optional[CodeType]:
        example = ExampleRun(request.target, request.expression)
        self.trace.examples.append(example)
        try:
            return compile_expression(before % request.expression)
        except (SyntaxError, ValueError) as error:
            example.error, example.error_kind = getattr(error, "msg", None) or str(error), "syntax"
            return None

    def evaluate(self, index: int, request: ExampleRequest, code: CodeType, names: Dict[str, Any]) -> Sight:
        example = self.trace.examples[index]
        start, self.recorder.reached = time.perf_counter(), set()
        error = recorded(self, request, lambda: self._run_example(example, index, code, names))
        turned = branches.last(self.frames.is_user_file)
        while turned and gave_up(error, self.calls.mismatches, self.frames.is_user_file):
            # A condition on data led into a path that ends; where no other path goes on, the first is what is told of.
            error = self._run_example(example, index, code, names, branches.turned | turned)
            turned = branches.last(self.frames.is_user_file)
        if branches.turned and gave_up(error, self.calls.mismatches, self.frames.is_user_file):
            error = self._run_example(example, index, code, names)
        end = self._end_of(error)
        seconds = time.perf_counter() - start
        paths = branches.places(self.frames.is_user_file) if seconds < LONGEST else []
        other_path = seconds < self.run.deadline / 10 and (unknown_sizes.state.cut or bool(branches.asked))
        if other_path:
            look_again(self, index, code, names, {}, paths)
        example.seconds, example.reached = time.perf_counter() - start, self.recorder.functions(self.run.file)
        self.calls.ended = True
        self.trace.mismatches += self.calls.mismatches
        notes = [
            *branches.notes(self.frames.is_user_file, self.frames.line),
            *file_access.notes(self.frames.is_user_file, self.frames.line),
            *self.workspace.absences(),
        ]
        self.trace.notes += [note for note in notes if note not in self.trace.notes]
        if error is not None:
            self.failed(example, index, error, len(self.trace.layers))
        if self.calls.models:
            model = self.calls.models[0]
            with torch._C.DisableTorchFunction():  # Tensors answer without the mode of the run.
                example.parameter_count = sum(parameter.numel() for parameter in model.parameters())
                tensors = list(model.parameters()) + list(model.buffers())
                example.bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        sight = Sight(self.recorder.seen, self.calls.seen, example.dims, end)
        sight.refused = [mismatch.inputs for mismatch in self.trace.mismatches if mismatch.example == index]
        sight.remarks = self.remarks.found
        sight.turned, sight.other_path, sight.paths = branches.turned, other_path, paths
        return sight

    def _run_example(
        self, example: ExampleRun, index: int, code: CodeType, names: Dict[str, Any], turned: FrozenSet[Place] = frozenset()
    ) -> Optional[BaseException]:
        """Evaluate an example with these conditions on data turned; the exception that ended it, if one did."""
        self.start(index, turned)
        self.progress.begin()
        try:
            evaluate(code, names, {}, example.dims)
        except op_cache.NeedsGraph:
            return self._run_example(example, index, code, names, turned)
        except (TooLong, Interrupted):
            raise
        except (DeadlineReached, MemoryError, SystemExit, KeyboardInterrupt) as stop:
            example.error = one_line(stop) or type(stop).__name__
            self.record(Sight(self.recorder.seen, self.calls.seen, {}), [], index, len(self.trace.layers))
            self.trace.mismatches += self.calls.mismatches
            raise
        except BaseException as raised:  # Whatever user code raises.
            if "can't allocate memory" in str(raised):  # What torch says where Python says MemoryError.
                raise MemoryError from raised
            return raised
        finally:
            self.progress.end()
        return None

    def _send_so_far(self) -> None:
        """Send what the example that runs has shown until now, without mismatches: they are told when it has ended."""
        whole = self.trace
        self.trace = replace(whole, examples=whole.examples or self.attempts, layers=list(whole.layers), mismatches=[])
        try:
            self.record(Sight(self.recorder.seen, self.calls.seen, {}), [], self.calls.example, len(whole.layers), self.calls)
            self.send(Traced(self.run.run_id, "partial", self.trace))
        finally:
            self.trace = whole

    def failed(self, example: ExampleRun, index: int, error: BaseException, first_layer: int) -> None:
        """Put the exception that ended an example into the trace."""
        found = mismatch_of(error, index, self.frames, self.meta, self.calls)
        example.error = "%s: %s" % (found.exception, found.message)
        example.error_span = found.span
        if not found.trail:
            # Raised by the expression itself: a name that does not exist, arguments that do not fit.
            example.error_kind = "example"
            return
        if found.code == "definition":  # Of something that failed there, which has been said.
            example.error_kind = "mismatch"
            return
        shift(found, first_layer)
        example.error_kind = "exception" if found.code == "exception" else "mismatch"
        self.trace.mismatches.append(found)

    def start(self, index: int, turned: FrozenSet[Place] = frozenset()) -> None:
        """Forget what the last evaluation saw; `turned` are the conditions on data that go the other way in the next one."""
        self.recorder.start_example()
        stand_ins.called.clear()
        branches.start(turned)
        op_cache.start()
        self.calls.start_example(index)
        expect_mismatch(self)
        self.remarks.start_example(index)
        unknown_sizes.start()
        self.meta.failure = None
        self.meta.inside_layer = 0
        self.meta.vague = False
        self.meta.recover = self.calls.recovery.operation

    def record(self, sight: Sight, others: List[Sight], index: int, first_layer: int, calls: Optional[Calls] = None) -> None:
        """Put what an evaluation saw into the trace, in the place of what is there of this example."""
        self.progress.look()
        own = {name: sight.sizes[name] for name in others[0].sizes} if others else sight.sizes
        sizes = [own] + [other.sizes for other in others]

        def name_site(number: int, seen: Seen) -> Any:
            return distinct(seen, [other.sites.get(number) for other in others], sizes)

        held, self.recorder.seen = self.recorder.seen, sight.sites
        self.trace.files, self.trace.called = list(dict.fromkeys(self.finder.loaded)), self.recorder.always_reached(self.run.file)
        observations: List[Observation] = self.recorder.observations(index, name_site, self._shown())
        if first_layer:
            for observation in observations:
                observation.values = [_of_layer(value, first_layer) for value in observation.values]
        self.recorder.seen = held
        watched = calls or self.calls
        layers: List[LayerSeen] = watched.layers(first_layer, lambda number, seen: named_calls(number, others, sizes, seen))
        if calls is None:  # For the first time.
            for mismatch in watched.mismatches:
                shift(mismatch, first_layer)
            for remark in sight.remarks:
                shift(remark, first_layer)
        name_remarks(sight.remarks, [other.remarks for other in others], sizes)
        for given, *same_given in zip(sight.refused, *[other.refused for other in others]) if others else ():
            for number, (value, *same) in enumerate(zip(given, *same_given)):
                shapes = [part.shape for part in [value] + same]
                if all(shape is not None and len(shape) == len(value.shape or []) for shape in shapes):
                    given[number] = replace(value, named=list(name_shape(shapes, sizes)))
        self.trace.observations = [item for item in self.trace.observations if item.example != index] + observations
        self.trace.layers[first_layer : first_layer + len(layers)] = layers
        count = len(self.trace.layers)
        for observation in observations:
            if any((value.layer or 0) >= count for value in observation.values):  # Of a model that an earlier attempt has built.
                observation.values = [replace(value, layer=None) if (value.layer or 0) >= count else value for value in observation.values]

    def _shown(self) -> Set[str]:
        """The files whose values are sent: open documents, and those that a mismatch lies in or was called from."""
        led_there = {span.file for mismatch in self.trace.mismatches + self.calls.mismatches for span in mismatch.trail}
        return {self.run.file, *self.run.observe, *led_there}

    # --- named dims ---

    def _seconds_to_name(self, sights: List[Tuple[CodeType, Sight, Calls, int]]) -> float:
        return sum(self.trace.examples[calls.example].seconds * len(sight.sizes) for _, sight, calls, _ in sights)

    def _name(self, sights: List[Tuple[CodeType, Sight, Calls, int]], names: Dict[str, Any]) -> None:
        for code, sight, calls, first_layer in sights:
            if not sight.sizes or len(sight.sizes) > MOST_NAMED_DIMS:
                continue
            mismatches = [what(mismatch) for mismatch in calls.mismatches]
            example, self.recorder.reached = self.trace.examples[calls.example], set()
            probe = partial(self._probe, code, names, sight=sight, mismatches=mismatches)
            others = probes(sight, probe, any_size=bool(example.evidence))
            example.reached = self.recorder.functions(self.run.file, also=example.reached)
            if others:
                self.record(sight, others, calls.example, first_layer, calls)

    def _probe(self, code: CodeType, names: Dict[str, Any], sizes: Sizes, sight: Sight, mismatches: List[Any]) -> Optional[Sight]:
        """The example with other sizes; None where it goes another way than the run did."""
        self.start(0, sight.turned)
        found: Sizes = {}
        error: Optional[BaseException] = None
        try:
            evaluate(code, names, sizes, found)
        except (DeadlineReached, Interrupted, MemoryError, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as raised:
            error = raised
        # A size that the model cannot take ends the probe elsewhere than the run, or brings other mismatches.
        if found != sizes or self._end_of(error) != sight.end or [what(mismatch) for mismatch in self.calls.mismatches] != mismatches:
            return None
        probe = Sight(self.recorder.seen, self.calls.seen, dict(sizes))
        failed = list(self.calls.mismatches)
        if error is not None and sight.end[1] is not None:
            failed.append(mismatch_of(error, 0, self.frames, self.meta, self.calls))
        probe.refused = [mismatch.inputs for mismatch in failed]
        probe.remarks = self.remarks.found
        if sight.other_path:
            look_again(self, 0, code, names, sizes, sight.paths)
        return probe

    def _end_of(self, error: Optional[BaseException]) -> Any:
        """Where an exception ended an example; None where it ran to its end."""
        if error is None:
            return None
        trail = self.frames.trail_of(error.__traceback__)
        return type(error).__name__, trail[-1] if trail else None

    # --- early ends ---

    def _all_failed(self, kind: str, message: str) -> None:
        self.trace.examples = [
            ExampleRun(request.target, request.expression, error=message, error_kind=kind) for request in self.run.examples
        ]
        self.send(Traced(self.run.run_id, "run", self.trace))

    def _stopped(self, kind: str, message: str, error: Optional[BaseException] = None) -> None:
        """The run ended early: what was seen so far is sent, with the place where it was."""
        place = sys.exc_info()[2]
        trail = self.frames.trail_of(place)
        for request in self.run.examples[len(self.trace.examples) :]:
            self.trace.examples.append(ExampleRun(request.target, request.expression))
        for example in self.trace.examples:
            if not example.parameter_count or example.error:
                example.error, example.error_kind = message, kind
                example.error_span = trail[-1] if trail else None
        self.send(Traced(self.run.run_id, "run", self.trace))


def _of_layer(value: Value, first: int) -> Value:
    """A value whose layer, if it is one, is counted from the first layer of its example."""
    return value if value.layer is None else value_of(("layer", value.layer + first))


def execute(run: Run, send: Send, standing: Optional[Standing] = None, known: Callable[[], None] = lambda: None) -> Finished:
    """Do a run, sending `Traced` messages; returns the `Finished` that ends it. A bug of ours is called one, its traceback in the log.

    `known` is called when it is known what is wrong.

    Raises Unsuitable where it cannot be done with what is `standing`.
    """
    try:
        if standing is None:
            return Job(run, send).execute()
        return Job(run, send, standing.workspace, known).finish(lambda: standing.again(run))
    except Unsuitable:
        raise
    except (DeadlineReached, MemoryError) as error:
        return Finished(run.run_id, "deadline" if isinstance(error, DeadlineReached) else "memory", "the run was stopped")
    except Exception as error:
        traceback.print_exc()
        return Finished(run.run_id, "crash", "ShapeLens failed: %s: %s" % (type(error).__name__, one_line(error)))
