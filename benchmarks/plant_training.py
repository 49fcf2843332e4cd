"""Are mistakes in training code found? Mistakes are planted in programs, each one that fails or silently broadcasts on the CPU.

    python benchmarks/plant_training.py PROGRAMS... --python PYTHON [--count N] [--per-program N] [--only TEXT] [--json OUT]

`PROGRAMS` are files, or folders whose *.py files are taken; `PYTHON` has torch and what the programs import. Mistakes are made outside of
`forward` and `__init__`, where the CPU run of the program (real_program.py) comes to: dims of reductions, sizes of views, calls that are
forgotten (`squeeze`, `reshape`, `argmax`), targets with a dim more or less or of another dtype, losses that are not reduced or detached,
metrics that compare each with each. Counted are:

  planted     mistakes that the CPU run fails at where it did not before, warns of, or that broadcast by their making
  found       there is an error or warning that the original does not have
  at_edit     the finding or one of its related places lies in an edited line
  fixed       the finding has a fix
  originals   programs without a mistake that have an error or warning (listed)
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from program_truth import ELSEWHERE, Cpu, files

from shapelens.analysis.findings.findings import Finding
from shapelens.batch import Batch
from shapelens.source.files import read

COUNTED = ("error", "warning")
REDUCTIONS = ("sum", "mean", "max", "min", "argmax", "argmin", "cat", "stack", "prod", "std")
FORGOTTEN = ("squeeze", "unsqueeze", "reshape", "view", "flatten", "permute", "transpose", "argmax", "mean", "sum", "float", "long", "t")
LOSSES = ("criterion", "cross_entropy", "mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss", "loss_fn")
LOSS_LAYERS = ("CrossEntropyLoss", "MSELoss", "BCELoss", "BCEWithLogitsLoss", "NLLLoss", "L1Loss")
BROADCASTS = "each with each"  # a kind of mistake that no exception tells


@dataclass(frozen=True)
class Mistake:
    """A mistake in a text: what was written over which part of it, offsets in characters."""

    kind: str
    start: int
    end: int
    new: str
    lines: tuple[int, int]
    needs: tuple[str, ...] = ()  # names that have to hold vectors for the mistake to be one

    def made_in(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


class _Planter(ast.NodeVisitor):
    """The mistakes that can be made in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Mistake] = []
        self.compared: dict[str, str] = {}  # `predicted` of `predicted == labels`, with the other name
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = text.splitlines(keepends=True)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _source(self, node: ast.expr) -> str:
        return self.text[self._at(node.lineno, node.col_offset) : self._at(node.end_lineno or 0, node.end_col_offset or 0)]

    def _replace(self, kind: str, node: ast.expr, new: str, needs: tuple[str, ...] = ()) -> None:
        start, end = self._at(node.lineno, node.col_offset), self._at(node.end_lineno or 0, node.end_col_offset or 0)
        self.found.append(Mistake(kind, start, end, new, (node.lineno, node.end_lineno or node.lineno), needs))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in ELSEWHERE:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if name in REDUCTIONS:
            self._other_dim(node, name)
        if name in ("view", "reshape") and isinstance(node.func, ast.Attribute):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, int) and argument.value > 1:
                    self._replace("size of a view", argument, str(argument.value + 1))
                elif isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Mult):
                    self._replace("size of a view", argument, self._source(argument) + " + 1")
        if name in FORGOTTEN and isinstance(node.func, ast.Attribute) and self._is_tensor(node.func.value):
            self._replace(f"{name} forgotten", node, self._source(node.func.value))
        if (name in LOSSES or name.endswith(("loss", "criterion", "cost_fn"))) and len(node.args) == 2:
            given, target = map(self._source, node.args)
            if not isinstance(node.args[1], ast.Starred):
                self._replace("target with a dim more", node.args[1], f"{self._bracketed(target)}.unsqueeze(1)")
                self._replace("target of floats", node.args[1], f"{self._bracketed(target)}.float()")
                self._replace("target of integers", node.args[1], f"{self._bracketed(target)}.long()")
                self._replace("target without a dim", node.args[1], f"{self._bracketed(target)}.sum()")
                self._replace("scores without a dim", node.args[0], f"{self._bracketed(given)}.mean(0)")
                self._replace("scores the other way round", node.args[0], f"{self._bracketed(given)}.t()")
                self._replace("input and target swapped", node, self._source(node.func) + f"({target}, {given})")
        if name in LOSS_LAYERS and not node.args and not node.keywords:
            self._replace("loss not reduced", node, self._source(node.func) + '(reduction="none")')
        if name == "backward" and isinstance(node.func, ast.Attribute) and not node.args:
            self._replace("loss detached", node, f"{self._source(node.func.value)}.detach().backward()")

    def visit_Assign(self, node: ast.Assign) -> None:
        """`_, predicted = torch.max(outputs, 1)` with keepdim, where `predicted == labels` follows: each is compared with each."""
        self.generic_visit(node)
        call, target = node.value, node.targets[0]
        name = target.elts[-1] if isinstance(target, ast.Tuple) else target
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not isinstance(name, ast.Name):
            return
        if call.func.attr in ("argmax", "max") and self.compared.get(name.id) and not any(each.arg == "keepdim" for each in call.keywords):
            self._replace(BROADCASTS, call, self._source(call)[:-1] + ", keepdim=True)", (name.id, self.compared[name.id]))

    def _is_tensor(self, node: ast.expr) -> bool:
        return not (isinstance(node, ast.Name) and node.id in ("torch", "np", "F", "nn", "pd", "plt"))

    def _bracketed(self, text: str) -> str:
        node = ast.parse(text.strip(), mode="eval").body
        return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"

    def _other_dim(self, node: ast.Call, name: str) -> None:
        of_torch = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        dims = [keyword.value for keyword in node.keywords if keyword.arg in ("dim", "axis")] + node.args[1 if of_torch else 0 :][:1]
        for dim in dims:
            if isinstance(dim, ast.Constant) and type(dim.value) is int:
                self._replace(f"dim of {name}", dim, "0" if dim.value else "1")
            elif isinstance(dim, ast.UnaryOp):
                self._replace(f"dim of {name}", dim, "0")


def mistakes(text: str) -> list[Mistake]:
    """The mistakes to try in a text, those of each kind in turn."""
    planter, tree = _Planter(text), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and isinstance(node.comparators[0], ast.Name):
            planter.compared[node.left.id] = node.comparators[0].id
    planter.visit(tree)
    by_kind: dict[str, list[Mistake]] = {}
    for mistake in planter.found:
        by_kind.setdefault(mistake.kind, []).append(mistake)
    return [
        group[number] for number in range(max(map(len, by_kind.values()), default=0)) for group in by_kind.values() if number < len(group)
    ]


def is_mistake(mistake: Mistake, before: dict[str, Any], after: dict[str, Any] | None) -> bool:
    """Whether the CPU run tells a mistake: a statement fails that did not, it warns of a broadcast, or each is compared with each."""
    if after is None:
        return False
    failed = {(line, message.partition(":")[0]) for line, message in before["failures"]}
    new = [(line, message) for line, message in after["failures"] if (line, message.partition(":")[0]) not in failed]
    if any(message.startswith(("RuntimeError", "ValueError", "IndexError")) for _, message in new):
        return True
    if any("target size" in said for said in set(after["warnings"]) - set(before["warnings"])):
        return True
    if mistake.kind != BROADCASTS or new:
        return False
    held = {name: shapes for _, name, _, shapes in before["seen"]}
    vectors = all(
        any(len(shape) == 1 and isinstance(shape[0], int) and shape[0] > 1 for shape in held.get(name, ())) for name in mistake.needs
    )
    return bool(mistake.needs) and vectors


def _keys(findings: list[Finding]) -> Counter[tuple[str, int]]:
    return Counter((each.code, each.span.line) for each in findings if each.severity in COUNTED)


def _lines(finding: Finding) -> Iterator[tuple[int, int]]:
    yield finding.span.line, finding.span.end_line
    for related in finding.related:
        if related.file in (None, finding.file):
            yield related.span.line, related.span.end_line


async def main() -> int:
    """Plant mistakes in the programs that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--per-program", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    records: list[dict[str, Any]] = []
    cpu = Cpu(options.python)
    for file in [each.resolve() for each in files(options.programs) if options.only in str(each)]:
        if total["planted"] >= options.count:
            break
        text = read(file)
        before = cpu.run(file, text)
        if before is None:
            continue
        async with Batch(options.python, root=file.parent) as batch:
            original = await batch.analyse(file, text)
            alarms = [each for each in original.findings if each.severity in COUNTED]
            total["programs"] += 1
            total["originals"] += bool(alarms)
            print(
                file,
                *(f"    ORIGINAL {each.severity} {each.code} line {each.span.line}: {each.message}" for each in alarms),
                sep="\n",
                flush=True,
            )
            planted = 0
            for mistake in mistakes(text):
                if planted >= options.per_program or total["planted"] >= options.count:
                    break
                wrong = mistake.made_in(text)
                if not is_mistake(mistake, before, cpu.run(file, wrong)):
                    continue
                planted += 1
                said = await batch.analyse(file, wrong)
                left = _keys(said.findings) - _keys(original.findings)
                new = [each for each in said.findings if (each.code, each.span.line) in left and each.severity in COUNTED]
                first, last = mistake.lines
                at_edit = [each for each in new if any(start <= last and first <= end for start, end in _lines(each))]
                fixed = any(each.fix is not None for each in new)
                total.update({"planted": 1, "found": bool(new), "at_edit": bool(at_edit), "fixed": fixed})
                outcome = "MISSED" if not new else "found" if at_edit else "ELSEWHERE"
                words = "; ".join(f"{each.code} line {each.span.line}" for each in new[:3])
                print(f"    {outcome} {mistake.kind}, line {first}: {mistake.new}: {words}", flush=True)
                records.append(
                    {"file": str(file), "kind": mistake.kind, "line": first, "new": mistake.new, "outcome": outcome, "text": wrong}
                )
        if options.json:
            options.json.write_text(json.dumps(records, indent=1))
    print(", ".join(f"{word} {total[word]}" for word in ("programs", "originals", "planted", "found", "at_edit", "fixed")))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
