"""Classes that are no models by themselves: bases, mixins and interfaces. No example is searched for them."""

from __future__ import annotations

import ast
import inspect
from typing import Any, FrozenSet, List, Optional

import torch

from ..code.sources import function_node, function_of

_BASES = "shapelens_bases"  # an attribute of trees: the names of the classes that others in them are derived from
CALLED = ("forward", "__call__", "training_step")


def is_abstract(cls: Any, tree: ast.Module) -> bool:
    """True if a class is a base or a mixin: it has no forward, one that does nothing, or methods that it leaves to others."""
    if not (isinstance(cls, type) and issubclass(cls, torch.nn.Module)):
        return True
    if inspect.isabstract(cls):
        return True
    forward = _forward_of(cls)
    if forward is None:
        return True
    node = function_node(forward)
    if node is None:
        return False
    if does_nothing(node.body):
        return True
    return _is_derived_from(cls.__name__, tree) and any(_left_to_others(cls, name) for name in _called_on_self(node))


def _forward_of(cls: type) -> Any:
    """The function that calling the class's objects runs; None where it is nn.Module's own, or the one of Lightning that calls that one."""
    for name in CALLED[:2]:
        for base in cls.__mro__:
            if name in vars(base):
                if base is not torch.nn.Module and base.__name__ != "LightningModule":
                    return function_of(vars(base)[name]) or vars(base)[name]
                break
    return None


def does_nothing(body: List[ast.stmt]) -> bool:
    """True if a function only documents itself, passes, or says that it is not implemented."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Pass):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None and "NotImplemented" in ast.dump(node.exc):
            continue
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id == "NotImplemented":
            continue
        return False
    return True


def _called_on_self(node: ast.AST) -> List[str]:
    return [
        part.func.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id == "self"
    ]


def _left_to_others(cls: type, name: str) -> bool:
    """True if a method is there for others to override: it raises NotImplementedError and nothing else."""
    method = getattr(cls, name, None)
    node = function_node(method) if callable(method) else None
    return node is not None and does_nothing(node.body) and "NotImplemented" in ast.dump(node)


def _is_derived_from(name: str, tree: ast.Module) -> bool:
    bases: Optional[FrozenSet[str]] = tree.__dict__.get(_BASES)
    if bases is None:
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        bases = tree.__dict__[_BASES] = frozenset(base.id for node in classes for base in node.bases if isinstance(base, ast.Name))
    return name in bases
