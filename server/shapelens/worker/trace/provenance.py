"""Where a size came from: each tensor remembers the operation that made it, and its inputs (not the tensors, only their nodes).

A size is followed back through operations that keep it in its place (relu, dropout, pooling of the other dims) to the one that set it:
a layer whose constructor names it (`out_channels` of conv1), or an operation that changed it (`flatten`, `cat`, `transpose`).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn

from ...protocol import Origin
from .layer_inputs import Expectation, size_setter
from .recorder import Recorder
from .value_summary import ORIGIN, TAKEN

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction
_LAYER_NORMS = (nn.LayerNorm, getattr(nn, "RMSNorm", nn.LayerNorm))  # RMSNorm came with torch 2.4.

_VIEWS = frozenset(["expand", "repeat", "unsqueeze", "squeeze", "view", "reshape", "transpose", "permute", "flatten", "__getitem__", "to"])
MOST_STEPS = 200  # back through a chain of operations
MOST_ORIGINS = 5  # reported


class TapeClock:
    """The part of a followed program that the tape looks at (tape.py)."""

    time = 0  # steps of optimizers until now
    on_change: Optional[Callable[[str, Tensor, Any, Any], None]] = None  # is told of operations that gave back what they were given


tape_clock = TapeClock()


class Derivation:
    """One result of one operation."""

    __slots__ = ("largest", "layer", "learns", "module", "operation", "owner", "parents", "result", "site", "stand_in", "time", "written")

    def __init__(self, operation: str, result: Tuple[Any, ...], parents: List[Tuple[Optional["Derivation"], Tuple[Any, ...]]]) -> None:
        self.operation = operation
        self.site = -1  # the innermost expression of user code that gave it; set when it reports itself
        self.result = result
        self.parents = parents
        self.module: Any = None  # the layer that did it
        self.layer: Optional[int] = None
        self.stand_in = False  # the operation failed
        self.largest: Optional[int] = None  # number that a `randint` may give
        self.owner: Optional[int] = None  # the innermost of the user's own modules that returned it
        self.learns = False  # whether it requires a gradient
        self.time = tape_clock.time
        self.written: Tuple[Derivation, ...] = ()  # what was assigned to parts of it

    def copy(self) -> "Derivation":
        """A node of its own for a result that is made again."""
        made = Derivation(self.operation, self.result, self.parents)
        made.become(self)
        return made

    def become(self, other: "Derivation") -> None:
        """Stand for another result from now on, in the graph that this is a part of."""
        for name in Derivation.__slots__:
            setattr(self, name, getattr(other, name))


# The origin of an input of the example: nothing leads further back.
INPUT = Derivation("input", (), [])
INPUT.site = 0


def mark_result(operation: str, result: Any, arguments: Any, module: Any = None, layer: Optional[int] = None) -> None:
    """Note on each tensor of a result which operation gave it. `arguments`: whatever it was given, tensors among it."""
    with _plainly():
        tensors = list(tensors_in(result))
        if not tensors:
            return
        parents = [(tensor.__dict__.get(ORIGIN), tuple(tensor.shape)) for tensor in tensors_in(arguments)][:4]
        for tensor in tensors:
            if ORIGIN in tensor.__dict__:
                if tape_clock.on_change is not None:
                    tape_clock.on_change(operation, tensor, arguments, module)
                if module is None:
                    continue  # An operation in place, or one that returned its argument.
            node = Derivation(operation, tuple(tensor.shape), parents)
            node.module, node.layer, node.learns = module, layer, tensor.requires_grad
            tensor.__dict__[ORIGIN] = node


def mark_stand_in(result: Any) -> None:
    """Note that a result stands in for that of an operation that failed."""
    for tensor in tensors_in(result):
        node = tensor.__dict__.get(ORIGIN)
        if node is not None and node is not INPUT:
            node.stand_in = True


def follows_failure(values: Any) -> bool:
    """True if tensors were computed from a stand-in for the result of a failed operation."""
    todo = [tensor.__dict__.get(ORIGIN) for tensor in tensors_in(values)]
    seen: Set[int] = set()
    while todo and len(seen) < MOST_STEPS:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        if node.stand_in:
            return True
        seen.add(id(node))
        todo += [parent for parent, _ in node.parents]
    return False


def mark_returned(result: Any, owner: int) -> None:
    """Note that one of the user's own modules gave a tensor."""
    if isinstance(result, Tensor):
        node = result.__dict__.get(ORIGIN)
        if node is not None and node is not INPUT and node.owner is None:  # All inputs have one node.
            node.owner = owner


def tensors_in(value: Any, most: int = 8, depth: int = 0) -> Iterator[Tensor]:
    """The tensors among arguments or results, at most `most` of each list."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        if depth < 4:
            for item in value[:most]:
                yield from tensors_in(item, most, depth + 1)
    elif isinstance(value, dict) and value and depth < 4:
        for item in list(value.values())[:most]:
            yield from tensors_in(item, most, depth + 1)


def trace_back(tensor: Tensor, dim: int, recorder: Recorder) -> List[Origin]:
    """Where dim `dim` (counted from the front) of a tensor came from, nearest first; [] where it is an input of the example."""
    with _plainly():
        node: Optional[Derivation] = tensor.__dict__.get(ORIGIN)
    found: List[Origin] = []
    for _ in range(MOST_STEPS):
        if node is None or len(found) >= MOST_ORIGINS or dim >= len(node.result):
            break
        argument = size_setter(node.module, dim, len(node.result)) if node.module is not None else ""
        kept = None if argument else _kept(node, dim)
        if kept is not None:
            node = kept[0]
            continue
        if argument or node.site >= 0:  # Steps inside of libraries have no place to show.
            found.append(origin(node, argument, recorder))
        if argument or not node.parents:
            break
        # The operation made the size out of one of its input's: that one has an origin of its own.
        result = node.result
        node, shape = node.parents[0]
        dim = _source(known_sizes(result), dim, known_sizes(shape))
        last = len(shape) - 1
        if node is not None and node.module is not None and dim != last and size_setter(node.module, last, len(shape)):
            # A layer's features were folded into other dims: a wrong number of them shows up there.
            found.append(origin(node, size_setter(node.module, last, len(shape)), recorder))
    return found


def mark_taken(expected: Sequence[Expectation]) -> None:
    """A layer of torch's takes these tensors: what its constructor says of their sizes holds for all that get them."""
    for each in expected:
        each.tensor.__dict__.setdefault(TAKEN, {})[each.dim] = each.need


def pinned_size(tensor: Tensor, dim: int) -> Optional[int]:
    """The size that the constructor of another layer says of dim `dim` of a tensor: of one that took the tensor, or of a normalisation that
    it went through. It has that size whatever comes in, if the rest fits. None where there is none.
    """
    with _plainly():
        taken: Dict[int, int] = tensor.__dict__.get(TAKEN, {})
        node: Optional[Derivation] = tensor.__dict__.get(ORIGIN)
    if dim in taken:
        return taken[dim]
    for _ in range(MOST_STEPS):
        if node is None or dim >= len(node.result):
            break
        sizes = _normalised(node.module, len(node.result)) if node.module is not None else {}
        if dim in sizes:
            return sizes[dim]
        kept = _kept(node, dim)
        node = kept[0] if kept is not None else None
    return None


def _normalised(module: Any, rank: int) -> Dict[int, int]:
    """The sizes that a normalisation's constructor says, by dim."""
    shape = getattr(module, "normalized_shape", None)
    if isinstance(shape, tuple) and type(module) in _LAYER_NORMS:
        return {rank - len(shape) + index: size for index, size in enumerate(shape)}
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return {1: module.num_features}
    return {1: module.num_channels} if isinstance(module, nn.GroupNorm) else {}


def is_of_parameter(tensor: Tensor) -> bool:
    """True if a tensor is a parameter, or a view of what no operation of the run has made: the constructor says its sizes."""
    node: Optional[Derivation] = tensor.__dict__.get(ORIGIN)
    for _ in range(MOST_STEPS):
        if node is None or node.operation not in _VIEWS or not node.parents:
            break
        node = node.parents[0][0]
    return node is None


def made_by(tensor: Tensor, recorder: Recorder) -> List[Origin]:
    """The operation that gave a tensor, in a list; [] where it has no place in user code."""
    node = tensor.__dict__.get(ORIGIN)
    return [origin(node, "", recorder)] if node is not None and node.site > 0 else []


def known_sizes(shape: Sequence[Any]) -> List[Optional[int]]:
    """A shape's sizes; None for one that is no number, as a nested tensor has."""
    return [size if isinstance(size, int) else None for size in shape]


def _source(result: List[Optional[int]], dim: int, shape: List[Optional[int]]) -> int:
    """The dim of an operation's input that a size of its result was most likely made of; past the end where none is."""
    size = result[dim]
    merged = len(shape) - len(result)
    if merged > 0 and size == _product(shape[dim : dim + merged + 1]):
        return 1 if len(shape) > 2 else 0  # A flatten: the channels count.
    moved = [index for index, other in enumerate(shape) if other == size]
    if len(moved) == 1:
        return moved[0]
    parts = [
        index
        for index, other in enumerate(shape)
        if size and other and size > 1 and (other % size == 0 or (other > 1 and size % other == 0))
    ]
    return parts[-1] if parts else len(shape)


def _kept(node: Derivation, dim: int) -> Optional[Tuple[Optional[Derivation], Tuple[Any, ...]]]:
    """The input that already had this size in this place, if there is one."""
    size = node.result[dim]
    if node.operation in ("transpose", "permute", "t", "movedim", "view", "reshape", "matmul", "mm", "bmm", "einsum"):
        # Equal sizes in the same place are a coincidence here, unless the dims around are the same too.
        same = [parent for parent in node.parents[:1] if parent[1] == node.result]
        return same[0] if same else None
    for parent in node.parents:
        behind = len(parent[1]) - len(node.result)  # Broadcasting aligns dims at the end.
        if 0 <= dim + behind < len(parent[1]) and parent[1][dim + behind] == size and behind == 0:
            return parent
    return None


def _product(sizes: List[Optional[int]]) -> int:
    product = 1
    for size in sizes:
        product *= size or 0
    return product


def origin(node: Derivation, argument: str, recorder: Recorder) -> Origin:
    """An operation as a step back to where a size came from."""
    shape = known_sizes(node.parents[0][1]) if node.parents else []
    span = recorder.span_of(node.site) if node.site >= 0 else None
    return Origin(node.operation, span, shape, known_sizes(node.result), node.layer, argument)


def name_of(function: Callable[..., Any]) -> str:
    """The name of a torch function; of `x.data` and `x.T` that of the attribute."""
    name = getattr(function, "__name__", "") or "operation"
    return getattr(getattr(function, "__self__", None), "__name__", name) if name == "__get__" else name


def observed(function: Callable[..., Any], arguments: Any, result: Any) -> None:
    """Note the origin of what a torch function returned."""
    mark_result(name_of(function), result, arguments)
    if function is torch.randint and isinstance(result, Tensor):
        with _plainly():
            result.__dict__[ORIGIN].largest = _largest(*arguments)


def _largest(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[int]:
    """randint(high, size) or randint(low, high, size)"""
    high = kwargs.get("high", args[1] if len(args) > 1 and isinstance(args[1], int) else args[0] if args else None)
    return high - 1 if type(high) is int else None
