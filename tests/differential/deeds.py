"""What people do to a text: each step is the text then, and the spans that changed, or None for all of it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

from shapelens.source.position_map import common_prefix, common_suffix

KEYS_AT_ONCE = 400  # of one session, at most
OTHER_MARK = "\n# end of what was typed\n"
SPAN = re.compile(r"^( *)(?:async )?(?:def|class) \w+", re.MULTILINE)

Step = tuple[str, "list[tuple[int, int, str]] | None"]


def put(text: str, start: int, end: int, new: str) -> Step:
    """One edit."""
    return text[:start] + new + text[end:], [(start, end, new)]


def undone(text: str, before: str) -> Step:
    """The edit that makes a text what it was before."""
    start = common_prefix(text, before)
    same = common_suffix(text[start:], before[start:])
    return before, [(start, len(text) - same, before[start : len(before) - same])]


def _blocks(text: str) -> list[tuple[int, int]]:
    """The spans of functions and classes that are short enough to be typed."""
    found = []
    for match in SPAN.finditer(text):
        indent = len(match.group(1))
        end = re.compile(rf"^ {{0,{indent}}}\S", re.MULTILINE).search(text, match.end())
        stop = end.start() if end is not None else len(text)
        if stop - match.start() < 4000:
            found.append((match.start(), stop))
    return found or [(0, min(len(text), 400))]


def typed_again(text: str, chance: random.Random) -> Iterator[Step]:
    """A part of a function is cut and typed again, with typos that are taken back."""
    start, stop = chance.choice(_blocks(text))
    if stop - start > KEYS_AT_ONCE:
        start = chance.randrange(start, stop - KEYS_AT_ONCE)
        stop = start + KEYS_AT_ONCE
    part = text[start:stop]
    now, changed = put(text, start, stop, "")
    yield now, changed
    for index, key in enumerate(part):
        at = start + index
        if chance.random() < 0.04:
            now, changed = put(now, at, at, chance.choice("abx(1)[\" :,.'"))
            yield now, changed
            now, changed = put(now, at, at + 1, "")
            yield now, changed
        now, changed = put(now, at, at, key)
        yield now, changed


def numbers(text: str, chance: random.Random) -> Iterator[Step]:
    """Numbers are changed, which is what makes mistakes of shapes, and some are changed back."""
    before: list[str] = []
    for _ in range(6):
        places = list(re.finditer(r"(?<![\w.])\d+(?![\w.])", text))
        if not places:
            return
        place = chance.choice(places)
        before.append(text)
        for size in range(len(place.group()), 0, -1):
            text, changed = put(text, place.start() + size - 1, place.start() + size, "")
            yield text, changed
        for index, key in enumerate(str(chance.choice([0, 1, 2, 3, 5, 7, 16, 48, 100]))):
            text, changed = put(text, place.start() + index, place.start() + index, key)
            yield text, changed
        if chance.random() < 0.5:
            yield undone(text, before[-1])
            text = before.pop()


def cut_and_pasted(text: str, chance: random.Random) -> Iterator[Step]:
    """Random spans are cut and pasted elsewhere; then all is undone, step by step."""
    undo: list[str] = []
    for _ in range(chance.randrange(1, 6)):
        undo.append(text)
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice([1, 5, 40, 400]))
        part = text[start:end]
        text, changed = put(text, start, end, "")
        yield text, changed
        undo.append(text)
        at = chance.randrange(len(text) + 1)
        text, changed = put(text, at, at, part)
        yield text, changed
    for earlier in reversed(undo):
        yield undone(text, earlier)
        text = earlier


def lines_moved(text: str, chance: random.Random) -> Iterator[Step]:
    """Lines are commented out, doubled, moved and taken away."""
    for _ in range(8):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        start = sum(len(line) + 1 for line in lines[:at])
        end = start + len(lines[at])
        deed = chance.choice(["comment", "double", "remove", "indent", "swap"])
        undo = text
        if deed == "comment":
            text, changed = put(text, start, start, "# ")
        elif deed == "double":
            text, changed = put(text, start, start, lines[at] + "\n")
        elif deed == "remove":
            text, changed = put(text, start, min(end + 1, len(text)), "")
        elif deed == "indent":
            text, changed = put(text, start, start, "    ")
        else:
            other = lines[at + 1] if at + 1 < len(lines) else ""
            text, changed = put(text, start, min(end + 1 + len(other), len(text)), other + "\n" + lines[at])
        yield text, changed
        if chance.random() < 0.7:
            yield undone(text, undo)
            text = undo


def several_cursors(text: str, chance: random.Random) -> Iterator[Step]:
    """A name is changed at all places where it stands at once, key by key, and back."""
    words = [word for word, count in Counter(re.findall(r"[A-Za-z_]\w{2,}", text)).items() if 2 <= count <= 12]
    if not words:
        return
    word = chance.choice(words)
    for key in ("x", "y", "_", "", "", ""):
        found = list(re.finditer(rf"\b{re.escape(word)}\b", text))
        spans = [(m.end(), m.end(), key) if key else (m.end() - 1, m.end(), "") for m in reversed(found)]
        for start, end, new in spans:
            text = text[:start] + new + text[end:]
        word = word + key if key else word[:-1]
        yield text, spans


def replaced(text: str, chance: random.Random) -> Iterator[Step]:
    """The whole file becomes another text, or none, and comes back."""
    half, renamed, other_ends = text[: len(text) // 2], text.replace("self", "this"), text.replace("\n", "\r\n")
    for other in ("", half, "import torch\n", renamed, text + OTHER_MARK, other_ends):
        if chance.random() < 0.5:
            yield other, None
            yield text, None


DEEDS = (typed_again, typed_again, typed_again, typed_again, numbers, numbers, cut_and_pasted, lines_moved, several_cursors, replaced)
