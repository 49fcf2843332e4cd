"""Reads what a docstring says of parameters and results: Google's style, NumPy's, Sphinx's, plain lists.

The search reads shapes in it as evidence, a lint holds them against the run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Sequence

_ENDING = re.compile(
    r"^\s*[#*=-]*\s*:?(?:returns?|yields?|outputs?|raises|examples?|output shapes?|references?|notes?|warnings?|todo)\b\s*(?:values?|s)?"
    r"\s*(?:\([^)]*\))?\s*(?::|$|-*$)|^\s*:(?:return|rtype|raises)|^\s*>>>|^\s*```",
    re.IGNORECASE,
)
_STARTING = re.compile(
    r"^\s*[#*]*\s*(?:args?|arguments?|param(?:eter)?s?|inputs?|shapes?|input shapes?|keyword args?)\s*:?\s*$", re.IGNORECASE
)
_INPUT_HEADING = re.compile(r"^\s*[-*#]*\s*\**(?:input(?:_?s?)?(?:\s?shapes?)?|expects?)\**\s*(?::|$)", re.IGNORECASE)
# What says of results where they are described: `Returns:`, `:return:`, `- Output:`, `Output shape:`.
_RESULT_HEADING = re.compile(
    r"^\s*[-*#]*\s*\**(?:returns?|outputs?|output shapes?)\**\s*(?:values?)?\s*(?:\([^()]*\))?\s*(?::(?!:)|$)|^\s*:returns?\b[^:]*:",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"^\s*[-=~]{3,}\s*$")
_OTHER = re.compile(
    r"^(\s*)(?:[-*+•]\s+)?(?::\w+[^:]*:|[`*]{0,3}\w+[`*]{0,3}\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:(?!:)|\w+\s+[-–—]{1,2}\s)"
)


@dataclass
class Entry:
    """Holds what a docstring says of one parameter, or of what the function returns (name "")."""

    name: str
    text: str
    line: int  # the first one that it stands in, of the docstring's; 0-based
    end_line: int  # the last one

    def add(self, line: str, number: int) -> None:
        """Take a further line into it."""
        self.text, self.end_line = self.text + " " + line.strip(), number


def described(text: str, parameters: Sequence[str], first: Optional[str]) -> List[Entry]:
    """The entries of a docstring, in its order. first: the parameter that it calls the input, if there is just one."""
    names = "|".join(re.escape(name) for name in parameters) or r"(?!)"
    start = re.compile(
        rf"^(\s*)(?:[-*+•]\s+)?(?::(?:param|parameter|arg|argument|type)\s+(?:[^:]*\s)?)?[`*\"']{{0,3}}({names})[`*\"']{{0,3}}(?:\.shape)?(?=\s*(?::|\(|\[|=|--|–|—|\s-\s|has\b|is\b|of\b|shape\b))(.*)$"
    )
    entries: List[Entry] = []
    reading, skipping, result, depth = False, False, False, 0
    for number, raw in enumerate(text.expandtabs().splitlines()):
        indent = len(raw) - len(raw.lstrip())
        match = start.match(raw)
        heading = _RESULT_HEADING.match(raw) if match is None else None
        is_entry = match is not None and bool(match[3].strip(" :"))  # `outputs: the scores`, where a parameter is called so
        if (_ENDING.match(raw) and not is_entry) or heading is not None:
            reading, skipping, result = False, True, heading is not None
            if heading is not None:
                depth = indent
                entries.append(Entry("", raw[heading.end() :], number, number))
            continue
        if _INPUT_HEADING.match(raw) and first is not None and not (match is not None and match[2] != first):
            reading, skipping, result, depth = True, False, False, indent
            entries.append(Entry(first, _INPUT_HEADING.sub("", raw, count=1), number, number))
            continue
        if _STARTING.match(raw):
            reading, skipping, result = False, False, False
            continue
        if result:
            result = _goes_on(entries[-1], raw, number, is_outside=indent < depth)
            continue
        if match is not None and not skipping:
            reading, depth = True, indent
            entries.append(Entry(match[2], match[3], number, number))
        elif reading and not raw.strip():
            reading = not entries[-1].text.strip(" :")
        elif reading:
            reading = indent > depth or not (_OTHER.match(raw) or match is not None or indent < depth)
            if reading:
                entries[-1].add(raw, number)
    return entries


def _goes_on(result: Entry, line: str, number: int, *, is_outside: bool) -> bool:
    """True if what is said of a result goes on behind a line, which is added to it if it is a part. is_outside: of its indentation."""
    if _UNDERLINE.match(line) and not result.text.strip():
        return True
    if not line.strip() or (result.text.strip() and is_outside):
        return not result.text.strip(" :")
    result.add(line, number)
    return True
