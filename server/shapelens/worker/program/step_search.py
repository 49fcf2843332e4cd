"""The search for a call of one step (steps.py): what it is given.

A step is given what the example of its class gives to `forward`, in the forms that its text takes out of a batch, with targets. Of the
ways to call it the first counts in which nothing is wrong, perhaps with other sizes; where there is none, and where a class has no
`forward`, its arguments are searched for as those of a `forward` are.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..search.evidence import BuildPlan
from ..search.inputs import forms
from ..search.inputs.forms import Form
from ..search.inputs.input_search import InputSearch, last_of
from ..search.inputs.model_inputs import GivenParts
from ..search.trials.doubtful_examples import is_mismatch, runs_with_other_sizes
from ..search.trials.trial import Trial, TrialRunner
from .batch_parts import BatchPart, batch_parts, parts_given
from .class_examples import ClassExample, targets_of

# Steps before which a trainer calls `eval()`.
EVALUATED = ("validation_step", "test_step", "predict_step")
# Parameters of steps that are numbers, with a value for each.
NUMBERS = {
    "batch_idx": 0, "dataloader_idx": 0, "optimizer_idx": 0, "batch_index": 0, "batch_nb": 0, "nb_batch": 0, "epoch": 0,
    "n": 2, "num_samples": 2, "n_samples": 2, "batch_size": 2, "num_steps": 2, "max_length": 8, "max_new_tokens": 2,
}  # fmt: skip
# Parameters of steps that are texts.
TEXTS = {"stage": '"train"', "phase": '"train"', "mode": '"train"', "split": '"train"', "prefix": '"train"', "step_name": '"train"'}
BATCHES = ("batch", "train_batch", "val_batch", "test_batch", "data")
MOST_TRIALS = 14  # of one step, with what the example of its class gives
MOST_SEARCHED = 90  # of one step, when its arguments are searched for
MOST_RESIZED = 3  # calls that are tried with other sizes
_LABEL = re.compile(r"_|(.*_)?(labels?|targets?|y|ys|class\w*|gt|truth|answers?)(_.*)?")
_SIDES = ("P", "H", "W")  # roles of the dims of pictures
_TENSOR = re.compile(r"(\w+)\[([^\[\]()]+)\]")


class StepSearch:
    """The search for a call of one step."""

    def __init__(self, trials: TrialRunner, cls: type, name: str, model: str, given: Optional[ClassExample]) -> None:
        self._trials = trials
        self._cls = cls
        self._method = getattr(cls, name)
        self._bound = "%s.%s" % (model + ".eval()" if name in EVALUATED else model, name)
        self._given = given
        self._parts: Dict[str, BatchPart] = {}

    def expressions(self) -> List[str]:
        """The expression of the first call in which nothing is wrong; a second one where the step tells two optimizers apart."""
        found = self.as_given()
        if found:
            return found
        searched = self._searched()
        second = None if searched is None else _for_optimizer(1, self._method, searched)
        if searched is None or second is None:
            return [] if searched is None else [searched]
        return [searched, second] if self._fits(second) else []  # What only one of two optimizers can be given is no batch.

    def as_given(self) -> List[str]:
        """The same with what the example of its class gives, perhaps with other sizes; [] where nothing of that fits."""
        failed: List[Tuple[int, str, Trial]] = []
        for number, arguments in enumerate([*self._pictures_with_boxes(), *(self._ways() if self._given is not None else ())]):
            if number >= MOST_TRIALS or self._trials.is_over:
                break
            expression = "%s(%s)" % (self._bound, arguments)
            trial = self._trials.parted(self._bound, arguments)
            second = _for_optimizer(1, self._method, expression)
            if trial.error is None and not self._trials.evaluation.remarks.found:
                if second is None:
                    return [expression]
                trial = self._trials.whole(second)
                if trial.error is None and not self._trials.evaluation.remarks.found:
                    return [expression, second]
                expression = second
            if trial.error is not None and is_mismatch(trial):
                failed.append((-trial.reached, expression, trial))
        failed.sort(key=lambda each: each[0])
        for _, expression, trial in failed[:MOST_RESIZED]:
            other = runs_with_other_sizes(self._trials, expression, trial, keeps_constructor=True)
            for_each = [] if other is None else [_for_optimizer(number, self._method, other) or other for number in (0, 1)]
            if for_each and all(map(self._fits, dict.fromkeys(for_each))):
                return list(dict.fromkeys(for_each))
        return []

    def of_unknown(self) -> Optional[str]:
        """The call with a batch that nobody knows; None for a step that takes none."""
        wanted = [each.name for each in self._wanted()]
        if not set(wanted) & set(BATCHES):
            return None
        return "%s(%s)" % (self._bound, ", ".join([plain_argument(name) or "unknown" for name in wanted]))

    def _fits(self, expression: str) -> bool:
        trial = self._trials.whole(expression)
        return trial.error is None and not self._trials.evaluation.remarks.found

    def _searched(self) -> Optional[str]:
        """The call that is found as that of a `forward` would be."""
        if not self._wanted():
            return None
        parts = {each.name: self._given_parts(each.name) for each in self._wanted()}
        flat = {name: given for name, given in parts.items() if given is not None}
        search = InputSearch(self._trials, {}, MOST_SEARCHED, lambda made, error: [], self._forms, flat)
        best = last_of(search.search(BuildPlan(self._bound), self._trials.build(self._bound)[0]))
        if best is None or best.trial is None or best.trial.error is not None or self._trials.evaluation.remarks.found:
            return None
        return best.expression

    def _wanted(self) -> List[inspect.Parameter]:
        try:
            parameters = list(inspect.signature(self._method).parameters.values())[1:]
        except (TypeError, ValueError):
            return []
        return [
            each for each in parameters if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]

    def _part(self, name: str) -> BatchPart:
        if name not in self._parts:
            self._parts[name] = batch_parts(self._method, name, self._cls)
        return self._parts[name]

    # --- as the example of the class says ---

    def _ways(self) -> Iterator[str]:
        """The arguments to try: what the class calls so elsewhere; then `forward`'s own, in a batch with each form of targets."""
        given = self._given
        assert given is not None
        wanted = self._wanted()
        numbers = [fixed for fixed in [plain_argument(each.name) for each in wanted] if fixed is not None]
        others = [each.name for each in wanted if plain_argument(each.name) is None]
        targets = list(targets_of(given))
        if others and all(name in given.named for name in others):  # As the class calls these tensors itself.
            yield ", ".join([*[given.named[name] for name in others], *numbers])
        if others and (others[0] in BATCHES or (len(others) == 1 and numbers)):
            yield from (", ".join([batch, *numbers]) for batch in self._batches_of(others[0], given, targets))
        elif "loss" in getattr(self._method, "__name__", "") and len(others) == 2 and given.output is not None:
            yield from (", ".join([given.output, target, *numbers]) for target in targets)
        else:
            yield from (", ".join([*tensors, *numbers]) for tensors in _as_forward(len(others), given, targets))

    def _batches_of(self, name: str, given: ClassExample, targets: List[str]) -> Iterator[str]:
        """Returns the possible batches of that name: in the parts that the code takes; else the inputs, with targets or without."""
        part, own = self._part(name), ", ".join(given.arguments)
        if part.opening:
            yield from _batches(part, given, targets)
            return
        if part.place is None:
            yield from ("(%s, %s)" % (own, target) for target in targets)
        yield own if len(given.arguments) == 1 else "(%s,)" % own
        yield "(%s,)" % own

    def _pictures_with_boxes(self) -> Iterator[str]:
        """The arguments of a step of a model that detects objects: pictures, each with the boxes in it and what these are.

        Source of the form: https://docs.pytorch.org/vision/stable/models.html#object-detection
        """
        wanted = [each.name for each in self._wanted()]
        is_detection = "boxes" in self._trials.job.run.text and bool(wanted) and wanted[0] in BATCHES
        if not is_detection or len(self._part(wanted[0]).parts) != 2:
            return
        given = _TENSOR.fullmatch(self._given.arguments[0]) if self._given is not None and self._given.arguments else None
        sizes = given[2].split(", ")[1:] if given is not None and given[2].count(",") == 3 else ["3", "64", "64"]
        picture, target = "f32[%s]" % ", ".join(sizes), '{"boxes": f32[3, 4], "labels": i64[3]}'
        numbers = [fixed for fixed in [plain_argument(name) for name in wanted] if fixed is not None]
        yield ", ".join(["([%s, %s], [%s, %s])" % (picture, picture, target, target), *numbers])

    # --- as its text says ---

    def _given_parts(self, name: str) -> Optional[GivenParts]:
        """The parts of a batch of which the text says what is in it; None where they have parts themselves."""
        return parts_given(self._part(name), name, self._forms_of_leaf)

    def _forms(self, parameter: inspect.Parameter) -> List[Form]:
        """The forms of a number, or of a batch whose parts have parts themselves."""
        fixed = plain_argument(parameter.name)
        if fixed is not None:
            return [Form(fixed)]
        part = self._part(parameter.name)
        if not part.opening or self._given_parts(parameter.name) is not None:
            return []
        options = [self._forms_of_leaf(leaf, "%s.%d" % (parameter.name, number)) for number, leaf in enumerate(part.leaves())]
        return [_joined(part, [each[min(rank, len(each) - 1)] for each in options]) for rank in range(4)]

    def _forms_of_leaf(self, leaf: BatchPart, path: str) -> List[Form]:
        found: List[Form] = []
        if self._given is not None and leaf.place is not None and leaf.place < len(self._given.arguments):
            found = [form for form in [_with_free_sizes(self._given.arguments[leaf.place], path)] if form is not None]
        found += forms.forms_by_name(leaf.name)
        if leaf.name == "_":
            found.append(forms.shape_of("i64", "B", path))
        return [_as_in_batch(form, path) for form in forms.distinct_forms([*found, *forms.general_forms(path)], path)]


def _for_optimizer(number: int, method: Any, expression: str) -> Optional[str]:
    """The call of a step for one of the optimizers that it tells apart by `optimizer_idx`; None for any other step."""
    start, _, last = expression.rpartition(", ")
    if list(inspect.signature(method).parameters)[-1:] != ["optimizer_idx"] or not last[:-1].isdigit():
        return None
    return "%s, %d)" % (start, number)


def plain_argument(name: str) -> Optional[str]:
    """Returns the argument for a parameter of a step that is no tensor by its name."""
    return str(NUMBERS[name]) if name in NUMBERS else TEXTS.get(name)


def _as_forward(count: int, given: ClassExample, targets: List[str]) -> Iterator[Sequence[str]]:
    """As many tensors as a step takes: what `forward` takes, or gives, and a target where there is one more."""
    if count == len(given.arguments):
        yield given.arguments
        if given.output and count == 1:
            yield [given.output]
    elif count == len(given.arguments) + 1:
        yield from ([*given.arguments, target] for target in targets)
        if given.output and count == 2:
            yield from ([given.output, target] for target in targets)
    elif not count:
        yield []


def _batches(part: BatchPart, given: ClassExample, targets: List[str]) -> Iterator[str]:
    """Batches of that form, with what `forward` is given where the text says so, or else first, and with targets in the other places."""
    leaves = list(part.leaves())
    own = given.arguments
    placed = {number: own[leaf.place] for number, leaf in enumerate(leaves) if leaf.place is not None and leaf.place < len(own)}
    if not placed:
        likely = [number for number, leaf in enumerate(leaves) if not _LABEL.fullmatch(leaf.name)] or list(range(len(leaves)))
        placed = dict(zip(likely, own))
    rest = [number for number in range(len(leaves)) if number not in placed]

    def written(other: Dict[int, str]) -> str:
        return part.written(iter([placed.get(number) or other[number] for number in range(len(leaves))]))

    if not rest:
        yield written({})
        return
    views = {number: own[0] for number in rest if not _LABEL.fullmatch(leaves[number].name)} if own else {}
    if views:  # Several views of the same thing.
        for target in targets[:1] if len(views) == len(rest) else targets:
            yield written({number: views.get(number, target) for number in rest})
    for target in targets:
        yield written(dict.fromkeys(rest, target))


def _as_in_batch(form: Form, path: str) -> Form:
    """The form with the height and width that the other pictures of the batch have."""
    for side in _SIDES:
        own, common = "%s.%s" % (path, side), "%s.%s" % (path.partition(".")[0], side)
        if own in form.sizes:
            sizes = {common if name == own else name: size for name, size in form.sizes.items()}
            form = replace(form, template=form.template.replace("⟨%s⟩" % own, "⟨%s⟩" % common), sizes=sizes)
    return form


def _joined(part: BatchPart, leaves: List[Form]) -> Form:
    """The form of a batch with leaves of these forms."""
    sizes = {name: size for form in leaves for name, size in form.sizes.items()}
    return Form(part.written(iter([form.template for form in leaves])), sizes)


def _with_free_sizes(text: str, path: str) -> Optional[Form]:
    """The form of a tensor that is written down, with its sizes to be changed; None for what is no tensor."""
    found = _TENSOR.fullmatch(text)
    if found is None:
        return None
    sizes = [dim.partition(":")[2] or dim for dim in found[2].replace(" ", "").split(",")]
    if not all(size.isdigit() or size == "B" for size in sizes):
        return None
    words = ["B", *["U%d=%s" % (number, size) for number, size in enumerate(sizes[1:], start=1)]]
    if len(sizes) == 4 and sizes[2] == sizes[3]:
        words[2:] = ["P=" + sizes[2]] * 2
    return forms.shape_of(found[1], " ".join(words), path)
