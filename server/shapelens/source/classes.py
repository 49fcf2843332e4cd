"""Reads what one top-level statement says about classes and names. Nothing here looks past the statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shapelens.source.scanner import LogicalLine, indentation

_HEAD = re.compile(r"(?:async[\s\\]+)?(?P<keyword>def|class)[\s\\]+(?P<name>\w+)")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function. kind: "positional_only", "positional_or_keyword", "var_positional", "keyword_only" or "var_keyword"."""

    name: str
    annotation: str | None  # their text
    default: str | None
    kind: str


@dataclass(frozen=True)
class Head:
    """Where the `class` or `def` of a statement is: the index of its logical line, and its name in the text of the statement."""

    line: int
    name: str
    name_start: int
    is_class: bool


@dataclass
class ClassStatement:
    """A class of a statement. Places are indices into the statement's text and its logical lines."""

    name: str
    qualname: str
    bases: list[str]  # text, subscripts and keywords left out
    base_arguments: list[str]  # names that a call among the bases is given: `with_metaclass(Meta, nn.Module)`
    head: Head
    last_line: int  # the index of its last logical line
    methods: dict[str, Head]
    init_parameters: list[Parameter]
    forward_parameters: list[Parameter]


Bases = tuple[list[str], list[str]]  # of a class: `bases` and `base_arguments` of its ClassStatement


@dataclass
class StatementNames:
    """Holds what names of a statement stand for."""

    imported: dict[str, str] = field(default_factory=dict)  # name -> "torch.nn.Module"; relative ones keep their dots
    inner: dict[str, str] = field(default_factory=dict)  # the same, of imports inside functions and classes
    assigned: dict[str, str] = field(default_factory=dict)  # name -> dotted name that it was given
    stars: list[str] = field(default_factory=list)  # modules of `from m import *`
    modules: list[str] = field(default_factory=list)  # absolute top-level modules that are imported


def heads(text: str, lines: Sequence[LogicalLine], base: int) -> list[Head]:
    """The classes and functions of a piece of text, in its order."""
    found = []
    for index, line in enumerate(lines):
        if match := _HEAD.match(text, line.start - base):
            found.append(Head(index, match["name"], match.start("name"), match["keyword"] == "class"))
    return found


def last_line(text: str, lines: Sequence[LogicalLine], base: int, head: Head) -> int:
    """The index of the last logical line of the class or function at `head`."""
    own = _indentation(text, lines[head.line], base)
    last = head.line
    while last + 1 < len(lines) and _indentation(text, lines[last + 1], base) > own:
        last += 1
    return last


class ClassCollector:
    """Holds what a walk through the statements of a text collects. The walk has to come to every `class` and `def` in their order."""

    def __init__(self, text: str, lines: Sequence[LogicalLine], base: int) -> None:
        self.text, self.lines, self.base = text, lines, base
        self.classes: list[ClassStatement] = []
        self.names = StatementNames()
        self._heads = iter(heads(text, lines, base))

    def take_head(self) -> Head:
        """The head of the class or function that the walk has come to."""
        return next(self._heads)

    def bind(self, name: str, meaning: str, at_module_level: bool) -> None:
        """An import gives a name a meaning; the first one counts."""
        (self.names.imported if at_module_level else self.names.inner).setdefault(name, meaning)

    def import_module(self, name: str, local: str | None, at_module_level: bool) -> None:
        """`import name as local`."""
        root = name.split(".")[0]
        self.names.modules.append(root)
        self.bind(local or root, name if local else root, at_module_level)

    def import_from(self, origin: str, names: Iterable[tuple[str, str | None]], at_module_level: bool) -> None:
        """`from origin import name as local, ...`; a relative origin has its dots."""
        if not origin.startswith("."):
            self.names.modules.append(origin.split(".")[0])
        for name, local in names:
            if name == "*":
                self.names.stars.append(origin)
            else:
                self.bind(local or name, f"{origin}{'' if origin.endswith('.') else '.'}{name}", at_module_level)

    def add_class(self, head: Head, scope: str, bases: Bases, init: list[Parameter], forward: list[Parameter]) -> ClassStatement:
        """A class whose body is walked next, which brings its methods."""
        last = last_line(self.text, self.lines, self.base, head)
        cls = ClassStatement(head.name, scope + head.name, *bases, head, last, {}, init, forward)
        self.classes.append(cls)
        return cls


def relocated(known: Iterable[ClassStatement], text: str, lines: Sequence[LogicalLine], base: int) -> list[ClassStatement]:
    """The classes of a last good version that still have their `class Name` in the text of a statement that does not parse now."""
    present = heads(text, lines, base)
    used: set[int] = set()
    found = []
    for cls in known:
        head = next((head for head in present if head.is_class and head.name == cls.name and head.line not in used), None)
        if head is None:
            continue
        used.add(head.line)
        last = last_line(text, lines, base, head)
        methods = {item.name: item for item in present if head.line < item.line <= last and item.name in cls.methods and not item.is_class}
        found.append(
            ClassStatement(
                cls.name, cls.qualname, cls.bases, cls.base_arguments, head, last, methods, cls.init_parameters, cls.forward_parameters
            )
        )
    return found


def _indentation(text: str, line: LogicalLine, base: int) -> int:
    return indentation(text, line._replace(line_start=line.line_start - base, start=line.start - base))
