"""Sizes that meet a demand: by the sizes that are equal to what arrived, then by trying how what arrived follows them."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ...unknown import unknown_sizes
from ..evidence import NOTHING_SAID, InputSaid
from .demands import Demand, demands
from .trial import Trial

Sizes = Dict[str, int]
Group = Tuple[str, ...]  # names of sizes that change together
Reaches = Callable[[Sizes], Optional[Trial]]

LARGEST = 1 << 22
LARGEST_BATCH = 16
LARGEST_BATCH_OR_CHANNELS = 4  # of a guess: other sizes of an input are larger
# Sizes that are common for pictures, signals and sequences, for what no equation tells.
LADDER = (224, 128, 256, 96, 32, 28, 299, 512, 48, 112, 16, 160, 192, 227, 384, 331, 320, 84, 40, 1024, 8, 2048, 16000)
STEPS = ("T", "S", "seq_len", "seq_length", "seqlen", "n_steps", "time")  # what the dim of a sequence is called
OF_CLASSIFIERS = (224, 299)  # sides of the pictures that they were trained on: ImageNet's, and those of Inception
MOST_GROWTH = 8  # of a size that is large already


def sizes_for(
    trial: Optional[Trial], wanted: Sequence[Demand], free: Sizes, guessed: Set[str], reaches: Reaches, said: InputSaid = NOTHING_SAID
) -> Iterator[Sizes]:
    """Changes of the free sizes that may meet what a failed attempt asks for, the most promising first.

    `guessed`: those of the constructor, which are changed after those of the input. `reaches(sizes)` makes an attempt. said: what of the
    inputs the code says.
    """
    if trial is None:
        return

    def reached(sizes: Sizes) -> Optional[Trial]:
        """Returns the trial of an attempt; None where its sizes would hide a mistake, as the attempt might run to its end."""
        changed = {name: size for name, size in sizes.items() if free.get(name, size) != size}
        return None if hides(changed) else reaches(sizes)

    def hides(changed: Sizes) -> bool:
        if trial.found is not None and trial.found.code == "matmul" and 1 in changed.values():
            return True  # No product is meant to sum over one number.
        return _hides(free, changed, guessed, said) or (adds_samples(trial) and _has_step_a_sample({**free, **changed}, free))

    given: Set[Tuple[Tuple[str, int], ...]] = set()
    for change in _changes(trial, wanted, free, guessed, reached):
        key = tuple(sorted(change.items()))
        if key not in given and not hides(change) and all(map(_may_be_tried, change.values())):
            given.add(key)
            yield change


def _hides(free: Sizes, change: Sizes, guessed: Set[str], said: InputSaid) -> bool:
    """True if a change makes sizes agree by chance: a sequence of one step, a picture of so few pixels
    that it cannot become smaller, one layer of several; or takes apart what the code has as one (`_takes_apart`)."""
    if _takes_apart(free, {**free, **change}, guessed, said.is_square):
        return True
    if any(size == 1 < free[name] and name in guessed and "chan" not in name for name, size in change.items()):
        return True
    roles = [(_role(name).lstrip("@"), free[name], size) for name, size in change.items()]
    if any(size == 1 < before for role, before, size in roles if role in ("T", "S")) or _is_made_one(free, change):
        return True
    return any(size < SMALLEST_SIDE <= before for role, before, size in roles if role in _SPATIAL)


def _is_made_one(free: Sizes, change: Sizes) -> bool:
    """True if a dim that the text has a name for becomes 1, unless the dim is that of channels: nobody names a dim that never varies."""
    named = {name: _role(name)[1:].lower() for name in change if _role(name).startswith("@")}
    return any(change[name] == 1 < free[name] for name, role in named.items() if role != "c" and "chan" not in role)


def adds_samples(trial: Optional[Trial]) -> bool:
    """True if an attempt failed as two tensors of at least three dims do not broadcast: samples may have met steps."""
    found = trial.found if trial is not None else None
    shapes = [each.shape or () for each in found.inputs[:2]] if found is not None and found.code == "broadcast" else []
    return len(shapes) == 2 and min(map(len, shapes)) > 2


def _has_step_a_sample(after: Sizes, before: Sizes) -> bool:
    """True if a sequence has as many steps as there are samples, and did not before."""
    steps = [name for name in before if _role(name).lstrip("@") in STEPS]
    return any(after[name] == after.get("#B") and before[name] != before["#B"] for name in steps)


def _takes_apart(free: Sizes, after: Sizes, guessed: Set[str], is_square: bool) -> bool:
    """True if sizes that were one are not any more: the sides of a square, or a dim that the text calls as the constructor's parameter."""
    if is_square and any(len({after[name] for name in group}) > 1 for group in _squares(free, list(free))):
        return True
    parameters = {name: _role(name).partition("@")[2] for name in free}
    return any(role in guessed and free[name] == free[role] and after[name] != after[role] for name, role in parameters.items())


def _may_be_tried(size: int) -> bool:
    """True if an input may have a size: none that the code's conditions would take for an unknown one, or twice or four times of which."""
    return 0 < size <= LARGEST and not any(unknown_sizes.is_like_unknown(factor * size) for factor in (1, 2, 4))


class _Failure:
    """A failed attempt, and what may be changed to meet what it asks for."""

    def __init__(self, trial: Trial, wanted: Sequence[Demand], free: Sizes, guessed: Set[str], reaches: Reaches) -> None:
        self.trial = trial
        self.wanted = wanted
        self.free = free
        self.guessed = guessed
        self.reaches = reaches
        self.kinds = {demand.kind for demand in wanted}
        self.equal = [demand for demand in wanted if demand.kind == "equal"]
        self.inputs = [name for name in free if name not in guessed and name != "#B"]
        self.of_constructor = [name for name in free if name in guessed]
        self.squares = _squares(free, self.inputs) + _alike(free, self.inputs)

    def solved(self, demand: Demand, groups: Sequence[Group]) -> Iterator[Sizes]:
        """A demand met by sizes that change together."""
        return _solved(self.trial, demand, self.free, groups, self.reaches)


def _changes(trial: Trial, wanted: Sequence[Demand], free: Sizes, guessed: Set[str], reaches: Reaches) -> Iterator[Sizes]:
    failure = _Failure(trial, wanted, free, guessed, reaches)
    for way in WAYS if "transpose" not in failure.kinds else ():
        yield from way(failure)


def _as_asked(failure: _Failure) -> Iterator[Sizes]:
    """The sizes that arrived, as those that are asked for."""
    return _all_equal(failure.equal, failure.free, failure.inputs)


def _of_known_rows(failure: _Failure) -> Iterator[Sizes]:
    """Rows of a batch, where they are known, before any multiple of them."""
    sides = failure.squares + [(name,) for name in failure.inputs if _role(name) == "P"]
    of_sides = [demand for demand in failure.equal if demand.need > 1]  # A picture of one place hides what is wrong.
    for demand in of_sides[:1] if "multiple" in failure.kinds else ():
        yield from failure.solved(demand, sides)


def _as_multiples(failure: _Failure) -> Iterator[Sizes]:
    """Multiples of what sizes have to be divisible by."""
    for demand in failure.wanted:
        if demand.kind == "multiple" and demand.need > 1:
            yield from _square_multiples(demand, failure.free, failure.squares)
            yield from _multiples(demand, failure.free, failure.inputs)


def _of_flattened_pictures(failure: _Failure) -> Iterator[Sizes]:
    """Pictures of as many places as features are asked for."""
    for demand in failure.equal[:2]:
        yield from _flattened_pictures(demand, failure.free, failure.squares, failure.inputs)


def _of_usual_pictures(failure: _Failure) -> Iterator[Sizes]:
    """The sides that most pictures have."""
    for group in failure.squares:
        yield from (dict.fromkeys(group, size) for size in LADDER[:3] if size != failure.free[group[0]])


def _larger(failure: _Failure) -> Iterator[Sizes]:
    """Larger inputs, where one is too small: as classifiers were trained on, then by factors."""
    if "larger" in failure.kinds:
        free, inputs = failure.free, failure.inputs
        yield from ({name: side} for side in OF_CLASSIFIERS for name in inputs if _role(name) == "P" and free[name] < side)
        for name in sorted(inputs, key=lambda name: _role(name) not in _SPATIAL):
            yield from ({name: free[name] * factor} for factor in (2, 4, 8, 16) if free[name] >= 8)


def _of_both(failure: _Failure) -> Iterator[Sizes]:
    """A size of the constructor, with those of the input that are the same number."""
    for demand in failure.equal[:2]:
        yield from _with_inputs(demand, failure.free, failure.guessed, failure.inputs)


def _solved_for(failure: _Failure) -> Iterator[Sizes]:
    """Sizes that what arrived follows: of the input alone, then of both."""
    for demand in failure.equal[:2]:
        yield from failure.solved(demand, [(name,) for name in failure.inputs if demand.need > 1 or _role(name) not in _SPATIAL])
        groups = [*_alike(failure.free, failure.inputs), *_groups(failure.free, failure.guessed)]
        yield from failure.solved(demand, [*groups, *_as_wide(failure.free, failure.inputs)])


def _near(failure: _Failure) -> Iterator[Sizes]:
    """Sizes that are in proportion to what arrived, or the batch that arrived."""
    for demand in failure.equal[:4]:
        yield from _in_proportion(demand, failure.free, failure.inputs)
        if failure.free.get("#B") == demand.got and demand.need <= LARGEST_BATCH:  # A larger one is features that were taken for a batch.
            yield {"#B": demand.need}


def _of_usual_sizes(failure: _Failure) -> Iterator[Sizes]:
    """The sizes that are common, for what no equation tells."""
    for group in failure.squares + [(name,) for name in failure.inputs if _role(name) in _SPATIAL]:
        yield from (dict.fromkeys(group, size) for size in LADDER if size != failure.free[group[0]])


def _of_constructor(failure: _Failure) -> Iterator[Sizes]:
    """The sizes of the constructor: those that arrived, those that are solved for, those in proportion."""
    for demand in failure.equal[:2]:
        yield from _same(demand, failure.free, failure.of_constructor)
        yield from failure.solved(demand, [(name,) for name in failure.of_constructor])
        yield from _in_proportion(demand, failure.free, failure.of_constructor)


# The ways to meet a demand, the most promising first.
WAYS: Tuple[Callable[[_Failure], Iterator[Sizes]], ...] = (
    _as_asked,
    _of_known_rows,
    _as_multiples,
    _of_flattened_pictures,
    _of_usual_pictures,
    _larger,
    _of_both,
    _solved_for,
    _near,
    _of_usual_sizes,
    _of_constructor,
)


def _all_equal(equal: Sequence[Demand], free: Sizes, names: List[str]) -> Iterator[Sizes]:
    """The sizes that arrived as those that are asked for: all demands at once, then each alone."""
    together: Sizes = {}
    for demand in equal:
        for name in [name for name in names if free[name] == demand.got and name not in together][:1]:
            together[name] = demand.need
    if len(together) > 1:
        yield together
    for demand in equal:
        yield from _same(demand, free, names)


def _with_inputs(demand: Demand, free: Sizes, guessed: Set[str], inputs: List[str]) -> Iterator[Sizes]:
    """A size of the constructor that arrived, with those of the input that are the same number: what comes in is as wide as what it is
    added to, four times as wide as the layers between (`Block(inplanes=128, planes=32)(f32[2, 128, 8, 8])`)."""
    same = [name for name in inputs if free[name] == demand.got > 2]
    alike = [name for name in free if name in guessed and free[name] == demand.got]
    if same and len(alike) > 1:
        for name in alike:
            yield {name: demand.need, **dict.fromkeys(same, demand.need)}


def _square_multiples(demand: Demand, free: Sizes, squares: Sequence[Group]) -> Iterator[Sizes]:
    """The sides of a square, changed together to a multiple."""
    for group in squares:
        for change in _multiples(demand, {group[0]: free[group[0]]}, [group[0]]):
            yield dict.fromkeys(group, change[group[0]])


def _flattened_pictures(demand: Demand, free: Sizes, squares: Sequence[Group], names: List[str]) -> Iterator[Sizes]:
    """Square pictures that were flattened: 784 features are 1·28·28, where 3·64·64 arrived."""
    for group in squares:
        side = free[group[0]]
        channels, rest = divmod(demand.got, side * side)
        if rest or not channels:
            continue
        others = [name for name in names if name not in group and free[name] == channels]
        for wanted in (channels, *(count for count in (1, 3) if others and count != channels)):
            area, rest = divmod(demand.need, wanted)
            if not rest and math.isqrt(area) ** 2 == area and area > 1:
                yield {**dict.fromkeys(others[:1], wanted), **dict.fromkeys(group, math.isqrt(area))}


def sizes_that_matter(trial: Trial, wanted: Sequence[Demand], free: Sizes, guessed: Set[str], reaches: Reaches) -> Iterator[Sizes]:
    """Like `sizes_for`, for an example that ran before an edit: only changes that follow from what the mismatch says."""
    inputs = [name for name in free if name not in guessed]
    equal = [demand for demand in wanted if demand.kind == "equal"]
    for names in (inputs, [name for name in free if name in guessed]):
        for demand in equal[:2]:
            yield from _same(demand, free, names)
            yield from _same(Demand("equal", demand.need, demand.got), free, names)
        if names == inputs and equal and _depend_on_none(trial, equal[0], free, inputs, reaches):
            continue
        for demand in equal[:1]:
            yield from _solved(trial, demand, free, [(name,) for name in names if free[name] > 1], reaches)
    for demand in equal[:1]:
        yield from _solved(trial, demand, free, _groups(free, guessed), reaches)
    for demand in wanted:
        if demand.kind == "multiple" and demand.need > 1:
            yield from _multiples(demand, free, inputs)
    if any(demand.kind == "larger" for demand in wanted):
        for factor in (2, 4, 8):
            yield {name: free[name] * factor for name in inputs if free[name] >= 8}


def _depend_on_none(trial: Trial, demand: Demand, free: Sizes, names: List[str], reaches: Reaches) -> bool:
    """True if a mismatch stays as it is when all large sizes change at once."""
    changed = {name: 2 * free[name] for name in names if free[name] >= 8}
    tried = reaches({**free, **changed}) if changed else None
    if tried is None:
        return False
    return tried.error is not None and tried.place == trial.place and demand in demands(tried) and demands(tried)[0] == demands(trial)[0]


def _role(name: str) -> str:
    return name.rpartition(".")[2].lstrip("#")


SMALLEST_SIDE = 4  # of a picture that sizes are solved for
_PLANE = {"H", "W", "U2", "U3", "@h", "@w", "@H", "@W", "@height", "@width"}
_SPATIAL = {"P", "H", "W", "L", "V", "T", "S", "F"}


def _same(demand: Demand, free: Sizes, names: List[str]) -> Iterator[Sizes]:
    """A size that is the one that arrived; widths together first, as sequences are mostly as wide as each other."""
    same = [name for name in names if free[name] == demand.got]
    if len(same) > 1 and set(map(_role, same)) == {"D"}:
        yield dict.fromkeys(same, demand.need)
    for name in same:
        yield {name: demand.need}
    if len(same) > 1:
        yield dict.fromkeys(same, demand.need)


def _in_proportion(demand: Demand, free: Sizes, names: List[str]) -> Iterator[Sizes]:
    """A size that what arrived is a small multiple of, or differs little from."""
    got, need = demand.got, demand.need
    for name in names:
        size = free[name]
        if size in (0, 1, got) or got <= 0 or (size >= 16 and need > MOST_GROWTH * got):
            continue
        if got % size == 0 and got // size <= 64 and need % (got // size) == 0:
            yield {name: need // (got // size)}
        elif size % got == 0 and size // got <= 64:
            yield {name: need * (size // got)}
        elif abs(size - got) <= 2 and need - got + size > 0:
            yield {name: size + need - got}


def _multiples(demand: Demand, free: Sizes, names: List[str]) -> Iterator[Sizes]:
    need = demand.need
    order = sorted(names, key=lambda name: free[name] != demand.got)
    for name in order:
        size = free[name]
        scale = 1 << max(0, round(math.log2(size / demand.got))) if 1 < demand.got < size else 1
        if scale > 1 and demand.got % need:  # What arrived was halved some times.
            yield {name: -(-size // (need * scale)) * need * scale}
        if size % need and (demand.got == -1 or size == demand.got or demand.got % size == 0 or len(order) == 1 or size > 4):
            up = -(-size // need) * need
            yield {name: up}
            if need < size:
                yield {name: size // need * need}
            yield {name: 2 * up}


def _squares(free: Sizes, names: List[str]) -> List[Group]:
    """Height and width, where they are free each for itself: most networks take squares only, or fit them best."""
    return _as_large(free, names, _PLANE)


def _alike(free: Sizes, names: List[str]) -> List[Group]:
    """The sides of several pictures that are as large as each other: those of a pair, which is compared."""
    return _as_large(free, names, {"P"})


def _as_wide(free: Sizes, names: List[str]) -> List[Group]:
    """The widths of several sequences that are as wide as each other: `torch.cat([c, q, c * q], -1)` is three times as wide."""
    return _as_large(free, names, {"D"})


def _as_large(free: Sizes, names: List[str], roles: Set[str]) -> List[Group]:
    by_size: Dict[int, List[str]] = {}
    for name in names:
        if _role(name) in roles and free[name] >= 8:
            by_size.setdefault(free[name], []).append(name)
    return [tuple(group) for group in by_size.values() if len(group) > 1]


def _groups(free: Sizes, guessed: Set[str]) -> List[Group]:
    """Sizes of the constructor and of the input that are the same number, as one that goes into both is: `Net(dim=64)(f32[2, 64])`."""
    by_size: Dict[int, List[str]] = {}
    for name, size in free.items():
        if size > 2 and name != "#B":
            by_size.setdefault(size, []).append(name)
    return [tuple(names) for names in by_size.values() if 0 < len(set(names) & guessed) < len(names)]


def _solved(trial: Trial, demand: Demand, free: Sizes, groups: Sequence[Group], reaches: Reaches) -> Iterator[Sizes]:
    """Change one size at a time and see how the difference of what arrived and what is needed follows it; then go to where it is zero."""
    here = demand.got - demand.need
    for group in groups:
        size = free[group[0]]
        step = step_of(size)
        points = [(size, here)]
        for other in (size + step, size + 2 * step):
            difference = difference_to(trial, reaches({**free, **dict.fromkeys(group, other)}), demand)
            if difference is None or difference == here:
                break
            points.append((other, difference))
        if len(points) < 2:
            continue
        yield from _zeros(group, points)
        if not are_even(points):  # Else that was the only zero.
            yield from _bracketed(trial, demand, free, group, points, reaches)


def step_of(size: int) -> int:
    """By how much to change a size to see what depends on it, so that it divides as before."""
    return max(1, size // 4) if size < 16 else 16 if size % 16 == 0 else 8 if size % 8 == 0 else 4


def _zeros(group: Group, points: List[Tuple[int, int]]) -> Iterator[Sizes]:
    (x0, y0), (x1, y1) = points[:2]
    if y1 != y0:
        zero = x0 - y0 * (x1 - x0) / (y1 - y0)
        if zero > 0 and abs(zero - round(zero)) < 1e-9:
            yield dict.fromkeys(group, round(zero))


def are_even(points: List[Tuple[int, int]]) -> bool:
    """True if three points lie on a line."""
    if len(points) < 3:
        return False
    (x0, y0), (x1, y1), (x2, y2) = points
    return (y1 - y0) * (x2 - x1) == (y2 - y1) * (x1 - x0)


def _bracketed(trial: Trial, demand: Demand, free: Sizes, group: Group, points: List[Tuple[int, int]], reaches: Reaches) -> Iterator[Sizes]:
    """Bisection: the difference grows with the size, not always evenly (a flattened picture's with its square)."""
    grows = (points[1][1] - points[0][1]) * (1 if points[1][0] > points[0][0] else -1) > 0
    size, here = points[0]
    too_large = (here > 0) is grows
    low, high = (1, size) if too_large else (size, 0)
    for _ in range(14):
        middle = (low + high) // 2 if high else low * 2
        if middle in (low, high) or not _may_be_tried(middle):
            return
        tried = reaches({**free, **dict.fromkeys(group, middle)})
        if tried is None:
            return
        difference = difference_to(trial, tried, demand)
        if tried.error is None or (difference is None and tried.place != trial.place and tried.reached >= trial.reached):
            yield dict.fromkeys(group, middle)
            return
        if difference is None:
            low = middle  # It fails earlier: too small for what comes before.
            if not high:
                return
        elif difference == 0:
            yield dict.fromkeys(group, middle)
            return
        elif (difference > 0) is grows:
            high = middle
        else:
            low = middle


def difference_to(trial: Trial, other: Optional[Trial], demand: Demand) -> Optional[int]:
    """Returns the difference that is left of a demand in another attempt; None where that failed elsewhere, or not at all."""
    if other is None or other.error is None or other.place != trial.place:
        return None
    index = [each.kind for each in demands(trial) if each == demand]
    same = [each for each in demands(other) if each.kind == "equal"]
    before = [each for each in demands(trial) if each.kind == "equal"]
    if not index or demand not in before or len(same) != len(before):
        return same[0].got - same[0].need if same else None
    found: Any = same[before.index(demand)]
    return int(found.got - found.need)
