"""The dims of a tensor as products of axes, and what a view does to them.

A dim is a tuple of factors, the outermost first. A factor is a part of an axis: `size` steps of `stride` along it. A view joins factors
that stand side by side, and splits one where its size divides. Where a dim of the result ends elsewhere, numbers of several axes are mixed
up: the view tears them. The torn dims then hold axes of their own, until a later view puts the same factors together again.
"""

from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

INPUT, FEATURES, DERIVED, PADDED, REPEATED, TORN, UNKNOWN = "input", "features", "derived", "padded", "repeated", "torn", "unknown"


class Axis:
    """A direction along which numbers were laid out when a tensor was made: an axis of an input, the features of a layer, or what was made
    of these."""

    __slots__ = ("is_samples", "is_steps", "kind", "name", "roots", "size", "tear")

    def __init__(self, size: int, kind: str, roots: FrozenSet["Axis"] = frozenset(), name: str = "") -> None:
        self.size = size
        self.kind = kind
        self.name = name  # as the example says it; "" where nobody did
        self.roots: FrozenSet[Axis] = frozenset([self]) if kind == INPUT else roots  # the inputs' axes that its numbers come from
        self.tear: Optional[Tear] = None  # the view that made it, if it is torn
        self.is_samples = False  # whether the code itself treats it as the samples of a batch
        self.is_steps = False  # whether the code itself treats it as the steps of a sequence

    def __repr__(self) -> str:
        return self.name or "%s%d" % (self.kind, self.size)


class Factor(NamedTuple):
    """`size` numbers along an axis, `stride` apart."""

    axis: Axis
    stride: int
    size: int


Dim = Tuple[Factor, ...]
Dims = Tuple[Dim, ...]


class Tear:
    """A view that mixed up these factors, and the axes that stand for them in its result."""

    __slots__ = ("axes", "cause", "factors", "is_mended", "is_shift", "is_used")

    def __init__(self, factors: Sequence[Factor], is_shift: bool) -> None:
        self.factors = tuple(factors)
        self.axes: Tuple[Axis, ...] = ()
        self.is_shift = is_shift  # sizes divide, but the parts of two axes meet in one dim
        self.is_mended = False  # a later view put all of it together again
        self.is_used = False  # before that, numbers along the torn axes were put together
        self.cause: Optional[Tear] = None  # the view before it that mixed these up already

    def mend(self) -> None:
        """A view puts all of it together again, and with it what the views before mixed up."""
        self.is_mended = True
        if self.cause is not None:
            self.cause.mend()

    def use(self) -> None:
        """Numbers along the torn axes are put together."""
        self.is_used = True
        if self.cause is not None:
            self.cause.use()

    @property
    def roots(self) -> FrozenSet[Axis]:
        """The axes of inputs that were mixed up."""
        return roots_of([self.factors])


def whole(axis: Axis) -> Dim:
    """A dim along a whole axis; () where that has one number only."""
    return (Factor(axis, 1, axis.size),) if axis.size != 1 else ()


def new_dim(size: int, kind: str, roots: FrozenSet[Axis] = frozenset()) -> Dim:
    """A dim along an axis of its own."""
    return () if size == 1 else whole(Axis(size, kind, roots))


def size_of(dim: Sequence[Factor]) -> int:
    """Returns the size of a dim."""
    product = 1
    for factor in dim:
        product *= factor.size
    return product


def roots_of(dims: Sequence[Sequence[Factor]]) -> FrozenSet[Axis]:
    """The axes of inputs that dims stem from."""
    return frozenset([root for dim in dims for factor in dim for root in factor.axis.roots])


def is_known(dims: Sequence[Sequence[Factor]]) -> bool:
    """True if it is known what dims are made of."""
    return all(factor.axis.kind != UNKNOWN for dim in dims for factor in dim)


def joined(factors: Sequence[Factor]) -> Dim:
    """Factors side by side as one dim: neighbours along one axis become one factor, and torn ones that are all there are whole again."""
    found: List[Factor] = []
    for factor in factors:
        last = found[-1] if found else None
        if factor.size == 1:
            continue
        if last is not None and last.axis is factor.axis and last.stride == factor.stride * factor.size:
            found[-1] = Factor(factor.axis, factor.stride, last.size * factor.size)
        else:
            found.append(factor)
    for start, factor in enumerate(found):
        tear = factor.axis.tear
        if tear is not None and found[start : start + len(tear.axes)] == [whole(axis)[0] for axis in tear.axes]:
            tear.mend()
            return joined([*found[:start], *tear.factors, *found[start + len(tear.axes) :]])
    return tuple(found)


def viewed(dims: Sequence[Dim], shape: Sequence[int]) -> Tuple[Dims, List[Tear]]:
    """Returns the dims after a view, and the tears of the view."""
    given = [factor for dim in dims for factor in dim]
    torn = [factor.axis.tear for factor in given if factor.axis.tear is not None and not factor.axis.tear.is_mended]
    source = list(joined(given))
    mended = [tear for tear in torn if tear.is_mended]
    asked = [size for size in shape if size != 1]
    wanted = _ends(asked)
    clean = _clean_ends(source, wanted)
    tears: List[Tear] = []
    made: List[Dim] = []  # the innermost first
    place = len(asked)
    for number, piece in enumerate(_cut(source, clean)):  # From the innermost run of dims to the outermost.
        count = wanted.index(clean[number + 1]) - wanted.index(clean[number])
        sizes = asked[place - count : place]
        place -= count
        if count == 1:
            made.append(joined(piece))
            continue
        tear = _torn(piece, sizes, mended)
        tears.append(tear)
        made += [whole(axis) for axis in reversed(tear.axes)]
    rest = iter(reversed(made))
    return tuple([next(rest) if size != 1 else () for size in shape]), tears


def _clean_ends(source: List[Factor], wanted: List[int]) -> List[int]:
    """Where a view cuts between factors, or between whole parts of one."""
    ends = _ends([factor.size for factor in source])
    exchanged = _exchanged(ends, wanted)
    clean = [end for end in wanted if _is_clean(end, ends) and end not in exchanged]
    pieces = _cut(source, clean)
    return [
        end for number, end in enumerate(clean) if number == 0 or end == clean[-1] or end not in _shifted(pieces, clean, wanted, source)
    ]


def _torn(piece: Sequence[Factor], sizes: Sequence[int], mended: Sequence[Tear]) -> Tear:
    """The tear of a run of dims into axes of these sizes. It opens the one again that it follows from."""
    tear = Tear(piece, is_shift=_is_divided(sizes, piece))
    tear.cause = next((each for each in mended if _shares_axis(each.factors, piece)), None)
    if tear.cause is not None:
        tear.cause.is_mended = False
    kind = TORN if is_known([piece]) else UNKNOWN
    tear.axes = tuple([Axis(size, kind, tear.roots) for size in sizes])
    for axis in tear.axes:
        axis.tear = tear
    return tear


def _shares_axis(one: Sequence[Factor], other: Sequence[Factor]) -> bool:
    return not {factor.axis for factor in one}.isdisjoint([factor.axis for factor in other])


def _ends(sizes: Sequence[int]) -> List[int]:
    """Returns the strides of a contiguous tensor, from the innermost dim on: 1, then the products of the sizes."""
    found = [1]
    for size in reversed(sizes):
        found.append(found[-1] * size)
    return found


def _is_clean(end: int, ends: Sequence[int]) -> bool:
    """True if a dim may end here: where a factor does, or where it splits one evenly."""
    if end in ends:
        return True
    for inner, outer in zip(ends, ends[1:]):  # noqa: RUF007  Python 3.9.
        if inner < end < outer:
            return end % inner == 0 and outer % end == 0
    return False


def _cut(source: Sequence[Factor], ends: Sequence[int]) -> List[List[Factor]]:
    """The factors between each two ends, from the innermost run on; an end inside of a factor splits that."""
    left, pieces = list(source), []
    for inner, outer in zip(ends, ends[1:]):  # noqa: RUF007  Python 3.9.
        needed = outer // inner
        piece: List[Factor] = []
        while needed > 1:
            factor = left.pop()
            if factor.size <= needed:
                piece.insert(0, factor)
                needed //= factor.size
            else:
                piece.insert(0, Factor(factor.axis, factor.stride, needed))
                left.append(Factor(factor.axis, factor.stride * needed, factor.size // needed))
                needed = 1
        pieces.append(piece)
    return pieces


def _shifted(pieces: Sequence[Sequence[Factor]], clean: Sequence[int], wanted: Sequence[int], source: Sequence[Factor]) -> List[int]:
    """The ends around dims that hold the inner part of one axis and the outer part of the next one, as sizes divide by chance."""
    found: List[int] = []
    for number, piece in enumerate(pieces):
        if len(piece) < 2 or wanted.index(clean[number + 1]) - wanted.index(clean[number]) != 1:
            continue
        first, last = piece[0], piece[-1]
        if first.axis is not last.axis and first not in source and last not in source:
            found += [clean[number], clean[number + 1]]
    return found


def _exchanged(ends: Sequence[int], wanted: Sequence[int]) -> List[int]:
    """The ends of dims that have the sizes of the tensor's dims in another order: `[B, 12, 768]` of `[B, 768, 12]`, as 12 divides 768."""
    found: List[int] = []
    shared = [end for end in wanted if end in ends]
    for low, high in zip(shared, shared[1:]):  # noqa: RUF007  Python 3.9.
        inside, asked = [end for end in ends if low < end < high], [end for end in wanted if low < end < high]
        for cut in inside:
            turned = low * (high // cut)  # where the outer dims end that now stand inside
            if turned in asked and turned != cut and _is_turned(low, cut, high, inside, asked):
                found += asked
                break
    return found


def _is_turned(low: int, cut: int, high: int, inside: Sequence[int], asked: Sequence[int]) -> bool:
    """True if dims end where those above and below a cut would, put the other way round, or split or join them."""
    turned = low * (high // cut)
    outer = {end * low // cut for end in inside if end > cut}
    inner = {end * turned // low for end in inside if end < cut}
    own_outer, own_inner = {end for end in asked if end < turned}, {end for end in asked if end > turned}
    return (outer <= own_outer or own_outer <= outer) and (inner <= own_inner or own_inner <= inner)


def _is_divided(sizes: Sequence[int], factors: Sequence[Factor]) -> bool:
    ends = _ends([factor.size for factor in factors])
    return all(_is_clean(end, ends) for end in _ends(sizes))


def note_used(dim: Dim) -> None:
    """Numbers along a dim are put together: if a view tore the dim, no later view mends that."""
    for factor in dim:
        if factor.axis.tear is not None:
            factor.axis.tear.use()


def part_of(dim: Dim, size: int, whole_size: int) -> Dim:
    """A part of a dim: `x[:, 1:]`, one of two chunks."""
    if size == whole_size:
        return dim
    known = is_known([dim])
    return new_dim(size, DERIVED if known else UNKNOWN, roots_of([dim]))
