"""Other ways to write a call that rearranges, joins, splits or reduces dims: each with one number, or the order of its dims, changed.

These are guesses, likely ones first. They are worth something because each is run before it is offered.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from shapelens.source.calls import Argument, Call
from shapelens.source.module import Module
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import expression_of

# What these take besides dims comes first: the tensors or sizes that are no dims. A method has one argument less.
_DIM = {
    "cat": 1, "concat": 1, "concatenate": 1, "stack": 1, "chunk": 2, "split": 2, "tensor_split": 2, "unbind": 1, "squeeze": 1,
    "unsqueeze": 1,
    "sum": 1, "mean": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "prod": 1, "std": 1, "var": 1, "norm": 2, "logsumexp": 1, "argmax": 1,
    "argmin": 1, "cumsum": 1, "softmax": 1, "log_softmax": 1, "flatten": 1, "select": 1, "index_select": 1, "narrow": 1, "gather": 1,
    "transpose": 1, "swapaxes": 1, "swapdims": 1, "movedim": 1, "moveaxis": 1, "unflatten": 1,
}  # fmt: skip
_ONE_DIM = {"select", "index_select", "narrow", "gather", "unflatten"}  # The arguments that follow `dim` are no dims.
_TWO_DIMS = {"transpose", "swapaxes", "swapdims", "movedim", "moveaxis"}
_DIM_KEYWORDS = {"dim", "axis", "start_dim", "end_dim", "dim0", "dim1"}
_ORDERS = {"permute"}
_SIZES = {"view", "reshape", "expand", "repeat"}
_ADDS_A_DIM = {"unsqueeze", "stack"}
_MADE = {"zeros", "ones", "empty"}  # states and masks, rather than data
_PRODUCTS = {"matmul", "bmm", "mm"}
_PATTERNS = {"rearrange", "reduce", "repeat", "einsum"}  # of einops
_AXIS = re.compile(r"[A-Za-z_]\w*|\.\.\.|\d+")
_QUOTED = re.compile(r"[\"']([\w ().]+->[\w ().]+)[\"']")
_SIZE_READ = re.compile(r"(\w[\w.]*\.(?:shape\[|size\())(\d)([\])])")
LONGEST_SIZE = 60  # characters of an argument in which a size is read from a tensor
UNKNOWN_RANK = 4
MOST_PARTS = 8  # that a tensor is unpacked into
MOST_SIZES = 4  # that are tried in the place of a number


@dataclass(frozen=True)
class Rewriting:
    """An edit, what it does in a few words, and the place that it changes."""

    edit: TextEdit
    title: str
    span: Span


def rewritings(module: Module, span: Span, shape: Sequence[int | None], sizes: Sequence[int]) -> Iterator[Rewriting]:
    """The ways to write the operation at `span`, which was given a tensor of `shape` ([] where that is not known).

    `sizes`: numbers that may be meant where a size is written.
    """
    call = module.call_at(span)
    if call is None or call.span != span:
        yield from _operator(module, span)
        return
    name = call.function.rpartition(".")[2]
    # `torch.cat(…)` and `F.softmax(…)` take the tensor as an argument; a method of a tensor does not.
    is_function = call.qualified is not None or name in ("cat", "concat", "concatenate", "stack")
    if name == "squeeze":
        yield from _not_squeezed(call, is_function)
    if name in _DIM:
        yield from _parts(call, name, 1 if is_function else 0, sizes)
        yield from _dims(call, name, _DIM[name] - (0 if is_function else 1), len(shape))
    elif name in _ORDERS:
        yield from _order(call, 1 if is_function else 0)
    elif name in _SIZES:
        yield from _reshapings(call, 1 if is_function else 0, shape, sizes)
    elif name in _MADE and call.qualified is not None:
        yield from _other_order(call)
    elif name in _PRODUCTS:
        yield from _call_of_product(call)
    if name in _PATTERNS:
        yield from _other_patterns(module, call)
    yield from _other_dims_of_sizes(call)


def place(module: Module, span: Span) -> Span:
    """The part of an operation that one would change: its arguments that are numbers, else its name and brackets."""
    call = module.call_at(span)
    if call is None or call.span != span:
        return span
    numbers = [argument.span for argument in call.arguments if _number(argument) is not None]
    if numbers:
        return Span.of(numbers[0].start, numbers[-1].end)
    start = module.lines.offset(call.open_bracket) - 1 - len(call.function.rpartition(".")[2])
    return Span.of(max(call.span.start, module.lines.position(start)), call.span.end)


# --- dims ---


def _number(argument: Argument) -> int | None:
    """The integer that an argument is written as."""
    text = argument.text.strip()
    return int(text) if not argument.star and text.removeprefix("-").isdecimal() else None


def _dims(call: Call, name: str, first: int, rank: int) -> Iterator[Rewriting]:
    rank = (rank or UNKNOWN_RANK) + (1 if name in _ADDS_A_DIM else 0)
    for argument in call.arguments:
        number = _number(argument)
        if argument.keyword is not None:
            is_dim = argument.keyword in _DIM_KEYWORDS
        else:
            is_dim = argument.index is not None and (argument.index == first if name in _ONE_DIM else argument.index >= first)
        if not is_dim:
            continue
        if number is not None:
            # The dims that one call names have to differ.
            taken = {each % rank for each in map(_number, call.arguments) if each is not None} if name in _TWO_DIMS else set()
            for other in _other_dims(number, rank):
                if other % rank in taken:
                    continue
                yield _replaced(argument, str(other), f"Change dim {number} of {name} to {other}")
        elif (several := _tuple(argument)) is not None:
            for position, one in enumerate(several):
                for other in _other_dims(one, rank):
                    if other not in several:
                        yield _replaced(argument, _written(argument, several, position, other), f"Change dim {one} of {name} to {other}")


def _parts(call: Call, name: str, index: int, sizes: Sequence[int]) -> Iterator[Rewriting]:
    """`chunk` with another number of parts, as many as are unpacked; `sizes` has these."""
    for argument in call.arguments if name in ("chunk", "tensor_split") else ():
        number = _number(argument) if argument.index == index or argument.keyword == "chunks" else None
        for other in sizes if number is not None else ():
            if other != number and other <= MOST_PARTS:
                yield _replaced(argument, str(other), f"Split into {other} parts")


def _other_dims(number: int, rank: int) -> list[int]:
    """The other dims of a tensor, near ones first, counted from the same end."""
    every = range(-rank, 0) if number < 0 else range(rank)
    return sorted((other for other in every if other != number), key=lambda other: (abs(other - number), -other))


def _order(call: Call, first: int) -> Iterator[Rewriting]:
    """`permute` with two of its dims swapped, or, where a dim is there twice or does not exist, with the missing one in its place."""
    arguments = [argument for argument in call.arguments if argument.index is None or argument.index >= first]
    numbers = [_number(argument) for argument in arguments]
    several = None
    if len(arguments) == 1 and (several := _tuple(arguments[0])) is not None:
        dims = several
    elif arguments and None not in numbers:
        dims = [number for number in numbers if number is not None]
    else:
        return
    for changes in _changed_orders(dims):
        wanted = list(dims)
        for at, dim in changes:
            wanted[at] = dim
        text = ", ".join(map(str, wanted))
        if several is not None:
            bracket = arguments[0].text.strip()
            yield _replaced(arguments[0], f"{bracket[0]}{text}{bracket[-1]}", f"Permute to ({text})")
        elif not any(argument.keyword for argument in arguments):
            span = Span.of(arguments[0].span.start, arguments[-1].span.end)
            yield Rewriting(TextEdit(span, text), f"Permute to ({text})", span)


def _changed_orders(dims: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Changes of an order of dims, each by places and the dims that stand there then."""
    count = len(dims)
    normal = [dim + count if dim < 0 else dim for dim in dims]
    missing = [dim for dim in range(count) if dim not in normal]
    if missing:
        wrong = [at for at, dim in enumerate(normal) if normal.count(dim) > 1 or not 0 <= dim < count]
        return [[(at, dim if dims[at] >= 0 else dim - count)] for at in reversed(wrong) for dim in missing]
    pairs = sorted(combinations(range(count), 2), key=lambda pair: (pair[1] - pair[0], pair[0]))
    return [[(one, dims[other]), (other, dims[one])] for one, other in pairs]


# --- sizes ---


def _other_order(call: Call) -> Iterator[Rewriting]:
    """`zeros` with two neighbouring sizes swapped."""
    sizes = [argument for argument in call.arguments if argument.keyword is None and not argument.star]
    for one, other in pairwise(sizes if len(sizes) > 2 else ()):
        between = Span.of(one.span.start, other.span.end)
        text = f"{other.text.strip()}, {one.text.strip()}"
        yield Rewriting(TextEdit(between, text), f"Change the sizes to {text}", between)


def _not_squeezed(call: Call, is_function: bool) -> Iterator[Rewriting]:
    """`x.flatten(1)`, or `x` alone: `squeeze` takes the dim of a batch of one sample away too."""
    given = call.arguments[0].text if is_function and call.arguments else call.function.rpartition(".")[0]
    dims = call.arguments[1:] if is_function else call.arguments
    if given and not dims:
        text = f"{call.function.rpartition('.')[0]}.flatten({given}, 1)" if is_function else f"{given}.flatten(1)"
        yield Rewriting(TextEdit(call.span, text), "Flatten all but the batch", call.span)
    elif given:
        yield Rewriting(TextEdit(call.span, given), "Leave out squeeze", call.span)


def _other_dims_of_sizes(call: Call) -> Iterator[Rewriting]:
    """A call that is given the size of another dim: `zeros(1, x.size(1), 8)` for `zeros(1, x.size(0), 8)`."""
    for argument in call.arguments:
        for read in _SIZE_READ.finditer(argument.text) if not argument.star and len(argument.text) < LONGEST_SIZE else ():
            for dim in (0, 1, 2):
                if dim != int(read[2]):
                    text = argument.text[: read.start(2)] + str(dim) + argument.text[read.end(2) :]
                    yield _replaced(argument, text, f"Take the size of dim {dim}: {read[1]}{dim}{read[3]}")


def _reshapings(call: Call, first: int, shape: Sequence[int | None], sizes: Sequence[int]) -> Iterator[Rewriting]:
    """`view` with -1 or another number in the place of a number, or with a number in the place of -1."""
    name = call.function.rpartition(".")[2]
    parts = [argument for argument in call.arguments if argument.index is not None and argument.index >= first]
    numbers = [_number(argument) for argument in parts]
    elements = math.prod(size for size in shape if size is not None) if shape and None not in shape else 0
    for argument, number in zip(parts, numbers, strict=True):
        if number is None or number == 0:
            continue
        others = [other for at, other in enumerate(numbers) if parts[at] is not argument]
        wanted = _left_for_one(name, others, elements)
        if number > 0:
            # A slip is likely to be small.
            likely = {*sizes, *(math.prod(size or 0 for size in shape[start:]) for start in range(1, len(shape)))}
            wanted += sorted((size for size in likely if size > 0), key=lambda size: abs(size - number))[:MOST_SIZES]
        for other in dict.fromkeys(wanted):
            if other != number:
                yield _replaced(argument, str(other), f"Change {number} to {other} in {name}")


def _left_for_one(name: str, others: Sequence[int | None], elements: int) -> list[int]:
    """Returns the sizes that the other ones leave for one of a view: a number where they are known, and -1. elements: of the tensor; 0 if
    unknown."""
    if -1 in others or name not in ("view", "reshape", "expand"):
        return []
    known = math.prod(other for other in others if other is not None) or 1
    is_told = name != "expand" and None not in others and elements > 0 and elements % known == 0
    return [elements // known, -1] if is_told else [-1]


# --- patterns of einops ---


def _other_patterns(module: Module, call: Call) -> Iterator[Rewriting]:
    """The result of a pattern as another pattern of the file writes these axes, then with two of its axes swapped.

    After `b n (h d) -> b h n d`, the way back is `b n (h d)`.
    """
    for argument in call.arguments:
        text = argument.text.strip()
        if text[:1] not in "\"'" or text.count("->") != 1 or "\n" in text:
            continue
        quote, (given, result) = text[0], text.strip("\"'").split("->")
        axes = sorted(_AXIS.findall(result))
        sides = [side.strip() for pattern in _QUOTED.findall(module.text) for side in pattern.split("->")]
        alike = [side for side in dict.fromkeys(sides) if sorted(_AXIS.findall(side)) == axes]
        for other in [*alike, *_with_axes_swapped(result.strip())]:
            if other not in (result.strip(), given.strip()):
                yield _replaced(argument, f"{quote}{given.strip()} -> {other}{quote}", f"Rearrange to {other}")


def _with_axes_swapped(result: str) -> Iterator[str]:
    axes = list(_AXIS.finditer(result))
    for one, other in sorted(combinations(axes, 2), key=lambda pair: axes.index(pair[1]) - axes.index(pair[0])):
        yield result[: one.start()] + other.group() + result[one.end() : other.start()] + one.group() + result[other.end() :]


# --- products ---


def _operator(module: Module, span: Span) -> Iterator[Rewriting]:
    """`a @ b` the other way round, or with one side transposed."""
    text = module.lines.text_of(span)
    node = expression_of(f"({text})")
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult) or "\n" in text:
        return
    left, right = ast.get_source_segment(f"({text})", node.left), ast.get_source_segment(f"({text})", node.right)
    if left is None or right is None:
        return
    yield from _products(span, left, right, lambda one, other: f"{_bracketed(one)} @ {_bracketed(other)}")


def _call_of_product(call: Call) -> Iterator[Rewriting]:
    if len(call.arguments) == 2 and all(argument.index is not None and not argument.star for argument in call.arguments):
        left, right = call.arguments
        span = Span.of(left.span.start, right.span.end)
        yield from _products(span, left.text, right.text, lambda one, other: f"{one}, {other}")


def _products(span: Span, left: str, right: str, joined: Callable[[str, str], str]) -> Iterator[Rewriting]:
    yield Rewriting(TextEdit(span, joined(left, _transposed(right))), f"Transpose {_short(right)}", span)
    yield Rewriting(TextEdit(span, joined(right, left)), "Multiply the other way round", span)
    yield Rewriting(TextEdit(span, joined(_transposed(left), right)), f"Transpose {_short(left)}", span)


def _transposed(text: str) -> str:
    """`x` for `x.transpose(-2, -1)` and the other way round."""
    for written in (".transpose(-2, -1)", ".transpose(-1, -2)", ".mT"):
        if text.endswith(written):
            return text.removesuffix(written)
    return f"{_bracketed(text)}.transpose(-2, -1)"


def _bracketed(text: str) -> str:
    node = ast.parse(text.strip(), mode="eval").body
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) or text.startswith("(") else f"({text})"


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"


# --- text ---


def _tuple(argument: Argument) -> list[int] | None:
    """The integers of an argument that is written as a tuple or list of them."""
    if argument.star or argument.text.strip()[:1] not in ("(", "["):
        return None
    try:
        value = ast.literal_eval(argument.text.strip())
    except (SyntaxError, ValueError):
        return None
    return list(value) if isinstance(value, (tuple, list)) and value and all(type(part) is int for part in value) else None


def _written(argument: Argument, numbers: Sequence[int], position: int, other: int) -> str:
    text = argument.text.strip()
    parts = [str(other if at == position else number) for at, number in enumerate(numbers)]
    return text[0] + ", ".join(parts) + ("," if len(parts) == 1 and text[0] == "(" else "") + text[-1]


def _replaced(argument: Argument, text: str, title: str) -> Rewriting:
    return Rewriting(TextEdit(argument.span, text), title, argument.span)
