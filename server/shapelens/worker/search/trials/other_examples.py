"""Examples like one that fails, with other numbers, dims, dtypes or lists: what fails in all of them rests on no guess."""

from __future__ import annotations

import itertools
import re
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from ..evidence import NOTHING_SAID, InputSaid, with_sizes
from .doubtful_examples import constructor_of, template_of
from .solving import step_of

MOST_VARIANTS = 12
TOGETHER = 3  # examples in which all numbers that are equal are changed: so many tell whether a difference follows them evenly
MOST_INPUTS = 3  # of which each may have another number of dims
_DTYPES = ("f32", "i64", "f64", "f16", "u8", "bool", "c64")  # that an input may have
_NAMED = re.compile(r"\b([^\W\d]\w*):(\d+)")  # a dim with its size
_TENSOR = re.compile(r"(\w+)\[([^\[\]]*)\]")
_LIST_OF_INTS = re.compile(r"\[\d+(?:, \d+)+\]")


class Said(NamedTuple):
    """The parts of an example that the code says, so that nobody guessed them."""

    constructor: bool = False  # all of how the model is built
    inputs: InputSaid = NOTHING_SAID


def other_lists(expression: str) -> List[str]:
    """The example with the numbers of a list of its constructor in pairs, as `anchors` are, or with one number more."""
    constructor = constructor_of(expression)
    found: List[str] = []
    for match in _LIST_OF_INTS.finditer(constructor):
        numbers = match[0][1:-1].split(", ")
        others = (", ".join("[%s, %s]" % (each, each) for each in numbers), ", ".join([*numbers, numbers[-1]]))
        found += [expression[: match.start() + 1] + other + expression[match.end() - 1 :] for other in others]
    return found[:MOST_VARIANTS]


def other_ranks(expression: str) -> Iterator[str]:
    """The example with tensors that have a dim more behind the first one, or one less: each of the inputs, of a few also some of them, or
    all; and with rows of numbers."""
    begin = len(constructor_of(expression))
    expression = expression[:begin] + _in_numbers(expression[begin:])
    tensors = [match for match in _TENSOR.finditer(expression, begin) if match[2] != "()"]
    ways: List[Callable[[List[str]], List[str]]] = [lambda dims: [dims[0], "5", *dims[1:]], lambda dims: [dims[0], *dims[2:]]]
    for way in ways:
        for count in range(1, len(tensors) + 1 if len(tensors) <= MOST_INPUTS else 2):
            for some in itertools.combinations(tensors, count):
                other = expression
                for match in reversed(some):
                    other = other[: match.start(2)] + ", ".join(way(match[2].split(", "))) + other[match.end(2) :]
                if other != expression:
                    yield other
    rows = expression
    for match in reversed(tensors):
        dims = match[2].split(", ")
        rows = rows[: match.start(2)] + ", ".join([dims[0], dims[-1]]) + rows[match.end(2) :] if len(dims) > 2 else rows
    if rows != expression:
        yield rows


def _in_numbers(arguments: str) -> str:
    """Returns the arguments of a model, without the names of dims: another tensor may use one after the dim that says its size is gone."""
    sizes = dict(_NAMED.findall(arguments))
    return _TENSOR.sub(lambda match: "%s[%s]" % (match[1], ", ".join(_number(dim, sizes) for dim in match[2].split(", "))), arguments)


def _number(dim: str, sizes: Dict[str, str]) -> str:
    return sizes.get(dim, dim.rpartition(":")[2])


def other_dtypes(expression: str) -> Iterator[str]:
    """The example with tensors of other dtypes, one at a time."""
    begin = len(constructor_of(expression))
    for match in _TENSOR.finditer(expression, begin):
        for other in [each for each in _DTYPES if each != match[1] in _DTYPES]:
            yield expression[: match.start(1)] + other + expression[match.end(1) :]


def other_sizes(expression: str, said: Said) -> Iterator[Tuple[int, List[Tuple[str, int]]]]:
    """For each number that was guessed, the examples with another one in its place, and in that of the numbers that are equal to it."""
    template, sizes, of_constructor = template_of(expression)

    def is_said(name: str, size: int) -> bool:
        return said.constructor if name in of_constructor else said.inputs.binds(size)

    free = {name: size for name, size in sizes.items() if size and not is_said(name, size)}
    for size in dict.fromkeys(free.values()):
        names, step = [name for name, other in free.items() if other == size], step_of(size)
        others = list(dict.fromkeys([size + step, 2 * size, size + 2 * step, size + 3 * step]))[:TOGETHER]
        texts = [(with_sizes(template, {**sizes, **dict.fromkeys(names, other)}), other) for other in others]
        if len(names) > 1:
            texts += [(with_sizes(template, {**sizes, name: size + step}), size + step) for name in names]
        yield size, list(dict.fromkeys(texts))
