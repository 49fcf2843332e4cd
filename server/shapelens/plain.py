"""Dataclasses as plain JSON values, and back. For the protocol: standard library only, Python 3.9."""

from __future__ import annotations

import dataclasses
import typing
from functools import partial
from typing import Any, Callable, Dict

Writer = Callable[[Any], Dict[str, Any]]
_WRITERS: Dict[type, Writer] = {}
_BUILDERS: Dict[type, Callable[[Dict[str, Any]], Any]] = {}


def plain(item: Any) -> Any:
    """What JSON can hold, of a dataclass without the fields that equal their default."""
    writer = _WRITERS.get(type(item))
    if writer is not None:
        return writer(item)
    if dataclasses.is_dataclass(item):
        writer = _WRITERS[type(item)] = _writer_of(type(item))
        return writer(item)
    if isinstance(item, (list, tuple)):
        return [plain(part) for part in item]
    if isinstance(item, dict):
        return {key: plain(value) for key, value in item.items()}
    return item


def _writer_of(cls: type) -> Writer:
    """`plain` for one class: which fields may hold dataclasses is known from their types."""
    hints = typing.get_type_hints(cls)
    fields = [(item.name, _default(item), _holds_dataclass(hints[item.name])) for item in dataclasses.fields(cls)]

    def writer(item: Any) -> Dict[str, Any]:
        state = item.__dict__
        written = {}
        for name, default, nested in fields:
            value = state[name]
            if value is not default and value != default:
                written[name] = plain(value) if nested else value
        return written

    return writer


def _default(item: "dataclasses.Field[Any]") -> Any:
    return item.default_factory() if item.default_factory is not dataclasses.MISSING else item.default


def _holds_dataclass(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or hint is Any or any(_holds_dataclass(part) for part in typing.get_args(hint))


def build(cls: type, fields: Dict[str, Any]) -> Any:
    """A dataclass from what `plain` made of it. Fields that it does not have are ignored. Raises TypeError where one is missing."""
    builder = _BUILDERS.get(cls)
    if builder is None:
        builder = _BUILDERS[cls] = _builder_of(cls)
    return builder(fields)


def _builder_of(cls: type) -> Callable[[Dict[str, Any]], Any]:
    """`build` for one class. It fills the object's attributes itself: `__init__` takes three times as long, and traces have thousands."""
    hints = typing.get_type_hints(cls)
    every = dataclasses.fields(cls)
    names = frozenset(item.name for item in every)
    constants = {item.name: item.default for item in every if item.default is not dataclasses.MISSING}
    factories = [(item.name, item.default_factory) for item in every if item.default_factory is not dataclasses.MISSING]
    required = names - constants.keys() - {name for name, _ in factories}
    nested = [(item.name, inner) for item in every if (inner := _builder(hints[item.name])) is not None]

    def builder(fields: Dict[str, Any]) -> Any:
        given = fields.keys()
        if not required <= given:
            raise TypeError("%s lacks %s" % (cls.__name__, ", ".join(sorted(required - given))))
        item: Any = object.__new__(cls)
        state = item.__dict__
        state.update(constants)
        for name, factory in factories:
            if name not in given:
                state[name] = factory()
        state.update(fields if given <= names else {name: value for name, value in fields.items() if name in names})
        for name, inner in nested:
            if name in given:
                state[name] = inner(fields[name])
        return item

    return builder


def _builder(hint: Any) -> Any:
    """A function that turns plain JSON into a value of this type; None where there is nothing to do."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _nested(hint)
    args = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    if typing.get_origin(hint) is typing.Union and len(args) == 1:
        inner = _builder(args[0])
        return inner and (lambda value: None if value is None else inner(value))
    if typing.get_origin(hint) is list:
        inner = _builder(args[0])
        return inner and (lambda value: [inner(part) for part in value])
    return None


def _nested(cls: type) -> Callable[[Dict[str, Any]], Any]:
    """The builder of a class, found when it is first needed: a value holds values."""
    return lambda value: (_BUILDERS.get(cls) or partial(build, cls))(value)
