"""Spaces of environments, which constructors are given: `observation_space: gym.spaces.Box`, as the document writes them.

A document that does not import them may still ask what a space is called (`space.__class__.__name__ == "Box"`) and what it has: it gets
objects of classes of these names.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional

from .document_scope import DocumentScope

LIBRARIES = ("gymnasium", "gym")
NAMES = ("observation_space", "action_space", "obs_space", "act_space")
_DISCRETE = "type('Discrete', (), {'n': %s, 'shape': ()})()"
_BOX = "type('Box', (), {'shape': (%s,), 'low': -torch.ones(%s).numpy(), 'high': torch.ones(%s).numpy()})()"
Size = Callable[[str, int], str]  # a place for a guessed number, by its name


def is_space(cls: Optional[type], name: str = "") -> bool:
    """True if a parameter of this name, or one that asks for this class, is a space of an environment."""
    return name in NAMES if cls is None else any(base.__name__ == "Space" and _library(base) in LIBRARIES for base in cls.__mro__)


def spaces(cls: Optional[type], name: str, scope: DocumentScope, size: Size, *, of_pictures: bool) -> List[str]:
    """Templates of spaces, the likelier first; [] where the document cannot write them. of_pictures: the class has layers for these."""
    library = next((sys.modules[each] for each in LIBRARIES if each in sys.modules and _library(cls) in ("", each)), None)
    known: Any = getattr(library, "spaces", None)
    if known is None:
        return _by_name(name, size, of_pictures=of_pictures) if cls is None else []
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
        return _by_name(name, size, of_pictures=of_pictures) if cls is None else []
    found = [template % (one if template is discrete else box) for template in by_class.get("" if cls is None else cls.__name__, [])]
    several = _written(known.Dict, library, scope) if cls is known.Dict else None
    if several is not None:
        found.append("%s({'image': %s, 'state': %s})" % (several, pictures % box, vector % box))
    return found


def _by_name(name: str, size: Size, *, of_pictures: bool) -> List[str]:
    """Templates of objects that only have the name and the attributes of spaces."""
    side, width = size(name + ".side", 64), size(name + ".width", 8)
    vector = _BOX % ((width,) * 3)
    pictures = _BOX % (("%s, %s, %s" % (size(name + ".channels", 3), side, side),) * 3)
    discrete = _DISCRETE % size(name + ".count", 4)
    return [discrete, vector] if name.startswith("act") else [pictures, vector] if of_pictures else [vector, pictures]


def _library(cls: Optional[type]) -> str:
    return "" if cls is None else cls.__module__.partition(".")[0]


def _written(cls: Any, library: Any, scope: DocumentScope) -> Optional[str]:
    alias = next((name for name, value in scope.bound.items() if value is library), None)
    return scope.expression(cls) or (None if alias is None else "%s.spaces.%s" % (alias, cls.__name__))
