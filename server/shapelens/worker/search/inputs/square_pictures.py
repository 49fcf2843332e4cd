"""Tells from a model's code that pictures are square: most networks flatten squares, and sides that are solved for apart from each other
fit nearly any number of features (2048 are 1024 · 1 · 2), so that they hide a mistake."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from typing import Any, Optional, Tuple

import torch

from ...trace import module_tree
from ..code.sources import methods

_SIDES = ("kernel_size", "stride", "padding", "dilation", "output_size", "scale_factor", "normalized_shape")
_OF_SIGNALS = re.compile(r"(?i)spectr|(?:^|_)(?:spec|mels?)(?:$|_)|mfcc|audio|freq|wave|eeg|signal")
_OF_SIDES = re.compile(r"(?i)(?:\w+_)?(?:height|width|h|w)|aspect\w*")  # parameters
MOST_MODULES = 64  # that are looked at


def are_square(model: Any, picture: Optional[Tuple[int, int]]) -> bool:
    """True unless a model's code says that pictures are higher or wider: its layers, what it was built for, its names, a product.

    picture: (height, width) that the model says.
    """
    if not isinstance(model, torch.nn.Module) or (picture is not None and picture[0] != picture[1]):
        return False
    modules = list(itertools.islice(module_tree.modules(model), MOST_MODULES))
    sides = [vars(each).get(name) for each in modules for name in _SIDES]
    if any(isinstance(side, (tuple, list)) and len(side) == 2 and side[0] != side[1] for side in sides):
        return False
    return not any(_is_of_sides(cls) for cls in set(map(type, modules)) if not cls.__module__.startswith("torch."))


@functools.lru_cache(maxsize=256)
def _is_of_sides(cls: type) -> bool:
    """True if the code of a class says that pictures are higher or wider."""
    return any(_says_sides(node) for _, definition in methods(cls) for node in ast.walk(definition))


def _says_sides(node: ast.AST) -> bool:
    """True if a parameter is a height or width, a name speaks of signals, or two numbers at the end of a product differ: `64 * 1 * 18`."""
    if isinstance(node, ast.arg):
        return _OF_SIDES.fullmatch(node.arg) is not None or _OF_SIGNALS.search(node.arg) is not None
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _OF_SIGNALS.search(node.id if isinstance(node, ast.Name) else node.attr) is not None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or not isinstance(node.left, ast.BinOp):
        return False
    last, before = node.right, node.left.right
    if not isinstance(last, ast.Constant) or not isinstance(before, ast.Constant) or not isinstance(node.left.op, ast.Mult):
        return False
    return last.value != before.value
