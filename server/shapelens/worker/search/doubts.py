"""Whether what fails under an example is a mistake of the code, or only of the example: a mismatch counts if no other choice avoids it."""

from __future__ import annotations

import re
from typing import Dict, Optional, Sequence

from ...protocol import Mismatch
from .demands import demands
from .evidence import filled
from .solving import sizes_for
from .trials import Bench, Trial

MOST_TRIES = 40
_NUMBER = re.compile(r"(?<![\w.\"'⟨])\d+(?![\w.\"'⟩])")
# Ways to call a model that its author wrote to be run, and not to see it fail.
_OWN = re.compile(r"__main__|main\(\)|get_inputs\(\)|line \d+")


def is_given(evidence: str, where: str) -> bool:
    """Whether an example is the file's own, so that a mismatch under it is one in any case."""
    return evidence == "usage" and _OWN.match(where) is not None and "inferred" not in where


def is_mismatch(trial: Trial) -> bool:
    """Whether an attempt failed as tensors did not fit, in the file's own code."""
    return trial.found is not None and trial.found.code not in ("exception", "data-dependent", "definition") and bool(trial.found.trail)


def is_one_mistake(mismatches: Sequence[Mismatch], error: Optional[str]) -> bool:
    """Whether all that failed in an example did so at one place, and all the rest fits: more than chance if the example were wrong."""
    sized = [found for found in mismatches if found.got is not None and found.need is not None]
    return error is None and bool(sized) and len({str(found.span) for found in mismatches}) == 1


def asks_for_another_form(trial: Trial) -> bool:
    """Whether an attempt failed in a way that other sizes cannot mend, but another kind of input might."""
    if trial.found is None or not trial.found.trail:
        return True
    return any(demand.kind in ("rank", "dtype", "missing", "parts") for demand in demands(trial))


def with_other_sizes(bench: Bench, expression: str, trial: Optional[Trial]) -> Optional[str]:
    """The example with other numbers in it, with which it runs to its end; None where none was found."""
    if trial is None:
        return None
    sizes: Dict[str, int] = {}

    def place(match: "re.Match[str]") -> str:
        number = int(match[0])
        name = "%d" % len(sizes)
        sizes[name] = number
        return "⟨%s⟩" % name

    template = _NUMBER.sub(place, expression)
    first_input = template.rfind(")(")
    inputs = [name for name in sizes if template.index("⟨%s⟩" % name) > first_input]
    guessed = {name for name in sizes if name not in inputs}
    worked: Dict[str, str] = {}
    tries = 0

    def reaches(changed: Dict[str, int]) -> Optional[Trial]:
        nonlocal tries
        tries += 1
        if tries > MOST_TRIES or bench.is_over:
            return None
        text = filled(template, {**sizes, **changed})
        tried = bench.whole(text)
        if tried.error is None:
            worked.setdefault("", text)
        return tried

    for changed in sizes_for(trial, demands(trial), sizes, guessed, reaches):
        if worked or tries > MOST_TRIES or bench.is_over:
            break
        reaches(changed)
    return worked.get("")
