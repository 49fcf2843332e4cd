"""The evidence that the parts of the search hand to each other: ways to build a model and to call it, with the sizes in them that were only
guessed.

A text is a template in which `⟨name⟩` stands for a guessed size: `Net(dim=⟨dim⟩)`, `f32[B:⟨B⟩, 3, ⟨H⟩, ⟨W⟩]`. So a size can be changed
without reading the text again, and whoever solves for sizes need not know whether they are of a constructor or of an input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, Mapping, NamedTuple, Optional, Tuple, Union

from ...protocol import FileSpan

_PLACE = re.compile("⟨([^⟩]*)⟩")


def with_sizes(template: str, sizes: Mapping[str, Union[int, str]]) -> str:
    """The text with its sizes put in. Raises KeyError for a size that is not there."""
    return _PLACE.sub(lambda match: str(sizes[match[1]]), template)


def sizes_in(template: str) -> "list[str]":
    """The names of the sizes that a template asks for, in their order."""
    return _PLACE.findall(template)


@dataclass(frozen=True)
class Candidate:
    """A way to build a model, and perhaps to call it, that something in the project speaks for."""

    target: str  # the class that it builds, or "" where only running it tells (a factory)
    constructor: str  # a template, in the document's own namespace: "Net(dim=64)"; "" where only the arguments are known
    arguments: Optional[str]  # a template of what it is called with: "f32[B:2, 3, 32, 32], mask=None"; None where that is not known
    evidence: str  # "annotation" | "usage" | "factory" | "inferred"
    where: str  # said to the user after "from": "line 88", "train.py:40", "test()", "resnet18()"; "" for what is inferred
    sizes: Dict[str, int] = field(default_factory=dict, hash=False)  # the guessed ones
    call: Optional[FileSpan] = None  # the call in the project that says all that is known here: nothing of it was guessed


@dataclass(frozen=True)
class BuildPlan:
    """A way to build a model."""

    template: str
    sizes: Dict[str, int] = field(default_factory=dict, hash=False)  # the guessed ones, by name
    evidence: str = "inferred"
    where: str = ""

    def text(self) -> str:
        """The expression."""
        return with_sizes(self.template, self.sizes)


class InputSaid(NamedTuple):
    """Facts that the code says of a model's inputs, so that nobody guesses them."""

    channels: Optional[int] = None  # of pictures
    sides: Optional[Tuple[int, int]] = None  # height and width
    is_square: bool = False  # nothing says that they are higher or wider
    is_single: bool = False  # one step of one sample
    features: Mapping[str, int] = {}  # by the name of the size: that of `x_enc.D`

    def binds(self, size: int) -> bool:
        """True if a number of an input is one of these."""
        is_of_picture = size == self.channels or (self.sides is not None and size in self.sides)
        return is_of_picture or (self.is_single and size == 1) or size in self.features.values()


NOTHING_SAID = InputSaid()


@dataclass(frozen=True)
class InputShape:
    """The text's words for one input. A dim is the author's name of it, a number, or None where it is computed or not named.

    Two inputs that name a dim alike have the same size there.
    """

    dims: Optional[Tuple[Union[str, int, None], ...]] = None  # one a dim, () for a number; None where the rank is not known
    dtype: str = ""  # a shorthand ("f32", "i64"), or "" where the text says none
    where: str = ""  # "the annotation", "line 12"
    pattern: Tuple[Union[str, int, None], ...] = ()  # where the rank is open: the dims that are known, "..." for the others
    min_rank: int = 0
    alternatives: Tuple[Tuple[Union[str, int, None], ...], ...] = ()  # other dims that the text allows: "(N, C) or (N, C, L)"
    container: str = ""  # "list", "tuple" or "dict" of tensors that are each so
    parts: Tuple[InputShape, ...] = ()  # of a tuple whose tensors differ, or of a dict: one each
    keys: Tuple[str, ...] = ()  # of these parts in a dict, or in each of the dicts of a list
    optional: bool = False  # it may be None
    source: str = ""  # what says so: "annotation", "comment", "docstring" or "body"
