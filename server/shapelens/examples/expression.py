"""The syntax of an example: a Python expression in which a subscript on a dtype shorthand makes a tensor.

    Net(num_classes=10)(f32[B:2, 3, H:224, W:224], mask=None)

`name:size` names a dim; a name without a size (`f32[B, 5]`) is one that was named before, or any name of the file.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SHORTHANDS = ("f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "bool", "c64", "c128")
_ANY_TENSOR = "f32[B:2]"  # to be given a shape

_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.Assign: "an assignment",
    ast.AnnAssign: "an assignment",
    ast.AugAssign: "an assignment",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.FunctionDef: "a function definition",
    ast.ClassDef: "a class definition",
    ast.Return: "a return",
    ast.Delete: "a del statement",
    ast.Assert: "an assert statement",
}
_MODEL = "Net()(f32[2, 3, 32, 32])"


@dataclass(frozen=True)
class ExpressionProblem:
    """Holds what is wrong with an expression, in plain words, and where: 0-based columns in it, the end exclusive."""

    message: str
    column: int
    end_column: int


def check(expression: str) -> str | None:
    """Returns what is wrong with an example expression, with its column (counted from 1), or None if it is fine. Runs nothing and never
    raises.
    """
    found = problem(expression)
    return f"{found.message} (column {found.column + 1})" if found else None


@functools.lru_cache(maxsize=256)
def problem(expression: str) -> ExpressionProblem | None:
    """The first thing that is wrong with an example expression, or None."""
    if not expression.strip():
        return ExpressionProblem(
            f"the example is empty; write an expression that builds the model and calls it: {_MODEL}", 0, len(expression)
        )
    try:
        tree = syntax_tree(expression)
    except SyntaxError as error:
        return _syntax_problem(expression, error)
    except (ValueError, RecursionError, MemoryError) as error:
        text = "the example holds a null character" if isinstance(error, ValueError) else "the example is nested too deeply"
        return ExpressionProblem(text, 0, len(expression))
    try:
        found = next(_problems(tree), None)
    except RecursionError:
        return ExpressionProblem("the example is nested too deeply", 0, len(expression))
    if found is None:
        return None
    message, node = found
    start, end = _column(expression, node.lineno, node.col_offset), _column(expression, node.end_lineno, node.end_col_offset)
    return ExpressionProblem(message, start, max(end, start + 1))


def dims(expression: str) -> dict[str, int]:
    """The named dims whose size the expression itself says, in their order: {"B": 2, "T": 64}. Empty if it does not parse."""
    sizes: dict[str, int] = {}
    try:
        for node in _shorthands(syntax_tree(expression)):
            for dim in sizes_of(node):
                if isinstance(dim, ast.Slice) and isinstance(dim.lower, ast.Name):
                    size = size_of(dim.upper, sizes)
                    if size is not None:
                        sizes.setdefault(dim.lower.id, size)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return sizes


def names(expression: str) -> list[str]:
    """The names that an expression reads, in the order in which they come; the first is what it calls. Empty if it does not parse."""
    try:
        nodes = [node for node in ast.walk(syntax_tree(expression)) if isinstance(node, ast.Name)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return [node.id for node in nodes]


def called(expression: str) -> str | None:
    """The name of the function that an expression calls: "loss" for `loss(f32[2])`; None for the call of what another call gives."""
    try:
        tree = syntax_tree(expression).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else None


def with_tensors(expression: str, wanted: Sequence[tuple[str, Sequence[int]]]) -> str | None:
    """An example that calls its model with tensors of these dtypes (shorthands) and shapes; None where it has not as many arguments.

    Dims keep their names: `Net()(f32[B:2, 3, 64, 64])` with ("f32", [256, 3, 32, 32]) is `Net()(f32[B:256, 3, 32, 32])`.
    """
    if problem(expression) is not None:
        return None
    call = syntax_tree(expression).body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Call):
        return None
    call.args = [node if isinstance(node, ast.Constant) or is_shorthand(node) else syntax_tree(_ANY_TENSOR).body for node in call.args]
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    tensors = [node for node in given if isinstance(node, ast.Subscript) and is_shorthand(node)]
    if len(tensors) != len(wanted) or any(node not in tensors and not isinstance(node, ast.Constant) for node in given):
        return None
    sizes: dict[str, int] = {}
    for node, (dtype, shape) in zip(tensors, wanted, strict=True):
        named = [name_of(dim) for dim in sizes_of(node)]
        if len(named) != len(shape):
            named = [*named[:1], *[""] * len(shape)][: len(shape)]
        written = []
        for name, size in zip(named, shape, strict=True):
            if name and sizes.get(name, size) == size:
                written.append(name if name in sizes else f"{name}:{size}")
                sizes[name] = size
            else:
                written.append(str(size))
        node.value = ast.Name(dtype, ast.Load())
        node.slice = ast.Name(", ".join(written) or "()", ast.Load())
    return ast.unparse(call)


def is_shorthand(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in SHORTHANDS


def name_of(dim: ast.expr) -> str:
    """The name that a dim has in an example: `B` of `B:2` and of `B`; "" for a number or a formula."""
    name = dim.lower if isinstance(dim, ast.Slice) else dim
    return name.id if isinstance(name, ast.Name) else ""


def syntax_tree(expression: str) -> ast.Expression:
    with warnings.catch_warnings():
        # `f32[2](x)` and the like warn at once, as CPython sees that they cannot work; the run says it better.
        warnings.simplefilter("ignore")
        return ast.parse(expression.strip(" \t"), mode="eval")


def _syntax_problem(expression: str, error: SyntaxError) -> ExpressionProblem:
    indent = len(expression) - len(expression.lstrip(" \t"))
    for name in SHORTHANDS:
        at = expression.replace(" ", "").find(f"{name}[]")
        if at >= 0:
            at = expression.find(name)
            return ExpressionProblem(f"{name}[] needs sizes, as in {name}[2, 3]; a scalar is {name}[()]", at, at + len(name))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statement = ast.parse(expression.strip()).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        statement = None
    if statement is not None and not isinstance(statement, ast.Expr):
        kind = _STATEMENTS.get(type(statement), "a statement")
        return ExpressionProblem(f"an example is one expression, such as {_MODEL}; this is {kind}", 0, len(expression))
    if statement is not None:
        return ExpressionProblem(f"an example is one expression, such as {_MODEL}", 0, len(expression))
    line = error.lineno or 1
    start = _line_start(expression, line) + max((error.offset or 1) - 1, 0) + (indent if line == 1 else 0)
    start = min(start, max(len(expression.rstrip()) - 1, 0))
    end = start + 1
    if error.end_lineno == line and error.end_offset and error.end_offset > (error.offset or 1):
        end = min(start + error.end_offset - (error.offset or 1), len(expression))
    return ExpressionProblem(_plain(error.msg), start, max(end, start + 1))


def _plain(message: str) -> str:
    if message.startswith("unexpected EOF") or message == "invalid syntax":
        return "this is not a valid Python expression"
    return message.removesuffix(". Perhaps you forgot a comma?") if message.startswith("invalid syntax") else message


def _problems(tree: ast.Expression) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom):
            yield "await and yield have no meaning in an example", node
    sizes: dict[str, int] = {}
    for shorthand in _shorthands(tree):
        for dim in sizes_of(shorthand):
            yield from _dim_problems(dim, sizes)


def _dim_problems(dim: ast.expr, sizes: dict[str, int]) -> Iterator[tuple[str, ast.expr]]:
    size: ast.expr | None = dim
    if isinstance(dim, ast.Slice):
        if not isinstance(dim.lower, ast.Name):
            yield "before the colon stands the name of a dim, as in B:2", dim.lower or dim
            return
        name = dim.lower.id
        if dim.step is not None:
            yield f"a dim is name:size, as in {name}:2", dim
            return
        if dim.upper is None:
            yield f"dim {name} has no size; write {name}:2", dim
            return
        size = dim.upper
        known = size_of(size, sizes)
        if known is not None and sizes.setdefault(name, known) != known:
            yield f"dim {name} is {sizes[name]} before and {known} here", dim
    if isinstance(size, ast.Constant) and (type(size.value) is not int):
        text = "..." if size.value is Ellipsis else repr(size.value)
        yield f"a size is a whole number, not {text}", size
    elif isinstance(size, ast.UnaryOp) and (size_of(size, sizes) or 0) < 0:
        yield f"a size cannot be negative: {ast.unparse(size)}", size


def _shorthands(tree: ast.Expression) -> list[ast.Subscript]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and is_shorthand(node)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def sizes_of(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def size_of(node: ast.expr | None, sizes: Mapping[str, int]) -> int | None:
    """Returns the value of a size made of numbers and of what has one, by its text: dims named before, say; None for anything else."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return sizes.get(ast.unparse(node))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = size_of(node.operand, sizes)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = size_of(node.left, sizes), size_of(node.right, sizes)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
        if isinstance(node.op, ast.Pow) and 0 <= right < 64 and abs(left) < 1 << 16:
            return int(left**right)
    return None


def _column(expression: str, line: int | None, byte_column: int | None) -> int:
    """The index into the expression of a place in the terms of `ast`."""
    start = _line_start(expression, line or 1)
    indent = len(expression) - len(expression.lstrip(" \t")) if (line or 1) == 1 else 0
    return (
        start + indent + len(expression[start + indent :].encode("utf-8", "surrogatepass")[: byte_column or 0].decode("utf-8", "replace"))
    )


def _line_start(expression: str, line: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = expression.find("\n", start) + 1
    return start
