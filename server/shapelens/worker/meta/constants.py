"""Decides what stays real and what is data: tensors that follow from constants keep their values as long as they are small.

All others are on the meta device, whatever device user code names, and it is told that they are on the CPU.
An operation on real tensors alone gives a real one, and one that also gets a meta tensor gives a meta one (`together` in mode.py): only the
functions that make tensors, or move them to a device, have rules here.
"""

from __future__ import annotations

from typing import Any, Callable, List, Set

import torch

from ..trace import provenance
from ..unknown import unknown_sizes
from ..unknown.conditions import decide
from ..unknown.data_arrays import holds_data, shape_of, without_marks
from ..unknown.unknown_sizes import UnknownFloat, UnknownInt
from .mode import CPU, META, OF_VALUES, SPECIAL, STEPPED, WITHIN, Args, Kwargs, become_meta, named, to_meta, with_numbers

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction
LARGEST_REAL = 1 << 20  # elements; larger constants are meta tensors too


def _getter(name: str) -> Any:
    return getattr(Tensor, name).__get__


# Factories of values that are known, given their arguments; the others (empty, rand, ...) make data.
KNOWN = named(
    torch,
    "tensor as_tensor asarray from_numpy frombuffer scalar_tensor arange range linspace logspace eye zeros ones full tril_indices "
    "triu_indices hann_window hamming_window bartlett_window blackman_window kaiser_window",
)
KNOWN_NEW = named(Tensor, "new_tensor new_zeros new_ones new_full")
OF_SIZES = named(torch, "arange range zeros ones eye") | named(Tensor, "new_zeros new_ones")
OF_LENGTH = named(torch, "zeros ones arange")
FILLED = {torch.full: 1, torch.full_like: 1, Tensor.new_full: 2}  # with the position of what they are filled with
KNOWN_LIKE = named(torch, "zeros_like ones_like full_like")
DATA_LIKE = named(torch, "empty_like rand_like randn_like randint_like") | named(Tensor, "new_empty new_empty_strided")
OF_A_TENSOR = DATA_LIKE | named(torch, "tensor as_tensor asarray full scalar_tensor normal")
RANDOM_IN_PLACE = named(Tensor, "normal_ uniform_ bernoulli_ random_ exponential_ cauchy_ log_normal_ geometric_")
HAS_DEFAULTS = named(Tensor, "normal_ uniform_")
RANDOM = named(torch, "bernoulli multinomial normal poisson") | named(
    torch.nn.functional, "dropout dropout1d dropout2d dropout3d alpha_dropout"
)
MOVES = named(Tensor, "cuda cpu xpu ipu pin_memory")


def _factories() -> Set[Any]:
    from torch.utils._device import _device_constructors

    return set(_device_constructors())


# --- functions with a rule of their own: (func, args, kwargs) -> result ---


def _sizes(args: Args) -> Args:
    """The arguments of a factory: its sizes may be tensors."""
    if not all(type(part) is int for part in (args[0] if len(args) == 1 and type(args[0]) in (tuple, list) else args)):
        found = with_numbers((None, *args))
        return args if found is None else found[1:]
    return args


def _without(kwargs: Kwargs, device: torch.device) -> Kwargs:
    kwargs = {**kwargs, "device": device}
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    kwargs.pop("generator", None)
    return kwargs


def _data(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    return func(*(args if func in OF_A_TENSOR else _sizes(args)), **_without(kwargs, META))


def _random_int(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.randint(low, high, size): a single one may be any within its bounds, so that libraries cut pictures and choose with it."""
    made = _data(func, args, kwargs)
    with _plainly():
        if made.numel() == 1:
            low = kwargs.get("low", args[0] if len(args) > 2 or ("size" in kwargs and len(args) == 2) else 0)
            made.__dict__[WITHIN] = low if type(low) is int else 0
    return made


def known(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """A constant: real where it is small."""
    if args and getattr(args[0], "_shapelens_data", False):
        return torch.empty(shape_of(args[0]), dtype=kwargs.get("dtype") or _dtype_of_array(args[0]), device=META)
    if func is torch.from_numpy or func is torch.frombuffer:
        made = func(*args, **{name: value for name, value in kwargs.items() if name != "device"})
        return made if made.numel() <= LARGEST_REAL else made.to(META)
    if func in OF_SIZES:
        args = args[:1] + _sizes(args[1:]) if func in KNOWN_NEW else _sizes(args)
    if any(tensor.is_meta for tensor in provenance.tensors_in((args, kwargs))):
        if func in (torch.as_tensor, torch.asarray, torch.tensor) and isinstance(args[0] if args else None, Tensor):
            return _of_tensor(func, args[0], kwargs)
        if func not in KNOWN_NEW and func is not torch.full:
            # A list of meta scalars: the shape is that of the list, the values are data.
            return _from_meta_scalars(args, kwargs)
    if args and type(args[0]) in unknown_sizes.STAND_INS:
        return args[0]  # What is made of what nobody knows.
    if func in OF_VALUES and args and _holds_numbers_of_data(args[0]):
        return _of_data(args[0], kwargs)
    return _where_it_fits(func, args, kwargs)


def _where_it_fits(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Returns what a function makes, real where it is small and holds no number that nobody knows."""
    with _plainly():
        if _is_filled_with_unknown(func, args, kwargs):
            return func(*args, **_without(kwargs, META))
        if func not in OF_VALUES and not _is_small(func, args):
            probe = func(*args, **_without(kwargs, META))
            if probe.numel() > LARGEST_REAL:
                return probe
        return func(*args, **_without(kwargs, CPU))


def _holds_numbers_of_data(value: Any) -> bool:
    """True if a value is a number, or holds some, that nobody knows as it is of data."""
    if type(value) not in (list, tuple, UnknownInt, UnknownFloat):
        return False
    return holds_data(value) or (unknown_sizes.state.cut and _seems_gathered(value))


def _of_tensor(func: Callable[..., Any], given: Tensor, kwargs: Kwargs) -> Tensor:
    """Returns what a meta tensor is made into again: itself; of `torch.tensor` a copy of the numbers, which leads back to nothing."""
    if func is torch.tensor and given.requires_grad:
        with _plainly():
            given = given.detach()
            given.requires_grad_(bool(kwargs.get("requires_grad")))
    dtype = kwargs.get("dtype")
    return given if dtype is None else given.to(dtype)


def _of_data(value: Any, kwargs: Kwargs) -> Tensor:
    """The tensor of a list of numbers of data."""

    def plain(part: Any) -> Any:
        if type(part) in (list, tuple):
            return [plain(item) for item in part]
        if type(part) in (UnknownInt, UnknownFloat):
            return 0 if isinstance(part, int) else 0.5
        return without_marks(part)

    with _plainly():
        made = torch.tensor(plain(value), **_without(kwargs, CPU)).to(META)
        if unknown_sizes.state.cut:
            return torch.empty(_gathered_lengths(value, list(made.shape)), dtype=made.dtype, device=META)
        return made


def _stepped(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.arange(start, end, step): as many numbers as nobody knows where one of these is a number of data."""
    if any(type(part) is UnknownFloat for part in (*args, *kwargs.values())):
        return torch.empty((unknown_sizes.size(),), dtype=kwargs.get("dtype"), device=META)
    return known(func, unknown_sizes.as_plain(args), kwargs)


def _gathered_lengths(value: Any, shape: List[int]) -> List[int]:
    """The shape of a list of lists, where what a loop over an unknown number of things gathered is of unknown length."""
    for place in range(len(shape)):
        if not isinstance(value, list) or not value:
            break
        if len(value) == unknown_sizes.few() or (place and len(value) > unknown_sizes.few()):
            shape[place] = unknown_sizes.size()
        value = value[0]
    return shape


def _seems_gathered(value: Any) -> bool:
    """True if lists in a list are as long as what a loop that was cut short has gathered, or longer."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], list) and len(value[0]) >= unknown_sizes.few()


def _is_small(func: Callable[..., Any], args: Args) -> bool:
    """True if a constant is seen to be small at once; a probe on the meta device says it of all others, which takes ten times as long."""
    return func in OF_LENGTH and len(args) == 1 and type(args[0]) is int and 0 <= args[0] <= LARGEST_REAL


def _dtype_of_array(array: Any) -> torch.dtype:
    return torch.from_numpy(array.ravel()[:0].copy()).dtype


def _from_meta_scalars(args: Args, kwargs: Kwargs) -> Tensor:
    """The tensor of a list of single numbers. Raises ValueError, as torch does, for one of several."""
    shape, first, part = [], None, args[0]
    with _plainly():
        if any(tensor.numel() != 1 and not unknown_sizes.any_unknown(tensor.shape) for tensor in provenance.tensors_in(args)):
            raise ValueError("only one element tensors can be converted to Python scalars")
    while isinstance(part, (list, tuple)):
        shape.append(len(part))
        part = part[0] if part else None
    for tensor in provenance.tensors_in(args):
        first = first or tensor.dtype
    return torch.empty(shape, dtype=kwargs.get("dtype") or first, device=META, requires_grad=bool(kwargs.get("requires_grad")))


def _known_like(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        like = args[0] if args else kwargs["input"]
        return func(*args, **_without(kwargs, META if like.is_meta or _is_filled_with_unknown(func, args, kwargs) else CPU))


def _is_filled_with_unknown(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> bool:
    """True if a tensor is filled with a number that nobody knows, so that it holds data."""
    place = FILLED.get(func)
    if place is None:
        return False
    return unknown_sizes.is_unknown(kwargs["fill_value"] if "fill_value" in kwargs else args[place] if len(args) > place else None)


def _stays(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    return args[0]


def _to(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Tensor.to less the device; another tensor stands for its dtype."""
    dtype = kwargs.get("dtype")
    for argument in args[1:] + ((kwargs["other"],) if "other" in kwargs else ()):
        if isinstance(argument, Tensor):
            dtype = argument.dtype
        elif isinstance(argument, torch.dtype):
            dtype = argument
    rest = {name: kwargs[name] for name in ("copy", "memory_format") if kwargs.get(name)}
    with _plainly():
        return args[0] if dtype in (None, args[0].dtype) and not rest else func(args[0], dtype or args[0].dtype, **rest)


def _may_be_filled(tensor: Tensor) -> bool:
    """True if eager has no reason to refuse that."""
    refused = tensor.requires_grad and torch.is_grad_enabled()
    return tensor.is_floating_point() and tensor.is_contiguous() and not refused


def _random_in_place(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        tensor = args[0]
        if not tensor.is_meta:
            become_meta(tensor)
        elif func in HAS_DEFAULTS and len(args) == 1 and not kwargs and _may_be_filled(tensor):
            return tensor  # There is nothing that could be refused.
        kwargs.pop("generator", None)
        return func(*args, **kwargs)


def _random(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        kwargs.pop("generator", None)
        return func(*to_meta(args), **to_meta(kwargs))


def _says(answer: Any) -> Callable[..., Any]:
    return lambda func, args, kwargs: answer


def _equal(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.equal on data: the shapes decide where they differ; data is taken to be as the code hopes."""
    with _plainly():
        if any(tensor.is_meta for tensor in args):
            return tuple(args[0].shape) == tuple(args[1].shape)
        return func(*args, **kwargs)


def _bool(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        if not args[0].is_meta:
            return func(*args)
        if func is Tensor.__bool__ and args[0].numel() != 1:
            return func(*together_on_cpu(args))  # Eager's complaint that the truth value is ambiguous.
    return decide()


def together_on_cpu(args: Args) -> Args:
    """The arguments as real tensors of zeros, for an error that depends on shapes only."""
    return tuple([torch.zeros(tuple(part.shape), dtype=part.dtype) if isinstance(part, Tensor) else part for part in args])


for _rule, _functions in (
    (_data, _factories() | DATA_LIKE),
    (_random_int, {torch.randint}),
    (known, KNOWN | KNOWN_NEW),
    (_stepped, STEPPED),
    (_known_like, KNOWN_LIKE),
    (_stays, MOVES),
    (_to, {Tensor.to}),
    (_random_in_place, RANDOM_IN_PLACE),
    (_random, RANDOM),
    (_says(CPU), {_getter("device")}),
    (_says(False), {_getter("is_meta"), _getter("is_cuda"), Tensor.is_pinned}),
    (_says(True), {_getter("is_cpu")}),
    (_says(-1), {Tensor.get_device}),
    (_bool, {Tensor.__bool__, Tensor.__contains__}),
    (_equal, {torch.equal, Tensor.equal}),
):
    SPECIAL.update(dict.fromkeys(_functions, _rule))
