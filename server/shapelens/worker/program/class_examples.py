"""The examples of the document's classes, taken apart: how a model is built, what `forward` is given, and what it gives."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import torch

from ...protocol import ExampleRequest
from ...stated.syntax_trees import expression_of
from ..evaluation.dtype_names import BY_NAME
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.expression import compile_expression, evaluate

_OUTPUT = "__shapelens_output__"


class ClassExample(NamedTuple):
    """An example of a class, taken apart: the text that builds the model, and those of the arguments of `forward`."""

    target: str  # the qualified name of the class
    model: str
    arguments: List[str]
    output: Optional[str]  # a shorthand for a tensor like the first that `forward` gives; None where that is no tensor
    outputs: List[str]  # of each of the tensors in the tuple that it gives
    named: Dict[str, str]  # of the tensors that names in the methods of the class hold, by these names


def class_examples(runner: ExampleRunner) -> List[ClassExample]:
    """The examples of the document's classes that are known, as far as they can be taken apart."""
    found = [taken_apart(runner, request) for request in runner.run.known if isinstance(class_of(runner, request.target), type)]
    return [each for each in found if each is not None]


def class_of(runner: ExampleRunner, target: str) -> Any:
    """Returns the class or function of an example, by its qualified name; None where there is none."""
    outer, *inner = target.split(".")
    try:
        found = runner.names[outer]
    except KeyError:
        return None
    for name in inner:
        found = getattr(found, name, None)
    return found


def taken_apart(runner: ExampleRunner, request: ExampleRequest) -> Optional[ClassExample]:
    """The parts of an example; None where it is not the call of a model with arguments by position."""
    tree = expression_of(request.expression.strip())
    if not isinstance(tree, ast.Call) or tree.keywords or not isinstance(tree.func, (ast.Call, ast.Name)):
        return None
    output: List[Any] = []
    with_output = compile_expression("%s(%s)" % (_OUTPUT, request.expression))
    names = NamesAndMore(runner.names, {_OUTPUT: output.append})
    runner.evaluation.run(runner.evaluation.start, partial(evaluate, with_output, names, {}, {}))
    given = list(output[0]) if output and isinstance(output[0], (tuple, list)) else output
    text = ast.unparse(tree)
    shapes = [_shorthand(each, text) if isinstance(each, torch.Tensor) else None for each in given]
    tensors = [shape for shape in shapes if shape is not None]
    first = shapes[0] if shapes else None
    arguments = [ast.unparse(argument) for argument in tree.args]
    return ClassExample(request.target, ast.unparse(tree.func), arguments, first, tensors, _named(runner, request.target, text))


class NamesAndMore(Dict[str, Any]):
    """The names of a document, and some more."""

    def __init__(self, names: Any, more: Any) -> None:
        super().__init__(more)
        self._names = names

    def __missing__(self, name: str) -> Any:
        return self._names[name]


def _named(runner: ExampleRunner, target: str, expression: str) -> Dict[str, str]:
    """Returns, for names in a class's methods, the form of their first tensor in the evaluation that has just ended."""
    found: Dict[str, str] = {}
    for number, seen in runner.recorder.seen.items():
        site, key = runner.recorder.sites[number], next(iter(seen.counts))
        if site.kind in ("assign", "parameter") and site.function.startswith(target + ".") and key[0] == "tensor" and None not in key[1]:
            found.setdefault(site.name, _like(key[1], key[2], expression))
    return found


def _shorthand(tensor: Any, expression: str) -> str:
    return _like([int(size) for size in tensor.shape], str(tensor.dtype)[6:], expression)


def _like(shape: Sequence[int], dtype: str, expression: str) -> str:
    """`f32[B, 10]`: a tensor like one that was seen, of the same batch as the example's."""
    sizes = [str(size) for size in shape]
    if sizes and "B:%s" % sizes[0] in expression:
        sizes[0] = "B:%s" % sizes[0]
    return "%s[%s]" % (BY_NAME.get(dtype, "f32"), ", ".join(sizes) or "()")


def targets_of(example: ClassExample) -> Iterator[str]:
    """The forms that targets have: a class for each example or each place of it, a tensor like the output, a number for each example."""
    named = [found.group() for argument in example.arguments for found in [re.search(r"B:\d+", argument)] if found is not None]
    batch = named[0] if named else "2"
    yield "i64[%s]" % batch
    if example.output is not None:
        sizes = example.output[example.output.index("[") + 1 : -1].split(", ")
        if len(sizes) > 2:
            yield "i64[%s]" % ", ".join([sizes[0], *sizes[2:]])
            yield "i64[%s]" % ", ".join(sizes[:-1])
        yield example.output
    yield "f32[%s]" % batch
    yield "f32[%s, 1]" % batch
    yield from example.arguments[:1]


def with_names_once(expression: str) -> str:
    """The expression with the size of the batch at the first of its names only: `f(f32[B:2, 8], i64[B])`."""
    first = expression.find("B:") + 2
    return expression[:first] + re.sub(r"\bB:\d+", "B", expression[first:]) if first > 1 else expression
