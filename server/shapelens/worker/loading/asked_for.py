"""Finds what code asks of a text that a user would choose: `if args.net == "vgg16":`, `MODELS[args.net]`."""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType
from typing import Iterator, Optional, Tuple

from .importer import UserFinder

MOST_FILES = 60
_BRANCH_ENDS = re.compile(r"\n[ \t]*(?:elif|else|return)\b")


def asked_for(name: str) -> Optional[str]:
    """A text that the project's code compares an option of this name with, or looks up by it; None where it does neither.

    Of several, the one that leads to the file for which the program is followed (`Run.followed_for`), else the first one.
    """
    found = list(_choices(name))
    return leading_to(name) or (found[0][0] if found else None)


def leading_to(name: str) -> Optional[str]:
    """The text among those that leads to the file for which the program is followed; None where none does."""
    finder = _finder()
    wanted = os.path.splitext(os.path.basename(finder.followed_for))[0] if finder is not None else ""
    leads = (choice for choice, leads_to in _choices(name) if re.search(r"\b%s\b" % re.escape(wanted), leads_to))
    return next(leads, None) if wanted else None


def _finder() -> Optional[UserFinder]:
    return next((each for each in sys.meta_path if isinstance(each, UserFinder)), None)


def _choices(name: str) -> Iterator[Tuple[str, str]]:
    """The texts that the project's code compares an option of this name with, or looks up by it, each with what it leads to."""
    finder = _finder()
    if finder is None:
        return
    modules = {vars(module).get("__file__"): module for module in list(sys.modules.values()) if isinstance(module, ModuleType)}
    for file in [finder.document, *finder.loaded[:MOST_FILES]]:
        try:
            text = finder.text_of(file)
        except (OSError, SyntaxError, ValueError):
            continue
        yield from _compared(name, text)
        yield from _looked_up(name, text, modules.get(file))


def _compared(name: str, text: str) -> Iterator[Tuple[str, str]]:
    """Texts that an attribute or variable of a name is compared with, or looked for among, each with the code of its branch."""
    for match in re.finditer(r"\b%s\s*(?:==|in\s*[\[({])\s*(['\"])(\w[^'\"\n]*)\1[^\n]*:" % re.escape(name), text):
        end = _BRANCH_ENDS.search(text, match.end())
        yield match[2], text[match.end() : end.start() if end is not None else match.end() + 400]


def _looked_up(name: str, text: str, module: Optional[ModuleType]) -> Iterator[Tuple[str, str]]:
    """Keys of a dict of the module that is asked by an attribute or variable of a name, each with the file of what it holds."""
    for match in re.finditer(r"\b(\w+)\[(?:\w+\.)*%s\]" % re.escape(name), text):
        held = vars(module).get(match[1]) if module is not None else None
        for key, value in list(held.items()) if type(held) is dict else ():
            if type(key) is str:
                yield key, str(getattr(value, "__module__", ""))
