"""The inputs that methods and functions may take and never get, where a branch asks for them: a mask, a bias, a context, a dropout.

A part of a model takes a mask, and the model never hands one on: no example of the model leads there. So the example is evaluated once
more. A second call follows the first call of the method, with the same arguments and the omitted one. That is a tensor like those beside it
in the branch, or of a shape that masks have.
"""

from __future__ import annotations

import ast
import functools
import inspect
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ...search.code.settings_branches import SOMETHING, Branch, branches_of_function
from ...search.code.sources import function_node, methods
from ...search.inputs import forms
from ...search.text.annotations import input_shapes
from ...trace.recorder import Recorder
from .function_settings import calls_with_one_argument, is_mask, names_beside
from .once_more import in_place_of

MOST_VALUES = 7  # that are tried for one branch
Given = Dict[str, Any]  # the arguments of a call, by the names of the parameters
Value = Callable[[Given], Any]  # what a parameter may be given beside these; None for nothing


class OmittedInput(NamedTuple):
    """A parameter that is None by default, and a branch that asks whether it is given."""

    holder: Any  # the class that has the method, or the namespace that has the function
    function: Any
    node: ast.FunctionDef
    parameter: inspect.Parameter
    branch: Branch


def omitted_inputs(classes: Iterable[type], functions: Iterable[Any], file: str) -> Iterator[OmittedInput]:
    """Of the methods of these classes that stand in a file, and of these functions of it; decorated ones are left alone."""
    found = [(cls, vars(cls), function, node) for cls in classes for function, node in methods(cls)]
    found += [(function.__globals__, function.__globals__, function, function_node(function)) for function in functions]
    for holder, names, function, node in found:
        is_plain = names.get(getattr(function, "__name__", "")) is function and isinstance(node, ast.FunctionDef)
        if not is_plain or function.__code__.co_filename != file:
            continue
        parameters = inspect.signature(function).parameters
        for branch in branches_of_function(node):
            parameter = parameters.get(branch.name)
            if branch.value == SOMETHING and parameter is not None and parameter.default in (None, parameter.empty):
                yield OmittedInput(holder, function, node, parameter, branch)


def values_for(omitted: OmittedInput, recorder: Recorder, file: str, text: str) -> List[Value]:
    """Returns the possible values of the parameter, the likelier first."""
    name, node = omitted.parameter.name, omitted.node
    numbers = [number for form in forms.scalars(omitted.parameter) for number in _literal(form.template)]
    if numbers:
        return [functools.partial(_itself, number) for number in numbers]
    if omitted.parameter.default is not None:
        return []
    if calls_with_one_argument(name, node):
        return [functools.partial(_itself, torch.nn.Identity())]
    said = input_shapes(node, text.splitlines(), None, ast.parse(text.lstrip("\ufeff"))).get(name)
    dims = (said.dims or said.pattern) if said is not None else None
    rank, dtype = len(dims) if dims else 0, torch.bool if is_mask(name) else None
    like = functools.partial(_like, rank=rank, dtype=dtype)
    found: List[Value] = [
        functools.partial(like, functools.partial(_held, recorder, file, omitted, other))
        for other in dict.fromkeys(names_beside(omitted.branch, name, node))
    ]
    found += [functools.partial(like, functools.partial(_tensor, place)) for place in (0, 1)]
    if is_mask(name):
        found = [*(_masks(rank) if rank else ()), *found, *([] if rank else _masks(0))]
    return found[:MOST_VALUES]


def call_with_input(omitted: OmittedInput, value: Value, recorder: Recorder, file: str, example: Callable[[], Any]) -> Any:
    """Returns the result of an example in which a second call follows the function's first one, with a value for the omitted parameter.

    Raises ValueError where there is no value, and where it changes a tensor's rank: a mask of too many dims makes more of the scores.
    """
    holder, function, name = omitted.holder, omitted.function, omitted.function.__name__
    signature, is_called = inspect.signature(function), False

    @functools.wraps(function)
    def twice(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_called
        result = function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        if not is_called and bound.arguments.get(omitted.parameter.name) is None:
            is_called = True
            made = value(dict(bound.arguments))
            if made is None:
                raise ValueError(omitted.parameter.name)
            bound.arguments[omitted.parameter.name] = made
            other = function(*bound.args, **bound.kwargs)
            is_alike = not (isinstance(result, torch.Tensor) and isinstance(other, torch.Tensor)) or result.dim() == other.dim()
            if not is_alike or not _keeps_ranks(recorder, file, omitted):
                raise ValueError(omitted.parameter.name)
        return result

    with in_place_of(holder, name, twice):
        return example()


def _keeps_ranks(recorder: Recorder, file: str, omitted: OmittedInput) -> bool:
    """True if the tensors that the branch assigns to names have the ranks that those names held before it."""
    for number, seen in recorder.seen.items():
        site, key = recorder.sites[number], seen.sequence[-1]
        is_assigned = site.function == omitted.function.__qualname__ and site.kind == "assign" and site.place[0] in omitted.branch.lines
        if is_assigned and key[0] == "tensor" and site.name != omitted.parameter.name and recorder.file_of(number) == file:
            before = _held(recorder, file, omitted, site.name, {})
            if before is not None and len(before[0]) != len(key[1]):
                return False
    return True


# --- values ---


def _itself(value: Any, given: Given) -> Any:
    return value


def _literal(text: str) -> Iterator[Any]:
    try:
        yield ast.literal_eval(text)
    except (ValueError, SyntaxError):  # A name, or a tensor.
        return


def _like(
    of: Callable[[Given], Optional[Tuple[Tuple[int, ...], torch.dtype]]], given: Given, rank: int, dtype: Optional[torch.dtype]
) -> Any:
    """A tensor of the shape of another one, where that has the rank that the text says."""
    found = of(given)
    if found is None or (rank and len(found[0]) != rank):
        return None
    return torch.ones(found[0], dtype=dtype or found[1])


def _held(recorder: Recorder, file: str, omitted: OmittedInput, name: str, given: Given) -> Optional[Tuple[Tuple[int, ...], torch.dtype]]:
    """The shape and dtype of what a name has held last before the branch."""
    function, before = omitted.function.__qualname__, min(omitted.branch.lines)
    found: List[Tuple[int, Any]] = []
    for number, seen in recorder.seen.items():
        site, key = recorder.sites[number], seen.sequence[-1]
        is_there = site.function == function and site.name == name and site.kind in ("assign", "parameter") and site.place[0] < before
        if is_there and recorder.file_of(number) == file and key[0] == "tensor" and None not in key[1]:
            found.append((site.place[0], key))
    if not found:
        return None
    key = max(found, key=lambda each: each[0])[1]
    return key[1], getattr(torch, key[2], torch.float32)


def _tensor(place: int, given: Given) -> Optional[Tuple[Tuple[int, ...], torch.dtype]]:
    """The shape and dtype of one of the tensors that a call is given."""
    tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
    return (tuple(tensors[place].shape), tensors[place].dtype) if place < len(tensors) else None


def _masks(rank: int) -> List[Value]:
    """Masks of a sequence of the first tensor, of a rank; of any where it is 0."""
    dims: Dict[str, Callable[[int, int], Tuple[int, ...]]] = {
        "rows": lambda batch, steps: (batch, steps),
        "square": lambda batch, steps: (steps, steps),
        "squares": lambda batch, steps: (batch, steps, steps),
        "heads": lambda batch, steps: (batch, 1, 1, steps),
    }
    ranks = {"rows": 2, "square": 2, "squares": 3, "heads": 4}
    return [functools.partial(_mask, make) for kind, make in dims.items() if rank in (0, ranks[kind])]


def _mask(make: Callable[[int, int], Tuple[int, ...]], given: Given) -> Any:
    found = _tensor(0, given)
    if found is None or len(found[0]) < 3:
        return None
    return torch.ones(make(found[0][0], found[0][-2]), dtype=torch.bool)
