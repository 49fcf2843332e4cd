"""Everything on the meta device: factories make meta tensors whatever device they are asked for, and moves between devices do nothing.

`Meta` is the one mode of a run. On its way it notes where tensors came from (origins.py), and which operation failed.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch.overrides import TorchFunctionMode

from . import origins

Tensor = torch.Tensor
META = torch.device("meta")


def _factories() -> Set[Any]:
    from torch.utils._device import _device_constructors

    return set(_device_constructors())


FACTORIES = _factories()
LIKE = {torch.empty_like, torch.zeros_like, torch.ones_like, torch.full_like, torch.rand_like, torch.randn_like, torch.randint_like}
NEW = {Tensor.new_empty, Tensor.new_zeros, Tensor.new_ones, Tensor.new_full, Tensor.new_tensor, Tensor.new_empty_strided}
FROM_MEMORY = {torch.from_numpy, torch.as_tensor, torch.asarray, torch.frombuffer}
STAYS = {Tensor.cuda, Tensor.cpu, Tensor.xpu} | ({Tensor.ipu} if hasattr(Tensor, "ipu") else set())


class Failure:
    """The torch function that raised last, and what it was given."""

    __slots__ = ("operation", "arguments", "error")

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

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        if func in FACTORIES or func in LIKE or func in NEW:
            kwargs = {**kwargs, "device": META}
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
            kwargs.pop("generator", None)
        elif func is Tensor.to:
            args, kwargs = _without_device(args, kwargs)
            if len(args) == 1 and not set(kwargs) - {"non_blocking", "copy"}:
                return args[0]
        elif func in STAYS:
            return args[0]
        elif func is Tensor.pin_memory or func is Tensor.is_pinned:
            return args[0] if func is Tensor.pin_memory else False
        if self.inside_layer:
            return func(*args, **kwargs)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            if self.failure is None or self.failure.error is not error:
                self.failure = Failure(getattr(func, "__name__", ""), list(origins._tensors([args, kwargs], 0)), error)
            raise
        if isinstance(result, (Tensor, tuple, list)) and func is not Tensor.shape.__get__:  # type: ignore[attr-defined]
            if func in FROM_MEMORY and isinstance(result, Tensor) and result.device.type != "meta":
                result = result.to(META)
            origins.observed(func, (args, kwargs), result)
        return result


def _without_device(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The arguments of Tensor.to less the device; another tensor stands for its dtype."""
    kept = [args[0]]
    for argument in args[1:]:
        if isinstance(argument, (torch.device, str, int)) and not isinstance(argument, bool):
            continue
        kept.append(argument.dtype if isinstance(argument, Tensor) else argument)
    if len(kept) > 1 and kept[1] is None:
        del kept[1]
    kwargs = {name: value for name, value in kwargs.items() if name != "device"}
    if isinstance(kwargs.get("other"), Tensor):
        kwargs["dtype"] = kwargs.pop("other").dtype
    return tuple(kept), kwargs


@contextlib.contextmanager
def harmless() -> Iterator[None]:
    """Replace, for a while, what compiles, scripts, loads weights or asks for an accelerator."""

    def unchanged(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        return model if model is not None else lambda function: function

    def nothing(*args: Any, **kwargs: Any) -> Any:
        return None

    def direct(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        for name in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"):
            kwargs.pop(name, None)
        return function(*args, **kwargs)

    import torch.utils.checkpoint

    replaced: List[Tuple[Any, str, Any]] = [
        (torch, "compile", unchanged),
        (torch.jit, "script", unchanged),
        (torch.jit, "script_method", unchanged),
        (torch.jit, "export", unchanged),
        (torch.jit, "ignore", unchanged),
        (torch, "manual_seed", nothing),
        (torch.cuda, "manual_seed", nothing),
        (torch.cuda, "manual_seed_all", nothing),
        (torch.cuda, "synchronize", nothing),
        (torch.cuda, "empty_cache", nothing),
        (torch.cuda, "set_device", nothing),
        (torch.utils.checkpoint, "checkpoint", direct),
        (torch.nn.Module, "cuda", unchanged),
        (torch.nn.Module, "cpu", unchanged),
        (torch.nn.Module, "load_state_dict", nothing),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
