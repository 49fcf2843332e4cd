"""The choices of one attempt: the constructor and the arguments of a model."""

from __future__ import annotations

import itertools
import re
from typing import Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

from ....protocol import Mismatch
from ..evidence import BuildPlan, with_sizes
from ..trials.trial import Trial
from .forms import Form

WORSE = 0.85  # what a node is worth the less with each neighbour that was tried
_TENSOR = re.compile(r"\w+\[[^\[\]]*\]")
_NAMED = re.compile(r"\b([A-Za-z_]\w*):(\d+)")

Sizes = Dict[str, int]


class ArgumentChoice(NamedTuple):
    """The argument of one parameter, or one part of that: arguments of the same name follow each other and are parts of one container."""

    name: str
    form: Optional[Form]  # None: it keeps its default
    keyword: bool = False
    container: str = ""  # "{", "[", "(" or "SimpleNamespace("
    key: str = ""  # of the part: a key or an attribute

    @property
    def path(self) -> str:
        """Returns the prefix of its sizes' names."""
        return "%s.%s" % (self.name, self.key) if self.container else self.name

    def is_in(self, line: str) -> bool:
        """True if a line of the text speaks of it."""
        return re.search(r"\b%s\b" % re.escape(self.key if self.container and not self.key.isdigit() else self.name), line) is not None


class ChoiceNode:
    """A choice of forms and sizes, and what became of it."""

    def __init__(self, plan: BuildPlan, arguments: Tuple[ArgumentChoice, ...], sizes: Sizes) -> None:
        self.plan = plan
        self.arguments = arguments
        self.sizes = sizes  # all of them: those of the constructor that were guessed too
        self.trial: Optional[Trial] = None
        self.neighbours: Optional[Iterator["ChoiceNode"]] = None
        self.used = 0

    @property
    def error(self) -> Optional[BaseException]:
        """Returns the exception that ended its trial."""
        return self.trial.error if self.trial is not None else None

    @property
    def found(self) -> Optional[Mismatch]:
        """Returns the mismatch of its trial."""
        return self.trial.found if self.trial is not None else None

    @property
    def constructor(self) -> str:
        """The expression that builds the model."""
        return with_sizes(self.plan.template, self.sizes)

    @property
    def given(self) -> str:
        """The arguments, written as in a call."""
        parts = []
        keyword = False
        for _, group in itertools.groupby(self.arguments, key=lambda argument: argument.name):
            arguments = list(group)
            if arguments[0].form is None:
                keyword = True  # What stands behind a default has to be named.
                continue
            text = with_sizes(_text(arguments), self.sizes)
            parts.append("%s=%s" % (arguments[0].name, text) if arguments[0].keyword or keyword else text)
        return with_sizes_once(", ".join(parts))

    @property
    def key(self) -> Tuple[str, str]:
        """Returns the key that tells it from others."""
        return self.constructor, self.given

    @property
    def expression(self) -> str:
        """The example."""
        return "%s(%s)" % (self.constructor, self.given)

    @property
    def score(self) -> float:
        """Returns the promise of going on from here."""
        return (self.trial.reached if self.trial is not None else 0) * WORSE**self.used


def _text(arguments: Sequence[ArgumentChoice]) -> str:
    """The template of one parameter's argument."""
    container = arguments[0].container
    texts = [argument.form.template for argument in arguments if argument.form is not None]
    if not container:
        return texts[0]
    if container == "{":
        return "{%s}" % ", ".join('"%s": %s' % (argument.key, text) for argument, text in zip(arguments, texts))
    if container == "SimpleNamespace(":
        return "SimpleNamespace(%s)" % ", ".join("%s=%s" % (argument.key, text) for argument, text in zip(arguments, texts))
    return "%s%s%s" % (container, ", ".join(texts), "]" if container == "[" else ",)" if len(texts) == 1 else ")")


def with_sizes_once(text: str) -> str:
    """`f32[B:2, 3], i64[B:2]` → `f32[B:2, 3], i64[B]`: a dim's size is said in one tensor."""
    said: Set[Tuple[str, str]] = set()

    def of_tensor(match: "re.Match[str]") -> str:
        here: Set[Tuple[str, str]] = set()

        def once(named: "re.Match[str]") -> str:
            here.add((named[1], named[2]))
            return named[1] if (named[1], named[2]) in said else named[0]

        shortened = _NAMED.sub(once, match[0])
        said.update(here)
        return shortened

    return _TENSOR.sub(of_tensor, text)


def node_of(plan: BuildPlan, arguments: Tuple[ArgumentChoice, ...], sizes: Sizes) -> ChoiceNode:
    """A choice of arguments with these sizes; those that are not given are what they are at first."""
    everything: Sizes = dict(plan.sizes)
    for argument in arguments:
        if argument.form is not None:
            for name, size in argument.form.sizes.items():
                everything.setdefault(name, size)
    for name, size in sizes.items():
        if name in everything:
            everything[name] = size
    return ChoiceNode(plan, arguments, everything)
