"""The sizes that an example gives the inputs of a model: which of them may be chosen, and the same example with others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from shapelens.examples.expression import is_shorthand, name_of, sizes_of, syntax_tree

Argument = int | str  # of a call, by its place or its name

Shape = Sequence[int]


@dataclass(frozen=True)
class Dim:
    """A dim of an input. name: one that several dims may have, all of which change with it. size: None for a formula of others."""

    name: str
    size: int | None
    text: str = ""  # of a formula


@dataclass(frozen=True)
class SizedCall:
    """An example that calls its model with tensors whose sizes stand in it."""

    arguments: dict[Argument, object]  # by place and name: nested lists and dicts; a tensor is a tuple of `Dim`, all else None
    sizes: dict[str, int]  # of the dims, by name
    _call: ast.Call = field(repr=False)

    def text(self, sizes: Mapping[str, int]) -> str:
        """The example with these sizes."""
        call = deepcopy(self._call)
        seen = set[str]()
        for node in _tensors(call):
            node.slice = ast.Tuple([_written(dim, sizes, seen) for dim in sizes_of(node)], ast.Load())
        return ast.unparse(call)


def sized_call(expression: str, dims: Mapping[str, int], given: Callable[[Argument], tuple[str, Shape] | None]) -> SizedCall | None:
    """Returns an example as a call of a model with tensors; None where it is no such call.

    dims: the sizes of its named dims. given: the dtype (as a shorthand) and the shape of an argument that is no tensor by the text.
    """
    try:
        call = syntax_tree(expression).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call) or isinstance(call.func, ast.Attribute):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    call.args = [_as_tensor(each, given(number)) for number, each in enumerate(call.args)]
    for each in call.keywords:
        each.value = _as_tensor(each.value, given(each.arg or ""))
    sizes = dict[str, int]()
    for number, node in enumerate(_tensors(call)):
        parts = [_named(dim, f"{number}.{place}") for place, dim in enumerate(sizes_of(node))]
        node.slice = ast.Tuple(parts, ast.Load())
        for dim in parts:
            name = name_of(dim)
            if name in dims:
                sizes[name] = dims[name]
            elif isinstance(dim, ast.Slice) and isinstance(dim.upper, ast.Constant) and isinstance(dim.upper.value, int):
                sizes[name] = dim.upper.value
    arguments: dict[Argument, object] = {number: _structure(each, sizes) for number, each in enumerate(call.args)}
    arguments |= {each.arg or "": _structure(each.value, sizes) for each in call.keywords}
    return SizedCall(arguments, sizes, call) if sizes else None


def _named(dim: ast.expr, name: str) -> ast.expr:
    """A dim that is a number, with a name that no text has."""
    return ast.Slice(ast.Name(name, ast.Load()), dim) if isinstance(dim, ast.Constant) else dim


def _as_tensor(node: ast.expr, given: tuple[str, Shape] | None) -> ast.expr:
    """An argument as it stands, or the tensor that it was."""
    if given is None or isinstance(node, ast.Constant) or any(isinstance(part, ast.expr) and is_shorthand(part) for part in ast.walk(node)):
        return node
    dtype, shape = given
    return syntax_tree(f"{dtype}[{', '.join(map(str, shape)) or '()'}]").body


def _tensors(call: ast.Call) -> list[ast.Subscript]:
    """The tensors among what a call is given, however deep; not those of the constructor."""
    found: list[ast.Subscript] = []

    def look(node: ast.expr) -> None:
        if isinstance(node, ast.Subscript) and is_shorthand(node):
            found.append(node)
        for inner in _inner(node):
            look(inner)

    for each in [*call.args, *(keyword.value for keyword in call.keywords)]:
        look(each)
    return found


def _inner(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple):
        yield from node.elts
    elif isinstance(node, ast.Dict):
        yield from node.values


def _structure(node: ast.expr, sizes: Mapping[str, int]) -> object:
    if isinstance(node, ast.Subscript) and is_shorthand(node):
        return tuple(_dim(each, sizes) for each in sizes_of(node))
    if isinstance(node, ast.List | ast.Tuple):
        return [_structure(each, sizes) for each in node.elts]
    if isinstance(node, ast.Dict):
        return {ast.unparse(key): _structure(value, sizes) for key, value in zip(node.keys, node.values, strict=True) if key}
    return None


def _dim(node: ast.expr, sizes: Mapping[str, int]) -> Dim:
    name = name_of(node)
    return Dim(name, sizes[name]) if name in sizes else Dim("", None, ast.unparse(node))


def _written(dim: ast.expr, sizes: Mapping[str, int], seen: set[str]) -> ast.expr:
    """A dim of a tensor with its size: `B:4` where a name is first said, `B` behind that, a number where the text has one."""
    name = name_of(dim)
    if name not in sizes:
        return dim
    if "." in name:
        return ast.Constant(sizes[name])
    if name in seen:
        return ast.Name(name, ast.Load())
    seen.add(name)
    return ast.Slice(ast.Name(name, ast.Load()), ast.Constant(sizes[name]))
