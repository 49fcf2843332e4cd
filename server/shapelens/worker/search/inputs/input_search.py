"""Finds out what a model can be called with: forms of its arguments, changed by what each failed attempt asks for.

A best-first search. A node is a choice of forms and sizes that was tried and failed; its neighbours are what the failure asks for. The node
that came furthest in the text is gone on from first, and less and less the more of its neighbours were tried in vain.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
import re
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Optional, Set, Tuple

from ...sandbox.limits import TooLong
from ..evidence import BuildPlan, InputSaid, InputShape
from ..trials.demands import demands
from ..trials.doubtful_examples import lacks_own_attribute
from ..trials.trial import Trial, TrialRunner
from . import forms
from .batch_mixing import with_steps
from .choices import ChoiceNode, node_of
from .forms import Form
from .model_inputs import GivenParts, ModelInputs, with_one_batch
from .neighbours import Adjusted, Neighbours
from .optional_inputs import LeftOut
from .starts import Starts

SMALL = 8  # height and width of a picture that takes little time
MOST_ALIKE = 20  # attempts that end alike
_SQUARE = re.compile(r", (\d+), \1\]")


class InputSearch:
    """The search for the arguments of one model."""

    def __init__(
        self,
        runner: TrialRunner,
        shapes: Mapping[str, InputShape],
        most: int,
        adjusted: Adjusted,
        given: Callable[[inspect.Parameter], List[Form]] = lambda parameter: [],
        parts: Optional[Mapping[str, GivenParts]] = None,
    ) -> None:
        """given: the forms of a parameter that is no tensor, where more is known of it than its annotation says; parts: those of parameters
        that are known to be containers.
        """
        self.runner = runner
        self._given = given
        self._given_parts = parts or {}
        self.shapes = with_one_batch(shapes)  # what the text says of the parameters of `forward`
        self.most = most  # attempts
        self.best: Optional[ChoiceNode] = None  # that came furthest, without coming to its end
        self.too_long = False  # whether an attempt was cut off
        self._hopeless = False  # whether what fails has nothing to do with inputs
        self._alike: Dict[Tuple[Any, str], int] = {}  # attempts that failed at the same place with the same words
        self._adjusted = adjusted
        self._lacks_dims: Optional[ChoiceNode] = None  # an attempt whose dims want to be permuted or added: another fits by chance
        self._ran: List[ChoiceNode] = []  # that ran to its end
        self._from = ChoiceNode(BuildPlan(""), (), {})  # whose neighbours are tried
        self._count = itertools.count()
        self._tried: Set[Tuple[str, str]] = set()
        self._known: ModelInputs

    def search(self, plan: BuildPlan, model: Any) -> Iterator[ChoiceNode]:
        """The choice that came furthest, each time that further ones were tried; the last one ran to its end, if one did."""
        self._ran, self._lacks_dims = [], None
        self.too_long = self._hopeless = False
        known = self._known = ModelInputs(plan, model, self.shapes, self._given, self._given_parts)
        self.shapes = known.shapes
        self._neighbours = Neighbours(known.parameters, known.options, self._reach, self._adjusted, known.said)
        waiting: List[Tuple[float, int, ChoiceNode]] = []
        if not (yield from self._from_starts(plan, waiting)):
            yield from self._by_neighbours(waiting)

    @property
    def inputs_said(self) -> InputSaid:
        """The facts that the code says of the model's inputs."""
        return self._known.said

    def _from_starts(self, plan: BuildPlan, waiting: List[Tuple[float, int, ChoiceNode]]) -> Generator[ChoiceNode, None, bool]:
        """Attempt the likeliest choices, and keep those that fail. Returns whether the search is over."""
        for start in Starts(self._known).of(plan):
            if start.key in self._tried:
                continue
            if self._attempt(start):
                yield start
                return True
            smaller = _of_smaller_pictures(start)
            if smaller is not None and self._takes_less(smaller):
                yield smaller
                return True
            if self.best is not None:
                yield self.best
            self._push(waiting, start)
            if self._is_over():
                return True
        return False

    def _by_neighbours(self, waiting: List[Tuple[float, int, ChoiceNode]]) -> Iterator[ChoiceNode]:
        """Attempt the neighbours of what failed, of what came furthest first."""
        while waiting and not self._is_over():
            _, _, node = heapq.heappop(waiting)
            if self._is_exhausted(node):
                continue
            self._from = node
            if node.neighbours is None:
                node.neighbours = self._neighbours.of(node)
            other = next(node.neighbours, None)
            if self._ran:  # While sizes were solved for.
                yield self._ran[0]
                return
            if self.best is not None:
                yield self.best
            if other is None:
                continue
            node.used += 1
            self._push(waiting, node)
            if other.key in self._tried:
                node.used -= 1
                continue
            if self._attempt(other):
                yield other
                return
            if _is_new(node, other):
                self._push(waiting, other)

    def completed(self, node: ChoiceNode) -> ChoiceNode:
        """A choice that ran to its end, with the optional arguments with which more of the code runs, and with a batch that is one."""
        model, _ = self.runner.build(node.constructor)
        if not self._known.is_graph:
            node = with_steps(self.runner, model, node) or node
        return LeftOut(self.runner, self._known.parameters, self.shapes, self._known.forms_of).given(node)

    def with_more(self, node: ChoiceNode) -> List[str]:
        """A choice that failed as an example, with one argument more that may be left out, in its likeliest forms."""
        model, _ = self.runner.build(node.constructor)
        return LeftOut(self.runner, self._known.parameters, self.shapes, self._known.forms_of).with_one(node, model)

    def said(self, node: ChoiceNode) -> Optional[InputShape]:
        """Returns the text's words for an input that a node follows."""
        for argument in node.arguments:
            said = self.shapes.get(argument.name)
            if said is None or said.dims is None or said.source == "body" or argument.form is None:
                continue
            if argument.form.rank == len(said.dims):
                return said
        return None

    def _is_over(self) -> bool:
        return self.too_long or self._hopeless or len(self._tried) >= self.most or self.runner.is_over

    def _is_exhausted(self, node: ChoiceNode) -> bool:
        """True if so many other choices ended as this one did that it depends on none of them."""
        return node.trial is not None and self._alike.get(_words_of(node.trial), 0) >= MOST_ALIKE

    def _push(self, heap: List[Tuple[float, int, ChoiceNode]], node: ChoiceNode) -> None:
        heapq.heappush(heap, (-node.score, next(self._count), node))

    def _attempt(self, node: ChoiceNode) -> bool:
        """Try a node; whether it ran to its end."""
        self._tried.add(node.key)
        model, built = self.runner.build(node.constructor)
        if built.error is not None:
            node.trial = built
            node.trial.reached = 0
            return False
        self.runner.wants_batch = True
        try:
            trial = node.trial = self.runner.call(model, node.given)
        finally:
            self.runner.wants_batch = False
        if self._lacks_dims is not None and _fits_by_chance(node, self._lacks_dims):
            node.trial = self._lacks_dims.trial  # This input only hides what is missing.
            return False
        if trial.error is None:
            self._ran.append(node)
            return True
        if trial.found is not None and trial.found.lacks_transpose:
            self._lacks_dims = node
        self.too_long = self.too_long or isinstance(trial.error, TooLong)
        self._hopeless = self._hopeless or lacks_own_attribute(self.runner, trial)
        words = _words_of(trial)
        self._alike[words] = self._alike.get(words, 0) + 1
        best = self.best.trial if self.best is not None else None
        if best is None or trial.reached > best.reached or (trial.reached == best.reached and _asks_for_dims(best) > _asks_for_dims(trial)):
            self.best = node
        return False

    def _takes_less(self, node: ChoiceNode) -> bool:
        """True if an attempt with smaller pictures comes to its end in much less time: `forward` loops over them."""
        before = self.runner.clock()
        return self._attempt(node) and self.runner.clock() - before < self.runner.most_seconds / 2

    def _reach(self, node: ChoiceNode) -> Optional[Trial]:
        if self._is_over() or self._is_exhausted(self._from):
            return None
        self._attempt(node)
        return node.trial


def last_of(search: Iterator[ChoiceNode]) -> Optional[ChoiceNode]:
    """The last choice of a whole search: it ran to its end, or came furthest. None where nothing could be tried."""
    last: Optional[ChoiceNode] = None
    for choice in search:
        last = choice
    return last


def _words_of(trial: Trial) -> Tuple[Any, str]:
    """Where an attempt failed, and what was said there."""
    return trial.place, trial.found.message if trial.found is not None else str(trial.error)


def _asks_for_dims(trial: Trial) -> bool:
    """True if an attempt failed as a tensor has too few dims or too many."""
    return any(demand.kind == "rank" for demand in demands(trial))


def _fits_by_chance(node: ChoiceNode, failed: ChoiceNode) -> bool:
    """True if a tensor that is given is square where dims were to be permuted or added.

    So it is if another batch or tensors of fewer dims are given where a mask lacked a dim, unless the mask itself is given.
    """
    is_square = _SQUARE.search(node.given) is not None
    found = failed.trial.found if failed.trial is not None else None
    is_of_mask = found is not None and any(each.dtype == "bool" for each in found.inputs)
    if not is_of_mask or any("mask" in each.name for each in node.arguments):
        return is_square and node.trial is not None and node.trial.error is None
    ranks = {each.name: each.form.rank for each in failed.arguments if each.form is not None}
    has_fewer = any(each.form is not None and each.form.rank < ranks.get(each.name, 0) for each in node.arguments)
    return is_square or has_fewer or node.sizes.get("#B") != failed.sizes.get("#B")


def _is_new(node: ChoiceNode, other: ChoiceNode) -> bool:
    """True if a node says something that the one that it came from did not: other sizes that change nothing lead nowhere."""
    if node.trial is None or other.trial is None or [each.form for each in node.arguments] != [each.form for each in other.arguments]:
        return True
    if other.trial.reached != node.trial.reached or other.trial.place != node.trial.place:
        return other.trial.reached >= node.trial.reached
    before, after = demands(node.trial), demands(other.trial)
    if len(after) < len(before):
        return True
    if len(other.arguments) < 2:
        return False
    # What a layer asks for of one of its inputs is met, and it asks for something of the next one.
    changed = {size for name, size in other.sizes.items() if node.sizes.get(name) != size}
    met = {demand for demand in before if demand.kind == "equal" and demand.need in changed}
    return bool(met) and met.isdisjoint(after)


def _of_smaller_pictures(node: ChoiceNode) -> Optional[ChoiceNode]:
    """Returns a choice that took too long, with pictures of a few places; None where it has no pictures, or did not take too long."""
    if node.trial is None or not isinstance(node.trial.error, TooLong):
        return None
    forms_given = [argument.form for argument in node.arguments if argument.form is not None]
    sides = [name for form in forms_given for name in form.sizes if forms.is_of_side(name, form)]
    sizes = {name: SMALL for name in sides if node.sizes.get(name, 0) > SMALL}
    return node_of(node.plan, node.arguments, {**node.sizes, **sizes}) if sizes else None
