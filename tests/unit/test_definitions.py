"""Names that a module's statements bind run what they need, and nothing else."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

import pytest

from shapelens.worker.loading.definitions import Definitions

HEAD = """
called = []

def batch(n):
    called.append("batch")
    return n

def model(x):
    called.append("model")
    return x

"""
FLAT = """
for step in range(5):
    if step % 2 == 0:
        print(model(step))
    x, y = batch((step, 7))
    loss = model(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NESTED = """
for epoch in range(5):
    model(epoch)
    for step, x in enumerate([batch(3), batch(4)]):
        out = model(x)
        out.backward()
"""
ENDLESS = """
while True:
    x = batch(5)
    y = model(x)
    y.backward()
"""


@pytest.mark.parametrize(
    ("loop", "name", "value", "called"),
    [
        (FLAT, "x", 0, ["batch"]),
        (FLAT, "y", 7, ["batch"]),
        (FLAT, "loss", 0, ["batch", "model"]),
        (FLAT, "step", 0, []),
        (NESTED, "x", 3, ["batch", "batch"]),
        (NESTED, "epoch", 0, []),
        (ENDLESS, "x", 5, ["batch"]),
        (ENDLESS, "y", 5, ["batch", "model"]),
    ],
)
def test_of_a_loop_that_trains_what_a_name_needs_runs_once(loop: str, name: str, value: int, called: list[str]) -> None:
    failures: list[BaseException] = []
    definitions = Definitions(ModuleType("program"), "program.py", False, lambda node, error: failures.append(error))
    definitions.run(ast.parse(HEAD + loop))
    found: list[Any] = [definitions[name], definitions[name]]
    assert not failures and found == [value, value]
    assert definitions["called"] == called
