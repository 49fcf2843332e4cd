"""Usages of a document's classes in its project: what its scripts, tests and `__main__` blocks say."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from typing import Dict, List, Optional, Sequence, Set, Tuple

from ....protocol import FileSpan
from ....stated.syntax_trees import all_parameters, dotted
from ...evaluation.dtype_names import SHORTHANDS
from ..evidence import Candidate
from .scripts.module_names import ModuleNames, free_names, method
from .scripts.scope import CallArguments
from .scripts.script import ModelUse, Script
from .scripts.values import ScriptValue

MOST = 6  # candidates a class
# Calls that need what is not there: files, the net.
FROM_OUTSIDE = {
    "open", "load_dataset", "read_csv", "read_json", "read_parquet", "read_pickle", "imread", "load_state_dict_from_url", "urlopen",
    "loadmat", "download", "loadtxt", "input", "VideoCapture", "load_from_checkpoint", "hf_hub_download", "read_image",
}  # fmt: skip
EVALUATED_ALONE = "B:1"


def usages(
    tree: ast.Module, classes: Sequence[str], file: str = "", known: Optional[Dict[str, str]] = None, document: Optional[ast.Module] = None
) -> List[Candidate]:
    """All ways in which a module builds each of `classes` and calls it, the strongest first, in the document's own namespace.

    tree: not rewritten. Another file than the document is given with its path, with what the names of the document are called there
    (`imports.known_names`), and with the document's tree.
    """
    names = ModuleNames(tree, own=not file, known=known)
    of_document = names if document is None else ModuleNames(document)
    script = Script(names, classes, of_document)
    uses = script.read()
    writer = UsageWriter(script, of_document, file)
    found = _of_functions(script, writer) if not file else []
    found += [candidate for candidate in map(writer.candidate, uses) if candidate is not None]
    return _strongest(found, classes)


class UsageWriter:
    """Writes uses down as candidates."""

    def __init__(self, script: Script, allowed: ModuleNames, file: str) -> None:
        self.tensors = script.tensors
        self.allowed = allowed
        self.packages = _absolute_imports(script.names.tree) if file else set()  # whose names are written in full
        self.path = file
        self.file = os.path.basename(file)

    def candidate(self, use: ModelUse) -> Optional[Candidate]:
        """None where nothing of it can be said in the document."""
        node = use.call
        where = use.label or "line %d" % node.lineno
        if self.file:
            where = "%s:%d" % (self.file, node.lineno)
        constructor = self.expression(use.constructor)
        arguments = self.arguments(use.given)
        if not constructor and arguments is None:
            return None
        if constructor and use.is_evaluated and arguments is not None and EVALUATED_ALONE in arguments:
            constructor += ".eval()"  # A batch norm does not train on a batch of one.
        is_whole = use.is_sure and constructor and (arguments is not None or use.given is None)
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        call = FileSpan(self.path, node.lineno, node.col_offset, *end) if is_whole else None
        return Candidate(use.target, constructor, arguments, "usage", where, call=call)

    def expression(self, node: Optional[ast.expr]) -> str:
        """An expression, written so that it makes tensors by shorthands; "" where the document cannot evaluate it."""
        if node is None:
            return ""
        text = self.arguments(CallArguments([ScriptValue(node)], []))
        return text or ""

    def arguments(self, given: Optional[CallArguments]) -> Optional[str]:
        """The arguments of a call as text; None where the document cannot evaluate them."""
        if given is None or any(value.node is None for value in given.positional):
            return None
        if any(name is None and value.node is None for name, value in given.keywords):
            return None
        keywords = [ast.keyword(name, value.node) for name, value in given.keywords if value.node is not None]
        try:
            text = self.tensors.arguments([value.resolved() for value in given.positional], keywords)
            return text if self._can_be_evaluated(text) else None
        except (SyntaxError, ValueError, RecursionError):  # Before Python 3.12 some f-strings cannot be written down again.
            return None

    def _can_be_evaluated(self, text: str) -> bool:
        call = ast.parse("f(%s)" % text, mode="eval").body
        assert isinstance(call, ast.Call)
        parts = call.args + [keyword.value for keyword in call.keywords]
        if not all(map(self._is_known, {name for part in parts for name in free_names(part)})):
            return False
        calls = [node.func for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)]
        return not any((dotted(function).rpartition(".")[2] or getattr(function, "attr", "")) in FROM_OUTSIDE for function in calls)

    def _is_known(self, name: str) -> bool:
        return name in self.allowed or name in self.packages or hasattr(builtins, name) or name in ("torch", "B") or name in SHORTHANDS


def _absolute_imports(tree: ast.Module) -> Set[str]:
    """The outermost packages that a file imports from; not those of the standard library, which are for paths and command lines."""
    found: Set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - set(getattr(sys, "stdlib_module_names", ()))


def _of_functions(script: Script, writer: UsageWriter) -> List[Candidate]:
    """`get_inputs()` and `get_init_inputs()`, as benchmarks have them: lists of what a model is called with and built from."""
    functions = script.names.functions
    if "get_inputs" not in functions or not script.names.classes:
        return []
    of_last = _interface(list(script.names.classes.values())[-1])
    targets = [name for name, node in script.names.classes.items() if name in script.classes and _interface(node) == of_last]
    given = script.run(functions["get_inputs"], CallArguments([], []), script.module)
    texts = ["*get_inputs()"]
    if given.items is not None and script.prefers_result(given):
        written = writer.arguments(CallArguments(list(given.items), []))
        texts = [written] + texts if written is not None else texts
    constructors = _constructors(script, writer)
    node = functions["get_inputs"]
    call = FileSpan("", node.lineno, node.col_offset, node.lineno, node.col_offset + len("def get_inputs"))
    found = []
    for target in targets:
        constructor = "%s(%s)" % (target, constructors)
        found += [Candidate(target, constructor, text, "usage", "get_inputs()", call=call) for text in texts]
    return found


def _interface(node: ast.ClassDef) -> List[List[str]]:
    """Returns the names of a model's parameters: those of the last class is what the file is about, and other versions of it have the
    same."""
    functions = [method(node, name) for name in ("__init__", "forward")]
    return [[each.arg for each in all_parameters(function)] for function in functions if function is not None]


def _constructors(script: Script, writer: UsageWriter) -> str:
    function = script.names.functions.get("get_init_inputs")
    if function is None:
        return ""
    given = script.run(function, CallArguments([], []), script.module)
    items = given.items
    if items is not None and len(items) == 2 and items[0].items == () and items[1].attributes:  # [[], {"dim": 64}]
        written = writer.arguments(CallArguments([], [(name, value) for name, value in items[1].attributes.items()]))
        return written if written is not None else "**get_init_inputs()[1]"
    written = writer.arguments(CallArguments(list(items), [])) if items is not None else None
    return written if written is not None else "*get_init_inputs()"


def _strongest(found: List[Candidate], classes: Sequence[str]) -> List[Candidate]:
    """At most MOST a class; those that both build and call come first, then those of places that are made to show or test the model."""
    kept: Dict[Tuple[str, str, Optional[str]], Candidate] = {}
    for candidate in found:
        kept.setdefault((candidate.target, candidate.constructor, candidate.arguments), candidate)
    ordered = sorted(kept.values(), key=_rank)
    out: List[Candidate] = []
    for target in classes:
        of_it = [candidate for candidate in ordered if candidate.target == target]
        built = {one.constructor for one in of_it if one.arguments is not None}
        out += [one for one in of_it if one.arguments is not None or one.constructor not in built][:MOST]
    return out


def _rank(candidate: Candidate) -> Tuple[int, int]:
    completeness = 0 if candidate.constructor and candidate.arguments is not None else 1 if candidate.arguments is not None else 2
    places = ("get_inputs()", "main__", "test", "main()", "line ")
    place = next((number for number, start in enumerate(places) if candidate.where.lstrip("_").startswith(start)), len(places))
    return completeness, place
