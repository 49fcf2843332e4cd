"""Where the things that a trace speaks of stand in the text: constructor calls, their arguments, operations; in this file or in another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from shapelens import protocol
from shapelens.analysis.layer_arguments import index_of
from shapelens.protocol import LayerSeen, Mismatch, Origin, Remark, Suspect, Trace
from shapelens.source.calls import Argument, Call
from shapelens.source.module import Module
from shapelens.source.positions import Span

OtherModules = Callable[[str], Module | None]  # the parsed text of another file by its absolute path; None where it cannot be had


@dataclass(frozen=True)
class Place:
    """A span of a file that we have the text of."""

    file: str
    module: Module
    span: Span


@dataclass(frozen=True)
class ArgumentPlace:
    """A layer's constructor call, and the argument in it; None where it is left to its default or hidden behind `*` or `**`."""

    file: str
    module: Module
    call: Call
    argument: Argument | None

    @property
    def span(self) -> Span:
        """The span of the argument's value where there is one, else that of the call."""
        return self.argument.span if self.argument is not None else self.call.span

    @property
    def hidden(self) -> bool:
        """True if the argument may come out of a `*` or `**`."""
        return self.argument is None and any(argument.star for argument in self.call.arguments)


class Places:
    """Finds the places of one trace."""

    def __init__(self, module: Module, trace: Trace, other_modules: OtherModules) -> None:
        self.module = module
        self.trace = trace
        self._others: dict[str, Module | None] = {trace.file: module}
        self._other_modules = other_modules

    def module_of(self, file: str) -> Module | None:
        """The text of a file; None where it cannot be had."""
        if file not in self._others:
            self._others[file] = self._other_modules(file)
        return self._others[file]

    def locate(self, span: protocol.FileSpan | None) -> Place | None:
        """The place of a worker's span; None where its file cannot be read or is shorter than when it ran."""
        module = self.module_of(span.file) if span is not None else None
        if span is None or module is None:
            return None
        return Place(span.file, module, module.lines.span_from_bytes(span))

    def layer_of(self, said: Mismatch | Remark | Suspect | Origin | None) -> LayerSeen | None:
        """The layer that something was seen at, or comes from; None for what has none."""
        return self.trace.layers[said.layer] if said is not None and said.layer is not None else None

    def argument(self, layer: LayerSeen, argument: str) -> ArgumentPlace | None:
        """The argument of the layer's constructor call; None where that call is not known."""
        place = self.locate(layer.span)
        call = place.module.call_at(place.span) if place is not None else None
        if place is None or call is None:
            return None
        index = index_of(layer, argument) if is_constructor(call, layer) else None
        found = place.module.argument(call, [argument], index if index is not None else -1)
        return ArgumentPlace(place.file, place.module, call, found)

    def here(self, mismatch: Mismatch) -> Place | None:
        """The innermost expression of this file that led to the mismatch."""
        for span in [mismatch.span, *reversed(mismatch.trail)]:
            if span is not None and span.file == self.trace.file:
                return self.locate(span)
        return None

    def of_example(self, example: int) -> Place:
        """The directive that asks for the example, the class that it was found for, or the first line of the file."""
        run = self.trace.examples[example] if 0 <= example < len(self.trace.examples) else None
        for directive in self.module.directives:
            if run is not None and directive.expression == run.expression:
                return Place(self.trace.file, self.module, directive.expression_span)
        if run is not None and run.evidence and not run.file:
            owner = self.module.class_named(run.target) or self.module.function_named(run.target)
            return Place(self.trace.file, self.module, owner.name_span if owner is not None else self.top())
        return Place(self.trace.file, self.module, self.top())

    def top(self) -> Span:
        """The first line of the file."""
        return Span(1, 0, 1, len(self.module.lines.line(1)))

    def words(self, place: Place | ArgumentPlace) -> str:
        """`line 14`, `cell 3, line 2` in a notebook, or `blocks.py line 14` for another file."""
        line = place.module.line_name(place.span.line)
        return line if place.file == self.trace.file else f"{PurePath(place.file).name} {line}"


def is_constructor(call: Call, layer: LayerSeen) -> bool:
    """True if the positions of a call are those of a layer's constructor, as far as is known: not where a method or function of another
    name makes the layer, `Net.load_from_checkpoint(path)`."""
    if call.qualified is not None:
        return call.qualified.rpartition(".")[2] == layer.class_name
    return call.function.rpartition(".")[0].rpartition(".")[2] != layer.class_name


def layer_name(layer: LayerSeen) -> str:
    """A layer's name in the user's words: the attribute that holds it (`fc1` of `blocks.0.mlp.fc1`), or `features[0]`."""
    parts = layer.path.split(".")
    index = len(parts) - 1
    while index > 0 and parts[index].isdigit():
        index -= 1
    return parts[index] + "".join(f"[{part}]" for part in parts[index + 1 :]) if layer.path else layer.class_name
