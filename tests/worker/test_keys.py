"""Values are reduced to keys without running code of their classes."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch

from shapelens.worker.rewrite.site_table import SiteTable
from shapelens.worker.rewrite.sites import Site
from shapelens.worker.trace.recorder import Recorder
from shapelens.worker.trace.value_summary import key_of, number_key, value_of

X = torch.empty(2, 3, device="meta")


class Hostile:
    """Whatever is asked of it fails the test."""

    def refuse(self, *_: Any) -> Any:
        pytest.fail("code of the value ran")

    __iter__ = __len__ = __bool__ = __getattr__ = __eq__ = __hash__ = __repr__ = __str__ = refuse  # type: ignore[assignment]
    items = keys = property(refuse)


class HostileList(Hostile, list):  # type: ignore[type-arg]
    pass


class HostileDict(Hostile, dict):  # type: ignore[type-arg]
    pass


@dataclasses.dataclass
class Computed:
    kept: Any
    computed: Any

    @property  # type: ignore[no-redef]
    def computed(self) -> Any:
        pytest.fail("a property was read")

    @computed.setter
    def computed(self, value: Any) -> None:
        pass


@dataclasses.dataclass
class Slots:
    __slots__ = ("kept",)
    kept: Any


def shapes(value: Any) -> Any:
    found = value_of(key_of(value))
    if found.items is not None:
        return dict(zip(found.keys, map(shape, found.items), strict=True)) if found.keys else list(map(shape, found.items))
    return shape(found)


def shape(value: Any) -> Any:
    return value.shape if value.kind == "tensor" else value.text or value.type_name


def test_no_code_of_a_value_runs() -> None:
    hostile_list, hostile_dict, hostile = HostileList(), HostileDict(), Hostile()
    list.append(hostile_list, X)
    dict.__setitem__(hostile_dict, "x", X)
    hostile.__dict__["x"] = X
    assert shapes(hostile_list) == [[2, 3]]
    assert shapes(hostile_dict) == {"x": [2, 3]}
    assert shapes(hostile) == {"x": [2, 3]}
    assert shapes(Computed(X, 1)) == {"kept": [2, 3], "computed": "object"}
    assert shapes(Slots(X)) == {"kept": [2, 3]}


def test_parts_of_values() -> None:
    assert shapes((X, 1, None, "name", 0.5)) == [[2, 3], "1", "None", "str", "0.5"]
    assert shapes(collections.namedtuple("P", "a b")(X, X.mT)) == {"a": [2, 3], "b": [3, 2]}
    assert shapes(collections.deque([X])) == [[2, 3]]
    assert shapes(collections.UserDict(x=X)) == {"x": [2, 3]}
    assert shapes(X.max(1)) == {"values": [2], "indices": [2]}
    nothing: list[Any] = [3, (1, 2), {}, {"a": 1}, "x", object(), [(1, 2), (3, 4)], torch, torch.nn.ReLU, [None]]
    assert [key_of(value) for value in nothing] == [None] * len(nothing)
    assert value_of(number_key(X.shape)).items == [value_of(number_key(2)), value_of(number_key(3))]
    assert number_key("x") is number_key([1, "x"]) is number_key([]) is None


def test_a_site_keeps_a_few_numbers_and_counts_all() -> None:
    recorder = Recorder(SiteTable(), lambda module, site: None)
    recorder.add_file("f.py")
    first = len(recorder.sites)
    recorder.sites += [Site((1, 0, 1, 1), "assign", "n", "f"), Site((2, 0, 2, 1), "assign", "MEAN", "", defining=True)]
    for number in range(100):
        assert recorder.scalar(first, number) == number
    recorder.value(first + 1, X)
    recorder.start_example()
    assert recorder.seen == {}
    for number in range(100):
        recorder.scalar(first, number)
    seen = recorder.observations(0, lambda number, site: [(key, None) for key in site.counts], ["f.py"])
    assert [(item.name, item.count, len(item.values)) for item in seen] == [("n", 100, 16), ("MEAN", 1, 1)]
    assert [item.name for item in recorder.observations(1, lambda number, site: [], ["f.py"])] == ["n"]
