"""A run from its submission until its end is told: it may be done several times, each time without what has ended it.

The worker names the example that it evaluates and the class that it searches for (`Evaluating`). A class that ended the search is left
out. So is a given example; what it saw before is put back (`ended_examples.py`). One that C code has ended is evaluated once more by
itself, with word of each line (`Run.line_by_line`). A statement that ends the load, or never ends, is left out like one that failed
(`left_out_statements.py`). A run whose worker was killed from elsewhere is done again, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shapelens import protocol
from shapelens.runner.ended_examples import EndedExamples
from shapelens.runner.left_out_statements import KnownStatements, LeftOutStatements

logger = logging.getLogger(__name__)

# Outcomes that code of the document is to blame for.
ENDED_BY_CODE = ("deadline", "memory", "exit", "crash")


@dataclass
class Job:
    """A run as it is now, and how it has ended so far."""

    run: protocol.Run
    on_trace: Callable[[protocol.Traced], None]
    finished: asyncio.Future[protocol.Finished]
    cancelled: asyncio.Event
    on_profile: Callable[[protocol.ModelProfile], None]
    on_report: Callable[[protocol.DeepReport], None]
    known_statements: KnownStatements
    loads: bool = False  # what it imports, in the worker
    target: str = ""  # the class whose example is evaluated, or searched for
    number: int = -1  # of the example that is evaluated, among those of the run
    first_end: protocol.Finished | None = None  # how the run ended that is done again without what ended it
    is_repeated: bool = False  # it ended by an example or a class that is left out now, and has not begun again yet
    was_killed: bool = False  # the process that did it was, by a signal from elsewhere
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_loaded: bool = False  # the document is, of the run as it is now
    ended_examples: EndedExamples = field(init=False)
    left_out_statements: LeftOutStatements = field(init=False)

    def __post_init__(self) -> None:
        self.run = self.known_statements.without(self.run)
        self.left_out_statements = LeftOutStatements(self.known_statements)
        self.ended_examples = EndedExamples(self.run)

    def tell(self, traced: protocol.Traced) -> None:
        """The run has told of a stage."""
        if self.left_out_statements.are_looked_for:
            return
        self._say(self.ended_examples.told(traced))

    def _say(self, traced: protocol.Traced | None) -> None:
        try:
            if traced is not None:
                self.on_trace(traced)
        except Exception:
            logger.exception("a trace of run %d could not be used", self.run.run_id)

    def finish(self, outcome: str, detail: str = "") -> None:
        """The run has ended, and is not done again: that is told, unless it was."""
        self.ended.set()
        if not self.finished.done():
            self.finished.set_result(protocol.Finished(self.run.run_id, outcome, detail))

    def end(self, finished: protocol.Finished) -> None:
        """The run has ended: that is told, unless it is done again without the example, class or statement that has ended it."""
        if self.finished.done() or self.is_repeated:
            return
        if finished.outcome not in ("ok", *ENDED_BY_CODE) or self.cancelled.is_set():
            self.finish(finished.outcome, finished.detail)
            return
        self.ended.set()
        if self.left_out_statements.are_looked_for:
            found = self.left_out_statements.found(finished)
            if found is not None:
                self.run, self.is_repeated, self.first_end = found, True, None
                return
            finished = self.first_end or finished
        first, is_by_code = self.first_end, finished.outcome in ENDED_BY_CODE and not self.ended_examples.are_looked_at
        if is_by_code and first is None:
            first = self.first_end = replace(finished, target=self.target)
        if first is not None:
            self.is_repeated = (is_by_code and self._leave_out(finished)) or self._look_at_next()
            if self.is_repeated:
                return
            self._say(self.ended_examples.last_word())
            finished = replace(first, read=sorted({*first.read, *finished.read}))
        self.finished.set_result(replace(finished, left_out=len(self.run.left_out)))

    def _look_at_next(self) -> bool:
        """Have an example that has not said where it ended evaluated once more; whether there is one."""
        run = self.ended_examples.next_to_look_at(self.run)
        self.run = run or self.run
        return run is not None

    def _leave_out(self, finished: protocol.Finished) -> bool:
        """Have the run done without the example or the class that has ended it; whether that is known, and something is left."""
        search = self.run.search
        if not self.is_loaded:
            look = self.left_out_statements.look(self.run)
            self.run = look or self.run
            return look is not None
        if self.number >= 0:
            self.run = self.ended_examples.leave_out(self.run, self.number, finished)
            return bool(self.run.examples) or (search is not None and bool(search.classes))
        if search is None or self.target not in search.classes:
            return False
        self.run = replace(self.run, search=replace(search, classes=[name for name in search.classes if name != self.target]))
        return self.run.search is not None and bool(self.run.search.classes)
