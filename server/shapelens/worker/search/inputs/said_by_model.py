"""Inputs as a built model says them: the sizes that it was given and keeps, channels, how many steps it takes."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple

import torch

from ....stated.syntax_trees import expression_of, integer
from ...trace import module_tree
from ..code.sources import function_node, is_torch
from ..evidence import InputShape
from ..text.prose import from_docstring
from ..trials.trial import parameters_of
from . import forms
from .name_priors import CHANNELS, PICTURE, PICTURE_SAID, PICTURE_SHAPE

_STEPS = re.compile(r"_?(seq_?len(gth)?|lookback(_len)?|context_len(gth)?|window_len|input_len(gth)?|n_?frames|num_frames|chunk_size)")
OTHER_STEPS = (24, 40, 12, 20, 48, 56)  # that a sequence may have
MOST_COMPARED, LARGEST_COMPARED = 64, 4096  # modules that are looked at for their sizes, and the largest of these
MOST_MODULES = 16  # that are looked at, the outermost ones


def sizes_kept_by_model(model: Any, given: Mapping[str, Any]) -> Tuple[Optional[Tuple[int, int]], int, bool]:
    """(height and width of pictures, steps of sequences) that a model was given or keeps in an attribute or config: None, 0 for neither;
    and whether what says the former speaks of nothing else, so that it binds the input."""
    picture: Optional[Tuple[int, int]] = None
    steps, is_binding = 0, False
    modules = itertools.islice(module_tree.modules(model), MOST_MODULES) if isinstance(model, torch.nn.Module) else ()
    for known in itertools.chain([given], map(_kept_in, modules)):
        for name, value in known.items():
            if type(name) is not str:
                continue
            size = (value, value) if type(value) is int else value
            is_shape = isinstance(value, (tuple, list)) and len(value) == 3 and PICTURE_SHAPE.fullmatch(name) is not None
            if picture is None and (is_shape or PICTURE.fullmatch(name)) and isinstance(size, (tuple, list)) and len(size) in (2, 3):
                height, width = size[:2] if is_shape and size[-1] in (1, 3, 4) else size[-2:]
                if type(height) is int and type(width) is int and 8 <= height <= 2048 and 8 <= width <= 2048:
                    picture, is_binding = (height, width), is_shape or PICTURE_SAID.fullmatch(name) is not None
            elif not steps and _STEPS.fullmatch(name) and type(value) is int and 1 < value <= 1 << 16:
                steps = value
    return picture, steps, is_binding


def described_by_parts(model: Any, names: Sequence[str]) -> Dict[str, InputShape]:
    """The dicts, and lists of dicts, that the docstrings of a model's own parts describe under these names of parameters: a criterion
    hands its outputs and targets to a matcher."""
    found: Dict[str, InputShape] = {}
    for part in model.__dict__.get("_modules", {}).values() if isinstance(model, torch.nn.Module) else ():
        text = inspect.getdoc(part.forward) if part is not None and not is_torch(type(part)) else None
        for name, said in from_docstring(text, names, "the docstring", None).items() if text else ():
            if said.keys:
                found.setdefault(name, said)
    return found


def said_by_constructor(model: Any, constructor: str) -> Dict[str, Any]:
    """Returns the constants that the constructor of a model is given, or has for defaults, by the names of its parameters."""
    call = expression_of(constructor)
    if not isinstance(call, ast.Call) or not isinstance(model, torch.nn.Module):
        return {}
    parameters = parameters_of(type(model))
    given = {each.arg: each.value for each in call.keywords}
    given.update(zip((each.name for each in parameters), call.args))
    said = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    for name, value in given.items():
        if name is not None:
            said[name] = _constant(value)
    return said


def _constant(node: ast.expr) -> Any:
    """A number, text or tuple of them, as it is written; None for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None


def channels_said(said: Mapping[str, Any], layer: Any) -> Optional[int]:
    """Returns the number of channels of pictures that a constructor was given; None where it was given none, or where the first layer does
    not take them, nor what they are put together to."""
    named = [value for name, value in said.items() if CHANNELS.fullmatch(name)]
    if len(named) != 1 or type(named[0]) is not int or named[0] < 1:
        return None
    taken = getattr(layer, "in_channels", getattr(layer, "in_features", named[0]))
    return named[0] if taken == named[0] or (named[0] > 1 and taken % named[0] == 0) else None


def settings_said(constructor: str) -> Dict[str, Any]:
    """Returns the constants of the settings that a constructor is given as one object: `Net(config=SimpleNamespace(enc_in=7))`."""
    call = expression_of(constructor)
    given = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
    named = [each for value in given if isinstance(value, ast.Call) for each in value.keywords]
    return {each.arg: _constant(each.value) for each in named if each.arg is not None}


def features_said(names: Sequence[str], said: Mapping[str, Any]) -> Dict[str, int]:
    """Returns the numbers of features of inputs, by the name of that size, as settings of their names say.

    `enc_in` says those of `x_enc`, `in_context` those of `context`.
    """
    found: Dict[str, int] = {}
    for setting, value in said.items():
        words = set(setting.lower().split("_"))
        if type(value) is int and value > 0 and len(words) == 2 and "in" in words:
            found.update((name + ".D", value) for name in names if set(name.lower().split("_")) - {"x"} == words - {"in"})
    return found


def steps_apart_from_sizes(model: Any) -> int:
    """Returns the number of steps of a sequence, so that nothing fits only as a size of the model is that too: of a layer, or of each of
    its heads."""
    found: Set[int] = set()
    heads: Set[int] = set()
    for module in itertools.islice(module_tree.modules(model), MOST_COMPARED) if isinstance(model, torch.nn.Module) else ():
        numbers = {name: value for name, value in _kept_in(module).items() if type(value) is int and 1 < value <= LARGEST_COMPARED}
        found.update(numbers.values())
        own = module.__dict__.get("_parameters") or {}  # None in a module whose constructor does not call its base's.
        found.update(size for parameter in own.values() if parameter is not None for size in parameter.shape)
        heads.update(value for name, value in numbers.items() if "head" in name.lower())
    shares = {size // parts for size in found for parts in heads if size % parts == 0}
    return next((steps for steps in (forms.STEPS, *OTHER_STEPS) if steps not in shares and steps not in found), forms.STEPS)


def _kept_in(module: torch.nn.Module) -> Mapping[str, Any]:
    """The attributes of a module, and those of its config."""
    known = dict(vars(module))
    config = known.get("config", known.get("cfg"))
    known.update(vars(config) if hasattr(config, "__dict__") else config if isinstance(config, dict) else {})
    return known


def takes_one_at_a_time(model: torch.nn.Module) -> bool:
    """True if a recurrent model takes a single step of a single sample, as `embedding(input).view(1, 1, -1)` says."""
    if not any(isinstance(each, torch.nn.RNNBase) for each in itertools.islice(module_tree.modules(model), MOST_MODULES)):
        return False
    function = function_node(getattr(model, "forward", None))
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)] if function is not None else []
    views = [node.args for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in ("view", "reshape")]
    return any([integer(each) for each in arguments] in ([1, -1], [1, 1, -1]) for arguments in views)
