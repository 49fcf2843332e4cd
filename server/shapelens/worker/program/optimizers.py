"""The optimizers of a program: those that get no parameters, or only those of a model that the program never calls."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, NamedTuple, Sequence, Set, Tuple

import torch

from ...protocol import FileSpan, Mismatch, Remark
from ..calls.module_calls import Calls
from ..sandbox.exceptions import message_of
from ..trace.frames import Frames

_EMPTY = "optimizer got an empty parameter list"


class _Made(NamedTuple):
    """An optimizer, by what it was given, and the expression that made it."""

    parameters: List[Any]
    span: FileSpan


class Optimizers:
    """Watches the construction of optimizers."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._made: List[_Made] = []
        self._refused: List[Tuple[BaseException, List[FileSpan]]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note what is made from now on."""
        initialise = torch.optim.Optimizer.__init__

        def observed(optimizer: Any, params: Any, *args: Any, **kwargs: Any) -> None:
            trail = self._frames.trail()
            try:
                initialise(optimizer, params, *args, **kwargs)
            except ValueError as error:
                if _EMPTY in message_of(error) and trail:
                    self._refused.append((error, trail))
                raise
            if trail:
                given = [parameter for group in optimizer.param_groups for parameter in group["params"]]
                self._made.append(_Made(given, trail[-1]))

        torch.optim.Optimizer.__init__ = observed  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            torch.optim.Optimizer.__init__ = initialise  # type: ignore[method-assign]

    def all_else_ran(self, failures: Sequence[Tuple[int, BaseException]]) -> bool:
        """Whether no statement failed but those that made an optimizer of nothing: none can have led to that."""
        return {id(error) for _, error in failures} <= {id(error) for error, _ in self._refused}

    def mismatches(self, example: int) -> List[Mismatch]:
        """The optimizers that eager refuses as there is nothing to optimize."""
        return [Mismatch("optimizer-parameters", _EMPTY, "ValueError", trail[-1], trail, example) for _, trail in self._refused]

    def remarks(self, calls: Calls, example: int) -> List[Remark]:
        """The optimizers whose parameters no call of a module has used, where there are parameters in use that no optimizer has.

        A parameter that belongs to no module may be used in any way, so that nothing is said of its optimizer.
        """
        used = _parameters(calls, set(calls.seen))
        owned = _parameters(calls, set(range(len(calls.modules))))
        optimized = {id(parameter) for made in self._made for parameter in made.parameters}
        if not used - optimized:
            return []
        return [
            Remark("optimizer-parameters", "", made.span, example)
            for made in self._made
            if made.parameters and all(id(parameter) in owned - used for parameter in made.parameters)
        ]


def _parameters(calls: Calls, indices: Set[int]) -> Set[int]:
    """The parameters that learn of these modules and their parts, by identity."""
    found: Set[int] = set()
    for index in indices:
        if 0 <= index < len(calls.modules):
            found.update(id(parameter) for parameter in calls.modules[index].parameters() if parameter.requires_grad)
    return found
