"""Which modules a module takes values from when it is loaded: a name that was passed on by others comes from where it is defined."""

from __future__ import annotations

import ast
import sys
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple, Union

from ...stated.syntax_trees import dotted

_READ = "shapelens_imports"  # an attribute of statements: what was read of them
MOST_STEPS = 16  # that a name is followed


class Imports:
    """The imports of a module that run with its statements, not those in functions."""

    def __init__(self, tree: ast.Module, name: str, is_package: bool) -> None:
        self._package = name if is_package else name.rpartition(".")[0]
        self._plain: Set[str] = set()  # modules that are imported as such
        self.whole: Set[str] = set()  # those of them of which anything may be taken
        self.names: Dict[str, Tuple[str, str]] = {}  # by the name that it has here: the module, and the name there
        self.all_of: List[str] = []  # modules of which all names are imported
        self._outermost: Set[str] = set()  # `a` of `import a` and `import a.b`: what is taken of it is written out
        self._dotted: Set[str] = set()  # what is taken from these, like `a.b.c`, when the module is loaded
        read = [_read(statement) for statement in tree.body]
        for imports, _ in read:
            for node in imports:
                self._add_plain(node) if isinstance(node, ast.Import) else self._add(node)
        for _, named in read if self._outermost else ():
            for name in named:
                if name.partition(".")[0] in self._outermost:
                    (self._dotted if "." in name else self.whole).add(name)

    def _add_plain(self, node: ast.Import) -> None:
        for alias in node.names:
            self._plain.add(alias.name)
            if alias.asname:
                self.whole.add(alias.name)
            else:
                self._outermost.add(alias.name.partition(".")[0])

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
        return {name.partition(".")[0] for name in (*self._plain, *self.all_of, *(source for source, _ in self.names.values()))}

    def loaded(self) -> Set[str]:
        """The names of all modules that are loaded for this one, and of what may be one; not what these load in turn."""
        named = {"%s.%s" % source for source in self.names.values()} | {source for source, _ in self.names.values()}
        found = {*self._plain, *self.all_of, *named}
        return found | {name[:end] for name in found for end in range(len(name)) if name[end] == "."}

    def modules(self, known: Mapping[str, Imports]) -> Set[str]:
        """The names of the modules that give the values; `known` are the imports of modules that may pass some on."""
        named = [*self.names.values(), *map(_in_module, self._dotted)]
        return {*self.whole, *self.all_of, *(_origin(source, name, known) for source, name in named)}

    def _sources_of(self, name: str) -> Iterator[Tuple[str, str]]:
        """The modules that may pass a name on to this one, the likeliest first, and what it is called there."""
        if name in self.names:
            yield self.names[name]
        for source in reversed(self.all_of):
            if name in getattr(sys.modules.get(source), "__dict__", ()):
                yield source, name


def _read(statement: ast.stmt) -> Tuple[List[Union[ast.Import, ast.ImportFrom]], Set[str]]:
    """The imports that run with a statement, and the names in it that are evaluated with it, like `a.b.c`. Each statement is read once."""
    known: Optional[Tuple[List[Union[ast.Import, ast.ImportFrom]], Set[str]]] = statement.__dict__.get(_READ)
    if known is not None:
        return known
    imports: List[Union[ast.Import, ast.ImportFrom]] = []
    named: Set[str] = set()
    todo: List[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
            continue
        path = dotted(node)
        if path:
            named.add(path)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            todo += [node.args, *node.decorator_list, *([node.returns] if node.returns is not None else [])]
        else:
            todo.extend(ast.iter_child_nodes(node))
    statement.__dict__[_READ] = imports, named
    return imports, named


def _in_module(path: str) -> Tuple[str, str]:
    """The innermost module of `a.b.c`, and the name that is taken from it."""
    source, name = path.rpartition(".")[::2]
    while "." in source and source not in sys.modules:
        source, name = source.rpartition(".")[::2]
    return source, name


def _origin(source: str, name: str, known: Mapping[str, Imports]) -> str:
    """The module that a name comes from."""
    return _followed(source, name, known, ()) or source


def _followed(source: str, name: str, known: Mapping[str, Imports], before: Tuple[str, ...]) -> Optional[str]:
    """The module that a name comes from; None where it only leads back to one of those before: modules import each other."""
    module = "%s.%s" % (source, name)
    if module in sys.modules:
        return module
    if source not in known or len(before) == MOST_STEPS:
        return source
    passed_on = False
    for nearer, called in known[source]._sources_of(name):
        passed_on = True
        found = _followed(nearer, called, known, (*before, source)) if nearer not in before and nearer != source else None
        if found is not None:
            return found
    return None if passed_on else source
