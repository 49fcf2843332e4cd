"""The worker's main loop where the platform can fork: torch is loaded once here, and a run happens in a child of this process, or of a
zygote that has loaded what the last run has.

User code never runs in this process. It relays the children's messages, kills them at their deadline, and says how they ended.
"""

from __future__ import annotations

import selectors
import time
from typing import Any, List, Optional

from ..protocol import HEADER, Cancel, Preload, Run, decode
from . import remembered
from .between import INTERNAL, Imported, Learnt, Outdated, Rehearsal, Unsuited
from .confine import GRACE
from .host import Child, Host, kind_of, read
from .prepared import PREPARED
from .zygote import Zygote

QUIET = 1.0  # seconds without a run, after which files are prepared for runs that no zygote can do


class Main(Host):
    """Reads messages from `incoming`, writes to `outgoing`: file descriptors that nobody else knows."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        super().__init__(incoming, outgoing)
        self.zygote: Optional[Zygote] = None
        self.coming: Optional[Zygote] = None  # that still loads
        self.lent: Optional[Run] = None  # the run that the zygote has
        self.lent_until = float("inf")
        self.refused = -1  # the run that the zygote could not do
        self.outdated = False  # what the zygote has loaded
        self.lacking = False  # a library has been loaded since
        self.imported: List[str] = []  # files that are to be prepared for the next runs
        self.prepared_some = False

    def serve(self) -> None:
        """Until `Stop`, or the end of `incoming`."""
        try:
            super().serve()
        finally:
            for zygote in (self.zygote, self.coming):
                if zygote is not None:
                    zygote.stop()

    def _open(self) -> List[int]:
        zygotes = [number for zygote in (self.zygote, self.coming) if zygote is not None for number in (zygote.jobs, zygote.results)]
        children = [child for child in (self.waiting, self.working) if child is not None]
        pipes = [number for child in children for number in (child.job_in, child.results, child.output) if number >= 0]
        return super()._open() + zygotes + pipes

    # --- the server's messages ---

    def _handle(self, message: Any) -> None:
        if isinstance(message, Preload):
            self._preload(message.modules)
        else:
            super()._handle(message)

    def _preload(self, modules: List[str]) -> None:
        from .preload import preload

        standing = self.zygote.modules if self.zygote is not None else set()
        if preload([name for name in modules if name not in standing]):
            self._replace_waiting()
            self.lacking = True

    def _cancel(self, run_id: int) -> None:
        super()._cancel(run_id)
        if self.lent is not None and self.lent.run_id == run_id and self.zygote is not None:
            self.zygote.send(Cancel(run_id))

    def _next(self) -> None:
        if self.working is not None or self.lent is not None or not self.queue:
            return
        if self.lacking:
            self.lacking = False
            for old in (self.zygote, self.coming):
                if old is not None:
                    self._drop(old)
        zygote = self.zygote
        if zygote is None or zygote.root != self.queue[0].root or self.queue[0].run_id == self.refused:
            super()._next()
            return
        self.lent = self.queue.pop(0)
        self.lent_until = time.monotonic() + self.lent.longest + 2 * GRACE  # It watches over its children itself.
        zygote.send(self.lent)

    # --- zygotes ---

    def _raise_zygote(self) -> None:
        """Begin to load what the last run needed, once more."""
        if self.rehearsal is None:
            return
        self.outdated = False
        if self.coming is not None:
            self._drop(self.coming)
        zygote = self.coming = Zygote(self.rehearsal, self._open())
        self.selector.register(zygote.results, selectors.EVENT_READ, lambda: self._relay_zygote(zygote))

    def _drop(self, zygote: Zygote) -> None:
        self.selector.unregister(zygote.results)
        zygote.stop()
        self.zygote = None if zygote is self.zygote else self.zygote
        self.coming = None if zygote is self.coming else self.coming

    def _relay_zygote(self, zygote: Zygote) -> None:
        chunk = read(zygote.results)
        if chunk == b"":  # It has ended, which it does not do by itself once it is ready.
            lent, self.lent = (self.lent, None) if zygote is self.zygote else (None, self.lent)
            self._drop(zygote)
            if lent is not None:
                self.queue.insert(0, lent)
            self._next()
            return
        for frame in zygote.splitter.feed(chunk or b""):
            kind = kind_of(frame)
            if kind == "Stands":
                zygote.ready, zygote.modules = True, set(decode(frame[HEADER.size :]).modules)
            elif kind in INTERNAL:
                self._hear(decode(frame[HEADER.size :]), frame)
            else:
                self._write(frame)
                if kind == "Finished":
                    self._returned()
        self._take_over()

    def _hear(self, message: Any, frame: bytes) -> None:
        if isinstance(message, Learnt):
            remembered.learn(message.additions)
        elif isinstance(message, Imported):
            self.imported += message.files
        elif isinstance(message, Rehearsal):
            self.rehearsal = message.run
            same = [zygote for zygote in (self.zygote, self.coming) if zygote is not None and zygote.root == message.run.root]
            self.outdated |= not same or message.run.run_id == self.refused
        elif isinstance(message, Outdated):
            self.outdated = True
        elif isinstance(message, Unsuited) and self.lent is not None:
            self.refused, run = message.run_id, self.lent
            self.queue.insert(0, run)
            self._returned()

    def _returned(self) -> None:
        """The zygote has done its run, or could not."""
        self.lent = None
        self.lent_until = float("inf")
        self._take_over()
        if self.outdated:
            self._raise_zygote()
        self._next()

    def _take_over(self) -> None:
        """The one that has been loaded takes the place of the one that was used until now."""
        if self.coming is not None and self.coming.ready and self.lent is None:
            if self.zygote is not None:
                self._drop(self.zygote)
            self.zygote, self.coming = self.coming, None

    # --- ends ---

    def _ended(self, process: Child, status: int) -> None:
        super()._ended(process, status)
        if self.outdated and self.working is None:
            self._raise_zygote()

    def _timeout(self) -> Optional[float]:
        if self.lent is not None:
            return max(0.0, self.lent_until - time.monotonic())
        if self.working is None and self.imported:
            return QUIET
        return super()._timeout()

    def _while_idle(self) -> None:
        """Prepare one of the files that runs have imported."""
        if self.working is None and self.lent is None and self.imported:
            self.prepared_some |= PREPARED.prepare(self.imported.pop())
            if not self.imported and self.prepared_some:
                self.prepared_some = False
                self._replace_waiting()

    def _watch_deadline(self) -> None:
        super()._watch_deadline()
        if self.lent is not None and self.zygote is not None and time.monotonic() >= self.lent_until:
            self.zygote.kill()
            self.refused = self.lent.run_id
            self.lent_until = time.monotonic() + 60
