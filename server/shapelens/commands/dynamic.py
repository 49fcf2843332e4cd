"""`shapelens show FILE[::CLASS] --dynamic`: which dims of each model's inputs may vary, as `torch.export.export` takes them."""

from __future__ import annotations

import ast
import keyword
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapelens.analysis.findings.findings import findings
from shapelens.analysis.shapes import SHORT_DTYPES
from shapelens.analysis.structure.dynamic_dims import DynamicDims, Fixed, Sizes, Varying, Way, dynamic_dims, way_of
from shapelens.batch import Analysed, Batch
from shapelens.commands import RefusedRequest
from shapelens.examples.expression import SHORTHANDS
from shapelens.examples.given_sizes import Argument, Dim, Shape, SizedCall, sized_call
from shapelens.protocol import ExampleRun, FileSpan
from shapelens.source.module import Module
from shapelens.stated.syntax_trees import Function, last_name, positional, program_of

AT_ONCE = 8  # examples of a run
_SIDES = ("H", "W")


async def print_dynamic_dims(batch: Batch, analysed: Analysed) -> int:
    """Print what may vary of each example of a model. Returns the exit code. Raises RefusedRequest and batch.Unavailable."""
    runs = list(_of_models(analysed))
    if not runs:
        raise RefusedRequest(f"{analysed.path}: no example of a model, whose sizes could be others")
    told = [await _told(batch, analysed, number, run) for number, run in runs]
    sys.stdout.write("from torch.export import Dim\n\n" + "\n".join(each.text for each in told))
    return 1 if any(each.fails for each in told) else 0


@dataclass(frozen=True)
class _Told:
    text: str
    fails: bool = False


def _of_models(analysed: Analysed) -> Iterator[tuple[int, ExampleRun]]:
    """The examples that build a model of the file and call it, each once."""
    said = set[str]()
    for number, run in enumerate(analysed.trace.examples):
        own = run.file in ("", analysed.path) and run.expression and analysed.module.class_named(run.target) is not None
        if own and run.error_kind not in ("syntax", "example", "definitions") and run.expression not in said:
            said.add(run.expression)
            yield number, run


async def _told(batch: Batch, analysed: Analysed, number: int, run: ExampleRun) -> _Told:
    forward = _forward(analysed.module, run.target)
    call = sized_call(run.expression, run.dims, lambda argument: _seen(analysed, number, run, forward, argument))
    head = f"# {run.target}: "
    if call is None:
        return _Told(f"{head}{run.expression}\n# No input of this call is a tensor whose sizes stand in it.\n")

    async def ways(wanted: Sequence[Sizes]) -> list[Way]:
        found: list[Way] = []
        for first in range(0, len(wanted), AT_ONCE):
            some = wanted[first : first + AT_ONCE]
            trace = await batch.with_other_sizes(analysed, run, [call.text(sizes) for sizes in some])
            found += [way_of(trace, place) for place in range(len(some))]
        return found

    dims = await dynamic_dims(call.sizes, ways)
    head += call.text(dims.sizes) + (" (input guessed)" if run.doubtful or run.evidence == "inferred" else "") + "\n"
    if dims.fails:
        return _Told(f"{head}# It fails with these sizes: `shapelens check` says why.\n", fails=True)
    written = _Written(call, dims, forward)
    fixed = [await _why(batch, analysed, run, call, each, written) for each in dims.fixed]
    return _Told(head + written.text() + "".join(f"# {line}\n" for line in fixed))


def _seen(analysed: Analysed, example: int, run: ExampleRun, forward: Function | None, argument: Argument) -> tuple[str, Shape] | None:
    """The dtype and shape of an argument that was a tensor, as forward got it."""
    name = _parameter(forward, argument)
    for seen in analysed.trace.observations:
        if (seen.example, seen.kind, seen.name) == (example, "parameter", name) and seen.function.endswith(f"{run.target}.forward"):
            value = seen.values[0]
            if value.kind == "tensor" and value.shape is not None and (dtype := SHORT_DTYPES.get(value.dtype, value.dtype)) in SHORTHANDS:
                sizes = [size for size in value.shape if size is not None]
                return (dtype, sizes) if len(sizes) == len(value.shape) else None
    return None


def _forward(module: Module, name: str) -> Function | None:
    """The `forward` of a class, its own or that of a class of the file that it derives from."""
    classes = {node.name: node for node in ast.walk(program_of(module.text)) if isinstance(node, ast.ClassDef)}
    node, looked = classes.get(name.rpartition(".")[2]), set[str]()
    while node is not None and node.name not in looked:
        looked.add(node.name)
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "forward":
                return part
        node = next((classes[last_name(base)] for base in node.bases if last_name(base) in classes), None)
    return None


def _parameter(forward: Function | None, argument: Argument) -> str:
    """The name of the parameter that an argument is given to; "" where that is not known, or is `*args`."""
    if isinstance(argument, str):
        return argument
    names = [each.arg for each in positional(forward)[1:]] if forward is not None else []
    return names[argument] if argument < len(names) else ""


class _Written:
    """The dims of a call as text of Python."""

    def __init__(self, call: SizedCall, dims: DynamicDims, forward: Function | None) -> None:
        self._call = call
        self._forward = forward
        self._varying = {name: each for each in dims.varying for name in each.names}
        self._names: dict[Varying, str] = {}
        self.places: dict[str, str] = {}  # where each dim stands first: "x, dim 1"
        for argument, structure in call.arguments.items():
            self._place(_parameter(forward, argument) or f"input {argument}", structure)

    def text(self) -> str:
        """Assignments of the dims and of `dynamic_shapes`."""
        return "".join([*map(self._definition, self._names), f"dynamic_shapes = {self._shapes()}\n"])

    def _place(self, where: str, structure: object) -> None:
        if isinstance(structure, tuple):
            for number, dim in enumerate(structure):
                self.places.setdefault(dim.name, f"{where}, dim {number}")
                varying = self._varying.get(dim.name)
                if varying is not None and varying not in self._names:
                    self._names[varying] = self._free(dim.name, where, number, len(structure))
        elif isinstance(structure, list):
            for number, each in enumerate(structure):
                self._place(f"{where}[{number}]", each)
        elif isinstance(structure, dict):
            for key, each in structure.items():
                self._place(f"{where}[{key}]", each)

    def _free(self, name: str, where: str, number: int, count: int) -> str:
        """A name for a dim that no other one has: the example's, that of a side of a picture, or its place."""
        wanted = name if name.isidentifier() else _SIDES[number - 2] if count == 4 and number > 1 else ""
        place = "".join(sign if sign.isalnum() else "_" for sign in f"{where}_{number}")
        taken = self._names.values()
        return wanted if wanted and wanted not in taken and not keyword.iskeyword(wanted) else place

    def _definition(self, varying: Varying) -> str:
        name = self._variable(varying)
        least, most = varying.least // varying.step, varying.most and varying.most // varying.step
        bounds = [f"min={least}"] * (least > (2 if varying.step == 1 else 1)) + [f"max={most}"] * (most is not None)
        return f'{name} = Dim("{name}"{"".join(f", {bound}" for bound in bounds)})\n'

    def _variable(self, varying: Varying) -> str:
        return self._names[varying] if varying.step == 1 else f"_{self._names[varying]}"

    def _shapes(self) -> str:
        names = {argument: _parameter(self._forward, argument) for argument in self._call.arguments}
        rest = self._forward.args.vararg if self._forward is not None else None
        if self._forward is None or (rest is None and not all(names.values())):
            return "(" + "".join(f"{self._shape(each)}, " for each in self._call.arguments.values()).strip() + ")"
        said = [f'"{name}": {self._shape(self._call.arguments[argument])}' for argument, name in names.items() if name]
        others = [self._shape(self._call.arguments[argument]) for argument, name in names.items() if not name]
        if rest is not None and others:
            said.append(f'"{rest.arg}": ({", ".join(others)},)')
        return "{" + ", ".join(said) + "}"

    def _shape(self, structure: object) -> str:
        if isinstance(structure, tuple):
            dims = [f"{number}: {text}" for number, dim in enumerate(structure) if (text := self._dim(dim))]
            return "{" + ", ".join(dims) + "}" if dims else "None"
        if isinstance(structure, list):
            return "[" + ", ".join(map(self._shape, structure)) + "]"
        if isinstance(structure, dict):
            return "{" + ", ".join(f"{key}: {self._shape(each)}" for key, each in structure.items()) + "}"
        return "None"

    def _dim(self, dim: Dim) -> str:
        varying = self._varying.get(dim.name)
        if varying is None:
            return ""
        name = self._variable(varying)
        return name if varying.step == 1 else f"{varying.step} * {name}"


async def _why(batch: Batch, analysed: Analysed, run: ExampleRun, call: SizedCall, fixed: Fixed, written: _Written) -> str:
    """Returns what fixes a dim, and where."""
    head, reason = f"{written.places[fixed.name]} = {fixed.size} is fixed", fixed.reason
    where = _where(analysed, reason.span)
    if reason.kind == "mistake":
        trace = await batch.with_other_sizes(analysed, run, [call.text(fixed.sizes)])
        told = [each for each in findings(analysed.module, trace, analysed.settings, lambda file: None) if each.severity == "error"]
        message = told[0].message if told else next((each.message for each in trace.mismatches), trace.examples[0].error or "it fails")
        where = f"line {told[0].span.start.line}" if told else where
        return f"{head}: with {fixed.other}, {where}: {' '.join(message.split())}"
    if reason.kind == "recurrence":
        return f"{head}: {where}: {reason.name} takes a step for each, which torch.export unrolls"
    if reason.kind == "one":
        return f"{head}: {where}: with {fixed.other} a size becomes 1 there, or is 1 no more"
    if reason.kind == "together":
        return f"{head}: it may vary, but not beside the others"
    before, other = reason.counts
    if before and other:
        return f"{head}: {where} is reached {before} times, and {other} times with {fixed.other}"
    return (
        f"{head}: {where} is reached with {fixed.size if before else fixed.other} alone, not with {fixed.other if before else fixed.size}"
    )


def _where(analysed: Analysed, span: FileSpan | None) -> str:
    if span is None:
        return "the example"
    return f"line {span.line}" if span.file == analysed.path else f"{Path(span.file).name}:{span.line}"
