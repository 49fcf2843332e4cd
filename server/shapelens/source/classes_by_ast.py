"""The classes and names of a top-level statement, read from Python's own syntax tree: five times as fast as by libcst."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence

from shapelens.source.classes import ClassCollector, ClassStatement, Head, Parameter, StatementNames
from shapelens.source.positions import Lines
from shapelens.source.scanner import LogicalLine


def read_by_ast(text: str, lines: Sequence[LogicalLine], base: int) -> tuple[list[ClassStatement], StatementNames] | None:
    """The classes of a statement and what its names stand for; None where this Python does not understand it: a newer one may."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    reader = _AstReader(text, lines, base)
    reader.statements(tree.body, "", at_module_level=True)
    return reader.classes, reader.names


class _AstReader(ClassCollector):
    """Walks statements only: expressions hold neither classes nor imports."""

    def __init__(self, text: str, lines: Sequence[LogicalLine], base: int) -> None:
        super().__init__(text, lines, base)
        self._places: Lines | None = None

    def statements(self, body: Iterable[ast.stmt], scope: str, at_module_level: bool, methods: dict[str, Head] | None = None) -> None:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                head = self.take_head()
                if methods is not None:
                    methods[head.name] = head
                self.statements(statement.body, f"{scope}{head.name}.<locals>.", at_module_level=False)
            elif isinstance(statement, ast.ClassDef):
                self._class(statement, scope)
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    self.import_module(alias.name, alias.asname, at_module_level)
            elif isinstance(statement, ast.ImportFrom):
                names = [(alias.name, alias.asname) for alias in statement.names]
                self.import_from("." * statement.level + (statement.module or ""), names, at_module_level)
            elif isinstance(statement, ast.Assign):
                if at_module_level and (value := _dotted(statement.value)):
                    self.names.assigned.update({target.id: value for target in statement.targets if isinstance(target, ast.Name)})
            else:
                for block in _blocks(statement):
                    self.statements(block, scope, at_module_level, methods)

    def _class(self, node: ast.ClassDef, scope: str) -> None:
        head = self.take_head()
        bases: list[str] = []
        base_arguments: list[str] = []
        for base in node.bases:
            value: ast.expr = base.value if isinstance(base, ast.Starred) else base
            while isinstance(value, ast.Subscript):
                value = value.value
            if isinstance(value, ast.Call):
                given = [*value.args, *(keyword.value for keyword in value.keywords)]
                base_arguments += [name for item in given if (name := _dotted(item.value if isinstance(item, ast.Starred) else item))]
            bases.append(_dotted(value) or self._text(value))
        functions = {item.name: item for item in _functions(node)}
        init, forward = self._parameters(functions.get("__init__")), self._parameters(functions.get("forward"))
        cls = self.add_class(head, scope, (bases, base_arguments), init, forward)
        self.statements(node.body, f"{scope}{head.name}.", at_module_level=False, methods=cls.methods)

    def _parameters(self, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> list[Parameter]:
        if function is None:
            return []
        found = function.args
        positional = [*found.posonlyargs, *found.args]
        defaults = [None] * (len(positional) - len(found.defaults)) + [*found.defaults]
        kinds = ["positional_only"] * len(found.posonlyargs) + ["positional_or_keyword"] * len(found.args)
        listed: list[tuple[str, ast.arg, ast.expr | None]] = list(zip(kinds, positional, defaults, strict=True))
        if found.vararg is not None:
            listed.append(("var_positional", found.vararg, None))
        listed += [("keyword_only", item, default) for item, default in zip(found.kwonlyargs, found.kw_defaults, strict=True)]
        if found.kwarg is not None:
            listed.append(("var_keyword", found.kwarg, None))
        return [
            Parameter(
                item.arg,
                self._text(item.annotation) if item.annotation is not None else None,
                self._text(default) if default is not None else None,
                kind,
            )
            for kind, item, default in listed
        ]

    def _text(self, node: ast.expr) -> str:
        """Returns what stands there, parentheses around it not included."""
        if self._places is None:
            self._places = Lines(self.text)
        places = self._places
        start = places.offset(places.from_bytes(node.lineno, node.col_offset))
        end = places.offset(places.from_bytes(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset))
        return self.text[start:end]


def _dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)):
        return ".".join([str(node.value), *reversed(names)])  # To libcst, True, False and None are names like any other.
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The bodies of a compound statement and of its clauses, in the order of the text."""
    yield getattr(node, "body", [])
    for clause in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield clause.body
    yield getattr(node, "orelse", [])
    yield getattr(node, "finalbody", [])


def _functions(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions that a class body defines, those under its `if` and `try` too."""
    pending: list[list[ast.stmt]] = [node.body]
    while pending:
        for statement in pending.pop(0):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                yield statement
            elif not isinstance(statement, ast.ClassDef):
                pending += [block for block in _blocks(statement) if isinstance(block, list) and block]
