"""Dataclasses as plain JSON values, and back. For the protocol: standard library only, Python 3.9."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Dict


def plain(item: Any) -> Any:
    """What JSON can hold, of a dataclass without the fields that equal their default."""
    if dataclasses.is_dataclass(item):
        defaults = _defaults(type(item))
        values = ((name, getattr(item, name)) for name in defaults)
        return {name: plain(value) for name, value in values if value is not defaults[name] and value != defaults[name]}
    if isinstance(item, (list, tuple)):
        return [plain(part) for part in item]
    if isinstance(item, dict):
        return {key: plain(value) for key, value in item.items()}
    return item


_DEFAULTS: Dict[type, Dict[str, Any]] = {}
_BUILDERS: Dict[type, Dict[str, Any]] = {}


def _defaults(cls: type) -> Dict[str, Any]:
    found = _DEFAULTS.get(cls)
    if found is None:
        found = _DEFAULTS[cls] = {}
        for item in dataclasses.fields(cls):
            if item.default is not dataclasses.MISSING:
                found[item.name] = item.default
            elif item.default_factory is not dataclasses.MISSING:
                found[item.name] = item.default_factory()
            else:
                found[item.name] = dataclasses.MISSING
    return found


def build(cls: type, fields: Dict[str, Any]) -> Any:
    """A dataclass from what `plain` made of it. Fields that it does not have are ignored. Raises TypeError where one is missing."""
    builders = _BUILDERS.get(cls)
    if builders is None:
        hints = typing.get_type_hints(cls)
        builders = _BUILDERS[cls] = {item.name: _builder(hints[item.name]) for item in dataclasses.fields(cls)}
    return cls(**{name: builders[name](value) if builders[name] else value for name, value in fields.items() if name in builders})


def _builder(hint: Any) -> Any:
    """A function that turns plain JSON into a value of this type; None where there is nothing to do."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return lambda value: build(hint, value)
    args = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    if typing.get_origin(hint) is typing.Union and len(args) == 1:
        inner = _builder(args[0])
        return inner and (lambda value: None if value is None else inner(value))
    if typing.get_origin(hint) is list:
        inner = _builder(args[0])
        return inner and (lambda value: [inner(part) for part in value])
    return None
