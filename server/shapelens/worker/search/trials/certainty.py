"""What a mismatch rests on: the code alone, or what was guessed of the example. It is proven by running the example with other guesses.

Each number that was guessed is changed, those that are equal together. A mismatch whose sizes stay as they are rests on none of them, nor
does one whose sizes keep their ratio or difference, as no number makes them fit. Texts and truths of the constructor are changed as well,
and inputs that may be left out are given. A run that does not come to the place, as something else does not fit before, says nothing: the
code does not admit that input.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ....protocol import FileSpan, Mismatch
from ....traces import Origin
from ...calls.mismatches import mismatch_of
from ...calls.module_calls import Mistake, mistake_of
from ...evaluation.evaluation import NONE_TURNED
from ...evaluation.expression import compile_expression, evaluate
from ...sandbox.limits import TooLong, within
from ..evidence import with_sizes
from .demands import demands
from .doubtful_examples import NOT_OF_TENSORS, template_of
from .solving import step_of
from .trial import RefusedInput, Trial, TrialRunner

PROOF_SECONDS = 2.0  # beyond those of the search: else it would be an error on a fast machine only
MOST_VARIANTS = 12
_OF_FORMS = ("rank", "dtype", "missing", "parts", "number")  # demands that other sizes cannot meet
_DUPLICATE = "duplicate dims"
OF_CONSTRUCTORS = ("attention-heads", "layer-arguments")  # findings of what constructors of layers refuse
JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")
# Of what may lie between a layer and a mismatch: these leave each dim where it is.
SAME_DIMS = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "relu",
        "leaky_relu",
        "elu",
        "gelu",
        "silu",
        "sigmoid",
        "tanh",
        "softmax",
        "dropout",
        "contiguous",
        "clone",
        "interpolate",
        "pad",
        "batch_norm",
        "layer_norm",
        "group_norm",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "adaptive_avg_pool2d",
        "adaptive_max_pool2d",
    ]
)
_INT = re.compile(r"(?<![\w.])\d+(?![\w.])")

Mismatches = Dict[Mistake, Mismatch]
Changed = Tuple[int, int]  # a number, and the one in its place
UNCHANGED = (1, 1)


def certain_mistakes(runner: TrialRunner, expression: str, variants: Sequence[str] = (), *, keeps_constructor: bool = False) -> Mismatches:
    """The mistakes among the mismatches of an example: those that no other guess avoids.

    variants: the example with other options or further arguments; keeps_constructor: nothing of the constructor was guessed.
    """
    runner.until = max(runner.until, runner.clock() + PROOF_SECONDS)
    try:
        found = _certain(runner, expression, variants, keeps_constructor=keeps_constructor)
    except TooLong:
        return {}
    return {} if runner.is_over else found


def is_among(mistakes: Mismatches, found: Mismatch, spans: Sequence[Optional[FileSpan]]) -> bool:
    """True if a mismatch is one of these mistakes, with sizes that fit as little. spans: where the layers were constructed."""
    known = mistakes.get(mistake_of(found, spans))
    return known is not None and _never_fit(_clash(known), _clash(found))


def _certain(runner: TrialRunner, expression: str, variants: Sequence[str], *, keeps_constructor: bool) -> Mismatches:
    base = _all_that_fails(runner, expression)
    if not base:
        return {}
    left = {mistake: found for mistake, found in base.items() if _may_be_certain(found, is_alone=len(base) == 1)}
    left = _without_consequences(base, left)
    if not left:
        return {}
    for size, texts in _other_sizes(expression, keeps_constructor=keeps_constructor):
        left = _apart_from(runner, base, left, size, texts)
    for text in variants[:MOST_VARIANTS] if left else ():
        left = _without(base, left, _all_that_fails(runner, text), UNCHANGED)
    return left


def _all_that_fails(runner: TrialRunner, expression: str) -> Optional[Mismatches]:
    """The mismatches of an example that is run past all of them, and the exception that ended it; None where that cannot be told. Raises
    TooLong."""
    evaluation = runner.evaluation
    if runner.is_over:
        return None
    try:
        code = compile_expression(expression)
    except (SyntaxError, ValueError):
        return None
    with evaluation.aside():
        calls = evaluation.watch_anew()
        with within(runner.most_seconds):
            start = partial(evaluation.start, 0, NONE_TURNED)
            error = evaluation.run(start, partial(evaluate, code, runner.names, {}, {}))
        found = list(calls.mismatches)
        if error is not None:
            found.append(mismatch_of(error, 0, evaluation.frames, evaluation.meta, calls))
    told: Mismatches = {}
    for each in found:
        told.setdefault(mistake_of(each, calls.spans), each)
    return told


def _without_consequences(base: Mismatches, left: Mismatches) -> Mismatches:
    """Without those that may follow from what stands in for the result of an earlier one: all but the first, unless a layer's constructor
    says the size that arrived."""
    first = next(iter(base))
    return {mistake: found for mistake, found in left.items() if mistake == first or (found.origins and found.origins[0].argument)}


# --- what stays the same of a mismatch ---


def _clash(found: Mismatch) -> Tuple[int, ...]:
    """The sizes that do not fit each other: what arrived and what is needed, or else all numbers that are told."""
    wanted = [each for each in demands(Trial(0, RefusedInput(found), found)) if each.kind in ("equal", "multiple") and each.got > 0]
    return (wanted[0].got, wanted[0].need) if wanted else tuple(map(int, _INT.findall(found.message)))


def _never_fit(one: Tuple[int, ...], other: Tuple[int, ...]) -> bool:
    """Whether the sizes of a mismatch are the same after a change, or go along with each other so that none makes them fit."""
    if one == other:
        return True
    if len(one) != 2 or len(other) != 2:
        return False
    return one[0] - one[1] == other[0] - other[1] or one[0] * other[1] == one[1] * other[0]


def _may_be_certain(found: Mismatch, *, is_alone: bool) -> bool:
    """Whether a mismatch may rest on the code alone. is_alone: all the rest of the example fits.

    Of a layer it may where another layer's constructor says the size that arrived, or where nothing else fails and no dims were joined on
    the way; of an operation where layers say the sizes of both sides. An input of another rank might come through dims that were joined or
    moved. What the constructor of a layer refuses, or an operation whatever it is given, needs no input at all.
    """
    if found.code in NOT_OF_TENSORS or not found.trail:
        return False
    if _DUPLICATE in found.message or (not found.inputs and found.code in OF_CONSTRUCTORS):
        return True
    of_layers = [each for each in found.origins if each.argument]
    is_direct = bool(of_layers) and not _is_rearranged(found, of_layers[0])
    if not found.argument:
        return is_direct and len(of_layers) > 1
    if is_direct and found.origins[0] is of_layers[0]:
        return True
    asks_for_form = any(each.kind in _OF_FORMS for each in demands(Trial(0, RefusedInput(found), found)))
    is_joined = any(suspect.operation in JOINING and suspect.shape != suspect.result for suspect in found.suspects)
    return is_alone and not asks_for_form and not is_joined


def _is_rearranged(found: Mismatch, origin: Origin) -> bool:
    """Whether dims were joined or moved between the layer that says a size and what failed."""
    for suspect in found.suspects:
        if suspect.layer is not None and suspect.layer == origin.layer:
            return False
        if suspect.layer is None and suspect.operation not in SAME_DIMS:
            return True
    return False


def _stands(base: Mismatches, mistake: Mistake, found: Mismatch, other: Optional[Mismatches], changed: Changed) -> Optional[bool]:
    """Whether a mismatch stands in another run too; None where that says nothing of it, as the code refuses what was changed."""
    if other is None:
        return None
    same, new = other.get(mistake), [each for key, each in other.items() if key not in base]
    if same is None:
        return None if new else False
    if _never_fit(_clash(found), _clash(same)):
        return True
    return None if any(_refuses(each, *changed) for each in new) else False


def _refuses(found: Mismatch, size: int, other: int) -> bool:
    """Whether a mismatch says that the code wants this size in the place of the other one."""
    clash = _clash(found)
    if len(clash) != 2 or 0 in clash:
        return False
    got, need = clash
    if got % other == 0 and need % size == 0:
        return True
    return found.need is None and need % other == 0 and got % size == 0


def _without(base: Mismatches, left: Mismatches, other: Optional[Mismatches], changed: Changed) -> Mismatches:
    """The mismatches that another run does not avoid."""
    return {mistake: found for mistake, found in left.items() if _stands(base, mistake, found, other, changed) is not False}


def _apart_from(runner: TrialRunner, base: Mismatches, left: Mismatches, size: int, texts: Iterable[Tuple[str, int]]) -> Mismatches:
    """The mismatches that do not depend on a number: of the examples with others in its place, the first that tells of one counts."""
    waiting, kept = dict(left), set(left)
    for text, other_size in texts:
        if not waiting or runner.is_over:
            break
        other = _all_that_fails(runner, text)
        for mistake, found in list(waiting.items()):
            stands = _stands(base, mistake, found, other, (size, other_size))
            if stands is not None:
                del waiting[mistake]
                kept -= set() if stands else {mistake}
    return {mistake: found for mistake, found in left.items() if mistake in kept}


# --- other guesses ---


def _other_sizes(expression: str, *, keeps_constructor: bool) -> Iterator[Tuple[int, List[Tuple[str, int]]]]:
    """For each number that was guessed, the examples with another one in its place, and in that of the numbers that are equal to it."""
    template, sizes, of_constructor = template_of(expression)
    free = {name: size for name, size in sizes.items() if size and not (keeps_constructor and name in of_constructor)}
    for size in dict.fromkeys(free.values()):
        names, step = [name for name, other in free.items() if other == size], step_of(size)
        texts = [
            (with_sizes(template, {**sizes, **dict.fromkeys(names, other)}), other) for other in (size + step, 2 * size, size + 2 * step)
        ]
        if len(names) > 1:
            texts += [(with_sizes(template, {**sizes, name: size + step}), size + step) for name in names]
        yield size, list(dict.fromkeys(texts))
