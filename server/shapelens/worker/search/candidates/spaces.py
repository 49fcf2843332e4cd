"""Spaces of environments, which constructors are given: `observation_space: gym.spaces.Box`, as the document writes them."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional

from .document_scope import DocumentScope

LIBRARIES = ("gymnasium", "gym")
NAMES = ("observation_space", "action_space", "obs_space", "act_space")
Size = Callable[[str, int], str]  # a place for a guessed number, by its name


def is_space(cls: Optional[type], name: str = "") -> bool:
    """Whether a parameter of this name, or one that asks for this class, is a space of an environment."""
    return name in NAMES if cls is None else any(base.__name__ == "Space" and _library(base) in LIBRARIES for base in cls.__mro__)


def spaces(cls: Optional[type], name: str, scope: DocumentScope, size: Size, *, of_pictures: bool) -> List[str]:
    """Templates of spaces, the likelier first; [] where the document cannot write them. of_pictures: the class has layers for these."""
    library = next((sys.modules[each] for each in LIBRARIES if each in sys.modules and _library(cls) in ("", each)), None)
    known: Any = getattr(library, "spaces", None)
    if known is None:
        return []
    side = size(name + ".side", 64)
    vector = "%%s(-1.0, 1.0, (%s,))" % size(name + ".width", 8)
    pictures = "%%s(0, 255, (%s, %s, %s), 'uint8')" % (size(name + ".channels", 3), side, side)
    discrete = "%%s(%s)" % size(name + ".count", 4)
    boxes = [pictures, vector] if of_pictures else [vector, pictures]
    by_class: Dict[str, List[str]] = {"Box": boxes, "Discrete": [discrete], "Space": [*boxes, discrete]}
    if cls is None:
        by_class[""] = [discrete, vector] if name.startswith("act") else boxes
    box, one = (_written(getattr(known, each), library, scope) for each in ("Box", "Discrete"))
    if box is None or one is None:
        return []
    found = [template % (one if template is discrete else box) for template in by_class.get("" if cls is None else cls.__name__, [])]
    several = _written(known.Dict, library, scope) if cls is known.Dict else None
    if several is not None:
        found.append("%s({'image': %s, 'state': %s})" % (several, pictures % box, vector % box))
    return found


def _library(cls: Optional[type]) -> str:
    return "" if cls is None else cls.__module__.partition(".")[0]


def _written(cls: Any, library: Any, scope: DocumentScope) -> Optional[str]:
    alias = next((name for name, value in scope.bound.items() if value is library), None)
    return scope.expression(cls) or (None if alias is None else "%s.spaces.%s" % (alias, cls.__name__))
