"""The local names of a function that still hold what its caller gave, and walks over its statements."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Sequence, Tuple


@dataclass
class ParameterNames:
    """The local names that still hold a parameter, and those that hold a parameter's shape."""

    tensors: Dict[str, str]
    shapes: Dict[str, str] = field(default_factory=dict)
    questions: Dict[str, "frozenset[str]"] = field(default_factory=dict)  # only_one = x.ndim == 2

    def copy(self) -> ParameterNames:
        return ParameterNames(dict(self.tensors), dict(self.shapes), dict(self.questions))

    def forget(self, name: str) -> None:
        self.tensors.pop(name, None)
        self.shapes.pop(name, None)
        self.questions.pop(name, None)


def pairs(target: ast.expr, value: ast.expr) -> List[Tuple[ast.expr, ast.expr]]:
    """The parts of `q, k = query, key` that belong together."""
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return []
    starred = any(isinstance(element, ast.Starred) for element in target.elts + value.elts)
    return list(zip(target.elts, value.elts)) if len(target.elts) == len(value.elts) and not starred else []


def forget_assigned(names: ParameterNames, nodes: Sequence[ast.AST]) -> None:
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                names.forget(node.id)


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """All nodes that are evaluated where the statement stands: not the bodies of functions in it."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))
