"""The arguments of a function for parameters that are no tensors: a model, a loader, a loss, or a setting that only steers and reports.

The uses of a parameter in the function tell its kind; its name does where these say nothing. A model is built as in the example of its
class. A loader gives batches of that example's `forward` inputs, with targets of the forms that fit its output.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
from dataclasses import replace
from types import ModuleType
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch

from ...protocol import Value
from ...stated.syntax_trees import dotted, last_name
from ..evaluation.dtype_names import BY_NAME
from ..search.code.data_flow import Follower
from ..search.code.sources import Index, function_node, index_of, is_torch, methods
from ..search.code.uses import MODULE_METHODS, Uses
from ..search.inputs import forms
from ..search.inputs.forms import Form
from ..search.inputs.model_inputs import GivenParts
from ..search.inputs.name_priors import (
    MEASURED,
    is_measured,
    is_played,
    read_forms,
    tensors_by_name,
    tensors_of_agents,
    words_of,
)
from .argument_names import EVALUATED, LOADER, LOSS, MODEL, STEERS, SURELY_INT, lists_of_samples, numbers_by_name
from .batch_parts import BatchPart, batch_parts, parts_given, parts_of_target, target_of_items
from .class_examples import ClassExample, targets_of

UNKNOWN = Form("unknown")
MOST_FORMS = 8

_LOSSES = ("torch.nn.CrossEntropyLoss()", "torch.nn.MSELoss()", "torch.nn.BCEWithLogitsLoss()", "torch.nn.BCELoss()", "torch.nn.NLLLoss()")
_AROUND_LOADERS = {"enumerate", "tqdm", "iter", "zip", "trange", "track", "list", "islice", "cycle", "log_every", "prepare"}
_A_TEXT = "a few words of text"
_TENSORS_OF = ("from_numpy", "FloatTensor", "LongTensor", "Tensor", "tensor", "as_tensor")
_DISCOUNTS = ("gamma", "tau", "discount", "lambda", "lam")
_MEASURES = re.compile(r"loss|acc|metric|score|dice|iou|jaccard|error|precision|recall|f1|psnr|entropy|kl|bce|mse|mae|criterion|elbo")


class AskedParameter(NamedTuple):
    """A parameter, and what the function says of it."""

    parameter: inspect.Parameter
    annotation: str
    uses: Uses
    batch: Optional[BatchPart]  # what a loop over it takes out of each item

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.name

    @property
    def words(self) -> str:
        """The words of its name."""
        return words_of(self.name)


class FunctionArguments:
    """The forms of the parameters of one function that are no tensors."""

    def __init__(
        self,
        function: Any,
        examples: Sequence[ClassExample],
        known: Mapping[str, Optional[Form]],
        said: Collection[str],
        cls: Optional[type] = None,
    ) -> None:
        """known: what the program has given to it of tensors, by the names of its parameters, None for what is no single tensor: the other
        parameters got none; said: the parameters of which the text says a shape; cls: the class that a method is of.
        """
        self._function = function
        self._examples = examples
        self._cls = cls
        self._node = function_node(function)
        self._is_played = self._node is not None and is_played(ast.unparse(self._node))
        self._given = known
        self._said = said
        self._known: Dict[str, List[Form]] = {name: [form] for name, form in known.items() if form is not None}

    def forms(self, parameter: inspect.Parameter) -> List[Form]:
        """The forms that a parameter may have, the likelier first; [] where it is a tensor, or its annotation says what it is."""
        if parameter.name not in self._known:
            found = self._forms(parameter)[:MOST_FORMS]
            if self._given and parameter.name not in self._given:
                found = [form for form in found if form.rank < 0] or [UNKNOWN]
            self._known[parameter.name] = found
        return self._known[parameter.name]

    def parameter(self, name: str) -> Optional[inspect.Parameter]:
        """A parameter of the function; None for what is none."""
        return next((each for each in self.parameters() if each.name == name), None)

    @property
    def is_known(self) -> bool:
        """True if the program has given a tensor to the function."""
        return any(self._given.values())

    @property
    def model(self) -> Optional[ClassExample]:
        """The class whose example the first model of the function is built by; None where it takes none."""
        for parameter in self.parameters():
            if self._is_model(parameter, self._uses(parameter.name)):
                return next(iter(self._fitting(parameter.name)), None)
        return None

    def parameters(self) -> List[inspect.Parameter]:
        """The parameters, without `self`."""
        try:
            return list(inspect.signature(self._function).parameters.values())
        except (TypeError, ValueError):
            return []

    def _forms(self, parameter: inspect.Parameter) -> List[Form]:
        asked = AskedParameter(parameter, _text(parameter.annotation), self._uses(parameter.name), self._batch(parameter.name))
        found = (rule(self, asked) for rule in RULES)
        return next((forms_found for forms_found in found if forms_found is not None), [])

    # --- the rules, in the order of RULES ---

    def _device(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns the processor for a parameter with the name of a device."""
        return [Form('"cpu"')] if asked.words in ("device", "dev") else None

    def _default(self, asked: AskedParameter) -> Optional[List[Form]]:
        """A plain default says all, where no annotation says more."""
        default = asked.parameter.default
        return [Form(repr(default))] if not asked.annotation and type(default) in (bool, int, float, str) else None

    def _index(self, asked: AskedParameter) -> Optional[List[Form]]:
        """A data set is asked for its first item."""
        return [Form("0")] if self._node is not None and self._node.name == "__getitem__" else None

    def _discount(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns a number between 0 and 1 for the discount of an agent."""
        return [Form("0.5"), UNKNOWN] if self._is_played and asked.words in _DISCOUNTS and not asked.annotation else None

    def _list_of_samples(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns lists of samples for a function that makes a batch."""
        samples = self._samples(asked.name)
        return list(lists_of_samples(samples)) if samples is not None else None

    def _evaluation(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns predictions and labels for a function that computes metrics for a trainer."""
        is_one = EVALUATED.fullmatch(asked.words) or asked.annotation.rpartition(".")[2] == "EvalPrediction"
        return [*self._evaluated(asked.name), UNKNOWN] if is_one else None

    def _loader(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns loaders of batches for a parameter with the name of a loader that the function goes through."""
        if asked.batch is None or not (LOADER.fullmatch(asked.words) or "Loader" in asked.annotation) or tensors_by_name(asked.name):
            return None
        return [*self._loaders(asked.batch), UNKNOWN]

    def _loss(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns losses of torch's for a parameter with the name of a loss that the function calls."""
        return [*map(Form, _LOSSES), UNKNOWN] if LOSS.fullmatch(asked.words) and asked.uses.kinds.get("called") else None

    def _model(self, asked: AskedParameter) -> Optional[List[Form]]:
        """A model is built as the example of a class says."""
        if not self._is_model(asked.parameter, asked.uses):
            return None
        return [*[Form(example.model) for example in self._fitting(asked.name)], UNKNOWN]

    def _object(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Of what steers, of any other loader, function or model nothing is known."""
        is_model = MODEL.fullmatch(asked.words) and any(not _is_of_tensors(part) for part in asked.uses.parts)
        is_one = STEERS.fullmatch(asked.words) or LOADER.fullmatch(asked.words) or asked.uses.kinds.get("called") or is_model
        return [UNKNOWN] if is_one else None

    def _number_to_write(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns a number for a parameter that the function only writes into texts."""
        return [Form("1"), UNKNOWN] if self._is_only_written(asked.name) else None

    def _words(self, asked: AskedParameter) -> Optional[List[Form]]:
        """A text is one of those that the code compares it with, or any."""
        if not asked.uses.kinds.get("text") or asked.uses.kinds.get("tensor"):
            return None
        text = next((choice for choice in asked.uses.choices if isinstance(choice, str)), _A_TEXT)
        return [Form(json.dumps(text)), UNKNOWN]

    def _other_object(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Of what its annotation, or else its parts, say is no tensor nothing is known."""
        is_one = _is_no_tensor(asked.annotation) if asked.annotation else _has_no_tensors(asked.uses)
        return [UNKNOWN] if is_one else None

    def _number(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns numbers for a parameter without a tensor's name; an unknown for one that the function only hands on."""
        name, uses = asked.name, asked.uses
        is_number = SURELY_INT.fullmatch(asked.words) or not tensors_by_name(name)
        if asked.annotation or uses.kinds.get("tensor") or not is_number:
            return None
        is_unused = not any(uses.kinds.values()) and not uses.parts and self._is_only_handed_on(name)
        return numbers_by_name(name) or ([UNKNOWN] if is_unused else [])

    def _array(self, asked: AskedParameter) -> Optional[List[Form]]:
        """An array has the forms of the tensor that it becomes, one row of it where that is made a batch of one."""
        name, tensors = asked.name, self._tensors(asked)
        if not tensors or not (asked.uses.is_array or (forms.forms_by_name(name) and self._is_made_tensor(name))):
            return None
        arrays = _without_batch(tensors) if self._is_one_of_a_batch(name) else tensors
        return [replace(form, template=form.template + ".numpy()") for form in arrays]

    def _of_agent(self, asked: AskedParameter) -> Optional[List[Form]]:
        """The states, actions and rewards of an agent."""
        return (self._tensors(asked) or None) if self._is_played and tensors_of_agents(asked.name) else None

    def _measured(self, asked: AskedParameter) -> Optional[List[Form]]:
        """Returns the forms of predictions and targets for a parameter that the function measures."""
        name = asked.name
        if not is_measured(name) or asked.annotation or name in self._said:
            return None
        found = [forms.shape_of(dtype, dims, name) for dtype, dims in read_forms(MEASURED)]
        return forms.distinct_forms([*found, *forms.general_forms(name)], name)

    def _tensors(self, asked: AskedParameter) -> List[Form]:
        """The forms of a parameter as a tensor; [] where its annotation or the text says them."""
        is_open = (not asked.annotation or asked.annotation.rpartition(".")[2] == "Tensor") and asked.name not in self._said
        return self._forms_of_leaf(BatchPart(asked.name), asked.name) if is_open else []

    def calls(self) -> Iterator[str]:
        """The arguments of a loss or metric of two tensors or more, as what an example of a class gives and is given."""
        required = [each for each in self.parameters() if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
        tensors = [each.name for each in required if all(form.rank >= 0 for form in self.forms(each)) and not forms.scalars(each)]
        if not _MEASURES.search(self._function.__name__.lower()) or len(tensors) < 2:
            return
        for example in self._examples:
            if example.output is None:
                continue
            outputs, inputs = example.outputs, example.arguments
            if len(outputs) > 1 and len(tensors) == len(outputs) + len(inputs):
                yield self._with(required, tensors, [*outputs[:1], *inputs, *outputs[1:]])
                yield self._with(required, tensors, [*outputs, *inputs])
            if len(tensors) == 2:
                for target in targets_of(example):
                    yield self._with(required, tensors, [example.output, target])

    def parts(self, parameter: inspect.Parameter) -> Optional[GivenParts]:
        """The parts of a parameter out of which the text takes several tensors: `states, actions = experiences`; None for any other one."""
        name = parameter.name
        if self._node is None or self.forms(parameter):
            return None
        if self._cls is not None:
            part: Optional[BatchPart] = batch_parts(self._function, name, self._cls)
        else:
            part = parts_of_target(self._function, ast.Name(name, ast.Load()), ())
        given = parts_given(part, name, self._forms_of_leaf) if part is not None and part.opening == "(" else None
        return given if given is not None and len(given.forms) > 1 else None

    def _forms_of_leaf(self, leaf: BatchPart, path: str) -> List[Form]:
        """The forms of a tensor that the text calls so."""
        found = tensors_of_agents(leaf.name) if self._is_played else []
        own = [forms.shape_of(dtype, dims, path) for dtype, dims in found]
        return forms.distinct_forms([*own, *forms.forms_by_name(leaf.name), *forms.general_forms(path)], path)

    def _is_one_of_a_batch(self, name: str) -> bool:
        """True if a parameter becomes a batch of one: `torch.from_numpy(state).float().unsqueeze(0)`."""
        return any(
            last_name(call.func) == "unsqueeze" and [ast.unparse(each) for each in call.args] == ["0"] for call in self._calls_around(name)
        )

    def _is_made_tensor(self, name: str) -> bool:
        """True if a parameter is an array, or a table of numbers, that becomes a tensor: `torch.FloatTensor(state)`."""
        return any(
            last_name(call.func) in _TENSORS_OF and isinstance(call.args[0], ast.Name) for call in self._calls_around(name) if call.args
        )

    def _calls_around(self, name: str) -> Iterator[ast.Call]:
        """The calls in the statements that read a parameter which are given it, or a method of what is made of it."""
        index = index_of(self._node) if self._node is not None else None
        for node in index.loads.get(name, ()) if index is not None else ():
            around: Optional[ast.AST] = node
            while around is not None and not isinstance(around, ast.stmt):
                if isinstance(around, ast.Call):
                    yield around
                around = index.parents.get(around)  # type: ignore[union-attr]

    def _with(self, required: List[inspect.Parameter], tensors: List[str], texts: List[str]) -> str:
        given = dict(zip(tensors, texts))
        return ", ".join(given.get(each.name) or [*self.forms(each), *forms.scalars(each)][0].template for each in required)

    def _evaluated(self, name: str) -> Iterator[Form]:
        """Returns the arrays that Hugging Face's trainer gives to a function of metrics: logits and labels, of texts or of their tokens."""
        part = parts_of_target(self._function, ast.Name(name, ast.Load()), ())
        written = "SimpleNamespace(predictions=%s, label_ids=%s)" if part is not None and part.opening == "." else "(%s, %s)"
        for logits, labels in (("f32[B:8, C:3]", "i64[B]"), ("f32[B:8, T:16, C:3]", "i64[B, T]")):
            yield Form(written % (logits + ".numpy()", labels + ".numpy()"))

    def _samples(self, name: str) -> Optional[BatchPart]:
        """Returns the parts that a function takes out of each sample in its list, where it makes a batch; None for any other function."""
        if self._node is None or "collate" not in self._function.__name__ or name != self.parameters()[-1].name:
            return None
        index = index_of(self._node)
        for node in index.loads.get(name, ()):
            star = index.parents.get(node)
            call = index.parents.get(star) if isinstance(star, ast.Starred) else None
            if isinstance(call, ast.Call) and last_name(call.func) == "zip":
                assigned = call
                while isinstance(index.parents.get(assigned), ast.Call):
                    assigned = index.parents[assigned]  # type: ignore[assignment]
                statement = index.parents.get(assigned)
                if isinstance(statement, ast.Assign):
                    return parts_of_target(self._function, statement.targets[0], self._models())
        return self._batch(name)

    def _is_only_handed_on(self, name: str) -> bool:
        """True if a function only gives a parameter to functions that are not torch's."""
        if self._node is None:
            return False
        index, names = index_of(self._node), getattr(inspect.unwrap(self._function), "__globals__", {})
        for load in index.loads.get(name, ()):
            around = index.parents.get(load)
            while around is not None and not isinstance(around, (ast.Call, ast.stmt)):
                around = index.parents.get(around)
            if not isinstance(around, ast.Call):
                return False
            called = names.get(dotted(around.func).partition(".")[0])
            if is_torch(called) or _is_module_of_torch(called):
                return False
        return True

    def _is_model(self, parameter: inspect.Parameter, uses: Uses) -> bool:
        annotation = _text(parameter.annotation)
        if annotation:
            return annotation.rpartition(".")[2] in {"Module", *[example.target for example in self._examples]}
        asked = set(uses.parts) & MODULE_METHODS
        called = uses.kinds.get("called") or uses.kinds.get("module")
        return bool(asked) or (bool(called) and MODEL.fullmatch(words_of(parameter.name)) is not None)

    def _fitting(self, name: str) -> List[ClassExample]:
        """The classes that a model of that name may be of: those first that are called like it."""
        words = words_of(name)
        own = {word for word in words.split("_") if len(word) > 1}

        def likeness(example: ClassExample) -> int:
            theirs = words_of(example.target.rpartition(".")[2])
            return -len(own & set(theirs.split("_"))) - 2 * (words == theirs)

        return sorted(self._examples, key=likeness)[:3]

    def _uses(self, name: str) -> Uses:
        uses = Uses()
        Follower().parameter(self._function, name, uses, self._cls, self._cls, building=self._is_constructor)
        return uses

    @property
    def _is_constructor(self) -> bool:
        return self._cls is not None and self._node is not None and self._node.name == "__init__"

    def _is_only_written(self, name: str) -> bool:
        """True if a function uses a parameter only to write it into a text, as a step or an epoch."""
        index = index_of(self._node) if self._node is not None else None
        loads = index.loads.get(name, ()) if index is not None else ()
        return bool(loads) and all(_is_written(node, index.parents) for node in loads)  # type: ignore[union-attr]

    # --- loaders ---

    def _batch(self, name: str) -> Optional[BatchPart]:
        """Returns the parts that a loop over a parameter takes out of each item; None where there is no such loop."""
        for function, index, load in self._loads(name):
            inner: ast.AST = load
            parent = index.parents.get(inner)
            counted = False
            while isinstance(parent, ast.Call) and last_name(parent.func) in _AROUND_LOADERS and inner in parent.args:
                counted = counted or last_name(parent.func) == "enumerate"
                inner, parent = parent, index.parents.get(parent)
            if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is inner:
                target = parent.target
                if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                    target = target.elts[1]
                return self._parts_of_items(function, index, name, load, target)
            if isinstance(parent, ast.Call) and last_name(parent.func) == "next" and isinstance(index.parents.get(parent), ast.Assign):
                assigned = index.parents[parent]
                assert isinstance(assigned, ast.Assign)
                return self._parts_of_items(function, index, name, load, assigned.targets[0])
        return None

    def _parts_of_items(self, function: Any, index: Index, name: str, load: ast.expr, target: ast.expr) -> Optional[BatchPart]:
        """The parts of what is bound to a target, which is an item of a loader, or of a generator that the loader was replaced by."""
        names = getattr(inspect.unwrap(function), "__globals__", {})
        for stored in index.stored.get(name, ()):
            statement = index.parents.get(stored)
            call = statement.value if isinstance(statement, ast.Assign) and stored.lineno < load.lineno else None
            if isinstance(call, ast.Call) and inspect.isgeneratorfunction(names.get(last_name(call.func))):
                found = target_of_items(names[last_name(call.func)], target)
                return parts_of_target(function, found, self._models()) if found is not None else None
        return parts_of_target(function, target, self._models())

    def _loads(self, name: str) -> Iterator[Tuple[Any, Index, ast.expr]]:
        """The places where a parameter is read, and, where a constructor keeps it as an attribute, those where methods read that."""
        if self._node is None:
            return
        index = index_of(self._node)
        kept: List[str] = []
        for load in index.loads.get(name, ()):
            yield self._function, index, load
            parent = index.parents.get(load)
            if self._is_constructor and isinstance(parent, ast.Assign) and parent.value is load:
                kept += [dotted(target) for target in parent.targets]
        for function, node in methods(self._cls) if kept and self._cls is not None else ():
            yield from ((function, index_of(node), load) for attribute in kept for load in index_of(node).loads.get(attribute, ()))

    def _models(self) -> List[str]:
        """The parameters that are called as a model is."""
        found = [each.name for each in self.parameters() if MODEL.fullmatch(words_of(each.name))]
        return [name for name in found if self._uses(name).kinds.get("called")]

    def _loaders(self, batch: BatchPart) -> Iterator[Form]:
        """Loaders of batches of that form, the likelier first."""
        for parts in itertools.islice(self._parts(batch, self.model), MOST_FORMS):
            text = batch.written(iter([part.template for part in parts]))
            yield Form("batches(%s)" % text, {name: size for part in parts for name, size in part.sizes.items()})

    def _parts(self, batch: BatchPart, model: Optional[ClassExample]) -> Iterator[List[Form]]:
        """Returns the forms for the places of a batch's tensors: first those of the model's inputs and outputs, then those by their
        names."""
        leaves = list(batch.leaves())
        if model is not None:
            yield from _parts_by_model(batch, leaves, model)
        options = [_by_name(leaf.name) for leaf in leaves]
        first = [each[0] for each in options]
        yield first
        for place in range(len(leaves) - 1, -1, -1):
            for form in options[place][1:4]:
                yield [*first[:place], form, *first[place + 1 :]]


Rule = Callable[[FunctionArguments, AskedParameter], Optional[List[Form]]]
# What tells the forms of a parameter that is no tensor: the first one that answers does. [] says that it is a tensor.
RULES: Tuple[Rule, ...] = (
    FunctionArguments._device,
    FunctionArguments._default,
    FunctionArguments._index,
    FunctionArguments._discount,
    FunctionArguments._list_of_samples,
    FunctionArguments._evaluation,
    FunctionArguments._loader,
    FunctionArguments._loss,
    FunctionArguments._model,
    FunctionArguments._object,
    FunctionArguments._number_to_write,
    FunctionArguments._words,
    FunctionArguments._other_object,
    FunctionArguments._number,
    FunctionArguments._array,
    FunctionArguments._of_agent,
    FunctionArguments._measured,
)


def _parts_by_model(batch: BatchPart, leaves: List[BatchPart], model: ClassExample) -> Iterator[List[Form]]:
    """Returns the inputs of a model, and targets that fit its output in the remaining places."""
    own, targets = [Form(text) for text in model.arguments], [Form(text) for text in targets_of(model)]
    placed = {number: own[leaf.place] for number, leaf in enumerate(leaves) if leaf.place is not None and leaf.place < len(own)}
    if placed and batch.opening:
        for target in targets if len(placed) < len(leaves) else targets[:1]:
            yield [placed.get(number, target) for number in range(len(leaves))]
    elif len(leaves) > len(own):
        for target in targets:
            yield [*own, *[target] * (len(leaves) - len(own))]
    elif batch.opening:
        yield own[: len(leaves)]
    else:
        yield own[:1]
        for target in targets[:4]:  # `model(*batch)`, or a batch that is handed on.
            yield [Form("(%s, %s)" % (", ".join(form.template for form in own), target.template))]


def _without_batch(found: List[Form]) -> List[Form]:
    """The forms of one row of a batch, each once."""
    batch = "B:⟨#B⟩, "
    rows = [replace(form, template=form.template.replace(batch, ""), rank=form.rank - 1) for form in found if batch in form.template]
    return [replace(form, sizes={name: size for name, size in form.sizes.items() if name != "#B"}) for form in rows]


def _by_name(name: str) -> List[Form]:
    path = name or "x"
    return forms.distinct_forms([*forms.forms_by_name(path), *forms.general_forms(path)], path)


def _is_module_of_torch(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "torch"


def _has_no_tensors(uses: Uses) -> bool:
    """True if a value has parts, and none with a tensor's name: a client, a data set, a search index."""
    parts = {name: part for name, part in uses.parts.items() if not all(hasattr(torch.Tensor, each) for each in (name, *part.parts))}
    return bool(parts) and not any(tensors_by_name(name) and not part.kinds.get("called") for name, part in parts.items())


def _is_of_tensors(name: str) -> bool:
    return hasattr(torch.Tensor, name) or name in ("items", "keys", "values")


def _is_written(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """True if an expression is a part of a text: of an f-string, of an argument of `%`, `format` or `print`."""
    parent = parents.get(node)
    if isinstance(parent, ast.Tuple):
        node, parent = parent, parents.get(parent)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod):
        return parent.right is node and _is_text(parent.left)
    if isinstance(parent, ast.Call):
        of_text = isinstance(parent.func, ast.Attribute) and parent.func.attr == "format" and _is_text(parent.func.value)
        return node in parent.args and (of_text or dotted(parent.func) in ("print", "str"))
    return isinstance(parent, ast.FormattedValue)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else annotation.__name__ if isinstance(annotation, type) else str(annotation)


_TENSORS = re.compile(r"Tensor|Float|Int\b|Long|Bool|Shaped|ndarray|Any\b|object\b|ist\b|uple\b|ict\b|Sequence|Iterable|Optional|Union")
_NUMBERS = re.compile(r"(typing\.)?(Optional\[)?(int|float|bool|str)\b")


def _is_no_tensor(annotation: str) -> bool:
    return not _TENSORS.search(annotation) and not _NUMBERS.match(annotation)


def form_of(value: Value) -> Optional[Form]:
    """A tensor like one that was seen; sizes that were not known are a batch and steps. None for what is no tensor."""
    if value.kind != "tensor" or value.shape is None:
        return None
    names = iter(("B:2", "T:16", "S:12"))
    named = value.named or ["%s" % size for size in value.shape]
    sizes = [next(names, "8") if size is None else "%s%d" % ("B:" if name == "B" else "", size) for size, name in zip(value.shape, named)]
    return Form("%s[%s]" % (BY_NAME.get(value.dtype, "f32"), ", ".join(sizes) or "()"), {}, len(sizes), BY_NAME.get(value.dtype, "f32"))
