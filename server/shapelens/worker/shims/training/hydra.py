"""Hydra where it is not installed: `main` is given what the configuration files say, `instantiate` builds what they name.

Of how files are put together this knows the list of defaults (https://hydra.cc/docs/advanced/defaults_list/): groups, the place of the
file's own settings among them, and whether a file of a group speaks of the whole. Nothing is overridden, as there is no command line.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from ...unknown.omegaconf_settings import resolved
from ...unknown.settings_objects import SettingsObject, read_yaml
from ...unknown.stand_ins import BEHAVIOURS, absent

_OWN = "_self_"
_DEFAULTS = "defaults"
_MOST_DEPTH = 8  # of files that name others


def _main(config_path: Optional[str] = None, config_name: Optional[str] = None, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """hydra.main"""

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def main(given: Any = None) -> Any:
            return function(_settings(function, config_path, config_name) if given is None else given)

        return main

    return decorated


def _settings(function: Callable[..., Any], config_path: Optional[str], config_name: Optional[str]) -> Any:
    if config_name is None:
        return SettingsObject()
    folder = os.path.join(os.path.dirname(function.__code__.co_filename), config_path or "")
    out = SettingsObject()
    for group, content in _files(folder, config_name, "", _MOST_DEPTH):
        out._merge(_below(group, content))
    return resolved(out) if out else absent("the configuration %s" % config_name, "missing-file")


def _files(folder: str, name: str, group: str, depth: int) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Yields what a configuration file and those of its list of defaults say, each with the group that it speaks of, in the order of
    merging."""
    path = os.path.join(folder, group, name if name.endswith((".yaml", ".yml")) else name + ".yaml")
    content = read_yaml(path)
    if content is None or not depth:
        return
    defaults = content.pop(_DEFAULTS, None) or []
    own = "" if _speaks_of_all(path) else group
    for default in defaults if _OWN in defaults else [*defaults, _OWN]:
        if default == _OWN:
            yield own, content
        elif isinstance(default, str):
            yield from _files(folder, default, group, depth - 1)
        elif isinstance(default, dict):
            for key, choice in default.items():
                kind, _, inner = str(key).rpartition(" ")
                if kind in ("", "optional") and isinstance(choice, str) and "${" not in choice:
                    yield from _files(folder, choice, os.path.join(group, inner.partition("@")[0].lstrip("/")), depth - 1)


def _speaks_of_all(path: str) -> bool:
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return "@package _global_" in file.readline()
    return False


def _below(group: str, content: Dict[str, Any]) -> Dict[str, Any]:
    for part in reversed([part for part in group.split(os.sep) if part]):
        content = {part: content}
    return content


def _instantiate(config: Any = None, *args: Any, **kwargs: Any) -> Any:
    """hydra.utils.instantiate: what `_target_` names, called with the rest; the objects in it are built before."""
    if isinstance(config, list):
        return [_instantiate(each) if isinstance(each, (dict, list)) else each for each in config]
    if not isinstance(config, dict):
        return absent("the object of a configuration", "missing-file")
    given = {**config, **kwargs}
    target = given.pop("_target_", None)
    is_partial, is_recursive = given.pop("_partial_", False), given.pop("_recursive_", True)
    given.pop("_convert_", None)
    positional = [*given.pop("_args_", ()), *args]
    if is_recursive:
        given = {name: _instantiate(value) if isinstance(value, (dict, list)) else value for name, value in given.items()}
    if target is None:
        return SettingsObject(given)
    module, _, name = str(target).rpartition(".")
    try:
        made = getattr(importlib.import_module(module), name)
    except ImportError:
        return absent(str(target), "missing-import")
    return functools.partial(made, *positional, **given) if is_partial else made(*positional, **given)


BEHAVIOURS.update({"hydra.main": _main, "hydra.utils.instantiate": _instantiate, "hydra.utils.call": _instantiate})
