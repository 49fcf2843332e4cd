"""Modules of the standard library that a file of the user's stands in front of, as Python has it: a `random.py` beside a script.

A script's folder is the first one of its search path, so that `import random` finds the file there, in all that is imported from then on.
Only what Python loads before it looks at a script (`os`, `codecs`) comes before that. Here torch is loaded first, with the standard
library's own; our code goes on with that, whatever it imports later.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, FrozenSet, Iterator, List

from ..trace.module_names import package_of

_STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) - frozenset(sys.builtin_module_names)
_BEFORE_SCRIPTS: FrozenSet[str] = getattr(sys.modules.get("__main__"), "AT_START", frozenset(sys.modules))
_BEGINNINGS = _STANDARD - _BEFORE_SCRIPTS

_held: Dict[str, ModuleType] = {}  # the standard library's, while the user's stand in front of them


def shadowed_by_files(file: str, root: str) -> FrozenSet[str]:
    """The modules of the standard library that a document finds others in the place of.

    Only where its imports start in a folder that programs are started from: in a folder of a larger project that has no `__init__.py` a
    `logging.py` is meant to be imported as `utils.logging`.
    """
    folder = package_of(file)[0]
    document = os.path.splitext(os.path.basename(file))[0]
    found = frozenset(name for name in _alike(folder, _changed(folder)) if name != document and _is_module(os.path.join(folder, name)))
    return found if found and _is_outermost(folder, root) else frozenset()


@contextlib.contextmanager
def taken_away(names: FrozenSet[str]) -> Iterator[None]:
    """Have user code import these anew from where it finds them."""
    if not names:
        yield
        return
    before = {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in names}
    for name in before:
        del sys.modules[name]
    _held.update(before)
    _keep_ours()
    try:
        yield
    finally:
        for name in [name for name in list(sys.modules) if name.partition(".")[0] in names]:
            del sys.modules[name]
        sys.modules.update(before)
        _held.clear()


def _keep_ours() -> None:
    """Our own modules, which have builtins of their own, import the standard library's."""
    builtins: Any = globals()["__builtins__"]
    if not __name__.startswith("_shapelens.") or not isinstance(builtins, dict) or hasattr(builtins["__import__"], "is_ours"):
        return
    original: Callable[..., Any] = builtins["__import__"]

    def own_import(name: str, names: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        held = _held.get(name) if level == 0 else None
        if held is None:
            return original(name, names, local, fromlist, level)
        return held if fromlist else _held[name.partition(".")[0]]

    own_import.is_ours = True  # type: ignore[attr-defined]
    builtins["__import__"] = own_import


@functools.lru_cache(maxsize=64)
def _alike(folder: str, changed: int) -> FrozenSet[str]:
    """The modules of the standard library that files or folders in a folder are called like. changed: when the folder did last."""
    return frozenset(name[:-3] if name.endswith(".py") else name for name in _entries(folder)) & _BEGINNINGS


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _entries(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_module(path: str) -> bool:
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py"))


def _is_outermost(folder: str, root: str) -> bool:
    """True if no folder above this one, up to the workspace's, has modules."""
    while root and folder != root and folder.startswith(root.rstrip(os.sep) + os.sep):
        folder = os.path.dirname(folder)
        if any(name.endswith(".py") for name in _entries(folder)):
            return False
    return True
