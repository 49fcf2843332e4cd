"""Arguments of examples that call something: a number that takes long to compute is computed for one attempt only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shapelens.worker.evaluation.expression import MAKE, ONCE, compile_expression


def asked(expression: str) -> list[str]:
    texts: list[str] = []

    def once(text: str, make: Callable[[], Any]) -> Any:
        texts.append(text)
        return make()

    def call(*args: Any, **kwargs: Any) -> Any:
        return call

    names = {"Net": call, "Config": call, "read": lambda path: [1, 2], "path": "a", ONCE: once, MAKE: call}
    eval(compile_expression(expression, once=True), names)
    return texts


def test_arguments_that_call_something_are_asked_for_by_their_text() -> None:
    assert asked("Net(len(read(path)), 3, path)(f32[2, 3])") == ["len(__shapelens_once__('read(path)', lambda: read(path)))", "read(path)"]


def test_tensors_by_shorthands_and_plain_arguments_are_not() -> None:
    assert asked("Net(3, depth=4)(f32[2, len(path)], Config(i64[3]))") == []
