"""Results of the project's own functions that a program takes for something else: apart into another number of names than there are values,
`logits, loss = model(x)` of one tensor; or for a tensor where the function returns nothing.

A number of values counts where no `return` of that function gives as many as there are names.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType, FunctionType
from typing import Any, Iterator, List, Optional, Sequence

import torch

from ...stated.syntax_trees import dotted
from ..calls.exception_handlers import was_awaited
from ..calls.missing_keys import held_by
from ..loading.definitions import KEPT
from ..loading.failing_lines import end_of, last_place, parsed, tree_of
from ..rewrite.sites import place_of
from ..sandbox.exceptions import message_of, raised_at
from ..trace.recorder import Recorder
from ..trace.value_summary import Key
from ..unknown import unknown_sizes

_WRAPPERS = ("enumerate", "tqdm", "tqdm.tqdm", "trange", "list", "iter")


def unpacked_otherwise(error: BaseException, recorder: Recorder) -> str:
    """Returns the words for an unpacking into too many or too few names: "net() gives one tensor, [8, 4], and 2 names take it".

    "" where that is not surely the mistake.
    """
    place = raised_at(error) if type(error) is ValueError and "values to unpack" in message_of(error) else None
    tree = tree_of(place.tb_frame) if place is not None and KEPT in place.tb_frame.f_globals else None
    if place is None or tree is None or was_awaited(error):
        return ""
    frame, line = place.tb_frame, place.tb_lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.lineno <= line <= end_of(node):
            return _of_result(node.value, _names(node.targets[0]), frame, recorder)
        if isinstance(node, ast.For) and node.lineno == line:
            return _of_batch(node.iter, node.target, frame)
    return ""


def nothing_returned(error: BaseException) -> str:
    """Returns the words for a function without `return` whose result failed as None; "" where the text does not show one. The failed
    expression calls the function, or holds its result."""
    place = last_place(error) if isinstance(error, (AttributeError, TypeError)) and "NoneType" in message_of(error) else None
    tree = tree_of(place[0]) if place is not None else None
    if place is None or tree is None or was_awaited(error):
        return ""
    frame, line = place
    for node in _asked_at(tree, line, getattr(error, "name", None)):
        made = _last_value(tree, node.id, line) if isinstance(node, ast.Name) and held_by(node, frame) is None else node
        called = _function_of(held_by(made.func, frame)) if isinstance(made, ast.Call) else None
        if isinstance(made, ast.Call) and called is not None and _gives_nothing(called):
            return "%s() is None: %s() has no return" % (dotted(made.func), called.__name__)
    return ""


def _asked_at(tree: ast.Module, line: int, name: Optional[str]) -> Iterator[ast.expr]:
    """The expressions of a line that are asked for an attribute of this name, or else for items or as operands."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.expr, ast.Assign)) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if name is not None:
            yield from [node.value] if isinstance(node, ast.Attribute) and node.attr == name else []
        elif isinstance(node, ast.BinOp):
            yield from (node.left, node.right)
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Assign) and _names(node.targets[0]) > 0):
            yield node.value


def _last_value(tree: ast.Module, name: str, line: int) -> Optional[ast.expr]:
    """Returns the last value that the text gives a name above a line; None where there is none."""
    given = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.lineno < line and getattr(node.targets[0], "id", None) == name
    ]
    return max(given, key=lambda each: each[0])[1] if given else None


def _gives_nothing(function: FunctionType) -> bool:
    """True if a function computes something and returns nothing: one that only raises or passes is to be overridden."""
    node = _definition(function)
    if node is None or not any(isinstance(each, (ast.Assign, ast.AugAssign)) for each in node.body):
        return False
    return not any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Raise)) for each in ast.walk(node)) and not any(
        each.value is not None for each in ast.walk(node) if isinstance(each, ast.Return)
    )


def _names(target: ast.expr) -> int:
    """Returns the number of values that a target takes; -1 where any number may come."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    return len(parts) if parts and not any(isinstance(each, ast.Starred) for each in parts) else -1


def _of_result(call: ast.Call, count: int, frame: FrameType, recorder: Recorder) -> str:
    called = _function_of(held_by(call.func, frame))
    if count < 0 or called is None or count in _returned(called):
        return ""
    file, place = frame.f_code.co_filename, place_of(call)
    given: List[Key] = []
    for number, site in enumerate(recorder.sites):
        if site.place == place and number in recorder.seen and recorder.file_of(number) == file:
            given += recorder.seen[number].counts
    said = [_said(key, count) for key in given]
    text = "%s()" % dotted(call.func)
    return "%s gives %s" % (text, said[-1]) if said and all(said) else ""


def _said(key: Key, count: int) -> str:
    """Returns the words for a key that does not unpack into so many values; "" where it does, or where that is unknown."""
    if key[0] == "tensor" and key[1] and isinstance(key[1][0], int) and not unknown_sizes.is_unknown(key[1][0]) and key[1][0] != count:
        return "one tensor, %s, and %d names take it" % (list(key[1]), count)
    if key[0] == "sequence" and key[1] in ("tuple", "list") and len(key[-1]) != count:
        return "%d values, and %d names take them" % (len(key[-1]), count)
    return ""


def _function_of(value: Any) -> Optional[FunctionType]:
    """The function of the project that a call of a value runs; None where that is none."""
    found = type(value).forward if isinstance(value, torch.nn.Module) else getattr(value, "__func__", value)
    return found if isinstance(found, FunctionType) and KEPT in found.__globals__ else None


def _returned(function: FunctionType) -> Sequence[int]:
    """Returns the number of values of each `return` in a function; -1 where the text does not tell."""
    definition = _definition(function)
    return [_count(node.value) for node in ast.walk(definition) if isinstance(node, ast.Return)] if definition is not None else []


def _definition(function: FunctionType) -> Optional[ast.FunctionDef]:
    """The definition of a function in the text of its file; None where it has none there, as a lambda."""
    code = function.__code__
    tree = parsed("".join(linecache.getlines(code.co_filename)))
    for node in ast.walk(tree) if tree is not None else ():
        is_named = isinstance(node, ast.FunctionDef) and node.name == code.co_name
        if isinstance(node, ast.FunctionDef) and is_named and _first_line(node) <= code.co_firstlineno <= node.lineno:
            return node
    return None


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _count(value: Optional[ast.expr]) -> int:
    if isinstance(value, ast.Tuple):
        return -1 if any(isinstance(each, ast.Starred) for each in value.elts) else len(value.elts)
    return -1


def _of_batch(iterated: ast.expr, target: ast.expr, frame: FrameType) -> str:
    """Returns the words for a loop over a loader with the wrong number of names for the parts of its batches; "" for any other loop."""
    while isinstance(iterated, ast.Call) and dotted(iterated.func) in _WRAPPERS and iterated.args:
        if dotted(iterated.func) == "enumerate":
            target = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else ast.Name("")
        iterated = iterated.args[0]
    loader, count = held_by(iterated, frame), _names(target)
    if count < 0 or not isinstance(loader, torch.utils.data.DataLoader):
        return ""
    dataset = loader.dataset
    if isinstance(dataset, torch.utils.data.TensorDataset):
        parts = {len(dataset.tensors)}
    else:
        item = _function_of(getattr(type(dataset), "__getitem__", None))
        parts = set(_returned(item)) if item is not None else {-1}
    is_default = loader.collate_fn is torch.utils.data.default_collate
    if not is_default or len(parts) != 1 or not parts.isdisjoint((-1, count)):
        return ""
    return "a batch of %s has %d parts, and %d names take them" % (ast.unparse(iterated), parts.pop(), count)
