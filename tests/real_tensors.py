"""Runs an example on real CPU tensors and writes down what the places of its file really held: the truth that ShapeLens is compared with.

Nothing of ShapeLens takes part: the file's functions are rewritten so that parameters, assigned values and results report themselves.
Only the standard library and torch are needed, so the interpreter of any model can run it.
"""

from __future__ import annotations
import __future__

import ast
import collections
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
}
EXAMPLE_FILE = "<example>"
HELD = "__held__"  # what rewritten code calls: (number of a place, value) -> value
MOST_ITEMS = 64  # of a sequence or mapping, as many as ShapeLens looks at
MOST_ATTRIBUTES = 24  # of an object
DEEPEST = 4

# (kind, line, column, end line, end column, name): kind is "parameter", "assign", "return", "expression" or "layer"; columns are code
# points. A layer's place is 0, 0, 0, 0 and its name the path in the model.
Place = tuple[str, int, int, int, int, str]
Record = dict[Place, list[Any]]  # the distinct shapes in the order in which they came


# --- the example ---


class _Shorthands(ast.NodeTransformer):
    """`f32[B:2, 3]` → `__tensor__("f32", ("B", 2), (None, 3))`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.value, ast.Name) and node.value.id in DTYPES):
            return node
        sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return ast.Call(ast.Name("__tensor__", ast.Load()), [ast.Constant(node.value.id), *map(self._dim, sizes)], [])

    @staticmethod
    def _dim(size: Any) -> ast.expr:
        name = size.lower.id if isinstance(size, ast.Slice) else size.id if isinstance(size, ast.Name) else None
        return ast.Tuple([ast.Constant(name), size.upper if isinstance(size, ast.Slice) else size], ast.Load())


def compiled(expression: str) -> CodeType:
    """The example as code that makes real tensors."""
    tree = _Shorthands().visit(ast.parse(expression.strip(), mode="eval"))
    return compile(ast.fix_missing_locations(tree), EXAMPLE_FILE, "eval")


class _Names(dict[str, Any]):
    """The globals of an expression: dims, the file's names, then those that are offered to every example."""

    def __init__(self, of_file: dict[str, Any]) -> None:
        super().__init__(__builtins__=__builtins__)
        self.of_file = of_file

    def __missing__(self, name: str) -> Any:
        offered = {"torch": torch, "nn": nn, "SimpleNamespace": SimpleNamespace}
        return self.of_file[name] if name in self.of_file else offered[name]


def make(dtype: str, shape: Sequence[int], content: str) -> torch.Tensor:
    """A tensor of "random" numbers, "ones" or "zeros"; random integers are small enough to be indices."""
    kind = DTYPES[dtype]
    if content != "random":
        return (torch.ones if content == "ones" else torch.zeros)(tuple(shape), dtype=kind)
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(tuple(shape), dtype=kind)
    return torch.randint(0, 2, tuple(shape)).to(kind)


def evaluate(code: CodeType, of_file: dict[str, Any], sizes: dict[str, int], content: str) -> None:
    """Evaluate an example, with these sizes in the place of those that it gives its named dims. Raises whatever user code raises."""
    names = _Names(of_file)

    def tensor(dtype: str, *dims: tuple[str | None, int]) -> torch.Tensor:
        shape = []
        for name, size in dims:
            shape.append(int(sizes.get(name or "", size)))
            if name is not None and name not in names:
                names[name] = shape[-1]
        return make(dtype, shape, content)

    names["__tensor__"] = tensor
    eval(code, names)


# --- what values hold ---


_PLAIN = {int, float, bool, str, type(None), FunctionType, MethodType, BuiltinFunctionType}


def shapes_of(value: object) -> Any:
    """A tensor's dims; the dims of all tensors in a container, however nested, from left to right; None where there are none."""
    if type(value) in _PLAIN:
        return None
    if isinstance(value, torch.Tensor):
        return _dims(value)
    return list(_inside(value, 0)) or None


def _dims(tensor: torch.Tensor) -> list[int] | None:
    try:
        return [int(size) for size in tensor.shape]
    except RuntimeError:  # A lazy parameter, or a nested tensor.
        return None


def _inside(value: Any, depth: int) -> Any:
    if isinstance(value, torch.Tensor):
        dims = _dims(value)
        if dims is not None:
            yield dims
        return
    if depth >= DEEPEST or isinstance(value, (nn.Module, type, ModuleType)):
        return
    if isinstance(value, (tuple, list, collections.deque)):
        items = list(value)[:MOST_ITEMS]
    elif isinstance(value, (dict, collections.UserDict)):
        items = list(value.values())[:MOST_ITEMS]
    else:
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return
        if dataclasses.is_dataclass(value):
            items = [own.get(part.name) for part in dataclasses.fields(value)]
        else:
            items = [item for item in own.values() if isinstance(item, torch.Tensor)] if len(own) <= MOST_ATTRIBUTES else []
    for item in items:
        yield from _inside(item, depth + 1)


# --- the file ---


class _Watch(ast.NodeTransformer):
    """Hands the parameters, assigned values, results and expressions of all functions to a reporter."""

    def __init__(self, text: str) -> None:
        self.lines = [line.encode() for line in re.split("\r\n|\r|\n", text)]
        self.places: list[Place] = []
        self.depth = 0  # of functions

    def _column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1][:offset].decode())

    def _held(self, kind: str, name: str, at: Any, value: ast.expr) -> ast.expr:
        """`__held__(number, value)`."""
        start, end = self._column(at.lineno, at.col_offset), self._column(at.end_lineno, at.end_col_offset)
        self.places.append((kind, at.lineno, start, at.end_lineno, end, name))
        call = ast.Call(ast.Name(HELD, ast.Load()), [ast.Constant(len(self.places) - 1), value], [])
        return ast.copy_location(call, value if hasattr(value, "lineno") else at)

    def _names(self, targets: Sequence[ast.expr]) -> list[ast.stmt]:
        names = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        return [ast.Expr(self._held("assign", node.id, node, ast.Name(node.id, ast.Load()))) for node in names]

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        visited = [self.visit(child) for child in statements]
        return [part for child in visited for part in (child if isinstance(child, list) else [child])]

    # --- statements ---

    def visit_FunctionDef(self, node: Any) -> Any:
        own = node.args
        every = [*own.posonlyargs, *own.args, *own.kwonlyargs, *([own.vararg] if own.vararg else []), *([own.kwarg] if own.kwarg else [])]
        self.depth += 1
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        reports = [ast.Expr(self._held("parameter", each.arg, each, ast.Name(each.arg, ast.Load()))) for each in every]
        node.body = [*node.body[:start], *reports, *self._body(node.body[start:])]
        self.depth -= 1
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: Any) -> Any:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not self.depth or node.value is None:
            return self.generic_visit(node) if node.value is not None else node
        node.value = self.visit(node.value)
        if len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute, ast.Subscript)):
            target = targets[0]
            name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
            node.value = self._held("assign", name, target, node.value)
            return node
        return [node, *self._names(targets)]

    visit_AnnAssign = visit_Assign

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.value = self.visit(node.value)
        return [node, *self._names([node.target])] if self.depth else node

    def visit_For(self, node: Any) -> Any:
        self.generic_visit(node)
        if self.depth:
            targets = [node.target] if not isinstance(node, (ast.With, ast.AsyncWith)) else [each.optional_vars for each in node.items]
            node.body = [*self._names([target for target in targets if target is not None]), *node.body]
        return node

    visit_AsyncFor = visit_With = visit_AsyncWith = visit_For

    # --- expressions ---

    def visit_Return(self, node: Any) -> Any:
        if self.depth and node.value is not None:
            name = "return" if isinstance(node, ast.Return) else "yield"
            node.value = self._held("return", name, node.value, self.visit(node.value))
        return node

    visit_Yield = visit_Return

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self.visit(node.value)
        if self.depth:
            node.value = self._held("assign", node.target.id, node.target, node.value)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return self._held("expression", "", node, node) if self.depth else node

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        reads = isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
        return self._held("expression", name, node, node) if self.depth and reads else node

    visit_Name = visit_Subscript = visit_BinOp = visit_UnaryOp = visit_Compare = visit_IfExp = visit_BoolOp = visit_Attribute

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    visit_MatchValue = visit_MatchClass = visit_MatchMapping = visit_JoinedStr


class Replay(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A file, loaded once under the name that its project's imports have for it, and what its places hold in each run of an example."""

    def __init__(self, file: str, folders: Sequence[str] = (), name: str = "") -> None:
        """`folders` go in front of sys.path; `name` is the dotted name of the file's module, its stem without one."""
        self.file = file
        text = Path(file).read_bytes()
        self.tree = ast.parse(text, file)
        ahead = [node for node in self.tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        self.flags = sum({getattr(__future__, part.name).compiler_flag for node in ahead for part in node.names})
        watch = _Watch(importlib.util.decode_source(text))
        self.tree = ast.fix_missing_locations(watch.visit(self.tree))
        self.places = watch.places
        self.seen: Record = {}
        self.problems: list[str] = []  # what statements at the module's level raised
        sys.path[:0] = [folder for folder in folders if folder not in sys.path]
        sys.meta_path.insert(0, self)
        try:
            self.names = self._loaded(name or Path(file).stem).__dict__
        finally:
            sys.meta_path.remove(self)

    def _loaded(self, name: str) -> ModuleType:
        parts = name.split(".")
        for count in range(1, len(parts)):
            package = ".".join(parts[:count])
            try:
                importlib.import_module(package)
            except Exception:  # A missing dependency of another module of the package need not concern this file.
                bare = sys.modules[package] = ModuleType(package)
                bare.__path__ = [str(Path(self.file).parents[len(parts) - count - 1])]
                bare.__package__ = package
        loaded = sys.modules.get(name)
        if loaded is not None and HELD in vars(loaded):
            return loaded  # The package imports it.
        module = importlib.util.module_from_spec(self._spec(name))
        sys.modules[name] = module
        self.exec_module(module)
        return module

    def _spec(self, name: str) -> Any:
        inside = [str(Path(self.file).parent)] if Path(self.file).name == "__init__.py" else None
        return importlib.util.spec_from_file_location(name, self.file, loader=self, submodule_search_locations=inside)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        return self._spec(fullname) if spec is not None and spec.origin == self.file else None

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the statements one by one: what one of them lacks (a file, a device) the others need not."""
        vars(module)[HELD] = self._report
        for node in self.tree.body:
            try:
                exec(compile(ast.Module([node], []), self.file, "exec", self.flags, True), vars(module))
            except BaseException as error:  # noqa: PERF203  sys.exit() among them.
                self.problems.append(f"line {node.lineno}: {type(error).__name__}: {error}")

    def _report(self, number: int, value: Any) -> Any:
        self._add(self.places[number], shapes_of(value))
        return value

    def _add(self, place: Place, shapes: Any) -> None:
        if shapes is not None:
            seen = self.seen.setdefault(place, [])
            if shapes not in seen:
                seen.append(shapes)

    def run(self, expression: str, sizes: dict[str, int] | None = None, content: str = "random", *, gradients: bool = True) -> Record:
        """What the places held while the example ran with these sizes of its named dims. Raises whatever user code raises."""
        self.seen = {}
        torch.manual_seed(0)
        calls = _Calls()
        with torch.set_grad_enabled(gradients), calls:
            evaluate(compiled(expression), self.names, sizes or {}, content)
        for path, shapes in calls.named():
            self._add(("layer", 0, 0, 0, 0, path), shapes)
        return self.seen


class _Calls:
    """The calls of modules. Those that an example calls itself are put into evaluation mode, unless it has said which mode it wants."""

    def __init__(self) -> None:
        self.depth = 0
        self.models: list[nn.Module] = []
        self.outputs: list[tuple[nn.Module, Any]] = []
        self.modes: set[nn.Module] = set()

    def __enter__(self) -> None:
        self.originals = nn.Module.__call__, nn.Module.train
        call, train = self.originals

        def watched(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self.depth == 0:
                self.models.append(module)
                if sys._getframe(1).f_code.co_filename == EXAMPLE_FILE and module not in self.modes:
                    train(module, False)
            self.depth += 1
            try:
                output = call(module, *args, **kwargs)
            finally:
                self.depth -= 1
            self.outputs.append((module, shapes_of(output)))
            return output

        def train_(module: nn.Module, mode: bool = True) -> nn.Module:
            if any(frame.f_code.co_filename == EXAMPLE_FILE for frame in (sys._getframe(1), sys._getframe(2))):
                self.modes.add(module)
            return train(module, mode)

        nn.Module.__call__, nn.Module.train = watched, train_  # type: ignore[method-assign, assignment]

    def __exit__(self, *exception: object) -> None:
        nn.Module.__call__, nn.Module.train = self.originals  # type: ignore[method-assign]

    def named(self) -> list[tuple[str, Any]]:
        """The path of each layer in the model that it is a part of, and the shapes that it gave."""
        paths = {part: path for model in self.models[::-1] for path, part in model.named_modules()}
        return [(paths[module], output) for module, output in self.outputs if module in paths]


def replay(file: Path, expression: str) -> Record:
    """What the places of a file hold while an example runs."""
    return Replay(str(file)).run(expression)
