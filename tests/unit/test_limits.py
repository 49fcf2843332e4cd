"""Limits of time (worker/sandbox/limits.py), with the kernel's own timer."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shapelens.worker.meta.training_loops import LOOP_SECONDS, Loop
from shapelens.worker.rewrite.site_table import SiteTable
from shapelens.worker.sandbox.clocks import RunClock
from shapelens.worker.sandbox.limits import DeadlineReached, limit_time, no_time_limit, undisturbed, within
from shapelens.worker.trace.recorder import Recorder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no interval timers")

MESSAGE = b"x" * (1 << 22)  # more than a pipe holds


def test_a_message_is_sent_whole_though_its_run_is_out_of_time() -> None:
    incoming, outgoing = os.pipe()
    received = bytearray()

    def read() -> None:
        threading.Event().wait(0.1)  # The writer's time is up by then, with most of the message still to be written.
        while len(received) < len(MESSAGE):
            received.extend(os.read(incoming, 1 << 16))

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(outgoing, "wb") as stream:
        try:
            with pytest.raises(DeadlineReached):
                limit_time(0.02)
                with undisturbed():
                    stream.write(MESSAGE)
                    stream.flush()
                threading.Event().wait(5)
                pytest.fail("the limit is forgotten")
        finally:
            no_time_limit()
        reader.join(5)
    os.close(incoming)
    assert bytes(received) == MESSAGE


def test_without_that_the_limit_cuts_it() -> None:
    incoming, outgoing = os.pipe()
    try:
        with pytest.raises(DeadlineReached):
            limit_time(0.02)
            os.write(outgoing, MESSAGE)
    finally:
        no_time_limit()
        os.close(incoming)
        os.close(outgoing)


def compute(seconds: float) -> None:
    """Take so much of a processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def wait(seconds: float) -> None:
    """Wait, as a hang does that takes no processor."""
    threading.Event().wait(seconds)


def ends_in(limited: Callable[[], None], seconds: float, meanwhile: Callable[[int], None] = lambda pid: None) -> tuple[str, float]:
    """How something ends that a process of its own has some seconds for, and after how long."""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            limit_time(seconds)
            limited()
        except BaseException as error:
            os._exit(1 if isinstance(error, DeadlineReached) else 2)
        os._exit(0)
    meanwhile(pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return ("ok", "deadline", "error")[code], time.monotonic() - start


def suspended(pid: int) -> None:
    """Stop a process for longer than its limit, and let it go on."""
    wait(0.2)
    os.kill(pid, signal.SIGSTOP)
    wait(3.5)  # A process on a busy machine may have begun late: its timer has to be `clocks.LATE` behind its time all the same.
    os.kill(pid, signal.SIGCONT)


def in_parts() -> None:
    """Computes under a limit of its own within that of the whole."""
    with within(0.9):
        compute(0.5)


@pytest.mark.parametrize("limited", [lambda: compute(0.5), lambda: wait(0.7), in_parts], ids=["computes", "waits", "in parts"])
def test_time_in_which_a_process_is_suspended_does_not_count(limited: Callable[[], None]) -> None:
    assert ends_in(limited, 1.2, suspended)[0] == "ok"


@pytest.mark.parametrize("limited", [lambda: compute(60), lambda: wait(60)], ids=["computes", "waits"])
def test_what_has_no_end_is_ended_after_that_too(limited: Callable[[], None]) -> None:
    outcome, seconds = ends_in(limited, 1.0, suspended)
    assert outcome == "deadline" and seconds < 20


def test_waiting_is_ended_in_time_though_it_is_no_work() -> None:
    outcome, seconds = ends_in(lambda: wait(60), 0.5)
    assert outcome == "deadline" and 0.45 < seconds < 1.4, "three times as long would be 1.5 s"


ON_LINUX = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not say who has waited for a processor")


@contextmanager
def others(count: int) -> Iterator[None]:
    """So many processes want the processor that this one is bound to."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    pids: list[int] = []
    try:
        for _ in range(count):
            pids.append(os.fork())
            if pids[-1] == 0:
                compute(60)
                os._exit(0)
        yield
    finally:
        os.sched_setaffinity(0, processors)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@ON_LINUX
def test_time_that_others_take_does_not_count() -> None:
    with others(1):
        clock, start = RunClock(), time.monotonic()
        compute(0.5)
        counted, wall = clock(), time.monotonic() - start
    assert wall > 0.8, "the other one has had its share"
    assert 0.45 < counted < 0.8 * wall


@ON_LINUX
def test_a_loop_is_not_cut_for_the_time_that_others_take() -> None:
    with others(4):
        loop, start = Loop(sys._getframe(), Recorder(SiteTable(), lambda module, site: None)), time.monotonic()
        compute(LOOP_SECONDS / 2)
        goes_on, wall = loop.goes_on(1), time.monotonic() - start
    assert wall > LOOP_SECONDS, "the others have had their share"
    assert goes_on
    compute(LOOP_SECONDS)
    assert not loop.goes_on(2)
