"""What is wrong after an edit, said ahead of the run itself: an evaluation that takes over from the rehearsal what the edit has left alone.

The run follows, and takes over nothing: should it find something else, that is said then.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from ...protocol import ExampleRequest, LayerSeen
from ..calls.module_calls import Calls, shift
from ..evaluation.early_findings import say_what_is_wrong
from ..evaluation.expression import evaluate as evaluate_expression
from ..evaluation.probing import as_seen
from ..loading.hot_patch import Loaded
from ..meta import op_cache
from ..rewrite.sites import UNWATCHED
from ..sandbox.limits import DeadlineReached, Interrupted, TooLong
from ..sandbox.output import unheard
from ..trace.progress import SHOWING_SECONDS
from ..trace.recorder import Recorder
from ..unknown import unknown_sizes
from ..unknown.conditions import branches
from .recording import Recording, set_current
from .replay import Reuse

if TYPE_CHECKING:
    from ..run import Job

# What has to be saved of the time that the examples took as they were rehearsed: else they are not worth being evaluated twice.
WORTH_SECONDS = 0.002
WORTH_SHARE = 0.25

Asked = Tuple[str, str]


class Rehearsed:
    """What the examples of a run that was rehearsed built and computed, for the run that comes next."""

    def __init__(self) -> None:
        self.is_open = True  # examples are still being rehearsed
        self.recordings: Dict[Asked, Recording] = {}
        self.went_well = True  # nothing was wrong
        self.seen: Any = None  # what sites held: it takes as long to be given back as a small evaluation
        self._patched: Tuple[Optional[Loaded], Optional[Recorder]] = None, None
        self.is_undisturbed: Callable[[], bool] = lambda: False  # whether what is loaded still is as it was loaded

    def recording_of(self, request: ExampleRequest) -> Optional[Recording]:
        """What was written down of an example."""
        return self.recordings.get((request.target, request.expression))

    def for_patched(self, loaded: Loaded, recorder: Recorder) -> Rehearsed:
        """The same, for a document that has been patched since."""
        self.is_open, self._patched = False, (loaded, recorder)
        self.is_undisturbed = partial(loaded.is_as_it_was, at_once=False)  # What is wrong has been said by then.
        return self

    def gone(self) -> Optional[FrozenSet[int]]:
        """The sites of functions that have other code now; None where it cannot be told what that concerns."""
        loaded, recorder = self._patched
        if loaded is None or recorder is None:
            return None
        replaced = loaded.replaced()
        unwatched = any(recorder.sites[number].kind == "entry" and recorder.sites[number].name == UNWATCHED for number in replaced)
        return None if unwatched else replaced


def recorded(job: Job, request: ExampleRequest, evaluate: Callable[[], Optional[BaseException]]) -> Optional[BaseException]:
    """What `evaluate` gives: the exception that ended an example. Where that is rehearsed, what it builds and computes is written down."""
    rehearsed = job.workspace.rehearsed
    if rehearsed is None or not rehearsed.is_open:
        return evaluate()
    recording = job.calls.recording = Recording(job.calls)
    set_current(recording)
    try:
        error = evaluate()
    finally:
        set_current(None)
        job.calls.recording = None
    rehearsed.seen = job.recorder.seen
    rehearsed.went_well &= error is None and not job.calls.mismatches
    if not op_cache.state.off:  # Else it was evaluated twice.
        recording.finish()
        rehearsed.recordings[request.target, request.expression] = recording
    return error


class Abandoned(Exception):
    """An evaluation came to something of which only the run itself can tell."""


def say_quickly(job: Job, names: Dict[str, Any], rehearsed: Rehearsed) -> bool:
    """Send what is wrong, if that can be told by taking over from what was rehearsed; whether the run may go on with what is loaded."""
    found = [rehearsed.recording_of(request) for request in job.run.examples]
    recordings = [recording for recording in found if recording is not None]
    seconds = sum(recording.seconds for recording in recordings)
    if rehearsed.is_open or len(recordings) < len(found) or seconds < WORTH_SECONDS:
        return True
    gone = rehearsed.gone()
    if gone is None or sum(recording.seconds_without(gone) for recording in recordings) < max(WORTH_SECONDS, WORTH_SHARE * seconds):
        return True
    whole, calls = job.trace, job.calls
    job.trace = replace(whole, examples=[], mismatches=list(whole.mismatches), notes=list(whole.notes))
    evaluated: List[Tuple[int, Calls]] = []
    first = 0
    try:
        for index, recording in enumerate(recordings):
            job.calls = Calls(job.recorder, job.meta, job.frames, calls.defined)
            job.calls.recording = job.calls.reuse = Reuse(recording, gone, job.calls)
            _evaluate(job, index, names, first)
            evaluated.append((first, job.calls))
            first += len(job.calls.modules)

        def layers(wanted: Set[int]) -> List[LayerSeen]:
            found: List[LayerSeen] = []
            for start, watched in evaluated:
                own = {index - start for index in wanted if start <= index < start + len(watched.modules)}
                found += watched.layers(start, as_seen, own) if own else []
            return found

        say_what_is_wrong(job, job.trace, layers)
        job.progress.after(SHOWING_SECONDS, job.known)
    except Abandoned:
        pass
    finally:
        set_current(None)
        job.trace = whole
        job.calls = job.next_calls()
    return rehearsed.is_undisturbed()


def _evaluate(job: Job, index: int, names: Dict[str, Any], first_layer: int) -> None:
    """Evaluate an example; what is wrong goes to the job's trace. Raises Abandoned."""
    code = job.compiled(job.run.examples[index])
    if code is None:
        raise Abandoned
    example, error = job.trace.examples[index], None
    job.start(index)
    job.recorder.reached = set()
    job.recorder.is_brief = True
    set_current(job.calls.reuse)
    try:
        with unheard():  # The run will print it.
            evaluate_expression(code, names, {}, example.dims)
    except (DeadlineReached, Interrupted, TooLong):
        raise
    except Exception as raised:  # Whatever user code raises.
        error = raised
    except BaseException as raised:  # Among them what asks for gradients.
        raise Abandoned from raised
    finally:
        job.recorder.is_brief = False
        set_current(None)
    if branches.asked or unknown_sizes.state.cut:
        raise Abandoned
    example.reached = job.recorder.functions(job.run.file)
    for mismatch in job.calls.mismatches:
        shift(mismatch, first_layer)
    job.trace.mismatches += job.calls.mismatches
    if error is not None:
        job.failed(example, index, error, first_layer)
