"""A notebook's code as the text of one Python file: the cells one below the other, as they would be run. For server and worker: standard
library only, Python 3.9. Format: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import ast
import bisect
import json
from typing import Any, List, NamedTuple, Optional

SUFFIX = ".ipynb"
# Of IPython, in front of what is plain Python.
_PREFIXES = ("%time ", "%timeit ")


class Notebook(NamedTuple):
    """text: of all code cells; what is no Python is left out of it, but its lines stay. firsts: the first line of each, 1-based."""

    text: str
    firsts: List[int]
    numbers: List[int]  # of these cells among all cells, 1-based

    def place(self, line: int) -> str:
        """A line of the text in the words of someone who looks at the notebook: "cell 3, line 2"."""
        index = max(bisect.bisect_right(self.firsts, line) - 1, 0)
        return "cell %d, line %d" % (self.numbers[index], line - self.firsts[index] + 1)


def read(content: str) -> Optional[Notebook]:
    """The notebook that a file's content is; None where it is none, or has no code."""
    try:
        cells = json.loads(content)["cells"]
        sources = [(number, _source(cell)) for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    lines: List[str] = []
    firsts, numbers = [], []
    for number, source in sources:
        firsts.append(len(lines) + 1)
        numbers.append(number)
        lines += _python(source)
    return Notebook("\n".join(lines) + "\n", firsts, numbers) if numbers else None


def _source(cell: Any) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _python(source: str) -> List[str]:
    """The lines of a cell, those empty that only IPython understands; all of them where the rest is no Python."""
    lines = source.split("\n")
    if source.lstrip().startswith("%%"):
        return [""] * len(lines)
    lines = [_without_magic(line) for line in lines]
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [""] * len(lines)
    return lines


def _without_magic(line: str) -> str:
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    for prefix in _PREFIXES:
        if code.startswith(prefix):
            return indent + code[len(prefix) :].lstrip()
    if code.startswith(("%", "!", "?")) or code.rstrip().endswith("?"):
        return indent + "pass" if indent else ""
    return line
