"""Kinds of values that annotations ask for. Text that cannot be evaluated is read as far as it goes."""

from __future__ import annotations

import ast
import collections.abc
import enum
import inspect
import types
import typing
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

import torch

from ....stated.syntax_trees import expression_of, last_name
from ..code.sources import function_of

EMPTY = inspect.Parameter.empty
UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))  # The latter is of Python 3.10.
# What a union is taken for, first to last: what is easiest to give.
EASIEST = (
    "choice", "enum", "int", "float", "bool", "text", "list", "dict", "of", "module", "class", "called", "dtype", "device", "tensor", "",
)  # fmt: skip
MOST_KINDS = 4  # a union of more of them asks for nothing in particular
BY_NAME = {
    "int": "int", "float": "float", "bool": "bool", "str": "text", "dict": "dict", "Dict": "dict", "Mapping": "dict",
    "list": "list", "List": "list", "tuple": "list", "Tuple": "list", "Sequence": "list", "Iterable": "list", "Collection": "list",
    "Callable": "called", "Type": "class", "type": "class", "Tensor": "tensor", "Module": "module", "ndarray": "tensor", "device": "device",
    "dtype": "dtype", "MutableMapping": "dict", "Number": "float", "Real": "float", "Integral": "int", "set": "list", "Size": "list",
}  # fmt: skip
# Classes whose objects hold whatever settings they are given.
OF_SETTINGS = {
    "Namespace", "SimpleNamespace", "DictConfig", "EasyDict", "CfgNode", "ConfigDict", "Munch", "AttrDict", "AttributeDict", "HParams",
}  # fmt: skip
BY_NAME.update(dict.fromkeys(OF_SETTINGS, "object"))


@dataclass
class AnnotatedKind:
    """The kind of value that an annotation asks for."""

    kind: str  # as in Uses, and "choice", "enum", "of" (an object of `cls`), "device", "dtype"; "" where it says nothing
    cls: Optional[type] = None
    item: Optional["AnnotatedKind"] = None
    length: Optional[int] = None
    items: Tuple["AnnotatedKind", ...] = ()  # of a tuple, one by one
    choices: Tuple[Any, ...] = ()
    optional: bool = False
    also: Tuple[str, ...] = ()  # the kinds that a union allows as well
    is_tuple: bool = False


NOTHING = AnnotatedKind("")


def annotated_kind(annotation: Any, function: Any = None, depth: int = 0) -> AnnotatedKind:
    """Returns the kind of value that an annotation of a parameter of `function` asks for."""
    if annotation is EMPTY or annotation is Any or depth > 4:
        return NOTHING
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return _of_text(annotation, function, depth)
    if annotation is None or annotation is type(None):
        return AnnotatedKind("", optional=True)
    origin = typing.get_origin(annotation)
    if (origin is not None and getattr(origin, "__name__", "") == "Annotated") or hasattr(annotation, "__metadata__"):
        return annotated_kind(typing.get_args(annotation)[0], function, depth + 1)
    generic = _of_generic(origin, typing.get_args(annotation), function, depth)
    if generic is not None:
        return generic
    if isinstance(origin, type):
        annotation = origin
    if isinstance(annotation, typing.TypeVar):
        return annotated_kind(annotation.__bound__, function, depth + 1) if annotation.__bound__ is not None else NOTHING
    if hasattr(annotation, "__supertype__"):  # typing.NewType
        return annotated_kind(annotation.__supertype__, function, depth + 1)
    return _of_class(annotation) if isinstance(annotation, type) else AnnotatedKind(BY_NAME.get(getattr(annotation, "__name__", ""), ""))


def _of_generic(origin: Any, args: Tuple[Any, ...], function: Any, depth: int) -> Optional[AnnotatedKind]:
    """Returns the kind of value that `origin[args]` asks for; None for what is no generic of typing's or of a container."""
    if origin in UNIONS:
        return _union([annotated_kind(arg, function, depth + 1) for arg in args])
    if origin is typing.Literal:
        return AnnotatedKind("choice", choices=args)
    if origin is type:
        return AnnotatedKind("class", cls=args[0] if args and isinstance(args[0], type) else None)
    if origin is collections.abc.Callable:
        return AnnotatedKind("called", cls=args[-1] if args and isinstance(args[-1], type) else None)
    if origin is tuple:
        return _tuple([annotated_kind(arg, function, depth + 1) for arg in args if arg is not Ellipsis], Ellipsis in args)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return AnnotatedKind("dict")
    if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
        return AnnotatedKind("list", item=annotated_kind(args[0], function, depth + 1) if args else None)
    return None


def _of_class(cls: type) -> AnnotatedKind:
    if cls in (int, float, bool, str, dict, list, tuple, set, type):
        return AnnotatedKind(BY_NAME[cls.__name__], is_tuple=cls is tuple)
    if issubclass(cls, enum.Enum):
        return AnnotatedKind("enum", cls=cls)
    if issubclass(cls, torch.nn.Module):
        return AnnotatedKind("module", cls=cls)
    if cls is torch.dtype:
        return AnnotatedKind("dtype")
    if cls is torch.device:
        return AnnotatedKind("device")
    if issubclass(cls, torch.Tensor) or cls.__name__ == "ndarray":
        return AnnotatedKind("tensor")
    if cls is torch.Size:
        return AnnotatedKind("list", is_tuple=True)
    if getattr(cls, "_is_protocol", False) or cls.__name__ in ("Buffer", "bytes", "complex"):
        return NOTHING
    if cls.__module__ in ("collections.abc", "typing", "numbers") or cls is object:
        return AnnotatedKind(BY_NAME.get(cls.__name__, ""))
    return AnnotatedKind("object") if cls.__name__ in OF_SETTINGS else AnnotatedKind("of", cls=cls)


def _union(parts: List[AnnotatedKind]) -> AnnotatedKind:
    given = [part for part in parts if part.kind]
    optional = any(part.optional and not part.kind for part in parts)
    if len({part.kind for part in given}) not in range(1, MOST_KINDS + 1):  # numpy's ArrayLike takes anything.
        return AnnotatedKind("", optional=optional)
    best = min(given, key=lambda part: EASIEST.index(part.kind))
    items = next((part for part in given if part.kind == "list"), best)
    choices = tuple(choice for part in given for choice in part.choices)
    return AnnotatedKind(
        best.kind, best.cls, items.item, items.length, items.items, choices, optional, tuple(part.kind for part in given), items.is_tuple
    )


def _tuple(items: List[AnnotatedKind], open_end: bool) -> AnnotatedKind:
    if open_end or not items:
        return AnnotatedKind("list", item=items[0] if items else None, is_tuple=True)
    return AnnotatedKind("list", item=items[0], length=len(items), items=tuple(items), is_tuple=True)


def _of_text(text: str, function: Any, depth: int) -> AnnotatedKind:
    """An annotation that is a string, as all are with `from __future__ import annotations`."""
    tree = expression_of(text.strip())
    return NOTHING if tree is None else _of_node(tree, function, depth)


def _of_node(node: ast.expr, function: Any, depth: int) -> AnnotatedKind:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):  # Python 3.9 knows no such types.
        return _union([_of_node(node.left, function, depth + 1), _of_node(node.right, function, depth + 1)])
    if isinstance(node, ast.Constant):
        return (
            AnnotatedKind("", optional=True)
            if node.value is None
            else _of_text(node.value, function, depth + 1)
            if isinstance(node.value, str)
            else NOTHING
        )
    names = getattr(function_of(function), "__globals__", {}) if function is not None else {}
    known = {part.id: names[part.id] for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in names}
    try:
        value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<annotation>", "eval"), {**vars(typing), **known})
    except Exception:  # A name that is imported for type checkers only, or written for a newer Python.
        value = None
    if value is not None and not isinstance(value, str):
        return annotated_kind(value, function, depth + 1)
    last = node
    if isinstance(node, ast.Subscript):
        last = node.value
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        name = last_name(last)
        parts = [_of_node(part, function, depth + 1) for part in inner if not (isinstance(part, ast.Constant) and part.value is Ellipsis)]
        if name == "Optional" and parts:
            return _union(parts + [AnnotatedKind("", optional=True)])
        if name == "Union":
            return _union(parts)
        if name in ("Tuple", "tuple"):
            return _tuple(parts, len(parts) < len(inner))
        if BY_NAME.get(name) == "list":
            return AnnotatedKind("list", item=parts[0] if parts else None)
    return AnnotatedKind(BY_NAME.get(last_name(last), ""))
