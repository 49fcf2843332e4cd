"""Reads what the statements of a file name: which of them speak of a class, which bind a name, and what comes to use it."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Set
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from shapelens.examples.expression import SHORTHANDS
from shapelens.protocol import ExampleRun
from shapelens.source.module import Module

WORD = re.compile(r"[^\W\d]\w*")
# Statements that say nothing of how a class is used: imports, the docstring of the file, what it exports.
_SILENT = re.compile(r"""\s*(?:from\b|import\b|__all__\b|[rRbBuU]?["'])""")
# Comments, docstrings and signatures: where annotations stand.
_SAYING = re.compile(r"""#.*|\"{3}(?s:.*?)\"{3}|'{3}(?s:.*?)'{3}|\bdef \w+\((?s:.*?)\)[^:\n]*:""")
# Functions that say how to build and call a model without naming its class.
_CONVENTIONS = frozenset({"get_inputs", "get_init_inputs"})
# What any statement may name without having to do with an example.
_COMMON = frozenset({*keyword.kwlist, *dir(builtins), *SHORTHANDS, "torch", "nn", "F", "np", "self", "line", "__main__"})
# `net = Net()`, `x = torch.randn(2, 3)`, `net(x)`: from the class to what it is called with there are this many steps.
_STEPS = 2
_LONGEST_STEP = 400  # characters of a statement whose names are followed further
_BLOCK = re.compile(r"(?:if|try|for|while|with|match)\b")
_ASSIGNED = re.compile(r"[^=(]+(?==)")  # what stands left of `=`
_DEFINITION = re.compile(r"(?:@.*\n)*(?:async\s+)?(?:def|class)\s+(\w+)")


class ModuleStatements:
    """Holds what the statements of a module say, read when it is asked for, and once."""

    def __init__(self, module: Module) -> None:
        self._texts = [item.statement.text for item in module.statements.placed]
        self._classes = [[cls.qualname for cls in item.statement.classes] for item in module.statements.placed]
        self._module_classes = {cls.qualname for cls in (*module.classes, *module.maybe_modules)}
        self._evidence: dict[tuple[str, ...], tuple[list[str], list[list[str]]]] = {}

    @cached_property
    def statements(self) -> list[str]:
        """The top-level statements."""
        return [text.strip() for text in self._texts]

    @cached_property
    def binding(self) -> dict[str, list[str]]:
        """The statements that bind a name."""
        binding: dict[str, list[str]] = {}
        for text in self.statements:
            for name in bound(text):
                binding.setdefault(name, []).append(text)
        return binding

    @cached_property
    def _inside(self) -> list[int]:
        return [number for number, names in enumerate(self._classes) if not self._module_classes.isdisjoint(names)]

    @cached_property
    def _outside(self) -> list[tuple[int, str]]:
        inside = set(self._inside)
        return [(number, text) for number, text in enumerate(self._texts) if number not in inside and not _SILENT.match(text)]

    @cached_property
    def _names(self) -> frozenset[str]:
        own = (cls.partition(".")[0] for cls in self._module_classes)
        return frozenset().union(*(_names_at_module_level(text) for _, text in self._outside), own)

    def evidence(self, run: ExampleRun) -> tuple[list[str], list[list[str]]]:
        """Returns what speaks for or against an example of a class: the statements outside of module classes that have to do with the class
        or with what the example names. An annotation speaks in the class itself, but not in the code of its methods.
        """
        key = run.target, run.expression, run.where, run.evidence
        if key not in self._evidence:
            self._evidence[key] = self._evidence_of(*key)
        return self._evidence[key]

    def _evidence_of(self, target: str, expression: str, where: str, evidence: str) -> tuple[list[str], list[list[str]]]:
        # What a function calls its own variables has nothing to do with what others call theirs.
        spoken = ({*WORD.findall(f"{expression} {where}")} & self._names) | {target.rpartition(".")[2], *_CONVENTIONS}
        kept: set[int] = set()
        for _ in range(_STEPS + 1):
            reached = {number: text for number, text in self._outside if number not in kept and not spoken.isdisjoint(words(text))}
            kept.update(reached)
            spoken |= {word for text in reached.values() if len(text) < _LONGEST_STEP for word in words(text)} & self._names
        said: list[list[str]] = []
        if evidence == "annotation":
            outer = target.partition(".")[0]
            own = [number for number in self._inside if any(name.partition(".")[0] == outer for name in self._classes[number])]
            said = [_SAYING.findall(self._texts[number]) for number in own]
        return [self.statements[number] for number in sorted(kept)], said


_read: WeakKeyDictionary[Module, ModuleStatements] = WeakKeyDictionary()


def statements_of(module: Module) -> ModuleStatements:
    found = _read.get(module)
    if found is None:
        found = _read[module] = ModuleStatements(module)
    return found


def with_users(module: Module, names: Iterable[str]) -> set[str]:
    """These names of a file, and those of its other classes and functions that come to use one of them."""
    found, waiting = set(names), True
    definitions = [(bound(text), words(text)) for text in statements_of(module).statements if _DEFINITION.match(text)]
    while waiting:
        more = {name for own, used in definitions if not found.isdisjoint(used) for name in own} - found
        found, waiting = found | more, bool(more)
    return found


def mentions(text: str, names: Set[str]) -> bool:
    """True if the text of a file names one of these."""
    return not names.isdisjoint(WORD.findall(text))


@lru_cache(maxsize=512)
def words(text: str) -> frozenset[str]:
    """The words of a text that are names of the file, and of what it imports."""
    return frozenset(WORD.findall(text)) - _COMMON


@lru_cache(maxsize=512)
def _names_at_module_level(statement: str) -> frozenset[str]:
    """The names that a statement may bind in its module: that of a function or class, any of another statement's."""
    definition = _DEFINITION.match(statement)
    return words(statement) if definition is None else frozenset({definition[1]}) - _COMMON


@lru_cache(maxsize=512)
def bound(statement: str) -> frozenset[str]:
    """The names that a statement binds in its module; of an `if` or the like, all that it names."""
    if definition := _DEFINITION.match(statement):
        return frozenset({definition[1]})
    if _BLOCK.match(statement):
        return words(statement)
    target = _ASSIGNED.match(statement)
    return words(target[0]) if target else frozenset()
