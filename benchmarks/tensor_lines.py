"""The lines of a program on which a shape is expected: assignments and returns whose right side is a call, an operator or a subscript.

forward   in `forward` of a class that is a module, or in a method that this calls
step      in training_step, loss_function, sample, generate, … of such a class
init      `self.x = Layer(...)` in the constructor of such a class
function  in a function outside of classes, where the right side looks like tensors
script    at module level, where it looks like tensors
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

KINDS = ("forward", "step", "init", "function", "script")
_MODULE = re.compile(r"(Module|Model|LightningModule|Net|Network|Block|Layer|Encoder|Decoder|PreTrainedModel)$")
_STEPS = (
    *("training_step", "validation_step", "test_step", "predict_step", "compute_loss", "loss_function"),
    *("sample", "generate", "reconstruct", "inference"),
)
_TENSORS = re.compile(
    r"torch\.|\bF\.\w|\.view\(|\.reshape\(|\.permute\(|\.transpose\(|\.size\(|squeeze\(|\.to\(device|\bmodel\(|\bnet\(|criterion\(|loss_fn\("
    r"|\.softmax\(|\.argmax\(|\.mean\(|nn\.\w+\(|\.cat\(|\.cuda\(\)"
)
_NO_TENSORS = re.compile(
    r"^(torch\.(optim|device|load|save|cuda|manual_seed|utils|backends|distributed|hub|no_grad|jit|compile)\b|optim\.)|\.item\(\)|\.format\("
)
_NUMBERS = re.compile(
    r"(len|int|float|str|range|list|dict|tuple|max|min|isinstance|time|print|super|set|zip|enumerate|math|np|random|os|getattr)\b"
)
_LAYER = re.compile(r"(nn|torch\.nn)\.(?!Parameter|init|functional)\w+|[A-Z]\w+\(")


@dataclass(frozen=True)
class TensorLine:
    """A statement that should show a shape. first, last: its lines, 1-based; kind: one of KINDS."""

    first: int
    last: int
    kind: str


def tensor_lines(text: str) -> list[TensorLine]:
    """Those of a text, at most one for each line. Raises SyntaxError."""
    tree = ast.parse(text)
    found: dict[int, TensorLine] = {}
    for kind, node in _statements(tree):
        line = _tensor_line(kind, node)
        if line is not None:
            found.setdefault(line.first, line)
    return list(found.values())


def _statements(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    modules = _module_names(classes)
    for cls in classes:
        if cls.name not in modules:
            continue
        methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
        reached = _reached(methods)
        for name in reached - {"__init__"}:
            yield from (("forward", node) for node in _inside(methods[name].body))
        for name in (set(_STEPS) - reached) & set(methods):
            yield from (("step", node) for node in _inside(methods[name].body))
        if "__init__" in methods:
            yield from (("init", node) for node in _inside(methods["__init__"].body))
    for function in tree.body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (("function", node) for node in _inside(function.body))
    yield from (("script", node) for node in _inside(tree.body))


def _module_names(classes: Iterable[ast.ClassDef]) -> set[str]:
    bases = {cls.name: {getattr(base, "attr", getattr(base, "id", "")) for base in cls.bases} for cls in classes}
    modules = {name for name, those in bases.items() if any(_MODULE.search(base) for base in those)}
    for _ in range(3):
        modules |= {name for name, those in bases.items() if those & modules}
    return modules


def _reached(methods: dict[str, ast.FunctionDef]) -> set[str]:
    """`forward`, and the methods that it calls by `self`, and those that they call."""
    reached, left = set(), ["forward"]
    while left:
        name = left.pop()
        if name in methods and name not in reached:
            reached.add(name)
            attributes = [node for node in ast.walk(methods[name]) if isinstance(node, ast.Attribute)]
            left += [node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "self"]
    return reached


def _inside(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from ast.walk(statement)


def _tensor_line(kind: str, node: ast.AST) -> TensorLine | None:
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return) or node.value is None:
        return None
    if not isinstance(node.value, ast.Call | ast.BinOp | ast.Subscript | ast.UnaryOp):
        return None
    if isinstance(node, ast.Return) and kind == "script":
        return None
    text = ast.unparse(node.value)
    if _NO_TENSORS.search(text) or _NUMBERS.match(text) or (kind in ("function", "script") and not _TENSORS.search(text)):
        return None
    keeps = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and isinstance(node.value, ast.Call)
    if kind == "init" and not (keeps and _LAYER.match(text)):
        return None
    return TensorLine(node.lineno, node.end_lineno or node.lineno, kind)
