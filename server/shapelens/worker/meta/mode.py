"""Everything on the meta device, except small values that follow from constants: those stay real, on the CPU.

Parameters, inputs and random numbers are meta tensors. `arange`, `linspace`, `zeros`, `tensor([...])` and what is computed from them alone
are real, so that `.item()`, `.tolist()`, `if` and boolean masks on them work. Where the two meet, the real one goes to the meta device.
Whatever device user code names is ignored, and it is told that all tensors are on the CPU.

`MetaMode` is the one mode of a run. On its way it notes where tensors came from (provenance.py), and which operation failed.
"""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch.overrides import TorchFunctionMode

from ..axes import tracking as axes
from ..locations import TORCH, WORKER
from ..remarks.remarks import WATCHED, Remarks
from ..sandbox.exceptions import message_of
from ..torch_calls import changed_tensor
from ..trace import provenance
from ..trace.devices import devices
from ..trace.tape import tape
from ..trace.value_summary import STAND_IN, VAGUE
from ..unknown import unknown_sizes
from ..unknown.stand_ins import holds_absent, unknown_shape
from ..unknown.unpacking import unpacked_count
from . import eager_checks, expected_shapes, op_cache, second_opinion

Tensor = torch.Tensor
META = torch.device("meta")
CPU = torch.device("cpu")
ALL = 1 << 20  # of the tensors in a list
MOST_REAL = 1 << 24  # elements of what is computed from constants alone

Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
Call = Tuple[Args, Kwargs]  # what a function is given
_plainly = torch._C.DisableTorchFunction


class Computing:
    """Holds whether code is run for real: parameters, inputs and all that is computed lie on the CPU (`deep/real_mode.py`)."""

    for_real = False


computing = Computing()


def named(owner: Any, names: str) -> Set[Any]:
    return {getattr(owner, name) for name in names.split() if hasattr(owner, name)}


def _getter(name: str) -> Any:
    return getattr(Tensor, name).__get__


DESCRIBES = {_getter(name) for name in ("shape", "dtype", "requires_grad", "ndim", "layout", "is_leaf", "grad_fn")}
ASKS = {Tensor.dim, Tensor.ndimension, Tensor.is_contiguous, Tensor.is_floating_point, Tensor.stride, torch._C._set_grad_enabled}
_SHAPES = {_getter("shape"), Tensor.size}
GRADIENT_OF = _getter("grad")
GRADIENTS = {torch.autograd.grad, torch.autograd.backward, Tensor.backward}
WITHIN = "_shapelens_within"  # an attribute of single random integers: a value that they may have
OF_VALUES = named(torch, "tensor as_tensor asarray")
STEPPED = named(torch, "arange range")
TAKES_UNKNOWN = OF_VALUES | STEPPED  # whose rules see unknown numbers as they are
# Functions with a rule of their own: (func, args, kwargs) -> result. The modules of rules fill it.
SPECIAL: Dict[Any, Callable[..., Any]] = {}

# What the meta device says where real data would be needed: no mistake of the user.
OTHER_RANKS = re.compile(r"\b\dD\b.*\b(input|padding)")  # "Got 5D input, but bilinear mode needs 4D input"
NEEDS_DATA = re.compile(
    r"on meta tensors|meta tensor; no data|with Meta tensors|register_meta function|data-independent|data-dependent|device meta"
    r"|Cannot copy out of meta|aten::\S+ .* 'Meta' backend|incompatible tensor type"
    r"|'NestedIntNode' object has no attribute"  # a calculation with the size of a ragged tensor
)


OF_LEAVES = "leaf Variable"  # in what torch says of a parameter that is changed in place while gradients are recorded
OVERFLOWS = re.compile(r"Storage size calculation overflowed(?: with sizes=\[(?P<sizes>[\d, ]+)\])?|integer multiplication overflow")


def needs_data(error: BaseException) -> bool:
    """True if an exception says that real data would be needed, or is of several sizes that only data has."""
    text = message_of(error)
    if NEEDS_DATA.search(text) is not None:
        return True
    overflow = OVERFLOWS.search(text) if unknown_sizes.state.met else None
    if overflow is None or not overflow["sizes"]:
        return overflow is not None
    return unknown_sizes.any_unknown([int(size) for size in overflow["sizes"].split(",")])


def is_unimplemented(error: BaseException) -> bool:
    """True if an exception says that there is no such operation, rather than that torch has it for other ranks: a wrong input."""
    return isinstance(error, NotImplementedError) and OTHER_RANKS.search(message_of(error)) is None


class NotRecovered(Exception):
    """A failure has to take its course."""


class FailedTorchCall:
    """The torch function that raised last, the tensors that it was given, and whether it was given a stand-in as well."""

    __slots__ = ("arguments", "error", "is_given_absent", "operation")

    def __init__(self, operation: str, arguments: List[Tensor], error: BaseException, is_given_absent: bool = False) -> None:
        self.operation = operation
        self.arguments = arguments
        self.error = error
        self.is_given_absent = is_given_absent


ODD_MASK = "the mask has more dims than what it masks"
_MASKS = (torch.masked_fill, Tensor.masked_fill)
_OF_NOTE = frozenset([*WATCHED, *_MASKS, *axes.MAY_MIX])  # One look tells that a call is none of all these.


def _is_odd_mask(args: Args, kwargs: Kwargs) -> bool:
    """True if a mask has more dims than the scores that it masks, which then get as many."""
    mask = args[1] if len(args) > 1 else kwargs.get("mask")
    with torch._C.DisableTorchFunction():
        return isinstance(args[0], Tensor) and isinstance(mask, Tensor) and mask.dim() > args[0].dim() > 0


class MetaMode(TorchFunctionMode):
    """Keeps a run on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.inside_layer = 0  # inside a layer of torch's own nothing needs to be noted
        self.failure: Optional[FailedTorchCall] = None
        self.remarks: Optional[Remarks] = None  # where to note what is odd
        self.refuses_odd_masks = False  # a mask with more dims than what it masks is a failure, as torch lets it pass
        self.recover: Optional[Callable[..., Any]] = None  # (func, args, kwargs, error) -> what takes the place of the result
        self.vague = False  # whether this example has a stand-in of which nothing is known

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Args = (), kwargs: Optional[Kwargs] = None) -> Any:
        if self.vague and func in _SHAPES and _is_vague_to_user(args[0]):
            return _size_of_vague(args, kwargs)
        if func in DESCRIBES:
            return func(*args)
        if func in ASKS and func not in SPECIAL:
            return func(*args, **kwargs) if kwargs else func(*args)
        kwargs = kwargs or {}
        placement = devices.meet(func, args, kwargs) if devices.active and not self.inside_layer else None
        as_given = args
        if unknown_sizes.state.met and func not in TAKES_UNKNOWN:  # Comparing one of them would be a condition of the user's.
            args = _as_plain(func, args, kwargs)
        if op_cache.only_fills(func, args, kwargs):
            return args[0]
        special = SPECIAL.get(func)
        given = args, kwargs
        try:
            if special is not None:
                result = special(func, args, kwargs)
            else:
                key = op_cache.key_of(func, args, kwargs)
                result = op_cache.known(key, args) if key is not None else None
                if result is None:
                    args, kwargs = together(func, args, kwargs)
                    result = func(*args, **kwargs) if key is None else op_cache.call(key, func, args, kwargs)
        except Exception as raised:
            return self._instead(func, types, (args, kwargs), given, as_given, raised)
        if func in _OF_NOTE:
            self._note(func, given, result)
        if not self.inside_layer:
            if self.vague:
                result = _spread(func, args, given, result)
            if isinstance(result, (Tensor, tuple, list)):
                provenance.observed(func, (args, kwargs), result)
            if devices.active:
                result = devices.gave(func, *given, result, placement)
        if axes.state.tracking is not None:
            axes.state.tracking.observed(provenance.name_of(func), *given, result)
        return result

    def _note(self, func: Callable[..., Any], given: Call, result: Any) -> None:
        """Notes odd calls as remarks, or as failures; and what may mix the samples of a batch is told to who asks for it."""
        if self.refuses_odd_masks and func in _MASKS and not self.inside_layer and _is_odd_mask(*given):
            raise RuntimeError(ODD_MASK)
        check = WATCHED.get(func)
        odd = check(*given, result) if check is not None and self.remarks is not None else None
        if odd is not None and self.remarks is not None:
            self.remarks.add(func, odd)
        if func in axes.MAY_MIX:
            axes.state.may_mix = True

    def _instead(self, func: Callable[..., Any], types: Any, tried: Call, given: Call, as_given: Args, raised: Exception) -> Any:
        """The result of a call that failed: with sizes as numbers, as eager has it, or as the run recovers from it. Raises its error else.

        `tried` is what the meta device was given, `given` the call of the user, and `as_given` its arguments with unknown sizes in them.
        """
        no_data = needs_data(raised)
        numbers = with_numbers(tried[0]) if no_data else None
        if numbers is not None:
            return self.__torch_function__(func, types, numbers, tried[1])
        # What torch's Python code asserts it asserts of real tensors too, and some of that comes after much work: a mask of an attention.
        is_known = func in GRADIENTS or isinstance(raised, AssertionError) or (tape.active and OF_LEAVES in message_of(raised))
        opinion = None if is_known else second_opinion.ask(func, *given)
        if opinion is not None and opinion.error is None and opinion.result is not NotImplemented:
            return self._accepted(func, tried[0], tried[1], opinion.result)
        error: Exception = raised
        if opinion is not None and opinion.error is not None and not isinstance(raised, NotImplementedError) and not no_data:
            error = opinion.error
        if not self.inside_layer:
            if self.failure is None or self.failure.error is not error:
                tensors = list(provenance.tensors_in(list(tried)))
                self.failure = FailedTorchCall(getattr(func, "__name__", ""), tensors, error, holds_absent(as_given))
            if self.recover is not None:
                try:
                    result = self.recover(func, as_given if holds_absent(as_given) else given[0], given[1], error)
                except NotRecovered:
                    pass
                else:
                    provenance.observed(func, given, result)
                    provenance.mark_stand_in(result)
                    return result
        if error is raised:
            raise error
        raise error from None

    def _accepted(self, func: Callable[..., Any], args: Args, kwargs: Kwargs, result: Any) -> Any:
        """The result of what eager accepts and the meta device does not; an operation in place gives back what it changed."""
        changed = changed_tensor(func, args, kwargs)
        if changed is not None:
            return changed
        if not self.inside_layer and isinstance(result, (Tensor, tuple, list)):
            provenance.observed(func, (args, kwargs), result)
        return result


def operation(key: Any, func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """The result of a function on the meta device, known under its key from now on if it has one. Raises whatever the function raises."""
    args, kwargs = together(func, args, kwargs)
    return func(*args, **kwargs) if key is None else op_cache.call(key, func, args, kwargs)


# --- where real and meta tensors meet ---


def together(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Tuple[Args, Kwargs]:
    """The arguments with all tensors on the meta device, if any of them is there or a number is unknown; as they are otherwise."""
    with _plainly():
        real = meta = unusual = False
        elements = 1  # that an outer product of the constants would have
        for tensor in provenance.tensors_in((args, kwargs), 64):
            if tensor.is_meta:
                meta = True
            else:
                real = True
                elements *= max(tensor.numel(), 1)
            unusual = unusual or tensor.dtype is not torch.float32
        if unusual and meta:
            eager_checks.dtypes_go_together(func, args, kwargs)
        if real and not meta:  # What is computed with a number that nobody knows, or holds it, is data.
            meta = unknown_sizes.any_unknown(args[1:]) or unknown_sizes.any_unknown(kwargs.values())
        if not (real and meta):
            return (args, kwargs) if meta or elements <= MOST_REAL or not _grows(func, args, kwargs) else (to_meta(args), to_meta(kwargs))
        changed = changed_tensor(func, args, kwargs)
        if changed is not None:
            become_meta(changed)
        return to_meta(args), to_meta(kwargs)


def _grows(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> bool:
    """True if constants are broadcast to more elements than they may have: positions of a long text against each other."""
    shapes = [tensor.shape for tensor in provenance.tensors_in((args, kwargs), 8)]
    try:
        count = torch.broadcast_shapes(*shapes).numel()  # type: ignore[no-untyped-call]
    except RuntimeError:
        return False
    return count > MOST_REAL and all(count > shape.numel() for shape in shapes) and changed_tensor(func, args, kwargs) is None


def _size_of_vague(args: Args, kwargs: Optional[Kwargs]) -> Any:
    """Returns what nobody knows of a stand-in, as its shape or as the size of one dim."""
    return unknown_shape() if len(args) == 1 and not kwargs else unknown_sizes.size()


def _as_plain(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Args:
    """Arguments with unknown sizes as numbers; what an operation changes by one holds no known numbers any more."""
    plain = unknown_sizes.as_plain(args)
    changed = changed_tensor(func, plain, kwargs) if plain is not args else None
    if changed is not None:
        with _plainly():  # It is given a number, or at a place, that nobody knows.
            become_meta(changed)
    return plain


def _spread(func: Callable[..., Any], args: Args, given: Call, result: Any) -> Any:
    """The result of a call, which is as vague as what the call was given, unless it is a number whatever that is."""
    if not expected_shapes.gives_number(func, *given):
        result = _as_unpacked(func, args, result)
        spread(given, result)
    return result


def _is_vague_to_user(tensor: Tensor) -> bool:
    """True if a stand-in of which nothing is known is asked by code of the user's, rather than by torch's or our own."""
    return tensor.__dict__.get(STAND_IN) == VAGUE and not sys._getframe(2).f_code.co_filename.startswith((WORKER, TORCH))


def _as_unpacked(func: Callable[..., Any], args: Args, result: Any) -> Any:
    """Returns what a vague stand-in is unpacked into: nobody knows how many parts it has."""
    if func is not Tensor.unbind or args[0].__dict__.get(STAND_IN) != VAGUE:
        return result
    frame: Optional[FrameType] = sys._getframe(2)
    while frame is not None and frame.f_code is not Tensor.__iter__.__code__:
        frame = frame.f_back
    count = unpacked_count(frame.f_back if frame is not None else None)
    return result if count is None else tuple([args[0].view_as(args[0]) for _ in range(count)])


def spread(given: Any, result: Any) -> None:
    """Marks what is made from a vague stand-in as vague."""
    with _plainly():
        if any(tensor.__dict__.get(STAND_IN) == VAGUE for tensor in provenance.tensors_in(given, ALL)):
            for tensor in provenance.tensors_in(result, ALL):
                tensor.__dict__[STAND_IN] = VAGUE


def become_meta(tensor: Tensor) -> None:
    """Make a real tensor a meta tensor in place, as its values are no longer known, and the one that it is a view of."""
    if tensor.is_meta or computing.for_real:
        return
    base = tensor._base
    swap = getattr(torch.utils, "swap_tensors", None)
    replacement = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=META)
    if tensor.requires_grad and tensor.is_leaf:
        replacement.requires_grad_()
    attributes = dict(tensor.__dict__)
    try:
        if swap is None:  # Before torch 2.3.
            raise RuntimeError
        swap(tensor, replacement)
        tensor.__dict__.update(attributes)
    except RuntimeError:  # It is referenced in a way that forbids the swap: the operation then fails on the mixed devices.
        pass
    del replacement  # It holds the view now, and that its base.
    if base is not None:
        become_meta(base)


def to_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value if value.is_meta else value.to(META)
    if type(value) in (tuple, list):
        return type(value)([to_meta(item) for item in value])
    if type(value) is dict:
        return {name: to_meta(item) for name, item in value.items()}
    return value


def made(shape: Sequence[int], dtype: torch.dtype, requires_grad: bool = False) -> Tensor:
    """A meta tensor that came out of an operation: one that requires a gradient is no leaf, so that it may be changed in place."""
    with _plainly():
        tensor = torch.empty(shape, dtype=dtype, device=META, requires_grad=requires_grad)
        return tensor.clone() if requires_grad else tensor


def with_numbers(args: Args) -> Optional[Args]:
    """Arguments in which sizes and the like that are tensors are numbers, as Python would read them; None where there are none.

    The first argument is what the function works on, unless it is a factory, which takes sizes only.
    """
    changed = False

    def number(part: Any) -> Any:
        nonlocal changed
        if isinstance(part, Tensor) and part.is_meta and not part.dim() and not part.dtype.is_complex:
            changed = True
            return unknown_sizes.size()
        if type(part) in (tuple, list) or isinstance(part, torch.Size):
            return tuple([number(item) for item in part])
        return part

    with _plainly():
        numbers = args[:1] + tuple([number(part) for part in args[1:]])
    return numbers if changed else None
