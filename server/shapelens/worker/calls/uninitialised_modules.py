"""Modules whose constructor does not call `super().__init__()`, or not before it assigns a layer: they are initialised all the same, so
that the rest of the model keeps its shapes, and what is wrong is said once.
"""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any, Callable, List, Optional, Tuple

import torch

from ...protocol import Mismatch
from ..loading.code_objects import codes_in
from ..sandbox.exceptions import message_of, raised_at
from ..trace.frames import Frames

Module = torch.nn.Module
_NOT_CALLED = "_shapelens_super_not_called"  # in the __dict__ of a module that was initialised for its constructor, until that is said
_EARLY = "_shapelens_initialised_early"  # in the __dict__ of a module that was initialised as it was assigned to
_TOO_EARLY = re.compile(r"cannot assign (?:module|parameter|buffer)s? before Module\.__init__\(\) call")


def initialise(module: Any) -> None:
    """Make a module what `Module.__init__` makes of it, if its constructor has not: without that, no module can hold or call it."""
    if "_modules" not in module.__dict__ and _without_super(type(module)) is not None:
        _initialise(module)
        module.__dict__[_NOT_CALLED] = True


def not_initialised(module: Any, frames: Frames, example: int) -> Optional[Mismatch]:
    """Returns the mismatch of a called module that its constructor has not initialised: torch would refuse the call. Only the first call of
    a module has one."""
    if module.__dict__.pop(_NOT_CALLED, None) is None:
        return None
    cls = _without_super(type(module))
    if cls is None:
        return None
    message = "%s.__init__() does not call super().__init__()" % cls.__name__
    code = cls.__dict__["__init__"].__code__
    trail = [frames.line(code.co_filename, code.co_firstlineno)] if frames.is_user_file(code.co_filename) else frames.trail()
    return Mismatch("exception", message, "AttributeError", trail[-1] if trail else None, trail, example)


def _initialise(module: Any) -> None:
    held = dict(module.__dict__)
    Module.__init__(module)
    module.__dict__.update(held)


def _without_super(cls: type) -> Optional[type]:
    """The first class among those that one derives from whose constructor calls no other one."""
    for base in cls.__mro__[: cls.__mro__.index(Module)]:
        function = base.__dict__.get("__init__")
        codes = (function.__code__, *codes_in(function.__code__)) if isinstance(function, FunctionType) else ()
        if codes and not any("__init__" in code.co_names for code in codes):
            return base
    return None


def is_assigned_too_early(error: BaseException) -> bool:
    """True if a constructor assigned a layer, a parameter or a buffer before `super().__init__()`: it fails for every input."""
    return isinstance(error, AttributeError) and _TOO_EARLY.match(message_of(error)) is not None and _assignment(error) is not None


def assign_after_all(error: BaseException) -> Optional[Tuple[Any]]:
    """Initialise the module that could not be assigned to, and assign. The value in a tuple; None for any other exception."""
    assignment = _assignment(error) if is_assigned_too_early(error) else None
    if assignment is None:
        return None
    assign, (module, name, value, *others) = assignment
    _initialise(module)
    module.__dict__[_EARLY] = True
    assign(module, name, value, *others)
    return (value,)


def is_early(module: Any) -> bool:
    """True if an assignment initialised the module: a `super().__init__()` that follows would take away its contents."""
    return _EARLY in module.__dict__


def _assignment(error: BaseException) -> Optional[Tuple[Callable[..., None], List[Any]]]:
    """The method of torch's that has refused an assignment, with what it was given, the module first."""
    place = raised_at(error)
    code = place.tb_frame.f_code if place is not None else None
    for assign in (Module.__setattr__, Module.register_parameter, Module.register_buffer):
        if place is not None and code is assign.__code__:
            given = [place.tb_frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
            return (assign, given) if isinstance(given[0], Module) else None
    return None
