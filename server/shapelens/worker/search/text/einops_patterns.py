"""Patterns of einops and einsum: the dims that they give the tensors they are applied to."""

from __future__ import annotations

import ast
import re
from typing import Dict, Iterator, List, Optional, Tuple

from ....stated.shape_words import REST, Dim, Dims
from ....stated.syntax_trees import last_name
from .layer_ranks import Layers, applied_to

_ONE_TENSOR = frozenset(("rearrange", "reduce", "repeat", "parse_shape", "rearrange_many", "einops_rearrange"))
_LAYERS = frozenset(("Rearrange", "Reduce", "EinMix"))

Uses = List[Tuple[ast.expr, Dims]]


def pattern_uses(call: ast.Call) -> Uses:
    """The tensors that a call of an einops function or of einsum gets, each with the dims that the pattern says."""
    name, arguments = last_name(call.func), call.args
    if name in _ONE_TENSOR and len(arguments) >= 2:
        dims = left_side(_text(arguments[1]), _axes(call))
        return [(arguments[0], dims)] if dims is not None and not isinstance(arguments[0], (ast.List, ast.Tuple)) else []
    if name == "einsum" and len(arguments) >= 2:
        return _einsum(arguments)
    if name == "map" and len(arguments) == 2 and isinstance(arguments[0], ast.Lambda) and isinstance(arguments[1], (ast.Tuple, ast.List)):
        # q, k, v = map(lambda t: rearrange(t, 'b n (h d) -> b h n d', h=h), (q, k, v))
        inner, own = arguments[0].body, arguments[0].args.args
        uses = pattern_uses(inner) if isinstance(inner, ast.Call) else []
        if len(uses) == 1 and isinstance(uses[0][0], ast.Name) and own and uses[0][0].id == own[0].arg:
            return [(element, uses[0][1]) for element in arguments[1].elts]
    return []


def applied_layer(call: ast.Call, layers: Layers) -> Uses:
    """The argument of `self.to_patches(x)`, where that layer is an einops one, or a Sequential that begins with one."""
    layer = applied_to(call, layers)
    if layer is None or last_name(layer.func) not in _LAYERS or not layer.args:
        return []
    dims = left_side(_text(layer.args[0]), _axes(layer))
    return [(call.args[0], dims)] if dims is not None else []


def left_side(pattern: Optional[str], axes: Dict[str, int]) -> Optional[Dims]:
    """The dims left of the arrow; None for one that is composed (`(h p1)`), `...` for the rest. None where it cannot be read."""
    if pattern is None:
        return None
    dims: List[Dim] = []
    for word in re.findall(r"\([^()]*\)|\.\.\.|…|\w+|\S", pattern.split("->")[0]):
        if word.startswith("("):
            names = word[1:-1].split()
            dims.append(names[0] if len(names) == 1 and names[0].isidentifier() else None)
        elif word in ("...", "…"):
            dims.append(REST)
        elif word.isdigit():
            dims.append(int(word))
        elif word.isidentifier():
            dims.append(axes.get(word, word if word.strip("_") else None))
        else:
            return None
    return tuple(dims) if dims and dims.count(REST) <= 1 else None


def _einsum(arguments: List[ast.expr]) -> Uses:
    first, last = _text(arguments[0]), _text(arguments[-1])
    if first is not None:
        terms, operands = first.split("->")[0].split(","), arguments[1:]
        sides = [_letters(term) for term in terms]
    elif last is not None:  # einops puts the pattern last, and parts the names by spaces
        operands = arguments[:-1]
        sides = [left_side(term, {}) for term in last.split("->")[0].split(",")]
    else:
        return []
    if len(sides) != len(operands):
        return []
    return [(operand, dims) for operand, dims in zip(operands, sides) if dims is not None]


def _letters(term: str) -> Optional[Dims]:
    """The dims of a term such as `bhid` or `...ij`."""
    dims = tuple(re.findall(r"\.\.\.|[A-Za-z]", term))
    plain = "".join(dims) == term.replace(" ", "")
    return dims if plain and dims and dims.count(REST) <= 1 else None


def _axes(call: ast.Call) -> Dict[str, int]:
    return dict(_given(call))


def _given(call: ast.Call) -> Iterator[Tuple[str, int]]:
    for keyword in call.keywords:
        if keyword.arg and isinstance(keyword.value, ast.Constant) and type(keyword.value.value) is int:
            yield keyword.arg, keyword.value.value


def _text(node: ast.AST) -> Optional[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return None
    return None
