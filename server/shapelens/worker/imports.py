"""Which modules a module takes values from when it is loaded: a name that was passed on by others comes from where it is defined."""

from __future__ import annotations

import ast
import sys
from typing import Dict, List, Mapping, Optional, Set, Tuple

MOST_STEPS = 16  # that a name is followed


class Imports:
    """The imports of a module that run with its statements, not those in functions."""

    def __init__(self, tree: ast.Module, name: str, is_package: bool) -> None:
        self._package = name if is_package else name.rpartition(".")[0]
        self.whole: Set[str] = set()  # modules that are imported as such
        self.names: Dict[str, Tuple[str, str]] = {}  # by the name that it has here: the module, and the name there
        self.all_of: List[str] = []  # modules of which all names are imported
        todo: List[ast.AST] = list(reversed(tree.body))
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.whole.update((alias.name,) if alias.asname else (alias.name, alias.name.partition(".")[0]))
            elif isinstance(node, ast.ImportFrom):
                self._add(node)
            elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = (ast.stmt, ast.ExceptHandler)
                todo.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, inner))

    def _add(self, node: ast.ImportFrom) -> None:
        parts = self._package.split(".")
        above = parts[: len(parts) - node.level + 1] if node.level else []
        source = ".".join(above + ([node.module] if node.module else []))
        for alias in node.names:
            if alias.name == "*":
                self.all_of.append(source)
            else:
                self.names[alias.asname or alias.name] = (source, alias.name)

    def packages(self) -> Set[str]:
        """The outermost packages that are imported by their names."""
        return {name.partition(".")[0] for name in (*self.whole, *self.all_of, *(source for source, _ in self.names.values()))}

    def modules(self, known: Mapping[str, Imports]) -> Set[str]:
        """The names of the modules that give the values; `known` are the imports of modules that may pass some on."""
        return {*self.whole, *self.all_of, *(_origin(source, name, known) for source, name in self.names.values())}

    def _source_of(self, name: str) -> Optional[Tuple[str, str]]:
        """The module that passes a name on to this one, and what it is called there."""
        if name in self.names:
            return self.names[name]
        for source in reversed(self.all_of):
            if name in getattr(sys.modules.get(source), "__dict__", ()):
                return source, name
        return None


def _origin(source: str, name: str, known: Mapping[str, Imports]) -> str:
    """The module that a name comes from."""
    for _ in range(MOST_STEPS):
        module = "%s.%s" % (source, name)
        if module in sys.modules:
            return module
        passed_on = known[source]._source_of(name) if source in known else None
        if passed_on is None:
            break
        source, name = passed_on
    return source
