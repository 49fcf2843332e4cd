"""The meaning of a module's names, by its syntax tree alone."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Optional, Set, Union

from .....stated.syntax_trees import dotted

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODELS = ("Module", "Model", "Layer", "Network")  # what the names of classes that models derive from end with
BLOCKS = ("body", "orelse", "finalbody")


class ModuleNames:
    """The names that a module binds at its top level, also inside of `if`, `try`, `with` and loops.

    `own` says which of its names the expressions that are made may have in them: those of the document, where it is the module itself.
    Another file's own names mean nothing there; `known` says what those that it imports are called in the document.
    """

    def __init__(self, tree: ast.Module, own: bool = True, known: Optional[Dict[str, str]] = None) -> None:
        self.tree = tree
        self.own = own
        self.known = known or {}  # by dotted name: {"Net": "Net", "models.Net": "Net"}
        self.functions: Dict[str, Function] = {}
        self.classes: Dict[str, ast.ClassDef] = {}
        self._imports: Optional[Dict[str, str]] = None
        self.assigned: Dict[str, int] = {}  # how often
        self.literals: Dict[str, ast.expr] = {}  # what names that are assigned once hold, where the text itself says it
        for statement in statements(tree.body):
            self._bind(statement)

    @property
    def imports(self) -> Dict[str, str]:
        """Returns the full names of imported names: {"np": "numpy", "F": "torch.nn.functional"}."""
        if self._imports is None:
            self._imports = {}
            for node in ast.walk(self.tree):  # Functions import what they need too, by the same names as a rule.
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    self._import(node, self._imports)
        return self._imports

    def _import(self, node: Union[ast.Import, ast.ImportFrom], found: Dict[str, str]) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                found.setdefault(name, alias.name if alias.asname else name)
            else:
                source = "." * node.level + (node.module or "")
                found.setdefault(alias.asname or alias.name, "%s.%s" % (source, alias.name) if node.module else source + alias.name)

    def _bind(self, node: ast.stmt) -> None:
        if isinstance(node, FUNCTIONS):
            self.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
        else:
            times = 2 if isinstance(node, (ast.For, ast.AsyncFor)) else 1  # A loop does so again and again.
            for name in stored(node):
                self.assigned[name] = self.assigned.get(name, 0) + times

    def __contains__(self, name: str) -> bool:
        return name in self.functions or name in self.classes or name in self.assigned or name in self.imports

    def speaks_of(self, words: Set[str], models: Set[str]) -> bool:
        """True if any code but that of models has one of these names in it."""
        for node in self.tree.body:
            if not isinstance(node, (ast.Import, ast.ImportFrom)) and not (isinstance(node, ast.ClassDef) and node.name in models):
                for part in ast.walk(node):
                    if isinstance(part, (ast.Name, ast.FunctionDef, ast.arg, ast.Attribute)) and _word(part) in words:
                        return True
        return False

    def canonical(self, node: ast.AST) -> str:
        """The full name that a dotted expression stands for: `nn.Linear` is "torch.nn.Linear". "" for what is not dotted."""
        name = dotted(node)
        first, dot, rest = name.partition(".")
        return self.imports.get(first, first) + dot + rest


def _word(node: Union[ast.Name, ast.FunctionDef, ast.arg, ast.Attribute]) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.name if isinstance(node, ast.FunctionDef) else node.arg if isinstance(node, ast.arg) else node.attr


def statements(body: List[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block and of the blocks in it, but for those of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            for field in BLOCKS:
                yield from statements(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from statements(handler.body)


def stored(node: ast.stmt) -> Set[str]:
    """The names that a simple statement, or the head of a compound one, assigns."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets: List[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    else:
        return set()
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def free_names(node: ast.AST) -> Set[str]:
    """The names that an expression reads, less those that its own lambdas and comprehensions bind."""
    found: Set[str] = set()
    bound: Set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (found if isinstance(part.ctx, ast.Load) else bound).add(part.id)
        elif isinstance(part, ast.arg):
            bound.add(part.arg)
    return found - bound


def is_main_block(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`"""
    return isinstance(node, ast.If) and {"__name__"} <= free_names(node.test) and "__main__" in ast.dump(node.test)


def module_classes(names: ModuleNames) -> Set[str]:
    """The classes of a module that are models or parts of them, as far as its text says: by what they derive from, or a `forward`."""
    found = {name for name, node in names.classes.items() if any(getattr(part, "name", "") == "forward" for part in node.body)}
    grew = True
    while grew:
        grew = False
        for name, node in names.classes.items():
            bases = {dotted(base) for base in node.bases}
            if name not in found and any(base in found or base.endswith(MODELS) for base in bases):
                found.add(name)
                grew = True
    return found


def main_class(names: ModuleNames, classes: Set[str]) -> str:
    """The one class of `classes` that no other class of the module reads; "" where there are several."""
    read = {part.id for node in names.classes.values() for part in ast.walk(node) if isinstance(part, ast.Name) and part.id != node.name}
    left = [name for name in names.classes if name in classes and name not in read]
    return left[0] if len(left) == 1 else ""


def method(owner: ast.ClassDef, name: str) -> Optional[Function]:
    """A method that a class itself defines."""
    return next((node for node in owner.body if isinstance(node, FUNCTIONS) and node.name == name), None)


def inherited(names: ModuleNames, owner: ast.ClassDef, name: str, depth: int = 0) -> Optional[Function]:
    """A method of a class, or of those that it derives from in the same module."""
    found = method(owner, name)
    for base in owner.bases if found is None and depth < 10 else ():
        parent = names.classes.get(dotted(base))
        found = found or (inherited(names, parent, name, depth + 1) if parent is not None and parent is not owner else None)
    return found


def required(function: Function, bound: bool = True) -> Set[str]:
    """The parameters that a call has to give. bound: the first is `self`."""
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    kept = positional[1 if bound else 0 : len(positional) - len(arguments.defaults)]
    only = [one.arg for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is None]
    return {one.arg for one in kept} | set(only)
