"""Changes of the code as minimal edits: nothing but the text that changes is touched, so that formatting stays."""

from __future__ import annotations

from shapelens.source.calls import Argument, Call
from shapelens.source.comments import between
from shapelens.source.module import Module, parse
from shapelens.source.position_map import TextEdit, apply
from shapelens.source.positions import BYTE_ORDER_MARK, LINE_END, Lines, Position, Span


def replace_argument(module: Module, call: Call, argument: Argument | None, keyword: str, new_text: str) -> TextEdit:
    """The edit that gives a call's argument another value; `keyword=new_text` is added where the argument is missing.

    Raises ValueError for a `*` or `**` argument, which stands for several, and where the result would not parse.
    """
    if argument is not None:
        if argument.star:
            raise ValueError(f"{argument.star}{argument.text} stands for several arguments")
        edit = TextEdit(argument.span, new_text)
    else:
        edit = _added(module.lines, call, f"{keyword}={new_text}")
    _check(module, edit)
    return edit


def set_directive(module: Module, name: str, expression: str) -> TextEdit:
    """The edit that makes an expression the example of a class or function: its first directive is replaced, or one is added above it.

    One without a directive of its own, but with one at the top of the file that begins with its name, has that one replaced.
    Raises ValueError if there is no such class or function.
    """
    cls = module.class_named(name)
    owner = cls or module.function_named(name)
    if owner is None:
        raise ValueError(f"there is no class {name} in the file")
    one_line = ""
    for line in LINE_END.split(expression):
        one_line += between(one_line, line.strip()) + line.strip() if line.strip() else ""
    qualname = cls.qualname if cls is not None else owner.name
    own = [item for item in module.directives if item.target == qualname]
    loose = [item for item in module.directives if item.target is None and item.expression.startswith((f"{owner.name}(", f"{qualname}("))]
    for directive in own or loose:
        blank = "" if module.lines.text_of(Span.of(directive.span.start, directive.expression_span.start))[-1:] in " \t" else " "
        return TextEdit(directive.expression_span, blank + one_line)
    text = module.lines.line(owner.first_line)
    mark = len(text) - len(text.removeprefix(BYTE_ORDER_MARK)) if owner.first_line == 1 else 0
    indent = text[mark : len(text) - len(text[mark:].lstrip(" \t")) if text[mark:].strip() else mark]
    at = Position(owner.first_line, mark)
    return TextEdit(Span.of(at, at), f"{indent}# shapelens: {one_line}{_line_end(module.lines, owner.first_line)}")


def _added(lines: Lines, call: Call, argument: str) -> TextEdit:
    end = call.last_argument_end
    if end is None:
        return TextEdit(Span.of(call.open_bracket, call.open_bracket), argument)
    comma = call.trailing_comma
    last_line = lines.line(call.span.end_line)
    closing_alone = not last_line[: call.span.end_column - 1].strip()
    if comma is not None and closing_alone and comma.line < call.span.end_line:
        # One argument a line, each with its comma: the new one gets a line of its own, under the last one and the comment behind that.
        above = lines.line(end.line)
        indent = above[: len(above) - len(above.lstrip(" \t"))] if call.span.line < end.line else " " * 4
        at = Position(comma.line + 1, 0)
        return TextEdit(Span.of(at, at), f"{indent}{argument},{_line_end(lines, comma.line)}")
    return TextEdit(Span.of(end, end), f", {argument}")


def _check(module: Module, edit: TextEdit) -> None:
    after = parse(apply(module.text, [edit]), module)
    if len(after.errors) > len(module.errors):
        raise ValueError(f"the result would not parse: {edit.new_text}")


def _line_end(lines: Lines, number: int) -> str:
    """The line end of a line, or of the first line that has one."""
    found = LINE_END.match(lines.text, lines.offset(Position(number, 1 << 30))) or LINE_END.search(lines.text)
    return found.group() if found else "\n"
