"""The choices that a search of inputs starts with: an argument for each required parameter, in its likeliest forms."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from ..code.container_contents import Container
from ..evidence import BuildPlan
from . import forms
from .choices import ArgumentChoice, ChoiceNode, Sizes, node_of
from .forms import Form
from .model_inputs import ModelInputs, is_required
from .name_priors import is_measured

_IS_STATE = re.compile(r"f32\[1, B:")
_HAS_STEPS_FIRST = re.compile(r"f32\[[ST]:[^,]*, B:")


class Starts:
    """Makes the first choices for a model."""

    def __init__(self, inputs: ModelInputs) -> None:
        self._inputs = inputs

    def of(self, plan: BuildPlan) -> Iterator[ChoiceNode]:
        required = [parameter for parameter in self._inputs.parameters if is_required(parameter)]
        if not required and self._inputs.parameters:
            unset = [each for each in self._inputs.parameters if each.default is None]
            tensors = [each for each in unset if not forms.scalars(each) and not self._inputs.given(each)]
            # Everything is optional, as in transformers: the first one is what it is about.
            required = tensors[:1]
        first = {each.name: self._inputs.forms_of(each)[0] for each in required}
        chosen: List[Tuple[ArgumentChoice, ...]] = [self._arguments(first)]
        chosen += [self._arguments(given) for given in self._with_other_forms(required)]
        if any(argument.container for argument in chosen[0]):
            chosen[1:1] = [self._arguments(first, count) for count in (4, 3, 1)]
        for arguments in chosen:
            sizes: Sizes = {}
            for argument in arguments:
                sizes.update(self._inputs.sizes_of(argument.form) if argument.form is not None else {})
                sizes.update(_as_wide(argument, arguments[0]))
            yield node_of(plan, arguments, sizes)

    def _with_other_forms(self, required: List[inspect.Parameter]) -> Iterator[Dict[str, Form]]:
        """Beside the first form of each argument: other forms of the one that comes first, which all is about."""
        if not required:
            return
        main, others = required[0], {each.name: self._inputs.forms_of(each)[0] for each in required[1:]}
        known = self._inputs.forms_of(main)
        yield from self._beside_states(required)
        yield from ({**others, main.name: form} for form in known[1:3])
        ranks = {form.rank for form in known[:3]}
        for form in known[3:]:
            # One of each rank: which of them comes furthest tells most. A single number goes with any other tensor, and tells nothing.
            is_left_out = (self._inputs.is_graph and form.rank > 2) or (form.rank == 0 and others)
            if form.rank not in ranks and not is_left_out:
                ranks.add(form.rank)
                yield {**others, main.name: form}
        for form in known if is_measured(main.name) else ():
            labels = {each.name: label for each in required[1:] for label in self._labels_of(form, each)[:1]}
            if labels:
                yield {**others, main.name: form, **labels}

    def _beside_states(self, required: List[inspect.Parameter]) -> Iterator[Dict[str, Form]]:
        """Sequences with their steps first, beside the state of a recurrent layer as it gives it by default: `[1, B, D]`, `[S, B, D]`."""
        first = {each.name: self._inputs.forms_of(each)[0] for each in required}
        states = {name for name, form in first.items() if _IS_STATE.match(form.template)}
        found: Dict[str, Form] = {}
        for each in required if states else ():
            steps_first = [form for form in self._inputs.forms_of(each) if _HAS_STEPS_FIRST.match(form.template)]
            if each.name not in states and steps_first:
                found[each.name] = steps_first[0]
        if found:
            yield {**first, **found}

    def _labels_of(self, form: Form, parameter: inspect.Parameter) -> List[Form]:
        """The forms of a parameter that are labels of what is measured: one for each of its rows, or pixels."""
        whole = [each for each in self._inputs.forms_of(parameter) if each.template.startswith("i64")]
        return [each for each in whole if form.rank > 2 and each.rank == form.rank - 1]

    def _arguments(self, chosen: Mapping[str, Form], count: int = 2) -> Tuple[ArgumentChoice, ...]:
        """An argument for each parameter, in one of the chosen forms. count: of tensors in what the text calls a list of them."""
        arguments: List[ArgumentChoice] = []
        for each in self._inputs.parameters:
            form = chosen.get(each.name)
            argument = ArgumentChoice(each.name, form, each.kind is inspect.Parameter.KEYWORD_ONLY)
            if form is not None:
                arguments += self._parts(argument, form, count) or [argument]
            elif each.kind is not inspect.Parameter.VAR_POSITIONAL:
                arguments.append(argument)
        return tuple(arguments)

    def _parts(self, argument: ArgumentChoice, form: Form, count: int) -> List[ArgumentChoice]:
        """The tensors of a list or tuple, if the text says that the parameter is one; of a tuple of different ones what it says of each."""
        container = self._inputs.containers.get(argument.name)
        said = self._inputs.shapes.get(argument.name)
        if container is not None and (container.opening not in "[(" or said is None or said.keys):
            return self._contained(argument, container)
        if said is None or said.container not in ("list", "tuple") or form.rank == -1:
            return []
        found = []
        along = len(container.layers) if container is not None else 0  # layers that the text gives an item each
        for number in range(len(said.parts) or along or count):
            part = argument._replace(container="[" if said.container == "list" else "(", key=str(number))
            own = forms.forms_of_shape(argument.name, said.parts[number]) if said.parts else []
            if not said.parts and said.dims is None and said.source == "docstring":
                own = forms.forms_of_sample(argument.name)
            found.append(part._replace(form=forms.distinct_forms(own[:1] or [form], part.path)[0]))
        return found

    def _contained(self, argument: ArgumentChoice, container: Container) -> List[ArgumentChoice]:
        """The parts that the text of `forward` reads, each in its likeliest form."""
        found = []
        is_pair = container.opening == "(" and len(container.keys) == 2  # of pictures to compare
        for number, key in enumerate(container.keys):
            part = argument._replace(container=container.opening, key=key, form=None)
            layer = forms.first_layer(container.layers[number]) if number < len(container.layers) else None
            of_layer = forms.distinct_forms(forms.forms_of_layer(layer, key), part.path) if layer is not None else []
            items = [self._item(part, container.of_items)] if container.of_items else []
            form = (of_layer or items or self._inputs.options(part))[0]
            picture = "%s.P" % part.path
            if picture in form.sizes and not is_pair:  # Feature maps, each half as large as the one before.
                form = replace(form, sizes={**form.sizes, picture: max(form.sizes[picture] >> number, 4)})
            found.append(part._replace(form=form))
        return found

    def _item(self, part: ArgumentChoice, keys: Sequence[str]) -> Form:
        """One of a list of dicts, as a detector is given for each picture: what the text says of its values, or tensors without a batch."""
        values: Dict[str, Form] = {}
        for key in keys:
            said = self._inputs.said_of_key(part.name, key)
            by_name = forms.forms_of_sample(key)
            found = forms.forms_of_shape(key, said, is_sample=True) if said is not None else by_name
            found.sort(key=lambda form, dtype=by_name[0].dtype: form.dtype != dtype)  # type: ignore[misc]
            values[key] = forms.distinct_forms(found, "%s.%s" % (part.path, key))[0]
        template = "{%s}" % ", ".join('"%s": %s' % (key, form.template) for key, form in values.items())
        return Form(template, {name: size for form in values.values() for name, size in form.sizes.items()})


def _as_wide(argument: ArgumentChoice, first: ArgumentChoice) -> Sizes:
    """The width of an argument of the same form as the first one, which is most often the same: `forward(x_enc, x_dec)`."""
    if argument.form is None or first.form is None or argument.path == first.path:
        return {}
    own = first.form.template.replace("⟨%s." % first.path, "⟨%s." % argument.path)
    if own != argument.form.template:
        return {}
    width, of_first = argument.path + ".D", first.path + ".D"
    return {width: first.form.sizes[of_first]} if width in argument.form.sizes and of_first in first.form.sizes else {}
