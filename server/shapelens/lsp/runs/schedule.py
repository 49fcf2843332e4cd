"""Decides which document runs next. One runs at a time, the last edited one first. An edit cancels the run of its own document."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from shapelens.lsp.documents.document import Document
from shapelens.lsp.runs.background_fixes import BackgroundFixes
from shapelens.lsp.runs.memory_notes import MemoryNotes
from shapelens.lsp.runs.model_views import ModelViews
from shapelens.timeouts import TIMEOUTS

logger = logging.getLogger(__name__)

# Edits that come faster than runs say what is wrong wait for a part of that time: a run that the next keystroke cancels is in vain.
DEBOUNCE_SHARE = 0.25
LONGEST_DEBOUNCE = 0.2
# So do those that come faster than anybody types, from a held key or a program: the last one should find a process that is ready for it.
BURST_SECONDS = 0.05


def debounce(document: Document) -> float:
    """Seconds to wait for more keystrokes before this document runs. The first one after a pause does not wait."""
    return seconds_to_wait(document.seconds_to_findings, document.seconds_between_edits)


def seconds_to_wait(to_findings: float, between_edits: float) -> float:
    """The wait after an edit. to_findings: the time of the last run until its first findings; between_edits: between the last two edits."""
    return 0.0 if between_edits > max(to_findings, BURST_SECONDS) else min(LONGEST_DEBOUNCE, DEBOUNCE_SHARE * to_findings)


class Schedule:
    """`take_turn` is awaited for one document after the other; `end_turn` makes it return early. Models are shown as a whole, and fixes are
    tried, while there is nothing to run; `reopen` is awaited when there was nothing for a while."""

    def __init__(
        self,
        take_turn: Callable[[Document], Awaitable[None]],
        reopen: Callable[[Document], Awaitable[None]],
        end_turn: Callable[[], None],
        background_fixes: BackgroundFixes,
        model_views: ModelViews,
        memory_notes: MemoryNotes,
        is_enabled: Callable[[Document], bool] = lambda document: True,
    ) -> None:
        """is_enabled: whether a document is to be looked at at all; another one is never run."""
        self._take_turn = take_turn
        self._reopen = reopen
        self._end_turn = end_turn
        self._fix_search = background_fixes
        self._model_views = model_views
        self._memory_notes = memory_notes
        self._is_enabled = is_enabled
        self._is_adding_note = False
        self._seeking_fixes_of: Document | None = None
        self._queue: list[Document] = []  # the last one is next
        self._timers: dict[Document, asyncio.TimerHandle] = {}
        self._pauses: dict[Document, asyncio.TimerHandle] = {}
        self._paused: list[Document] = []  # those that are to be reopened
        self._running: Document | None = None
        self._is_reopening = False  # the one that runs
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()  # what the next one that is over, or forgotten, sets

    def want(self, document: Document, delay: float = 0.0, *, urgent: bool = True) -> None:
        """Run this document after `delay` seconds: before all others if `urgent`, or else after them.

        A run of the same document is cancelled at once. An urgent one also takes the place of another document's run, which is made up for.
        """
        self.forget(document)
        if not self._is_enabled(document):
            return
        if delay > 0:
            self._timers[document] = asyncio.get_running_loop().call_later(delay, self._enqueue, document, urgent)
        else:
            self._enqueue(document, urgent)

    def runs(self, document: Document) -> bool:
        """True if a run of this document is under way."""
        return self._running is document

    def forget(self, document: Document) -> None:
        """This document need not run any more."""
        timer = self._timers.pop(document, None)
        if timer is not None:
            timer.cancel()
        if document in self._queue:
            self._queue.remove(document)
        self._end_pause(document)
        self._fix_search.forget(document)
        if self._running is document:
            self._end_turn()
        self._tell_over()

    def _begin_pause(self, document: Document) -> None:
        self._end_pause(document)
        self._pauses[document] = asyncio.get_running_loop().call_later(TIMEOUTS.pause, self._has_paused, document)

    def _end_pause(self, document: Document) -> None:
        timer = self._pauses.pop(document, None)
        if timer is not None:
            timer.cancel()
        if document in self._paused:
            self._paused.remove(document)

    def _has_paused(self, document: Document) -> None:
        del self._pauses[document]
        self._paused.append(document)
        self._go_on()

    async def over(self, document: Document) -> None:
        """Wait until this document has nothing to run. That it is reopened is not waited for."""
        while document in self._timers or document in self._queue or (self._running is document and not self._is_reopening):
            await self._over.wait()

    async def idle(self, *, reopened: bool) -> None:
        """Wait until nothing is under way for any document. reopened: what waits for a pause in typing is done at once."""
        while True:
            if reopened:
                for document, timer in [*self._pauses.items()]:
                    timer.cancel()
                    self._has_paused(document)
            if self._task is not None and not self._task.done():
                await asyncio.wait({self._task})
            elif self._timers:
                first = min(timer.when() for timer in self._timers.values())
                await asyncio.sleep(max(first - asyncio.get_running_loop().time(), 0.0))
            elif not (reopened and self._pauses):
                return

    def _tell_over(self) -> None:
        self._over.set()
        self._over = asyncio.Event()

    def _enqueue(self, document: Document, urgent: bool) -> None:
        self._timers.pop(document, None)
        self._queue.insert(len(self._queue) if urgent else 0, document)
        if self._seeking_fixes_of is not None:
            self._fix_search.interrupt(self._seeking_fixes_of)
        self._model_views.interrupt()
        if self._is_reopening:
            self._interrupt_reopening()
        elif urgent and self._running is not None and self._running is not document:
            interrupted = self._running
            self._end_turn()
            if interrupted not in self._queue and interrupted not in self._timers:
                self._queue.insert(len(self._queue) - 1, interrupted)
        self._go_on()

    def show_model(self) -> None:
        """A model is wanted as a whole: it comes before the fixes, and after all runs."""
        if self._seeking_fixes_of is not None:
            self._fix_search.interrupt(self._seeking_fixes_of)
        if self._is_adding_note:
            self._model_views.interrupt()
        self._interrupt_reopening()
        self._go_on()

    def look_at(self, document: Document, class_name: str) -> None:
        """Somebody looks at a class: its memory is noted once nothing else wants to run."""
        self._memory_notes.want(document, class_name)
        self._interrupt_reopening()
        self._go_on()

    def _interrupt_reopening(self) -> None:
        """Something that is waited for comes first."""
        if self._is_reopening and self._running is not None:
            self._end_turn()
            self._begin_pause(self._running)

    def _go_on(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while True:
            if not self._queue and self._model_views.is_wanted:
                await self._answer_model()
                continue
            if not self._queue:
                without_fixes = self._fix_search.next()
                if without_fixes is not None:
                    await self._seek_fixes(without_fixes)
                    continue
                without_note = self._memory_notes.next()
                if without_note is not None:
                    await self._add_note(*without_note)
                    continue
                if not self._paused:
                    return
                self._is_reopening = True
                await self._run(self._paused.pop(), self._reopen)
                self._is_reopening = False
                continue
            document = self._queue.pop()
            await self._run(document, self._take_turn)
            if document not in self._queue and document not in self._timers:
                self._begin_pause(document)

    async def _run(self, document: Document, turn: Callable[[Document], Awaitable[None]]) -> None:
        self._running = document
        try:
            await turn(document)
        except Exception:
            logger.exception("the run of %s failed", document.uri)
        finally:
            self._running = None
            self._tell_over()

    async def _answer_model(self) -> None:
        try:
            await self._model_views.answer()
        except Exception:
            logger.exception("a model could not be shown as a whole")
            self._model_views.give_up()

    async def _add_note(self, document: Document, class_name: str) -> None:
        self._is_adding_note = True
        try:
            await self._memory_notes.add(document, class_name)
        except Exception:
            logger.exception("the memory of %s could not be noted", class_name)
            self._memory_notes.leave_out(document, class_name)
        finally:
            self._is_adding_note = False

    async def _seek_fixes(self, document: Document) -> None:
        self._seeking_fixes_of = document
        try:
            await self._fix_search.search(document)
        except Exception:
            logger.exception("the search for fixes in %s failed", document.uri)
            self._fix_search.forget(document)
        finally:
            self._seeking_fixes_of = None
