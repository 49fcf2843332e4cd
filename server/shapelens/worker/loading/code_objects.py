"""The functions behind values and frames, and the code inside of code."""

from __future__ import annotations

import functools
from types import CodeType, FrameType, FunctionType
from typing import Any, Iterator, List, Optional

from .module_snapshot import CACHE, contents

DEEPEST_WRAPPER = 4


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions and classes that code defines, and of those in them."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


def function_of_frame(frame: FrameType) -> Optional[FunctionType]:
    """The function whose code a frame runs: a method of its first argument, or a function of its module. None for any other."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    owners = [*(first.__mro__ if isinstance(first, type) else ()), *type(first).__mro__]
    for names in [*map(vars, owners), frame.f_globals]:
        for function in functions_in(names.get(code.co_name)):
            if function.__code__ is code:
                return function
    return None


def functions_in(value: Any, depth: int = 0) -> Iterator[FunctionType]:
    """The functions that a value is or wraps."""
    if depth > DEEPEST_WRAPPER:
        return
    inner: List[Any] = []
    if isinstance(value, FunctionType):
        yield value
        inner += [value.__dict__.get("__wrapped__"), *(contents(cell) for cell in value.__closure__ or ())]
    elif isinstance(value, (staticmethod, classmethod)):
        inner.append(value.__func__)
    elif isinstance(value, property):
        inner += [value.fget, value.fset, value.fdel]
    elif isinstance(value, (functools.partial, functools.cached_property)):
        inner.append(value.func)
    elif isinstance(value, CACHE):
        inner.append(value.__wrapped__)
    for part in inner:
        if part is not None:
            yield from functions_in(part, depth + 1)
