"""Models that take too long by their defaults, with fewer layers: `Mixtral(MixtralConfig(num_hidden_layers=2))`."""

from __future__ import annotations

import ast
import inspect
from typing import List

from .drafts import Argument, Draft
from .evidence import Construction
from .priors import words
from .scope import Scope

FEW = 2
COUNTED = {"layers", "depth", "blocks"}
OTHERWISE = {"size", "dim", "channels", "features", "units", "width", "rate", "index", "idx", "id", "norm", "freq", "every", "start"}


def shallower(draft: Draft, scope: Scope) -> List[Construction]:
    """The construction with few layers, where a class or config in it has many of them by default; [] where none has."""
    for call in draft.calls():
        cls = scope.class_of(call)
        given = {keyword.arg for keyword in call.keywords}
        names = [name for name in depths(cls) if name not in given] if cls is not None and not call.args else []
        if names:
            for name in names[:-1]:
                call.keywords.append(ast.keyword(name, draft.parse("⟨%s⟩" % name)))
            last = names[-1]
            return [Argument(draft, call, last).changed("⟨%s⟩" % last, dict.fromkeys(names, FEW))]
    return []


def depths(cls: type) -> List[str]:
    """The parameters that say how many layers a model has, where that is many by default."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return []
    many = [name for name, item in parameters.items() if type(item.default) is int and item.default > FEW]
    return [name for name in many if COUNTED & set(words(name)) and not OTHERWISE & set(words(name))]
