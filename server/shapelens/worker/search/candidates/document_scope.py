"""The document's own namespace, for building a model: its classes, what it imports, and how to write them in an expression."""

from __future__ import annotations

import ast
import inspect
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import torch

from ...evaluation.expression import package_of
from .name_priors import words


class DocumentScope:
    """The names of a document, without running what it did not run yet."""

    def __init__(self, names: Mapping[str, Any], tree: ast.Module) -> None:
        self.names = names
        self.tree = tree
        self.bound: Dict[str, Any] = {}
        self.classes: Dict[str, type] = {}  # the document's own, in their order
        for name, own in _defined(tree.body):
            try:
                value = names[name]
            except Exception:  # A definition that fails when it is read.
                continue
            self.bound[name] = value
            if own and isinstance(value, type):
                self.classes[name] = value

    def expression(self, item: Any) -> Optional[str]:
        """Returns the document's expression for a class, function or module object; None where it cannot reach it."""
        for name, value in self.bound.items():
            if value is item:
                return name
        module, name = getattr(item, "__module__", ""), getattr(item, "__qualname__", "")
        for alias, value in self.bound.items():
            if inspect.ismodule(value) and "." not in name and vars(value).get(name) is item:
                return "%s.%s" % (alias, name)
        if module.partition(".")[0] == "torch" and item is getattr(torch.nn, name, None):
            return "torch.nn." + name
        if module.partition(".")[0] == "torch" and item is getattr(torch, name, None):
            return "torch." + name
        return self._in_its_module(item, module, name)

    def _in_its_module(self, item: Any, module: str, name: str) -> Optional[str]:
        """`package.module.Class`, for what the document does not name but a module that it imports."""
        own = package_of(self.names)
        if not own or module.partition(".")[0] != own:
            return None
        return "%s.%s" % (module, name) if resolved("%s.%s" % (module, name)) is item else None

    def class_of(self, call: ast.Call) -> Optional[type]:
        """The class that a call in an expression builds an object of; None where it calls something else."""
        path = ast.unparse(call.func)
        first, *rest = path.split(".")
        found = _part_of(self.bound[first], rest) if first in self.bound else resolved(path) if rest else None
        return found if isinstance(found, type) else None

    def layer(self, name: str) -> str:
        """A class of torch.nn as the document writes it."""
        return self.expression(getattr(torch.nn, name)) or "torch.nn." + name

    def modules(self) -> Iterator[Tuple[str, type]]:
        """The document's own nn.Module classes, then those of the user's that it imports."""
        for name, cls in self.classes.items():
            if issubclass(cls, torch.nn.Module):
                yield name, cls
        for name, value in self.bound.items():
            if isinstance(value, type) and name not in self.classes and issubclass(value, torch.nn.Module):
                yield name, value

    def named_like(self, name: str, candidates: Iterator[Tuple[str, type]]) -> List[Tuple[str, type]]:
        """The classes whose names have words of a parameter's name in them, the best first."""
        own = [word for word in words(name) if len(word) > 2]
        plain = name.replace("_", "").lower()
        found = []
        for place, (text, cls) in enumerate(candidates):
            theirs = words(text)
            shared = sum(1 for word in own if word in theirs)
            same = plain == text.replace("_", "").lower()
            ends = bool(theirs) and bool(own) and theirs[-1] == own[-1]
            if shared or same:
                found.append((-(4 * same + 2 * shared + ends), len(theirs) - shared, place, text, cls))
        return [(text, cls) for _, _, _, text, cls in sorted(found, key=lambda item: item[:3])]


def resolved(path: str) -> Any:
    """Returns the object `package.module.name` of a loaded package; None where there is no such thing."""
    first, *rest = path.split(".")
    return _part_of(sys.modules.get(first), rest)


def _part_of(found: Any, path: List[str]) -> Any:
    """Returns the object under a dotted name of a module or class, without running any code of it; None where there is no such thing."""
    for part in path:
        found = inspect.getattr_static(found, part, None) if inspect.ismodule(found) or isinstance(found, type) else None
    return found


def _defined(body: List[ast.stmt]) -> Iterator[Tuple[str, bool]]:
    """(name, whether the document defines it rather than imports it) of classes, functions and imports at module level."""
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name, True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if alias.name != "*":
                    yield alias.asname or alias.name.partition(".")[0], False
        elif isinstance(node, (ast.If, ast.Try)):
            inner = [child for part in ("body", "orelse", "finalbody") for child in getattr(node, part, [])]
            yield from _defined(inner + [child for handler in getattr(node, "handlers", []) for child in handler.body])
