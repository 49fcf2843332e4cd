"""Evaluates an example's expression: Python in the file's own namespace, with dtype shorthands that make tensors from subscripts."""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import importlib.util
import sys
from types import CodeType, ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import torch

from ..trace.frames import EXAMPLE_FILE
from ..trace.provenance import INPUT
from ..trace.value_summary import ORIGIN
from .dtype_names import SHORTHANDS
from .offered_names import offered, unknown

MAKE = "__shapelens_make__"
ONCE = "__shapelens_once__"
_OFFERED = offered()

# A dim of a tensor as it was made: its name, or the size itself.
Dim = Tuple[Optional[str], int]


class _ShorthandRewriter(ast.NodeTransformer):
    """`f32[B:2, 3]` → `__shapelens_make__("f32", (("B", 2), (None, 3)))`"""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id in SHORTHANDS):
            return self.generic_visit(node)
        inner = node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        dims: List[ast.expr] = []
        for part in parts:
            name: Optional[str] = None
            if isinstance(part, ast.Slice):
                if not isinstance(part.lower, ast.Name) or part.upper is None or part.step is not None:
                    raise SyntaxError("a named dim is written name:size, as in f32[B:2, 3]")
                name, part = part.lower.id, part.upper
            elif isinstance(part, ast.Name):
                name = part.id
            dims.append(ast.Tuple([ast.Constant(name), self.visit(part)], ast.Load()))
        call = ast.Call(ast.Name(MAKE, ast.Load()), [ast.Constant(node.value.id), ast.Tuple(dims, ast.Load())], [])
        return ast.copy_location(call, node)


class Namespace(Dict[str, Any]):
    """The globals of an expression: the file's names, then those that are offered (offered_names.py), modules by their full names, and the
    dims that were named so far.
    """

    def __init__(self, module_names: Mapping[str, Any]) -> None:
        super().__init__(__name__="example")  # the module of classes that are made in it
        self._module_names = module_names

    def __missing__(self, name: str) -> Any:
        try:
            return self._module_names[name]
        except KeyError:
            if name in _OFFERED:
                return _OFFERED[name]
            if name == "unknown":
                return unknown()
            if _is_module(name):
                return Package(name)
            raise


def _is_module(name: str) -> bool:
    """True if a module of this name can be imported; of the project, or an installed one."""
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


class Package:
    """A module or package that is imported when it is asked for something: `src.models.dense.Dense`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        path = "%s.%s" % (self._name, name)
        module = importlib.import_module(self._name)
        if not hasattr(module, name) and not name.startswith("__"):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(path)
        value = getattr(module, name)
        return Package(path) if isinstance(value, ModuleType) and value.__name__ == path else value


def package_of(names: Mapping[str, Any]) -> str:
    """The name of the outermost package that a file is in, as whoever imports it says it; "" where it is in none."""
    try:
        package = names["__package__"]
    except KeyError:
        return ""
    return (package or "").partition(".")[0]


def compile_expression(expression: str, *, once: bool = False) -> CodeType:
    """Compile an example. Raises SyntaxError with a message for the user.

    once: arguments that call something are asked for by `ONCE(text, make)`, which the namespace has to have.
    """
    tree = ast.parse(expression.strip(), EXAMPLE_FILE, mode="eval")
    if once:
        tree = _AskingOnce().visit(tree)
    return compile(ast.fix_missing_locations(_ShorthandRewriter().visit(tree)), EXAMPLE_FILE, "eval")


class _AskingOnce(ast.NodeTransformer):
    """`Net(len(read(path)))` → `Net(__shapelens_once__("len(read(path))", lambda: len(read(path))))`, for arguments that call something."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.args = [_asked_once(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = _asked_once(keyword.value)
        return node


def _asked_once(node: ast.expr) -> ast.expr:
    parts = list(ast.walk(node))
    makes_tensor = any(isinstance(part, ast.Name) and part.id in SHORTHANDS for part in parts)
    if makes_tensor or isinstance(node, ast.Starred) or not any(isinstance(part, ast.Call) for part in parts):
        return node
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    call = ast.Call(ast.Name(ONCE, ast.Load()), [ast.Constant(ast.unparse(node)), ast.Lambda(nothing, node)], [])
    return ast.copy_location(call, node)


Resized = Callable[[int, int, int], int]


class Maker:
    """Makes the tensors of one evaluation; `sizes` overrides the sizes of named dims, for a probe.

    resized(place, rank, size): the size of a dim without a name, which it may override too.
    """

    def __init__(self, namespace: Namespace, sizes: Mapping[str, int], dims: Dict[str, int], resized: Optional[Resized] = None) -> None:
        self.namespace = namespace
        self.sizes = sizes
        self.dims = dims
        self.resized = resized

    def __call__(self, shorthand: str, dims: Tuple[Dim, ...]) -> torch.Tensor:
        shape = []
        for place, (name, size) in enumerate(dims):
            if self.resized is not None and name is None and isinstance(size, int):
                size = self.resized(place, len(dims), size)
            if name is not None and isinstance(size, int):
                size = self.sizes.get(name, size)
                if name not in self.namespace:
                    self.dims[name] = size
                    self.namespace[name] = size  # `f32[B:2, T:8], i64[B, T]`: the second B is the first one.
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise ValueError("a size in %s[...] has to be a whole number, not %r" % (shorthand, size))
            shape.append(size)
        made = torch.empty(shape, dtype=SHORTHANDS[shorthand], device="meta")
        made.__dict__[ORIGIN] = INPUT
        return made


def evaluate(
    code: CodeType, module_names: Mapping[str, Any], sizes: Mapping[str, int], dims: Dict[str, int], resized: Optional[Resized] = None
) -> Any:
    """The value of an example; its named dims and their sizes are put into `dims` as they come. Raises whatever user code raises."""
    namespace = Namespace(module_names)
    namespace[MAKE] = Maker(namespace, sizes, dims, resized)
    namespace["__builtins__"] = vars(builtins)
    return eval(code, namespace)
