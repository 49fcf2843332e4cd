"""Positions moved through edits, against text in which every character knows where it came from."""

from __future__ import annotations

import random

import pytest

from shapelens.source.position_map import PositionMap, TextEdit, apply
from shapelens.source.positions import Lines, Position, Span


def span(text: str, part: str, nth: int = 0) -> Span:
    start = -1
    for _ in range(nth + 1):
        start = text.index(part, start + 1)
    return Lines(text).span(start, start + len(part))


OLD = "a = one\r\nb = two + two\r\nc = three\r\n"


@pytest.mark.parametrize(
    ("replaced", "new_text", "asked", "nth", "alive"),
    [
        ("a = one", "a = one\r\nx = 1", "two", 1, True),  # a line more above
        ("a = one\r\n", "", "three", 0, True),  # a line less above
        ("a = ", "alpha = ", "one", 0, True),  # longer on the same line, before
        (" + two", " + two + 4", "two", 0, True),  # behind on the same line
        ("two + ", "", "two", 1, True),
        ("two + two", "4", "two", 1, False),  # edited away
        ("thre", "thr", "three", 0, False),  # changed inside
        ("\r\nb = ", "; b = ", "two", 0, True),  # two lines joined
        ("two + ", "two +\r\n\t", "two", 1, True),  # one line split
    ],
)
def test_one_edit(replaced: str, new_text: str, asked: str, nth: int, alive: bool) -> None:
    edit = TextEdit(span(OLD, replaced), new_text)
    new = apply(OLD, [edit])
    for moved in (PositionMap.of([edit]), PositionMap.edit(edit.span, new_text)):
        found = moved.map(span(OLD, asked, nth))
        assert (found is not None) == alive
        if found is not None:
            assert Lines(new).text_of(found) == asked


def test_an_insertion_at_the_start_moves_and_one_at_the_end_does_not() -> None:
    one = Span(1, 4, 1, 7)
    assert PositionMap.edit(Span(1, 4, 1, 4), "++").map(one) == Span(1, 6, 1, 9)
    assert PositionMap.edit(Span(1, 7, 1, 7), "++").map(one) == one
    assert PositionMap.edit(Span(1, 5, 1, 5), "+").map(one) is None


def test_text_typed_and_deleted_again_leaves_no_trace() -> None:
    typed = PositionMap.edit(Span(1, 5, 1, 5), "xyz").then(PositionMap.edit(Span(1, 5, 1, 8), ""))
    assert typed.map(Span(1, 4, 1, 7)) == Span(1, 4, 1, 7)


def test_several_edits_of_one_text_apply_at_once() -> None:
    edits = [TextEdit(span(OLD, "three"), "3"), TextEdit(span(OLD, "one"), "1\r\n\r\n"), TextEdit(span(OLD, "b"), "beta")]
    new = apply(OLD, edits)
    assert new == "a = 1\r\n\r\n\r\nbeta = two + two\r\nc = 3\r\n"
    found = PositionMap.of(edits).map(span(OLD, "two", 1))
    assert found == span(new, "two", 1)


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply(OLD, [TextEdit(Span(1, 0, 1, 4), "x"), TextEdit(Span(1, 3, 1, 5), "y")])


def test_many_random_edits_in_a_row_are_exact() -> None:
    """Every span that kept its characters, side by side, is found where they are; every other one is None."""
    chance = random.Random(7)
    for _ in range(150):
        size = chance.randrange(3, 20)
        characters = [(number, chance.choice("ab\n")) for number in range(size)]
        old = Lines("".join(letter for _, letter in characters))
        moved, fresh = PositionMap(), size
        for _ in range(chance.randrange(1, 7)):
            lines = Lines("".join(letter for _, letter in characters))
            start = chance.randrange(len(characters) + 1)
            end = min(len(characters), start + chance.choice([0, 0, 1, 3]))
            new = [(fresh + index, chance.choice("xy\n")) for index in range(chance.choice([0, 1, 1, 3]))]
            fresh += len(new)
            moved = moved.then(PositionMap.edit(lines.span(start, end), "".join(letter for _, letter in new)))
            characters[start:end] = new
        now = Lines("".join(letter for _, letter in characters))
        place = {number: index for index, (number, _) in enumerate(characters)}
        for start in range(size):
            for end in range(start + 1, size + 1):
                places = [place.get(number, -1) for number in range(start, end)]
                kept = places[0] >= 0 and places == list(range(places[0], places[0] + end - start))
                assert moved.map(old.span(start, end)) == (now.span(places[0], places[-1] + 1) if kept else None)


def test_the_difference_of_two_texts_keeps_what_they_share() -> None:
    old = "".join(f"line {number} = f({number})\r\n" for number in range(300))
    new = old.replace("line 50 ", "renamed ").replace("line 100 = f(100)\r\n", "").replace("f(200)", "f(200, more)")
    moved = PositionMap.between(old, new)
    for part, alive in {"f(20)": True, "f(50)": True, "f(100)": False, "f(150)": True, "f(200": True, "f(299)": True}.items():
        found = moved.map(span(old, part))
        assert (found is not None) == alive
        if found is not None:
            assert Lines(new).text_of(found) == part
    assert PositionMap.between(old, old).map(Span(9, 1, 9, 3)) == Span(9, 1, 9, 3)
    assert PositionMap.between("", "a\nb").map(Span(1, 0, 1, 0)) == Span.of(Position(2, 1), Position(2, 1))


def test_typing_for_a_long_time_stays_one_change() -> None:
    moved = PositionMap()
    for column in range(500):
        moved = moved.then(PositionMap.edit(Span(3, column, 3, column), "x"))
    assert moved.map(Span(3, 4, 3, 8)) == Span(3, 504, 3, 508)
    assert len(moved._changes) == 1
