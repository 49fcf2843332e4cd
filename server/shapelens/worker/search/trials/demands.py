"""What a failed attempt asks for: a size that should be another one, a multiple of one, larger, or a tensor of another rank or dtype."""

from __future__ import annotations

import ast
import linecache
import re
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Iterator, List, Optional, Tuple

import torch

from ....protocol import Value
from ...sandbox.exceptions import traceback_of
from .trial import RefusedInput, Trial

MOST = 12
_DIM_READ = re.compile(r"\.(?:shape\[|size\(\)\[)\s*(\d)\s*\]")
_INT = re.compile(r"(?<![\w.])\d+(?![\w.])")


@dataclass(frozen=True)
class Demand:
    """kind    what
    "equal"     a size `got` should be `need`
    "multiple"  a size `got` should be a multiple of `need`
    "larger"    sizes of inputs should be larger
    "rank"      a tensor of rank `got` (-1: unknown) should be of rank `need` (at least, if `least`)
    "dtype"     a tensor should be of the dtype named `text` ("i64", "f32", "bool")
    "missing"   an argument, attribute or key `text` is missing; `need` tells which: 0 argument, 1 attribute, 2 key, 3 is None, 4 a mapping
    "number"    a tensor should be a number
    "transpose" dims should be permuted or added: that a sequence is as long as factors are wide would only hide it
    "parts"     a value should be a sequence of `need` parts (-1: unknown)
    """

    kind: str
    got: int = -1
    need: int = -1
    text: str = ""
    least: bool = False


def demands(trial: Trial) -> List[Demand]:
    """What a failed attempt asks for, the most telling first."""
    found = list(dict.fromkeys(_demands(trial)))
    return [demand for demand in found if demand.kind != "equal" or demand.got != demand.need][:MOST]


def _demands(trial: Trial) -> Iterator[Demand]:
    found, error = trial.found, trial.error
    if found is None or error is None:
        return
    if found.lacks_transpose:
        yield Demand("transpose")
        return
    if found.got is not None and found.need is not None:
        yield Demand("equal", found.got, found.need)
        return
    message = found.message
    if "tuple index out of range" in message and found.span is not None:
        dims = _DIM_READ.findall(linecache.getline(found.span.file, found.span.line))
        if dims:  # `x.shape[2]`
            yield Demand("rank", -1, 1 + max(map(int, dims)), least=True)
    shapes = [value.shape for value in found.inputs if value.shape is not None]
    if found.code == "view":
        yield from _of_view(message, shapes)
    yield from _of_message(message, found.exception)
    if found.code in ("broadcast", "matmul", "cat", "attention", "einsum", "shape"):
        yield from _of_shapes(found.code, shapes)
    if found.code == "dtype" or "dtype" in message or "scalar type" in message:
        yield from _of_dtype(message, found.inputs)
    if not isinstance(error, RefusedInput):
        yield from _of_frame(traceback_of(error))


# --- messages ---

_LARGER = re.compile(
    r"Kernel size can't be greater|[Oo]utput size is too small|smaller than|Padding size should be less|at least|non-?zero size|is negative"
    r"|negative output|too small|Expected more than 1|non-empty"
)
_NUMBER = re.compile(r"must be (int|a number|real number)|expected one of:.*\(Number|as an integer|int\(\) arg", re.DOTALL)
_RANKS: List[Tuple["re.Pattern[str]", int]] = [  # the group that says the needed rank; 0: it is the pattern's own business
    (re.compile(r"Expected \d+D \(unbatched\) or (\d+)D \(batched\) input"), 1),
    (re.compile(r"[Ee]xpected (\d+)D input"), 1),
    (re.compile(r"needs (\d+)D input"), 1),
    (re.compile(r"[Ee]xpected \d+D or (\d+)D"), 1),
    (re.compile(r"unbatched \d+-?D or batched (\d+)-?D"), 1),
    (re.compile(r"is not equal to len\(dims\) = (\d+)"), 1),
    (re.compile(r"input must have (\d+) dimensions"), 1),
    (re.compile(r"[Ee]xpected (\d+) dimensions?, got"), 1),
    (re.compile(r"not enough values to unpack \(expected (?:at least )?(\d+)"), 1),
    (re.compile(r"too many values to unpack \(expected (\d+)"), 1),
    (re.compile(r"must be (\d+)-?D"), 1),
    (re.compile(r"only supports? (\d+)D"), 1),
    (re.compile(r"number of subscripts in the equation \((\d+)\)"), 1),
    (re.compile(r"expected .{0,40}(\d)-dimensional"), 1),
]


def _of_message(message: str, name: str) -> Iterator[Demand]:
    for pattern, group in _RANKS:
        match = pattern.search(message)
        if match:
            yield Demand("rank", _rank_got(message), int(match[group]))
    match = re.search(r"expected to be in range of \[-(\d+), \d+\], but got (-?\d+)", message)
    if match:
        wanted = int(match[2])
        yield Demand("rank", int(match[1]), wanted + 1 if wanted >= 0 else -wanted, least=True)
    match = re.search(r"too many indices for tensor of dimension (\d+)", message)
    if match:
        yield Demand("rank", int(match[1]), int(match[1]) + 1, least=True)
    match = re.search(r"to have (\d+) channels, but got (\d+) channels", message)
    if match:
        yield Demand("equal", int(match[2]), int(match[1]))
        return
    match = re.search(r"\bto be (\d+),? but got (\d+)", message)
    if match:
        yield Demand("equal", int(match[2]), int(match[1]))
    match = re.search(r"[Ee]xpected hidden\S* size \(([\d, ]+)\), got \[([\d, ]+)\]", message)
    if match:
        needed, given = (_INT.findall(text) for text in (match[1], match[2]))
        for got, need in zip(map(int, given), map(int, needed)):
            yield Demand("equal", got, need)
        return
    match = re.search(r"repeat dims can not be smaller than", message)
    if match:
        for rank in (1, 2, 3):
            yield Demand("rank", rank + 1, rank)
    match = re.search(r"can't divide axis of length (\d+) in chunks of (\d+)", message)
    if match:
        yield Demand("multiple", int(match[1]), int(match[2]))
    match = re.search(r"(\d+)\D{0,40}(?:divisible by|multiple of)\D{0,30}(\d+)", message)
    if match:
        yield Demand("multiple", int(match[1]), int(match[2]))
    elif "divisible" in message or "multiple of" in message:
        for number in map(int, _INT.findall(message)):
            if number > 1:
                yield Demand("multiple", -1, number)
    if _LARGER.search(message):
        yield Demand("larger")
    match = re.search(r"has no attribute '(\w+)'", message)
    if match:
        owner = re.search(r"'(\w+)' object", message)
        yield Demand("missing", text=match[1], need=3 if owner is not None and owner[1] == "NoneType" else 1)
    if re.search(
        r"invalid data type 'str'|indices must be integers|only integers, slices|new\(\): data must be a sequence \(got str", message
    ):
        yield Demand("missing", need=4)
    if name == "KeyError":
        yield Demand("missing", text=message.strip("'\""), need=2)
    match = re.search(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)", message)
    if match:
        for name in re.findall(r"'(\w+)'", match[1]):
            yield Demand("missing", text=name, need=0)
    if "NoneType" in message:
        yield Demand("missing", need=3)
    if (name == "TypeError" and _NUMBER.search(message)) or "cannot be called on meta tensors" in message:
        yield Demand("number")
    if re.search(
        r"object is not iterable|must be tuple|must be a (tuple|list)|is not subscriptable|expected .*(tuple|list) of Tensors", message
    ):
        yield Demand("parts")
    # Sizes that a message of the author's names: "input size (64) does not match (224)".
    numbers = [int(text) for text in _INT.findall(message)][:6]
    if len(numbers) >= 2:
        for other in numbers[1:]:
            if other != numbers[0] and other > 0:
                yield Demand("equal", numbers[0], other)
                yield Demand("equal", other, numbers[0])


def _rank_got(message: str) -> int:
    match = (
        re.search(r"input of size: \[([^\]]*)\]", message)
        or re.search(r"[gG]ot (\d+)D input", message)
        or re.search(r"\(got (\d+)", message)
        or re.search(r"input\.dim\(\) = (\d+)", message)
        or re.search(r"got (\d+)", message)
    )
    if match is None:
        return -1
    return len(match[1].split(",")) if "," in match[1] or match[0].startswith("input of size") else int(match[1])


# --- shapes of an operation ---


def _of_shapes(code: str, shapes: List[Any]) -> Iterator[Demand]:
    shapes = [shape for shape in shapes if shape]
    if len(shapes) < 2:
        return
    first, second = shapes[0], shapes[1]
    if code in ("matmul", "attention"):
        if code == "matmul" and len(second) >= 2:
            yield from _both(first[-1], second[-2])
            yield from _both(first[-1], second[-1])
        if len(first) > 1 and len(second) > 1:
            yield from _both(first[-1], second[-1])
            yield from _both(first[-2], second[-2])
    ranks = sorted({len(shape) for shape in shapes})
    if len(ranks) > 1:
        yield Demand("rank", ranks[0], ranks[-1])
        yield Demand("rank", ranks[-1], ranks[0])
    for one in shapes[:4]:
        for other in shapes[:4]:
            for back in range(1, min(len(one), len(other)) + 1):
                if (
                    one[-back] != other[-back]
                    and None not in (one[-back], other[-back])
                    and (code == "cat" or 1 not in (one[-back], other[-back]))
                ):
                    yield Demand("equal", one[-back], other[-back])


def _both(one: Optional[int], other: Optional[int]) -> Iterator[Demand]:
    if one is not None and other is not None and one != other:
        yield Demand("equal", one, other)
        yield Demand("equal", other, one)


def _of_view(message: str, shapes: List[Any]) -> Iterator[Demand]:
    match = re.search(r"shape '\[([^\]]*)\]' is invalid for input of size (\d+)", message)
    if not match:
        return
    dims, size = [int(part) for part in match[1].split(",") if part.strip()], int(match[2])
    product = 1
    for dim in dims:
        product *= dim if dim > 0 else 1
    if -1 in dims:
        batch = shapes[0][0] if shapes and shapes[0] else None
        if dims[0] == -1 and batch and size % batch == 0:  # `x.reshape(-1, 32, 32, channels)` of rows that are smaller or larger
            yield Demand("equal", size // batch, product)
        yield Demand("multiple", size, product)
        for dim in dims:
            if dim > 2:
                yield Demand("multiple", size, dim)
    else:
        yield Demand("equal", size, product)


def _of_dtype(message: str, inputs: List[Value]) -> Iterator[Demand]:
    if re.search(r"int64 or int32|[Ii]ndices|Long, Int|(expected|type) .{0,40}(Long|Int)|used as indices|integral", message):
        yield Demand("dtype", text="i64")
    if re.search(r"bool", message, re.IGNORECASE):
        yield Demand("dtype", text="bool")
    if re.search(r"[Ff]loat|Half|weight is", message):
        yield Demand("dtype", text="f32")
    yield Demand("dtype", text="i64" if any(value.dtype.startswith("float") for value in inputs[:1]) else "f32")


# --- the frame that raised ---


def _of_frame(traceback: Optional[TracebackType]) -> Iterator[Demand]:
    """What the condition says that guards the statement that raised: `assert h == self.size`, `if x.shape[1] % 8: raise …`."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(entries[-3:]):
        frame = entry.tb_frame
        for test in _tests(frame.f_code.co_filename, entry.tb_lineno):
            yield from _of_test(test, frame.f_globals, frame.f_locals)


def _tests(file: str, number: int) -> Iterator[ast.expr]:
    """The conditions of the statement at a line, and of the `if` that it stands in."""
    lines = linecache.getlines(file)
    if not 0 < number <= len(lines):
        return
    text = lines[number - 1]
    stripped = text.lstrip()
    if stripped.startswith("assert"):
        for last in range(number, min(number + 6, len(lines)) + 1):
            try:
                statement = ast.parse("".join(lines[number - 1 : last]).strip()).body[0]
            except (SyntaxError, ValueError):
                continue
            if isinstance(statement, ast.Assert):
                yield statement.test
            return
    elif stripped.startswith("raise"):
        indent = len(text) - len(stripped)
        for above in range(number - 2, max(number - 12, -1), -1):
            line = lines[above]
            inner = line.lstrip()
            if inner and len(line) - len(inner) < indent:
                if inner.startswith(("if ", "elif ")):
                    try:
                        statement = ast.parse(inner[2:] if inner.startswith("el") else inner.rstrip() + "\n    pass").body[0]
                    except (SyntaxError, ValueError):
                        try:
                            statement = ast.parse(inner.replace("elif", "if", 1).rstrip() + "\n    pass").body[0]
                        except (SyntaxError, ValueError):
                            return
                    if isinstance(statement, ast.If):
                        yield statement.test
                return


def _of_test(test: ast.expr, names: Any, local: Any) -> Iterator[Demand]:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = _value(node.left, names, local), _value(node.comparators[0], names, local)
            if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod):
                yield from _multiple(node.left.left, node.left.right, names, local)
            elif _about_rank(node.left):
                if type(right) is int and type(left) is int:
                    yield Demand("rank", left, right)
                elif isinstance(right, (tuple, list)) and type(left) is int:
                    for option in right:
                        if type(option) is int:
                            yield Demand("rank", left, option)
            elif isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE)):
                yield Demand("larger")
                yield from _equal(left, right)
            else:
                yield from _equal(left, right)
                yield from _equal(right, left)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            yield from _multiple(node.left, node.right, names, local)
        elif isinstance(node, ast.Call) and len(node.args) == 2 and re.search("divis|multiple", ast.unparse(node.func)):
            yield from _multiple(node.args[0], node.args[1], names, local)


def _multiple(number: ast.expr, divisor: ast.expr, names: Any, local: Any) -> Iterator[Demand]:
    left, right = _value(number, names, local), _value(divisor, names, local)
    if type(left) is int and type(right) is int and right > 1 and left % right:
        yield Demand("multiple", left, right)


def _equal(left: Any, right: Any) -> Iterator[Demand]:
    if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
        if len(left) != len(right):
            yield Demand("rank", len(left), len(right))
        for one, other in zip(left, right):
            yield from _equal(one, other)
    elif type(left) is int and type(right) is int and left != right and right >= 0:
        yield Demand("equal", left, right)


def _about_rank(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.endswith((".dim()", ".ndim", ".ndimension()")) or (text.startswith("len(") and ("shape" in text or "size()" in text))


def _value(node: ast.expr, names: Any, local: Any) -> Any:
    """What an expression of a condition holds; None where that cannot be told."""
    try:
        with torch._C.DisableTorchFunction():
            value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval"), names, dict(local))
    except (Exception, RefusedInput):  # Whatever user code raises, and what layers in it refuse.
        return None
    return tuple(value) if isinstance(value, torch.Size) else value
