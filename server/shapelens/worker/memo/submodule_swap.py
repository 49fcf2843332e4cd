"""Plans how a model gets new modules in the place of those whose constructors an edit has changed, while all else stays as it was built.

The code that constructed the model has not changed, nor what it gave to the constructors of its modules. That it is the same model again
cannot be known for sure, as it may look at the modules that it holds: where one of them differs from the one before in more than what it
holds itself, the model is constructed.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from .memo import BuiltModule, Memo
from .module_state import OF_ALL, PLAIN

Slot = Tuple[Any, str]  # a module, and the name of one that it holds


class Swap(NamedTuple):
    """Holds what to construct anew in a model, and what stays."""

    stale: List[BuiltModule]  # what is constructed anew
    slots: List[Slot]  # where the model holds these
    around: List[BuiltModule]  # the modules that hold them, directly or not, the model among them
    staying: Set[int]  # ids of the modules that stay


def plan_swap(memo: Memo, replaced: FrozenSet[int], model: BuiltModule) -> Optional[Swap]:
    """Returns how to make a model the one that its constructor would build now; None where the constructor has to run.

    replaced: the sites of functions that have other code now.
    """
    stale: List[BuiltModule] = []
    around: List[BuiltModule] = []
    if not _find(memo, replaced, model, stale, around):
        return None
    slots = _slots(model, stale)
    staying = set(model.parts).difference(*(each.parts for each in stale))
    if slots is None or _share_parameters(model, staying):
        return None
    return Swap(stale, slots, around, staying)


def _find(memo: Memo, replaced: FrozenSet[int], built: BuiltModule, stale: List[BuiltModule], around: List[BuiltModule]) -> bool:
    """Find what has to be constructed anew in a module, and what holds that; whether the module's own constructor need not run."""
    if built.own is None or not replaced.isdisjoint(built.own):
        return False
    for inner in built.inner:
        if replaced.isdisjoint(inner.reached):
            continue
        if memo.built.get(id(inner.module)) is not inner or id(inner.module) not in built.parts:
            return False  # It was changed after its construction, or is held in another way.
        found: Tuple[List[BuiltModule], List[BuiltModule]] = [], []
        if _find(memo, replaced, inner, *found):
            stale += found[0]
            around += found[1]
        else:
            stale.append(inner)
    around.append(built)
    return True


def _slots(model: BuiltModule, stale: List[BuiltModule]) -> Optional[List[Slot]]:
    """Where a model holds these modules; None where one of them is held more than once, or otherwise than as a module, or where the model
    holds others of their classes: copies of them, say.
    """
    wanted = {id(each.module) for each in stale}
    going = set().union(*(each.parts for each in stale))
    classes = {type(each.module) for each in stale}
    slots: Dict[int, Slot] = {}
    for part in model.parts.values():
        if type(part) in classes and id(part) not in going:
            return None
        for name, child in part.__dict__["_modules"].items():
            if id(child) in wanted and slots.setdefault(id(child), (part, name)) != (part, name):
                return None
        for name, value in part.__dict__.items():
            if type(value) in PLAIN or name in OF_ALL:
                continue
            items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else [value]
            if not wanted.isdisjoint(map(id, items)):
                return None
    return [slots[id(each.module)] for each in stale] if len(slots) == len(stale) else None


def _share_parameters(model: BuiltModule, staying: Set[int]) -> bool:
    """True if modules that stay hold parameters of those that do not."""

    def held(part: Any) -> Set[int]:
        return {id(tensor) for name in ("_parameters", "_buffers") for tensor in part.__dict__[name].values() if tensor is not None}

    those_that_stay = [held(part) for number, part in model.parts.items() if number in staying]
    those_that_go = [held(part) for number, part in model.parts.items() if number not in staying]
    return not set().union(*those_that_stay).isdisjoint(set().union(*those_that_go))
