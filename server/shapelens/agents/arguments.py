"""The arguments of tools: described as JSON Schema for a client, and read into plain values. What is wrong with them is one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shapelens.commands import RefusedRequest

_EDIT = {
    "type": "object",
    "properties": {
        "old": {"type": "string", "description": "Text that stands in the file exactly once, with its indentation."},
        "new": {"type": "string", "description": "What stands there instead."},
    },
    "required": ["old", "new"],
    "additionalProperties": False,
}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_edits(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and each.keys() == {"old", "new"} and all(map(_is_text, each.values())) for each in value
    )


def _are_sizes(value: object) -> bool:
    return isinstance(value, dict) and all(_is_number(size) and size > 0 for size in value.values())


@dataclass(frozen=True)
class Kind:
    """A kind of argument: its schema, the test of a value, and what a value is to be, in words."""

    schema: Mapping[str, Any]
    fits: Callable[[object], bool]
    words: str


TEXT = Kind({"type": "string"}, _is_text, "a text")
NUMBER = Kind({"type": "integer", "minimum": 0}, lambda value: _is_number(value) and value >= 0, "a whole number")  # type: ignore[operator]
SWITCH = Kind({"type": "boolean"}, lambda value: isinstance(value, bool), "true or false")
TEXTS = Kind({"type": "array", "items": {"type": "string"}}, _are_texts, "a list of texts")
EDITS = Kind({"type": "array", "items": _EDIT}, _are_edits, "a list of {old, new}, both texts")
SIZES = Kind({"type": "object", "additionalProperties": {"type": "integer"}}, _are_sizes, 'sizes by name, as {"B": 64}')


@dataclass(frozen=True)
class ToolArgument:
    """One argument of a tool."""

    name: str
    kind: Kind
    description: str
    is_required: bool = False


@dataclass(frozen=True)
class Tool:
    """A tool as a client is told of it. description: for a model that has never heard of ShapeLens."""

    name: str
    title: str
    description: str
    arguments: Sequence[ToolArgument]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {each.name: {**each.kind.schema, "description": each.description} for each in self.arguments},
            "required": [each.name for each in self.arguments if each.is_required],
            "additionalProperties": False,
        }

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that were given; None counts as not given. Raises RefusedRequest."""
        known = {each.name: each for each in self.arguments}
        for name in given:
            if name not in known:
                raise RefusedRequest(f"{self.name} has no argument `{name}`; it has {', '.join(known)}")
        values = {name: value for name, value in given.items() if value is not None}
        for name, argument in known.items():
            if name not in values and argument.is_required:
                raise RefusedRequest(f"{self.name} needs the argument `{name}`")
            if name in values and not argument.kind.fits(values[name]):
                raise RefusedRequest(f"the argument `{name}` of {self.name} is to be {argument.kind.words}")
        return values
