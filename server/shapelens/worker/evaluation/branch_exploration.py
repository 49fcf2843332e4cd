"""Further evaluations of an example in which conditions on data go the other way: what only runs there is shown too, and a size that is
another one there is unknown. What fails there is not reported, as it may be there to fail."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Optional

from ..sandbox.limits import DeadlineReached, Interrupted
from ..trace.dim_names import Sizes
from ..unknown import unknown_sizes
from ..unknown.conditions import MOST_PATHS, Place, branches, gave_up
from .expression import evaluate
from .probing import add_other_path

if TYPE_CHECKING:
    from ..run import Job


def look_again(job: Job, index: int, code: CodeType, names: Dict[str, Any], sizes: Sizes, alone: List[Place]) -> None:
    """Add to what `job` has seen of an example what the other paths show: all conditions turned at once, then each of `alone` by itself.

    The state of the job is that of its own path again afterwards. Raises DeadlineReached, MemoryError and KeyboardInterrupt.
    """
    calls, seen, found = job.calls, job.recorder.seen, job.remarks.found
    asked, turned, met = branches.asked, branches.turned, unknown_sizes.state.met
    try:
        again: FrozenSet[Place] = frozenset()
        for _ in range(MOST_PATHS):
            error = _evaluated(job, index, code, names, sizes, again, other_path=True)
            last = branches.last(job.frames.is_user_file)
            if not last or not gave_up(error, job.calls.mismatches, job.frames.is_user_file):
                break
            again = again | last  # That condition guards what is there to fail: what comes after it is to be seen too.
        add_other_path(seen, job.recorder.seen)
        add_other_path(calls.seen, job.calls.seen)
        for place in alone:
            error = _evaluated(job, index, code, names, sizes, turned ^ {place}, other_path=False)
            if not gave_up(error, job.calls.mismatches, job.frames.is_user_file):
                add_other_path(seen, job.recorder.seen)
                add_other_path(calls.seen, job.calls.seen)
    finally:
        unknown_sizes.start()
        job.calls, job.recorder.seen, job.remarks.found = calls, seen, found
        branches.asked, branches.turned, unknown_sizes.state.met = asked, turned, met


def _evaluated(
    job: Job, index: int, code: CodeType, names: Dict[str, Any], sizes: Sizes, turned: FrozenSet[Place], other_path: bool
) -> Optional[BaseException]:
    job.calls = job.next_calls()
    job.start(index, turned)
    unknown_sizes.start(other_path)
    try:
        evaluate(code, names, sizes, {})
    except (DeadlineReached, Interrupted, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as raised:  # Whatever user code raises where it takes data to be wrong.
        return raised
    return None
