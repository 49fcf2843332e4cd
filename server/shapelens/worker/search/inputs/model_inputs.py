"""Knows what a model takes: its parameters with the forms that each may have, the likelier first, by the code, the names and the text."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import torch

from ....stated.shape_words import is_batch
from ...trace import module_tree
from ..code.container_contents import Container, container_of
from ..code.sources import function_node
from ..evidence import BuildPlan, InputSaid, InputShape
from ..text.plain_numbers import plain_number, plain_texts
from ..trials.trial import parameters_of
from . import forms
from .choices import ArgumentChoice, Sizes
from .forms import Form
from .name_priors import PICTURE_SAID, is_graph, is_state, number_for, words_of
from .neighbours import MOST_FORMS
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

_ATTENDS = re.compile(r"(?i)atten|attn|heads?\b|multi_?head|transformer")
_IS_OF_ROWS = re.compile(r"f32\[B:⟨#B⟩, ⟨[^⟩]*⟩\]")
_WIDTH = ("W", "@w", "@W", "@width")
STEPS_SAID = ("@T", "@t", "@n", "@L", "@l", "@S", "@s", "@N", "@seq_len", "@seq_length")


class GivenParts(NamedTuple):
    """A parameter that is a container: how an example opens it (`Container`), and the forms of its parts by their keys."""

    opening: str
    forms: Mapping[str, List[Form]]


class ModelInputs:
    """Knows of one model what it takes: its parameters, and the forms that each may have."""

    def __init__(
        self,
        plan: BuildPlan,
        model: Any,
        shapes: Mapping[str, InputShape],
        given: Callable[[inspect.Parameter], List[Form]],
        parts: Mapping[str, GivenParts],
    ) -> None:
        """shapes: by the text, of the parameters of `forward`; given: the forms of a parameter that is no tensor, where more is known of it
        than its annotation says; parts: those of parameters that are known to be containers.
        """
        self.given = given
        self._given_parts = parts
        self.parameters = _called_with(model)
        self._model, self._is_module = model, isinstance(model, torch.nn.Module)  # or else a function
        self._layer = forms.first_layer(model) if self._is_module else None
        self._attends = self._is_module and any(_ATTENDS.search(type(each).__name__) for each in module_tree.modules(model))
        said = said_by_constructor(model, plan.text())
        self._built_for = sizes_kept_by_model(model, {**said, **plan.sizes})
        sides, _, is_binding = self._built_for
        is_guessed = any(map(PICTURE_SAID.fullmatch, plan.sizes))
        self.said = InputSaid(
            channels_said(said, self._layer),
            sides if is_binding and not is_guessed else None,
            are_square(model, sides),
            self._is_module and takes_one_at_a_time(model),
            features_said([each.name for each in self.parameters], {**settings_said(plan.text()), **said, **plan.sizes}),
        )
        self._steps = steps_apart_from_sizes(model)
        self._numbers, self._texts = self._plain_numbers(), self._plain_texts()
        of_parts = described_by_parts(model, [each.name for each in self.parameters if each.name not in shapes])
        self.shapes = {**shapes, **with_one_batch(of_parts)}
        self.containers = self._containers_of(model)
        keys = [key for container in self.containers.values() for key in container.keys]
        self.is_graph = any(is_graph(name) for name in [*keys, *[each.name for each in self.parameters if is_required(each)]])

    def _containers_of(self, model: Any) -> Dict[str, Container]:
        """The parameters that are containers, by what the code reads of them, what the text says, and what the program gives."""
        plain = {each.name for each in self.parameters if forms.scalars(each) or self.given(each)}
        found = {each.name: container_of(model, each.name) for each in self.parameters if is_required(each) and each.name not in plain}
        of_text = {name: _described_container(shape) for name, shape in self.shapes.items() if shape.keys}
        found = {name: container or of_text.get(name) for name, container in found.items()}
        given = {name: Container(parts.opening, list(parts.forms), []) for name, parts in self._given_parts.items()}
        return {**{name: container for name, container in found.items() if container is not None}, **given}

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
        is_of_pictures = self.said.is_square and isinstance(self._layer, torch.nn.Conv2d)
        if is_first and (is_of_pictures or self.said.sides is not None):
            rest = [form for form in rest if form.rank != 4 or "%s.P" % name in form.sizes]
        found = _as_said(said, of_text, likely, rest)
        number = number_for(name)
        if number is not None and not is_first and name not in self.shapes:
            found.insert(0 if not named else 3, Form(str(number)))
        return [replace(form, sizes={**form.sizes, **self.sizes_of(form)}) for form in forms.distinct_forms(found, name)]

    def _plain_forms(self, parameter: inspect.Parameter) -> List[Form]:
        """The forms of a parameter that is no tensor; [] of one."""
        name = parameter.name
        is_text = parameter.annotation in (str, "str")  # Of several the code may know which.
        plain = (is_text and self.given(parameter)) or forms.scalars(parameter) or self.given(parameter)
        if not plain and name in self._texts and name not in self.shapes:
            return [Form(repr(text)) for text in self._texts[name]]
        if not plain and words_of(name) == "device":
            return [Form('"cpu"')]
        if not plain and name in self._numbers and name not in self.shapes:
            return [Form(self._numbers[name]), *forms.distinct_forms(forms.forms_by_name(name), name)]
        return plain

    def _by_layer_and_name(self, name: str, named: List[Form], *, is_first: bool) -> List[Form]:
        """The forms that the layers and the name of a parameter speak for, the likelier first. named: those by the name."""
        layer = forms.forms_of_layer(self._layer, name, self.said.is_square) if self._layer is not None else []
        is_telling = _speaks_for_itself(named)
        if self.is_graph and not is_telling:
            layer = forms.forms_of_graph_nodes(self._model, self._layer, name) + layer
        likely = layer + named if is_first and not is_telling else named + layer
        if named and isinstance(self._layer, torch.nn.Embedding) and named[0].dtype != "i64" and self._has_other_indices(name):
            likely = named + layer  # In `forward(self, z, labels)` the table that comes first is that of the labels.
        is_masked = any("mask" in each.name for each in self.parameters) and self._attends
        if is_first and likely and is_masked and _IS_OF_ROWS.match(likely[0].template):
            likely.sort(key=lambda form: "#T" not in form.sizes)  # What a mask goes with has steps.
        return likely

    def _plain_numbers(self) -> Dict[str, str]:
        """The parameters of `forward` behind the first one that the code takes for plain numbers, each with one, as an expression."""
        function = function_node(self._model.forward) if self._is_module else None
        numbers = {each.name: plain_number(function, each.name) for each in self.parameters[1:]} if function is not None else {}
        return {name: number for name, number in numbers.items() if number is not None}

    def _plain_texts(self) -> Dict[str, List[str]]:
        """The parameters of `forward` behind the first one that the code compares with texts, each with these texts."""
        function = function_node(self._model.forward) if self._is_module else None
        texts = {each.name: plain_texts(function, each.name) for each in self.parameters[1:]} if function is not None else {}
        return {name: found for name, found in texts.items() if found}

    def _has_other_indices(self, name: str) -> bool:
        """True if the name of another required parameter speaks for indices."""
        others = [forms.forms_by_name(each.name) for each in self.parameters if each.name != name and is_required(each)]
        return any(found and found[0].dtype == "i64" for found in others)

    def options(self, argument: ArgumentChoice) -> List[Form]:
        """The forms that an argument may have, or a part of a container, the likelier first."""
        if argument.container and argument.name in self._given_parts:
            return self._given_parts[argument.name].forms.get(argument.key) or forms.general_forms(argument.path)
        parameter = next((each for each in self.parameters if each.name == argument.name), None)
        own = self.forms_of(parameter) if parameter is not None and (not argument.container or argument.key.isdigit()) else []
        if not argument.container:
            return own[:MOST_FORMS]
        said = self.said_of_key(argument.name, argument.key)
        named = forms.forms_of_shape(argument.key, said) if said is not None else []
        named += forms.forms_by_name(argument.key) if not argument.key.isdigit() else []
        number = number_for(argument.key)
        if number is not None and not named:
            named = [Form(str(number))]
        elif self.is_graph and not _speaks_for_itself(named):
            named = forms.forms_of_graph_nodes(self._model, self._layer, argument.path) + named
        general = forms.forms_of_dict_value(argument.path) if argument.container == "{" else forms.general_forms(argument.path)
        return forms.distinct_forms([*named, *own, *general], argument.path)[:MOST_FORMS]

    def said_of_key(self, name: str, key: str) -> Optional[InputShape]:
        """Returns the text's shape of the value of a dict, or of each dict of a list."""
        said = self.shapes.get(name)
        return dict(zip(said.keys, said.parts)).get(key) if said is not None else None

    def _is_first(self, parameter: inspect.Parameter) -> bool:
        return bool(self.parameters) and parameter.name == self.parameters[0].name

    def sizes_of(self, form: Form) -> Sizes:
        """The sizes of pictures and sequences that the model remembers to have been built for."""
        picture, steps, _ = self._built_for
        found: Sizes = {name: self.said.features[name] for name in form.sizes if name in self.said.features}
        for name in form.sizes:
            role = name.rpartition(".")[2]
            if self.said.is_single and role in ("#B", "#T", "#S"):
                found[name] = 1
            elif picture and forms.is_of_side(name, form):
                found[name] = picture[1 if role in _WIDTH or role == "U3" else 0]
            elif role == "#T" and steps:
                found[name] = steps
            elif role in ("#T", *STEPS_SAID) and form.sizes[name] == forms.STEPS:
                found[name] = self._steps
            elif self.said.channels is not None and forms.is_of_channels(name, form):
                found[name] = self.said.channels
        return found


def _described_container(shape: InputShape) -> Container:
    """The dict, or the list of dicts, that the text describes."""
    keys = list(shape.keys)
    return Container("[", ["0", "1"], [], tuple(keys)) if shape.container == "list" else Container("{", keys, [])


def with_one_batch(shapes: Mapping[str, InputShape]) -> Dict[str, InputShape]:
    """Returns the text's shapes of inputs, with "B" for the batch: a name such as N is one where it comes first of three dims or more."""
    batches = {shape.dims[0] for shape in shapes.values() if shape.dims and len(shape.dims) > 2 and is_batch(str(shape.dims[0]))}

    def renamed(shape: InputShape) -> InputShape:
        if shape.dims is None:
            return shape
        return replace(shape, dims=tuple("B" if dim in batches and type(dim) is str else dim for dim in shape.dims))

    return {name: renamed(shape) for name, shape in shapes.items()}


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


def is_required(parameter: inspect.Parameter) -> bool:
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
