"""`torch.FloatTensor` and its kin: constructors that make CPU tensors past every mode, and `Tensor.type`, which names them."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch

from ..trace.devices import devices
from ..unknown import unknown_sizes
from ..unknown.data_arrays import holds_data, is_data
from ..unknown.unknown_sizes import STAND_INS
from .constants import LARGEST_REAL
from .mode import META, SPECIAL

Tensor = torch.Tensor

DTYPES: Dict[str, torch.dtype] = {
    "FloatTensor": torch.float32, "DoubleTensor": torch.float64, "HalfTensor": torch.float16, "BFloat16Tensor": torch.bfloat16,
    "LongTensor": torch.int64, "IntTensor": torch.int32, "ShortTensor": torch.int16, "CharTensor": torch.int8, "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}  # fmt: skip


class _Legacy(type):
    """Makes classes that answer `isinstance(tensor, torch.FloatTensor)` and build tensors when they are called."""

    dtype: torch.dtype

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        if len(args) == 1 and isinstance(args[0], Tensor):
            return args[0].to(cls.dtype)
        if (args and all(isinstance(argument, int) for argument in args)) or (args and isinstance(args[0], torch.Size)) or not args:
            shape = args[0] if args and isinstance(args[0], torch.Size) else args
            return torch.empty(shape or (0,), dtype=cls.dtype, device=META)
        if len(args) > 1:  # Sizes, of which some are tensors or unknown.
            sizes = [unknown_sizes.size() if type(part) in STAND_INS else part for part in args]
            return torch.empty(*sizes, dtype=cls.dtype, device=META)
        return torch.tensor(args[0], dtype=cls.dtype)


class _Variable(_Legacy):
    """`Variable(x, volatile=True)`: the tensor, out of reach of gradients, and still known to be what it was made from."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            return data if data is not None else torch.empty(0, device=META)
        return data.detach().requires_grad_() if requires_grad else data.detach()


def _from_numpy(array: Any) -> Any:
    """torch.from_numpy, which no mode sees: data stays data, and what is large is."""
    if is_data(array) or type(array) in STAND_INS:
        return torch.as_tensor(array)
    made = _plain_from_numpy(array)
    made = made if made.numel() <= LARGEST_REAL else made.to(META)
    devices.on_cpu(made, "from_numpy")
    return made


_plain_from_numpy = torch.from_numpy


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns what `torch.Tensor(array)` makes, which no mode sees: data stays data."""
    if cls is Tensor and len(args) == 1 and not kwargs and (holds_data(args[0]) or type(args[0]) in STAND_INS):
        return torch.as_tensor(args[0], dtype=torch.get_default_dtype())
    made = _plain_new(cls, *args, **kwargs)
    if cls is Tensor:
        devices.on_cpu(made, "Tensor")
    return made


_plain_new = Tensor.__new__


def replacements() -> List[Tuple[Any, str, Any]]:
    """(owner, name, class) for each legacy constructor."""
    out: List[Tuple[Any, str, Any]] = [(torch, "from_numpy", _from_numpy), (Tensor, "__new__", staticmethod(_new))]
    for name, dtype in DTYPES.items():
        made = _Legacy(name, (), {"dtype": dtype, "__module__": "torch"})
        out += [(owner, name, made) for owner in (torch, torch.cuda) if name in owner.__dict__]
    engine = getattr(torch.autograd.Variable, "_execution_engine", None)  # Checkpoints ask for it.
    variable = _Variable("Variable", (), {"__module__": "torch.autograd.variable", "_execution_engine": engine})
    return [*out, (torch.autograd, "Variable", variable), (torch.autograd.variable, "Variable", variable)]


def _type(func: Any, args: Any, kwargs: Any) -> Any:
    target = args[1] if len(args) > 1 else kwargs.get("dtype")
    if target is None:
        found = [name for name, dtype in DTYPES.items() if dtype is args[0].dtype]
        return "torch.%s" % (found[0] if found else "Tensor")
    if not isinstance(target, torch.dtype):
        name = target.rpartition(".")[2] if isinstance(target, str) else getattr(target, "__name__", "")
        target = DTYPES.get(name, args[0].dtype)
    return args[0].to(target)


SPECIAL[Tensor.type] = _type
