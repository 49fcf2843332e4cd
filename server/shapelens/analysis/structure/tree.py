"""The tree of a model's modules in the order in which they are called, with what each makes, holds and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.shapes import shape_text
from shapelens.analysis.structure.module_memory import ModuleMemory
from shapelens.profiles import ModelProfile, ProfiledModule, Step
from shapelens.traces import FileSpan, Mismatch


@dataclass(frozen=True)
class Failure:
    """A failure at a row or step. `finding` is that of the document, where it has one; its fix is the finding's."""

    code: str
    message: str
    finding: Finding | None = None


@dataclass
class ModuleRow:
    """A module. Amounts include those of the rows inside of it, what these share once.

    parameter_bytes, buffer_bytes: of their numbers. Those that follow are of a training step, as the device's allocator counts them:
    held_bytes: of parameters and buffers.
    gradient_bytes: of the gradients of its parameters.
    optimizer_bytes: of what the optimizer keeps for them.
    kept_bytes: what was allocated inside of it, and stays for backward.
    temporary_bytes: the most that is there at one moment of what was allocated in its forward or backward for a while.
    signature: equal for rows that differ in nothing but their name: the same class, arguments, shapes, amounts, and rows inside.
    """

    path: str
    name: str
    class_name: str
    description: str
    outputs: list[str]  # the distinct shapes that it gave, with names for dims
    sizes: list[str]  # the same with numbers
    calls: int
    parameters: int
    trainable: int
    parameter_bytes: int
    buffer_bytes: int
    flops: int
    backward_flops: int
    held_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    kept_bytes: int
    temporary_bytes: int
    span: FileSpan | None  # the constructor call
    call_span: FileSpan | None  # where it was called first
    first_step: int | None
    failure: Failure | None = None
    rows: list[ModuleRow] = field(default_factory=list)
    signature: int = 0


def tree(profile: ModelProfile, findings: Sequence[Finding] = (), optimizer: str = "AdamW", device: str = "cuda") -> list[ModuleRow]:
    """The rows of the models that the example calls; mostly one. findings: those of the document, for what failed.

    Raises ValueError for an optimizer that is not known.
    """
    builder = _Builder(profile, findings, ModuleMemory(profile, optimizer, device))
    roots = [number for number, module in enumerate(profile.modules) if builder.parent(module) is None]
    rows = [builder.row(number) for number in roots]
    _sign(rows, {})
    return rows


def walk(rows: Sequence[ModuleRow], depth: int = 0) -> Iterator[tuple[int, ModuleRow]]:
    """All rows from top to bottom, with how deep each is."""
    for row in rows:
        yield depth, row
        yield from walk(row.rows, depth + 1)


def repeats(rows: Sequence[ModuleRow]) -> Iterator[tuple[ModuleRow, int]]:
    """Rows of one level, of those that follow each other and differ in their name alone only the first; with how many there are."""
    place = 0
    while place < len(rows):
        end = place + 1
        while end < len(rows) and rows[end].signature == rows[place].signature:
            end += 1
        yield rows[place], end - place
        place = end


def failure_of(mismatch: Mismatch, module: ProfiledModule | None, findings: Sequence[Finding]) -> Failure:
    """Returns the failure, in the words of the document's finding where there is one."""
    same = [finding for finding in findings if finding.code == mismatch.code]
    places = [span for span in (mismatch.span, module.span if module is not None else None) if span is not None]
    near = [finding for finding in same if any(place.line <= finding.span.line <= place.end_line for place in places)]
    finding = next(iter(near or same), None)
    return Failure(mismatch.code, finding.message if finding is not None else mismatch.message, finding)


class _Builder:
    def __init__(self, profile: ModelProfile, findings: Sequence[Finding], memory: ModuleMemory) -> None:
        self._profile = profile
        self._memory = memory
        self._findings = findings
        self._numbers = {module.path: number for number, module in enumerate(profile.modules)}
        self._calls: dict[int, list[int]] = {}
        for number, step in enumerate(profile.steps):
            if step.module is not None:
                self._calls.setdefault(step.module, []).append(number)
        self._children: dict[int, list[int]] = {}
        for number, module in enumerate(profile.modules):
            parent = self.parent(module)
            if parent is not None:
                self._children.setdefault(parent, []).append(number)
        self._flops = _running_sums([step.flops for step in profile.steps])
        self._backward = _running_sums([step.backward_flops for step in profile.steps])
        self._kept = _running_sums(memory.kept)

    def parent(self, module: ProfiledModule) -> int | None:
        """The number of the nearest module whose path begins this one's; None for a model itself."""
        path = module.path
        while path:
            path = path.rpartition(".")[0]
            if path in self._numbers:
                # A second model has no part of the first one's path.
                return self._numbers[path] if path or ":" not in module.path.partition(".")[0] else None
        return None

    def row(self, number: int) -> ModuleRow:
        """The row of a module, with those inside of it in the order of their first call; those that are never called come last."""
        profile, module = self._profile, self._profile.modules[number]
        calls = self._calls.get(number, [])
        steps = [profile.steps[call] for call in calls]
        rows = [self.row(child) for child in self._children.get(number, []) if not self._is_read_only(child, calls)]
        first = min([*calls[:1], *(row.first_step for row in rows if row.first_step is not None)], default=None)
        rows.sort(key=lambda row: (row.first_step is None, row.first_step or 0))
        outermost = [call for call in calls if not any(other < call < profile.steps[other].end for other in calls)]
        failed = next((step for step in steps if step.mismatch is not None), None)
        values = [step.output for step in steps if step.output.kind != "other" or step.output.type_name]

        def amount(sums: list[int], inside: list[int]) -> int:
            return sum(sums[profile.steps[call].end] - sums[call] for call in outermost) if outermost else sum(inside)

        return ModuleRow(
            path=module.path,
            name=module.path.rpartition(".")[2] or module.class_name,
            class_name=module.class_name,
            description=module.description,
            outputs=list(dict.fromkeys(shape_text(value, "names") for value in values)),
            sizes=list(dict.fromkeys(shape_text(value, "numbers") for value in values)),
            calls=len(calls),
            parameters=module.parameter_count,
            trainable=module.trainable_count,
            parameter_bytes=module.parameter_bytes,
            buffer_bytes=module.buffer_bytes,
            flops=amount(self._flops, [row.flops for row in rows]),
            backward_flops=amount(self._backward, [row.backward_flops for row in rows]),
            held_bytes=self._memory.held(module),
            gradient_bytes=self._memory.gradients(module),
            optimizer_bytes=self._memory.optimizer_state(module),
            temporary_bytes=self._memory.temporaries[number],
            kept_bytes=amount(self._kept, [row.kept_bytes for row in rows]),
            span=module.span,
            call_span=steps[0].span if steps else None,
            first_step=first,
            failure=self._failure(failed, module) or self._failure_inside(calls, module),
            rows=rows,
        )

    def _is_read_only(self, child: int, calls: list[int]) -> bool:
        """True if a module is a part of a layer of torch's that was called as a whole."""
        return bool(calls) and child not in self._calls and self._profile.modules[child].class_name == "NonDynamicallyQuantizableLinear"

    def _failure(self, step: Step | None, module: ProfiledModule) -> Failure | None:
        if step is None or step.mismatch is None or step.mismatch >= len(self._profile.mismatches):
            return None
        return failure_of(self._profile.mismatches[step.mismatch], module, self._findings)

    def _failure_inside(self, calls: list[int], module: ProfiledModule) -> Failure | None:
        """An operation of the module's own forward that failed: it has no row."""
        every = self._profile.steps
        inside = (inner for call in calls for inner in every[call + 1 : every[call].end] if inner.parent == call)
        return self._failure(next((inner for inner in inside if inner.kind == "operation" and inner.mismatch is not None), None), module)


def _sign(rows: list[ModuleRow], known: dict[object, int]) -> None:
    for row in rows:
        _sign(row.rows, known)
        inside = tuple((inner.name, inner.signature) for inner in row.rows)
        amounts = (row.parameters, row.trainable, row.flops, row.calls, row.failure is None)
        look = (row.class_name, row.description, tuple(row.outputs), amounts, inside)
        row.signature = known.setdefault(look, len(known))


def _running_sums(numbers: Sequence[int]) -> list[int]:
    sums = [0]
    for number in numbers:
        sums.append(sums[-1] + number)
    return sums
