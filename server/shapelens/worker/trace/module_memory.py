"""The memory of modules: their own parameters and buffers, and the sum of these with their children's."""

from __future__ import annotations

from typing import Any, Container, Dict, Iterator, List, Sequence, Set, Tuple

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from ...protocol import ParameterSeen
from ..unknown import unknown_sizes
from . import module_tree
from .value_summary import dtype_name

# Where a module keeps what it holds: one whose constructor has not called `super().__init__()` has none of them.
_PARAMETERS, _BUFFERS, _MODULES = "_parameters", "_buffers", "_modules"
Amount = Tuple[int, int]  # the number of parameters, and the bytes of parameters and buffers


def parts_of(module: Any, but: Container[int] = ()) -> Iterator[Any]:
    """A module and all that it holds, each once, but for those with these ids and what they hold."""
    seen: Set[int] = set()
    todo = [module]
    while todo:
        part = todo.pop()
        if id(part) not in seen and id(part) not in but:
            seen.add(id(part))
            yield part
            todo += [child for child in part.__dict__.get("_modules", {}).values() if child is not None]


def own_tensors(module: Any) -> List[ParameterSeen]:
    """A module's own parameters and buffers, but for those of unknown sizes."""
    seen = []
    with torch._C.DisableTorchFunction():
        for held, buffer in ((_PARAMETERS, False), (_BUFFERS, True)):
            for name, tensor in module.__dict__.get(held, {}).items():
                if _counts(tensor) and has_known_sizes(tensor):
                    size = tensor.numel() * tensor.element_size()
                    seen.append(ParameterSeen(name, list(tensor.shape), dtype_name(tensor.dtype), size, tensor.requires_grad, buffer))
    return seen


class Holdings:
    """The amounts of many modules, which are parts of each other: each tensor is counted once, unless some are shared."""

    def __init__(self, modules: Sequence[Any]) -> None:
        self._known: Dict[int, Amount] = {}
        self._plain = _shares_nothing(modules)
        self._are_known = not unknown_sizes.state.met or all(has_known_sizes(tensor) for module in modules for tensor in _held(module))

    def of(self, module: Any) -> Amount:
        """Returns the amount that a module and its children hold; shared tensors count once. Nothing where a size among it is unknown."""
        with torch._C.DisableTorchFunction():  # The mode of the run has nothing to say here.
            if self._are_known:
                return self._sum(module) if self._plain else _counted(module)
            held = *module_tree.parameters(module), *module_tree.buffers(module)
            return _counted(module) if all(map(has_known_sizes, held)) else (0, 0)

    def _sum(self, module: Any) -> Amount:
        known = self._known.get(id(module))
        if known is None:
            self._known[id(module)] = 0, 0  # It may be a part of itself.
            count, size = _own(module)
            for child in module.__dict__.get(_MODULES, {}).values():
                if child is not None:
                    more, bytes_ = self._sum(child)
                    count, size = count + more, size + bytes_
            known = self._known[id(module)] = count, size
        return known


def has_known_sizes(tensor: Any) -> bool:
    """True if no size of a parameter or buffer depends on data, or on a failure."""
    return not unknown_sizes.state.met or not _counts(tensor) or not any(map(unknown_sizes.is_unknown, tensor.shape))


def _held(module: Any) -> Iterator[Any]:
    for held in (_PARAMETERS, _BUFFERS):
        yield from module.__dict__.get(held, {}).values()


def _counts(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and not isinstance(tensor, UninitializedTensorMixin)


def _own(module: Any) -> Amount:
    count = size = 0
    for tensor in module.__dict__.get(_PARAMETERS, {}).values():
        if _counts(tensor):
            count += tensor.numel()
            size += tensor.numel() * tensor.element_size()
    for tensor in module.__dict__.get(_BUFFERS, {}).values():
        if _counts(tensor):
            count += tensor.numel() if isinstance(tensor, torch.nn.Parameter) else 0
            size += tensor.numel() * tensor.element_size()
    return count, size


def _shares_nothing(modules: Sequence[Any]) -> bool:
    """True if no tensor and no child has two owners, and no class has a list of parameters of its own."""
    seen = set()
    Module = torch.nn.Module
    for module in modules:
        cls = type(module)
        if cls.named_parameters is not Module.named_parameters or cls.parameters is not Module.parameters:
            return False
        for held in (_PARAMETERS, _BUFFERS, _MODULES):
            for part in module.__dict__.get(held, {}).values():
                if part is None:
                    continue
                if id(part) in seen:
                    return False
                seen.add(id(part))
    return True


def _counted(module: Any) -> Amount:
    count = size = 0
    done = set()
    for tensors in (module_tree.parameters(module), module_tree.buffers(module)):
        for tensor in tensors:
            if id(tensor) not in done and _counts(tensor):
                done.add(id(tensor))
                count += tensor.numel() if isinstance(tensor, torch.nn.Parameter) else 0
                size += tensor.numel() * tensor.element_size()
    return count, size
