"""Calls of a library's modules with sizes that nobody knows, their own or those of what they are given: what fails in them is no mistake.

Libraries compare sizes, cut tables to them and make tensors of them, which fails with an unknown size. The module is then called twice with
small sizes in the place of the unknown one: sizes that are the same in both results are known, the others are unknown.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import torch

from ..meta.mode import made
from ..trace import module_tree, provenance
from ..unknown import stand_ins, unknown_sizes
from .recovery import is_vague

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
_plainly = torch._C.DisableTorchFunction

MOST_TENSORS = 16  # of a call that are asked for unknown sizes
# Pairs of sizes that are tried: of a text, of a picture. They have no common multiple nearby that both could be padded to.
TRIED = ((16, 72), (224, 352))


class _Unlike(Exception):
    """Two results are not of one form, or a size is computed from an unknown one."""


class _DoesNotFit(BaseException):
    """A module does not take the sizes that are tried. No `Exception`: what a library catches does not come here."""


def is_unsure(module: Any, args: Args, kwargs: Kwargs, is_user_file: Callable[[str], bool]) -> bool:
    """True if a module is a library's and has unknown sizes, of its own or of its arguments."""
    if not unknown_sizes.state.met or is_user_file(_file_of(type(module))):
        return False
    if hasattr(type(module), unknown_sizes.OWN_SIZES):
        return True
    with _plainly():
        return any(unknown_sizes.any_unknown(tensor.shape) for tensor in provenance.tensors_in((args, kwargs), MOST_TENSORS))


def called(calls: Any, module: Any, args: Args, kwargs: Kwargs) -> Any:
    """Returns the result of an unsure module; a stand-in for an unknown value where no result is sure. `calls` watches the calls of all
    modules."""
    state = unknown_sizes.state
    if state.in_library:  # What contains the module goes on from a failure.
        return module._call_impl(*args, **kwargs)
    silent, vague = state.silent, calls.meta.vague
    state.in_library = True
    try:
        result = module._call_impl(*args, **kwargs)
        with _plainly():
            if state.silent == silent and not any(is_vague(tensor) for tensor in provenance.tensors_in(result, MOST_TENSORS)):
                return result
    except (MemoryError, Exception):
        pass
    finally:
        state.in_library = False
    calls.meta.vague = vague
    if not any(calls.frames.is_user_file(_file_of(type(part))) for part in module_tree.modules(module)):
        for sizes in TRIED:
            try:
                return _alike(*[_tried(calls, module, args, kwargs, size) for size in sizes])
            except (_DoesNotFit, MemoryError, Exception):
                continue
    with _plainly():
        if provenance.follows_failure((args, kwargs)):
            return calls.recovery.vague(args, kwargs)
    unknown = stand_ins.absent("what %s gives" % type(module).__name__, "missing-file")
    stand_ins.called.append(unknown)
    return unknown


def _tried(calls: Any, module: Any, args: Args, kwargs: Kwargs, size: int) -> Any:
    """Returns a module's result where unknown sizes have this size. The trace records nothing of it."""
    meta, state = calls.meta, unknown_sizes.state
    given, named = _with_size(args, size), _with_size(kwargs, size)
    before = calls.refuse, calls.recording, calls.replay, meta.recover, meta.failure
    calls.refuse, calls.recording, calls.replay, meta.recover = _refused, None, None, calls.recovery.unable
    calls.aside = state.in_library = True
    try:
        return module._call_impl(*given, **named)
    finally:
        calls.aside = state.in_library = False
        calls.refuse, calls.recording, calls.replay, meta.recover, meta.failure = before


def _refused(found: Any) -> BaseException:
    return _DoesNotFit()


def _with_size(value: Any, size: int) -> Any:
    """A value with a size in the place of each unknown one. Raises _Unlike where one is computed from an unknown size."""
    if isinstance(value, Tensor):
        with _plainly():
            shape = [_sized(known, size) for known in value.shape]
            return value if shape == list(value.shape) else made(shape, value.dtype, value.requires_grad)
    if isinstance(value, int) and type(value) is not bool:
        return _sized(value, size)
    if type(value) in (tuple, list):
        return type(value)([_with_size(part, size) for part in value])
    if type(value) is dict:
        return {name: _with_size(part, size) for name, part in value.items()}
    return value


def _sized(number: int, size: int) -> int:
    if not unknown_sizes.is_unknown(number):
        return number
    if int(number) not in (unknown_sizes.SIZE, unknown_sizes.COUNT):
        raise _Unlike
    return size


def _alike(one: Any, other: Any) -> Any:
    """Returns the known part of a value with two known forms. Raises _Unlike where they have no common form."""
    if type(one) is not type(other):
        raise _Unlike
    if isinstance(one, Tensor):
        with _plainly():
            if one.dim() != other.dim() or one.dtype != other.dtype:
                raise _Unlike
            shape = [first if first == second else None for first, second in zip(one.shape, other.shape)]
            return one if None not in shape else made(unknown_sizes.filled_in(shape), one.dtype, one.requires_grad)
    if isinstance(one, dict):
        if list(one) != list(other):
            raise _Unlike
        for name in list(one):
            one[name] = _alike(one[name], other[name])
        return one
    if type(one) in (tuple, list):
        if len(one) != len(other):
            raise _Unlike
        return type(one)([_alike(first, second) for first, second in zip(one, other)])
    if isinstance(one, int) and type(one) is not bool and one != other:
        return unknown_sizes.whole(None)
    return one


def _file_of(cls: Any) -> str:
    """The file that a class's forward is written in."""
    code: Optional[Any] = getattr(getattr(cls, "forward", None), "__code__", None)
    return code.co_filename if code is not None else ""
