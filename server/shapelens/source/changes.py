"""Tells what an edit changed of the code: nothing but its layout, only the bodies of some functions, or more than that."""

from __future__ import annotations

import io
import re
import tokenize

from shapelens.source.module import Module
from shapelens.source.position_map import common_prefix, common_suffix
from shapelens.source.scanner import LogicalLine, indentation
from shapelens.source.statements import TopLevelStatement

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
# Code that reads code, or docstrings.
_READS_TEXT = re.compile(r"\b(?:getsource\w*|getdoc|__doc__|__code__)\b")
_WORDS_OF_IT = ("getsource", "getdoc", "__doc__", "__code__")
_GLOBAL = re.compile(r"^[ \t]*global\b", re.MULTILINE)
# A logical line: how far it is indented, and its tokens without comments and blanks.
_Code = tuple[int, tuple[str, ...]]


def changed_functions(old: Module, new: Module) -> frozenset[str] | None:
    """The functions in whose bodies all changes of the code lie; None where more than that has changed, or where a text does not parse.

    They are the outermost ones, by qualified name without "<locals>" ("Net.forward", "build"). Comments, blanks, line breaks inside of
    brackets and docstrings are no code, so that the set is empty where nothing else is different.
    """
    if old.errors or new.errors or (old.text != new.text and _reads_text(new.text)):
        return None
    before = [item.statement for item in old.statements.placed]
    after = [item.statement for item in new.statements.placed]
    old_texts, new_texts = [each.text for each in before], [each.text for each in after]
    head = common_prefix(old_texts, new_texts)
    tail = common_suffix(old_texts[head:], new_texts[head:])
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(before) != len(after):
        return None
    found: set[str] = set()
    for one, other in zip(before, after, strict=True):
        functions = _changed_in(one, other)
        if functions is None:
            return None
        found |= functions
    return frozenset(found)


def _reads_text(text: str) -> bool:
    """True if code may depend on how code is written."""
    return any(word in text for word in _WORDS_OF_IT) and _READS_TEXT.search(text) is not None


def _changed_in(old: TopLevelStatement, new: TopLevelStatement) -> set[str] | None:
    """The functions that differ between two versions of one statement; None where more than the bodies of functions does."""
    if old.text == new.text:
        return set()
    old_lines, new_lines = _raw_lines(old), _raw_lines(new)
    head = common_prefix(old_lines, new_lines)
    tail = common_suffix(old_lines[head:], new_lines[head:])
    old_code = _code(old, head, len(old_lines) - tail)
    new_code = _code(new, head, len(new_lines) - tail)
    if old_code is None or new_code is None:
        return None
    if [code for _, code in old_code] == [code for _, code in new_code]:
        return set()
    if _GLOBAL.search(old.text) or _GLOBAL.search(new.text):
        return None  # What a function assigns to a global is taken even where the function itself does not run.
    owners = {old.function_around(number) for number, _ in old_code} | {new.function_around(number) for number, _ in new_code}
    return None if None in owners else {owner for owner in owners if owner is not None}


def _raw_lines(statement: TopLevelStatement) -> list[str]:
    """The text of the logical lines, with their indentation, and what stands behind them."""
    base = statement.base
    return [statement.text[line.line_start - base : line.next - base] for line in statement.lines]


def _code(statement: TopLevelStatement, first: int, behind: int) -> list[tuple[int, _Code]] | None:
    """The code of some logical lines, with their numbers; without strings that stand alone. None where it cannot be told."""
    found = []
    for number in range(first, behind):
        line, base = statement.lines[number], statement.base
        tokens = _tokens(statement.text[line.start - base : line.end - base])
        if tokens is None:
            return None
        if not _is_docstring(tokens):
            found.append((number, (_indent(statement, line), tokens)))
    return found


def _tokens(text: str) -> tuple[str, ...] | None:
    try:
        return tuple(token.string for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline) if token.type not in _LAYOUT)
    except (tokenize.TokenError, SyntaxError):
        return None


def _is_docstring(tokens: tuple[str, ...]) -> bool:
    """A plain string that is a statement of its own: nothing is computed with it."""
    return bool(tokens) and all(token[-1] in "\"'" and not set(token[: token.index(token[-1])].lower()) & set("ft") for token in tokens)


def _indent(statement: TopLevelStatement, line: LogicalLine) -> int:
    base = statement.base
    return indentation(statement.text, line._replace(line_start=line.line_start - base, start=line.start - base))
