"""Models that take too long by their defaults, with fewer layers or for smaller pictures: `Mixtral(MixtralConfig(num_hidden_layers=2))`."""

from __future__ import annotations

import ast
import inspect
from typing import Callable, Iterator, List, Tuple

from ..candidates.document_scope import DocumentScope
from ..candidates.name_priors import words
from ..evidence import BuildPlan
from ..inputs.name_priors import PICTURE
from .expression_edit import Draft, EditableArgument

FEW = 2
MANY = 4  # layers, above which a search with fewer of them is worth its while
SMALL_PICTURES = (64, 56)  # for patches of 8 and 16, and of 7 and 14
COUNTED = {"layers", "depth", "blocks"}
OTHERWISE = {"size", "dim", "channels", "features", "units", "width", "rate", "index", "idx", "id", "norm", "freq", "every", "start"}


def lighter(draft: Draft, scope: DocumentScope) -> List[BuildPlan]:
    """Returns plans for a smaller model in the place of one that takes too long; [] where its size is no default."""
    return shallower(draft, scope) + for_smaller_pictures(draft, scope)


def shallower(draft: Draft, scope: DocumentScope, many: int = FEW) -> List[BuildPlan]:
    """The construction with few layers, where a class or config in it has more than `many` of them by default; [] where none has."""
    for call, names in left_to_defaults(draft, scope, lambda cls: depths(cls, many)):
        for name in names[:-1]:
            call.keywords.append(ast.keyword(name, draft.parse("⟨%s⟩" % name)))
        last = names[-1]
        return [EditableArgument(draft, call, last).changed("⟨%s⟩" % last, dict.fromkeys(names, FEW))]
    return []


def for_smaller_pictures(draft: Draft, scope: DocumentScope) -> List[BuildPlan]:
    """The construction for small pictures, where a class in it is built for large ones by default: tables of positions grow with them."""
    for call, names in left_to_defaults(draft, scope, pictures):
        return [EditableArgument(draft, call, names[0]).changed("⟨%s⟩" % names[0], {names[0]: size}) for size in SMALL_PICTURES]
    return []


def left_to_defaults(draft: Draft, scope: DocumentScope, parameters: Callable[[type], List[str]]) -> Iterator[Tuple[ast.Call, List[str]]]:
    """The calls of classes that leave some of these parameters of the class to their defaults, and which."""
    for call in draft.calls():
        cls = scope.class_of(call)
        given = {keyword.arg for keyword in call.keywords}
        names = [name for name in parameters(cls) if name not in given] if cls is not None and not call.args else []
        if names:
            yield call, names


def pictures(cls: type) -> List[str]:
    """The parameters that say how large the pictures are, where they are large by default."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return []
    large = [name for name, item in parameters.items() if type(item.default) is int and item.default > SMALL_PICTURES[0]]
    return [name for name in large if PICTURE.fullmatch(name)]


def depths(cls: type, many: int) -> List[str]:
    """The parameters that say how many layers a model has, where these are more than `many` by default."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return []
    deep = [name for name, item in parameters.items() if type(item.default) is int and item.default > many]
    return [name for name in deep if COUNTED & set(words(name)) and not OTHERWISE & set(words(name))]
