"""Checks that the batch of an example is one: examples of a batch do not meet each other on the way through a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional

from ...trace.recorder import SeenValues
from ..trials.trial import TrialRunner
from .choices import ArgumentChoice, ChoiceNode, node_of
from .forms import FIRST, Form

OTHER_BATCH = 7  # no size that a model has by itself
_BATCH, _STEPS = "B:⟨#B⟩", "T:⟨#T⟩"


def with_steps(runner: TrialRunner, model: Any, node: ChoiceNode) -> Optional[ChoiceNode]:
    """A choice with sequences, [B, T, D], in the place of [B, D], where the model takes the batch of those for a sequence.

    None where it does not. Call it after the attempt that ran to its end; it makes one to three more.
    """
    flat = [argument for argument in node.arguments if argument.form is not None and _is_flat(argument.form)]
    if not flat or not _mixes_batch(runner, model, node):
        return None
    arguments: List[ArgumentChoice] = []
    for argument in node.arguments:
        form = argument.form
        if form is not None and argument in flat:
            template = form.template.replace(_BATCH, "%s, %s" % (_BATCH, _STEPS), 1)
            form = replace(form, template=template, sizes={**form.sizes, "#T": FIRST["T"]}, rank=3)
        arguments.append(argument._replace(form=form))
    other = node_of(node.plan, tuple(arguments), node.sizes)
    other.trial = runner.call(model, other.given)
    if other.trial.error is not None or _mixes_batch(runner, model, other):
        return None
    runner.call(model, other.given)  # What the last attempt saw is what is shown first.
    return other


def _is_flat(form: Form) -> bool:
    return form.rank == 2 and form.template.startswith("f32[" + _BATCH) and "#T" not in form.sizes and "#S" not in form.sizes


def _mixes_batch(runner: TrialRunner, model: Any, node: ChoiceNode) -> bool:
    """True if a tensor came about that has the batch twice, [B, B], as scores of attention have it."""
    before, batch = runner.seen, node.sizes.get("#B")
    if before is None or batch is None:
        return False
    other = node_of(node.plan, node.arguments, {**node.sizes, "#B": OTHER_BATCH})
    error = runner.call(model, other.given).error
    after = runner.seen
    return error is None and after is not None and _has_twice(before, after, batch)


def _has_twice(before: Dict[int, SeenValues], after: Dict[int, SeenValues], batch: int) -> bool:
    for number, seen in before.items():
        for key, other in zip(seen.sequence, after[number].sequence if number in after else ()):
            if key is None or other is None or not key[0] == other[0] == "tensor":
                continue
            if list(zip(key[1], other[1])).count((batch, OTHER_BATCH)) > 1:
                return True
    return False
