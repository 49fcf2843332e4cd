"""Calls that fail whatever a function is given: an argument is missing, one too many, or of an unknown name; all are constants, or tensors
where something else is wanted."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Iterator, Optional

import torch

from ..trace.provenance import INPUT, Derivation
from ..trace.value_summary import ORIGIN, STAND_IN

_OF_BINDING = re.compile(r"\(\) (missing \d+ required|got an unexpected keyword|got multiple values|got some positional-only|takes )")


def says_so(message: str) -> bool:
    """True if the message of a TypeError is one that Python has for arguments that do not fit."""
    return _OF_BINDING.search(message) is not None


def has_unfit_call(tree: ast.Module, frame: FrameType, line: int) -> bool:
    """True if a call around a line of a frame has unfit arguments, and its callee does not depend on the inputs of the frame's function.

    Such callees are a class or function of a module, and a method of the function's own class or of a model of the module.
    """
    calls = [(_called(node.func, frame), node) for node in calls_around(tree, line) if _is_plain(node)]
    return any(called is not None and not _binds(called, node) for called, node in calls)


def builds_of_constants(tree: ast.Module, frame: FrameType, line: int, cls: type) -> bool:
    """True if a line's calls of a class all have only constants as arguments, or ones that do not fit."""
    calls = [node for node in calls_around(tree, line) if _called(node.func, frame) is cls and _is_plain(node)]
    given = [[*node.args, *(each.value for each in node.keywords)] for node in calls]
    are_fit = [_binds(cls, node) and not all(map(_is_constant, values)) for node, values in zip(calls, given)]
    return bool(calls) and not any(are_fit)


def misuses_tensors(tree: ast.Module, frame: FrameType, line: int, name: str) -> bool:
    """True if a line's calls of a function or method of torch's are given only constants and tensors that operations have made. These are
    tensors whatever the model is given, so that the reported wrong type is a mistake of the code."""
    calls = [node for node in calls_around(tree, line) if getattr(node.func, "attr", getattr(node.func, "id", "")) == name]
    return bool(calls) and all(_is_plain(node) and _is_of_known_types(node, frame) for node in calls)


def is_made(value: Any) -> bool:
    """True if a value is a tensor that an operation has made: no input, no part of one, no stand-in for an unknown one.

    Other objects than tensors have parts as well: the type of `rigid[..., None]` depends on the input.
    """
    origin = value.__dict__.get(ORIGIN) if type(value) is torch.Tensor else None
    while isinstance(origin, Derivation) and origin.operation == "__getitem__" and origin.parents:
        origin = origin.parents[0][0]
    return isinstance(origin, Derivation) and origin is not INPUT and not origin.stand_in and STAND_IN not in value.__dict__


def _is_of_known_types(node: ast.Call, frame: FrameType) -> bool:
    called = _in_module(node.func, frame)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) and called is None else None
    if called is None and (receiver is None or not _is_of_known_type(receiver, frame)):
        return False
    is_of_torch = called is None or str(getattr(called, "__module__", None) or "torch").partition(".")[0] in ("torch", "builtins")
    return is_of_torch and all(_is_of_known_type(each, frame) for each in (*node.args, *(each.value for each in node.keywords)))


def _is_of_known_type(node: ast.expr, frame: FrameType) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_of_known_type(each, frame) for each in node.elts)
    return _is_constant(node) or (isinstance(node, ast.Name) and is_made(frame.f_locals.get(node.id)))


def calls_around(tree: ast.AST, line: int) -> Iterator[ast.Call]:
    """The calls that a line is part of."""
    for node in ast.iter_child_nodes(tree):
        if getattr(node, "lineno", line) <= line <= getattr(node, "end_lineno", line):
            if isinstance(node, ast.Call):
                yield node
            yield from calls_around(node, line)


def _is_constant(node: ast.expr) -> bool:
    parts = (ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)
    return all(isinstance(part, parts) for part in ast.walk(node))


def _is_plain(node: ast.Call) -> bool:
    """True if the text shows the number of arguments, and their names."""
    return not any(isinstance(each, ast.Starred) for each in node.args) and all(each.arg is not None for each in node.keywords)


def _called(node: ast.expr, frame: FrameType) -> Any:
    """The class, function or bound method that an expression names; None where that depends on what the frame's function was given."""
    if isinstance(node, ast.Name):
        code = frame.f_code
        if node.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            return None
        found = frame.f_globals.get(node.id)
        return found if isinstance(found, (type, FunctionType)) else None
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name) and node.value.id == _own_name(frame.f_code):
        owner = frame.f_locals.get(node.value.id)
        return _method(owner, node.attr) or _forward_of_part(owner, node.attr, frame)
    found = _in_module(node, frame) or _method_of_global(node, frame)
    return found if isinstance(found, (type, FunctionType, MethodType)) else None


def _method_of_global(node: ast.Attribute, frame: FrameType) -> Any:
    """A method of the user's model that a name of the module holds, bound to it: `policy.log_prob` of `policy = Policy(4, 2)`."""
    code, name = frame.f_code, node.value.id if isinstance(node.value, ast.Name) else ""
    owner = frame.f_globals.get(name) if name not in (*code.co_varnames, *code.co_cellvars, *code.co_freevars) else None
    return _method(owner, node.attr) if isinstance(owner, torch.nn.Module) and not type(owner).__module__.startswith("torch.") else None


def _own_name(code: CodeType) -> Optional[str]:
    """The name that a function has for its first argument, if it is `self`."""
    return "self" if code.co_argcount and code.co_varnames[0] == "self" else None


def _method(owner: Any, name: str) -> Any:
    """A plain method of an object, bound to it."""
    if name in getattr(owner, "__dict__", {}):
        return None
    found = next((vars(base)[name] for base in type(owner).__mro__ if name in vars(base)), None)
    return MethodType(found, owner) if type(found) is FunctionType else None


def _forward_of_part(owner: Any, name: str, frame: FrameType) -> Any:
    """The `forward` of a part of a module, where the only assignment to it in the file names its class."""
    part = owner._modules.get(name) if isinstance(owner, torch.nn.Module) else None
    text = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    made = re.findall(r"\bself\.%s\s*(?::[^=\n]+)?=(?!=)\s*([\w.]*)" % re.escape(name), text)
    is_named = [each.rpartition(".")[2] for each in made] == [type(part).__name__]
    return part.forward if part is not None and is_named else None


def _in_module(node: ast.expr, frame: FrameType) -> Any:
    if isinstance(node, ast.Name):
        code = frame.f_code
        is_local = node.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
        found = None if is_local else frame.f_globals.get(node.id)
        return found if isinstance(found, ModuleType) else None
    owner = _in_module(node.value, frame) if isinstance(node, ast.Attribute) else None
    return vars(owner).get(node.attr) if isinstance(owner, ModuleType) and isinstance(node, ast.Attribute) else None


def _binds(called: Any, node: ast.Call) -> bool:
    """True if a call's arguments fit, or where that cannot be told."""
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None for _ in node.args], **{each.arg: None for each in node.keywords if each.arg is not None})
    except TypeError:
        return False
    return True
