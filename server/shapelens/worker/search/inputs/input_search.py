"""Finds out what a model can be called with: forms of its arguments, changed by what each failed attempt asks for.

A best-first search. A node is a choice of forms and sizes that was tried and failed; its neighbours are what the failure asks for. The node
that came furthest in the text is gone on from first, and less and less the more of its neighbours were tried in vain.
"""

from __future__ import annotations

import ast
import heapq
import inspect
import itertools
import re
from dataclasses import replace
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ....stated.shape_words import is_batch
from ...sandbox.limits import TooLong
from ...trace import module_tree
from ..code.container_contents import Container, container_of
from ..code.sources import function_node
from ..evidence import NOTHING_SAID, BuildPlan, InputSaid, InputShape
from ..text.plain_numbers import plain_number, plain_texts
from ..trials.demands import demands
from ..trials.doubtful_examples import lacks_own_attribute
from ..trials.trial import Trial, TrialRunner, parameters_of
from . import forms
from .batch_mixing import with_steps
from .choices import ArgumentChoice, ChoiceNode, Sizes, node_of
from .forms import Form
from .name_priors import PICTURE_SAID, is_graph, is_measured, is_state, number_for, words_of
from .neighbours import MOST_FORMS, Adjusted, Neighbours
from .optional_inputs import LeftOut
from .said_by_model import (
    channels_said,
    described_by_parts,
    features_said,
    said_by_constructor,
    settings_said,
    sizes_kept_by_model,
    steps_apart_from_sizes,
    takes_one_at_a_time,
)
from .square_pictures import are_square

SMALL = 8  # height and width of a picture that takes little time
MOST_ALIKE = 20  # attempts that end alike
_ATTENDS = re.compile(r"(?i)atten|attn|heads?\b|multi_?head|transformer")
_IS_OF_ROWS = re.compile(r"f32\[B:⟨#B⟩, ⟨[^⟩]*⟩\]")
_SQUARE = re.compile(r", (\d+), \1\]")
_IS_STATE = re.compile(r"f32\[1, B:")
_HAS_STEPS_FIRST = re.compile(r"f32\[[ST]:[^,]*, B:")


class GivenParts(NamedTuple):
    """A parameter that is a container: how an example opens it (`Container`), and the forms of its parts by their keys."""

    opening: str
    forms: Mapping[str, List[Form]]


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
        self._parameters: List[inspect.Parameter] = []
        self._from = ChoiceNode(BuildPlan(""), (), {})  # whose neighbours are tried
        self._count = itertools.count()
        self._tried: Set[Tuple[str, str]] = set()
        self._built_for: Tuple[Optional[Tuple[int, int]], int, bool] = (None, 0, False)
        self._steps = forms.STEPS  # of sequences
        self.inputs_said = NOTHING_SAID
        self._containers: Dict[str, Container] = {}
        self._numbers: Dict[str, str] = {}  # the parameters that are plain numbers, each with one
        self._texts: Dict[str, List[str]] = {}  # those that the code compares with texts, each with these
        self._is_graph = False  # its rows are nodes rather than a batch

    def search(self, plan: BuildPlan, model: Any) -> Iterator[ChoiceNode]:
        """The choice that came furthest, each time that further ones were tried; the last one ran to its end, if one did."""
        self._get_to_know(plan, model)
        waiting: List[Tuple[float, int, ChoiceNode]] = []
        if not (yield from self._from_starts(plan, waiting)):
            yield from self._by_neighbours(waiting)

    def _get_to_know(self, plan: BuildPlan, model: Any) -> None:
        """Note what a model says of what it can be called with."""
        self._ran = []
        self._lacks_dims = None
        self.too_long = self._hopeless = False
        self._parameters = _called_with(model)
        self._model, self._is_module = model, isinstance(model, torch.nn.Module)  # or else a function
        self._layer = forms.first_layer(model) if self._is_module else None
        self._attends = self._is_module and any(_ATTENDS.search(type(each).__name__) for each in module_tree.modules(model))
        said = said_by_constructor(model, plan.text())
        self._built_for = sizes_kept_by_model(model, {**said, **plan.sizes})
        sides, _, is_binding = self._built_for
        is_guessed = any(map(PICTURE_SAID.fullmatch, plan.sizes))
        self.inputs_said = InputSaid(
            channels_said(said, self._layer),
            sides if is_binding and not is_guessed else None,
            are_square(model, sides),
            self._is_module and takes_one_at_a_time(model),
            features_said([each.name for each in self._parameters], {**settings_said(plan.text()), **said, **plan.sizes}),
        )
        self._steps = steps_apart_from_sizes(model)
        self._numbers, self._texts = self._plain_numbers(), self._plain_texts()
        of_parts = described_by_parts(model, [each.name for each in self._parameters if each.name not in self.shapes])
        self.shapes = {**self.shapes, **with_one_batch(of_parts)}
        self._containers = self._containers_of(model)
        keys = [key for container in self._containers.values() for key in container.keys]
        self._is_graph = any(is_graph(name) for name in [*keys, *[each.name for each in self._parameters if _is_required(each)]])
        self._neighbours = Neighbours(self._parameters, self.options, self._reach, self._adjusted, self.inputs_said)

    def _containers_of(self, model: Any) -> Dict[str, Container]:
        """The parameters that are containers, by what the code reads of them, what the text says, and what the program gives."""
        plain = {each.name for each in self._parameters if forms.scalars(each) or self._given(each)}
        found = {each.name: container_of(model, each.name) for each in self._parameters if _is_required(each) and each.name not in plain}
        of_text = {name: _described_container(shape) for name, shape in self.shapes.items() if shape.keys}
        found = {name: container or of_text.get(name) for name, container in found.items()}
        given = {name: Container(parts.opening, list(parts.forms), []) for name, parts in self._given_parts.items()}
        return {**{name: container for name, container in found.items() if container is not None}, **given}

    def _from_starts(self, plan: BuildPlan, waiting: List[Tuple[float, int, ChoiceNode]]) -> Generator[ChoiceNode, None, bool]:
        """Attempt the likeliest choices, and keep those that fail. Returns whether the search is over."""
        for start in self._starts(plan):
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
        if not self._is_graph:
            node = with_steps(self.runner, model, node) or node
        return LeftOut(self.runner, self._parameters, self.shapes, self.forms_of).given(node)

    def with_more(self, node: ChoiceNode) -> List[str]:
        """A choice that failed as an example, with one argument more that may be left out, in its likeliest forms."""
        model, _ = self.runner.build(node.constructor)
        return LeftOut(self.runner, self._parameters, self.shapes, self.forms_of).with_one(node, model)

    def said(self, node: ChoiceNode) -> Optional[InputShape]:
        """Returns what the text says of an input that a node follows."""
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

    # --- where it starts ---

    def forms_of(self, parameter: inspect.Parameter) -> List[Form]:
        """The forms that a parameter may have, the likelier first."""
        name = parameter.name
        plain = self._plain_forms(parameter)
        if plain:
            return plain
        said = self.shapes.get(name) or InputShape()
        of_text = forms.forms_of_shape(name, said) if name in self.shapes else []
        named = (forms.forms_of_state(self._model, name) if is_state(name) and self._is_module else []) + forms.forms_by_name(name)
        is_first = self._is_first(parameter)
        likely = self._by_layer_and_name(name, named, is_first=is_first)
        rest = forms.general_forms(name)
        is_of_pictures = self.inputs_said.is_square and isinstance(self._layer, torch.nn.Conv2d)
        if is_first and (is_of_pictures or self.inputs_said.sides is not None):
            rest = [form for form in rest if form.rank != 4 or "%s.P" % name in form.sizes]
        found = _as_said(said, of_text, likely, rest)
        number = number_for(name)
        if number is not None and not is_first and name not in self.shapes:
            found.insert(0 if not named else 3, Form(str(number)))
        return [replace(form, sizes={**form.sizes, **self._sizes(form)}) for form in forms.distinct_forms(found, name)]

    def _plain_forms(self, parameter: inspect.Parameter) -> List[Form]:
        """The forms of a parameter that is no tensor; [] of one."""
        name = parameter.name
        is_text = parameter.annotation in (str, "str")  # Of several the code may know which.
        plain = (is_text and self._given(parameter)) or forms.scalars(parameter) or self._given(parameter)
        if not plain and name in self._texts and name not in self.shapes:
            return [Form(repr(text)) for text in self._texts[name]]
        if not plain and words_of(name) == "device":
            return [Form('"cpu"')]
        if not plain and name in self._numbers and name not in self.shapes:
            return [Form(self._numbers[name]), *forms.distinct_forms(forms.forms_by_name(name), name)]
        return plain

    def _by_layer_and_name(self, name: str, named: List[Form], *, is_first: bool) -> List[Form]:
        """The forms that the layers and the name of a parameter speak for, the likelier first. named: those by the name."""
        layer = forms.forms_of_layer(self._layer, name, self.inputs_said.is_square) if self._layer is not None else []
        is_telling = _speaks_for_itself(named)
        if self._is_graph and not is_telling:
            layer = forms.forms_of_graph_nodes(self._model, self._layer, name) + layer
        likely = layer + named if is_first and not is_telling else named + layer
        if named and isinstance(self._layer, torch.nn.Embedding) and named[0].dtype != "i64" and self._has_other_indices(name):
            likely = named + layer  # In `forward(self, z, labels)` the table that comes first is that of the labels.
        is_masked = any("mask" in each.name for each in self._parameters) and self._attends
        if is_first and likely and is_masked and _IS_OF_ROWS.match(likely[0].template):
            likely.sort(key=lambda form: "#T" not in form.sizes)  # What a mask goes with has steps.
        return likely

    def _plain_numbers(self) -> Dict[str, str]:
        """The parameters of `forward` behind the first one that the code takes for plain numbers, each with one, as an expression."""
        function = function_node(self._model.forward) if self._is_module else None
        numbers = {each.name: plain_number(function, each.name) for each in self._parameters[1:]} if function is not None else {}
        return {name: number for name, number in numbers.items() if number is not None}

    def _plain_texts(self) -> Dict[str, List[str]]:
        """The parameters of `forward` behind the first one that the code compares with texts, each with these texts."""
        function = function_node(self._model.forward) if self._is_module else None
        texts = {each.name: plain_texts(function, each.name) for each in self._parameters[1:]} if function is not None else {}
        return {name: found for name, found in texts.items() if found}

    def _has_other_indices(self, name: str) -> bool:
        """True if the name of another required parameter speaks for indices."""
        others = [forms.forms_by_name(each.name) for each in self._parameters if each.name != name and _is_required(each)]
        return any(found and found[0].dtype == "i64" for found in others)

    def options(self, argument: ArgumentChoice) -> List[Form]:
        """The forms that an argument may have, or a part of a container, the likelier first."""
        if argument.container and argument.name in self._given_parts:
            return self._given_parts[argument.name].forms.get(argument.key) or forms.general_forms(argument.path)
        parameter = next((each for each in self._parameters if each.name == argument.name), None)
        own = self.forms_of(parameter) if parameter is not None and (not argument.container or argument.key.isdigit()) else []
        if not argument.container:
            return own[:MOST_FORMS]
        said = self._said_of_key(argument.name, argument.key)
        named = forms.forms_of_shape(argument.key, said) if said is not None else []
        named += forms.forms_by_name(argument.key) if not argument.key.isdigit() else []
        number = number_for(argument.key)
        if number is not None and not named:
            named = [Form(str(number))]
        elif self._is_graph and not _speaks_for_itself(named):
            named = forms.forms_of_graph_nodes(self._model, self._layer, argument.path) + named
        general = forms.forms_of_dict_value(argument.path) if argument.container == "{" else forms.general_forms(argument.path)
        return forms.distinct_forms([*named, *own, *general], argument.path)[:MOST_FORMS]

    def _said_of_key(self, name: str, key: str) -> Optional[InputShape]:
        """Returns what the text says of the value of a dict, or of each dict of a list."""
        said = self.shapes.get(name)
        return dict(zip(said.keys, said.parts)).get(key) if said is not None else None

    def _is_first(self, parameter: inspect.Parameter) -> bool:
        return bool(self._parameters) and parameter.name == self._parameters[0].name

    def _starts(self, plan: BuildPlan) -> Iterator[ChoiceNode]:
        required = [parameter for parameter in self._parameters if _is_required(parameter)]
        if not required and self._parameters:
            unset = [each for each in self._parameters if each.default is None]
            tensors = [each for each in unset if not forms.scalars(each) and not self._given(each)]
            # Everything is optional, as in transformers: the first one is what it is about.
            required = tensors[:1]
        first = {each.name: self.forms_of(each)[0] for each in required}
        chosen: List[Tuple[ArgumentChoice, ...]] = [self._arguments(first)]
        chosen += [self._arguments(given) for given in self._with_other_forms(required)]
        if any(argument.container for argument in chosen[0]):
            chosen[1:1] = [self._arguments(first, count) for count in (4, 3, 1)]
        for arguments in chosen:
            sizes: Sizes = {}
            for argument in arguments:
                sizes.update(self._sizes(argument.form) if argument.form is not None else {})
                sizes.update(_as_wide(argument, arguments[0]))
            yield node_of(plan, arguments, sizes)

    def _with_other_forms(self, required: List[inspect.Parameter]) -> Iterator[Dict[str, Form]]:
        """Beside the first form of each argument: other forms of the one that comes first, which all is about."""
        if not required:
            return
        main, others = required[0], {each.name: self.forms_of(each)[0] for each in required[1:]}
        known = self.forms_of(main)
        yield from self._beside_states(required)
        yield from ({**others, main.name: form} for form in known[1:3])
        ranks = {form.rank for form in known[:3]}
        for form in known[3:]:
            # One of each rank: which of them comes furthest tells most. A single number goes with any other tensor, and tells nothing.
            is_left_out = (self._is_graph and form.rank > 2) or (form.rank == 0 and others)
            if form.rank not in ranks and not is_left_out:
                ranks.add(form.rank)
                yield {**others, main.name: form}
        for form in known if is_measured(main.name) else ():
            labels = {each.name: label for each in required[1:] for label in self._labels_of(form, each)[:1]}
            if labels:
                yield {**others, main.name: form, **labels}

    def _beside_states(self, required: List[inspect.Parameter]) -> Iterator[Dict[str, Form]]:
        """Sequences with their steps first, beside the state of a recurrent layer as it gives it by default: `[1, B, D]`, `[S, B, D]`."""
        first = {each.name: self.forms_of(each)[0] for each in required}
        states = {name for name, form in first.items() if _IS_STATE.match(form.template)}
        found: Dict[str, Form] = {}
        for each in required if states else ():
            steps_first = [form for form in self.forms_of(each) if _HAS_STEPS_FIRST.match(form.template)]
            if each.name not in states and steps_first:
                found[each.name] = steps_first[0]
        if found:
            yield {**first, **found}

    def _labels_of(self, form: Form, parameter: inspect.Parameter) -> List[Form]:
        """The forms of a parameter that are labels of what is measured: one for each of its rows, or pixels."""
        whole = [each for each in self.forms_of(parameter) if each.template.startswith("i64")]
        return [each for each in whole if form.rank > 2 and each.rank == form.rank - 1]

    def _sizes(self, form: Form) -> Sizes:
        """The sizes of pictures and sequences that the model remembers to have been built for."""
        picture, steps, _ = self._built_for
        features = {name + ".D": count for name, count in self.inputs_said.features}
        found: Sizes = {name: features[name] for name in form.sizes if name in features}
        for name in form.sizes:
            role = name.rpartition(".")[2]
            if self.inputs_said.is_single and role in ("#B", "#T", "#S"):
                found[name] = 1
            elif picture and forms.is_of_side(name, form):
                found[name] = picture[1 if role in _WIDTH or role == "U3" else 0]
            elif role == "#T" and steps:
                found[name] = steps
            elif role in ("#T", *STEPS_SAID) and form.sizes[name] == forms.STEPS:
                found[name] = self._steps
            elif self.inputs_said.channels is not None and forms.is_of_channels(name, form):
                found[name] = self.inputs_said.channels
        return found

    def _arguments(self, chosen: Mapping[str, Form], count: int = 2) -> Tuple[ArgumentChoice, ...]:
        """An argument for each parameter, in one of the chosen forms. count: of tensors in what the text calls a list of them."""
        arguments: List[ArgumentChoice] = []
        for each in self._parameters:
            form = chosen.get(each.name)
            argument = ArgumentChoice(each.name, form, each.kind is inspect.Parameter.KEYWORD_ONLY)
            if form is not None:
                arguments += self._parts(argument, form, count) or [argument]
            elif each.kind is not inspect.Parameter.VAR_POSITIONAL:
                arguments.append(argument)
        return tuple(arguments)

    def _parts(self, argument: ArgumentChoice, form: Form, count: int) -> List[ArgumentChoice]:
        """The tensors of a list or tuple, if the text says that the parameter is one; of a tuple of different ones what it says of each."""
        container = self._containers.get(argument.name)
        said = self.shapes.get(argument.name)
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
            form = (of_layer or items or self.options(part))[0]
            picture = "%s.P" % part.path
            if picture in form.sizes and not is_pair:  # Feature maps, each half as large as the one before.
                form = replace(form, sizes={**form.sizes, picture: max(form.sizes[picture] >> number, 4)})
            found.append(part._replace(form=form))
        return found

    def _item(self, part: ArgumentChoice, keys: Sequence[str]) -> Form:
        """One of a list of dicts, as a detector is given for each picture: what the text says of its values, or tensors without a batch."""
        values: Dict[str, Form] = {}
        for key in keys:
            said = self._said_of_key(part.name, key)
            by_name = forms.forms_of_sample(key)
            found = forms.forms_of_shape(key, said, is_sample=True) if said is not None else by_name
            found.sort(key=lambda form, dtype=by_name[0].dtype: form.dtype != dtype)  # type: ignore[misc]
            values[key] = forms.distinct_forms(found, "%s.%s" % (part.path, key))[0]
        template = "{%s}" % ", ".join('"%s": %s' % (key, form.template) for key, form in values.items())
        return Form(template, {name: size for form in values.values() for name, size in form.sizes.items()})


def _described_container(shape: InputShape) -> Container:
    """The dict, or the list of dicts, that the text describes."""
    keys = list(shape.keys)
    return Container("[", ["0", "1"], [], tuple(keys)) if shape.container == "list" else Container("{", keys, [])


_WIDTH = ("W", "@w", "@W", "@width")
STEPS_SAID = ("@T", "@t", "@n", "@L", "@l", "@S", "@s", "@N", "@seq_len", "@seq_length")


def _as_wide(argument: ArgumentChoice, first: ArgumentChoice) -> Sizes:
    """The width of an argument of the same form as the first one, which is most often the same: `forward(x_enc, x_dec)`."""
    if argument.form is None or first.form is None or argument.path == first.path:
        return {}
    own = first.form.template.replace("⟨%s." % first.path, "⟨%s." % argument.path)
    if own != argument.form.template:
        return {}
    width, of_first = argument.path + ".D", first.path + ".D"
    return {width: first.form.sizes[of_first]} if width in argument.form.sizes and of_first in first.form.sizes else {}


def with_one_batch(shapes: Mapping[str, InputShape]) -> Dict[str, InputShape]:
    """Returns what the text says of inputs, with "B" for the batch: a name such as N is one where it comes first of three dims or more."""
    batches = {shape.dims[0] for shape in shapes.values() if shape.dims and len(shape.dims) > 2 and is_batch(str(shape.dims[0]))}

    def renamed(shape: InputShape) -> InputShape:
        if shape.dims is None:
            return shape
        return replace(shape, dims=tuple("B" if dim in batches and type(dim) is str else dim for dim in shape.dims))

    return {name: renamed(shape) for name, shape in shapes.items()}


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


def _called_with(model: Any) -> List[inspect.Parameter]:
    """The parameters of `forward`; those of the module that it hands all of its keywords on to, where it has no others."""
    forward = getattr(model, "forward", None)
    found = parameters_of(forward) if forward is not None else parameters_of(model)
    named = [each for each in found if each.kind is not inspect.Parameter.VAR_KEYWORD]
    inner = _given_all_keywords(model, found[0].name) if found and not named else None
    keywords = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    taken = [each for each in _called_with(inner) if each.kind in keywords] if inner is not None else named
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken] if inner is not None else named


def _given_all_keywords(model: Any, name: str) -> Optional[torch.nn.Module]:
    """The module in an attribute of a model that `forward` calls with its `**name`; None where there is none."""
    function = function_node(model.forward) if isinstance(model, torch.nn.Module) else None
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self":
            inner = getattr(model, node.func.attr, None)
            hands_on = any(each.arg is None and isinstance(each.value, ast.Name) and each.value.id == name for each in node.keywords)
            if hands_on and isinstance(inner, torch.nn.Module) and inner is not model:
                return inner
    return None


def _of_smaller_pictures(node: ChoiceNode) -> Optional[ChoiceNode]:
    """Returns what took too long, with pictures of a few places; None where it has no pictures, or did not take too long."""
    if node.trial is None or not isinstance(node.trial.error, TooLong):
        return None
    forms_given = [argument.form for argument in node.arguments if argument.form is not None]
    sides = [name for form in forms_given for name in form.sizes if forms.is_of_side(name, form)]
    sizes = {name: SMALL for name in sides if node.sizes.get(name, 0) > SMALL}
    return node_of(node.plan, node.arguments, {**node.sizes, **sizes}) if sizes else None


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_POSITIONAL


def _as_said(said: InputShape, of_text: List[Form], likely: List[Form], rest: List[Form]) -> List[Form]:
    """Forms in their order, those that go with what the text says before others."""
    # A rank alone says less of the sizes than the layer and the name do, whose forms of that rank come first below.
    if said.dims is not None:
        found = of_text + likely + rest if any(said.dims) else likely + rest + of_text
    else:
        found = likely + of_text + rest
    if said.min_rank:
        found.sort(key=lambda form: form.rank < said.min_rank)
    if said.dims is not None:
        found.sort(key=lambda form: form.rank != len(said.dims or ()))
    if said.dtype:
        found.sort(key=lambda form: form.dtype != said.dtype)
    return found


def _speaks_for_itself(named: Sequence[Form]) -> bool:
    """True if a name is telling enough to count more than the first layer: indices, graphs."""
    return bool(named) and (named[0].dtype == "i64" or named[0].template.startswith("f32[⟨N⟩"))
