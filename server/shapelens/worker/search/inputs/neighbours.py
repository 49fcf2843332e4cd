"""The next attempts after one failed: other ranks and dtypes, parts of containers, sizes, arguments that were left out."""

from __future__ import annotations

import inspect
import linecache
import re
from dataclasses import replace
from typing import Callable, Iterator, List, Optional, Sequence

from ....protocol import Mismatch
from ...meta.mode import ODD_MASK
from ...sandbox.exceptions import message_of
from ..evidence import NOTHING_SAID, BuildPlan, InputSaid
from ..trials.demands import Demand, demands
from ..trials.solving import sizes_for
from ..trials.trial import RefusedInput, Trial
from .choices import ArgumentChoice, ChoiceNode, Sizes, node_of
from .forms import Form, is_of_channels, is_of_side, tensor_form
from .name_priors import number_for

SOME_KEY = "x"  # of a dict of which no key is known yet
MOST_FORMS = 14  # of one parameter
_MASKS = re.compile(r"masked_fill_?\(|\bwhere\(|[+*&|] *\w*mask|mask\w* *[+*&|]")
_INVALID_VIEW = re.compile(r"shape '\[(-?\d+(?:, -?\d+)+)\]' is invalid for input of size")
_VIEWED = r"\b%s\.(?:view|reshape)\((?:\w+\.size\(0\)|\w+\.shape\[0\]|-1), *(.*)\)"  # with a dim for the batch; what follows it
_EXTENT = {"P", "H", "W", "V"}  # roles of dims of pictures and volumes


# (plan, what a call of its model raised) -> what to build instead
Adjusted = Callable[[BuildPlan, BaseException], List[BuildPlan]]


class Neighbours:
    """Of the nodes of one model.

    `options` gives the forms of an argument or of a part of one; `reach` makes an attempt, None where that is not to be made.
    """

    def __init__(
        self,
        parameters: List[inspect.Parameter],
        options: Callable[[ArgumentChoice], List[Form]],
        reach: Callable[[ChoiceNode], Optional[Trial]],
        adjusted: Adjusted,
        said: InputSaid = NOTHING_SAID,
    ) -> None:
        self._said = said
        self._adjusted = adjusted
        self._parameters = parameters
        self._options = options
        self._reach = reach

    def of(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        """Yields the choices to try after a node failed, the most promising first."""
        if node.trial is None:
            return
        wanted = demands(node.trial)
        yield from self._other_masks(node)
        yield from self._spoken_of(node)
        yield from self._as_viewed(node)
        sizes = self._by_sizes(node, wanted)
        if _multiplies_sequences(node):
            yield from sizes
        for wave in (self._by_rank(node, wanted), self._by_parts(node, wanted), sizes):
            yield from wave
        yield from self._by_plan(node)
        yield from self._by_forms(node)

    def _other_masks(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        """Other forms of the masks, where it failed at one: of all of them, then of those that were handed on to where it failed."""
        masks = [each for each in node.arguments if "mask" in each.name and each.form is not None and not each.container]
        found = node.found if masks else None
        if found is None or not _is_of_mask(found, _line(node.trial)):
            return
        options = {mask.path: [form for form in self._options(mask) if form.dtype == "bool"] for mask in masks}
        is_first = all(mask.form == self._options(mask)[0] for mask in masks)
        for form in options[masks[0].path] if len(masks) > 1 and is_first else ():
            given = {mask.path: each for mask in masks for each in options[mask.path] if _dims(mask, each) == _dims(masks[0], form)}
            arguments = tuple([each._replace(form=given.get(each.path, each.form)) for each in node.arguments])
            yield node_of(node.plan, arguments, node.sizes)
        lines = [linecache.getline(span.file, span.line) for span in found.trail]
        masks.sort(key=lambda mask: -sum(mask.is_in(line) for line in lines))
        for argument in masks:
            yield from (self._with(node, argument, form) for form in options[argument.path] if form != argument.form)

    def _spoken_of(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        """An argument that was left out, where what the author raises names it, or what it is called inside: `decoder_input_ids`."""
        error = node.error
        if not isinstance(error, (ValueError, AssertionError)):
            return
        named = re.findall(r"[a-z]+(?:_[a-z]+)+", message_of(error))
        for argument in node.arguments:
            if argument.form is None and any(argument.name == name or argument.name.endswith("_" + name) for name in named):
                yield self._with(node, argument, self._options(argument)[0])

    def _as_viewed(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        """An input that is made to have a shape as one that has it: `x.view(x.size(0), self.channels, self.size, self.size)`."""
        found = node.found
        match = _INVALID_VIEW.search(found.message) if found is not None and found.code == "view" else None
        if match is None:
            return
        sizes = [int(size) for size in match[1].split(",")]
        roles = ["C", "P", "P"] if len(sizes) == 4 and sizes[2] == sizes[3] else ["U%d" % place for place in range(1, len(sizes))]
        dims = ["B", *("%s=%d" % each for each in zip(roles, sizes[1:]))]
        for argument in self._tensors(node):
            viewed = re.search(_VIEWED % re.escape(argument.name), _line(node.trial)) if not argument.container else None
            if viewed is not None and not re.search(r"\b%s\b" % re.escape(argument.name), viewed[1]) and min(sizes[1:], default=0) > 0:
                dtype = argument.form.dtype if argument.form is not None else "f32"
                yield self._with(node, argument, tensor_form(argument.path, dtype, *dims))

    def _by_plan(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        error = node.error
        if error is None or isinstance(error, RefusedInput):
            return
        own = {name: node.sizes[name] for name in node.plan.sizes}
        for made in self._adjusted(replace(node.plan, sizes=own), error)[:4]:
            yield node_of(made, node.arguments, {name: size for name, size in node.sizes.items() if name not in made.sizes})

    def _by_rank(self, node: ChoiceNode, wanted: Sequence[Demand]) -> Iterator[ChoiceNode]:
        for demand in wanted:
            if demand.kind == "rank":
                yield from self._ranked(node, demand)
            elif demand.kind == "number":
                for argument in self._tensors(node):
                    if argument.is_in(_line(node.trial)) and not argument.container:
                        number = number_for(argument.name)
                        yield self._with(node, argument, Form(str(4 if number is None else number)))
            elif demand.kind == "dtype":
                for argument in self._tensors(node):
                    if argument.form is not None and argument.form.dtype != demand.text:
                        for form in self._options(argument):
                            if form.dtype == demand.text:
                                yield self._with(node, argument, form)
                                break
                        else:
                            template = demand.text + argument.form.template[argument.form.template.index("[") :]
                            yield self._with(node, argument, Form(template, argument.form.sizes, argument.form.rank, demand.text))

    def _ranked(self, node: ChoiceNode, demand: Demand) -> Iterator[ChoiceNode]:
        tensors = self._tensors(node)
        tensors.sort(key=lambda argument: argument.form is None or argument.form.rank != demand.got)
        for argument in tensors:
            form = argument.form
            if form is None or (form.rank >= demand.need if demand.least else form.rank == demand.need):
                continue
            fitting = [
                other for other in self._options(argument) if (other.rank >= demand.need if demand.least else other.rank == demand.need)
            ]
            fitting.sort(key=lambda other: other.dtype != form.dtype)
            for other in fitting[:4]:
                yield self._with(node, argument, other)

    def _by_parts(self, node: ChoiceNode, wanted: Sequence[Demand]) -> Iterator[ChoiceNode]:
        for demand in wanted:
            if demand.kind == "missing":
                yield from self._missing(node, demand)
            elif demand.kind == "parts":
                yield from self._in_parts(node)

    def _missing(self, node: ChoiceNode, demand: Demand) -> Iterator[ChoiceNode]:
        line = _line(node.trial)
        if demand.need in (0, 3):  # An argument, or something that is None.
            absent = [argument for argument in node.arguments if argument.form is None]
            absent.sort(key=lambda argument: argument.name != demand.text and not argument.is_in(line))
            for argument in absent:
                for form in self._options(argument)[: 4 if argument.is_in(line) or argument.name == demand.text else 2]:
                    yield self._with(node, argument, form)
            return
        container, key = "SimpleNamespace(" if demand.need == 1 else "{", demand.text
        named = [argument.name for argument in node.arguments if argument.container == container]
        tensors = [argument for argument in self._tensors(node) if not argument.container]
        if demand.need == 1 and not named and key.isidentifier():
            named = [argument.name for argument in tensors if argument.is_in(line)]
        elif demand.need == 4:
            said = re.search(r"\[[\"'](\w+)[\"']\]", line)
            named, key = [argument.name for argument in tensors], said[1] if said else SOME_KEY
        for name in dict.fromkeys(named) if key.isprintable() and '"' not in key else ():
            yield from self._with_part(node, name, container, key)

    def _with_part(self, node: ChoiceNode, name: str, container: str, key: str) -> Iterator[ChoiceNode]:
        """A container for a parameter, or the one that it has, with a further part."""
        before = [argument for argument in node.arguments if argument.name == name]
        part = before[0]._replace(container=container, key=key, form=None)
        others = (key, SOME_KEY) if container == "{" else (key,)
        kept = [argument for argument in before if argument.container == container and argument.key not in others]
        for form in self._options(part)[:6]:
            arguments: List[ArgumentChoice] = []
            for argument in node.arguments:
                if argument.name != name:
                    arguments.append(argument)
                elif argument is before[0]:
                    arguments += [*kept, part._replace(form=form)]
            yield node_of(node.plan, tuple(arguments), node.sizes)

    def _in_parts(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        for argument in self._tensors(node):
            if argument.container:
                continue
            for container, count in (("[", 2), ("(", 2), ("[", 1), ("[", 4), ("[", 3)):
                arguments: List[ArgumentChoice] = []
                for each in node.arguments:
                    if each is argument:
                        parts = [argument._replace(container=container, key=str(number)) for number in range(count)]
                        arguments += [part._replace(form=self._options(part._replace(form=None))[0]) for part in parts]
                    else:
                        arguments.append(each)
                yield node_of(node.plan, tuple(arguments), node.sizes)

    def _by_sizes(self, node: ChoiceNode, wanted: Sequence[Demand]) -> Iterator[ChoiceNode]:
        def reaches(sizes: Sizes) -> Optional[Trial]:
            """Returns the trial of an attempt with other sizes; None where it is not to be made."""
            other = node_of(node.plan, node.arguments, sizes)
            return self._reach(other)

        free = [name for name in _free(node) if not self._is_said(node, name)]
        for sizes in sizes_for(node.trial, wanted, {name: node.sizes[name] for name in free}, set(node.plan.sizes), reaches, self._said):
            yield node_of(node.plan, node.arguments, {**node.sizes, **sizes})

    def _is_said(self, node: ChoiceNode, name: str) -> bool:
        """True if a size is that of channels, sides or features, as the code says it."""
        given = [argument.form for argument in node.arguments if argument.form is not None and name in argument.form.sizes]
        of_picture = any(is_of_side(name, form) or is_of_channels(name, form) for form in given)
        return name in self._said.features or (of_picture and self._said.binds(node.sizes[name]))

    def _by_forms(self, node: ChoiceNode) -> Iterator[ChoiceNode]:
        """Another form for one of the arguments: those named in the line that failed first."""
        line = _line(node.trial)
        given = [argument for argument in node.arguments if argument.form is not None]
        given.sort(key=lambda argument: not argument.is_in(line))
        options = [(argument, [form for form in self._options(argument) if form != argument.form]) for argument in given]
        for index in range(MOST_FORMS):
            for argument, others in options:
                if index < len(others):
                    yield self._with(node, argument, others[index])
        # What is optional may be what is missing: user code says so in words of its own.
        for argument in node.arguments:
            parameter = self._parameter(argument.name)
            if (
                argument.form is None
                and parameter is not None
                and (parameter.default is None or parameter.default is inspect.Parameter.empty)
            ):
                yield self._with(node, argument, self._options(argument)[0])

    def _parameter(self, name: str) -> Optional[inspect.Parameter]:
        return next((each for each in self._parameters if each.name == name), None)

    def _tensors(self, node: ChoiceNode) -> List[ArgumentChoice]:
        """The arguments that are tensors, those that the failed line names first."""
        line = _line(node.trial)
        found = [argument for argument in node.arguments if argument.form is not None and argument.form.rank >= 0]
        found.sort(key=lambda argument: not argument.is_in(line))
        return found

    def _with(self, node: ChoiceNode, changed: ArgumentChoice, form: Form) -> ChoiceNode:
        """The node with another form of one argument, and of those that are its like."""
        forms = {each.path: found for each in node.arguments if (found := self._form_of(each, changed, form)) is not None}
        arguments = tuple([each._replace(form=forms.get(each.path, each.form)) for each in node.arguments])
        kept = {size: value for size, value in node.sizes.items() if size.rpartition(".")[0] not in forms}
        before = changed.form.sizes if changed.form is not None else {}
        extents = [node.sizes[name] for name in before if name.rpartition(".")[2] in _EXTENT and node.sizes[name] != before[name]]
        if extents:  # How large a picture has to be does not depend on what else it has.
            kept.update((name, extents[-1]) for name in form.sizes if name.rpartition(".")[2] in _EXTENT)
        return node_of(node.plan, arguments, kept)

    def _form_of(self, argument: ArgumentChoice, changed: ArgumentChoice, form: Form) -> Optional[Form]:
        """The other form of an argument where `changed` has one: `features["stage1"]` is a picture where `features["stage2"]` is."""
        if argument == changed:
            return form
        stem = changed.key.rstrip("0123456789")
        if stem in ("", changed.key) or (argument.name, argument.key.rstrip("0123456789")) != (changed.name, stem):
            return None
        if argument.form is None or changed.form is None or _dims(argument, argument.form) != _dims(changed, changed.form):
            return None
        return next((each for each in self._options(argument) if _dims(argument, each) == _dims(changed, form)), None)


def _dims(argument: ArgumentChoice, form: Form) -> str:
    """A form of an argument without the argument's name in it."""
    return form.template.replace("⟨%s." % argument.path, "⟨")


def _free(node: ChoiceNode) -> List[str]:
    """The sizes that may be changed: those of the arguments first, then the guessed ones of the constructor."""
    of_arguments = [name for argument in node.arguments if argument.form is not None for name in argument.form.sizes]
    return list(dict.fromkeys([*of_arguments, *node.plan.sizes]))


def _is_of_mask(found: Mismatch, line: str) -> bool:
    """True if it is a mask that does not fit at a line."""
    return (found.code == "broadcast" or found.message == ODD_MASK) and _MASKS.search(line) is not None


def _multiplies_sequences(node: ChoiceNode) -> bool:
    """True if a product fails in a model of sequences: they have the right number of dims, and are of another width than a parameter."""
    inputs = [each for each in node.arguments if "mask" not in each.name]
    given = [each.form for each in inputs if each.form is not None and each.form.rank >= 0]
    return node.found is not None and node.found.code == "matmul" and bool(given) and all(form.rank == 3 for form in given)


def _line(trial: Optional[Trial]) -> str:
    """The text of the line that failed."""
    if trial is None or trial.found is None or trial.found.span is None:
        return ""
    return linecache.getline(trial.found.span.file, trial.found.span.line)
