"""What a worker says on stderr arrives in pieces (runner/process.py)."""

from __future__ import annotations

import asyncio

from shapelens.runner.process import LONGEST_LINE, lines_of


async def test_a_line_that_comes_in_pieces_is_one_line() -> None:
    stream, said = asyncio.StreamReader(), []
    reading = lines_of(stream)
    for piece in (b"first\nPYTHONHOME = ", b"'/now", b"here'\nlast, without an end \xc3", b"\xa9"):
        stream.feed_data(piece)
        said += await anext(reading)
    stream.feed_eof()
    said += [line async for lines in reading for line in lines]
    assert said == ["first", "PYTHONHOME = '/nowhere'", "last, without an end é"]


async def test_a_line_without_an_end_is_not_gathered_for_ever() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"x" * (2 * LONGEST_LINE + 1))
    stream.feed_eof()
    lengths = [len(line) async for lines in lines_of(stream) for line in lines]
    assert lengths == [2 * LONGEST_LINE, 1]
