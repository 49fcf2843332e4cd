"""Gives a model new modules in the place of those whose constructors an edit has changed; all else of it stays as it was built before.

The code that constructed the model has not changed, nor what it gave to the constructors of its modules. That it is the same model again
cannot be known for sure, as it may look at the modules that it holds: where one of them differs from the one before in more than what it
holds itself, the model is constructed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Tuple

from ..trace.value_summary import LAYER
from .fingerprints import NoFingerprint, fingerprint
from .recording import OF_ALL, SAME_AGAIN, Built, key_of

if TYPE_CHECKING:
    from .replay import Reuse

Slot = Tuple[Any, str]  # a module, and the name of one that it holds


def grafted(reuse: Reuse, built: Built) -> bool:
    """Make a module that was built before the one that its constructor would build now; whether that could be done."""
    stale: List[Built] = []
    around: List[Built] = []
    if not _find(reuse, built, stale, around):
        return False
    slots = _slots(built, stale)
    left = set(built.parts).difference(*(each.parts for each in stale))
    if slots is None or _share_parameters(built, left):
        return False
    reuse.take(left)
    fresh: List[Any] = []
    for each in stale:
        module = _constructed(reuse, each)
        if module is None:
            reuse.give_back(left)
            return False
        fresh.append(module)
    for (holder, name), module in zip(slots, fresh):
        holder.__dict__["_modules"][name] = module
        reuse.holds_now(holder)
    for each in around:
        reuse.rebuilt(each)
    return True


def _find(reuse: Reuse, built: Built, stale: List[Built], around: List[Built]) -> bool:
    """Find what has to be constructed anew in a module, and what holds that; whether the module's own constructor need not run."""
    if built.own is None or not reuse.gone.isdisjoint(built.own):
        return False
    for inner in built.inner:
        if reuse.gone.isdisjoint(inner.reached):
            continue
        if reuse.before.built.get(id(inner.module)) is not inner or id(inner.module) not in built.parts:
            return False  # It was changed after its construction, or is held in another way.
        found: Tuple[List[Built], List[Built]] = [], []
        if _find(reuse, inner, *found):
            stale += found[0]
            around += found[1]
        else:
            stale.append(inner)
    around.append(built)
    return True


def _slots(built: Built, stale: List[Built]) -> Optional[List[Slot]]:
    """Where a model holds these modules; None where one of them is held more than once, or otherwise than as a module, or where the model
    holds others of their classes: copies of them, say.
    """
    wanted = {id(each.module) for each in stale}
    going = set().union(*(each.parts for each in stale))
    classes = {type(each.module) for each in stale}
    slots: Dict[int, Slot] = {}
    for part in built.parts.values():
        if type(part) in classes and id(part) not in going:
            return None
        for name, child in part.__dict__["_modules"].items():
            if id(child) in wanted and slots.setdefault(id(child), (part, name)) != (part, name):
                return None
        for name, value in part.__dict__.items():
            if type(value) in SAME_AGAIN or name in OF_ALL:
                continue
            items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else [value]
            if not wanted.isdisjoint(map(id, items)):
                return None
    return [slots[id(each.module)] for each in stale] if len(slots) == len(stale) else None


def _share_parameters(built: Built, left: Set[int]) -> bool:
    """Whether modules that stay hold parameters of those that do not."""

    def held(part: Any) -> Set[int]:
        return {id(tensor) for name in ("_parameters", "_buffers") for tensor in part.__dict__[name].values() if tensor is not None}

    staying = [held(part) for number, part in built.parts.items() if number in left]
    going = [held(part) for number, part in built.parts.items() if number not in left]
    return not set().union(*staying).isdisjoint(set().union(*going))


def _constructed(reuse: Reuse, built: Built) -> Optional[Any]:
    """A module like one before, by the constructor that is there now; None where something is wrong with that, or it differs."""
    args, kwargs = built.given
    if key_of(None, args, kwargs, []) != built.key[1]:
        return None  # What it was given has changed since.
    calls, meta = reuse.calls, reuse.calls.meta
    mismatches, met, vague, failure = list(calls.mismatches), dict(calls.recovery.met), meta.vague, meta.failure
    on_mismatch, calls.on_mismatch = calls.on_mismatch, None
    module = None
    try:
        module = reuse.construct(type(built.module), args, kwargs)
        module.__init__()  # It is there: this only gives it its class, as Python does next.
    except Exception:  # It will be raised again where the model's own constructor runs.
        module = None
    finally:
        calls.on_mismatch = on_mismatch
    if module is not None and calls.mismatches == mismatches and _looks_the_same(built.module, module):
        calls.spans[module.__dict__[LAYER]] = reuse.spans[built.module.__dict__[LAYER]]
        return module
    calls.mismatches[:], calls.recovery.met, meta.vague, meta.failure = mismatches, met, vague, failure
    return None


def _looks_the_same(before: Any, now: Any) -> bool:
    """Whether two modules of a class have the same attributes, but for the modules and parameters that they hold."""
    if type(before) is not type(now) or before.__dict__.keys() - OF_ALL != now.__dict__.keys() - OF_ALL:
        return False
    for name, value in before.__dict__.items():
        if name in OF_ALL:
            continue
        try:
            if fingerprint(value, []) != fingerprint(now.__dict__[name], []) and not callable(value):
                return False
        except NoFingerprint:
            continue
    return True
