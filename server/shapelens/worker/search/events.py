"""The events of the search, for whoever runs it, one event after the other. The caller runs and shows the examples; the search only finds
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Mapping, NamedTuple, Optional, Tuple, Union

from ...protocol import Alternative, FileSpan, Mismatch
from ..calls.module_calls import Mistake
from .evidence import NOTHING_SAID, InputSaid


@dataclass
class FoundExample:
    """An example that was chosen for a class."""

    target: str
    expression: str
    evidence: str
    where: str = ""
    call: Optional[FileSpan] = None  # the call in the project that says all of it
    doubtful: bool = False  # nothing was found that runs to its end: this one came furthest
    has_guessed_settings: bool = False  # whether numbers of its constructor were guessed, though the project says how it is built
    inputs_said: InputSaid = NOTHING_SAID
    variants: Tuple[str, ...] = ()  # where it is doubtful: the example with other options, or with further arguments
    mistakes: Optional[Mapping[Mistake, Mismatch]] = None  # what fails in it and would in any other; None: that was not looked for
    untried: bool = False  # it ran to its end in an earlier version of the text, or with fewer layers, and not yet as it is
    tried: int = 0  # ways to build and call the class that were tried


class ClassBegun(NamedTuple):
    """The search for an example of this class begins."""

    target: str


class Attempted(NamedTuple):
    """An attempt has shown something before the example itself has run; what it saw is in the trial runner until the next event."""

    example: FoundExample


class EditSuspected(NamedTuple):
    """The example that ran last fitted before an edit and fails now, and it takes long to find out whether another one fits."""


class ExampleFound(NamedTuple):
    """An example to run now. The caller says with `Finder.ran` how that went before it asks for the next event."""

    example: FoundExample
    instead: bool = False  # in the place of the one that ran last


class ExampleKept(NamedTuple):
    """The example that ran last stays, although it failed: what is said of it now is this."""

    example: FoundExample


class AlternativesFound(NamedTuple):
    """Other calls of a class that the project has and that run, once each class has an example."""

    target: str
    alternatives: List[Alternative]


Event = Union[ClassBegun, Attempted, EditSuspected, ExampleFound, ExampleKept, AlternativesFound]
