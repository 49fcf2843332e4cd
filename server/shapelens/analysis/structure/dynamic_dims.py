"""Which dims of a model's inputs may vary, and between which sizes, by what runs with other sizes show.

`torch.export` keeps one path of a model: an operation is there as often for each size, and no size turns into 1 or from it.
So a dim varies where runs with other sizes go the same path; what goes another one says what fixes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapelens.protocol import FileSpan, LayerSeen, Trace, Value

LARGEST = 1 << 16  # size that is tried
MOST_DIVISORS = 12  # of a size, by which it is tried to grow
TIMES_LIFTED = 4  # that an input is made larger, as a size of it has become 1 on the way
UNDECIDED = ("deadline", "memory")  # ends of an example that say nothing of its code
_RECURRENT = ("LSTM", "GRU", "RNN")

Sizes = dict[str, int]


@dataclass(frozen=True)
class Reason:
    """Why a dim is fixed. kind: "mistake": code fails with the other size; "path": it runs other lines, or others as often; "recurrence": a
    layer of torch takes as many steps; "one": a size is 1, or becomes 1;
    "together": it may vary, but not beside others that do."""

    kind: str
    span: FileSpan | None = None
    name: str = ""  # of the layer
    counts: tuple[int, int] = (0, 0)  # of a path, how often the place is reached, with the size and with the other one


@dataclass
class Way:
    """The way of an example through the code with some sizes."""

    fails: bool = False
    undecided: bool = False  # it took too long
    where: FileSpan | None = None  # it fails
    counts: dict[tuple[FileSpan, str, str], int] = field(default_factory=dict)  # how often each place was reached
    ones: dict[tuple[FileSpan, str, str], frozenset[object]] = field(default_factory=dict)  # which dims there were 0 or 1
    steps: dict[str, tuple[tuple[int, ...], FileSpan | None]] = field(default_factory=dict)  # of each recurrent layer, by its path
    tables: set[int] = field(default_factory=set)  # sizes of what modules hold, of dims behind others: a part of such a dim has gaps

    def difference(self, other: Way) -> Reason | None:
        """Returns the reason why another way differs; None where the two are the same."""
        if other.fails:
            return Reason("mistake", other.where)
        for layer, (steps, span) in self.steps.items():
            if other.steps.get(layer, (steps, span))[0] != steps:
                return Reason("recurrence", span, layer)
        places = sorted({*self.counts, *other.counts}, key=lambda place: (place[0].file, place[0].line, place[0].column))
        for place in places:
            counts = self.counts.get(place, 0), other.counts.get(place, 0)
            if counts[0] != counts[1]:
                return Reason("path", place[0], counts=counts)
        for place in places:
            if self.ones.get(place) != other.ones.get(place):
                return Reason("one", place[0])
        return None


def way_of(trace: Trace, number: int) -> Way:
    """The way of one example of a trace."""
    if number >= len(trace.examples):
        return Way(fails=True, undecided=True)
    run, mismatch = trace.examples[number], next((each for each in trace.mismatches if each.example == number), None)
    way = Way(mismatch is not None or run.error is not None, run.error_kind in UNDECIDED)
    way.where = mismatch.span if mismatch is not None else run.error_span
    for seen in trace.observations:
        if seen.example == number and seen.function:  # What a file does while it is loaded is of no example.
            place = (seen.span, seen.kind, seen.name)
            way.counts[place] = way.counts.get(place, 0) + seen.count
            way.ones[place] = way.ones.get(place, frozenset()) | frozenset(map(_ones, seen.values))
    for layer in trace.layers:
        if layer.example == number and not layer.qualified_name.startswith("torch."):
            way.tables |= {size for held in layer.parameters for size in _behind_others(held.shape)}
        if layer.example == number and layer.span is not None:
            place = (layer.call_span or layer.span, "layer", layer.path)
            way.counts[place] = sum(call.count for call in layer.calls)
            way.ones[place] = frozenset(_ones(value) for call in layer.calls for value in (*call.inputs, call.output))
            if layer.class_name in _RECURRENT and layer.qualified_name.startswith("torch."):
                way.steps[layer.path] = _steps(layer), layer.call_span or layer.span
    return way


def _ones(value: Value) -> object:
    """Which dims of a value are 0 or 1."""
    if value.items is not None:
        return tuple(map(_ones, value.items))
    return tuple(size if size is not None and size < 2 else 2 for size in value.shape or [])


def _behind_others(shape: Sequence[int]) -> list[int]:
    return [size for place, size in enumerate(shape) if any(other > 1 for other in shape[:place])]


def _steps(layer: LayerSeen) -> tuple[int, ...]:
    """Returns the number of steps of a recurrent layer, for each of its calls."""
    first = "batch_first=True" in layer.description
    shapes = [call.inputs[0].shape or [] for call in layer.calls if call.inputs]
    return tuple(sorted(shape[1 if first and len(shape) == 3 else 0] or 0 for shape in shapes if len(shape) > 1))


@dataclass(frozen=True)
class Varying:
    """Dims that may vary together: multiples of `step`, from `least` to `most` (None: as large as one likes)."""

    names: tuple[str, ...]
    step: int
    least: int
    most: int | None


@dataclass(frozen=True)
class Fixed:
    """A dim that has to be as it is: with `other` as its size something goes otherwise."""

    name: str
    size: int
    other: int
    reason: Reason
    sizes: Sizes = field(default_factory=dict)  # of all dims, in the run that shows it


@dataclass
class DynamicDims:
    """The dims of an example that may vary, and those that may not. sizes: those that it is to be exported with."""

    sizes: Sizes
    varying: list[Varying] = field(default_factory=list)
    fixed: list[Fixed] = field(default_factory=list)
    fails: bool = False


Runs = Callable[[Sequence[Sizes]], Awaitable[list[Way]]]


async def dynamic_dims(sizes: Sizes, runs: Runs) -> DynamicDims:
    """Find out which dims of an example may vary. sizes: of all its dims. runs: has the example run with others."""
    return await _Finding(sizes, runs).find()


class _Finding:
    def __init__(self, sizes: Sizes, runs: Runs) -> None:
        self._sizes = dict(sizes)
        self._runs = runs
        self._known: dict[tuple[int, ...], Way] = {}
        self._steps: dict[tuple[str, ...], int] = {}  # by the names of dims that vary together

    async def find(self) -> DynamicDims:
        if (await self._way({})).fails:
            return DynamicDims(self._sizes, fails=True)
        await self._lift()
        alone = await self._that_may_vary([(name,) for name in self._sizes])
        left = [name for name in self._sizes if (name,) not in alone]
        equal = [tuple(name for name in left if self._sizes[name] == size) for size in {self._sizes[name]: None for name in left}]
        await self._find_steps([*alone, *await self._that_may_vary([names for names in equal if len(names) > 1])])
        await self._keep_what_goes_together()
        await self._all([dict.fromkeys(names, size * step) for names, step in self._steps.items() for size in self._ends(names, step)])
        found = [Varying(names, step, *await self._range(names, step)) for names, step in self._steps.items()]
        free = {name for names in self._steps for name in names}
        fixed = [await self._fixed(name) for name in self._sizes if name not in free]
        return DynamicDims(self._sizes, found, fixed)

    async def _fixed(self, name: str) -> Fixed:
        """Say what fixes a dim. A size beside its own says it best, unless that is no multiple of what has to divide it."""
        size = self._sizes[name]
        reasons = [(other, await self._difference({name: other})) for other in (size + 1, 2 * size)]
        other, reason = next(((other, reason) for other, reason in reasons if reason is not None and reason.kind != "one"), reasons[-1])
        return Fixed(name, size, other, reason or Reason("together"), {**self._sizes, name: other})

    async def _lift(self) -> None:
        """Make the example larger where a size of it is 1, or becomes 1 on the way, and would not with a larger one."""
        for _ in range(TIMES_LIFTED):
            doubled = [{name: 2 * size} for name, size in self._sizes.items()]
            await self._all(doubled)
            lifted: Sizes = {}
            for change in doubled:
                reason = await self._difference(change)
                lifted |= change if reason is not None and reason.kind == "one" else {}
            together = await self._way(lifted)
            if not lifted or together.fails:
                return
            self._sizes |= lifted

    async def _that_may_vary(self, groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Those dims that may be twice as large, or half as large: then the example is that, as it may grow again."""
        doubled = {names: {name: 2 * self._sizes[name] for name in names} for names in groups}
        halved = {names: {name: self._sizes[name] - self._sizes[name] // 2 for name in names} for names in groups}
        await self._all([*doubled.values(), *(sizes for sizes in halved.values() if min(sizes.values()) > 1)])
        found = [names for names in groups if await self._difference(doubled[names]) is None]
        smaller = [names for names in groups if names not in found and min(halved[names].values()) > 1]
        for names in smaller:
            if await self._difference(halved[names]) is None:
                found.append(names)
                self._sizes |= halved[names]
        return found

    async def _find_steps(self, groups: Sequence[tuple[str, ...]]) -> None:
        """Find of dims that change together the least number by which they may grow."""
        steps = {names: _divisors(self._sizes[names[0]]) for names in groups}
        for some in (slice(0, 1), slice(1, None)):  # Most dims may grow by 1.
            tried = [(names, step) for names in groups if names not in self._steps for step in steps[names][some]]
            await self._all([self._grown(names, step, 1) for names, step in tried])
            for names, step in tried:
                if names not in self._steps and not any([await self._difference(self._grown(names, step, times)) for times in (1, 2)]):
                    self._steps[names] = step

    async def _keep_what_goes_together(self) -> None:
        """Let only those dims vary that may be of any sizes beside each other."""
        while len(self._steps) > 1 and not await self._go_together(list(self._steps)):
            kept: list[tuple[str, ...]] = []
            for names in self._steps:
                kept += [names] if await self._go_together([*kept, names]) else []
            if len(kept) == len(self._steps):
                return
            self._steps = {names: self._steps[names] for names in kept}

    async def _go_together(self, groups: Sequence[tuple[str, ...]]) -> bool:
        """True if dims may grow at once, each by its own number: in one order and in the other."""
        changes: list[Sizes] = []
        for ordered in (groups, groups[::-1]):
            changes.append({})
            for times, names in enumerate(ordered, 1):
                changes[-1] |= self._grown(names, self._steps[names], times)
        return not any([await self._difference(change) for change in changes])

    def _ends(self, names: tuple[str, ...], step: int) -> tuple[int, int]:
        """The least and the largest multiple of a step that is tried."""
        return 2 if step == 1 else 1, max(LARGEST // step, self._sizes[names[0]] // step + 3)

    async def _range(self, names: tuple[str, ...], step: int) -> tuple[int, int | None]:
        """The least and the largest size that go the same path; None for one as large as one likes."""
        now, (least, largest) = self._sizes[names[0]] // step, self._ends(names, step)
        far = await self._way(dict.fromkeys(names, largest * step))
        goes_far = far.undecided or await self._difference(dict.fromkeys(names, largest * step)) is None
        if await self._difference(dict.fromkeys(names, least * step)) is not None:
            least = await self._last_that_goes(names, step, now, least)
        if goes_far:
            return least * step, None
        most = step * await self._last_that_goes(names, step, now + 2, largest)
        # `mask[:T, :T]` has no gaps where it is the whole mask, which torch.export takes for another path.
        return least * step, most - step if most in (await self._way({})).tables else most

    async def _last_that_goes(self, names: tuple[str, ...], step: int, goes: int, fails: int) -> int:
        """The multiple of a step nearest to one that fails that goes the same path as one that goes."""
        while abs(fails - goes) > 1:
            width = fails - goes
            between = sorted({goes + int(width * part / 4) for part in (1, 2, 3)} - {goes, fails}, key=lambda each: abs(each - goes))
            between = between or [goes + (1 if width > 0 else -1)]
            await self._all([dict.fromkeys(names, each * step) for each in between])
            for each in between:
                if await self._difference(dict.fromkeys(names, each * step)) is not None:
                    fails = each
                    break
                goes = each
        return goes

    def _grown(self, names: Iterable[str], step: int, times: int) -> Sizes:
        return {name: self._sizes[name] + times * step for name in names}

    async def _difference(self, changed: Mapping[str, int]) -> Reason | None:
        """Returns what runs with other sizes do otherwise; None where they go the same path."""
        return (await self._way({})).difference(await self._way(changed))

    async def _way(self, changed: Mapping[str, int]) -> Way:
        await self._all([changed])
        return self._known[tuple({**self._sizes, **changed}.values())]

    async def _all(self, changes: Sequence[Mapping[str, int]]) -> None:
        """Have all of these run that have not run yet."""
        wanted = {tuple(sizes.values()): sizes for sizes in ({**self._sizes, **changed} for changed in changes)}
        missing = [sizes for key, sizes in wanted.items() if key not in self._known]
        for sizes, way in zip(missing, await self._runs(missing) if missing else [], strict=True):
            self._known[tuple(sizes.values())] = way


def _divisors(size: int) -> list[int]:
    return [each for each in range(1, size + 1) if size % each == 0][:MOST_DIVISORS]
