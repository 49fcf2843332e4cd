"""The replay of found examples on real tensors (benchmarks/replay.py): it agrees with what is true, and notices what is not."""

from __future__ import annotations

import copy
import sys
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from benchmarks.replay import Cpu, compare, dims_of, evaluated, replay

from forked_workers import forked_workers as forked_workers
from shapelens.batch import Batch
from shapelens.report.document import document
from shapelens.source.files import read

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


@pytest_asyncio.fixture(scope="module")
async def batch() -> AsyncIterator[Batch]:
    async with Batch(sys.executable, root=FIXTURES) as started:
        yield started


@pytest_asyncio.fixture(scope="module")
async def cpu() -> AsyncIterator[Cpu]:
    started = Cpu(sys.executable, 60)
    yield started
    await started.stop()


@pytest.mark.parametrize("name", ["structure/two_classes.py", "inputs_said/containers.py"])
async def test_what_is_shown_is_what_real_tensors_hold(name: str, batch: Batch, cpu: Cpu) -> None:
    sure, doubtful = await replay(batch, cpu, FIXTURES / name, name)
    counts = sure.counts
    assert counts["examples"] == counts["ran"] > 0 and counts["shapes"] == counts["equal"] > 10, sure.lines
    assert counts["formulas"] == counts["right"] > 10 and sure.lines == []
    assert doubtful.counts["examples"] == 0


async def test_a_wrong_shape_and_a_wrong_formula_are_noticed(batch: Batch, cpu: Cpu) -> None:
    file = FIXTURES / "structure" / "two_classes.py"
    shown = document(await batch.analyse(file, read(file), fixes=False))
    example = shown["examples"][0]
    runs = [answer for answer in await cpu.run(file, example) if "record" in answer]
    said = [seen for seen in shown["observations"] if seen["example"] == 0]
    right = compare(said, example["dims"], runs, "x.py")
    number = next(index for index, seen in enumerate(said) if seen["kind"] == "return" and len(seen["shapes"]) == 1)

    def changed(**fields: Any) -> list[dict[str, Any]]:
        others = copy.deepcopy(said)
        others[number].update(fields)
        return others

    (shape,), (label,) = said[number]["shapes"], said[number]["named"]
    assert label.startswith("[B, ")
    wrong = compare(changed(shapes=[[*shape[:-1], shape[-1] + 1]]), example["dims"], runs, "x.py")
    assert (wrong.counts["different"], wrong.counts["equal"]) == (1, right.counts["equal"] - 1)
    assert wrong.lines[0].startswith(f"different  x.py:{said[number]['line']} return: observed")
    unknown = compare(changed(shapes=[[*shape[:-1], None]]), example["dims"], runs, "x.py")
    assert (unknown.counts["different"], unknown.counts["unknown"]) == (0, 1)
    wrong = compare(changed(named=[label.replace("[B, ", "[B+1, ")]), example["dims"], runs, "x.py")
    assert (wrong.counts["wrong"], wrong.counts["different"], right.counts["wrong"]) == (len(runs) - 1, 0, 0)
    wrong = compare(changed(named=[label.replace("[B, ", "[C, ")]), example["dims"], runs, "x.py")
    assert wrong.counts["wrong"] == len(runs) - 1


async def test_an_example_that_real_tensors_cannot_take_says_why(cpu: Cpu) -> None:
    file = FIXTURES / "structure" / "two_classes.py"
    answers = await cpu.run(file, {"expression": "nn.Linear(3, 4)(f32[B:2, 5])", "dims": {"B": 2}})
    assert "mat1 and mat2 shapes cannot be multiplied" in answers[-1]["error"]


@pytest.mark.parametrize(
    ("dim", "size"), [("28", 28), ("B", 2), ("B·T", 16), ("3·T/4-1", 5), ("T/3", Fraction(8, 3)), ("2·B+10", 14), ("?", None)]
)
def test_formulas(dim: str, size: Fraction | None) -> None:
    assert evaluated(dim, {"B": 2, "T": 8}) == size


def test_dims_of_labels() -> None:
    assert dims_of("(bool[B, T], {h: [2·B] ×2}, 3)") == [["B", "T"], ["2·B"], ["2·B"]]
