"""Exceptions of a program about plain values of the code: operands of types that do not go together, a key that nothing sets.

A program gives what is unknown as stand-ins, which take any operation. Types are known where all of them are plain; a loop that takes its
first turns only leaves lists and dicts shorter than they would be, so that an index or a computed key tells nothing.
"""

from __future__ import annotations

import linecache
import operator
import re
import sys
from typing import Any

import torch

from ..calls.exception_handlers import was_awaited
from ..calls.missing_keys import dict_without, files_of_project
from ..calls.sure_mistakes import gives_objects_away
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
    texts = ["".join(linecache.getlines(file)) for file in files_of_project()]
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
