"""Functions that return a model and can be called as they stand, `resnet18()`, or with nothing but sizes: `make_model(1000, 1000)`."""

from __future__ import annotations

import ast
import re
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from ....stated.syntax_trees import dotted, with_defaults
from ..evidence import Candidate
from .scripts.module_names import FUNCTIONS, Function, ModuleNames, required, statements
from .scripts.scope import CallArguments
from .scripts.script import Script

MOST = 3  # a class
WEIGHTS = ("pretrained", "weights", "checkpoint", "ckpt", "download")
NO_FACTORIES = re.compile(r"test|main$|get_inputs|get_init_inputs|train|eval|demo|run|benchmark")
SMALL = {
    "atto", "femto", "pico", "nano", "micro", "tiny", "mini", "ti", "t", "n", "xxs", "xs", "debug", "test", "small", "s", "18", "b0", "11",
    "121",
}  # fmt: skip
LARGE = {"large", "l", "101", "b4", "161", "169", "19"}
HUGE = {"huge", "giant", "gigantic", "xl", "xxl", "h", "g", "152", "200", "201", "b7", "enormous"}


def factories(tree: ast.Module, classes: Sequence[str], size_of: Callable[[str], Optional[int]]) -> List[Candidate]:
    """Functions, class methods and static methods that need nothing but sizes and return a model; those that need none first, and of small
    models.

    Each is a constructor alone. Its target is "" where the text does not say which of `classes` it returns.

    size_of: the size that a parameter's name speaks for; None where it speaks for none.
    """
    names = ModuleNames(tree)
    script = Script(names, classes, names)
    found: Dict[str, List[Tuple[Tuple[bool, int, int], Candidate]]] = {}
    for text, function, is_bound in _callables(names, classes):
        needed = {name: size_of(name) for name in required(function, is_bound)}
        sizes = {name: size for name, size in needed.items() if size is not None}
        if NO_FACTORIES.match(function.name) or len(sizes) < len(needed):
            continue
        target = _target(script, function, classes)
        if target is not None:
            given = ["%s=⟨%s⟩" % (name, name) for name in sorted(sizes)]
            call = "%s(%s)" % (text, ", ".join([*given, *_without_weights(function)]))
            # With sizes that are guessed it is inferred: an edit may ask for others.
            candidate = Candidate(target, call, None, *(("inferred", "") if sizes else ("factory", "%s()" % text)), sizes)
            found.setdefault(target, []).append(((bool(sizes), *_size(function)), candidate))
    return [candidate for ranked in found.values() for _, candidate in sorted(ranked, key=lambda one: one[0])[:MOST]]


def _callables(names: ModuleNames, classes: Sequence[str]) -> List[Tuple[str, Function, bool]]:
    found: List[Tuple[str, Function, bool]] = [(name, node, False) for name, node in names.functions.items()]
    for name in classes:
        for node in names.classes[name].body if name in names.classes else ():
            kinds = set(map(dotted, node.decorator_list)) if isinstance(node, FUNCTIONS) else set()
            if isinstance(node, FUNCTIONS) and kinds & {"classmethod", "staticmethod"}:
                found.append(("%s.%s" % (name, node.name), node, "classmethod" in kinds))
    return found


def _target(script: Script, function: Function, classes: Sequence[str]) -> Optional[str]:
    """The class that a function returns; "" for a model of which the text does not say more, None for anything else."""
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function)):
        return None
    found = script.run(function, CallArguments([], []), script.module)
    if found.is_model:
        return found.model if found.model in classes else ""
    annotation = dotted(function.returns) if function.returns is not None else ""
    if annotation in classes:
        return annotation
    given = _handed_over(script.names, function, set(classes), 0)
    if given:
        return given
    return "" if annotation.rpartition(".")[2] == "Module" else None


def _handed_over(names: ModuleNames, function: Function, classes: Set[str], depth: int) -> str:
    """The class that a function hands to what makes its result: `return build(Net, variant, **kwargs)`."""
    values: List[ast.expr] = [node.value for node in statements(function.body) if isinstance(node, ast.Return) and node.value is not None]
    returned = {value.id for value in values if isinstance(value, ast.Name)}
    assigned = [node for node in statements(function.body) if isinstance(node, ast.Assign)]
    values += [node.value for node in assigned if any(isinstance(target, ast.Name) and target.id in returned for target in node.targets)]
    for value in values:
        if not isinstance(value, ast.Call):
            continue
        for part in value.args:
            if isinstance(part, ast.Name) and part.id in classes:
                return part.id
        inner = names.functions.get(dotted(value.func))
        if inner is not None and inner is not function and depth < 3:
            found = _handed_over(names, inner, classes, depth + 1)
            if found:
                return found
    return ""


def _without_weights(function: Function) -> List[str]:
    """Arguments that keep a factory from asking for weights that would have to be fetched."""
    written = []
    for parameter, default in with_defaults(function):
        falsy = isinstance(default, ast.Constant) and not default.value
        if parameter.arg.startswith(WEIGHTS) and not falsy:
            is_flag = isinstance(default, ast.Constant) and default.value is True
            written.append("%s=%s" % (parameter.arg, "False" if is_flag else "None"))
    return written


def _size(function: Function) -> Tuple[int, int]:
    """Returns the likely size of the model: by its name, then by the numbers in the function."""
    words = re.findall(r"[a-z]+\d*|\d+", function.name.lower())
    words += [part for word in words for part in re.findall(r"[a-z]+|\d+", word)]
    rank = 3 if HUGE & set(words) else 2 if LARGE & set(words) else 0 if SMALL & set(words) else 1
    numbers = [node.value for node in ast.walk(function) if isinstance(node, ast.Constant) and type(node.value) is int]
    numbers += map(int, re.findall(r"\d{1,4}", function.name))
    return rank, sum(number for number in numbers if 0 < number < 10**5)
