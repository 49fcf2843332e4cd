"""What one top-level statement says about classes and names, read from its libcst tree; nothing here looks past the statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from shapelens.source.scanner import LogicalLine, indentation
from shapelens.source.syntax import code, dotted

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


@dataclass
class Names:
    """What names of a statement stand for."""

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


def read(tree: cst.Module, text: str, lines: Sequence[LogicalLine], base: int) -> tuple[list[ClassStatement], Names]:
    """The classes of a statement and what its names stand for."""
    reader = _LibcstReader(text, lines, base)
    reader.statements(tree.body, "", at_module_level=True)
    return reader.classes, reader.names


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


class _LibcstReader:
    """Walks statements only: expressions hold neither classes nor imports, and visiting them is most of the cost."""

    def __init__(self, text: str, lines: Sequence[LogicalLine], base: int) -> None:
        self.text, self.lines, self.base = text, lines, base
        self.heads = heads(text, lines, base)
        self.next_head = 0
        self.classes: list[ClassStatement] = []
        self.names = Names()

    def statements(
        self,
        body: Sequence[cst.BaseStatement | cst.BaseSmallStatement],
        scope: str,
        at_module_level: bool,
        methods: dict[str, Head] | None = None,
    ) -> None:
        for statement in body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.simple(small, at_module_level)
            elif isinstance(statement, cst.FunctionDef):
                head = self.take_head()
                if methods is not None:
                    methods[head.name] = head
                self.statements(statement.body.body, f"{scope}{head.name}.<locals>.", at_module_level=False)
            elif isinstance(statement, cst.ClassDef):
                self.class_statement(statement, scope)
            elif isinstance(statement, cst.BaseCompoundStatement):
                for block in _blocks(statement):
                    self.statements(block.body, scope, at_module_level, methods)
            elif isinstance(statement, cst.BaseSmallStatement):
                self.simple(statement, at_module_level)

    def take_head(self) -> Head:
        head = self.heads[self.next_head]
        self.next_head += 1
        return head

    def class_statement(self, node: cst.ClassDef, scope: str) -> None:
        head = self.take_head()
        methods: dict[str, Head] = {}
        bases: list[str] = []
        base_arguments: list[str] = []
        for argument in node.bases:
            value = argument.value
            while isinstance(value, cst.Subscript):
                value = value.value
            if isinstance(value, cst.Call):
                base_arguments += [name for item in value.args if (name := dotted(item.value))]
            bases.append(dotted(value) or code(value))
        functions = {item.name.value: item for item in _functions(node)}
        self.classes.append(
            ClassStatement(
                name=head.name,
                qualname=scope + head.name,
                bases=bases,
                base_arguments=base_arguments,
                head=head,
                last_line=last_line(self.text, self.lines, self.base, head),
                methods=methods,
                init_parameters=_parameters(functions.get("__init__")),
                forward_parameters=_parameters(functions.get("forward")),
            )
        )
        self.statements(node.body.body, f"{scope}{head.name}.", at_module_level=False, methods=methods)

    def simple(self, node: cst.BaseSmallStatement, at_module_level: bool) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = dotted(alias.name) or ""
                self.names.modules.append(name.split(".")[0])
                local = alias.evaluated_alias
                self.bind(local or name.split(".")[0], name if local else name.split(".")[0], at_module_level)
        elif isinstance(node, cst.ImportFrom):
            origin = "." * len(node.relative) + (dotted(node.module) or "")
            if not node.relative:
                self.names.modules.append(origin.split(".")[0])
            if isinstance(node.names, cst.ImportStar):
                self.names.stars.append(origin)
                return
            for alias in node.names:
                name = dotted(alias.name) or ""
                self.bind(alias.evaluated_alias or name, f"{origin}{'' if origin.endswith('.') else '.'}{name}", at_module_level)
        elif at_module_level and isinstance(node, cst.Assign) and (value := dotted(node.value)):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.names.assigned[target.target.value] = value

    def bind(self, name: str, meaning: str, at_module_level: bool) -> None:
        (self.names.imported if at_module_level else self.names.inner).setdefault(name, meaning)


def _blocks(node: cst.CSTNode) -> Iterable[cst.BaseSuite]:
    """The bodies of a compound statement and of its clauses."""
    pending: list[cst.CSTNode] = [node]
    while pending:
        item = pending.pop(0)
        body = getattr(item, "body", None)
        if isinstance(body, cst.BaseSuite):
            yield body
        clauses = (
            *getattr(item, "handlers", ()),
            *getattr(item, "cases", ()),
            getattr(item, "orelse", None),
            getattr(item, "finalbody", None),
        )
        pending += [clause for clause in clauses if clause is not None]


def _functions(node: cst.ClassDef) -> Iterable[cst.FunctionDef]:
    """The functions that a class body defines, those under its `if` and `try` too."""
    pending: list[cst.BaseSuite] = [node.body]
    while pending:
        for statement in pending.pop(0).body:
            if isinstance(statement, cst.FunctionDef):
                yield statement
            elif isinstance(statement, cst.BaseCompoundStatement) and not isinstance(statement, cst.ClassDef):
                pending += _blocks(statement)


def _parameters(function: cst.FunctionDef | None) -> list[Parameter]:
    if function is None:
        return []
    found = function.params
    listed: list[tuple[str, cst.Param]] = [("positional_only", item) for item in found.posonly_params]
    listed += [("positional_or_keyword", item) for item in found.params]
    if isinstance(found.star_arg, cst.Param):
        listed.append(("var_positional", found.star_arg))
    listed += [("keyword_only", item) for item in found.kwonly_params]
    if found.star_kwarg is not None:
        listed.append(("var_keyword", found.star_kwarg))
    return [
        Parameter(
            item.name.value,
            code(item.annotation.annotation) if item.annotation else None,
            code(item.default) if item.default else None,
            kind,
        )
        for kind, item in listed
    ]
