"""The parts of a module as torch keeps them, whatever its class makes of `named_modules` and `parameters`, and whether or not a module is a
part of itself."""

from __future__ import annotations

from typing import Any, Iterator, List, Set, Tuple

import torch

MOST_PATHS = 100_000  # of a model, in which one module may have several


def named_modules(model: Any) -> Iterator[Tuple[str, Any]]:
    """All modules of a model with their paths, each as often as there are ways to it that do not come back to a module on the way."""
    found = 0
    waiting: List[Tuple[str, Any, Tuple[int, ...]]] = [("", model, ())]
    while waiting and found < MOST_PATHS:
        path, module, above = waiting.pop()
        found += 1
        yield path, module
        around = (*above, id(module))
        parts = [
            ("%s.%s" % (path, name) if path else str(name), part, around)
            for name, part in module.__dict__.get("_modules", {}).items()
            if part is not None and id(part) not in around
        ]
        waiting += reversed(parts)


def modules(model: Any) -> Iterator[Any]:
    """A model and its parts, each once; one whose class does not call `super().__init__()` has none."""
    seen: Set[int] = set()
    waiting = [model]
    while waiting:
        module = waiting.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            waiting += [part for part in reversed(list(module.__dict__.get("_modules", {}).values())) if part is not None]


def parameters(model: Any) -> Iterator[Any]:
    """The parameters of a model and its parts, each once."""
    return _held(model, "_parameters")


def buffers(model: Any) -> Iterator[Any]:
    """The buffers of a model and its parts, each once."""
    return _held(model, "_buffers")


def _held(model: Any, kind: str) -> Iterator[Any]:
    seen: Set[int] = set()
    for module in modules(model):
        for tensor in module.__dict__.get(kind, {}).values():
            is_tensor = issubclass(type(tensor), torch.Tensor)  # What stands in for one says that it is one, too, and torch keeps it.
            if is_tensor and id(tensor) not in seen:
                seen.add(id(tensor))
                yield tensor
