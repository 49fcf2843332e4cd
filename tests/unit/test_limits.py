"""Limits of time (worker/sandbox/limits.py), with the kernel's own timer."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from shapelens.worker.sandbox.limits import DeadlineReached, limit_time, no_time_limit, undisturbed

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
