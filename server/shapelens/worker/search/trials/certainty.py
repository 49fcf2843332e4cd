"""Tells what a mismatch rests on: the code alone, or what was guessed of the example. It is proven by running the example with other
guesses.

Each number that was guessed is changed, those that are equal together. A mismatch whose sizes stay as they are rests on none of them, nor
does one whose sizes keep their ratio or difference, as no number makes them fit. Texts and truths of the constructor are changed as well,
and inputs that may be left out are given. A run that does not come to the place, as something else does not fit before, says nothing: the
code does not admit that input.
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Dict, List, Optional, Sequence, Set, Tuple

from ....protocol import FileSpan, Mismatch
from ....traces import Origin
from ...calls.mismatches import mismatch_of
from ...calls.module_calls import Mistake, mistake_of
from ...calls.sure_mistakes import is_called_by_name, is_in_constructor
from ...evaluation.evaluation import NONE_TURNED
from ...evaluation.expression import compile_expression, evaluate
from ...sandbox.limits import TooLong, within
from .demands import demands
from .doubtful_examples import NOT_OF_TENSORS, constructor_of
from .other_examples import MOST_VARIANTS, TOGETHER, Said, other_dtypes, other_lists, other_ranks, other_sizes
from .solving import LARGEST_BATCH_OR_CHANNELS, STEPS, are_even
from .trial import RefusedInput, Trial, TrialRunner

PROOF_SECONDS = 5.0  # beyond those of the search: else it would be an error on a fast machine only
_OF_FORMS = ("rank", "dtype", "missing", "parts", "number")  # demands that other sizes cannot meet
_DUPLICATE = "duplicate dims"
_OF_OTHER_RANK = "values to match the convolution dimensions"  # The kernel of a convolution has too many dims, or too few.
_OF_STAND_IN = re.compile(r"this needs what .* gives, which is not known")  # something that failed before is used
# What a constructor refuses for what it was given, which a guess may have brought about: a list in the place of layers, a sum of no sizes.
_OF_ARGUMENTS = re.compile(
    r"is not a Module subclass|must be greater than zero|should be .*zero|negative|string formatting|not str\b|'str'"
)
_REFUSING = re.compile(r"(\w+)\.__init__\(\)")  # the class whose constructor takes other arguments
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
_JOINED = re.compile(r"must match except in dimension (\d+)\..* for tensor number (\d+) in the list")
_VIEWED = re.compile(r"shape '\[([^\]]*)\]' is invalid for input of size (\d+)")
_OF_CHECKS = ("AssertionError", "EinopsError")  # of what looks at the dims itself
_UNBATCHED = re.compile(r"Conv\w* expected input dim 0 of size")  # A convolution wants a batch.

OF_DIMS = ("broadcast", "cat")  # findings of operations that compare the dims of two tensors one by one, counted from the last
# Findings of operations whose message says which sizes clash: a layer's code is that of its function, too.
OF_SIZES = (*OF_DIMS, "view", "split", "matmul", "einsum", "attention", "conv-in-channels", "linear-in-features")
_OF_BATCH = re.compile(r"\bB:(\d+)")
_OF_STEPS = re.compile(r"\b(?:%s):(\d+)" % "|".join(STEPS))
_FLATTENING = ("flatten", "view", "reshape")
_SQUARE = re.compile(r"\[[^\[\]]*, [^\[\]]*, (?:\w+:)?(\d+), (?:\w+:)?\1\]")  # a tensor of at least four dims: a square picture
Mismatches = Dict[Mistake, Mismatch]
Clashes = Dict[int, Tuple[int, ...]]  # sizes that do not fit each other; by the dim, counted from the last, where several are compared
Changed = Tuple[int, int]  # a number, and the one in its place
UNCHANGED = (1, 1)


def certain_mistakes(runner: TrialRunner, expression: str, variants: Sequence[str], said: Said) -> Mismatches:
    """The mistakes among the mismatches of an example: those that no other guess avoids.

    variants: the example with other options or further arguments; said: what of it was not guessed.
    """
    runner.until = max(runner.until, runner.clock() + PROOF_SECONDS)
    try:
        found = _certain(runner, expression, variants, said)
    except TooLong:
        return {}
    return {} if runner.is_over else found


def suspected_mistake(runner: TrialRunner, expression: str, said: Said) -> Tuple[Mismatches, Mismatches]:
    """The first mismatch of an example in which others fail as well, where other sizes do not avoid it: if an example that has the same
    one fits otherwise, it is a mistake. {} for none. Then those that come of it."""
    runner.until = max(runner.until, runner.clock() + PROOF_SECONDS)
    try:
        base = _all_that_fails(runner, expression) or {}
        first = {mistake: found for mistake, found in list(base.items())[:1] if _may_be_certain(found, is_alone=True)}
        left = _apart_from_sizes(runner, base, first, expression, said)
    except TooLong:
        return {}, {}
    if runner.is_over or not left:
        return {}, {}
    return left, {mistake: found for mistake, found in base.items() if mistake not in left and _follows(next(iter(left.values())), found)}


def is_ill_formed(found: Mismatch) -> bool:
    """True if no input makes an operation fit, whatever it is given."""
    return _DUPLICATE in found.message or _OF_OTHER_RANK in found.message


def is_among(mistakes: Mismatches, found: Mismatch, spans: Sequence[Optional[FileSpan]]) -> bool:
    """True if a mismatch is one of these mistakes, with sizes that fit as little. spans: where the layers were constructed."""
    known = mistakes.get(mistake_of(found, spans))
    return known is not None and _still_clash(known, found)


def _certain(runner: TrialRunner, expression: str, variants: Sequence[str], said: Said) -> Mismatches:
    base = _all_that_fails(runner, expression)
    if not base:
        return {}
    if _is_refused(next(iter(base.values())), expression):
        return {mistake: found for mistake, found in base.items() if is_ill_formed(found)}
    is_alone = _all_follow_first(base)
    left = {
        mistake: found
        for mistake, found in base.items()
        if _may_be_certain(found, is_alone=is_alone or (said.inputs.is_square and _fits_no_square(found)))
    }
    left = _without_consequences(base, left)
    left = _apart_from_sizes(runner, base, left, expression, said)
    for text in other_lists(expression) if left and not said.constructor else ():
        other = _all_that_fails(runner, text)
        if other is not None and other.keys() <= base.keys():  # Anything else that fails says nothing.
            left = {mistake: found for mistake, found in left.items() if mistake in other}
    for text in variants[:MOST_VARIANTS] if left else ():
        left = _without(base, left, _all_that_fails(runner, text), UNCHANGED)
    return _apart_from_dtypes(runner, base, _apart_from_ranks(runner, base, left, expression), expression)


def _apart_from_ranks(runner: TrialRunner, base: Mismatches, left: Mismatches, expression: str) -> Mismatches:
    """The mismatches that inputs of no other rank avoid."""
    if not any(map(_may_hang_on_rank, left.values())):
        return left
    others = [(_all_that_fails(runner, text), _sizes_in(text)) for text in other_ranks(expression)]

    def stands(mistake: Mistake) -> bool:
        return bool(others) and all(_stands_at_rank(base, mistake, *other) for other in others)

    return {mistake: found for mistake, found in left.items() if not _may_hang_on_rank(found) or stands(mistake)}


def _apart_from_dtypes(runner: TrialRunner, base: Mismatches, left: Mismatches, expression: str) -> Mismatches:
    """The mismatches that inputs of no other dtype avoid."""
    if not any(found.code == "dtype" for found in left.values()):
        return left
    others = [_all_that_fails(runner, text) for text in other_dtypes(expression)]

    def stands(mistake: Mistake) -> bool:
        return bool(others) and all(_stands_at_dtype(base, mistake, other) for other in others)

    return {mistake: found for mistake, found in left.items() if found.code != "dtype" or stands(mistake)}


def _is_refused(found: Mismatch, expression: str) -> bool:
    """True if the code's own check says a size of the input that it does not take."""
    said = set(map(int, _INT.findall(found.message))) if found.exception == "AssertionError" else set()
    return bool(said & {size for size in _sizes_in(expression) if size > LARGEST_BATCH_OR_CHANNELS})


def _apart_from_sizes(runner: TrialRunner, base: Mismatches, left: Mismatches, expression: str, said: Said) -> Mismatches:
    """The mismatches that depend on none of the numbers that were guessed."""
    sides = {int(match[1]) for match in _SQUARE.finditer(expression, len(constructor_of(expression)))} if said.inputs.is_square else set()
    batch, steps = (set(map(int, pattern.findall(expression))) for pattern in (_OF_BATCH, _OF_STEPS))
    dims = {mistake: set(_clashes(found)) for mistake, found in left.items()}
    for size, texts in other_sizes(expression, said) if left else ():
        fits_none = {mistake: found for mistake, found in left.items() if size in sides and _fits_no_square(found)}
        by_chance = steps if size in batch else batch if size in steps else set()
        left = {**fits_none, **_apart_from(runner, base, left, size, texts, dims, is_side=size in sides, by_chance=by_chance)}
    return {mistake: found for mistake, found in left.items() if dims[mistake]}


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
    return {
        mistake: found
        for mistake, found in left.items()
        if mistake == first or found.pinned is not None or (found.origins and found.origins[0].argument) or is_ill_formed(found)
    }


def _all_follow_first(base: Mismatches) -> bool:
    """True if all that fails in a run has to do with what fails first: its place gave what led to the others, or runs several times, or
    the others are layers that refuse the same for the same reason."""
    first, *others = base.values()
    others = [other for other in others if not _OF_STAND_IN.search(other.message) and not _are_refused_alike(first, other)]
    return all(_follows(first, other) for other in others)


def _follows(first: Mismatch, other: Mismatch) -> bool:
    """True if the place of a mismatch gave what led to another one."""
    return _is_in(first.span, [other.span, *[suspect.span for suspect in other.suspects]])


def _is_in(span: Optional[FileSpan], places: Sequence[Optional[FileSpan]]) -> bool:
    """True if a place is one of these, or a part of the expression at one of these."""
    if span is None:
        return False
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    return any(
        place is not None and place.file == span.file and (place.line, place.column) <= start and end <= (place.end_line, place.end_column)
        for place in places
    )


def _are_refused_alike(one: Mismatch, other: Mismatch) -> bool:
    """True if two layers ask for the same size of what was given to both."""
    is_of_layers = bool(one.argument and other.argument) and one.got is not None and one.need is not None
    return is_of_layers and (one.got, one.need, one.inputs[:1]) == (other.got, other.need, other.inputs[:1])


# --- what stays the same of a mismatch ---


def _clashes(found: Mismatch) -> Clashes:
    """The sizes that do not fit each other, of each dim in which two tensors differ."""
    joined = _JOINED.search(found.message) if found.code == "cat" else None
    given = [found.inputs[number] for number in (0, int(joined[2]) if joined else 1) if number < len(found.inputs)]
    shapes = [each.shape for each in given if each.shape] if found.code in OF_DIMS and not found.argument else []
    if len(shapes) < 2 or len(shapes[0]) != len(shapes[1]):
        return {0: _clash(found)}
    told: Clashes = {}
    counts_one = found.code == "cat" or found.message.startswith("output with shape")  # In place, a dim of 1 is not stretched.
    for back in range(1, len(shapes[0]) + 1):
        one, other = shapes[0][-back], shapes[1][-back]
        if joined and len(shapes[0]) - back == int(joined[1]):
            continue
        if one and other and one != other and (counts_one or min(one, other) > 1):
            told[back] = (one, other)
    return told or {0: _clash(found)}


def _clash(found: Mismatch) -> Tuple[int, ...]:
    """The sizes that do not fit each other: what arrived and what is needed, or else all numbers that are told."""
    if found.pinned is not None and found.need is not None:
        return found.pinned, found.need
    of_view = _VIEWED.search(found.message) if found.code == "view" else None
    if of_view is not None and "-1" not in of_view[1]:
        return int(of_view[2]), math.prod(map(int, _INT.findall(of_view[1])))
    wanted = [each for each in demands(Trial(0, RefusedInput(found), found)) if each.kind in ("equal", "multiple") and each.got > 0]
    return (wanted[0].got, wanted[0].need) if wanted else tuple(map(int, _INT.findall(found.message)))


def _still_clash(one: Mismatch, other: Mismatch) -> bool:
    """True if two sizes clash in a mismatch after a change as before, or in one dim at least of those that are compared."""
    if one.lacks_transpose and other.lacks_transpose:
        return True
    before, after = _clashes(one), _clashes(other)
    return any(_never_fit(before[back], after[back]) for back in before.keys() & after.keys())


def _never_fit(one: Tuple[int, ...], other: Tuple[int, ...]) -> bool:
    """True if the sizes of a mismatch are the same after a change, or go along with each other so that none makes them fit."""
    if one == other:
        return True
    if len(one) != 2 or len(other) != 2:
        return False
    return one[0] - one[1] == other[0] - other[1] or one[0] * other[1] == one[1] * other[0]


def _may_be_certain(found: Mismatch, *, is_alone: bool) -> bool:
    """True if a mismatch may rest on the code alone. is_alone: all the rest of the example fits.

    Of a layer it may where the constructor of another one, or of a normalisation, says the size that arrived, or where nothing else fails;
    of an operation where layers or parameters say the sizes of both sides, or where nothing else fails. A dtype may be wrong where
    nothing else fails, and what is no tensor is, if the code made it of some. What the constructor of a layer refuses, or an operation
    whatever it is given, needs no input.
    """
    if (found.code in NOT_OF_TENSORS and found.exception != "EinopsError") or not found.trail:
        return False
    if is_ill_formed(found) or _changes_parameter_when_made(found):
        return True
    if _is_item_of_input(found):
        return False
    if not found.inputs and found.code in OF_CONSTRUCTORS:
        return _is_refused_by_constructor(found)
    if _are_sizes_said(found) or found.pinned is not None:
        return True
    if found.code == "layer-as-function" or (found.code == "layer-input" and found.origins):
        return True
    return is_alone and _may_be_certain_alone(found)


def _is_item_of_input(found: Mismatch) -> bool:
    """True if an input was indexed for what failed, as a list of feature maps is: `conv_out[-1]`. Its items may have sizes of their own."""
    indexed = found.origins[0] if len(found.origins) == 1 else None
    return indexed is not None and indexed.operation == "__getitem__" and bool(indexed.shape) and indexed.shape[1:] == indexed.result


def _is_refused_by_constructor(found: Mismatch) -> bool:
    """True if what a constructor refuses is written in its call, rather than an argument that the example gives."""
    refusing = _REFUSING.match(found.message)
    is_named = refusing is None or found.span is None or is_called_by_name(refusing[1], found.span)
    return is_named and _OF_ARGUMENTS.search(found.message) is None


def _are_sizes_said(found: Mismatch) -> bool:
    """True if layers or parameters say the sizes that clash: of both sides of an operation, of what a layer takes."""
    of_layers = [each for each in found.origins if each.argument]
    if not of_layers or _is_rearranged(found, of_layers[0]):
        return False
    return found.origins[0] is of_layers[0] if found.argument else len(of_layers) > 1 or bool(found.of_parameter)


def _may_be_certain_alone(found: Mismatch) -> bool:
    """True if a mismatch may rest on the code where all the rest of the example fits."""
    if _forms_asked_for(found) - ({"rank", "dtype"} if found.code == "dtype" else {"rank"}):
        return False
    if found.operation == "expand":  # The sizes that it is given may be those of another input: `q.expand(c.shape)`.
        return False
    if found.code == "dtype":
        return True
    if found.argument:
        return not _is_of_rank(found)
    is_of_sizes = found.code in OF_SIZES or (found.code == "shape" and len(_clash(found)) == 2 and "divisible" in found.message)
    return _is_of_rank(found) or found.lacks_transpose or is_of_sizes or found.exception == "EinopsError"


def _changes_parameter_when_made(found: Mismatch) -> bool:
    """True if a constructor changes a parameter in place that it has made: nobody makes a model without gradients."""
    return found.code == "in-place" and len(found.origins) < 2 and found.span is not None and is_in_constructor(found.span)


def _forms_asked_for(found: Mismatch) -> Set[str]:
    """Returns the kinds of demands of a mismatch that other sizes do not meet."""
    return {each.kind for each in demands(Trial(0, RefusedInput(found), found)) if each.kind in _OF_FORMS}


def _is_of_rank(found: Mismatch) -> bool:
    """True if tensors of another number of dims may be what a mismatch asks for."""
    return "rank" in _forms_asked_for(found)


def _may_hang_on_rank(found: Mismatch) -> bool:
    """True if an input of another number of dims might avoid a mismatch, which asks for it, comes through joined dims, or is a view's.

    What is joined along the second dim of five may be joined along the last one of two.
    """
    is_joined = any(suspect.operation in JOINING and suspect.shape != suspect.result for suspect in found.suspects)
    return _is_of_rank(found) or found.code in ("view", "cat") or (bool(found.argument) and found.pinned is None and is_joined)


def _is_rearranged(found: Mismatch, origin: Origin) -> bool:
    """True if dims were joined or moved between the layer that says a size and what failed."""
    for suspect in found.suspects:
        if suspect.layer is not None and suspect.layer == origin.layer:
            return False
        if suspect.layer is None and suspect.operation not in SAME_DIMS:
            return True
    return False


def _fits_no_square(found: Mismatch) -> bool:
    """True if a layer asks for features that no square picture has: 2048, where 1024 channels of 7 · 7 were flattened."""
    for suspect in found.suspects if found.code == "linear-in-features" else ():
        if suspect.operation in _FLATTENING and len(suspect.shape) == 4 and found.got is not None and found.need is not None:
            channels, height, width = suspect.shape[1:]
            if channels and height and height == width and channels * height * width == found.got:
                area, rest = divmod(found.need, channels)
                return rest > 0 or math.isqrt(area) ** 2 != area
    return False


def _fits_as_one(found: Mismatch, other: Mismatch) -> bool:
    """True if two sizes that are to be equal are 1 and what follows the picture: only one that has a single place fits."""
    before, after = _clashes(found), _clashes(other)
    return found.code == "cat" and any(min(before[back]) == min(after[back]) == 1 for back in before.keys() & after.keys())


def _is_refused_before(base: Mismatches, mistake: Mistake, other: Mismatches) -> bool:
    """True if a layer refuses in another run what it takes in this one, before it comes to the mistake: the two ask for different sizes."""
    earlier = list(other)[: list(other).index(mistake)]
    return any(key not in base and other[key].argument and other[key].need is not None for key in earlier)


def _stands(
    base: Mismatches, mistake: Mistake, found: Mismatch, other: Optional[Mismatches], changed: Changed, *, is_side: bool = False
) -> Optional[bool]:
    """Returns whether a mismatch stands in another run too; None where that says nothing of it, as the code refuses what was changed.
    is_side: whether the sides of pictures were changed."""
    if other is None:
        return None
    same, new = other.get(mistake), [each for key, each in other.items() if key not in base]
    if same is None:
        return None if new else False
    if _still_clash(found, same) or (is_side and _fits_as_one(found, same)):
        return True
    if _is_refused_before(base, mistake, other):
        return None
    new += [same] if same.trail != found.trail else []  # The code is called there too.
    return None if any(_refuses(each, *changed) for each in new) else False


def _stands_at_rank(base: Mismatches, mistake: Mistake, other: Optional[Mismatches], sizes: Set[int]) -> bool:
    """True if a mismatch stands where an input has another number of dims, or the code wants the one that it had. sizes: of its dims."""
    if other is None:
        return True
    if mistake in other:  # What has as many dims as it should may still have other sizes than what it meets.
        return _is_of_rank(other[mistake]) or not _is_of_rank(base[mistake])
    is_first = mistake == next(iter(base))
    new = [each for key, each in other.items() if key not in base]
    return any(
        _is_of_rank(each) or each.exception in _OF_CHECKS or _lacks_a_dim(each, sizes) or (is_first and _UNBATCHED.match(each.message))
        for each in new
    )


def _lacks_a_dim(found: Mismatch, sizes: Set[int]) -> bool:
    """True if a view asks for as many times more numbers as a dim has, or fewer: the code counts on one dim less, or on one more."""
    asked = sorted(_clash(found)) if found.code == "view" and _VIEWED.search(found.message) else []
    # 2 is the size of a batch, and what a wrong factor is most often.
    return len(asked) == 2 and asked[0] > 0 and asked[1] % asked[0] == 0 and asked[1] // asked[0] in sizes - {1, 2}


def _sizes_in(expression: str) -> Set[int]:
    """The sizes of the tensors that an example calls its model with."""
    return set(map(int, _INT.findall(expression, len(constructor_of(expression)))))


def _stands_at_dtype(base: Mismatches, mistake: Mistake, other: Optional[Mismatches]) -> bool:
    """True if a mismatch stands where an input has another dtype, or the code wants the one that it had."""
    if other is None or mistake in other:
        return True
    return any("dtype" in each.code or "dtype" in _forms_asked_for(each) for key, each in other.items() if key not in base)


def _refuses(found: Mismatch, size: int, other: int) -> bool:
    """True if a mismatch says that the code wants this size in the place of the other one."""
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


def _apart_from(
    runner: TrialRunner,
    base: Mismatches,
    left: Mismatches,
    size: int,
    texts: Sequence[Tuple[str, int]],
    dims: Dict[Mistake, Set[int]],
    *,
    is_side: bool,
    by_chance: Set[int],
) -> Mismatches:
    """The mismatches that no other number avoids: of the examples with others in its place, the first that tells of one counts. Where its
    sizes follow that number, none of which makes them fit, all of these examples do. A number of `by_chance` does not count: there are
    as many steps as samples then.

    dims: those of each mismatch whose sizes clash whatever number was changed; where several clash, one number may be behind each.
    """
    waiting, kept, changed = dict(left), set(left), set()
    seen: List[Tuple[int, Mismatches]] = [(size, base)]
    for place, (text, other_size) in enumerate(texts):
        if not waiting or runner.is_over:
            break
        other = _all_that_fails(runner, text)
        seen += [(other_size, other)] if other is not None else []
        for mistake, found in list(waiting.items()):
            if found.lacks_transpose and _has_size(found, other_size):
                continue  # Dims that are equal by chance hide it.
            stands = _stands(base, mistake, found, other, (size, other_size), is_side=is_side)
            again = other.get(mistake) if other is not None else None
            if again is not None and len(_clashes(found)) > 1:
                dims[mistake] &= _dims_that_never_fit(found, again)
            if stands is False and again is not None and len(seen) <= len(texts):
                runs = [(each, known[mistake]) for each, known in seen if mistake in known]
                stands = True if _fits_with_none(runs, by_chance) else None
                kept -= set() if stands else {mistake}  # Until three of them tell.
                changed.add(mistake)
            elif mistake in changed and place >= TOGETHER:
                continue  # It depends on a number, which is not the one of those that are equal that was changed alone.
            elif stands is not None:
                kept -= {mistake}
            if stands is not None:
                del waiting[mistake]
                kept |= {mistake} if stands else set()
    return {mistake: found for mistake, found in left.items() if mistake in kept}


def _dims_that_never_fit(found: Mismatch, again: Mismatch) -> Set[int]:
    """The dims of a mismatch whose sizes clash after a change as they did before."""
    before, after = _clashes(found), _clashes(again)
    return {back for back in before.keys() & after.keys() if _never_fit(before[back], after[back])}


def _fits_with_none(runs: Sequence[Tuple[int, Mismatch]], by_chance: Set[int]) -> bool:
    """True if the difference of the sizes of a mismatch follows a number evenly in these three runs, and is zero for no whole one; or one
    size is the other as many times as the number says, which is one head, or one layer, where they fit."""
    clashes = [(size, _clash(found)) for size, found in runs[:3]]
    if _is_of_one(runs[0][1]):
        return False  # The size that arrived is a product of several numbers: no single one tells.
    if len(clashes) < 3 or any(len(clash) != 2 for _, clash in clashes):
        return False
    if all(size > 1 and 0 not in clash and size * min(clash) == max(clash) for size, clash in clashes):
        return True
    points = [(size, got - need) for size, (got, need) in clashes]
    (x0, y0), (x1, y1) = points[:2]
    if y0 == y1 or not are_even(points):
        return False
    zero, rest = divmod(y0 * (x1 - x0), y0 - y1)
    return rest != 0 or x0 + zero <= 0 or x0 + zero in by_chance


def _is_of_one(found: Mismatch) -> bool:
    """True if all dims but the last one of what a layer was given are 1, as code has it that takes one character after the other."""
    shape = found.inputs[0].shape if found.inputs and found.argument else None
    return shape is not None and len(shape) > 1 and set(shape[:-1]) == {1}


def _has_size(found: Mismatch, size: int) -> bool:
    """True if a dim of what a mismatch was given has this size."""
    return any(size in (each.shape or ()) for each in found.inputs)


# --- other guesses ---
