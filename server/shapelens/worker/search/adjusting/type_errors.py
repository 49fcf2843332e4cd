"""The words of Python and torch for a value of the wrong type, and what kind of value is to be in its place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, List, Tuple

LISTS = (list, tuple)

# What the message says, the types that were wrong, and what is to be in their place.
WRONG_TYPES: List[Tuple[str, Tuple[Any, ...], str]] = [
    (r"'(int|float|bool)' object is not (iterable|subscriptable|reversible)|object of type '(int|float)' has no len", (int, float), "list"),
    (r"non-iterable (int|float) object|argument of type '(int|float)' is not|not \"(int|float)\"\) to (list|tuple)", (int, float), "list"),
    (r"'(int|float|bool|str)' object has no attribute '(items|keys|values|get)'", (int, float, str), "dict"),
    (r"after \*\* must be a mapping", (int, float, str, list), "dict"),
    (r"instances of 'Tensor' and|'list' object has no attribute '(to|device|shape|dim|size)'", LISTS, "tensor"),
    (r"(list|tuple) indices must be integers or slices, not tuple", LISTS, "tensor"),
    (r"'(list|tuple)' object has no attribute '(items|keys|values|get)'", LISTS, "dict"),
    (r"'(list|tuple)' object cannot be interpreted as an int|(type\(s\) for|instances of) .*'(list|tuple)'", LISTS, "int"),
    (r"unsupported operand type\(s\) for .*'dict'|'dict' object cannot be interpreted", (dict,), "int"),
    (r"by non-int of type '(list|tuple)'|unhashable type: 'list'", LISTS, "int"),
    (r"(found element of|got|not) (type )?(list|tuple)|not '?(list|tuple)'?$", LISTS, "int"),
    (r"'\w+' object is not callable", (int, float, str, bool, *LISTS, SimpleNamespace), "class"),
    (r"(type\(s\) for|instances of) .*'str'|'str' object cannot be interpreted|not '?str'?\b|non-int of type 'str'", (str,), "int"),
    (r"must be real number, not str|invalid literal for int|could not convert string to float", (str,), "int"),
    (r"'float' object|non-int of type 'float'|type float|not 'float'", (float,), "int"),
    (r"expected str|must be str|should be a string|must be string|name must be", (int, float, bool), "text"),
    (r"'(int|float)' object has no attribute '(lower|upper|split|startswith|endswith|strip)'", (int, float, bool), "text"),
    (r"is not a Module subclass|should be a Module|Module subclass", (object,), "module"),
    (r"'(type|function)' object|issubclass\(\) arg 1", (type,), "module"),
    (r"SimpleNamespace", (SimpleNamespace,), "int"),
    (r"'(int|float|str|bool)' object has no attribute", (int, float, str, bool), "object"),
]  # fmt: skip
