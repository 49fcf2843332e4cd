"""The classes and names of a top-level statement, read from its libcst tree: for text of a newer Python than the server's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from shapelens.source.classes import ClassCollector, ClassStatement, Head, Parameter, StatementNames
from shapelens.source.scanner import LogicalLine
from shapelens.source.syntax import code, dotted


def read_by_libcst(tree: cst.Module, text: str, lines: Sequence[LogicalLine], base: int) -> tuple[list[ClassStatement], StatementNames]:
    """The classes of a statement and what its names stand for."""
    reader = _LibcstReader(text, lines, base)
    reader.statements(tree.body, "", at_module_level=True)
    return reader.classes, reader.names


class _LibcstReader(ClassCollector):
    """Walks statements only: expressions hold neither classes nor imports, and visiting them is most of the cost."""

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

    def class_statement(self, node: cst.ClassDef, scope: str) -> None:
        head = self.take_head()
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
        init, forward = _parameters(functions.get("__init__")), _parameters(functions.get("forward"))
        cls = self.add_class(head, scope, (bases, base_arguments), init, forward)
        self.statements(node.body.body, f"{scope}{head.name}.", at_module_level=False, methods=cls.methods)

    def simple(self, node: cst.BaseSmallStatement, at_module_level: bool) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                self.import_module(dotted(alias.name) or "", alias.evaluated_alias, at_module_level)
        elif isinstance(node, cst.ImportFrom):
            aliases = [] if isinstance(node.names, cst.ImportStar) else node.names
            names = [(dotted(alias.name) or "", alias.evaluated_alias) for alias in aliases] or [("*", None)]
            self.import_from("." * len(node.relative) + (dotted(node.module) or ""), names, at_module_level)
        elif at_module_level and isinstance(node, cst.Assign) and (value := dotted(node.value)):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.names.assigned[target.target.value] = value


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
