"""Everything on the meta device, except small values that follow from constants: those stay real, on the CPU.

Parameters, inputs and random numbers are meta tensors. `arange`, `linspace`, `zeros`, `tensor([...])` and what is computed from them alone
are real, so that `.item()`, `.tolist()`, `if` and boolean masks on them work. Where the two meet, the real one goes to the meta device.
Whatever device user code names is ignored, and it is told that all tensors are on the CPU.

`Meta` is the one mode of a run. On its way it notes where tensors came from (origins.py), and which operation failed.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch.overrides import TorchFunctionMode

from . import checks, eager, origins, unknown
from .recorder import STAND_IN, VAGUE
from .remarks import WATCHED, Remarks

Tensor = torch.Tensor
META = torch.device("meta")
CPU = torch.device("cpu")
MOST_TURNS = 64  # that a loop takes while its condition depends on data
ALL = 1 << 20  # of the tensors in a list
LARGEST_REAL = 1 << 20  # elements; larger constants are meta tensors too

Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
_plainly = torch._C.DisableTorchFunction
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def named(owner: Any, names: str) -> Set[Any]:
    return {getattr(owner, name) for name in names.split() if hasattr(owner, name)}


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
KNOWN_LIKE = named(torch, "zeros_like ones_like full_like")
DATA_LIKE = named(torch, "empty_like rand_like randn_like randint_like") | named(Tensor, "new_empty new_empty_strided")
OF_A_TENSOR = DATA_LIKE | named(torch, "tensor as_tensor asarray full scalar_tensor normal")
RANDOM_IN_PLACE = named(Tensor, "normal_ uniform_ bernoulli_ random_ exponential_ cauchy_ log_normal_ geometric_")
RANDOM = named(torch, "bernoulli multinomial normal poisson") | named(
    torch.nn.functional, "dropout dropout1d dropout2d dropout3d alpha_dropout"
)
MOVES = named(Tensor, "cuda cpu xpu ipu pin_memory")
DESCRIBES = {_getter(name) for name in ("shape", "dtype", "requires_grad", "grad", "ndim", "layout", "is_leaf", "grad_fn")}


def _factories() -> Set[Any]:
    from torch.utils._device import _device_constructors

    return set(_device_constructors())


# What the meta device says where real data would be needed: no mistake of the user.
NEEDS_DATA = re.compile(
    r"on meta tensors|meta tensor; no data|with Meta tensors|register_meta function|data-independent|data-dependent|device meta"
    r"|Cannot copy out of meta|aten::\S+ .* 'Meta' backend|incompatible tensor type"
)


class NotRecovered(Exception):
    """A failure has to take its course."""


class Failure:
    """The torch function that raised last, and what it was given."""

    __slots__ = ("arguments", "error", "operation")

    def __init__(self, operation: str, arguments: List[Tensor], error: BaseException) -> None:
        self.operation = operation
        self.arguments = arguments
        self.error = error


class Meta(TorchFunctionMode):
    """Keeps a run on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.inside_layer = 0  # inside a layer of torch's own nothing needs to be noted
        self.failure: Optional[Failure] = None
        self.remarks: Optional[Remarks] = None  # where to note what is odd
        self.recover: Optional[Callable[..., Any]] = None  # (func, args, kwargs, error) -> what takes the place of the result
        self.vague = False  # whether this example has a stand-in of which nothing is known

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Args = (), kwargs: Optional[Kwargs] = None) -> Any:
        if func in DESCRIBES:
            return func(*args)
        kwargs = kwargs or {}
        special = SPECIAL.get(func)
        given = args, kwargs
        try:
            if special is not None:
                result = special(func, args, kwargs)
            else:
                args, kwargs = together(func, args, kwargs)
                result = func(*args, **kwargs)
        except Exception as raised:
            error: Exception = raised
            if NEEDS_DATA.search(str(raised)):
                numbers = with_numbers(args)
                if numbers is not None:
                    return self.__torch_function__(func, types, numbers, kwargs)
            opinion = eager.ask(func, *given)
            if opinion is not None and opinion.error is None:
                return self._accepted(func, args, kwargs, opinion.result)
            if (
                opinion is not None
                and opinion.error is not None
                and not isinstance(raised, NotImplementedError)
                and not NEEDS_DATA.search(str(raised))
            ):
                error = opinion.error
            if not self.inside_layer and (self.failure is None or self.failure.error is not error):
                self.failure = Failure(getattr(func, "__name__", ""), list(origins.tensors_in([args, kwargs])), error)
            if self.recover is not None and not self.inside_layer:
                try:
                    result = self.recover(func, *given, error)
                except NotRecovered:
                    pass
                else:
                    origins.observed(func, given, result)
                    return result
            if error is raised:
                raise
            raise error from None
        check = WATCHED.get(func)
        if check is not None and self.remarks is not None:
            odd = check(*given, result)
            if odd is not None:
                self.remarks.add(func, odd)
        if self.vague and not self.inside_layer:
            spread(given, result)
        if not self.inside_layer and isinstance(result, (Tensor, tuple, list)):
            origins.observed(func, (args, kwargs), result)
        return result

    def _accepted(self, func: Callable[..., Any], args: Args, kwargs: Kwargs, result: Any) -> Any:
        """The result of what eager accepts and the meta device does not; an operation in place gives back what it changed."""
        changed = _changed_in_place(func, args, kwargs)
        if changed is not None:
            return changed
        if not self.inside_layer and isinstance(result, (Tensor, tuple, list)):
            origins.observed(func, (args, kwargs), result)
        return result


# --- where real and meta tensors meet ---


def together(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Tuple[Args, Kwargs]:
    """The arguments with all tensors on the meta device, if any of them is there; as they are otherwise."""
    with _plainly():
        real = meta = unusual = False
        for tensor in origins.tensors_in((args, kwargs), 64):
            if tensor.is_meta:
                meta = True
            else:
                real = True
            unusual = unusual or tensor.dtype is not torch.float32
        if unusual and meta:
            checks.dtypes_go_together(func, args, kwargs)
        if not (real and meta):
            return args, kwargs
        changed = _changed_in_place(func, args, kwargs)
        if changed is not None and not changed.is_meta:
            become_meta(changed)
        return _to_meta(args), _to_meta(kwargs)


def _changed_in_place(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Optional[Tensor]:
    out = kwargs.get("out")
    if isinstance(out, Tensor):
        return out
    name = getattr(func, "__name__", "")
    in_place = (name.endswith("_") and not name.startswith("_")) or name in (
        "__setitem__",
        "__iadd__",
        "__isub__",
        "__imul__",
        "__itruediv__",
    )
    return args[0] if in_place and args and isinstance(args[0], Tensor) else None


def spread(given: Any, result: Any) -> None:
    """What is made from a vague stand-in is vague."""
    with _plainly():
        if any(tensor.__dict__.get(STAND_IN) == VAGUE for tensor in origins.tensors_in(given, ALL)):
            for tensor in origins.tensors_in(result, ALL):
                tensor.__dict__[STAND_IN] = VAGUE


def become_meta(tensor: Tensor) -> None:
    """Make a real tensor a meta tensor in place, as its values are no longer known."""
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


def _to_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value if value.is_meta else value.to(META)
    if type(value) in (tuple, list):
        return type(value)([_to_meta(item) for item in value])
    if type(value) is dict:
        return {name: _to_meta(item) for name, item in value.items()}
    return value


def assumed(value: Any) -> Any:
    """An asserted value; True where it is data, so that its truth is not known."""
    with _plainly():
        return True if isinstance(value, Tensor) and value.is_meta else value


# --- functions with a rule of their own: (func, args, kwargs) -> result ---


def with_numbers(args: Args) -> Optional[Args]:
    """Arguments in which sizes and the like that are tensors are numbers, as Python would read them; None where there are none.

    The first argument is what the function works on, unless it is a factory, which takes sizes only.
    """
    changed = False

    def number(part: Any) -> Any:
        nonlocal changed
        if isinstance(part, Tensor) and part.is_meta and not part.dim() and not part.dtype.is_complex:
            changed = True
            return unknown.size()
        if type(part) in (tuple, list) or isinstance(part, torch.Size):
            return tuple([number(item) for item in part])
        return part

    with _plainly():
        numbers = args[:1] + tuple([number(part) for part in args[1:]])
    return numbers if changed else None


def _sizes(args: Args) -> Args:
    """The arguments of a factory: its sizes may be tensors."""
    if any(isinstance(part, (Tensor, tuple, list)) for part in args):
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


def _known(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """A constant: real where it is small."""
    if args and getattr(args[0], "_shapelens_data", False):
        return torch.empty(args[0].shape, dtype=kwargs.get("dtype") or _dtype_of_array(args[0]), device=META)
    if func is torch.from_numpy or func is torch.frombuffer:
        made = func(*args, **{name: value for name, value in kwargs.items() if name != "device"})
        return made if made.numel() <= LARGEST_REAL else made.to(META)
    if func in OF_SIZES:
        args = args[:1] + _sizes(args[1:]) if func in KNOWN_NEW else _sizes(args)
    if any(tensor.is_meta for tensor in origins.tensors_in((args, kwargs))):
        if func in (torch.as_tensor, torch.asarray, torch.tensor) and isinstance(args[0] if args else None, Tensor):
            dtype = kwargs.get("dtype")
            return args[0] if dtype is None else args[0].to(dtype)
        if func not in KNOWN_NEW and func is not torch.full:
            # A list of meta scalars: the shape is that of the list, the values are data.
            return _from_meta_scalars(args, kwargs)
    with _plainly():
        probe = func(*args, **_without(kwargs, META)) if func not in (torch.tensor, torch.as_tensor, torch.asarray) else None
        if probe is not None and probe.numel() > LARGEST_REAL:
            return probe
        return func(*args, **_without(kwargs, CPU))


def _dtype_of_array(array: Any) -> torch.dtype:
    return torch.from_numpy(array.ravel()[:0].copy()).dtype


def _from_meta_scalars(args: Args, kwargs: Kwargs) -> Tensor:
    shape, first, part = [], None, args[0]
    while isinstance(part, (list, tuple)):
        shape.append(len(part))
        part = part[0] if part else None
    for tensor in origins.tensors_in(args):
        first = first or tensor.dtype
    return torch.empty(shape, dtype=kwargs.get("dtype") or first, device=META, requires_grad=bool(kwargs.get("requires_grad")))


def _known_like(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        like = args[0] if args else kwargs["input"]
        return func(*args, **_without(kwargs, META if like.is_meta else CPU))


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


def _random_in_place(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        if not args[0].is_meta:
            become_meta(args[0])
        kwargs.pop("generator", None)
        return func(*args, **kwargs)


def _random(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        kwargs.pop("generator", None)
        return func(*_to_meta(args), **_to_meta(kwargs))


def _says(answer: Any) -> Callable[..., Any]:
    return lambda func, args, kwargs: answer


def _equal(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.equal on data: the shapes decide where they differ; data is taken to be as the code hopes."""
    with _plainly():
        if any(tensor.is_meta for tensor in args):
            return tuple(args[0].shape) == tuple(args[1].shape)
        return func(*args, **kwargs)


def made(shape: Sequence[int], dtype: torch.dtype, requires_grad: bool = False) -> Tensor:
    """A meta tensor that came out of an operation: one that requires a gradient is no leaf, so that it may be changed in place."""
    with _plainly():
        tensor = torch.empty(shape, dtype=dtype, device=META, requires_grad=requires_grad)
        return tensor.clone() if requires_grad else tensor


branches: Dict[Tuple[str, int], int] = {}  # (file, line) of a condition on data -> how often it was asked since this was cleared


def _bool(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        if not args[0].is_meta:
            return func(*args)
        if func is Tensor.__bool__ and args[0].numel() != 1:
            return func(*together_on_cpu(args))  # Eager's complaint that the truth value is ambiguous.
    return decide()


def decide() -> bool:
    """The truth of data is not known: a path is taken that goes on.

    What code asserts is taken to hold (in libraries too, which are not rewritten), any other condition to be false; one that is asked for
    again and again, as by `while not done.all()`, becomes true in the end.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith((_HERE, _TORCH)) and frame.f_back is not None:
        frame = frame.f_back
    place = frame.f_code.co_filename, frame.f_lineno
    if linecache.getline(*place).lstrip().startswith("assert"):
        return True
    branches[place] = branches.get(place, 0) + 1
    return (branches[place] > MOST_TURNS) is not unknown.state.other_path


def together_on_cpu(args: Args) -> Args:
    """The arguments as real tensors of zeros, for an error that depends on shapes only."""
    return tuple([torch.zeros(tuple(part.shape), dtype=part.dtype) if isinstance(part, Tensor) else part for part in args])


SPECIAL: Dict[Any, Callable[..., Any]] = {}
for _rule, _functions in (
    (_data, _factories() | DATA_LIKE),
    (_known, KNOWN | KNOWN_NEW),
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
