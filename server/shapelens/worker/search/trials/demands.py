"""The demands of a failed attempt: a size that should be another one, a multiple of one, larger, or a tensor of another rank or dtype."""

from __future__ import annotations

import ast
import linecache
import re
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, List, Match, Optional, Tuple

import torch

from ....protocol import FileSpan, Value
from ....stated.syntax_trees import program_of
from ...sandbox.exceptions import traceback_of
from .trial import RefusedInput, Trial

MOST = 12
_DIM_READ = re.compile(r"\.(?:shape|size\(\))\[\s*(\d)\s*\]|\b(\w+)\[\s*(\d)\s*\]")
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
    """Returns the demands of a failed attempt, the most telling first."""
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
        dims = _dims_read(found.span)
        if dims:  # `x.shape[2]`
            yield Demand("rank", -1, 1 + max(dims), least=True)
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


def _dims_read(span: FileSpan) -> List[int]:
    """The dims that a line reads of shapes, by their numbers: of `x.shape[2]`, and of `size[2]` where `size = x.size()` stands before."""
    lines = linecache.getlines(span.file)[: span.line]
    found: List[int] = []
    for dim, name, of_name in _DIM_READ.findall(lines[-1] if lines else ""):
        held = re.compile(r"\s*%s\s*=[^=].*\.(shape|size\(\))\s*(#.*)?$" % name)
        if dim or any(map(held.match, lines)):
            found.append(int(dim or of_name))
    return found


# --- messages ---


def _rank(match: Match[str]) -> Iterable[Demand]:
    return [Demand("rank", _rank_got(match.string), int(match[1]))]


def _rank_and_got(match: Match[str]) -> Iterable[Demand]:
    return [Demand("rank", int(match[2]), int(match[1]))]


def _more_dims(match: Match[str]) -> Iterable[Demand]:
    index = int(match[2] if match.re.groups > 1 else match[1])
    return [Demand("rank", int(match[1]), index + 1 if index >= 0 else -index, least=True)]


def _sizes(match: Match[str]) -> Iterable[Demand]:
    """The first group says what is needed, the second what came."""
    return [Demand("equal", int(got), int(need)) for need, got in zip(_INT.findall(match[1]), _INT.findall(match[2]))]


def _all_sizes(match: Match[str]) -> Iterable[Demand]:
    """As `_sizes`, of a message that says nothing else."""
    return _sizes(match)


def _either_size(match: Match[str]) -> Iterable[Demand]:
    """Sizes of which either may be the wrong one, group by group, of a message whose other numbers are no sizes that clash."""
    pairs = zip(_INT.findall(match[1]), _INT.findall(match[2]))
    return [demand for one, other in pairs for demand in _both(int(one), int(other))]


def _sum_of_parts(match: Match[str]) -> Iterable[Demand]:
    return [Demand("equal", int(match[1]), sum(map(int, _INT.findall(match[2]))))]


def _multiples(match: Match[str]) -> Iterable[Demand]:
    known = re.search(r"(\d+)\D{0,40}(?:divisible by|multiple of)\D{0,30}(\d+)", match.string)
    if known is not None:
        return [Demand("multiple", int(known[1]), int(known[2]))]
    return [Demand("multiple", -1, number) for number in map(int, _INT.findall(match.string)) if number > 1]


# What messages ask for, most telling first: what is found in "TypeError: the message", and what that says.
_SAYS: Tuple[Tuple[str, Callable[[Match[str]], Iterable[Demand]]], ...] = (
    (r"Expected \d+D \(unbatched\) or (\d+)D \(batched\) input", _rank),
    (r"[Ee]xpected (\d+)D input", _rank),
    (r"needs (\d+)D input", _rank),
    (r"[Ee]xpected \d+D or (\d+)D", _rank),
    (r"unbatched \d+-?D or batched (\d+)-?D", _rank),
    (r"expected (\d+) dims\. Received (\d+)-dim", _rank_and_got),
    (r"is not equal to len\(dims\) = (\d+)", _rank),
    (r"input must have (\d+) dimensions", _rank),
    (r"[Ee]xpected (\d+) dimensions?, got", _rank),
    (r"not enough values to unpack \(expected (?:at least )?(\d+)", _rank),
    (r"too many values to unpack \(expected (\d+)", _rank),
    (r"must be (\d+)-?D", _rank),
    (r"only supports? (\d+)D", _rank),
    (r"number of sizes provided \((\d+)\) must be greater or equal to the number of dimensions in the tensor \((\d+)\)", _rank_and_got),
    (r"number of subscripts in the equation \((\d+)\)", _rank),
    (r"expected .{0,40}(\d)-dimensional", _rank),
    (r"expected to be in range of \[-(\d+), \d+\], but got (-?\d+)", _more_dims),
    (r"too many indices for tensor of dimension (\d+)", _more_dims),
    (r"to have (\d+) channels, but got (\d+) channels", _all_sizes),
    (r"subscript \S+ has size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)", _either_size),
    (r"batch2 tensor to be: \[([\d, ]+)\] but got: \[([\d, ]+)\]", _either_size),
    (r"same reduction dim, but got \[(?:\d+, )*(\d+)\] X \[(\d+)", _either_size),
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _either_size),
    (r"size mismatch, got input \(\d+\), mat \(\d+x(\d+)\), vec \((\d+)\)", _either_size),
    (r"split_sizes to sum exactly to (\d+) .*split_sizes=\[([\d, ]+)\]", _sum_of_parts),
    (r"must be equal to input_size. Expected (\d+), got (\d+)", _all_sizes),
    (r"\bto be (\d+),? but got (\d+)", _sizes),
    (r"[Ee]xpected hidden\S* size \(([\d, ]+)\), got \[([\d, ]+)\]", _all_sizes),
    (r"repeat dims can not be smaller than", lambda match: [Demand("rank", rank + 1, rank) for rank in (1, 2, 3)]),
    (r"can't divide axis of length (\d+) in chunks of (\d+)", lambda match: [Demand("multiple", int(match[1]), int(match[2]))]),
    (r"divisible|multiple of", _multiples),
    (r"Kernel size can't be greater|[Oo]utput size is too small|smaller than|Padding size should be less|at least|non-?zero size|"
     r"is negative|negative output|too small|Expected more than 1|non-empty", lambda match: [Demand("larger")]),
    (r"'NoneType' object has no attribute '(\w+)'", lambda match: [Demand("missing", text=match[1], need=3)]),
    (r"(?<!'NoneType' object )has no attribute '(\w+)'", lambda match: [Demand("missing", text=match[1], need=1)]),
    (r"invalid data type 'str'|indices must be integers|only integers, slices|new\(\): data must be a sequence \(got str",
     lambda match: [Demand("missing", need=4)]),
    (r"^KeyError: ([\s\S]*)", lambda match: [Demand("missing", text=match[1].strip("'\""), need=2)]),
    (r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)",
     lambda match: [Demand("missing", text=name, need=0) for name in re.findall(r"'(\w+)'", match[1])]),
    (r"NoneType", lambda match: [Demand("missing", need=3)]),
    (r"^TypeError: [\s\S]*(?:must be (?:int|a number|real number)|expected one of:[\s\S]*\(Number|as an integer|int\(\) arg)"
     r"|cannot be called on meta tensors|only integer tensors of a single element|elements? cannot be converted to Scalar",
     lambda match: [Demand("number")]),
    (r"object is not iterable|must be (?:a )?(?:tuple|list)|is not subscriptable|expected .*(?:tuple|list) of Tensors",
     lambda match: [Demand("parts")]),
)  # fmt: skip


_WHOLE = (_all_sizes, _either_size, _sum_of_parts, _rank_and_got)  # nothing else is to be read from a message of theirs


def _of_message(message: str, name: str) -> Iterator[Demand]:
    for pattern, said in _SAYS:
        match = re.search(pattern, "%s: %s" % (name, message))
        if match:
            yield from said(match)
            if said in _WHOLE:
                return
    # Sizes that a message of the author's names: "input size (64) does not match (224)".
    numbers = [int(text) for text in _INT.findall(message)][:6]
    for other in numbers[1:]:
        if other > 0:
            yield from _both(numbers[0], other)


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
    """Yields the demands of the condition that guards the statement that raised: `assert h == self.size`, `if x.shape[1] % 8: raise …`."""
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
            body = program_of("".join(lines[number - 1 : last]).strip()).body
            yield from (statement.test for statement in body if isinstance(statement, ast.Assert))
            if body:
                return
    elif stripped.startswith("raise"):
        indent = len(text) - len(stripped)
        for above in range(number - 2, max(number - 12, -1), -1):
            line = lines[above]
            inner = line.lstrip()
            if inner and len(line) - len(inner) < indent:
                if inner.startswith(("if ", "elif ")):
                    body = program_of(inner[inner.index("if") :].rstrip() + "\n    pass").body
                    yield from (statement.test for statement in body if isinstance(statement, ast.If))
                return


def _of_test(test: ast.expr, names: Any, local: Any) -> Iterator[Demand]:
    for node in ast.walk(test):
        asked = _asked_to_be_given(node, local)
        if asked:
            yield Demand("missing", text=asked, need=3)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
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


def _asked_to_be_given(node: ast.AST, local: Any) -> str:
    """The name of an argument that is None, where a condition asks whether that is so: `assert mask is not None`; "" for none."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or not isinstance(node.left, ast.Name):
        return ""
    is_none = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
    return node.left.id if is_none and local.get(node.left.id, "") is None else ""


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
    """Returns the value of an expression of a condition; None where nobody knows."""
    try:
        with torch._C.DisableTorchFunction():
            value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval"), names, dict(local))
    except (Exception, RefusedInput):  # Whatever user code raises, and what layers in it refuse.
        return None
    return tuple(value) if isinstance(value, torch.Size) else value
