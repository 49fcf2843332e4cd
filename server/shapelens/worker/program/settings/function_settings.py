"""The values of a function's parameters that lead into branches of which nothing was seen, as text: of none is known whether it fits.

A parameter that is None is given a number where its annotation says so, a layer that changes nothing where it is called, and else a tensor
like those that stand beside it: `scores.masked_fill(mask == 0, -1e9)` has a mask of the shape of the scores.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Iterator, List, Mapping, Optional, Sequence

from ...search.code.settings_branches import SOMETHING, Branch, values_into
from ...search.inputs import forms

MOST_TENSORS = 3  # of its example's that are tried for a parameter which is None
UNKNOWN_TEXT = "unknown"
_LAYER = "torch.nn.Identity()"
_TENSOR = re.compile(r"\b[a-z]+\d*\[[^\[\]]*\]")
_MASK = re.compile(r"(?i)mask")


def values_of(
    branch: Branch,
    branches: List[Branch],
    parameter: Optional[inspect.Parameter],
    node: ast.FunctionDef,
    expression: str,
    seen: Mapping[str, str],
) -> List[str]:
    """The values that lead into a branch, the likelier first.

    expression: calls the function; seen: the tensors that names of the function have held, as text.
    """
    if parameter is None:
        return []
    is_required, is_optional = parameter.default is parameter.empty, "Optional" in str(parameter.annotation)
    if branch.value == SOMETHING:
        numbers = [form.template for form in forms.scalars(parameter)]
        if is_required:
            return numbers if is_optional else []
        if parameter.default is not None:
            return []
        if numbers:
            return [*numbers, UNKNOWN_TEXT]
        layers = [_LAYER] if calls_with_one_argument(parameter.name, node) else []
        return [*layers, *_tensors_for(branch, parameter.name, node, expression, seen), UNKNOWN_TEXT]
    if is_required:
        return ["None"] if branch.value is None and is_optional else []
    default = parameter.default
    return [
        repr(value) for value in values_into(branch, branches) if value != default and (default is None or type(value) is type(default))
    ][:2]


def with_setting(expression: str, node: ast.FunctionDef, name: str, value: str) -> Optional[str]:
    """A call with another value for a parameter, in its place or by its name; None where the call gives one already by its name."""
    call = ast.parse(expression, mode="eval").body
    names = [each.arg for each in node.args.posonlyargs + node.args.args]
    if not isinstance(call, ast.Call) or any(each.arg in (name, None) for each in call.keywords):
        return None
    if name in names[: len(call.args)]:
        call.args[names.index(name)] = ast.Name(value, ast.Load())
        return ast.unparse(call)
    for dim, size in re.findall(r"\b([A-Z]\w*):(\d+)", expression):
        value = re.sub(r"(?<=[\[ ])(?:%s:)?%s(?=[,\]])" % (dim, size), dim, value)
    return "%s%s%s=%s)" % (expression[:-1], ", " if call.args or call.keywords else "", name, value)


def calls_with_one_argument(name: str, node: ast.FunctionDef) -> bool:
    """True if a function calls its parameter, as it does with a layer: `dropout(weights)`."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name]
    return bool(calls) and all(len(each.args) == 1 and not each.keywords for each in calls)


def is_mask(name: str) -> bool:
    """True if a parameter is a mask by its name."""
    return _MASK.search(name) is not None


def _tensors_for(branch: Branch, name: str, node: ast.FunctionDef, expression: str, seen: Mapping[str, str]) -> List[str]:
    """Tensors like those beside the parameter in the branch, and like those that the function is given; masks of numbers last."""
    beside = [seen[other] for other in names_beside(branch, name, node) if other in seen]
    tensors: Sequence[str] = list(dict.fromkeys([*beside, *_TENSOR.findall(expression)]))[:MOST_TENSORS]
    masks = [re.sub(r"^\w+", "bool", tensor) for tensor in tensors] if is_mask(name) else []
    return list(dict.fromkeys([*masks, *tensors]))


def names_beside(branch: Branch, name: str, node: ast.FunctionDef) -> Iterator[str]:
    """The names that statements of a branch read which read the parameter."""
    for statement in ast.walk(node):
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) and statement.lineno in branch.lines:
            names = [each.id for each in ast.walk(statement) if isinstance(each, ast.Name)]
            if name in names:
                yield from (other for other in names if other != name)
