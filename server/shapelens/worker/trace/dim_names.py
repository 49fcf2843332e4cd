"""Named dims by probing: the example runs again with other sizes, and a size that follows them is shown as a formula of their names.

With one name X, sizes (d0, d1, d2) were seen at (x0, x1, x2). Two of the three points give d = (p·X)/q + c, the third has to agree.
With several, each is changed alone, then all together: that run is the one that has to agree. One more run may be there with sizes that are
no round numbers: what a formula says there is rounded, if it is a fraction, in whatever direction.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .recorder import SeenValues
from .value_summary import Key

Sizes = Dict[str, int]
Naming = Callable[[Sequence[int], Sequence[Sizes]], Optional[str]]  # the name of a dim, by what it was in runs with these sizes


def steps(size: int) -> List[int]:
    """Other sizes to try for a dim, best first: near multiples of the powers of two in it, as head splits and strides need them."""
    power = min(size & -size, 32) if size > 0 else 1
    larger = [size + power, size + 2 * power]
    smaller = [size - power, size - 2 * power]
    return larger + [other for other in smaller if other > 0]


class _Formula(NamedTuple):
    """scale · (product of the names) + offset."""

    names: Sequence[str]
    scale: Fraction
    offset: int = 0

    def text(self) -> str:
        text = _scaled("·".join(self.names), self.scale)
        return text if self.offset == 0 else "%s%+d" % (text, self.offset)

    def holds(self, dim: int, run: Sizes) -> bool:
        """True if this term gives the size of a dim in a run. Sizes that do not divide may have been rounded before that, in either
        direction."""
        step = self.scale.denominator
        least = {name: run[name] // step * step for name in self.names}
        most = {name: -(-run[name] // step) * step for name in self.names}
        below, above = [self.scale * _times(rounded, self.names) + self.offset for rounded in (least, most)]
        return below <= dim <= above


def formula(dims: Sequence[int], sizes: Sequence[Sizes]) -> Optional[str]:
    """A formula for a dim that was dims[i] in the run with sizes[i]; None where none fits all runs.

    sizes[0] is the run itself, then one run for each name, in which it alone differs, then one in which all of them do. There may be one
    more with any sizes.
    """
    count = len(sizes[0]) + 2
    if len(set(dims[:count])) == 1:
        return str(dims[0])
    found = _fitting(dims[:count], sizes[:count])
    return found.text() if found is not None and all(map(found.holds, dims[count:], sizes[count:])) else None


def proportional(dims: Sequence[int], sizes: Sequence[Sizes]) -> Optional[str]:
    """The product of names that a dim is a multiple of in two runs that differ in all sizes; None where that is none, or not one alone."""
    if dims[0] == dims[1]:
        return str(dims[0])
    products = (names for count in range(1, len(sizes[0]) + 1) for names in combinations(sizes[0], count))
    found = [names for names in products if dims[0] * _times(sizes[1], names) == dims[1] * _times(sizes[0], names)]
    return _Formula(found[0], Fraction(dims[0], _times(sizes[0], found[0]))).text() if len(found) == 1 else None


def _fitting(dims: Sequence[int], sizes: Sequence[Sizes]) -> Optional[_Formula]:
    names = list(sizes[0])
    alone = list(zip(names, dims[1:-1], sizes[1:-1]))
    moved = [name for name, dim, _ in alone if dim != dims[0]]
    if len(names) == 1:
        moved = names
    if len(moved) == 1:
        (point,) = [(dim, other) for name, dim, other in alone if name == moved[0]]
        return _affine(moved[0], dims, sizes, point)
    if len(moved) > 1:
        return _product(moved, dims, sizes)
    return None


def _affine(name: str, dims: Sequence[int], sizes: Sequence[Sizes], point: Tuple[int, Sizes]) -> Optional[_Formula]:
    slope = Fraction(point[0] - dims[0], point[1][name] - sizes[0][name])
    offset = dims[0] - slope * sizes[0][name]
    if offset.denominator != 1 or slope * sizes[-1][name] + offset != dims[-1] or slope <= 0:
        return None
    return _Formula([name], slope, int(offset))


def _product(names: Sequence[str], dims: Sequence[int], sizes: Sequence[Sizes]) -> Optional[_Formula]:
    """k·B·T, checked in every run."""
    scale = Fraction(dims[0])
    for name in names:
        scale /= sizes[0][name]
    return _Formula(names, scale) if all(scale * _times(run, names) == dim for dim, run in zip(dims, sizes)) else None


def _times(run: Sizes, names: Sequence[str]) -> int:
    product = 1
    for name in names:
        product *= run[name]
    return product


def _scaled(text: str, scale: Fraction) -> str:
    above = text if scale.numerator == 1 else "%d·%s" % (scale.numerator, text)
    return above if scale.denominator == 1 else "%s/%d" % (above, scale.denominator)


def name_key(keys: Sequence[Key], sizes: Sequence[Sizes], naming: Naming = formula) -> Optional[Any]:
    """The names of a value's dims, in the structure of its key; None where the probes don't agree on that structure.

    keys[i] is the key in the run with sizes[i]. A tensor or array gives a tuple of strings, a sequence or mapping a tuple of its parts'
    names, a whole number that follows from the sizes its formula.
    """
    first = keys[0]
    if any((key is None) != (first is None) for key in keys):
        return None
    if first is None or first[0] in ("layer", "other"):
        return None
    if any(key[0] != first[0] for key in keys):
        return None
    if first[0] in ("tensor", "array"):
        shapes = [key[1] for key in keys]
        if len({len(shape) for shape in shapes}) > 1:
            return None
        return name_shape(shapes, sizes, naming)
    if first[0] == "scalar":
        numbers = [key[2] for key in keys]
        return naming(numbers, sizes) if all(type(number) is int for number in numbers) else None
    parts = [key[-1] for key in keys]
    if len({len(part) for part in parts}) > 1:
        return None
    return tuple([name_key(part, sizes, naming) for part in zip(*parts)])


def name_shape(shapes: Sequence[Any], sizes: Sequence[Sizes], naming: Naming = formula) -> Tuple[str, ...]:
    """The names of the dims of a tensor that had shapes[i] in the run with sizes[i]: formulas, numbers, or "?"."""
    names = []
    for dims in zip(*shapes):
        name = "?" if None in dims else naming(dims, sizes)
        names.append(str(dims[0]) if name is None else name)
    return tuple(names)


def distinct(seen: SeenValues, probes: Sequence[Optional[SeenValues]], sizes: Sequence[Sizes]) -> List[Tuple[Key, Optional[Any]]]:
    """The distinct values of a site in the order in which they came, each with its names (None where the probes say nothing)."""
    comparable = bool(probes) and all(probe is not None and probe.total == seen.total for probe in probes)
    if not comparable:
        return [(key, None) for key in seen.counts]
    out: Dict[Tuple[Key, Any], None] = {}
    for keys in zip(seen.sequence, *[probe.sequence for probe in probes if probe is not None]):
        out[keys[0], name_key(keys, sizes)] = None
    missing = [(key, None) for key in seen.counts if all(key != found for found, _ in out)]
    return list(out) + missing
