"""A Python file as ShapeLens reads it: its module classes, its calls and their arguments, its directives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from shapelens.notebooks import Notebook
from shapelens.source.calls import Argument, Call, Expression, StatementReader
from shapelens.source.classes import ClassStatement, Head, Parameter, heads
from shapelens.source.comments import Directive, read_comments
from shapelens.source.names import NameTable
from shapelens.source.positions import Lines, Position, Span
from shapelens.source.scanner import LogicalLine
from shapelens.source.statements import Placed, Statements, split


@dataclass(frozen=True)
class SyntaxProblem:
    """Text that does not parse, in CPython's words."""

    span: Span
    message: str


@dataclass(frozen=True)
class ModuleClass:
    """A class that derives from `nn.Module` (or may, in `Module.maybe_modules`)."""

    name: str
    qualname: str  # as Python has it: "Net", "Net.Block", "make.<locals>.Net"
    span: Span  # decorators not included
    name_span: Span
    first_line: int  # of its first decorator, or its own
    bases: list[str]
    methods: dict[str, Span]  # the span of each method's name
    init_parameters: list[Parameter]  # empty where the class itself has no __init__
    forward_parameters: list[Parameter]


@dataclass(frozen=True)
class ModuleFunction:
    """A function at module level."""

    name: str
    name_span: Span
    first_line: int  # of its first decorator, or its own


def warm_up() -> None:
    """Read one call, as the code that reads calls is loaded with the first one: 30 ms that a user should not wait for."""
    list(parse("call(1)\n").calls())


def parse(text: str, previous: Module | None = None) -> Module:
    """Reads a text. Only the top-level statements that `previous` does not have are parsed.

    One that does not parse keeps its last good version: its classes stay, moved to where they are now.
    Never raises for what a text says: what does not parse is listed in `errors`.
    """
    if previous is not None and previous.text == text:
        return previous
    module = Module(split(text, previous.statements if previous else None))
    module.notebook = previous.notebook if previous is not None else None
    return module


class Module:
    """The text of a file at one moment, and what it says."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.notebook: Notebook | None = None  # the notebook whose cells these lines are
        self.text = statements.text
        self.lines = Lines(self.text)
        self.names = NameTable([item.statement for item in statements.placed])
        self._starts = [item.start for item in statements.placed]
        self._readers: dict[int, StatementReader | None] = {}

    @cached_property
    def errors(self) -> list[SyntaxProblem]:
        """Returns what does not parse; empty if everything does."""
        found = []
        for item in self.statements.placed:
            if error := item.statement.error:
                first = self.lines.position(item.start)
                line, column, end_line, end_column = error.place
                start = self.lines.offset(Position(first.line + line - 1, column + (first.column if line == 1 else 0)))
                end = self.lines.offset(Position(first.line + end_line - 1, end_column + (first.column if end_line == 1 else 0)))
                found.append(SyntaxProblem(self.lines.span(min(start, item.end), max(start, min(end, item.end))), error.message))
        return found

    @cached_property
    def classes(self) -> list[ModuleClass]:
        """The module classes, in order; nested ones and those inside functions, `if` and `try` too."""
        return [cls for cls, kind in self._all_classes if kind == "module"]

    @cached_property
    def maybe_modules(self) -> list[ModuleClass]:
        """Classes with a base of which this file does not say what it is (`class Net(BaseModel)`, imported from elsewhere)."""
        return [cls for cls, kind in self._all_classes if kind == "maybe"]

    @property
    def definitions(self) -> list[str]:
        """The names of its module classes, and of those that may be some, and of its functions."""
        classes = [*self.classes, *self.maybe_modules]
        return [cls.name for cls in classes] + [function.name for function in self.functions]

    @cached_property
    def functions(self) -> list[ModuleFunction]:
        """The functions at module level, in order."""
        return [function for item in self.statements.placed if (function := self._function(item)) is not None]

    @cached_property
    def methods_of_others(self) -> dict[str, Span]:
        """The methods of classes that are no modules, by their qualified names: the spans of their own names."""
        kinds = self.names.class_kinds()
        found = [(item, cls) for item in self.statements.placed for cls in item.statement.classes if not kinds[id(cls)]]
        return {f"{cls.qualname}.{name}": self._name_span(item, head) for item, cls in found for name, head in cls.methods.items()}

    @property
    def imports(self) -> list[str]:
        """The absolute top-level modules that the file imports ("torch", "einops"), each once."""
        return self.names.modules

    @property
    def imported_names(self) -> list[str]:
        """Returns what the file imports, by full names ("torch.nn", "einops.rearrange"); relative ones keep their dots."""
        return self.names.imported

    @property
    def directives(self) -> list[Directive]:
        """The examples in `# shapelens:` comments, in order."""
        return self._comments[0]

    @property
    def ignores(self) -> dict[int, set[str] | None]:
        """For each line with `# shapelens: ignore[code, ...]` the codes that it silences; None: all."""
        return self._comments[1]

    def line_name(self, number: int) -> str:
        """A line in the words of someone who looks at the file or notebook: "line 12", "cell 3, line 2"."""
        return self.notebook.place(number) if self.notebook is not None else f"line {number}"

    def class_named(self, name: str) -> ModuleClass | None:
        """The class (module class or perhaps one) with this qualified name, else the first one with this name."""
        known = self.classes + self.maybe_modules
        return next((cls for cls in known if cls.qualname == name), None) or next((cls for cls in known if cls.name == name), None)

    def function_named(self, name: str) -> ModuleFunction | None:
        """The last function at module level with this name: the one that counts."""
        return next((each for each in reversed(self.functions) if each.name == name), None)

    def function_below(self, line: int) -> ModuleFunction | None:
        """The function at module level that a comment which ends on a line stands directly above."""
        line += 1
        while self.lines.line(line).startswith("#"):
            line += 1
        if not self.lines.line(line).startswith(("@", "def", "async")):
            return None
        return next((each for each in self.functions if each.first_line <= line <= each.name_span.line), None)

    def call_at(self, span: Span) -> Call | None:
        """The call whose span is exactly this, or else the innermost call that starts there; None if its line does not parse."""
        calls = [call for call in self._calls(span.start) if call.span.start == span.start]
        exact = [call for call in calls if call.span == span]
        return exact[0] if exact else min(calls, key=lambda call: call.span.end, default=None)

    def calls_around(self, position: Position) -> list[Call]:
        """The calls of the logical line that a position lies in, outer ones before those inside; [] if the line does not parse."""
        return self._calls(position)

    def argument(self, call: Call, names: list[str], index: int) -> Argument | None:
        """The argument passed by any of these keywords or at this index; None if it is left to its default or hidden behind `*` or `**`."""
        for argument in call.arguments:
            if argument.keyword in names if argument.keyword else argument.index == index:
                return argument
        return None

    def expression_at(self, position: Position) -> Expression | None:
        """The innermost name, attribute (`self.conv1`, if the position is on `conv1`), call or operation around a position, for hovers."""
        reader = self._reader(self.lines.offset(position))
        return reader.expression_at(position) if reader else None

    def calls(self) -> Iterator[Call]:
        """All calls of the file, statement by statement. Reads every line that has a call: for occasional use."""
        for item in self.statements.placed:
            for line in item.statement.lines:
                start = line.start - item.statement.base + item.start
                if "(" in self.text[start : line.end - item.statement.base + item.start]:
                    reader = self._reader(start)
                    if reader:
                        yield from reader.calls

    def logical_line(self, offset: int) -> LogicalLine | None:
        """The logical line that an index lies in, or trails behind on the same physical line. All indices are those of the text."""
        # At the end of a text without a last line end, the index behind the last character belongs to the last line.
        at = min(offset, len(self.text) - 1) if self.text[-1:] not in ("\n", "\r") else offset
        found = bisect_right(self._starts, at) - 1
        if found < 0 or at >= self.statements.placed[found].end:
            return None
        item = self.statements.placed[found]
        shift = item.start - item.statement.base
        index = bisect_right(item.statement.lines, at - shift, key=lambda line: line.line_start) - 1
        if index < 0 or at - shift >= item.statement.lines[index].next:
            return None
        return _moved(item.statement.lines[index], shift)

    def next_logical_line(self, offset: int) -> LogicalLine | None:
        """The first logical line that starts at an index into the text or after it."""
        found = max(bisect_right(self._starts, offset) - 1, 0)
        for item in self.statements.placed[found : found + 2]:
            shift = item.start - item.statement.base
            index = bisect_right(item.statement.lines, offset - shift - 1, key=lambda line: line.start)
            if index < len(item.statement.lines):
                return _moved(item.statement.lines[index], shift)
        return None

    def scope_at(self, position: Position) -> str:
        """The outermost function around a position by its qualified name ("Net.forward"), else the class, else ""."""
        offset = self.lines.offset(position)
        for item in self._around(offset):
            at = offset - item.start + item.statement.base
            number = bisect_right(item.statement.lines, at, key=lambda line: line.line_start) - 1
            if item.start <= offset < item.end and number >= 0:
                return item.statement.function_around(number) or item.statement.class_around(number) or ""
        return ""

    def _calls(self, position: Position) -> list[Call]:
        reader = self._reader(self.lines.offset(position))
        return reader.calls if reader else []

    def _reader(self, offset: int) -> StatementReader | None:
        line = self.logical_line(offset)
        if line is None:
            return None
        if line.start not in self._readers:
            self._readers[line.start] = StatementReader.read(self.lines, line, self.names)
        return self._readers[line.start]

    @cached_property
    def _all_classes(self) -> list[tuple[ModuleClass, str]]:
        kinds = self.names.class_kinds()
        found = ((item, cls, kinds[id(cls)]) for item in self.statements.placed for cls in item.statement.classes)
        return [(self._module_class(item, cls), kind) for item, cls, kind in found if kind]

    def _module_class(self, item: Placed, cls: ClassStatement) -> ModuleClass:
        lines, shift = item.statement.lines, item.start - item.statement.base
        first = cls.head.line
        while first and self.text[lines[first - 1].start + shift] == "@":
            first -= 1
        return ModuleClass(
            name=cls.name,
            qualname=cls.qualname,
            span=self.lines.span(lines[cls.head.line].start + shift, lines[cls.last_line].end + shift),
            name_span=self._name_span(item, cls.head),
            first_line=self.lines.position(lines[first].start + shift).line,
            bases=cls.bases,
            methods={name: self._name_span(item, head) for name, head in cls.methods.items()},
            init_parameters=cls.init_parameters,
            forward_parameters=cls.forward_parameters,
        )

    def _function(self, item: Placed) -> ModuleFunction | None:
        """The function that a top-level statement defines."""
        lines = item.statement.lines
        head = next(iter(heads(item.statement.text, lines, item.statement.base)), None)
        if head is None or head.is_class:
            return None
        starts = [line.start + item.start - item.statement.base for line in lines[: head.line + 1]]
        if any(self.text[start] != "@" for start in starts[:-1]):
            return None
        return ModuleFunction(head.name, self._name_span(item, head), self.lines.position(starts[0]).line)

    def _name_span(self, item: Placed, head: Head) -> Span:
        return self.lines.span(item.start + head.name_start, item.start + head.name_start + len(head.name))

    @cached_property
    def _comments(self) -> tuple[list[Directive], dict[int, set[str] | None]]:
        return read_comments(self.lines, self.logical_line, self.next_logical_line, self._target)

    def _target(self, offset: int) -> str | None:
        """The class that a directive ending at an index stands directly above, else the innermost one that it stands in."""
        line = self.lines.position(offset).line + 1
        while self.lines.line(line).lstrip(" \t\x0c").startswith("#"):
            line += 1
        places = [(self._module_class(item, cls), cls) for item in self._around(offset) for cls in item.statement.classes]
        above = [cls.qualname for cls, _ in places if cls.first_line <= line <= cls.span.line]
        here = self.lines.position(offset)
        inside = [cls.qualname for cls, _ in places if cls.span.start <= here and here <= cls.span.end]
        return above[0] if above else inside[-1] if inside else None

    def _around(self, offset: int) -> tuple[Placed, ...]:
        found = max(bisect_right(self._starts, offset) - 1, 0)
        return self.statements.placed[found : found + 2]


def _moved(line: LogicalLine, shift: int) -> LogicalLine:
    return line._replace(line_start=line.line_start + shift, start=line.start + shift, end=line.end + shift, next=line.next + shift)
