"""Small calls of torch, right ones and wrong ones, on real CPU tensors and in a run: where the two disagree, ShapeLens is wrong.

The wrong calls are right ones with one thing changed: a size, a dim more or less, a dtype, or a number of the expression.

`python tests/differential/harness.py [WORD] [--every N]` compares all of them (those whose expression holds the word; each N-th) and prints
what disagrees.
"""

from __future__ import annotations

import argparse
import collections
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))  # where it is run as a command

from differential.calls import all_calls
from shapelens.protocol import ExampleRequest, Run, Trace, Traced, Value
from shapelens.worker.process import warm
from shapelens.worker.run import execute

DTYPES = {
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i64": torch.int64,
    "bool": torch.bool,
    "c64": torch.complex64,
}
CASES_IN_A_RUN = 100
# What eager says of values that the CPU run made up, and of kernels that it lacks for half floats.
OF_VALUES = re.compile(
    r"singular|converge|probability|not implemented for '(Half|BFloat16)'|Unsupported dtype Half|all elements of (input|target)",
)


@dataclass(frozen=True)
class Case:
    """A call: `a @ b` of tensors in the directive's syntax, and what was changed in it."""

    expression: str
    tensors: tuple[str, ...]
    change: str = ""

    def __str__(self) -> str:
        return f"{self.expression} of {', '.join(self.tensors)}" + (f" ({self.change})" if self.change else "")


def cases(word: str = "") -> Iterator[Case]:
    """All calls whose expression holds the word, as they are and with each change."""
    for expression, tensors in all_calls():
        if word in expression:
            yield Case(expression, tuple(tensors))
            yield from _changed(expression, tensors)


def _changed(expression: str, tensors: list[str]) -> Iterator[Case]:
    for index, text in enumerate(tensors):
        dtype, sizes = text[:-1].split("[")
        dims = [int(size) for size in sizes.split(",") if size.strip()]
        others = [([*dims[:dim], size + 1, *dims[dim + 1 :]], f"dim {dim} + 1") for dim, size in enumerate(dims)]
        others += [([1, *dims], "a dim more"), (dims[1:], "a dim less")]
        for changed, change in others:
            yield Case(expression, _replaced(tensors, index, dtype, changed), f"{'abcd'[index]}: {change}")
        for other in DTYPES:
            if other != dtype:
                yield Case(expression, _replaced(tensors, index, other, dims), f"{'abcd'[index]}: {other}")
    for number in re.finditer(r"(?<![\w.])\d+(?![\w.])", expression):
        for difference in (1, -1, 7):
            changed_number = str(int(number.group()) + difference)
            text = expression[: number.start()] + changed_number + expression[number.end() :]
            yield Case(text, tuple(tensors), f"{number.group()} → {changed_number}")


def _replaced(tensors: list[str], index: int, dtype: str, dims: list[int]) -> tuple[str, ...]:
    return (*tensors[:index], f"{dtype}[{', '.join(map(str, dims)) or '()'}]", *tensors[index + 1 :])


# --- what really happens ---


def truth(case: Case) -> tuple[str, Any]:
    """("ok", shapes and dtypes) or ("error", message) of the call on CPU tensors, or ("unknown", message) where values decide."""
    torch.manual_seed(0)
    names = {name: _real(text) for name, text in zip("abcd", case.tensors, strict=False)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(case.expression, {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, **names})
    except Exception as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return ("unknown" if OF_VALUES.search(message) else "error"), message
    return "ok", _described(result)


def _real(text: str) -> torch.Tensor:
    dtype, sizes = text[:-1].split("[")
    dims = [int(size) for size in sizes.split(",") if size.strip() and size != "()"]
    kind = DTYPES[dtype]
    return torch.rand(dims, dtype=kind) if kind.is_floating_point or kind.is_complex else torch.zeros(dims, dtype=kind)


def _described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return list(value.shape), str(value.dtype)[6:]
    if isinstance(value, (tuple, list)):
        return [_described(item) for item in value]
    return None


# --- what a run says ---


def said(group: list[Case]) -> list[tuple[str, Any]]:
    """The same of a run on the meta device, where a finding is an error."""
    lines = ["import torch", "import torch.nn.functional as F", "from torch import nn", ""]
    requests = []
    for index, case in enumerate(group):
        names = "abcd"[: len(case.tensors)]
        lines += [f"def case_{index}({', '.join(names)}):", f"    return {case.expression}", ""]
        requests.append(ExampleRequest("", f"case_{index}({', '.join(case.tensors)})"))
    traces: list[Trace] = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Run(0, str(Path(folder) / "cases.py"), "\n".join(lines), folder, requests, deadline=600.0, named=False)
        execute(run, lambda message: traces.append(message.trace) if isinstance(message, Traced) else None)
        os.chdir(before)
    return [_said(traces[-1], index) for index in range(len(group))]


def _said(trace: Trace, index: int) -> tuple[str, Any]:
    found = [mismatch for mismatch in trace.mismatches if mismatch.example == index]
    if found:
        return ("unknown" if found[0].code == "data-dependent" else "error"), found[0].message
    if trace.examples[index].error:
        return "error", trace.examples[index].error
    returned = [seen for seen in trace.observations if seen.example == index and seen.kind == "return"]
    return ("ok", _of_value(returned[0].values[0])) if returned else ("ok", None)


def _of_value(value: Value) -> Any:
    if value.kind == "tensor":
        return value.shape, value.dtype
    return [_of_value(item) for item in value.items or []] if value.kind == "sequence" else None


def disagreements(chosen: list[Case]) -> list[tuple[str, Case, Any, Any]]:
    """(kind, case, truth, what was said); kind: "false alarm", "missed" or "wrong"."""
    warm.load_kernels()  # As a worker does, before anything of torch is replaced for a run.
    found = []
    for start in range(0, len(chosen), CASES_IN_A_RUN):
        group = chosen[start : start + CASES_IN_A_RUN]
        for case, (shown, words) in zip(group, said(group), strict=True):
            real, fact = truth(case)
            if real == "unknown" or shown == "unknown":
                continue
            if real != shown:
                found.append(("false alarm" if real == "ok" else "missed", case, fact, words))
            elif real == "ok" and not _agree(fact, words):
                found.append(("wrong", case, fact, words))
    return found


def _agree(fact: Any, shown: Any) -> bool:
    """Whether what is shown is true: sizes that are not known agree with all."""
    if isinstance(fact, tuple) and isinstance(shown, tuple):
        sizes = len(fact[0]) == len(shown[0]) and all(size is None or size == real for real, size in zip(fact[0], shown[0], strict=True))
        return bool(sizes and fact[1] == shown[1])
    if isinstance(fact, list) and isinstance(shown, list):
        return len(fact) == len(shown) and all(map(_agree, fact, shown))
    return fact is None or shown is None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    every = list(cases(options.word))[:: options.every]
    result = disagreements(every)
    for kind, case, fact, words in result:
        print(f"{kind}: {case}\n    eager: {str(fact)[:160]}\n    said:  {str(words)[:160]}")
    print(f"{len(every)} calls:", dict(collections.Counter(kind for kind, *_ in result)))
