"""Which files are followed as programs: those that may hold tensors beyond what their classes compute."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from shapelens.examples.statement_names import mentions
from shapelens.python_sources import DOCUMENTATION
from shapelens.source.module import Module

# Libraries whose programs hold tensors; in a project, whatever imports a module of it may.
_LIBRARIES = re.compile(
    r"\b(torch\w*|lightning|pytorch_lightning|transformers|timm|diffusers|accelerate|einops|ignite|peft|monai|kornia|open_clip)\b"
)
# What a statement begins with that only defines: following it shows nothing.
_DEFINES = re.compile(r"(?:import|from|class|def|async|@|#|[rRbBuU]?[\"'])")
# A function, or a method that may be called after the examples of classes (worker/program/steps.py and plain_classes.py).
_CALLED = re.compile(
    r"^def |^ +def (?:__call__|__getitem__|(?!_|forward\b|on_|configure_|load|save|reset|init)\w+)\(\s*self\b", re.MULTILINE
)
# A condition that may choose between branches by a setting, or by whether something is given, of which the example of a class comes to one
# only (worker/program/settings/other_settings.py).
_CHOOSES = re.compile(
    r"^ +(?:el)?if (?:.*\bis (?:not )?None\b|(?:not )?exists\("
    r"|.*(?:self|opt|args|cfg|config|configs|hparams)\.\w+|.*[=!]= ?[\"']|(?:not )?\w+ ?:|\w+ ?[<>=!]=? ?-?\d)",
    re.MULTILINE,
)
_DOES = re.compile(r"^(?!(?:import|from|class|def|async)\b|[rRbBuU]{0,2}[\"']|[@#)\]}\s])", re.MULTILINE)
_ACTS = re.compile(r"^(?:(?:if|for|while|with|try)\b|[\w.]+\()", re.MULTILINE)
_IS_TEST = re.compile(r"(?:^|[/\\])(?:test_[^/\\]*|[^/\\]*_test)\.py$")
_FUNCTION = re.compile(r"^def[ \t]+(\w+)[\s\S]*?(?=^[\w@]|\Z)", re.MULTILINE)
_WHOLE_CLASS = re.compile(r"^class[ \t]+(\w+)[\s\S]*?(?=^[\w@]|\Z)", re.MULTILINE)
_RENAMED = re.compile(r"\b(\w+)[ \t]+as[ \t]+(\w+)")
# What takes a name out of a module by a value: `getattr(models, args.arch)`, `models.__dict__[args.arch]`.
_BY_VALUE = re.compile(r"\bgetattr\([ \t]*([A-Za-z_]\w*)[ \t]*,[ \t]*(?![\"'])|\b(\w+)\.__dict__\[[ \t]*(?![\"'])")
_IMPORTED = re.compile(r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^\n#]+)", re.MULTILINE)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def may_hold_tensors(module: Module) -> bool:
    """True if a file names a library whose values are tensors."""
    return _LIBRARIES.search(module.text) is not None


def is_program(module: Module) -> bool:
    """True if following a file as a program may show a tensor: it does more than to define what others use."""
    if not may_hold_tensors(module):
        return False
    classes = _CLASS.findall(module.text)
    defines_again = len(classes) > len(set(classes))  # Whoever loads the file sees the last class of a name only.
    return does_something(module) or defines_again or any(each.search(module.text) is not None for each in (_CALLED, _CHOOSES))


def does_something(module: Module) -> bool:
    """True if a file has statements of its own, beside what it imports and defines."""
    return any(_DEFINES.match(item.statement.text.lstrip()) is None for item in module.statements.placed)


def speaking_of(texts: Iterable[tuple[str, str]], names: Collection[str]) -> list[tuple[str, str]]:
    """Returns those of some files, paths and texts, that name one of `names`, or may take it out of a module by a value.

    A function of a nearer file that returns one counts as well, a class that is made of one, and the name that an import gives it: a script
    that builds a model by `get_network(args)` does not name its class. texts: the nearest first, each of which leads to the file.
    """
    known, found = set(names), list[tuple[str, str]]()
    for path, text in texts:
        if mentions(text, known):
            found.append((path, text))
            known.update(block[1] for block in _FUNCTION.finditer(text) if "return " in block[0] and mentions(block[0], known))
            known.update(block[1] for block in _WHOLE_CLASS.finditer(text) if mentions(block[0], known))
            known.update(renamed[2] for renamed in _RENAMED.finditer(text) if renamed[1] in known)
        elif _takes_by_value(text):
            found.append((path, text))
    return found


def _takes_by_value(text: str) -> bool:
    """True if a text takes what an imported module has by a name that is a value: `getattr(models, args.arch)`."""
    asked = {match[1] or match[2] for match in _BY_VALUE.finditer(text)}
    return bool(asked) and any(not asked.isdisjoint(re.findall(r"\w+", names)) for names in _IMPORTED.findall(text))


def likely_programs(texts: Iterable[tuple[str, str]]) -> list[str]:
    """The files, of paths and texts, that may be worth following for what they give a file that they import, as far as that is told without
    parsing: documentation comes first, whose examples are short, then those that do more by themselves than to assign, those that assign,
    tests, which are called, and last those whose steps may be called.
    """
    programs = [(path, text) for path, text in texts if _LIBRARIES.search(text) is not None]
    return [path for path, _ in sorted(programs, key=_rank)]


def _rank(program: tuple[str, str]) -> int:
    path, text = program
    if path.endswith(DOCUMENTATION):
        return 0
    if _IS_TEST.search(path):
        return 3
    return 1 if _ACTS.search(text) is not None else 2 if _DOES.search(text) is not None else 4
