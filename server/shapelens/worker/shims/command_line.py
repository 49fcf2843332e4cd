"""Command lines that nobody typed: parsers give what the project documents, or their defaults; what is required gets a plausible value."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from types import ModuleType
from typing import Any, Iterator, List, NoReturn, Optional

from ..loading.asked_for import asked_for, leading_to
from ..loading.configuration_files import configuration_file
from ..loading.documented_commands import Command, documented_command
from .compilers import Replacement

_parse_known_args = argparse.ArgumentParser.parse_known_args
_UNREADABLE = (SystemExit, argparse.ArgumentError, TypeError, ValueError, AttributeError, OSError, KeyError)


class CommandLine(List[str]):
    """sys.argv of an empty command line; a script that takes its first argument from it without asking gets one."""

    def __init__(self, file: str, root: str = "", followed_for: str = "") -> None:
        """file: the program; root: the folder of its project; followed_for: `Run.followed_for`."""
        super().__init__([file])
        self._root, self._followed_for = root, followed_for
        self._documented: Optional[List[Optional[Command]]] = None

    def documented(self) -> Optional[Command]:
        """The command line that the project documents for the program; None where there is none."""
        if self._documented is None:
            wanted = os.path.splitext(os.path.basename(self._followed_for))[0]
            self._documented = [documented_command(super().__getitem__(0), self._root, wanted)]
        return self._documented[0]

    def configuration(self, option: str) -> Optional[str]:
        """The path of the project's file of settings for an option; None where the option asks for none, or there is none."""
        return configuration_file(super().__getitem__(0), self._root, option)

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
    if kind is not None and kind is not str:
        return None
    file = sys.argv.configuration(action.dest) if isinstance(sys.argv, CommandLine) else None
    return asked_for(action.dest) or file or action.dest


def _parse(parser: Any, args: Any = None, namespace: Any = None) -> Any:
    """parse_known_args of an empty command line; arguments that code itself gives are parsed as always."""
    if args is not None:
        return _parse_known_args(parser, args, namespace)
    namespace = argparse.Namespace() if namespace is None else namespace
    _fill(parser, namespace)
    command = sys.argv.documented() if isinstance(sys.argv, CommandLine) else None
    if command is not None:
        _take(parser, namespace, command)
    return namespace, []


def _take(parser: Any, namespace: Any, command: Command) -> None:
    """Set what a documented command line says; nothing where it is not for this parser. A text that leads to the file for which the program
    is followed stays."""
    before = dict(vars(namespace))
    try:
        with _lenient(parser):
            said = _parse_known_args(parser, command.arguments, argparse.Namespace(**before))[0]
    except _UNREADABLE:
        return
    for name, value in vars(said).items():
        leads = isinstance(value, str) and not command.is_about and leading_to(name) is not None
        if not leads:
            setattr(namespace, name, value)


@contextlib.contextmanager
def _lenient(parser: Any) -> Iterator[None]:
    """For its time nothing is required by a parser and its commands, and an error raises ValueError rather than ends the program."""
    parsers: List[Any] = [parser]
    for each in parsers:
        commands = [action.choices.values() for action in each._actions if isinstance(action, argparse._SubParsersAction)]
        parsers += [inner for several in commands for inner in several]
    required = [each for one in parsers for each in (*one._actions, *one._mutually_exclusive_groups) if each.required]
    for each in required:
        each.required = False
    for each in parsers:
        each.error = _refuse
    try:
        yield
    finally:
        for each in required:
            each.required = True
        for each in parsers:
            del each.error


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)


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
            if action.nargs == argparse.REMAINDER and not action.option_strings:
                value = []  # Nothing is left over.
            elif value is None and action.required:
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
    """Returns what takes the place of argparse's methods for the time of a run."""
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
