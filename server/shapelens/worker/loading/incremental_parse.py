"""The document's syntax tree from that of its last text: only top-level statements that have changed are parsed, rewritten and compiled.

What is known of a statement is kept with its node. Statements that an edit above them has moved keep their code, with its lines shifted; of
the nodes of one that has code only the outermost is.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Dict, Hashable, List, Optional, Set, Tuple

from ..rewrite.instrument import Rewriter, computed_names
from ..rewrite.sites import Site
from .statements import CODE

SITES = "shapelens_sites"  # an attribute of statements that are rewritten: the range of their sites
COMPUTED = "shapelens_computed"  # the names that it computes, if it is at module level
LINES = "shapelens_lines"  # (first, last) line, decorators included
MOST_FORMER = 16  # statements that are kept in case they come back, as by undoing an edit
MOVED = "shapelens_moved"  # by how many lines it was moved since the nodes in it got theirs
LEVEL = "shapelens_level"  # how many packages its relative imports climb
_WITH_DISTANCE = (13, 14)  # kinds of entries of a table of lines
_LONE_RETURN = re.compile("\r(?!\n)")


@dataclass
class Parsed:
    """A text and its statements, which are rewritten. former: some that stood in it before, by where and what they were."""

    text: str
    body: List[ast.stmt]
    former: Dict[Hashable, ast.stmt] = field(default_factory=dict)


def reparsed(before: Parsed, text: str, file: str, sites: List[Site]) -> Optional[ast.Module]:
    """The tree of a text that has something in common with an earlier one; None where the whole has to be parsed.

    Statements that were rewritten have `SITES`; their sites are in `sites` and are moved with them. `before` is used up.
    """
    if any(_LONE_RETURN.search(each) or each.startswith("\ufeff") for each in (before.text, text)):
        return None  # Python's lines are others than ours.
    old, new, body = before.text.split("\n"), text.split("\n"), before.body
    front = _alike(old, new)
    back = min(_alike(old[::-1], new[::-1]), min(len(old), len(new)) - front)
    kept, moved = _left_alone(body, front, len(old) - back)
    if moved < kept:
        return None
    delta = len(new) - len(old)
    first = lines_of(body[kept - 1])[1] if kept else 0
    last = lines_of(body[moved])[0] - 1 + delta if moved < len(body) else len(new)
    if kept and new[first - 1].rstrip("\r").endswith("\\"):
        return None
    try:
        middle = ast.parse("\n" * first + "\n".join(new[first:last]), file).body
    except (SyntaxError, ValueError, RecursionError):
        return None
    if computed_names(middle) != {name for node in body[kept:moved] for name in node.__dict__[COMPUTED]}:
        return None
    for node in body[moved:] if delta else ():
        _shift(node, delta, sites)
    former = before.former
    if delta:
        former.clear()  # They would have to be moved as well.
    else:
        former.update((_place_and_text(node, old), node) for node in body[kept:moved])
        middle = [former.get(_place_and_text(node, new), node) for node in middle]
        for key in list(former)[:-MOST_FORMER]:
            del former[key]
    return ast.Module(body[:kept] + middle + body[moved:], [])


def _left_alone(body: List[ast.stmt], front: int, back: int) -> Tuple[int, int]:
    """Returns how many statements stand in the first lines, up to `front`, and from which one on all stand behind the line `back`."""
    kept = 0
    while kept < len(body) and lines_of(body[kept])[1] <= front:
        kept += 1
    moved = len(body)
    while moved > kept and lines_of(body[moved - 1])[0] > back:
        moved -= 1
    # Statements may share a line.
    while 0 < kept < len(body) and lines_of(body[kept - 1])[1] >= lines_of(body[kept])[0]:
        kept -= 1
    while 0 < moved < len(body) and lines_of(body[moved - 1])[1] >= lines_of(body[moved])[0]:
        moved += 1
    return kept, moved


def _place_and_text(node: ast.stmt, lines: List[str]) -> Hashable:
    first, last = lines_of(node)
    return first, getattr(node, "col_offset", 0), "\n".join(lines[first - 1 : last])


def rewrite_new(tree: ast.Module, text: str, sites: List[Site], former: Dict[Hashable, ast.stmt]) -> Parsed:
    """Rewrite the statements of a text's tree that are not rewritten yet. Raises RecursionError for code that is nested too deeply."""
    computed: Set[str] = set()
    for node in tree.body:
        if SITES not in node.__dict__:
            node.__dict__[COMPUTED] = computed_names([node])
            node.__dict__[LINES] = lines_of(node)
            node.__dict__[LEVEL] = level_of(node)
        computed |= node.__dict__[COMPUTED]
    rewriter = Rewriter(sites, computed)
    for index, node in enumerate(tree.body):
        if SITES not in node.__dict__:
            first = len(sites)
            known = {name: node.__dict__[name] for name in (COMPUTED, LINES, LEVEL)}
            tree.body[index] = node = rewriter.visit(node)  # What is rewritten may be another node.
            node.__dict__.update(known)
            node.__dict__[SITES] = range(first, len(sites))
    return Parsed(text, tree.body, former)


def lines_of(node: Any) -> Any:
    """(first, last) line of a statement, decorators included."""
    lines = node.__dict__.get(LINES)
    if lines is None:
        decorators = [decorator.lineno for decorator in getattr(node, "decorator_list", ())]
        lines = min([node.lineno, *decorators]), node.end_lineno
    return lines


def level_of(node: ast.stmt) -> int:
    """Returns how many packages the relative imports in a statement climb: 1 for `from . import x`, 2 for `from .. import x`."""
    level: Optional[int] = node.__dict__.get(LEVEL)
    if level is None:
        level = max([part.level for part in ast.walk(node) if isinstance(part, ast.ImportFrom)] or [0])
    return level


def _alike(old: List[str], new: List[str]) -> int:
    """Returns how many lines are the same from the start."""
    for index, (before, after) in enumerate(zip(old, new)):
        if before != after:
            return index
    return min(len(old), len(new))


def _shift(node: Any, delta: int, sites: List[Site]) -> None:
    first, last = lines_of(node)
    node.__dict__[LINES] = first + delta, last + delta
    for number in node.__dict__.get(SITES, ()):
        sites[number] = _moved(sites[number], delta)
    code = node.__dict__.get(CODE)
    if code is None:  # It is still to be compiled, or Python refuses it.
        _shift_nodes(node, delta)
        return
    node.lineno += delta
    node.end_lineno += delta
    node.__dict__[MOVED] = node.__dict__.get(MOVED, 0) + delta
    node.__dict__[CODE] = _shifted(code, delta)


def _shift_nodes(node: Any, delta: int) -> None:
    """Move a statement and all nodes in it; one that has two places in the tree is moved once."""
    for part in {id(part): part for part in ast.walk(node)}.values():
        for name in ("lineno", "end_lineno"):
            line = getattr(part, name, None)
            if line is not None:
                setattr(part, name, line + delta)


def _moved(site: Site, delta: int) -> Site:
    line, column, end_line, end_column = site.place
    statement = site.statement
    if statement is not None:
        statement = (statement[0] + delta, statement[1], statement[2] + delta, statement[3])
    return Site(
        (line + delta, column, end_line + delta, end_column),
        site.kind,
        site.name,
        site.function,
        statement,
        site.is_call,
        site.operation,
        site.size,
        site.defining,
    )


def _shifted(code: CodeType, delta: int) -> CodeType:
    """Code whose lines are others: those inside are counted from the first."""
    constants = tuple(_shifted(constant, delta) if isinstance(constant, CodeType) else constant for constant in code.co_consts)
    if sys.version_info >= (3, 11) and code.co_name == "<module>":
        # Its first line is 1, wherever the statement is: the first entry of the table leads there (code_objects.md in CPython).
        return code.replace(co_linetable=_moved_table(code.co_linetable, delta), co_consts=constants)
    return code.replace(co_firstlineno=code.co_firstlineno + delta, co_consts=constants)


def _moved_table(table: bytes, delta: int) -> bytes:
    """A table of lines with another distance to its first entry, which is the one of an instruction without a line of its own."""
    if table[0] >> 3 & 15 not in _WITH_DISTANCE:
        return table  # Of a Python that is not known yet.
    number = shift = 0
    end = 1
    while True:  # A signed number in groups of six bits, the lowest first; its lowest bit is the sign.
        number |= (table[end] & 63) << shift
        shift += 6
        end += 1
        if not table[end - 1] & 64:
            break
    distance = (-(number >> 1) if number & 1 else number >> 1) + delta
    number = -distance << 1 | 1 if distance < 0 else distance << 1
    moved = bytearray(table[:1])
    while number >= 64:
        moved.append(64 | number & 63)
        number >>= 6
    moved.append(number)
    return bytes(moved) + table[end:]
