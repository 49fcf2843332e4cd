"""Runs code for real under the torch mode of a run: all tensors lie on the CPU, and each operation is torch's own.

On its way the mode notes masks that hide what comes later, which inputs are read, and, where that is wanted, what each operation gave.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch.overrides import TorchFunctionMode

from ...dependences import CausalClaim
from ...protocol import FileSpan
from ..meta.constants import MOVES
from ..meta.mode import ASKS, DESCRIBES, SPECIAL, computing
from ..trace.frames import Frames
from ..trace.layer_inputs import is_torch_layer
from ..trace.provenance import tensors_in
from . import drawing

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

LARGEST_MASK = 1 << 22  # elements of what is looked at
SMALLEST_MASK = 4  # steps: fewer say nothing
MOST_RESULTS = 5_000  # of operations
MOST_NUMBERS = 1 << 26  # in all of these
LARGEST_RESULT = 1 << 21
_ATTENTION = "scaled_dot_product_attention"
_EMPTY = {getattr(torch, name) for name in ("empty", "empty_like", "empty_strided") if hasattr(torch, name)}
_EMPTY |= {Tensor.new_empty, Tensor.new_empty_strided} if hasattr(Tensor, "new_empty_strided") else {Tensor.new_empty}
_PICKS = {Tensor.__getitem__, Tensor.nonzero, torch.nonzero, torch.masked_select, Tensor.masked_select}
_CORNERS = {torch.tril_indices, torch.triu_indices}
_LOOKS = DESCRIBES | ASKS | {Tensor.size, Tensor.numel, Tensor.__len__, Tensor.device.__get__, Tensor.type, Tensor.element_size}


def offset_of_mask(tensor: Tensor) -> Optional[int]:
    """Of a matrix of two values that lie on both sides of a diagonal, the number of that diagonal; None for all others."""
    if tensor.dim() < 2 or tensor.is_complex() or tensor.shape[-1] != tensor.shape[-2]:
        return None
    count = int(tensor.shape[-1])
    if count < SMALLEST_MASK or not 0 < tensor.numel() <= LARGEST_MASK:
        return None
    matrix = tensor.detach()
    while matrix.dim() > 2:
        matrix = matrix[0]
    low, high = matrix[count - 1, 0], matrix[0, count - 1]
    if bool(low == high):
        return None
    below = matrix == low
    if not bool((below | (matrix == high)).all()):
        return None
    offset = int(below.sum(1)[count // 2]) - count // 2 - 1
    if not -2 <= offset <= 2 or not torch.equal(below, torch.ones_like(below).tril(offset)):
        return None
    return offset


class Result:
    """The result of an operation or a layer of torch's."""

    __slots__ = ("name", "tensors")

    def __init__(self, name: str, tensors: List[Tensor]) -> None:
        self.name = name
        self.tensors = tensors


class RealMode(TorchFunctionMode):
    """Computes for real. `masks` are those that were made, by their size; `claims` what says besides that the future is hidden."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self.frames = frames
        self.masks: Dict[int, CausalClaim] = {}
        self.claims: List[CausalClaim] = []
        self.met: Set[int] = set()  # sizes of masks that the model came to in its forward
        self.picked: Set[int] = set()  # sizes of such triangles that pick pairs, rather than that they hide anything
        self.is_forward = False
        self.unsure = ""  # why what was computed may not be what the code computes
        self.watched: Dict[int, Tensor] = {}  # inputs, by id, of which it is asked whether they are read
        self.read: Set[int] = set()
        self.shape_read: Set[int] = set()
        self.results: Optional[List[Result]] = None
        self.numbers = 0
        self.wanted = -1  # the number of the result whose place is asked for
        self.trail: List[FileSpan] = []
        self._hidden = 0
        self._instead: Dict[int, Tuple[Tensor, Tensor]] = {}

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        with _plainly():
            given = dict(kwargs) if kwargs else {}
            given.pop("device", None)
            given.pop("pin_memory", None)
            if func in MOVES:
                return args[0]
            if func is Tensor.type:
                return SPECIAL[func](func, args, given)
            if func is Tensor.to:
                args, given = _without_device(args, given)
                if len(args) == 1 and not given:
                    return args[0]
            if self.watched and self.is_forward:
                self._note_reads(func, args, given)
            if func in DESCRIBES:
                return func(*args)
            if func in _PICKS:
                self._note_picked(args[1:] if func is Tensor.__getitem__ else args)
            if any(tensor.is_meta for tensor in tensors_in((args, given), 64)):
                args, given = self._real(args), self._real(given)
            result = func(*args, **given)
            if func in _EMPTY and isinstance(result, Tensor):
                drawing.fill(result)
            if func in ASKS or not isinstance(result, (Tensor, tuple, list)):
                return result
            if isinstance(result, Tensor):
                self._look(func, result, args, given)
                if result.is_meta:
                    self.unsure = "an operation has no numbers"
            if not self._hidden and self.results is not None:
                self._keep(getattr(func, "__name__", "operation"), result)
            return result

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """A module is called: what a layer of torch's without modules in it does is one operation."""
        hides = is_torch_layer(module) and not any(True for _ in module.children())
        self._hidden += hides
        try:
            result = module._call_impl(*args, **kwargs)
        finally:
            self._hidden -= hides
        if hides and self.results is not None and not self._hidden:
            with _plainly():
                self._keep(type(module).__name__, result)
        return result

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """All is computed for real meanwhile."""
        before, computing.for_real = computing.for_real, True
        try:
            with self, torch.no_grad():
                yield
        finally:
            computing.for_real = before

    def record(self, wanted: int = -1) -> None:
        """Keep what operations give from now on, and note the place of the one with this number."""
        self.results, self.numbers, self.wanted, self.trail = [], 0, wanted, []

    def recorded(self) -> List[Result]:
        """Returns the results of operations since `record`."""
        found, self.results = self.results or [], None
        return found

    # --- what is noted ---

    def _keep(self, name: str, result: Any) -> None:
        assert self.results is not None
        if len(self.results) >= MOST_RESULTS or self.numbers >= MOST_NUMBERS:
            return
        if len(self.results) == self.wanted:
            self.trail = self.frames.trail()
        tensors = [tensor for tensor in tensors_in(result, 8) if tensor.numel() <= LARGEST_RESULT]
        self.numbers += sum(tensor.numel() for tensor in tensors)
        self.results.append(Result(name, [tensor.detach().clone() for tensor in tensors]))

    def _note_reads(self, func: Callable[..., Any], args: Any, kwargs: Any) -> None:
        looks = func in _LOOKS or getattr(func, "__name__", "") == "__get__"
        for tensor in tensors_in((args, kwargs), 64):
            if id(tensor) in self.watched:
                (self.shape_read if looks else self.read).add(id(tensor))

    def _look(self, func: Callable[..., Any], result: Tensor, args: Any, kwargs: Dict[str, Any]) -> None:
        if getattr(func, "__name__", "") == _ATTENTION and (kwargs.get("is_causal") or (len(args) > 5 and args[5])):
            self._claim(CausalClaim("is_causal", "is_causal=True", self.frames.innermost()))
        if func in _CORNERS and len(args) >= 2 and args[0] == args[1]:  # Places that are filled by their numbers.
            self._met(int(args[0]), "")
        if result.dim() >= 2 and result.shape[-1] == result.shape[-2] and result.shape[-1] >= SMALLEST_MASK:
            self.look_at_mask(result, "")

    def look_at_mask(self, tensor: Tensor, name: str) -> None:
        """Note a tensor that hides what comes later."""
        size = int(tensor.shape[-1])
        if (size in self.masks and (size in self.met or not self.is_forward)) or offset_of_mask(tensor) is None:
            return
        self._met(size, name)

    def _note_picked(self, given: Any) -> None:
        """A triangle that picks pairs is no mask."""
        for tensor in tensors_in(given, 8):
            size = int(tensor.shape[-1]) if tensor.dim() >= 2 else 0
            if tensor.dtype is torch.bool and size in self.masks and offset_of_mask(tensor) is not None:
                self.picked.add(size)

    def _met(self, size: int, name: str) -> None:
        if self.is_forward:
            self.met.add(size)
        if size not in self.masks:
            self.masks[size] = CausalClaim("mask", name, self.frames.innermost())

    def _claim(self, claim: CausalClaim) -> None:
        if claim not in self.claims:
            self.claims.append(claim)

    # --- what is not there ---

    def _real(self, value: Any) -> Any:
        """A value with numbers: a tensor that was made while the file was loaded gets some, and keeps them."""
        if isinstance(value, Tensor):
            return self._numbers_of(value) if value.is_meta else value
        if type(value) in (tuple, list):
            return type(value)([self._real(item) for item in value])
        if type(value) is dict:
            return {name: self._real(item) for name, item in value.items()}
        return value

    def _numbers_of(self, tensor: Tensor) -> Tensor:
        known = self._instead.get(id(tensor))
        if known is None:
            if self.is_forward:
                self.unsure = "its forward uses a tensor whose numbers nobody knows"
            known = self._instead[id(tensor)] = (tensor, drawing.fill(torch.empty(tensor.shape, dtype=tensor.dtype)))
        return known[1]


def _without_device(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The arguments of `Tensor.to` less the device, and where it copies to the one of another tensor, with that tensor's dtype alone."""
    kept: List[Any] = [args[0]]
    for part in args[1:]:
        if isinstance(part, Tensor):
            kept.append(part.dtype)
        elif isinstance(part, torch.dtype):
            kept.append(part)
    other = kwargs.pop("other", None)
    if isinstance(other, Tensor):
        kwargs["dtype"] = other.dtype
    kwargs = {name: value for name, value in kwargs.items() if name in ("dtype", "copy", "memory_format") and value is not None}
    return tuple(kept), kwargs
