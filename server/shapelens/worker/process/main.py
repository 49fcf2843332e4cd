"""The worker's main loop where the platform can fork: torch is loaded once here, and a run happens in a child of this process, or of a
zygote that has loaded what the last run has.

User code never runs in this process. It relays the children's messages, kills them at their deadline, and says how they ended.
"""

from __future__ import annotations

import selectors
import time
from dataclasses import replace
from typing import Any, List, Optional

from ...protocol import HEADER, Cancel, Loading, Preload, Run, decode
from ..loading.compile_cache import PREPARED
from ..meta import op_cache
from ..sandbox.confinement import GRACE
from .host import Child, Host, kind_of, read
from .messages import INTERNAL, Imported, Learnt, Outdated, Rehearsal, Unsuited
from .zygote import Zygote

QUIET = 1.0  # seconds without a run, after which files are prepared for runs that no zygote can do


class Main(Host):
    """Reads messages from `incoming`, writes to `outgoing`: file descriptors that nobody else knows."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        super().__init__(incoming, outgoing)
        self.zygote: Optional[Zygote] = None
        self.coming: Optional[Zygote] = None  # that still loads
        self.lent: Optional[Run] = None  # the run that the zygote has
        self.lent_background: Optional[Run] = None  # the one that it does in the background
        self.lent_until = float("inf")
        self.told = -1  # the run of which the server knows that what it needs is being loaded
        self.refused = -1  # the run that no zygote could do
        self.unloadable = ""  # the document that no zygote could load
        self.outdated = False  # what the zygote has loaded
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
        zygotes = [number for zygote in (self.zygote, self.coming) if zygote is not None for number in zygote.pipes]
        return super()._open() + zygotes

    # --- the server's messages ---

    def _handle(self, message: Any) -> None:
        zygote = self.zygote
        if isinstance(message, Preload):
            self._preload(message.modules)
        elif isinstance(message, Run) and message.background and self._suits(message) and zygote is not None:
            self.lent_background = message
            zygote.send(message)
        else:
            super()._handle(message)

    def _preload(self, modules: List[str]) -> None:
        """Load libraries here, where all that is forked has them; a zygote that stands would have to be loaded anew for that first."""
        from .preload import is_library, preload

        if self.zygote is None and self.coming is None:
            preload(modules)
        elif self.zygote is not None:
            self.outdated |= any(name not in self.zygote.modules and is_library(name) for name in modules)

    def _cancel(self, run_id: int) -> None:
        super()._cancel(run_id)
        if self.zygote is not None and any(run is not None and run.run_id == run_id for run in (self.lent, self.lent_background)):
            self.zygote.send(Cancel(run_id))

    def _suits(self, run: Run) -> bool:
        """Whether the zygote can do a run in the background now."""
        free = self.lent_background is None and self.lent is None and not self.queue
        return free and self.zygote is not None and self.zygote.root == run.root and self.coming is None

    def _prepare(self) -> None:
        """Runs that no zygote can do are rare: a process is forked for such a one when it comes."""

    def _next(self) -> None:
        if self.working is not None or self.lent is not None or not self.queue:
            return
        run = self.queue[0]
        if run.run_id == self.refused or run.file == self.unloadable:
            super()._prepare()
            super()._next()
            return
        zygote = next((each for each in (self.zygote, self.coming) if each is not None and each.root == run.root), None)
        if zygote is not None and zygote is self.zygote:
            self.lent = self.queue.pop(0)
            self.lent_until = time.monotonic() + run.longest + 2 * GRACE  # It watches over its children itself.
            zygote.send(run)
            return
        if zygote is None:
            self._raise_zygote(run, awaited=True)
        if self.told != run.run_id:
            self.told = run.run_id
            self.send(Loading(run.run_id))

    # --- zygotes ---

    def _raise_zygote(self, run: Optional[Run], *, awaited: bool) -> None:
        """Begin to load what a run needs: it waits for that, or it was the last one, and what it needed is loaded once more."""
        if run is None:
            return
        self.outdated = False
        if self.coming is not None:
            self._drop(self.coming)
        zygote = self.coming = Zygote(run, self._open(), awaited=awaited)
        self.selector.register(zygote.results, selectors.EVENT_READ, lambda: self._relay_zygote(zygote))
        self.selector.register(zygote.output, selectors.EVENT_READ, lambda: self._relay_loading(zygote))

    def _drop(self, zygote: Zygote) -> None:
        for number in (zygote.results, zygote.output):
            if number in self.selector.get_map():
                self.selector.unregister(number)
        zygote.stop()
        self.zygote = None if zygote is self.zygote else self.zygote
        self.coming = None if zygote is self.coming else self.coming

    def _relay_loading(self, zygote: Zygote) -> None:
        """What is printed while it loads is told to whoever waits for that; later it prints nothing."""
        chunk = read(zygote.output)
        if chunk == b"":
            self.selector.unregister(zygote.output)
        elif chunk and zygote.awaited >= 0:
            zygote.printed = self._tell(zygote.awaited, chunk, zygote.printed)

    def _relay_zygote(self, zygote: Zygote) -> None:
        chunk = read(zygote.results)
        if chunk == b"":  # It has ended, which it does not do by itself once it is ready.
            self._has_gone(zygote)
            return
        for frame in zygote.splitter.feed(chunk or b""):
            kind = kind_of(frame)
            if kind == "Stands":
                zygote.ready, zygote.modules = True, set(decode(frame[HEADER.size :]).modules)
                self._drain(zygote.output, lambda: self._relay_loading(zygote))
                self.unloadable = ""
            elif kind in INTERNAL:
                self._hear(decode(frame[HEADER.size :]), frame)
            else:
                self._write(frame)
                if kind == "Finished":
                    self._returned(decode(frame[HEADER.size :]).run_id)
        self._take_over()
        self._next()

    def _has_gone(self, zygote: Zygote) -> None:
        lent, self.lent = (self.lent, None) if zygote is self.zygote else (None, self.lent)
        if zygote is self.zygote:
            self._take_back()
        if not zygote.ready:
            self.unloadable = zygote.file  # A run of its own says why.
        self._drop(zygote)
        if lent is not None:
            self.refused = lent.run_id
            self.queue.insert(0, lent)
        self._next()

    def _hear(self, message: Any, frame: bytes) -> None:
        if isinstance(message, Learnt):
            op_cache.learn(message.additions)
        elif isinstance(message, Imported):
            self.imported += message.files
        elif isinstance(message, Rehearsal):
            self.rehearsal = message.run
            if message.run.file == self.unloadable:
                self.unloadable = ""
            same = [zygote for zygote in (self.zygote, self.coming) if zygote is not None and zygote.root == message.run.root]
            self.outdated |= not same
        elif isinstance(message, Outdated):
            self.outdated = True
        elif isinstance(message, Unsuited) and self.lent_background is not None and self.lent_background.run_id == message.run_id:
            self._take_back()
        elif isinstance(message, Unsuited) and self.lent is not None and self.zygote is not None:
            self.queue.insert(0, self.lent)
            self.lent, self.lent_until = None, float("inf")
            self._take_back()
            if self.zygote.awaited == message.run_id:
                self.refused = message.run_id
            self._drop(self.zygote)

    def _take_back(self) -> None:
        """The run in the background is done like any other, as the zygote could not do it."""
        if self.lent_background is not None:
            self.queue.append(replace(self.lent_background, background=False))
            self.lent_background = None

    def _returned(self, run_id: int) -> None:
        """The zygote has done a run."""
        if self.lent_background is not None and self.lent_background.run_id == run_id:
            self.lent_background = None
        if self.lent is not None and self.lent.run_id == run_id:
            self.lent = None
            self.lent_until = float("inf")
        self._take_over()
        if self.outdated:
            self._raise_zygote(self.rehearsal, awaited=False)

    def _take_over(self) -> None:
        """The one that has been loaded takes the place of the one that was used until now."""
        if self.coming is not None and self.coming.ready and self.lent is None and self.lent_background is None:
            if self.zygote is not None:
                self._drop(self.zygote)
            self.zygote, self.coming = self.coming, None

    # --- ends ---

    def _ended(self, process: Child, status: int) -> None:
        super()._ended(process, status)
        if self.outdated and self.working is None:
            self._raise_zygote(self.rehearsal, awaited=False)

    def _timeout(self) -> Optional[float]:
        ends = [self.lent_until] if self.lent is not None else []
        if self.coming is not None:
            ends.append(self.coming.kill_at)
        if self.working is not None:
            ends.append(self.working.kill_at)
        if ends:
            return max(0.0, min(ends) - time.monotonic())
        return QUIET if self.imported else super()._timeout()

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
            self.lent_until = time.monotonic() + 60
        if self.coming is not None and time.monotonic() >= self.coming.kill_at:
            self.coming.kill()
            self.coming.kill_at = time.monotonic() + 60
