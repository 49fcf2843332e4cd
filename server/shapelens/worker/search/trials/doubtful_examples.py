"""Tells mistakes of the code from mistakes of the example: a mismatch counts if no other choice avoids it."""

from __future__ import annotations

import ast
import re
from typing import Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import torch

from ....protocol import FileSpan
from ....stated.syntax_trees import expression_of
from ...sandbox.exceptions import traceback_of
from ...shims.data_sets import absences
from ..evidence import NOTHING_SAID, InputSaid, with_sizes
from .demands import demands
from .solving import LARGEST_BATCH_OR_CHANNELS, STEPS, Sizes, adds_samples, sizes_for, sizes_that_matter
from .trial import Trial, TrialRunner

MOST_TRIES = 40
# Of an example that ran before an edit: the edit is to blame, unless a size that has to do with what failed avoids it.
MOST_TRIES_AFTER_EDIT = 16
MOST_OPTIONS = 12  # that are tried for one example
LARGEST_COMMON = 1024  # size of a picture or sequence
NOT_OF_TENSORS = ("exception", "data-dependent", "definition", "missing-import", "missing-file", "unavailable")
_NUMBER = re.compile(r"(?<![\w.\"'⟨])\d+(?![\w.\"'⟩])")
_NO_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute")
_SQUARE = re.compile(r"\b([1-9]\d{1,3}|[89])(?:, \1)+(?=\])")  # the last sizes of a tensor
_BATCH = re.compile(r"\bB:⟨(\d+)⟩")
_OF_STEPS = re.compile(r"\b(?:%s):⟨(\d+)⟩" % "|".join(STEPS))


def is_mismatch(trial: Trial) -> bool:
    """True if an attempt failed as tensors did not fit, in the file's own code."""
    return trial.found is not None and trial.found.code not in NOT_OF_TENSORS and bool(trial.found.trail)


def cannot_be_built(trial: Trial) -> bool:
    """True if an attempt to build a model failed as tensors or the arguments of one of torch's layers did not fit. One that builds it of
    what is not there, as of a file of settings, says nothing of that."""
    traceback = traceback_of(trial.error) if trial.error is not None else None
    if traceback is None or trial.found is None or not trial.found.trail:
        return False
    while traceback.tb_next is not None:
        if absences.is_met_by(traceback.tb_frame.f_code, traceback.tb_lineno):
            return False
        traceback = traceback.tb_next
    layer = traceback.tb_frame.f_locals.get("self")
    is_of_torch = isinstance(layer, torch.nn.Module) and type(layer).__module__.partition(".")[0] == "torch"
    return is_mismatch(trial) or (is_of_torch and traceback.tb_frame.f_code.co_name == "__init__")


def places_of(runner: TrialRunner, trial: Trial) -> List[FileSpan]:
    """Where the last attempt failed: the expression, and the places where the layer and the module were made that this happened in."""
    found, made = trial.found, runner.evaluation.calls.spans
    if found is None or found.span is None:
        return []
    running = [index for index in [found.layer, *found.inside[:1]] if index is not None and index < len(made)]
    return [found.span] + [place for place in (made[index] for index in running) if place is not None]


def avoids_failure(runner: TrialRunner, expression: str, places: Sequence[FileSpan]) -> bool:
    """True if an example that runs does what another one failed at. One that takes another way says nothing of what failed."""
    if runner.is_over or attempt(runner, expression).error is not None or runner.seen is None:
        return True  # It ran before, so that this is no ground to think otherwise.
    left = {(place.file, place.line, place.column, place.end_line, place.end_column) for place in places}
    recorder = runner.evaluation.recorder
    for number in runner.seen:
        site, file = recorder.sites[number], recorder.file_of(number)
        left.discard((file, *site.place))
        if site.statement is not None:
            left.discard((file, *site.statement))
        if not left:
            return True
    return not left


def asks_for_another_form(runner: TrialRunner, trial: Trial) -> bool:
    """True if an attempt failed in a way that other sizes cannot mend, but another kind of input might."""
    if trial.found is None or not trial.found.trail:
        return True
    if lacks_own_attribute(runner, trial):
        return False
    return any(demand.kind in ("rank", "dtype", "missing", "parts") for demand in demands(trial))


def lacks_own_attribute(runner: TrialRunner, trial: Trial) -> bool:
    """True if an attempt failed as a module of the file lacks an attribute: no input has it."""
    owner = _NO_ATTRIBUTE.match(trial.found.message) if trial.found is not None else None
    return owner is not None and _is_module_class(runner, owner[1])


def _is_module_class(runner: TrialRunner, name: str) -> bool:
    try:
        cls = runner.names[name]
    except KeyError:
        return False
    return isinstance(cls, type) and issubclass(cls, torch.nn.Module)


def attempt(runner: TrialRunner, expression: str) -> Trial:
    """Try an example, its model and its arguments apart where it is the call of a call."""
    parts = _parts(expression)
    return runner.whole(expression) if parts is None else runner.parted(*parts)


def runs_with_other_sizes(
    runner: TrialRunner,
    expression: str,
    trial: Optional[Trial],
    *,
    ran_before: bool = False,
    keeps_constructor: bool = False,
    said: InputSaid = NOTHING_SAID,
) -> Optional[str]:
    """The example with other numbers in it, with which it runs to its end; None where none was found. Squares stay squares if they can.

    ran_before: an earlier version of the text ran with it. Then only those numbers are changed on which the mismatch depends.
    keeps_constructor: only numbers of the input are changed; said: numbers of the input that are not.
    """
    if trial is None:
        return None
    found: Optional[str] = None
    for square in (True, False) if _SQUARE.search(expression) and not said.is_square else (True,):
        found = found or _with_other_sizes(
            runner, expression, trial, ran_before=ran_before, keeps_constructor=keeps_constructor, said=said, square=square
        )
    return found


def _with_other_sizes(
    runner: TrialRunner,
    expression: str,
    trial: Trial,
    *,
    ran_before: bool,
    keeps_constructor: bool,
    said: InputSaid,
    square: bool,
) -> Optional[str]:
    template, sizes, guessed = template_of(expression, square=square)
    worked: Dict[str, str] = {}
    most = MOST_TRIES_AFTER_EDIT if ran_before else MOST_TRIES
    tries = 0

    def reaches(changed: Dict[str, int]) -> Optional[Trial]:
        nonlocal tries
        tries += 1
        if tries > most or runner.is_over or any(size == 1 and sizes[name] > LARGEST_BATCH_OR_CHANNELS for name, size in changed.items()):
            return None  # One goes with any size: that hides what is wrong.
        text = with_sizes(template, {**sizes, **changed})
        tried = attempt(runner, text)
        if tried.error is None:
            worked.setdefault("", text)
        return tried

    found = _BATCH.search(template)
    batch = found[1] if found is not None else ""
    kept = guessed if keeps_constructor or not square else ()  # What else there is was tried with the square.
    free = _free_sizes(sizes, guessed, kept, said)
    if ran_before and batch and sizes[batch] == 2:
        # Where two samples went through before, a batch of another size mends nothing that is not wrong.
        free.pop(batch, None)
    steps = [name for name in _OF_STEPS.findall(template) if sizes[name] != sizes[batch]] if batch and adds_samples(trial) else []
    broadcasts = ran_before and trial.found is not None and trial.found.code == "broadcast"
    for changed in (sizes_that_matter if ran_before else sizes_for)(trial, demands(trial), free, guessed, reaches):
        if worked or tries > most or runner.is_over:
            break
        if broadcasts and any(size == 1 < sizes[name] for name, size in changed.items()):
            continue  # One goes with any size, as it did not have to before.
        after = {**sizes, **changed}
        if any(after[name] == after[batch] for name in steps):
            continue  # As many steps as there are samples: that hides what is wrong.
        reaches(changed)
    return worked.get("")


def _free_sizes(sizes: Mapping[str, int], guessed: Collection[str], kept: Collection[str], said: InputSaid) -> Dict[str, int]:
    """The sizes that may change: all but those that are kept, and those of inputs that the code says. guessed: of the constructor."""
    return {name: size for name, size in sizes.items() if name not in kept and (name in guessed or not said.binds(size))}


def runs_with_other_options(runner: TrialRunner, expression: str, node: Optional[ast.ClassDef]) -> Optional[str]:
    """The example with another text or truth in its constructor, with which it runs to its end; None where none was found.

    node: the class; a text may be one that its code compares with something.
    """
    for other in with_other_options(expression, node):
        if runner.is_over:
            break
        if attempt(runner, other).error is None:
            return other
    return None


def with_other_options(expression: str, node: Optional[ast.ClassDef]) -> List[str]:
    """The example with another text or truth in its constructor, one at a time. node: as above."""
    parts, call = _parts(expression), _call(expression)
    if parts is None or call is None or node is None:
        return []
    constants = [part for part in ast.walk(call.func) if isinstance(part, ast.Constant) and isinstance(part.value, (str, bool))]
    known = _texts_asked_for(node)
    changes: List[Tuple[ast.Constant, object]] = [(part, not part.value) for part in constants if isinstance(part.value, bool)]
    changes += [(part, text) for part in constants if isinstance(part.value, str) for text in known if text != part.value]
    return [expression[: part.col_offset] + repr(value) + expression[part.end_col_offset :] for part, value in changes[:MOST_OPTIONS]]


def _texts_asked_for(node: ast.ClassDef) -> List[str]:
    """The texts that the code of a class compares something with: `kind == "glu"`, `kind in ("a", "b")`, `kind.endswith("glu")`."""
    found: List[str] = []
    for part in ast.walk(node):
        asked: List[ast.expr] = []
        if isinstance(part, ast.Compare):
            asked = [part.left, *part.comparators]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("startswith", "endswith"):
            asked = part.args
        values = [value for each in asked for value in ast.walk(each) if isinstance(value, ast.Constant)]
        found += [value.value for value in values if isinstance(value.value, str)]
    return list(dict.fromkeys(found))


def is_far_fetched(expression: str, known: str) -> bool:
    """True if an example needs far larger numbers than the one that was known, or pictures that no longer are square."""
    largest, before = (max(map(int, _NUMBER.findall(text)), default=0) for text in (expression, known))
    return largest > max(LARGEST_COMMON, 4 * before) or len(_SQUARE.findall(expression)) < len(_SQUARE.findall(known))


def template_of(expression: str, *, square: bool = True) -> Tuple[str, Sizes, Set[str]]:
    """The expression with a name in the place of each number, the numbers by these names, and the names of those of the constructor.

    square: the sides of a square picture have one name.
    """
    sizes: Sizes = {}
    sides = {at for match in _SQUARE.finditer(expression) for at in _starts_of_sides(match)} if square else set()
    inputs_begin = len(constructor_of(expression))
    guessed: Set[str] = set()

    def place(match: "re.Match[str]") -> str:
        name = "%d" % (len(sizes) - 1 if match.start() in sides else len(sizes))
        sizes[name] = int(match[0])
        if match.start() < inputs_begin:
            guessed.add(name)
        return "⟨%s⟩" % name

    return _NUMBER.sub(place, expression), sizes, guessed


def _starts_of_sides(match: "re.Match[str]") -> List[int]:
    """Where the sides of a square or a cube begin, but for the first one."""
    width = len(match[1]) + 2
    return list(range(match.start() + width, match.end(), width))


def _parts(expression: str) -> Optional[Tuple[str, str]]:
    """The constructor and the arguments of `Net(10)(f32[2, 3])` or `Net(10).step(f32[2, 3])`, as text; None for any other expression."""
    call = _call(expression)
    if call is None or not isinstance(call.func, (ast.Call, ast.Attribute)):
        return None
    if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Call):
        return None
    at = call.func.end_col_offset or 0
    constructor, arguments = expression[:at], expression[at:]
    return (constructor, arguments[1:-1]) if arguments.startswith("(") and arguments.endswith(")") else None


def constructor_of(expression: str) -> str:
    """`Net(10)` of `Net(10)(f32[2, 3])`; "" of any other expression."""
    parts = _parts(expression)
    return "" if parts is None else parts[0]


def _call(expression: str) -> Optional[ast.Call]:
    """The call that an expression is; None for any other expression, and where columns of its text cannot be told from bytes."""
    body = expression_of(expression) if expression.isascii() else None
    return body if isinstance(body, ast.Call) else None
