"""Choices between an accelerator and the CPU, as nearly every program makes one: what they choose stands for the accelerator.

    device = "cuda" if torch.cuda.is_available() else "cpu"     →     … else __shapelens_accelerator__("cuda")
    torch.device(device)                                        →     __shapelens_device__(torch.device, device)

The program runs as it does without an accelerator. That text equals "cpu", and is told from others by what it is (`trace/devices.py`).
"""

from __future__ import annotations

import ast
import re
from typing import Dict, Iterator, List, Optional, Tuple

ACCELERATOR = "__shapelens_accelerator__"  # (name of an accelerator) -> the text "cpu" that stands for it
DEVICE = "__shapelens_device__"  # (torch.device, *arguments) -> the device, which stands for what its arguments stand for

NAMES = re.compile(r"(cuda|mps|xpu|hpu|npu|accelerator)\b")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Value = Tuple[
    ast.AST, str, int, bool
]  # a value: the node and field that hold it, its place in a list or -1, and whether it stands in an `if`


def assume_accelerators(tree: ast.AST) -> None:
    """Have the choices of a tree stand for accelerators, in place."""
    nodes = list(ast.walk(tree))
    if any(_accelerator(node) for node in nodes):
        for node in nodes:
            if isinstance(node, (ast.IfExp, ast.BoolOp)):
                _chosen_by_expression(node)
        for scope in nodes:
            if isinstance(scope, (ast.Module, *_FUNCTIONS)) and not isinstance(scope, ast.Lambda):
                _chosen_by_statements(scope.body)
    for node in nodes:
        if isinstance(node, ast.Call) and _is_device(node):
            node.args.insert(0, node.func)
            node.func = ast.copy_location(ast.Name(DEVICE, ast.Load()), node)


def _accelerator(node: Optional[ast.AST]) -> str:
    """The accelerator that an expression names: "cuda" of `"cuda:0"` and `torch.device("cuda")`; "" for none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = NAMES.match(node.value)
        return found[1] if found is not None and len(node.value) < 16 else ""
    if isinstance(node, ast.JoinedStr) and node.values:
        return _accelerator(node.values[0])
    if isinstance(node, ast.Call) and _is_device(node):
        return _accelerator(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    is_current = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "current_accelerator"
    return "accelerator" if is_current else ""


def _is_device(node: ast.Call) -> bool:
    """`torch.device(…)`"""
    function = node.func
    is_named = isinstance(function, ast.Attribute) and function.attr == "device" and isinstance(function.value, ast.Name)
    return is_named and function.value.id == "torch" and len(node.args) > 0  # type: ignore[attr-defined]


def _is_cpu(node: Optional[ast.AST]) -> bool:
    if isinstance(node, ast.Call) and _is_device(node):
        node = node.args[0]
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _standing_for(node: ast.expr, accelerator: str) -> ast.expr:
    """Returns what stands for an accelerator in the place of `"cpu"` or `torch.device("cpu")`."""
    if isinstance(node, ast.Call):
        node.args[0] = _standing_for(node.args[0], accelerator)
        return node
    call = ast.Call(ast.Name(ACCELERATOR, ast.Load()), [ast.Constant(accelerator)], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _chosen_by_expression(node: ast.expr) -> None:
    """`"cuda" if available else "cpu"`, `available and "cuda" or "cpu"`"""
    if isinstance(node, ast.IfExp):
        for name, other in (("orelse", "body"), ("body", "orelse")):
            accelerator = _accelerator(_first(getattr(node, other)))
            if accelerator and _is_cpu(getattr(node, name)):
                setattr(node, name, _standing_for(getattr(node, name), accelerator))
    elif isinstance(node, ast.BoolOp) and _is_cpu(node.values[-1]):
        for part in ast.walk(node):
            if _accelerator(part):
                node.values[-1] = _standing_for(node.values[-1], _accelerator(part))
                return


def _first(node: ast.expr) -> ast.expr:
    """Returns what a chain of choices gives first."""
    return node.body if isinstance(node, ast.IfExp) else node


def _chosen_by_statements(body: List[ast.stmt]) -> None:
    """`device = "cpu"`, then `if torch.cuda.is_available(): device = "cuda"`; and the same with `return`."""
    values: Dict[str, List[_Value]] = {}
    for name, value in _values(body, inside=False):
        values.setdefault(name, []).append(value)
    for found in values.values():
        named = [_accelerator(_of(value)) for value in found if value[3]]
        accelerator = next(filter(None, named), "")
        for node, field, place, _ in found if accelerator else ():
            chosen = _of((node, field, place, False))
            if _is_cpu(chosen):
                other = _standing_for(chosen, accelerator)
                if place < 0:
                    setattr(node, field, other)
                else:
                    getattr(node, field).elts[place] = other


def _of(value: _Value) -> ast.expr:
    node, field, place, _ = value
    held = getattr(node, field)
    return held if place < 0 else held.elts[place]  # type: ignore[no-any-return]


def _values(body: List[ast.stmt], *, inside: bool) -> Iterator[Tuple[str, _Value]]:
    """Yields what the statements of a scope assign and return, with the text of the target; "" for what is returned."""
    for node in body:
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                for place, part in enumerate(target.elts):
                    yield ast.unparse(part), (node, "value", place, inside)
            else:
                yield ast.unparse(target), (node, "value", -1, inside)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.target), (node, "value", -1, inside)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield "", (node, "value", -1, inside)
        for field in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(node, field, None)
            for part in inner if isinstance(inner, list) else ():
                if isinstance(part, ast.ExceptHandler):
                    yield from _values(part.body, inside=True)
                elif isinstance(part, ast.stmt):
                    yield from _values([part], inside=inside or isinstance(node, (ast.If, ast.Try)))
