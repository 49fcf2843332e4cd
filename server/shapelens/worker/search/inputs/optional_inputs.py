"""Inputs that may be left out: given one at a time once a choice runs to its end, and kept where more of the code runs with them."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..code.branches import is_passed_on, statements_without
from ..code.sources import function_node
from ..evidence import InputShape, sizes_in
from ..trials.demands import Demand, demands
from ..trials.solving import sizes_for
from ..trials.trial import Trial, TrialRunner
from .choices import ArgumentChoice, ChoiceNode, node_of
from .forms import Form, scalars
from .name_priors import tensors_by_name

MOST_INPUTS = 4  # that are tried
MOST_TRIES = 9  # of one input where `forward` has a branch for it
FEW_TRIES = 3  # of one that `forward` only passes on
MOST_FORMS = 6
LIKELIEST_FORMS = 3
LONGEST = 0.8  # seconds

FormsOf = Callable[[inspect.Parameter], List[Form]]


class LeftOut:
    """The search for arguments of optional parameters, for one model."""

    def __init__(
        self, runner: TrialRunner, parameters: Sequence[inspect.Parameter], said: Mapping[str, InputShape], forms_of: FormsOf
    ) -> None:
        self.runner = runner
        self._parameters = parameters
        self._said = said
        self._forms_of = forms_of

    def given(self, node: ChoiceNode) -> ChoiceNode:
        """The choice with further arguments: those with which more of the code runs, and all of it that ran before."""
        model, built = self.runner.build(node.constructor)
        if built.error is not None or node.trial is None:
            return node
        until = min(self.runner.clock() + LONGEST, self.runner.until)
        best, was_last = node, True
        for parameter, most in self._candidates(node, model):
            for other in self._tried(best, parameter, model, most, until):
                was_last = False
                if other.trial is not None and other.trial.error is None:
                    if best.trial is not None and other.trial.reached > best.trial.reached:
                        best, was_last = other, True
                    break
        if not was_last:  # What an attempt saw is shown before the example itself runs.
            self.runner.call(model, best.given)
        return best

    def with_one(self, node: ChoiceNode, model: object) -> List[str]:
        """The choice as an example with one argument more, each in its likeliest forms; truths are turned."""
        found = []
        for parameter, _ in self._candidates(node, model):
            forms = [form for form in self._forms_of(parameter) if form.rank >= 0][:LIKELIEST_FORMS]
            found += [self._with(node, parameter.name, same).expression for form in forms for same in _along(form, node)]
        return found

    def _candidates(self, node: ChoiceNode, model: object) -> List[Tuple[inspect.Parameter, int]]:
        """(parameter, attempts that it is worth), those first for which most of `forward` waits."""
        function = function_node(getattr(model, "forward", model))
        if function is None:
            return []
        absent = {argument.name for argument in node.arguments if argument.form is None}
        found = []
        for parameter in self._parameters:
            if parameter.name in absent and self._may_be_tensor(parameter):
                count = statements_without(function, parameter.name)
                if count or is_passed_on(function, parameter.name):
                    found.append((parameter, count))
        found.sort(key=lambda each: -each[1])
        return [(parameter, MOST_TRIES if count else FEW_TRIES) for parameter, count in found[:MOST_INPUTS]]

    def _may_be_tensor(self, parameter: inspect.Parameter) -> bool:
        if parameter.default is not None or scalars(parameter):
            return False
        said = self._said.get(parameter.name)
        if said is not None and (said.dims is not None or said.dtype or said.container):
            return True
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else str(annotation)
        if annotation is not inspect.Parameter.empty:
            return "Tensor" in text
        return bool(tensors_by_name(parameter.name))

    def _tried(self, node: ChoiceNode, parameter: inspect.Parameter, model: object, most: int, until: float) -> Iterator[ChoiceNode]:
        """The choice with one argument more, in one form after the other, and with the sizes that a failed attempt asks for."""
        forms = [form for form in self._forms_of(parameter) if form.rank >= 0][:MOST_FORMS]
        left = [same for form in forms for same in _along(form, node)]
        for _ in range(most):
            if not left or self.runner.clock() > until:
                return
            other = self._with(node, parameter.name, left.pop(0))
            yield self._attempt(other, model)
            wanted = demands(other.trial) if other.trial is not None else []
            for sizes in self._sizes(node, other, wanted, model, until):
                yield self._attempt(node_of(other.plan, other.arguments, {**other.sizes, **sizes}), model)
                break
            left = _fitting(left, wanted)

    def _sizes(
        self, node: ChoiceNode, other: ChoiceNode, wanted: Sequence[Demand], model: object, until: float
    ) -> Iterator[Dict[str, int]]:
        """Sizes of the new argument alone: the others fit without it."""

        def reaches(sizes: Dict[str, int]) -> Optional[Trial]:
            if self.runner.clock() > until:
                return None
            return self._attempt(node_of(other.plan, other.arguments, {**other.sizes, **sizes}), model).trial

        own = {name: size for name, size in other.sizes.items() if name not in node.sizes}
        if own and any(demand.kind in ("equal", "multiple") for demand in wanted):
            yield from sizes_for(other.trial, wanted, own, set(), reaches)

    def _attempt(self, node: ChoiceNode, model: object) -> ChoiceNode:
        node.trial = self.runner.call(model, node.given)
        return node

    def _with(self, node: ChoiceNode, name: str, form: Form) -> ChoiceNode:
        arguments: List[ArgumentChoice] = [
            argument._replace(form=form) if argument.name == name else argument for argument in node.arguments
        ]
        return node_of(node.plan, tuple(arguments), node.sizes)


def _along(form: Form, node: ChoiceNode) -> List[Form]:
    """A form whose steps, or nodes, are those of each sequence that is given: whose mask it is a name need not say."""
    dims = form.template.partition("[")[2][:-1].split(", ")
    own = next((dim for dim in dims if _key(dim) == "#T" or (_key(dim) == "#N" and "#N" not in node.sizes)), "")
    found = []
    for step in _steps(node) if own else ():
        key, before = _key(step), _key(own)
        sizes = {key if name == before else name: node.sizes[key] if name == before else size for name, size in form.sizes.items()}
        found.append(replace(form, template=form.template.replace(own, step), sizes=sizes))
    return found or [form]


def _steps(node: ChoiceNode) -> List[str]:
    """The dims, as they stand in templates, that are the steps of sequences: [B, T, D], or indices [B, T]."""
    found: Dict[str, str] = {}
    for argument in node.arguments:
        if argument.form is None or argument.container or argument.form.rank not in (2, 3):
            continue
        dims = argument.form.template.partition("[")[2][:-1].split(", ")
        place = dims.index("B:⟨#B⟩") if "B:⟨#B⟩" in dims[:2] else None
        if place is not None and (argument.form.rank == 3 or argument.form.dtype == "i64") and _key(dims[1 - place]) in node.sizes:
            found.setdefault(_key(dims[1 - place]), dims[1 - place])
    return list(found.values())


def _key(dim: str) -> str:
    return sizes_in(dim)[0] if sizes_in(dim) else ""


def _fitting(left: List[Form], wanted: Sequence[Demand]) -> List[Form]:
    """The forms that are left, those first that a failed attempt asks for."""
    dtypes = [demand.text for demand in wanted if demand.kind == "dtype"][:1]
    ranks = [demand.need for demand in wanted if demand.kind == "rank"][:1]
    return sorted(left, key=lambda form: (bool(dtypes) and form.dtype not in dtypes, bool(ranks) and form.rank not in ranks))
