"""The optimizers of a program: those that get no parameters, or only those of a model that the program never calls; layers that they do not
get, as a plain list holds them; gradients that nothing sets back."""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import re
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ...protocol import FileSpan, Mismatch, Remark
from ..sandbox.exceptions import message_of
from ..trace.frames import Frames
from ..trace.layer_inputs import is_torch_layer
from ..trace.tape import tape
from ..trace.value_summary import LAYER
from .module_calls import Calls

_GRADIENTS = re.compile(r"zero_grad|\.grad\b|set_to_none")  # in a text that sets gradients back itself, it may be
_OPTIMIZER = re.compile(r"(self\.)?(\w+_)?optim(izer)?(_\w+)?")
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
            tape.optimizers.append(id(optimizer))
            if trail:
                given = [parameter for group in optimizer.param_groups for parameter in group["params"]]
                self._made.append(_Made(given, trail[-1]))

        owners: Tuple[Any, ...] = (torch.optim.Optimizer, torch.nn.Module)
        resets = [owner.zero_grad for owner in owners]
        torch.optim.Optimizer.__init__ = observed  # type: ignore[method-assign, assignment]
        for owner, reset in zip(owners, resets):
            owner.zero_grad = _noted(reset)
        try:
            yield
        finally:
            torch.optim.Optimizer.__init__ = initialise  # type: ignore[method-assign]
            for owner, reset in zip(owners, resets):
                owner.zero_grad = reset

    def all_else_ran(self, failures: Sequence[Tuple[int, BaseException]]) -> bool:
        """True if all failed statements made an optimizer of nothing: no other failure can have led to that."""
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

    def unregistered(self, calls: Calls, example: int) -> List[Remark]:
        """The layers that a plain list or dict of a module holds, and that no optimizer has, which has other parameters of the module."""
        optimized = {id(parameter) for made in self._made for parameter in made.parameters}
        registered = {id(part) for module in calls.modules for part in module._modules.values()}
        found = []
        for owner in calls.modules if optimized else ():
            if is_torch_layer(owner) or not any(id(parameter) in optimized for parameter in owner.parameters()):
                continue
            for name, value in list(owner.__dict__.items()):
                items = value if type(value) in (list, tuple) else list(value.values()) if type(value) is dict and name[0] != "_" else ()
                parts = [part for part in items if isinstance(part, torch.nn.Module) and id(part) not in registered]
                span = calls.spans[parts[0].__dict__.get(LAYER, -1)] if parts else None
                if span is not None and all(self._is_left_out(part, calls, optimized) for part in parts):
                    found.append(Remark("unregistered-layers", "", span, example, given=name))
        return found

    def _is_left_out(self, part: Any, calls: Calls, optimized: Set[int]) -> bool:
        """True if the forward and backward passes reached a module with parameters that learn, of which no optimizer has one."""
        learning = [id(parameter) for parameter in part.parameters() if parameter.requires_grad]
        is_called = any(each.__dict__.get(LAYER, -1) in calls.seen for each in part.modules())
        return is_called and not tape.reached.isdisjoint(learning) and optimized.isdisjoint(learning)


def left_in_lists(calls: Calls, example: int) -> List[Remark]:
    """The layers in plain lists of the modules that an example has called, where these know of others: an optimizer gets the others alone.

    A list of one is a known way to hide a module; parameters that somebody collects from the list are known all the same.
    """
    registered = {id(part) for module in calls.modules for part in module._modules.values()}
    found = []
    for number in calls.seen:
        owner: Any = calls.modules[number] if 0 <= number < len(calls.modules) else None
        is_plain = owner is not None and not is_torch_layer(owner) and type(owner).parameters is torch.nn.Module.parameters
        if not is_plain or not any(parameter.requires_grad for parameter in owner.parameters()):
            continue
        for name, value in list(owner.__dict__.items()):
            items = value if type(value) in (list, tuple) else list(value.values()) if type(value) is dict and name[0] != "_" else ()
            parts = [part for part in items if isinstance(part, torch.nn.Module) and id(part) not in registered]
            span = calls.spans[parts[0].__dict__.get(LAYER, -1)] if len(parts) > 1 and len(parts) == len(items) else None
            if span is not None and all(_learns_when_called(part, calls) for part in parts) and not _collects_from(name, span):
                found.append(Remark("unregistered-layers", "", span, example, given=name))
    return found


def _learns_when_called(part: Any, calls: Calls) -> bool:
    """True if an example has called a module whose parameters learn."""
    is_called = any(each.__dict__.get(LAYER, -1) in calls.seen for each in part.modules())
    return is_called and part.training and any(parameter.requires_grad for parameter in part.parameters())


def _collects_from(name: str, span: FileSpan) -> bool:
    """True if a line of a file has both a list and parameters: `[p for block in self.blocks for p in block.parameters()]`."""
    lines = linecache.getlines(span.file)
    return any("parameters" in line and re.search(r"\b%s\b" % re.escape(name), line) for line in lines)


def never_set_back(function: ast.FunctionDef, file: str) -> Optional[ast.expr]:
    """The `optimizer.step()` of a loop that also calls `backward()`, in a file where nothing sets gradients back; None for no such.

    What is given the optimizer may do it.
    """
    if _GRADIENTS.search("".join(linecache.getlines(file))) is not None:
        return None
    for loop in ast.walk(function):
        if not isinstance(loop, ast.For):
            continue
        calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
        backs = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "backward"]
        given = {ast.unparse(each) for node in calls for each in (*node.args, *(named.value for named in node.keywords))}
        for node in calls:
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) and node.func.attr == "step" else ""
            if backs and not node.args and _OPTIMIZER.fullmatch(owner) and owner not in given:
                return node
    return None


def _noted(reset: Any) -> Any:
    """`zero_grad`, which the tape is told of."""

    @functools.wraps(reset)
    def noted(*args: Any, **kwargs: Any) -> Any:
        tape.resets_gradients = True
        return reset(*args, **kwargs)

    return noted


def remarks_of_tape(example: int) -> List[Remark]:
    """Sums that keep the graphs of all turns, and a loop that trains where nothing sets gradients back to zero."""
    found = [Remark("kept-graph", "", span, example, given=name) for name, span in tape.kept.items()]
    span = tape.adds_up
    if span is not None and not tape.resets_gradients and _GRADIENTS.search("".join(linecache.getlines(span.file))) is None:
        found.append(Remark("no-zero-grad", "", span, example))
    return found


def _parameters(calls: Calls, indices: Set[int]) -> Set[int]:
    """The parameters that learn of these modules and their parts, by identity."""
    found: Set[int] = set()
    for index in indices:
        if 0 <= index < len(calls.modules):
            found.update(id(parameter) for parameter in calls.modules[index].parameters() if parameter.requires_grad)
    return found
