"""Evaluates one thing after the other in a workspace. All that an evaluation leaves behind is reset before the next one, and one policy
says which exceptions end more than the evaluation itself:

| what happens | examples | what becomes of it |
|---|---|---|
| user code fails | any exception that user code raises; an exit | it is returned: a failure is data |
| a limit is reached | TooLong | it is raised up to whoever has set that limit by `limits.within` |
| the run is over | DeadlineReached, MemoryError (torch's, too), Interrupted | it is raised up to run.py |
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, FrozenSet, Iterator, Optional

from ...protocol import Mismatch
from ..calls.module_calls import Calls
from ..meta import op_cache
from ..meta.mode import MetaMode
from ..remarks.remarks import Remarks
from ..sandbox import draws
from ..sandbox.exceptions import ProcessEnded, lacks_memory, message_of
from ..sandbox.limits import DeadlineReached, Interrupted, TooLong
from ..trace.frames import Frames
from ..trace.recorder import Recorder
from ..unknown import stand_ins, unknown_sizes
from ..unknown.conditions import ConditionPlace, branches
from .isolation import isolated

RUN_IS_OVER = (DeadlineReached, MemoryError, Interrupted)
EXITS = (SystemExit, KeyboardInterrupt)
NONE_TURNED: FrozenSet[ConditionPlace] = frozenset()
Refuse = Callable[[Mismatch], BaseException]


def is_failure(error: BaseException) -> bool:
    """True if an exception is a failure of user code, which ends only the current evaluation."""
    return not isinstance(error, (*RUN_IS_OVER, TooLong, op_cache.NeedsGraph))


def exit_message(error: BaseException) -> str:
    """Returns the words for the way in which user code wanted to end its process."""
    if isinstance(error, KeyboardInterrupt):
        return "the file called for an interrupt"
    said = message_of(error)
    return "the file called %s" % (said if isinstance(error, ProcessEnded) else "sys.exit(%s)" % said)


class Evaluation:
    """The evaluation under way in a workspace, with all that watches it. `calls` is the watch over its modules."""

    def __init__(self, recorder: Recorder, meta: MetaMode, frames: Frames) -> None:
        self.recorder = recorder
        self.meta = meta
        self.frames = frames
        self.remarks = meta.remarks = Remarks(frames, recorder)
        self.calls = Calls(recorder, meta, frames)
        self._refuse: Optional[Refuse] = None

    def watch_anew(self) -> Calls:
        """Let a new watch see the modules from now on: the one until now keeps what it has seen."""
        self.calls = Calls(self.recorder, self.meta, self.frames, self.calls.defined)
        return self.calls

    def start(
        self, example: int = 0, turned: FrozenSet[ConditionPlace] = NONE_TURNED, *, other_path: bool = False, keeps_modules: bool = False
    ) -> None:
        """Forget what the last evaluation saw.

        example: the number of the example that is evaluated next.
        turned: the conditions on data that go the other way than they would; other_path: all others do.
        keeps_modules: modules that were built before are called now.
        """
        self.recorder.start_example()
        draws.seed(0)
        stand_ins.called.clear()
        branches.start(turned)
        op_cache.start()
        unknown_sizes.start(other_path)
        self.meta.failure, self.meta.inside_layer, self.meta.vague = None, 0, False
        self.remarks.start_example(example)
        if keeps_modules:
            self.calls.start_attempt()
        else:
            self.calls.start_example(example)
        self.meta.recover, self.calls.refuse = self.calls.recovery.operation, self._refuse

    @contextlib.contextmanager
    def ending_at_first_mismatch(self, refuse: Refuse) -> Iterator[None]:
        """Lets no evaluation meanwhile go past a mismatch: it ends with the exception that `refuse` makes of the first one."""
        before, self._refuse = self._refuse, refuse
        self.meta.refuses_odd_masks = True  # Nobody gave it: another one fits.
        try:
            yield
        finally:
            self._refuse = self.calls.refuse = before
            self.meta.refuses_odd_masks = before is not None

    def attempt(self, evaluate: Callable[[], Any]) -> Optional[BaseException]:
        """Evaluate something; the exception that user code ended it with, if any. Raises what ends more than that (see above), and
        op_cache.NeedsGraph where it has to be evaluated again from the start.
        """
        try:
            isolated(evaluate)
        except BaseException as error:  # Whatever user code raises.
            if not is_failure(error):
                raise
            if lacks_memory(error):
                raise MemoryError from error
            return error
        finally:
            self.recorder.on_end()
        return None

    def run(self, start: Callable[[], None], evaluate: Callable[[], Any]) -> Optional[BaseException]:
        """`start`, which has to call the method of that name, then `attempt`: both once more where gradients are asked for."""
        start()
        try:
            return self.attempt(evaluate)
        except op_cache.NeedsGraph:  # From now on no operation is looked up, so that this does not come again.
            return self.run(start, evaluate)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Restores the record and its settings afterwards: the evaluation meanwhile is not the requested one."""
        calls, seen, remarks = self.calls, self.recorder.seen, self.remarks.found
        asked, turned, met = branches.asked, branches.turned, unknown_sizes.state.met
        try:
            yield
        finally:
            unknown_sizes.start()
            self.calls, self.recorder.seen, self.remarks.found = calls, seen, remarks
            branches.asked, branches.turned, unknown_sizes.state.met = asked, turned, met
