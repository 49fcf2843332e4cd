"""Replays an example on real CPU tensors and writes down what each line really held: the truth that ShapeLens is compared with."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
}


class Shorthand(ast.NodeTransformer):
    """`f32[B:2, 3]` → `_tensor("f32", (B := 2), 3)`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.value, ast.Name) and node.value.id in DTYPES):
            return node
        sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        dims = [self._dim(size) for size in sizes]
        return ast.Call(ast.Name("_tensor", ast.Load()), [ast.Constant(node.value.id), *dims], [])

    @staticmethod
    def _dim(size: ast.expr) -> ast.expr:
        if not isinstance(size, ast.Slice):
            return size
        assert isinstance(size.lower, ast.Name) and size.upper is not None
        return ast.NamedExpr(ast.Name(size.lower.id, ast.Store()), size.upper)


def compiled(expression: str) -> CodeType:
    """The example as code that makes real tensors."""
    tree = Shorthand().visit(ast.parse(expression, mode="eval"))
    return compile(ast.fix_missing_locations(tree), "<example>", "eval")


def shapes_of(value: object) -> Any:
    """A tensor's dims, or the dims of all tensors in a tuple, list or dict; None where there are none."""
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else []
    found = [shape for item in items if (shape := shapes_of(item)) is not None]
    flat = [dims for shape in found for dims in (shape if shape and isinstance(shape[0], list) else [shape])]
    return flat or None


def replay(file: Path, expression: str) -> dict[tuple[str, int, str], list[Any]]:
    """(kind, line, name) → the distinct shapes in the order in which they came. For layers the line is 0 and the name their path.

    kind: "assign" (a plain local name), "return", "parameter", "layer".
    """
    seen: dict[tuple[str, int, str], list[Any]] = defaultdict(list)

    def note(kind: str, line: int, name: str, value: object) -> None:
        shapes = shapes_of(value)
        if shapes is not None and shapes not in seen[kind, line, name]:
            seen[kind, line, name].append(shapes)

    text = file.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
    exec(compile(text, str(file), "exec"), namespace)
    namespace["_tensor"] = lambda dtype, *sizes: torch.zeros([int(size) for size in sizes], dtype=DTYPES[dtype])
    called: list[tuple[nn.Module, Any]] = []
    hook = nn.modules.module.register_module_forward_hook(lambda module, inputs, output: called.append((module, output)))
    sys.settrace(_tracer(str(file), _assigned_names(text), note))
    try:
        eval(compiled(expression), namespace)
    finally:
        sys.settrace(None)
        hook.remove()
    paths = {module: path for path, module in called[-1][0].named_modules()}
    for module, output in called:
        note("layer", 0, paths[module], output)
    return dict(seen)


def _assigned_names(text: str) -> dict[int, tuple[int, list[str]]]:
    """For each line that an assignment statement covers, the line of its first target's name and the names."""
    found: dict[int, tuple[int, list[str]]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            ]
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line] = (node.lineno, names)
    return found


def _tracer(file: str, assigned: dict[int, tuple[int, list[str]]], note: Callable[[str, int, str, object], None]) -> Callable[..., Any]:
    """For sys.settrace: notes parameters at a call, assigned names when the next line starts, and what is returned."""
    last: dict[FrameType, int] = {}

    def local(frame: FrameType, event: str, value: object) -> Any:
        if event in ("line", "return") and frame in last and last[frame] in assigned:
            line, names = assigned[last[frame]]
            for name in names:
                note("assign", line, name, frame.f_locals.get(name))
        if event == "line":
            last[frame] = frame.f_lineno
        elif event == "return" and value is not None:
            note("return", frame.f_lineno, "return", value)
        return local

    def top(frame: FrameType, event: str, value: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        code = frame.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            note("parameter", code.co_firstlineno, name, frame.f_locals.get(name))
        return local

    return top
