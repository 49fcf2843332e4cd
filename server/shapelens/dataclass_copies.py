"""Copies of dataclasses with some other fields: of the thousands that a trace is made of, where each run has these put together anew."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def with_fields(instance: T, **fields: Any) -> T:
    """As `dataclasses.replace`, in a fourth of the time: `__init__` is not called. For dataclasses without slots that compute no field."""
    copy: T = object.__new__(type(instance))
    copy.__dict__.update(instance.__dict__)
    copy.__dict__.update(fields)
    return copy
