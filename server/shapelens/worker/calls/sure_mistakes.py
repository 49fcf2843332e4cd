"""Exceptions that no input and no setting avoids: a name that nothing binds, a part of a model that no code makes, a missing argument."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import os
import re
import sys
from functools import lru_cache
from traceback import walk_tb
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Iterator, Optional, Tuple

import torch

from ...notebooks import SUFFIX
from ...protocol import FileSpan
from ...regular_files import read_regular
from ...stated.syntax_trees import dotted, unpacked_parts
from ..loading.code_objects import codes_in
from ..loading.definitions import KEPT
from ..loading.failing_lines import end_of, last_place, parsed, tree_of
from ..loading.statements import bound_names, global_assignments
from ..sandbox.exceptions import message_of, raised_at, traceback_of
from ..trace.value_summary import OF_EXAMPLE, STAND_IN
from ..unknown import unknown_sizes
from ..unknown.stand_ins import is_absent
from . import misused_layers, unfit_calls
from .mismatches import NOT_IMPORTED, meant_name
from .missing_keys import dict_without
from .uninitialised_modules import is_assigned_too_early

_NAMED = re.compile(r"(?:\w+\.)*(\w+)\(\)")  # how torch begins what it says of a call's arguments
# What sets attributes, or answers for them, by names that are computed.
_BY_NAME = ("setattr", "__setattr__", "__getattr__", "__getattribute__", "__dict__", "vars", "exec", "locals")
# A call that gives an object to a function, which may set anything of it: `set_attributes(self, options)`.
_GIVEN_AWAY = re.compile(r"(?<!def )\b(?!(?:super|isinstance|type|len|hasattr|getattr|id|repr|print|__init__)\()\w+\(\s*self\s*[,)]")
_LISTED_BY_NAME = ("add_module", "register_module", "register_buffer", "register_parameter")
# What gives a notebook names that no cell binds.
_OF_IPYTHON = ("get_ipython", "display", "In", "Out")  # names that it gives the text that it runs, beside those of the last outputs
_OTHERS_NAMES = (b"%run", b"%load", b"%pylab", b"%store", b"%R ")
# Modules whose names all code can rely on.
_COMPLETE = ("torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.linalg", "torch.fft", "torch.optim")


def is_sure(error: BaseException) -> bool:
    """True if an exception is a mistake of the code for every input."""
    if type(error) is NameError:
        return _is_bound_nowhere(error)
    if isinstance(error, UnboundLocalError):
        return _is_assigned_later(error)
    if tuple_of_layer(error) is not None:
        return True
    if type(error) is TypeError:
        return _is_unfit(error)
    if type(error) is ValueError:
        return _unpacks_other_count(error)
    if isinstance(error, ImportError):
        return _is_lacked_by_file(error)
    if type(error) is KeyError:
        return bool(dict_without(error))
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)  # Since Python 3.10.
    if is_assigned_too_early(error):
        return True
    if not isinstance(error, AttributeError) or not isinstance(name, str) or is_absent(owner):
        return False
    if type(owner) is super:  # Only a class of the same name has such an attribute: `super().__in`.
        return name.startswith("_%s__" % getattr(getattr(owner, "__thisclass__", None), "__name__", "").lstrip("_"))
    if unfit_calls.is_made(owner):
        return _is_attribute_of_nothing(error, name)
    if isinstance(owner, ModuleType):
        return owner.__name__ in _COMPLETE or _is_lacked_by_neighbour(owner, name, error)
    of_class = inspect.getattr_static(type(owner), name, None)
    if isinstance(owner, torch.nn.Module) and isinstance(of_class, property):  # torch says that it is missing where something in it is.
        return _is_sure_of_property(of_class, owner)
    if isinstance(owner, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)):
        return type(owner).__module__.startswith("torch.") and _is_attribute_of_nothing(error, name)
    return isinstance(owner, torch.nn.Module) and not _is_given(owner, error) and _is_set_nowhere(type(owner), name)


def may_be_of_another_class(error: BaseException) -> bool:
    """True if an attribute is missing of a layer of torch: where arguments are guessed, its class may be one of them."""
    owner = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    return isinstance(owner, torch.nn.Module) and type(owner).__module__.startswith("torch.")


def _is_given(owner: torch.nn.Module, error: BaseException) -> bool:
    """True if an example gave a module to the code that reads its attribute: another module may have that."""
    place = last_place(error) if OF_EXAMPLE in owner.__dict__ else None
    return place is not None and all(place[0].f_locals.get(name) is not owner for name in place[0].f_code.co_varnames[:1])


def unpacks_known_tensor(error: BaseException) -> bool:
    """True if a statement unpacks a tensor of known size into another number of names: `row, column = edges` of one row."""
    place = last_place(error) if type(error) is ValueError and "values to unpack" in message_of(error) else None
    tree = tree_of(place[0]) if place is not None else None
    if place is None or tree is None:
        return False
    frame, line = place
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and node.lineno == line:
            value: Any = frame.f_locals.get(node.value.id) if isinstance(node.value, ast.Name) else None
            targets = node.targets[0].elts
            is_known = type(value) is torch.Tensor and STAND_IN not in value.__dict__ and value.dim() > 0
            if is_known and not any(isinstance(each, ast.Starred) for each in targets):
                return not unknown_sizes.is_unknown(value.shape[0]) and value.shape[0] != len(targets)
    return False


def _unpacks_other_count(error: BaseException) -> bool:
    """True if a statement unpacks the parts of a tensor into another number of names than it asks for: `a, b = x.chunk(3)`."""
    place = last_place(error) if "values to unpack" in message_of(error) else None
    tree = tree_of(place[0]) if place is not None else None
    if place is None or tree is None:
        return False
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and node.lineno <= place[1] <= end_of(node))
    return any(unpacked_parts(each) not in (None, len(getattr(each.targets[0], "elts", ()))) for each in statements)


def _is_sure_of_property(asked: property, owner: torch.nn.Module) -> bool:
    """True if the exception of a property is a mistake of the code for every input."""
    try:
        if asked.fget is not None:
            asked.fget(owner)
    except Exception as error:
        return is_sure(error)
    return False


def code_of_sure(error: BaseException) -> str:
    """The code of the finding for an exception that is sure to be a mistake."""
    if tuple_of_layer(error) is not None:
        return "layer-input"
    return "call-arguments" if type(error) is TypeError and unfit_calls.says_so(message_of(error)) else "exception"


def tuple_of_layer(error: BaseException) -> Any:
    """Returns the whole result of a layer of torch that the code took for a tensor; None where the mistake is another one."""
    place = last_place(error) if _speaks_of_tuple(error) else None
    return None if place is None else misused_layers.tuple_in_place_of_tensor(error, tree_of(place[0]), *place)


def not_divided(error: BaseException) -> Optional[Tuple[int, int]]:
    """The numbers of which a constructor demands that the second one divides the first, `assert width % heads == 0`, where it does not."""
    place = last_place(error) if isinstance(error, (AssertionError, ValueError)) else None
    tree = tree_of(place[0]) if place is not None else None
    if place is None or tree is None or place[0].f_code.co_name != "__init__":
        return None
    frame, line = place
    for node in ast.walk(tree):
        raises = isinstance(node, ast.If) and any(isinstance(each, ast.Raise) and each.lineno <= line <= end_of(each) for each in node.body)
        if raises or (isinstance(node, ast.Assert) and node.lineno <= line <= end_of(node)):
            for part in ast.walk(node.test):  # type: ignore[attr-defined]
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                    whole, divisor = _number_in(frame, part.left), _number_in(frame, part.right)
                    if whole and divisor and whole % divisor:
                        return whole, divisor
    return None


def _number_in(frame: FrameType, node: ast.expr) -> Optional[int]:
    """Returns the known plain number that a name, or an attribute of one, holds in a frame; None where there is no such number."""
    value: Any
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(frame.f_locals.get(node.value.id), "__dict__", {}).get(node.attr)
    elif isinstance(node, ast.Name):
        value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    else:
        value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int and not unknown_sizes.is_unknown(value) else None


def _speaks_of_tuple(error: BaseException) -> bool:
    said = message_of(error) if isinstance(error, (TypeError, AttributeError)) else ""
    return "tuple" in said or "'list' object has" in said or "torch.return_types" in said


def name_of_called_tensor(error: BaseException) -> str:
    """The name that a statement, which has just failed, has for a function where it holds a tensor; "" where that is not what is wrong."""
    place = last_place(error) if type(error) is TypeError else None
    tree = tree_of(place[0]) if place is not None else None
    return "" if place is None or tree is None else misused_layers.called_tensor(error, tree, *place)


def _is_bound_nowhere(error: BaseException) -> bool:
    """True if no statement of a file binds a name at module level, and no function does so by `global`."""
    place, name = raised_at(error), getattr(error, "name", None)
    if place is None or KEPT not in place.tb_frame.f_globals or not isinstance(name, str) or name in _OF_IPYTHON:
        return False
    tree = tree_of(place.tb_frame)
    return tree is not None and not _is_given_by_notebook(place.tb_frame.f_code.co_filename, name) and _binds_not(tree, name)


def _binds_not(tree: ast.Module, name: str) -> bool:
    """True if nothing in a file binds a name at module level, nor may bind a computed one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return False
        if isinstance(node, ast.Name) and node.id in ("globals", "locals", "vars", "exec", "builtins", "__builtins__"):
            return False
    bound = {each for node in tree.body for each in bound_names(node)}
    bound |= {each for node in tree.body for inner in global_assignments(node) for each in bound_names(inner)}
    return name not in bound


def _is_lacked_by_neighbour(module: ModuleType, name: str, error: BaseException) -> bool:
    """True if a file of the project lacks a name that another one in its folder reads. In the program's real place, another module may have
    that name. Names may also be set from outside, or as text (`setattr`, `sys.modules`)."""
    file = getattr(module, "__file__", None)
    asking = [frame.f_code.co_filename for frame, _ in walk_tb(traceback_of(error)) if KEPT in frame.f_globals][-1:]
    if not asking or file is None or KEPT not in vars(module) or hasattr(module, "__path__"):
        return False
    texts = ["".join(linecache.getlines(each)) for each in (file, *asking)]
    tree = parsed(texts[0])
    if (
        tree is None
        or os.path.dirname(file) != os.path.dirname(asking[0])
        or any(re.search(r"\b(setattr|modules)\b", text) for text in texts)
    ):
        return False
    return _binds_not(tree, name) and "__getattr__" not in texts[0] and not re.search(r"\.%s\s*=(?!=)" % re.escape(name), texts[1])


def _is_lacked_by_file(error: ImportError) -> bool:
    """True if a file lacks a name that another one in its folder imports, or torch lacks one that resembles one of its own."""
    said = NOT_IMPORTED.search(message_of(error))
    module = sys.modules.get(said["module"] if said is not None else (error.name or "").rpartition(".")[0])
    if module is None:
        return False
    if said is not None and KEPT in vars(module):
        return _is_lacked_by_neighbour(module, said["name"], error)
    return module.__name__.partition(".")[0] == "torch" and bool(meant_name(error))


def _is_given_by_notebook(file: str, name: str) -> bool:
    """True if a saved notebook may get a name from elsewhere, by a magic (`%%bash --out NAME`), or as that of an output."""
    if not file.endswith(SUFFIX):
        return False
    try:
        text = read_regular(file)
    except OSError:
        return False
    of_magic = rb"%\w[^\n\"\\]*\b" + re.escape(name).encode() + rb"\b"
    return name.startswith("_") or any(magic in text for magic in _OTHERS_NAMES) or re.search(of_magic, text) is not None


def _is_assigned_later(error: BaseException) -> bool:
    """True if a function binds a local name only from the line on where it was missing, and not in a loop around that."""
    place, name = raised_at(error), message_of(error).partition("'")[2].partition("'")[0]
    tree = tree_of(place.tb_frame) if place is not None and name in place.tb_frame.f_code.co_varnames else None
    if place is None or tree is None:
        return False
    line = place.tb_lineno
    around = [node for node in ast.walk(tree) if getattr(node, "lineno", line + 1) <= line <= getattr(node, "end_lineno", 0)]
    functions = [node for node in around if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not functions or any(isinstance(node, (ast.For, ast.AsyncFor, ast.While)) for node in around):
        return False
    stores = (part for part in ast.walk(functions[-1]) if isinstance(part, ast.Name) and part.id == name)
    return all(part.lineno >= line for part in stores if not isinstance(part.ctx, ast.Load))


def _is_unfit(error: BaseException) -> bool:
    """True if a call's arguments do not fit where an exception left the user's code; the callee may have raised it itself."""
    place = last_place(error)
    tree = tree_of(place[0]) if place is not None else None
    if place is None or tree is None:
        return False
    message = message_of(error)
    named = _NAMED.match(message)
    if named is not None and unfit_calls.misuses_tensors(tree, *place, named[1]):
        return True
    return unfit_calls.says_so(message) and unfit_calls.has_unfit_call(tree, *place)


def _is_attribute_of_nothing(error: BaseException, name: str) -> bool:
    """True if an exception left the user's code in a file that never sets an attribute of that name."""
    place = last_place(error)
    text = "".join(linecache.getlines(place[0].f_code.co_filename)) if place is not None else "setattr"
    return re.search(r"\.%s\s*=(?!=)|\bsetattr\b" % re.escape(name), text) is None


def is_refused_for_good(cls: type) -> bool:
    """True if the running constructor of a layer of torch's refuses its arguments for every input of the code around it."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and KEPT not in frame.f_globals:
        frame = frame.f_back
    tree = tree_of(frame) if frame is not None else None
    return tree is not None and frame is not None and unfit_calls.builds_of_constants(tree, frame, frame.f_lineno, cls)


def _is_set_nowhere(cls: type, name: str) -> bool:
    """True if no method of the user's classes sets an attribute of that name, nor one with a computed name. Nothing else in their files
    does so either."""
    assigned = r"\.%s\b\s*(?:[,:][^=\n(]*)?=(?!=)" % re.escape(name)
    registered = r"\b(?:%s|setattr)\s*\([^()]*[\"']%s[\"']" % ("|".join(_LISTED_BY_NAME), re.escape(name))
    sets = re.compile("%s|%s" % (assigned, registered))
    codes = list(_codes_of(cls))
    texts = ["".join(linecache.getlines(file)) for file in {code.co_filename for code in codes}]
    if any(gives_objects_away(text) or sets.search(text) for text in texts):
        return False
    for code in codes:
        constants = {each for each in code.co_consts if isinstance(each, str)}
        if name in constants or not set(_BY_NAME).isdisjoint(code.co_names):
            return False
        if any(step.opname == "STORE_ATTR" and step.argval == name for step in dis.get_instructions(code)):
            return False
        if not set(_LISTED_BY_NAME).isdisjoint(code.co_names) and not constants:
            return False
    return True


@lru_cache(maxsize=64)  # Many exceptions are asked about with one file.
def gives_objects_away(text: str) -> bool:
    """Returns True if a file's text gives an object to a function, which may set anything of it."""
    return _GIVEN_AWAY.search(text) is not None


def _codes_of(cls: type) -> Iterator[CodeType]:
    """The code of the methods of a class and of those that it derives from, but for torch's, and of functions in them."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] == "torch" or base is object:
            continue
        for value in list(vars(base).values()):
            function: Any = getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                yield function.__code__
                yield from codes_in(function.__code__)


def is_called_by_name(name: str, span: FileSpan) -> bool:
    """True if a call around a place names a class directly, rather than by a parameter, which may hold any class."""
    tree = parsed("".join(linecache.getlines(span.file)))
    return tree is not None and any(dotted(node.func).rpartition(".")[2] == name for node in unfit_calls.calls_around(tree, span.line))


def is_in_constructor(span: FileSpan) -> bool:
    """True if a place is part of an `__init__`."""
    tree = parsed("".join(linecache.getlines(span.file)))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)) if tree is not None else ()
    return any(node.name == "__init__" and node.lineno <= span.line <= end_of(node) for node in functions)
