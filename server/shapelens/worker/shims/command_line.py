"""Command lines that nobody typed: parsers give their defaults, and what is required gets a plausible value."""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Any, List

from ..loading.asked_for import asked_for
from .compilers import Replacement

_parse_known_args = argparse.ArgumentParser.parse_known_args


class CommandLine(List[str]):
    """sys.argv of an empty command line; a script that takes its first argument from it without asking gets one."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and index >= len(self):
            return "1"
        return super().__getitem__(index)


def _plausible(action: Any) -> Any:
    """A value for an argument that is required and has no default."""
    if action.choices:
        return next(iter(action.choices), None)
    kind = action.type
    if kind in (int, float):
        return kind(1)
    return None if kind is not None and kind is not str else asked_for(action.dest) or action.dest


def _parse(parser: Any, args: Any = None, namespace: Any = None) -> Any:
    """parse_known_args of an empty command line; arguments that code itself gives are parsed as always."""
    if args is not None:
        return _parse_known_args(parser, args, namespace)
    namespace = argparse.Namespace() if namespace is None else namespace
    _fill(parser, namespace)
    return namespace, []


def _fill(parser: Any, namespace: Any) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            name = next(iter(action.choices), None)  # Some command has to be given; the others' arguments would not be there.
            if action.dest is not argparse.SUPPRESS:
                _set(namespace, action.dest, name)
            if name is not None:
                _fill(action.choices[name], namespace)
        elif action.dest is not argparse.SUPPRESS and action.default is not argparse.SUPPRESS:
            value = action.default
            if value is None and action.required:
                value = _plausible(action)
                if isinstance(action.nargs, int) or action.nargs in ("+", "*"):
                    value = [value] * (action.nargs if isinstance(action.nargs, int) else 1)
            elif isinstance(value, str):
                value = parser._get_value(action, value)
            _set(namespace, action.dest, value)
    for name, value in parser._defaults.items():
        _set(namespace, name, value)


def _set(namespace: Any, name: str, value: Any) -> None:
    if not hasattr(namespace, name):
        setattr(namespace, name, value)


def replacements() -> List[Replacement]:
    """What takes the place of argparse's methods for the time of a run."""
    return [
        (argparse.ArgumentParser, "parse_known_args", _parse),
        (argparse.ArgumentParser, "parse_args", lambda parser, args=None, namespace=None: _strict(parser, args, namespace)),
    ]


def _strict(parser: Any, args: Any, namespace: Any) -> Any:
    found, left = parser.parse_known_args(args, namespace)
    if left:
        parser.error("unrecognized arguments: %s" % " ".join(left))
    return found


def absl(module: ModuleType) -> List[Replacement]:
    """`absl.flags`: the flags count as parsed once they are defined."""
    module.FLAGS.mark_as_parsed()
    return []
