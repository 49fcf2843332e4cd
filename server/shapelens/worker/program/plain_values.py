"""Exceptions of a program about plain values of the code: operands of types that do not go together, a key that nothing sets.

A program gives what is unknown as stand-ins, which take any operation. Types are known where all of them are plain; a loop that takes its
first turns only leaves lists and dicts shorter than they would be, so that an index or a computed key tells nothing.
"""

from __future__ import annotations

import ast
import linecache
import operator
import re
import sys
from types import FrameType
from typing import Any, Dict, Iterator, Optional, Tuple

import torch

from ..calls.exception_handlers import was_awaited
from ..calls.sure_mistakes import end_of, gives_objects_away, tree_of
from ..loading.definitions import KEPT
from ..sandbox.exceptions import is_raise, message_of, raised_at
from .flow import Flow

# What Python says of operands, with their types as groups.
_OF_OPERANDS = re.compile(
    r"unsupported operand type\(s\) for \S+(?: or pow\(\))?: '(?P<left>[\w.]+)' and '(?P<right>[\w.]+)'"
    r"|can only concatenate (?P<whole>[\w.]+) \(not \"?(?P<part>[\w.]+)\"?\) to "
    r"|'(?P<value>[\w.]+)' object (?:is not (?:subscriptable|iterable|callable)|does not support item (?:assignment|deletion))"
    r"|(?:list|tuple) indices must be integers or slices, not (?P<index>[\w.]+)"
    r"|cannot unpack non-iterable (?P<unpacked>[\w.]+) object"
    r"|bad operand type for unary \S+: '(?P<operand>[\w.]+)'"
    r"|can't multiply sequence by non-int of type '(?P<factor>[\w.]+)'"
    r"|object of type '(?P<sized>[\w.]+)' has no len\(\)"
    r"|'\S+' not supported between instances of '(?P<one>[\w.]+)' and '(?P<other>[\w.]+)'"
)
_PLAIN = (
    "int", "float", "complex", "bool", "str", "bytes", "list", "tuple", "dict", "set", "Tensor", "torch.Size", "torch.dtype", "function",
    "method", "builtin_function_or_method",
)  # fmt: skip  # No "type": Python says that of a stand-in, which is a class.
_OF_SCALARS = ("len() of a 0-d tensor", "iteration over a 0-d tensor")


def is_of_plain_values(error: BaseException) -> bool:
    """True if an exception is a mistake of the code for all data, by the plain values that it is about."""
    place = raised_at(error)
    if place is None or was_awaited(error):
        return False
    if type(error) is TypeError and message_of(error) in _OF_SCALARS:
        return True
    if type(error) is AttributeError:
        return _is_attribute_of_no_line(getattr(error, "obj", None), getattr(error, "name", None))
    frame = place.tb_frame
    if frame.f_globals.get("__name__") in (Flow.__module__, "torch.optim.optimizer"):  # They ask what they go through for its items.
        return type(error) is TypeError and _are_plain(error)
    if KEPT not in frame.f_globals or is_raise(frame.f_code.co_filename, place.tb_lineno):
        return False
    return _are_plain(error) if type(error) is TypeError else bool(dict_without(error))


def _is_attribute_of_no_line(owner: Any, name: Any) -> bool:
    """True if an object of the project's, a data set say, lacks an attribute that no line of the project sets."""
    bases = type(owner).__mro__
    if isinstance(owner, torch.nn.Module) or not isinstance(name, str) or any("__getattr__" in vars(base) for base in bases):
        return False
    of_project = [any(KEPT in getattr(each, "__globals__", ()) for each in vars(base).values()) for base in bases]
    known = [base.__module__.partition(".")[0] in ("builtins", "typing", "abc", "torch") for base in bases]
    if not of_project[0] or not all(map(operator.or_, of_project, known)):
        return False
    set_by = re.compile(r"\.%s\b\s*(?:[,:][^=\n(]*)?=(?!=)|[\"']%s[\"']|\b(?:setattr|__dict__|vars|__slots__)\b" % (name, name))
    texts = ["".join(linecache.getlines(file)) for file in _files()]
    return not any(set_by.search(text) or gives_objects_away(text) for text in texts)


def _are_plain(error: BaseException) -> bool:
    """True if Python refuses operands with only plain types."""
    said = _OF_OPERANDS.match(message_of(error))
    return said is not None and all(each in _PLAIN or _is_model(each) for each in said.groups() if each is not None)


def _is_model(name: str) -> bool:
    """True if a name is that of a model's class that has no items."""
    loaded = (vars(module).get(name) for module in list(sys.modules.values()) if KEPT in getattr(module, "__dict__", {}))
    return any(
        isinstance(each, type) and issubclass(each, torch.nn.Module) and not hasattr(each, "__iter__") and not hasattr(each, "__getitem__")
        for each in loaded
    )


def dict_without(error: BaseException) -> Dict[str, Any]:
    """The dict all whose keys the code names, out of which it takes one that it sets nowhere; an empty one where that is not wrong."""
    key, place = error.args[0] if type(error) is KeyError and error.args else None, raised_at(error)
    tree = tree_of(place.tb_frame) if place is not None else None
    if place is None or tree is None or not isinstance(key, str):
        return {}
    held = next(_dicts_asked(tree, place.tb_frame, place.tb_lineno, key), None)
    if not held or key in held:
        return {}
    texts = ["".join(linecache.getlines(file)) for file in _files()]
    if any(_is_set(key, text) for text in texts):
        return {}
    return held if all(isinstance(each, str) and any(_is_set(each, text) for text in texts) for each in held) else {}


def _dicts_asked(tree: ast.Module, frame: FrameType, line: int, key: str) -> Iterator[Dict[Any, Any]]:
    """The dicts that a statement asks for a key, by the names or attributes that hold them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= end_of(node) and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for part in ast.walk(node):
                if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and part.slice.value == key:
                    value = held_by(part.value, frame)
                    if type(value) is dict:
                        yield value


def held_by(node: ast.expr, frame: FrameType) -> Any:
    """Returns the value that a name, or an attribute of one, holds in a frame; None where that is unknown."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    owner: Optional[Any] = held_by(node.value, frame) if isinstance(node, ast.Attribute) else None
    return getattr(owner, "__dict__", {}).get(node.attr) if isinstance(node, ast.Attribute) else None


def _files() -> Tuple[str, ...]:
    """The files of the project that are loaded."""
    loaded = [vars(module) for module in list(sys.modules.values()) if module is not None and KEPT in getattr(module, "__dict__", {})]
    return tuple(file for file in (each.get("__file__") for each in loaded) if isinstance(file, str))


def _is_set(key: str, text: str) -> bool:
    """True if a text names a key otherwise than to look it up: `{"key": …}`, `d["key"] = …`, `dict(key=…)`, a list of keys, an
    annotation."""
    name = re.escape(key)
    taken = r"(?<=[\w\])])\[\s*([\"'])%s\1\s*\](?!\s*=[^=])" % name
    rest = re.sub(taken, "", text)
    return re.search(r"([\"'])%s\1|\b%s\s*[=:](?!=)" % (name, name), rest) is not None
