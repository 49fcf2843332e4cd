"""A notebook's code as the text of one Python file: the cells one below the other, as they would be run. So is a script in cells (`# %%`).

A line of a cell is a line of that text, at the same columns as far as it is Python. What only IPython understands (`%matplotlib inline`,
`!ls`, `net?`, `%%bash`) is left out of it; what a cell would define that does not parse is unknown there, rather than missing.

For server and worker: standard library only, Python 3.9. Format: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import ast
import bisect
import functools
import json
import keyword
import re
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

SUFFIX = ".ipynb"
UNKNOWN = "__shapelens_unknown__"  # in the text: a value of which nothing is known
LINE_END = re.compile(r"\r\n?|\n")
# Cells whose first line is of IPython and whose others are Python.
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "snakeviz", "scalene", "wandb", "heat", "notify"}
# Commands of a shell that IPython takes without a mark.
_SHELL = "pip|conda|mamba|cd|ls|ll|mkdir|rmdir|rm|cp|mv|cat|less|more|man"
_SHELL_LINE = re.compile(r"(?:%s)(?:\s+[-\w./~*\"'$].*)?\s*\Z" % _SHELL)
_WORD_LINE = re.compile(r"^[ \t]*(?:ls|ll|pwd|cls|whos)[ \t]*$", re.MULTILINE)
_SHELL_WORD = re.compile(r"^[ \t]*(?:%s|pwd|cls|whos)\b" % _SHELL, re.MULTILINE)

# What begins a cell of a script.
_MARKER = re.compile(r"^#[ \t]*%%.*$", re.MULTILINE)

_TIMED = re.compile(r"%(?:time|timeit|prun|memit)(?:\s+-[a-zA-Z]\s*\d*)*\s+(?=[^\s-])")
_ASSIGNED = re.compile(r"([\w\s.,]*(?:\[[^\]=]*\]\s*)?)=\s*[!%](?!=)")
_HELP = re.compile(r"\s*[%!?]{0,2}[\w.*\[\]]+\?{1,2}\s*\Z")
_TOKEN = re.compile(r"#.*|\\.|\"\"\"|'''|[\"'()\[\]{}]")
# What a statement defines, and how it begins.
_NAMES = re.compile(
    r"(?:async\s+)?(?:(?:def|class)\s+(?P<defined>\w+)|for\s+(?P<items>[\w\s,()*]+?)\s+in\b|with\b.*\bas\s+(?P<entered>[\w\s,()]+):)"
)
_TARGETS = re.compile(r"\s*([^=()'\"#<>!]+|\([\w\s,*]*\)\s*)=(?!=)")
_DEFINITION = re.compile(r"(?:@|(?:async\s+)?def\b|class\b)")
_IMPORTED = re.compile(r"(?:from\s+[\w.]+\s+)?import\s+(.*)")


class Cell(NamedTuple):
    """A code cell. number: among all cells of its notebook, from 1."""

    number: int
    source: str


class Notebook(NamedTuple):
    """text: of all code cells, each ended by a line end. firsts: the first line of each, 1-based."""

    text: str
    firsts: Sequence[int]
    numbers: Sequence[int]  # of these cells among all cells, 1-based

    def locate(self, line: int) -> Tuple[int, int]:
        """The number of the cell that a line of the text belongs to, and the line's number in that cell, 1-based."""
        index = max(bisect.bisect_right(self.firsts, line) - 1, 0)
        return self.numbers[index], line - self.firsts[index] + 1

    def place(self, line: int) -> str:
        """A line of the text in the words of someone who looks at the notebook: "cell 3, line 2"."""
        return "cell %d, line %d" % self.locate(line)


class NoNotebook(ValueError):
    """A content that is none. The message says why, to go on after the file's name."""


def parses(text: str) -> bool:
    """True if a text is Python for the running Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def read(content: str) -> Optional[Notebook]:
    """The notebook that a file's content is; None where it is none, or has no Python."""
    cells = cells_of(content)
    if not cells:
        return None
    pieces = [as_python(cell.source) for cell in cells]
    pieces = [piece if parses(piece) else left_out(cell.source) for piece, cell in zip(pieces, cells)]
    return joined(pieces, [cell.number for cell in cells])


def joined(pieces: Iterable[str], numbers: Sequence[int]) -> Notebook:
    """Pieces of Python, one for each code cell, as one text."""
    firsts, ended, line = [], [], 1
    for piece in pieces:
        firsts.append(line)
        ended.append(piece[:-1] + "\n\n" if piece.endswith("\r") else piece + "\n")
        line += len(LINE_END.findall(ended[-1]))
    return Notebook("".join(ended), firsts, numbers)


def cells_of(content: str) -> List[Cell]:
    """The code cells of the notebook that a file's content is; [] where it is none, or its language is another one."""
    try:
        return code_cells(content)
    except NoNotebook:
        return []


def code_cells(content: str) -> List[Cell]:
    """The code cells of the notebook that a file's content is; [] where its language is another one. Raises NoNotebook.

    Each version of the format is read: until the third, cells lie in worksheets and call their source input. As in Jupyter, what a notebook
    lacks that its cells can do without is no mistake, and a cell without text is empty.
    """
    try:
        notebook = json.loads(content[1:] if content.startswith("\ufeff") else content)
    except ValueError as error:
        raise NoNotebook("is no notebook: it is not JSON (%s)" % error) from None
    except RecursionError:
        raise NoNotebook("is no notebook: it is nested too deeply") from None
    try:
        sheets = [notebook] if "cells" in notebook else notebook["worksheets"]
        cells = [cell for sheet in sheets for cell in _listed(sheet["cells"])]
        kinds = [cell["cell_type"] for cell in cells]
    except (KeyError, TypeError, IndexError):
        raise NoNotebook("is no notebook: it has no list of cells") from None
    if _language(notebook.get("metadata")) != "python":
        return []
    return [Cell(number, _source(cell)) for number, (cell, kind) in enumerate(zip(cells, kinds), 1) if kind == "code"]


def _listed(cells: Any) -> List[Any]:
    if not isinstance(cells, list):
        raise TypeError
    return cells


def _language(metadata: Any) -> str:
    """The language of a notebook; Python where it does not say."""
    said = _entry(_entry(metadata, "language_info"), "name") or _entry(_entry(metadata, "kernelspec"), "language") or "python"
    return re.sub(r"\A(?:i?python).*", "python", str(said).lower())


def _entry(found: Any, name: str) -> Any:
    return found.get(name) if isinstance(found, dict) else None


def _source(cell: Any) -> str:
    source = cell.get("source", cell.get("input"))
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


# --- what only IPython understands ---


def as_python(source: str) -> str:
    """A cell without what only IPython understands: as many lines, and all that is Python at its place."""
    if not _may_be_ipython(source) or (parses(source) and not _WORD_LINE.search(source)):
        return source
    ends = [match.group() for match in LINE_END.finditer(source)] + [""]
    lines = LINE_END.split(source)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        words = lines[first][2:].split()
        if not words or words[0] not in _PYTHON_CELLS:
            return "".join(ends)
        captured = words[0] == "capture" and len(words) > 1 and words[-1].isidentifier()
        lines[first] = "%s = %s" % (words[-1], UNKNOWN) if captured else ""
    return "".join(line + end for line, end in zip(_without_magics(lines), ends))


def script_as_python(text: str) -> str:
    """A script in cells without what only IPython understands: as many lines, and all that is Python at its place. Others as they are."""
    markers = list(_MARKER.finditer(text)) if "%%" in text else []
    if not markers:
        return text
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    cells = [marker.group() + _cell_as_python(text[marker.end() : end]) for marker, end in zip(markers, ends)]
    python = "".join([_cell_as_python(text[: markers[0].start()]), *cells])
    return text if python == text or parses(text) else python


def is_in_cells(file: str, text: str) -> bool:
    """True if a text is that of a notebook, or a script in cells: their runners take `await` outside of a function."""
    return file.endswith(SUFFIX) or _MARKER.search(text) is not None


@functools.lru_cache(maxsize=512)
def _cell_as_python(source: str) -> str:
    return as_python(source)


def _may_be_ipython(source: str) -> bool:
    return any(mark in source for mark in "%!?") or _SHELL_WORD.search(source) is not None


def _without_magics(lines: Sequence[str]) -> Iterator[str]:
    quote, depth, continued, of_magic = "", 0, False, False
    for line in lines:
        if continued and of_magic:
            continued = line.rstrip().endswith("\\")
            yield ""
            continue
        of_magic = False
        if not quote and not depth and not continued:
            masked = _without_magic(line)
            if masked != line:
                of_magic, continued = True, line.rstrip().endswith("\\")
                yield masked
                continue
        quote, depth = _after(line, quote, depth)
        continued = not quote and line.rstrip().endswith("\\")
        yield line


def _after(line: str, quote: str, depth: int) -> Tuple[str, int]:
    """In which triple-quoted string, and how deep in brackets, the line after this one begins."""
    for match in _TOKEN.finditer(line):
        token = match.group()
        if quote:
            quote = "" if token == quote else quote
        elif token[0] in "\"'":
            quote = token
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth = max(depth - 1, 0)
        elif token[0] == "#":
            break
    return (quote if len(quote) == 3 else ""), depth


def _without_magic(line: str) -> str:
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    timed = _TIMED.match(code)
    if timed is not None:
        rest = code[timed.end() :]
        if parses("pass;" + rest):
            return indent + "pass;".ljust(timed.end()) + rest
    if code.startswith(("%", "!", "?")) or _HELP.match(line) or (_SHELL_LINE.match(code) and not parses(code)) or _WORD_LINE.match(code):
        return indent + "pass" if indent else ""
    assigned = _ASSIGNED.match(code)
    return "%s%s= %s" % (indent, assigned.group(1), UNKNOWN) if assigned is not None else line


# --- cells that do not parse ---


def left_out(source: str) -> str:
    """In the place of a cell that does not parse: as many lines, its imports, and its names as unknown values."""
    lines = LINE_END.split(source)
    ends = [match.group() for match in LINE_END.finditer(source)] + [""]
    kept = [line if _IMPORTED.match(line) and parses(line) else "" for line in lines]
    names = list(dict.fromkeys(_names_in(lines)))
    if names:
        unknown = " = ".join([*names, UNKNOWN])
        place = kept.index("") if "" in kept else 0
        kept[place] = "; ".join(filter(None, [kept[place], unknown]))
    return "".join(line + end for line, end in zip(kept, ends))


def _names_in(lines: Sequence[str]) -> Iterator[str]:
    """The names that lines of Python, not all of them right, define at module level."""
    inside = False  # a definition
    for line in lines:
        code = line.lstrip()
        if not code or code.startswith("#"):
            continue
        if code == line:
            inside = _DEFINITION.match(line) is not None
        elif inside:
            continue
        imported = _IMPORTED.match(code)
        if imported is not None:
            if not parses(line):
                words = [part.split() for part in imported.group(1).replace("(", " ").replace(")", " ").split(",")]
                yield from filter(_is_name, (part[-1].partition(".")[0] for part in words if part))
            continue
        found = _NAMES.match(code)
        targets = list(found.groups()) if found is not None else []
        assigned = _TARGETS.match(code) if found is None else None
        while assigned is not None:
            targets.append(re.sub(r"\[[^\]]*\]|:.*|[\w.]+\.\w+", " ", assigned.group(1)))
            assigned = _TARGETS.match(code, assigned.end())
        yield from filter(_is_name, re.findall(r"\w+", " ".join(filter(None, targets))))


def _is_name(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word)
