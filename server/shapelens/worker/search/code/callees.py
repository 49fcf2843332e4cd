"""The callee of a call in a function's text, and its parameters; which keys a table has that it looks up in."""

from __future__ import annotations

import ast
import inspect
from typing import Any, Dict, List, Optional, Tuple

import torch

from ....stated.syntax_trees import dotted
from .sources import Index, index_of, initialiser, is_torch, look_up, methods


def callee(function: ast.expr, within: Any, cls: Optional[type], owner: Optional[type]) -> Tuple[Any, int, Optional[type], Optional[type]]:
    """(what is called, how many of its parameters are given already, what its `self` is, whose text it is) where that is known.

    within: the function whose text it is; cls: what `self` is there; owner: the class whose text that function is of.
    """
    if isinstance(function, ast.Attribute):
        inner = function.value
        is_super = isinstance(inner, ast.Call) and dotted(inner.func) == "super"
        if cls is not None and (is_super or dotted(inner) == "self"):
            order, after = cls.__mro__, owner or cls
            for base in order[order.index(after) + 1 if after in order else len(order) :] if is_super else order:
                if function.attr in vars(base):
                    method = vars(base)[function.attr]
                    return method, 0 if isinstance(method, staticmethod) else 1, cls, base
            part = _kept_as(function.attr, cls) if not is_super else None
            if part is None or is_torch(part):
                return None, 0, None, None
            return getattr(part, "forward", None), 1, part, next((base for base in part.__mro__ if "forward" in vars(base)), part)
        if function.attr == "__init__":
            base = look_up(inner, within)
            if isinstance(base, type):
                found = initialiser(base)
                return (found[1], 0, cls, found[0]) if found else (None, 0, None, None)
    found = look_up(function, within)
    if isinstance(found, type):
        init = initialiser(found)
        return (init[1], 1, found, init[0]) if init is not None else (None, 0, None, None)
    return (found, 0, None, None) if callable(found) else (None, 0, None, None)


def _kept_as(attribute: str, cls: type) -> Optional[type]:
    """The class of the module that a class's methods assign to an attribute of `self`; None where they do not say."""
    for function, node in methods(cls):
        index = index_of(node)
        for stored in index.stored.get("self." + attribute, ()):
            assigned = index.parents.get(stored)
            if isinstance(assigned, ast.Assign) and isinstance(assigned.value, ast.Call):
                found = look_up(assigned.value.func, function)
                if isinstance(found, type) and issubclass(found, torch.nn.Module):
                    return found
    return None


RECURRENT = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")


def parameters_of(target: Any, cls: Optional[type] = None) -> Dict[str, inspect.Parameter]:
    """The parameters of a function, `self` included; {} where Python does not know them."""
    if cls is not None and is_torch(cls) and issubclass(cls, torch.nn.RNNBase):
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        numbers = {"input_size": int, "hidden_size": int, "num_layers": int, "dropout": float}
        return {name: inspect.Parameter(name, keyword, annotation=numbers.get(name, bool)) for name in ("self",) + RECURRENT}
    try:
        return dict(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return {}


def keys_of(table: ast.AST, index: Index, within: Any, cls: Optional[type]) -> List[Any]:
    """The keys of a dict that is written down in the function `within`, or that a name or an attribute of `cls` stands for."""
    if isinstance(table, ast.Dict):
        return [key.value for key in table.keys if isinstance(key, ast.Constant)]
    name = dotted(table)
    if name:
        for stored in index.stored.get(name, ()):
            assigned = index.parents.get(stored)
            if isinstance(assigned, ast.Assign) and isinstance(assigned.value, ast.Dict):
                return keys_of(assigned.value, index, within, cls)
    found = look_up(table, within)
    if found is None and name.startswith("self.") and cls is not None:
        found = getattr(cls, name[5:], None)
    return [key for key in list(found)[:40] if isinstance(key, (str, int))] if isinstance(found, dict) else []
