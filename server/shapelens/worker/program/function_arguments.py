"""What a function is given for a parameter that is no tensor: a model, a loader, a loss, or what only steers and reports.

What the function does with a parameter tells what it is, its name where that says nothing. A model is built as the example of its class
says, and a loader gives batches of what that example gives to `forward`, with targets of the forms that fit its output.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
from dataclasses import replace
from types import ModuleType
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch

from ...protocol import Value
from ...stated.syntax_trees import dotted, last_name
from ..evaluation.dtype_names import BY_NAME
from ..search.code.data_flow import Follower
from ..search.code.sources import Index, function_node, index_of, is_torch, methods
from ..search.code.uses import MODULE_METHODS, Uses
from ..search.inputs import forms
from ..search.inputs.forms import Form
from ..search.inputs.input_search import GivenParts
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
        """Whether the program has given a tensor to the function."""
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
        name, words = parameter.name, words_of(parameter.name)
        uses = self._uses(name)
        batch = self._batch(name)
        annotation = _text(parameter.annotation)
        if words in ("device", "dev"):
            return [Form('"cpu"')]
        if not annotation and type(parameter.default) in (bool, int, float, str):
            return [Form(repr(parameter.default))]
        if self._node is not None and self._node.name == "__getitem__":
            return [Form("0")]
        if self._is_played and words in _DISCOUNTS and not annotation:
            return [Form("0.5"), UNKNOWN]
        samples = self._samples(name)
        if samples is not None:
            return list(lists_of_samples(samples))
        if EVALUATED.fullmatch(words) or annotation.rpartition(".")[2] == "EvalPrediction":
            return [*self._evaluated(name), UNKNOWN]
        if batch is not None and (LOADER.fullmatch(words) or "Loader" in annotation) and not tensors_by_name(name):
            return [*self._loaders(batch), UNKNOWN]
        if LOSS.fullmatch(words) and uses.kinds.get("called"):
            return [*map(Form, _LOSSES), UNKNOWN]
        if self._is_model(parameter, uses):
            return [*[Form(example.model) for example in self._fitting(name)], UNKNOWN]
        if STEERS.fullmatch(words) or LOADER.fullmatch(words) or uses.kinds.get("called"):
            return [UNKNOWN]
        if MODEL.fullmatch(words) and (uses.kinds.get("called") or any(not _is_of_tensors(part) for part in uses.parts)):
            return [UNKNOWN]
        if self._is_only_written(name):
            return [Form("1"), UNKNOWN]
        if uses.kinds.get("text") and not uses.kinds.get("tensor"):
            return [Form(json.dumps(next((choice for choice in uses.choices if isinstance(choice, str)), _A_TEXT))), UNKNOWN]
        if (annotation and _is_no_tensor(annotation)) or (not annotation and _has_no_tensors(uses)):
            return [UNKNOWN]
        if not annotation and not uses.kinds.get("tensor") and (SURELY_INT.fullmatch(words) or not tensors_by_name(name)):
            is_unused = not any(uses.kinds.values()) and not uses.parts and self._is_only_handed_on(name)
            return numbers_by_name(name) or ([UNKNOWN] if is_unused else [])
        is_open = (not annotation or annotation.rpartition(".")[2] == "Tensor") and name not in self._said
        tensors = self._forms_of_leaf(BatchPart(name), name) if is_open else []
        if tensors and (uses.is_array or (forms.forms_by_name(name) and self._is_made_tensor(name))):
            arrays = _without_batch(tensors) if self._is_one_of_a_batch(name) else tensors
            return [replace(form, template=form.template + ".numpy()") for form in arrays]
        if self._is_played and tensors_of_agents(name) and tensors:
            return tensors
        if is_measured(name) and not annotation and name not in self._said:
            return forms.distinct_forms(
                [*(forms.shape_of(dtype, dims, name) for dtype, dims in read_forms(MEASURED)), *forms.general_forms(name)], name
            )
        return []

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
        """Whether a parameter is made a batch of one: `torch.from_numpy(state).float().unsqueeze(0)`."""
        return any(
            last_name(call.func) == "unsqueeze" and [ast.unparse(each) for each in call.args] == ["0"] for call in self._calls_around(name)
        )

    def _is_made_tensor(self, name: str) -> bool:
        """Whether a parameter is an array, or a table of numbers, that becomes a tensor: `torch.FloatTensor(state)`."""
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
        """What Hugging Face's trainer gives to what computes metrics: arrays of logits and labels, of texts or of their tokens."""
        part = parts_of_target(self._function, ast.Name(name, ast.Load()), ())
        written = "SimpleNamespace(predictions=%s, label_ids=%s)" if part is not None and part.opening == "." else "(%s, %s)"
        for logits, labels in (("f32[B:8, C:3]", "i64[B]"), ("f32[B:8, T:16, C:3]", "i64[B, T]")):
            yield Form(written % (logits + ".numpy()", labels + ".numpy()"))

    def _samples(self, name: str) -> Optional[BatchPart]:
        """What a function that makes a batch takes out of each sample in the list that it is given; None for any other function."""
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
        """Whether all that a function does with a parameter is to give it to functions that are not torch's."""
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
        """Whether a parameter is used for nothing but to be written into a text, as a step or an epoch is."""
        index = index_of(self._node) if self._node is not None else None
        loads = index.loads.get(name, ()) if index is not None else ()
        return bool(loads) and all(_is_written(node, index.parents) for node in loads)  # type: ignore[union-attr]

    # --- loaders ---

    def _batch(self, name: str) -> Optional[BatchPart]:
        """What a loop over a parameter takes out of each item; None where there is no such loop."""
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
        """What stands in the places of a batch's tensors."""
        leaves = list(batch.leaves())
        own = [Form(text) for text in model.arguments] if model is not None else []
        targets = [Form(text) for text in targets_of(model)] if model is not None else []
        placed = {number: own[leaf.place] for number, leaf in enumerate(leaves) if leaf.place is not None and leaf.place < len(own)}
        rest = [number for number in range(len(leaves)) if number not in placed]
        if placed and batch.opening:
            for target in targets if rest else targets[:1]:
                yield [placed.get(number, target) for number in range(len(leaves))]
        elif model is not None and len(leaves) > len(own):
            for target in targets:
                yield [*own, *[target] * (len(leaves) - len(own))]
        elif model is not None and not batch.opening:
            yield own[:1]
            for target in targets[:4]:  # `model(*batch)`, or a batch that is handed on.
                yield [Form("(%s, %s)" % (", ".join(form.template for form in own), target.template))]
        elif model is not None:
            yield own[: len(leaves)]
        options = [_by_name(leaf.name) for leaf in leaves]
        first = [each[0] for each in options]
        yield first
        for place in range(len(leaves) - 1, -1, -1):
            for form in options[place][1:4]:
                yield [*first[:place], form, *first[place + 1 :]]


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
    """Whether something has parts, and none that is called like a tensor: a client, a data set, a search index."""
    parts = {name: part for name, part in uses.parts.items() if not all(hasattr(torch.Tensor, each) for each in (name, *part.parts))}
    return bool(parts) and not any(tensors_by_name(name) and not part.kinds.get("called") for name, part in parts.items())


def _is_of_tensors(name: str) -> bool:
    return hasattr(torch.Tensor, name) or name in ("items", "keys", "values")


def _is_written(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether an expression is a part of a text: of an f-string, of what `%` and `format` fill in, of what is printed."""
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
