"""The parts of a call of a torch function: its arguments, what it changes in place, which operands it multiplies."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch

_OPERATORS = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_IN_PLACE_OPERATORS = {"__setitem__", *("__i%s__" % name for name in _OPERATORS)}
_ADDS_A_PRODUCT = ("addmm", "baddbmm", "addbmm")  # of their last two operands


def argument(args: Tuple[Any, ...], kwargs: Dict[str, Any], index: int, *names: str, default: Any = None) -> Any:
    """The argument at a position or of one of these names."""
    if len(args) > index:
        return args[index]
    return next((kwargs[name] for name in names if name in kwargs), default)


def is_in_place(function: Callable[..., Any]) -> bool:
    """True if a function changes its first argument: `add_`, `x += y`, `x[i] = y`."""
    return is_named_in_place(getattr(function, "__name__", ""))


def is_named_in_place(name: str) -> bool:
    """The same, of a function of this name."""
    return name in _IN_PLACE_OPERATORS or (name.endswith("_") and not name.startswith("_"))


def changed_tensor(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[torch.Tensor]:
    """The tensor that a call changes: its `out`, or its first argument; None where it makes a new one."""
    out = kwargs.get("out")
    changed = out if isinstance(out, torch.Tensor) else args[0] if args and is_in_place(function) else None
    return changed if isinstance(changed, torch.Tensor) else None


def factors(name: str, operands: Sequence[Any]) -> Sequence[Any]:
    """The two operands that a matrix product of this name multiplies; fewer where it was given fewer."""
    return operands[-2:] if name in _ADDS_A_PRODUCT else operands[:2]
