"""Ranks of tensors by the calls that they take part in: `x.permute(0, 2, 1)`, `x.mean(dim=(2, 3))`."""

from __future__ import annotations

import ast
from typing import Iterator, List, NamedTuple, Optional, Sequence

from ....stated.shape_words import is_batch
from ....stated.syntax_trees import integer, keyword

# The position among a method's arguments of the dims that have to exist.
_DIM_ARGUMENT = {
    "softmax": 0, "log_softmax": 0, "mean": 0, "sum": 0, "amax": 0, "amin": 0, "prod": 0, "argmax": 0, "argmin": 0, "max": 0, "min": 0,
    "std": 0, "var": 0, "cumsum": 0, "unbind": 0, "squeeze": 0, "select": 0, "narrow": 0, "flip": 0, "chunk": 1, "split": 1,
    "unflatten": 0, "topk": 1, "index_select": 0, "gather": 0, "sort": 0, "logsumexp": 0,
}  # fmt: skip
_TWO_DIMS = frozenset(("transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "transpose_"))
_MATRIX_RANKS = {"bmm": 3, "mm": 2, "baddbmm": 3}

_KEEPS_RANK = _TWO_DIMS | {"permute", "contiguous", "float", "to", "long", "detach", "clone"}


class Rank(NamedTuple):
    """The rank of one of a call's tensors."""

    tensor: ast.expr
    exact: Optional[int]  # where it is fixed
    least: int
    is_sure: bool = True  # whether it has to be so; else it nearly always is
    is_shared: bool = False  # whether all samples of a batch share the tensor: `queries.unsqueeze(1).repeat(1, batch, 1)`


def ranks_of_call(node: ast.Call) -> List[Rank]:
    """The tensors of a call whose rank it tells."""
    own = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
    return [_of_receiver(rank) for rank in _ranks(node)] if isinstance(node.func, ast.Attribute) and not own else []


def _of_receiver(rank: Rank) -> Rank:
    """Returns the rank of x by that of `x.unsqueeze(1)`."""
    tensor, exact = rank.tensor, rank.exact
    while exact is not None and isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute):
        if tensor.func.attr not in _KEEPS_RANK and tensor.func.attr != "unsqueeze":
            break
        if tensor.func.attr == "unsqueeze":
            exact -= 1
        tensor = tensor.func.value
    return rank._replace(tensor=tensor, exact=exact)


def _is_repeated_for_samples(tensor: ast.expr, times: Sequence[ast.expr]) -> bool:
    """True if a dim that `unsqueeze` has just made is repeated as often as there are samples."""
    if not (isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and tensor.func.attr == "unsqueeze" and tensor.args):
        return False
    place = integer(tensor.args[0])
    count = times[place] if place is not None and -len(times) <= place < len(times) else None
    return isinstance(count, ast.Name) and is_batch(count.id)


def _in_one(arguments: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """The sizes or dims that a call is given one by one, or in one tuple."""
    one = arguments[0] if len(arguments) == 1 else None
    return one.elts if isinstance(one, (ast.Tuple, ast.List)) else arguments


def _argument(node: ast.Call, name: str, arguments: Sequence[ast.expr], place: int) -> Optional[ast.expr]:
    return keyword(node, name) or (arguments[place] if len(arguments) > place else None)


def _ranks(node: ast.Call) -> Iterator[Rank]:
    assert isinstance(node.func, ast.Attribute)
    name, owner, arguments = node.func.attr, node.func.value, node.args
    if not isinstance(owner, ast.Name) or owner.id not in ("torch", "F"):
        yield from _ranks_of(node, name, owner, arguments)
    elif name == "cat" and arguments and isinstance(arguments[0], (ast.List, ast.Tuple)):
        index = integer(_argument(node, "dim", arguments, 1))
        yield from (Rank(element, None, _least(index)) for element in arguments[0].elts)
    elif arguments:
        yield from _ranks_of(node, name, arguments[0], arguments[1:])


def _ranks_of(node: ast.Call, name: str, tensor: ast.expr, arguments: Sequence[ast.expr]) -> Iterator[Rank]:
    """Yields the ranks that a call says of a tensor, and of others beside it. arguments: all others."""
    if name in _MATRIX_RANKS:
        yield from (Rank(one, _MATRIX_RANKS[name], 0) for one in [tensor, *arguments])
    elif name == "permute":
        order = _in_one(arguments)
        if order and all(integer(one) is not None for one in order):
            yield Rank(tensor, len(order), 0)
    elif name in ("repeat", "expand"):
        times = _in_one(arguments)
        if len(times) > 1 and not any(isinstance(one, ast.Starred) for one in times):
            yield Rank(tensor, len(times), 0, is_sure=False, is_shared=_is_repeated_for_samples(tensor, times))
    elif name in _TWO_DIMS and len(arguments) == 2:
        yield Rank(tensor, None, max(_least(integer(arguments[0])), _least(integer(arguments[1]))))
    elif name == "flatten":  # Of the last dim alone there is nothing to flatten.
        start = integer(_argument(node, "start_dim", arguments, 0))
        yield Rank(tensor, None, _least(start) + (start is not None and start > 0))
    elif name in _DIM_ARGUMENT:
        argument = _argument(node, "dim", arguments, _DIM_ARGUMENT[name])
        wanted = _in_one([argument]) if argument is not None else []
        yield Rank(tensor, None, max([_least(integer(one)) for one in wanted] or [0]))


def _least(index: Optional[int]) -> int:
    """The rank that a tensor must have so that a dim of this index exists."""
    return 0 if index is None else index + 1 if index >= 0 else -index
