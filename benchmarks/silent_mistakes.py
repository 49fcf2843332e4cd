"""Plants silent mistakes into working models: shapes stay as they are, numbers do not. Then counts what `shapelens check` says of them.

    python benchmarks/silent_mistakes.py plant CASES.jsonl CORPUS OUT.jsonl     # with an interpreter that runs the models
    python benchmarks/silent_mistakes.py check OUT.jsonl CORPUS PYTHON [--example] [--only KIND] [--every N]

A case is a line of JSON: `repo`, `file`, `entry` (builds the model), `args` (calls it). A mistake counts as planted where the model's
outputs on the CPU keep their shapes and have other values. The right file is checked too: what it says is no find. The first fix of a
mistake restores the model where the outputs on the CPU are those of the right file again.

Kinds: view-split, view-join, reshape-for-permute, flatten-order (the view family), batch-first, softmax-dim, reduction-dim,
permute-order, mask-dropped.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import collections
import itertools
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from shapelens.batch import Batch

VIEWS = ("view", "reshape")
TURNS = ("transpose", "permute", "swapaxes")
CODES = {
    "torn-view",
    "batch-mix",
    "batch-first",
    "attention-axis",
    "softmax-dim",
    "future-leak",
    "ignored-input",
    "shape-comment",
    "loss-input",
}
_MADE = re.compile(r"torch\.rand(?:n?\(|int\((?P<high>\d+, \d+, \())(?P<size>\d+)(?P<rest>, [\d, ]+)\)(?(high)\))")
RUN = """
import contextlib, importlib, json, random, sys, types
import torch

def flat(out):
    if isinstance(out, torch.Tensor):
        yield out
    elif isinstance(out, (dict, list, tuple)):
        for value in out.values() if isinstance(out, dict) else out:
            yield from flat(value)
    elif hasattr(out, "__dict__"):
        for value in vars(out).values():
            yield from flat(value)

def outputs(job, source):
    package = job["module"].rpartition(".")[0]
    if package:
        importlib.import_module(package)
    module = sys.modules[job["module"]] = types.ModuleType(job["module"])
    names = module.__dict__
    names.update(__package__=package, __file__=job["file"])
    exec(compile(source, job["file"], "exec"), names)
    names.setdefault("torch", torch)
    torch.manual_seed(0); random.seed(0)
    model = eval(job["entry"], names)
    with torch.no_grad():
        for each in model.parameters():
            if each.is_floating_point() and float(each.abs().sum()) == 0:
                each.normal_(0, 0.02)
        model.eval()
        torch.manual_seed(1); random.seed(1)
        return list(flat(eval("model(%s)" % job["args"], {**names, "model": model})))

def is_close(one, other):
    return torch.allclose(one, other, 1e-4, 1e-6, equal_nan=True) if one.is_floating_point() else torch.equal(one, other)

def verdict(job):
    sys.path[:0] = [place for place in job["paths"] if place not in sys.path]
    right, again, wrong = outputs(job, job["source"]), outputs(job, job["source"]), outputs(job, job["mutated"])
    if len(right) != len(wrong) or any(one.shape != other.shape for one, other in zip(right, wrong)):
        return "shapes"
    if not all(map(torch.equal, right, again)):
        return "unsteady"
    return "equal" if all(map(is_close, right, wrong)) else "planted"

for line in sys.stdin:
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = verdict(json.loads(line))
        except BaseException as error:
            answer = "fails: %s" % type(error).__name__
    print(json.dumps(answer), flush=True)
"""


Planted = tuple[str, ast.AST, str]  # the kind of a mistake, the expression that it replaces, and its new text


class PlaceOfMistake(NamedTuple):
    """A call in a text, in which mistakes can be planted."""

    source: str
    node: ast.Call

    @property
    def name(self) -> str:
        """The name of the function or method."""
        return self.node.func.attr if isinstance(self.node.func, ast.Attribute) else getattr(self.node.func, "id", "")

    @property
    def inner(self) -> ast.expr | None:
        """What a method is called of; None for a function."""
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    @property
    def is_of_module(self) -> bool:
        """True if it is a function of a module of torch's."""
        return self.inner is not None and self.text(self.inner) in ("F", "torch", "nn.functional")

    def text(self, node: ast.AST) -> str:
        """What is written for an expression."""
        return ast.get_source_segment(self.source, node) or ""


def mutations(source: str) -> Iterator[Planted]:
    """Each mistake that can be planted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            for kind in KINDS:
                yield from kind(PlaceOfMistake(source, node))


def _view_split(call: PlaceOfMistake) -> Iterator[Planted]:
    """`x.view(b, c, h).transpose(1, 2)` → `x.view(b, h, c)`"""
    node, inner = call.node, call.inner
    if call.name in TURNS and isinstance(inner, ast.Call) and _is_method(inner, VIEWS) and not node.keywords and _numbers(node.args):
        sizes = inner.args[0].elts if len(inner.args) == 1 and isinstance(inner.args[0], (ast.Tuple, ast.List)) else inner.args
        order = _order(call.name, _numbers(node.args), len(sizes))
        if order is not None and not any(isinstance(size, ast.Starred) for size in sizes):
            new = ", ".join(call.text(sizes[place]) for place in order)
            yield "view-split", node, f"{call.text(inner.func)}({new})"


def _view_join(call: PlaceOfMistake) -> Iterator[Planted]:
    """`x.transpose(1, 2).reshape(b, -1)` → `x.reshape(b, -1)`"""
    if call.name in (*VIEWS, "flatten") and call.inner is not None:
        turned = call.inner
        while isinstance(turned, ast.Call) and _is_method(turned, ("contiguous",)):
            turned = turned.func.value  # type: ignore[attr-defined]
        if isinstance(turned, ast.Call) and _is_method(turned, TURNS):
            start, whole = call.text(turned.func.value), call.text(call.node)  # type: ignore[attr-defined]
            yield "view-join", call.node, f"{start}{whole[whole.rindex(f'.{call.name}') :].replace('.view(', '.reshape(')}"


def _reshape_for_permute(call: PlaceOfMistake) -> Iterator[Planted]:
    """`x.permute(0, 2, 1)` → `x.reshape(x.size(0), x.size(2), x.size(1))`"""
    node, inner, name = call.node, call.inner, call.name
    if name in TURNS and inner is not None and not isinstance(inner, ast.Call) and not node.keywords:
        numbers = _numbers(node.args)
        rank = len(numbers) if name == "permute" else None
        if numbers and (rank or (name != "permute" and min(numbers) >= 0)):
            order = _order(name, numbers, rank or max(numbers) + 1)
            if order is not None:
                base = call.text(inner)
                sizes = ", ".join(f"{base}.size({place})" for place in order)
                tail = "" if name == "permute" else f", *{base}.shape[{max(numbers) + 1}:]"
                yield "reshape-for-permute", node, f"{base}.reshape({sizes}{tail})"


def _flatten_order(call: PlaceOfMistake) -> Iterator[Planted]:
    """`x.flatten(2).transpose(1, 2)` → `x.reshape(x.size(0), -1, x.size(1))`"""
    inner = call.inner
    if call.name == "transpose" and _numbers(call.node.args) in ([1, 2], [2, 1]) and isinstance(inner, ast.Call):
        base = call.text(inner.func.value) if isinstance(inner.func, ast.Attribute) else ""
        if _is_method(inner, ("flatten",)) and _numbers(inner.args) == [2]:
            yield "flatten-order", call.node, f"{base}.reshape({base}.size(0), -1, {base}.size(1))"


def _keyword(call: PlaceOfMistake, kind: str, name: str) -> Iterator[Planted]:
    for keyword in call.node.keywords:
        if keyword.arg == name and isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
            yield kind, keyword.value, "False"


def _batch_first(call: PlaceOfMistake) -> Iterator[Planted]:
    """`batch_first=True` → `batch_first=False`"""
    return _keyword(call, "batch-first", "batch_first")


def _softmax_dim(call: PlaceOfMistake) -> Iterator[Planted]:
    """Another dim of a softmax."""
    if call.name in ("softmax", "log_softmax", "Softmax"):
        dim = _dim(call.node, 0 if call.name == "Softmax" or (call.inner is not None and not call.is_of_module) else 1)
        yield from _other_dims(call, "softmax-dim", dim)


def _reduction_dim(call: PlaceOfMistake) -> Iterator[Planted]:
    """Another dim of a reduction that keeps it."""
    if call.name in ("mean", "sum", "norm", "normalize", "std", "var", "cumsum", "max", "amax") and call.inner is not None:
        dim = _dim(call.node, 1 if call.is_of_module else 0)
        if any(keyword.arg == "keepdim" for keyword in call.node.keywords) or call.name in ("normalize", "cumsum"):
            yield from _other_dims(call, "reduction-dim", dim)


def _other_dims(call: PlaceOfMistake, kind: str, dim: ast.expr | None) -> Iterator[Planted]:
    for new in ("0", "1", "-2"):
        if dim is not None and call.text(dim) != new:
            yield kind, dim, new


def _permute_order(call: PlaceOfMistake) -> Iterator[Planted]:
    """Two neighbouring dims of a permute swapped."""
    numbers = _numbers(call.node.args) if call.name == "permute" else []
    for one in range(len(numbers) - 1) if len(numbers) >= 3 else ():
        changed = [*numbers]
        changed[one], changed[one + 1] = changed[one + 1], changed[one]
        yield "permute-order", call.node, f"{call.text(call.node.func)}({', '.join(map(str, changed))})"


def _mask_dropped(call: PlaceOfMistake) -> Iterator[Planted]:
    """`x.masked_fill(mask, 0)` → `x`, `is_causal=True` → `is_causal=False`"""
    if call.name in ("masked_fill", "masked_fill_") and call.inner is not None:
        yield "mask-dropped", call.node, call.text(call.inner)
    yield from _keyword(call, "mask-dropped", "is_causal")


KINDS: tuple[Callable[[PlaceOfMistake], Iterator[Planted]], ...] = (
    _view_split,
    _view_join,
    _reshape_for_permute,
    _flatten_order,
    _batch_first,
    _softmax_dim,
    _reduction_dim,
    _permute_order,
    _mask_dropped,
)


def _is_method(node: ast.Call, names: tuple[str, ...]) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in names


def _numbers(nodes: list[ast.expr]) -> list[int]:
    """The numbers of arguments; [] where one is something else."""
    if len(nodes) == 1 and isinstance(nodes[0], (ast.Tuple, ast.List)):
        nodes = nodes[0].elts
    try:
        found = [ast.literal_eval(node) for node in nodes]
    except ValueError:
        return []
    return found if all(type(number) is int for number in found) else []


def _order(name: str, numbers: list[int], rank: int) -> list[int] | None:
    """Where each dim of the result of a transpose or permute comes from."""
    if any(not -rank <= number < rank for number in numbers):
        return None
    numbers = [number % rank for number in numbers]
    if name == "permute":
        return numbers if sorted(numbers) == list(range(rank)) else None
    if len(numbers) != 2:
        return None
    order = list(range(rank))
    order[numbers[0]], order[numbers[1]] = numbers[1], numbers[0]
    return order


def _dim(node: ast.Call, place: int) -> ast.expr | None:
    for keyword in node.keywords:
        if keyword.arg == "dim":
            return keyword.value if _is_number(keyword.value) else None
    return node.args[place] if len(node.args) > place and _is_number(node.args[place]) else None


def _is_number(node: ast.expr) -> bool:
    return len(_numbers([node])) == 1 and not isinstance(node, (ast.Tuple, ast.List))


def _replaced(source: str, node: ast.AST, new: str) -> str:
    lines = source.splitlines(keepends=True)
    offset = lambda line, column: sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())  # noqa: E731
    start, end = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    return source[:start] + new + source[end:]


class CpuRuns:
    """A process that runs a model of right and of changed text on the CPU and compares the outputs. Used as a context."""

    def __init__(self, python: str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([python, "-c", RUN], text=True, **pipes)

    def __enter__(self) -> CpuRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def verdict(self, case: dict[str, str], corpus: pathlib.Path, source: str, changed: str) -> str:
        """ "planted" where the outputs have the same shapes and other values, "equal", "shapes", "unsteady", "fails: …" or "died"."""
        root, file = corpus / case["repo"], corpus / case["repo"] / case["file"]
        module, above = file.stem, file.parent
        while (above / "__init__.py").exists():
            module, above = f"{above.name}.{module}", above.parent
        job = {**case, "paths": [str(above), str(root), str(file.parent)], "module": module, "file": str(file)}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps({**job, "source": source, "mutated": changed}) + "\n")
            stdin.flush()
        except BrokenPipeError:
            return "died"
        answer = stdout.readline()
        return str(json.loads(answer)) if answer else "died"


def plant(cases: pathlib.Path, corpus: pathlib.Path, out: pathlib.Path, most: int) -> None:
    """Writes the mistakes that keep all shapes and change numbers, a line of JSON each."""
    counts: collections.Counter[str] = collections.Counter()
    with out.open("w") as written:
        for line in cases.read_text().splitlines():
            case = json.loads(line)
            file = corpus / case["repo"] / case["file"]
            if not file.exists():
                continue
            source, taken = file.read_text(), collections.Counter[str]()
            with CpuRuns(sys.executable) as runs:
                for kind, node, new in mutations(source):
                    if taken[kind] >= most:
                        continue
                    verdict = runs.verdict(case, corpus, source, _replaced(source, node, new))
                    counts[f"{kind}: {verdict.split(':')[0]}"] += 1
                    if verdict == "died":
                        break
                    if verdict == "planted":
                        taken[kind] += 1
                        place = {"line": node.lineno, "end": node.end_lineno, "old": ast.get_source_segment(source, node), "new": new}  # type: ignore[attr-defined]
                        written.write(json.dumps({**case, "kind": kind, **place, "column": node.col_offset}) + "\n")  # type: ignore[attr-defined]
                        written.flush()
    for name, count in sorted(counts.items()):
        print(f"{count:5} {name}")


async def check(planted: pathlib.Path, corpus: pathlib.Path, python: str, *, example: bool, only: str, every: int) -> None:
    """Prints how many of the mistakes are told, at their line, and by kind."""
    from shapelens.batch import Batch
    from shapelens.project_scope import ProjectScope

    rows = [json.loads(line) for line in planted.read_text().splitlines()]
    rows = [row for row in rows if only in row["kind"]][::every]
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    scope = ProjectScope()
    for (repo, name), of_file in itertools.groupby(rows, key=lambda row: (row["repo"], row["file"])):
        file = corpus / repo / name
        right: dict[str, set[tuple[str, str]]] = {}
        async with Batch(python or None, root=scope.project_root(file), scope=scope) as batch:
            for row in of_file:
                await _check_one(batch, row, corpus, python, table[row["kind"]], right, example=example)
    for kind, counts in sorted(table.items()):
        print(f"{kind:20}", dict(counts))


async def _check_one(
    batch: Batch,
    row: dict[str, Any],
    corpus: pathlib.Path,
    python: str,
    counts: collections.Counter[str],
    right: dict[str, set[tuple[str, str]]],
    *,
    example: bool,
) -> None:
    """Counts what is told of one mistake. right: what is told of the right file, by the example."""
    from shapelens.source.position_map import apply

    file = corpus / row["repo"] / row["file"]
    source = file.read_text()
    mutated, line = _with(source, row), row["line"]
    examples = [f"{row['entry']}({_named_batch(row['args'])})"] if example else None
    if row["entry"] not in right:
        findings = (await batch.analyse(file, source, examples=examples, importers=not example)).findings
        right[row["entry"]] = {(each.code, each.message) for each in findings}
        for code, message in sorted(right[row["entry"]]):
            if code in CODES:
                print(f"right  {file}: {code}: {message}", flush=True)
    findings = (await batch.analyse(file, mutated, examples=examples, importers=not example)).findings
    found = [each for each in findings if (each.code, each.message) not in right[row["entry"]]]
    silent = [each for each in found if each.code in CODES]
    at_line = [each for each in silent if -1 <= each.span.start.line - line <= row["end"] - row["line"] + 1]
    fix = next((each.fix for each in at_line if each.fix is not None), None)
    restored = ""
    if fix is not None and fix.file == str(file):
        with CpuRuns(python or sys.executable) as runs:
            restored = runs.verdict(row, corpus, source, apply(mutated, fix.edits))
    counts["planted"] += 1
    counts["told"] += bool(found)
    counts["by a code of silent mistakes"] += bool(silent)
    counts["at its line"] += bool(at_line)
    counts["with a fix there"] += fix is not None
    counts["restored by the first fix"] += restored == "equal"
    verdict = "found " if at_line else "else  " if found else "missed"
    said = [(each.code, each.span.start.line) for each in found]
    fixed = f" {fix.title}: {restored}" if fix is not None else ""
    place = f"{row['repo']}/{row['file']}:{line}"
    print(f"{verdict} {row['kind']:20} {place} {row['old'][:60]!r} -> {row['new'][:60]!r} {said}{fixed}", flush=True)


def _named_batch(args: str) -> str:
    """Arguments as people write them in an example: `f32[B:2, 3, 32, 32]` for `torch.randn(2, 3, 32, 32)`."""
    batch = ""

    def shorthand(found: re.Match[str]) -> str:
        nonlocal batch
        size = found["size"]
        name = f"B:{size}" if not batch else "B" if size == batch else size
        batch = batch or size
        return f"{'f32' if found['high'] is None else 'i64'}[{name}{found['rest']}]"

    return _MADE.sub(shorthand, args)


def _with(source: str, row: dict[str, Any]) -> str:
    """The text with a planted mistake."""
    lines = source.splitlines(keepends=True)
    start = sum(map(len, lines[: row["line"] - 1])) + len(lines[row["line"] - 1].encode()[: row["column"]].decode())
    return source[:start] + row["new"] + source[start + len(row["old"]) :]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["plant", "check"])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("target", help="the file to write, or the interpreter that runs the models")
    parser.add_argument("--example", action="store_true", help="with the case's example alone")
    parser.add_argument("--only", default="", help="kinds with this in their names")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, default=2, help="mistakes of a kind in a file")
    options = parser.parse_args()
    if options.what == "plant":
        plant(options.cases, options.corpus, pathlib.Path(options.target), options.most)
    else:
        asyncio.run(check(options.cases, options.corpus, options.target, example=options.example, only=options.only, every=options.every))
