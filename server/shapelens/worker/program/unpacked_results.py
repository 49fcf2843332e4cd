"""What a program takes apart into another number of names than the code makes of it: `logits, loss = model(x)` of one tensor.

A result counts where a function of the project gave it, and no `return` of that function gives as many values as there are names.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType, FunctionType
from typing import Any, Iterator, List, Optional, Sequence

import torch

from ...stated.syntax_trees import dotted
from ..calls.exception_handlers import was_awaited
from ..calls.sure_mistakes import end_of, parsed, tree_of
from ..loading.definitions import KEPT
from ..rewrite.sites import place_of
from ..sandbox.exceptions import message_of, raised_at
from ..trace.recorder import Recorder
from ..trace.value_summary import Key
from ..unknown import unknown_sizes
from .plain_values import held_by

_WRAPPERS = ("enumerate", "tqdm", "tqdm.tqdm", "trange", "list", "iter")


def unpacked_otherwise(error: BaseException, recorder: Recorder) -> str:
    """What is taken apart into too many or too few names, in words: "net() gives one tensor, [8, 4], and 2 names take it".

    "" where that is not what is wrong for sure.
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


def _names(target: ast.expr) -> int:
    """How many values a target takes; -1 where any number may come."""
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
    """What a key is, where it cannot be taken apart into so many values; "" where it can, or nobody knows."""
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
    """How many values each `return` of a function gives that gives several; -1 for one of which the text does not tell."""
    return [_count(node.value) for node in _returns(function)]


def _returns(function: FunctionType) -> Iterator[ast.Return]:
    code = function.__code__
    tree = parsed("".join(linecache.getlines(code.co_filename)))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= code.co_firstlineno <= node.lineno:
                yield from (each for each in ast.walk(node) if isinstance(each, ast.Return))


def _count(value: Optional[ast.expr]) -> int:
    if isinstance(value, ast.Tuple):
        return -1 if any(isinstance(each, ast.Starred) for each in value.elts) else len(value.elts)
    return -1


def _of_batch(iterated: ast.expr, target: ast.expr, frame: FrameType) -> str:
    """What is wrong with the names that a loop over a loader has for the parts of its batches."""
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
