"""Shapes written into signatures as jaxtyping has them: `def forward(self, x: Float[Tensor, "b t 64"]) -> Float[Tensor, "b 10"]`.

Nothing that the code does changes: annotations are left unevaluated, and jaxtyping is imported for type checkers alone, unless the file
imports it already. An annotation that says more than that there is a tensor stays, so that writing twice changes nothing.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shapelens.analysis.traces.stated_lines import is_credible, is_known
from shapelens.protocol import Trace, Value
from shapelens.source.module import Module
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span
from shapelens.stated.syntax_trees import all_parameters, is_docstring, with_defaults

_HAS_SOME = re.compile(r"\w\[\s*(?:\w+\.)?Tensor\s*,\s*[\"']")
# What reads annotations while the program runs, or compiles them.
_READS_ANNOTATIONS = re.compile(
    r"\btorch\.jit\b|\bfrom torch import .*\bjit\b|\btorch\.library\b|\bget_type_hints\b|__annotations__|\bget_annotations\b"
    r"|^\s*(?:from|import)\s+(?:pydantic|typer|fastapi|attrs?|beartype|typeguard|jsonargparse|tyro|fire|msgspec)\b",
    re.MULTILINE,
)
_KINDS = (("float", "Float"), ("bfloat", "Float"), ("int", "Int"), ("uint", "UInt"), ("bool", "Bool"), ("complex", "Complex"))
_WORDS = tuple(sorted({word for _, word in _KINDS}))
_HARMLESS = re.compile(r"staticmethod|classmethod|property|(?:\w+\.)*(?:no_grad|inference_mode|enable_grad|override|abstractmethod)")
_PRODUCT = re.compile(r"\w+(?:\*\w+)+")

_Function = ast.FunctionDef


@dataclass
class WrittenAnnotations:
    """The edits of a file, how many annotations they write, and why there are none where they would change what the code does."""

    edits: list[TextEdit] = field(default_factory=list)
    count: int = 0
    refused: str = ""


def has_annotations(text: str) -> bool:
    """True if a file says shapes as jaxtyping does already."""
    return _HAS_SOME.search(text) is not None


def written_annotations(module: Module, trace: Trace, functions: Collection[str] | None = None) -> WrittenAnnotations:
    """Returns the edits that write what was seen of parameters and results. Guesses are not written, nor shapes of which no dim has a name.

    functions: the qualified names of those that are wanted; None for all.
    """
    try:
        tree = ast.parse(module.text)
    except (SyntaxError, ValueError, RecursionError):
        return WrittenAnnotations(refused="its text does not parse")
    imports = _Imports(tree, module)
    edits: list[TextEdit] = []
    for name, function in _functions(tree.body, ""):
        if (functions is None or name in functions) and all(_HARMLESS.match(ast.unparse(each)) for each in function.decorator_list):
            edits += _of_function(module, trace, name, function, imports)
    if not edits:
        return WrittenAnnotations()
    reader = _READS_ANNOTATIONS.search(module.text)
    if reader is not None and not imports.at_run_time:
        return WrittenAnnotations(refused=f"line {module.lines.position(reader.end()).line} has to do with annotations that are evaluated")
    return WrittenAnnotations([*edits, *imports.edits()], len(edits))


def _functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node


def _of_function(module: Module, trace: Trace, name: str, function: _Function, imports: _Imports) -> Iterator[TextEdit]:
    """The edits of one function's head; names of dims are those of one table."""
    table = _Table()
    defaults = dict(with_defaults(function))
    for argument in all_parameters(function):
        said = table.shape(_values(trace, name, "parameter", argument.arg))
        default = defaults.get(argument)
        if said is None or (default is not None and imports.at_run_time):
            continue
        text = imports.annotation(*said)
        end = module.lines.from_bytes(argument.end_lineno or argument.lineno, argument.end_col_offset or 0)
        if argument.annotation is not None:
            if default is None and _is_plain(argument.annotation):
                yield TextEdit(_span(module, argument.annotation), text)
        elif default is None:
            yield TextEdit(Span.of(end, end), f": {text}")
        elif isinstance(default, ast.Constant) and default.value is None:
            between = Span.of(end, module.lines.from_bytes(default.lineno, default.col_offset))
            if module.lines.text_of(between).strip() == "=":
                yield TextEdit(between, f": {text} | None = ")
    if not _gives_always(trace, name, function) or (function.returns is not None and not _is_plain(function.returns)):
        return
    said = table.shape(_values(trace, name, "return", "return"))
    if said is not None and function.returns is not None:
        yield TextEdit(_span(module, function.returns), imports.annotation(*said))
    elif said is not None and (place := _behind_parameters(module, function)) is not None:
        yield TextEdit(Span.of(place, place), f" -> {imports.annotation(*said)}")


def _values(trace: Trace, function: str, kind: str, name: str) -> Sequence[Value]:
    """The tensors that a parameter held, or that a function returned: none if it was anything else, or if sizes were not told apart."""
    seen = [each for each in trace.observations if each.kind == kind and each.function == function and each.name == name]
    values = [value for each in seen for value in each.values]
    trusted = all(each.span.file == trace.file and is_credible(trace, each) and trace.examples[each.example].dims for each in seen)
    complete = all(is_known(value) and value.named is not None and None not in (value.shape or []) for value in values)
    return values if trusted and complete else []


def _is_plain(annotation: ast.expr) -> bool:
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return isinstance(text, str) and re.fullmatch(r"(?:\w+\.)*Tensor", text) is not None


def _gives_always(trace: Trace, name: str, function: _Function) -> bool:
    """True if a function ends with a return, and each return of its own was seen."""
    last: ast.stmt = function.body[-1]
    while isinstance(last, ast.With):
        last = last.body[-1]
    returns, yields = [], False
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yields = yields or isinstance(node, (ast.Yield, ast.YieldFrom))
        if isinstance(node, ast.Return):
            returns.append(node)
        stack += ast.iter_child_nodes(node)
    seen = [each.span.line for each in trace.observations if each.kind == "return" and each.function == name]
    all_seen = all(any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in seen) for node in returns)
    return isinstance(last, ast.Return) and not yields and all_seen


def _behind_parameters(module: Module, function: _Function) -> Position | None:
    """The place behind the bracket that closes the parameters."""
    first = function.lineno
    text = "\n".join(module.lines.line(number) for number in range(first, function.body[0].lineno + 1)) + "\n"
    depth = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
            if token.type == tokenize.OP and token.string == ")" and depth == 0:
                return Position(first + token.end[0] - 1, token.end[1])
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # The bracket stands before what ends the text.
    return None


def _span(module: Module, node: ast.expr) -> Span:
    start = module.lines.from_bytes(node.lineno, node.col_offset)
    return Span.of(start, module.lines.from_bytes(node.end_lineno or node.lineno, node.end_col_offset or 0))


class _Table:
    """The names of the dims of one function. Each name stands for one symbol of the hints."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # by symbol
        self._sizes: dict[str, int] = {}  # by name, of those that a parameter binds

    def shape(self, values: Sequence[Value]) -> tuple[str, str] | None:
        """jaxtyping's word for the dtype of some tensors, and their shape; None where one annotation cannot say them."""
        kinds = {next((word for start, word in _KINDS if value.dtype.startswith(start)), "") for value in values}
        if len(kinds) != 1 or "" in kinds:
            return None
        words = self._words(values)
        if words and not set(words) - {"_", "..."}:
            return None
        return kinds.pop(), " ".join(words)

    def _words(self, values: Sequence[Value]) -> list[str]:
        """Returns the names of the dims of some tensors; `...` for those that only some of them have."""
        ranks = [len(value.named or []) for value in values]
        least = min(ranks)
        columns = [[(value.named or [])[-index] for value in values] for index in range(least, 0, -1)]
        sizes = [[(value.shape or [])[-index] or 0 for value in values] for index in range(least, 0, -1)]
        words = [self._word(each, size) for each, size in zip(columns, sizes, strict=True)]
        if len(words) > 1 and words[0].isdigit() and not all(word.isdigit() or word == "_" for word in words[1:]):
            words[0] = "_"  # A batch that a directive gives as a number is none that every call has.
        if least != max(ranks):
            while words and words[0] == "_":
                words.pop(0)
            words.insert(0, "...")
        return words

    def _word(self, symbols: Sequence[str], sizes: Sequence[int]) -> str:
        symbol = symbols[0].replace("·", "*").replace(" ", "")
        if len(set(symbols)) != 1 or symbol in ("?", ""):
            return "_"
        if symbol.isdigit():
            return symbol
        if symbol.isidentifier() and symbol.isascii() and not keyword.iskeyword(symbol.lower()):
            name = self._names.get(symbol, symbol.lower())
            if symbol not in self._names and name in self._names.values():
                name = symbol
            self._names[symbol] = name
            if len(set(sizes)) == 1 and self._sizes.setdefault(name, sizes[0]) == sizes[0]:
                return name
            return "_"
        return self._product(symbol, sizes)

    def _product(self, symbol: str, sizes: Sequence[int]) -> str:
        """`b*t`, where earlier parameters have bound `b` and `t`; "_" of other sizes that are computed."""
        if _PRODUCT.fullmatch(symbol) is None:
            return "_"
        words, result = [], 1
        for factor in symbol.split("*"):
            name = factor if factor.isdigit() else self._names.get(factor, "")
            size = int(factor) if factor.isdigit() else self._sizes.get(name)
            if size is None:
                return "_"
            words.append(name)
            result *= size
        return "*".join(words) if set(sizes) == {result} else "_"


class _Imports:
    """The imports of a file that annotations need, and the edits that import the rest."""

    def __init__(self, tree: ast.Module, module: Module) -> None:
        self._module = module
        self._tree = tree
        self._needed = set[str]()
        self._needs_tensor = False
        self._block: ast.If | None = None
        self._names: Mapping[str, str] = {}  # what jaxtyping's words are called here
        self._from: ast.ImportFrom | None = None
        self._prefix = ""
        self._tensor = ""
        self._has_future = self._has_checking = self.at_run_time = False
        for node in tree.body:
            checking = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING")
            if checking and isinstance(node, ast.If):
                self._block = self._block or node
                for inner in node.body:
                    self._read(inner, run_time=False)
            else:
                self._read(node, run_time=True)
        self.at_run_time = self.at_run_time and not self._has_future
        is_taken = re.search(rf"\b(?:{'|'.join(_WORDS)})\b", module.text) is not None
        self._as_module = self._prefix == "" and self._from is None and is_taken

    def _read(self, node: ast.stmt, *, run_time: bool) -> None:
        if isinstance(node, ast.ImportFrom):
            here = {alias.name: alias.asname or alias.name for alias in node.names}
            self._has_future |= node.module == "__future__" and "annotations" in here
            self._has_checking |= node.module == "typing" and here.get("TYPE_CHECKING") == "TYPE_CHECKING"
            if node.module == "torch" and "Tensor" in here:
                self._tensor = here["Tensor"]
            if node.module == "jaxtyping":
                self._names = {**self._names, **here}
                self._from = node
                self.at_run_time |= run_time
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch":
                    self._tensor = self._tensor or f"{alias.asname or 'torch'}.Tensor"
                if alias.name == "jaxtyping":
                    self._prefix = f"{alias.asname or 'jaxtyping'}."
                    self.at_run_time |= run_time

    def annotation(self, word: str, shape: str) -> str:
        """The text of an annotation."""
        self._needs_tensor |= not self._tensor
        if self._prefix or self._as_module:
            word = f"{self._prefix or 'jaxtyping.'}{word}"
        elif word in self._names:
            word = self._names[word]
        else:
            self._needed.add(word)
        return f'{word}[{self._tensor or "Tensor"}, "{shape}"]'

    def edits(self) -> Iterator[TextEdit]:
        """The edits at the head of the file that import what the annotations speak of."""
        wanted = [f"from jaxtyping import {', '.join(sorted(self._needed))}"] if self._needed else []
        if self._as_module:
            wanted = ["import jaxtyping"]
        if self._from is not None and wanted:
            yield self._line(self._from.end_lineno or 0, " " * self._from.col_offset + wanted.pop() + "\n")
        if self._needs_tensor:
            wanted.append("from torch import Tensor")
        body = [node for node in self._tree.body if not is_docstring(node)]
        futures = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        head = ""
        if not self._has_future and not self.at_run_time:
            head = "from __future__ import annotations\n" + ("" if futures else "\n")
        if wanted and self._block is not None:
            first = self._block.body[0]
            yield self._line(first.lineno - 1, "".join(" " * first.col_offset + line + "\n" for line in wanted))
        elif wanted:
            edit, head = self._new_block(wanted, self._last_import(body), head, has_futures=bool(futures))
            yield from [edit] if edit is not None else []
        if head:
            place = (futures[-1].end_lineno or 0) if futures else self._above(body[0])
            yield self._line(place, head)

    def _new_block(self, wanted: Sequence[str], last: ast.stmt | None, head: str, *, has_futures: bool) -> tuple[TextEdit | None, str]:
        """A block of imports for the type checker behind the last import, or else at the end of the head, which is the second result."""
        typing = "" if self._has_checking else "from typing import TYPE_CHECKING\n"
        block = "\nif TYPE_CHECKING:\n" + "".join(f"    {line}\n" for line in wanted)
        if head and not has_futures and typing:
            head, typing = f"{head}{typing}\n", ""
        if last is not None:
            return self._line(last.end_lineno or 0, typing + block), head
        return None, head + f"{typing}{block.lstrip() if head else block}\n"

    def _last_import(self, body: Sequence[ast.stmt]) -> ast.stmt | None:
        """The last import before the first definition."""
        found: ast.stmt | None = None
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
            is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if isinstance(node, (ast.Import, ast.ImportFrom)) and not is_future:
                found = node
        return found

    def _above(self, node: ast.stmt) -> int:
        """The line above a statement, its decorators and its comments; that of an import has none."""
        decorators = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
        line = min([node.lineno, *(each.lineno for each in decorators)]) - 1
        while not isinstance(node, (ast.Import, ast.ImportFrom)) and line > 0 and self._module.lines.line(line).startswith("#"):
            line -= 1
        return line

    def _line(self, behind: int, text: str) -> TextEdit:
        """An edit that puts lines behind a line; 0 for the top."""
        place = Position(behind + 1, 0)
        return TextEdit(Span.of(place, place), text)
