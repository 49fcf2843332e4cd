"""Replaces what other modules have of modules that were loaded anew: they get what the new versions give, without being loaded again."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Dict, Iterable, List, Tuple

from ..loading.import_graph import MOST_STEPS, Imports


def replace_definitions(old: ModuleType, new: ModuleType, users: List[ModuleType]) -> None:
    """Let modules have the classes, functions and the module itself of the new version, under whatever names they know those of the old."""
    instead = {id(value): new.__dict__[name] for name, value in old.__dict__.items() if name in new.__dict__ and _is_of(value, old)}
    instead[id(old)] = new
    parent = sys.modules.get(old.__name__.rpartition(".")[0])
    for module in users if parent is None else [parent, *users]:
        _replace(module, instead)


def replace_modules(before: Dict[str, ModuleType], users: Iterable[str]) -> None:
    """Let modules that imported some of these by `import a.b`, and took nothing of them yet, have those that are loaded now."""
    instead = {id(module): sys.modules[name] for name, module in before.items() if sys.modules.get(name, module) is not module}
    for name in users if instead else ():
        if name in sys.modules:
            _replace(sys.modules[name], instead)


def _replace(module: ModuleType, instead: Dict[int, Any]) -> None:
    names = module.__dict__
    for name in [name for name, value in names.items() if id(value) in instead]:
        names[name] = instead[id(names[name])]


def replace_imported_values(olds: List[ModuleType], new: ModuleType, users: Dict[str, Imports]) -> None:
    """Let modules have any values that they imported by name, from the document or from each other: a number does not say where it is from.

    `olds` are the document's modules until now, `users` the imports of the others by the modules' names.
    """
    replaced: Dict[Tuple[str, str], Tuple[Any, Any]] = {}
    for old in olds:
        for name, value in old.__dict__.items():
            if name in new.__dict__ and not name.startswith("__"):
                replaced[old.__name__, name] = value, new.__dict__[name]
    for _ in range(MOST_STEPS):
        more = False
        for user, imports in users.items():
            names = sys.modules[user].__dict__ if user in sys.modules else {}
            taken = [(own, source) for own, source in imports.names.items() if source in replaced]
            taken += [(name, (source, name)) for source, name in replaced if source in imports.all_of] if imports.all_of else []
            for own, source in taken:
                before, now = replaced[source]
                if (user, own) not in replaced and (names.get(own) is before or names.get(own) is now):
                    names[own] = now
                    replaced[user, own] = before, now
                    more = True
        if not more:
            return


def _is_of(value: Any, module: ModuleType) -> bool:
    try:
        return bool(value.__module__ == module.__name__)
    except Exception:  # Whatever an object of the user's raises when it is asked.
        return False
