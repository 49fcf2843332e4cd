"""Dataclasses as plain JSON values, and back. For the protocol: standard library only, Python 3.9."""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Optional

Writer = Callable[[Any, Optional["SharedObjects"]], Dict[str, Any]]
Tables = Dict[type, List[Any]]
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))  # Optional[X], and X | None since Python 3.10
_WRITERS: Dict[type, Writer] = {}
_BUILDERS: Dict[type, Callable[[Dict[str, Any], Tables], Any]] = {}


class SharedObjects:
    """Objects of some classes are written once, and elsewhere by their number: one value passes through many layers.

    tables: by class, what was written, in an order in which each has only such of its own class inside as come before it.
    """

    def __init__(self, classes: Iterable[type]) -> None:
        self.tables: Tables = {cls: [] for cls in classes}
        self._numbers: Dict[Any, int] = {}  # by what identifies an object
        self._by_content = {cls for cls in self.tables if cls.__dataclass_params__.frozen}  # type: ignore[attr-defined]
        self._held: List[Any] = []  # An id belongs to one object only as long as that object lives.

    def number(self, item: Any) -> int:
        """The number of an object, which is written if it is new."""
        cls = type(item)
        identity = tuple(item.__dict__.values()) if cls in self._by_content else id(item)
        number = self._numbers.get(identity)
        if number is None:
            table = self.tables[cls]
            fields = _write(item, self)
            number = self._numbers[identity] = len(table)
            table.append(fields)
            self._held.append(item)
        return number


def plain(item: Any, shared: Optional[SharedObjects] = None) -> Any:
    """Returns an item as JSON can hold it: a dataclass without the fields that equal their default; numbers for `shared` objects."""
    cls = type(item)
    if shared is not None and cls in shared.tables:
        return shared.number(item)
    if cls in _WRITERS or dataclasses.is_dataclass(item):
        return _write(item, shared)
    if isinstance(item, (list, tuple)):
        return [plain(part, shared) for part in item]
    if isinstance(item, dict):
        return {key: plain(value, shared) for key, value in item.items()}
    return item


def _write(item: Any, shared: Optional[SharedObjects]) -> Dict[str, Any]:
    writer = _WRITERS.get(type(item))
    if writer is None:
        writer = _WRITERS[type(item)] = _writer_of(type(item))
    return writer(item, shared)


def dataclasses_of(module: types.ModuleType) -> List[type]:
    """The dataclasses of a module."""
    return [value for value in vars(module).values() if isinstance(value, type) and dataclasses.is_dataclass(value)]


def prepare(classes: Iterable[type]) -> None:
    """Find out how these dataclasses are written, which takes some time when the first of them is."""
    for cls in classes:
        if cls not in _WRITERS:
            _WRITERS[cls] = _writer_of(cls)


def _writer_of(cls: type) -> Writer:
    """`plain` for one class: which fields may hold dataclasses is known from their types."""
    hints = typing.get_type_hints(cls)
    fields = [(item.name, _default(item), _holds_dataclass(hints[item.name])) for item in dataclasses.fields(cls)]

    def writer(item: Any, shared: Optional[SharedObjects]) -> Dict[str, Any]:
        state = item.__dict__
        written = {}
        for name, default, nested in fields:
            value = state[name]
            if value is not default and value != default:
                written[name] = plain(value, shared) if nested else value
        return written

    return writer


def _default(item: "dataclasses.Field[Any]") -> Any:
    return item.default_factory() if item.default_factory is not dataclasses.MISSING else item.default


def _holds_dataclass(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or hint is Any or any(_holds_dataclass(part) for part in typing.get_args(hint))


def build(cls: type, fields: Dict[str, Any], shared: Optional[Tables] = None) -> Any:
    """A dataclass from what `plain` made of it. Fields that it does not have are ignored. Raises TypeError where one is missing.

    shared: by class, the objects that numbers stand for; IndexError and KeyError where one is not there.
    """
    builder = _BUILDERS.get(cls)
    if builder is None:
        builder = _BUILDERS[cls] = _builder_of(cls)
    return builder(fields, {} if shared is None else shared)


def build_tables(classes: Iterable[type], written: Dict[str, List[Dict[str, Any]]]) -> Tables:
    """The objects of `SharedObjects.tables`, which come by the names of their classes. Numbers in them are of objects before them."""
    tables: Tables = {cls: [] for cls in classes}
    for cls, table in tables.items():
        for fields in written.get(cls.__name__, ()):
            table.append(build(cls, fields, tables))
    return tables


def _builder_of(cls: type) -> Callable[[Dict[str, Any], Tables], Any]:
    """`build` for one class. It fills the object's attributes itself: `__init__` takes three times as long, and traces have thousands."""
    hints = typing.get_type_hints(cls)
    every = dataclasses.fields(cls)
    names = frozenset(item.name for item in every)
    constants = {item.name: item.default for item in every if item.default is not dataclasses.MISSING}
    factories = [(item.name, item.default_factory) for item in every if item.default_factory is not dataclasses.MISSING]
    required = names - constants.keys() - {name for name, _ in factories}
    nested = [(item.name, inner) for item in every if (inner := _builder(hints[item.name])) is not None]

    def builder(fields: Dict[str, Any], shared: Tables) -> Any:
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
                state[name] = inner(fields[name], shared)
        return item

    return builder


def _builder(hint: Any) -> Any:
    """A function that turns plain JSON into a value of this type; None where there is nothing to do."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _nested(hint)
    args = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    if typing.get_origin(hint) in _UNIONS and len(args) == 1:
        inner = _builder(args[0])
        return inner and (lambda value, shared: None if value is None else inner(value, shared))
    if typing.get_origin(hint) is list:
        inner = _builder(args[0])
        return inner and (lambda value, shared: [inner(part, shared) for part in value])
    return None


def _nested(cls: type) -> Callable[[Any, Tables], Any]:
    """The builder of a class, found when it is first needed: a value holds values."""

    def nested(value: Any, shared: Tables) -> Any:
        if type(value) is int:
            return shared[cls][value]
        return (_BUILDERS.get(cls) or partial(build, cls))(value, shared)

    return nested
