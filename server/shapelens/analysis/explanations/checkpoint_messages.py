"""Words for what does not fit between a state and a module: a common prefix, sizes, names, each with its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from shapelens.analysis.explanations.size_settings import SizeSetting, differing_sizes, size_settings
from shapelens.analysis.places import Places
from shapelens.protocol import Mismatch, Origin, StateSeen

CHECKPOINT = "checkpoint"  # the code
MOST_NAMES = 3  # of keys, before an ellipsis
MOST_SETTINGS = 3


def checkpoint_words(places: Places, mismatch: Mismatch) -> str:
    """`all 62 keys of net.pt begin with "module.", none of Net's does`"""
    state = mismatch.state
    if state is None:
        return mismatch.message
    if state.kind == "path":
        return f'load_state_dict takes a dict, not the path "{state.name}": torch.load reads it'
    if state.kind == "module":
        return f"load_state_dict takes the state_dict() of a model, not the {state.name} itself"
    parts = [*_inside(state), *_changes(state), *_sizes(places, mismatch), *state.others[:1], *_names(state)]
    return "; ".join(parts) or mismatch.message


def settings_words(settings: Sequence[SizeSetting]) -> str:
    """`hidden=64 and num_classes=80`"""
    texts = list(dict.fromkeys(setting.text for setting in settings))[:MOST_SETTINGS]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _name(state: StateSeen) -> str:
    return state.name or "the state"


def _keys(count: int) -> str:
    return "1 key" if count == 1 else f"{count} keys"


def _listed(names: Sequence[str], count: int | None = None) -> str:
    more = len(names) > MOST_NAMES or (count or 0) > len(names)
    return ", ".join([*names[:MOST_NAMES], *(["…"] if more else [])])


def _inside(state: StateSeen) -> Iterable[str]:
    if state.inside:
        where = "".join(f'["{key}"]' for key in state.inside)
        yield f"{_name(state)} holds the state of {state.model} in {where}: its own keys are {_listed(state.around)}"


def _changes(state: StateSeen) -> Iterable[str]:
    for number, change in enumerate(state.changes):
        name, model = "it" if state.inside or number else _name(state), state.model
        there, here, count = change.there, change.here, change.count
        if change.kind == "part" or (there and here):
            yield f'what is "{there}" in {name} is "{here}" in {model} ({_keys(count)})'
        elif there and change.all_there:
            yield f"""{_all(state.keys)} of {name} {_begin(state.keys)} with "{there}", none of {model}'s does"""
        elif here and change.all_here:
            yield f"""{_all(state.own)} of {model} {_begin(state.own)} with "{here}", none of {name}'s does"""
        elif there:
            yield f"""{_keys(count)} of {name} {_begin(count)} with "{there}", which {model}'s do not"""
        elif count == state.keys:
            part, said = here.rstrip("."), "that" if name == "the state" else "the state"
            yield f"""{name} is {said} of {model}'s {part}: its {_keys(count)} lack "{here}\""""
        else:
            yield f"""{_keys(count)} of {model} {_begin(count)} with "{here}", which {name}'s do not"""


def _all(count: int) -> str:
    return "the only key" if count == 1 else f"all {count} keys"


def _begin(count: int) -> str:
    return "begins" if count == 1 else "begin"


def _sizes(places: Places, mismatch: Mismatch) -> Iterable[str]:
    state, origins = mismatch.state, [origin for origin, _ in differing_sizes(mismatch)]
    if not origins or state is None:
        return
    first = origins[0]
    there = f"in {_name(state)}, " if state.name else "in the state, "
    said = f"{first.operation} is {first.shape} {there}{first.result} here"
    if state.sizes == 2 and len(origins) == 2:
        said += f" ({origins[1].operation} differs too)"
    elif state.sizes > 1:
        said += f" ({state.sizes - 1} more sizes differ)"
    settings, is_all = size_settings(places, mismatch)
    if settings and is_all:
        said += f": {settings_words(settings)} would fit"
    elif positions := positions_words(first):
        said += f": {positions}"
    yield said


def positions_words(origin: Origin) -> str:
    """`24·24 + 1 positions against 14·14 + 1` of position embeddings, as of pictures of other sizes; "" for other shapes."""
    for there, here in zip(origin.shape, origin.result, strict=False):
        if there is None or here is None or there == here:
            continue
        for one, other, extra in square_sides(there, here):
            more = f" + {extra}" if extra else ""
            return f"{one}·{one}{more} positions there, {other}·{other}{more} here"
        return ""
    return ""


def square_sides(there: int, here: int) -> Iterator[tuple[int, int, int]]:
    """The sides of two squares of patches, and how many positions either has besides: 24, 14 and 1 of 577 and 197."""
    for extra in (0, 1, 2):
        one, other = math.isqrt(max(there - extra, 0)), math.isqrt(max(here - extra, 0))
        if min(one, other) > 1 and (one**2 + extra, other**2 + extra) == (there, here):
            yield one, other, extra


def _names(state: StateSeen) -> Iterable[str]:
    """The keys that only one side has."""
    if not state.strict:
        return
    name, model = _name(state), state.model
    if state.inside or state.changes:
        into_part = any(not change.there and change.count == state.keys for change in state.changes)
        if state.left_missing and not into_part:
            yield f"{_keys(state.left_missing)} of {model} would still be missing"
        if state.left_unexpected:
            yield f"{_keys(state.left_unexpected)} would still be too many"
        return
    missing, unexpected = _listed(state.missing, state.missing_count), _listed(state.unexpected, state.unexpected_count)
    if state.fitting == 0 and state.missing_count and state.unexpected_count:
        yield f"none of the {_keys(state.keys)} of {name} ({unexpected}) is one of {model}'s {state.own} ({missing})"
        return
    if state.missing_count:
        yield f"{name} lacks {_keys(state.missing_count)} of {model}: {missing}"
    if state.unexpected_count:
        yield f"{name} has {_keys(state.unexpected_count)} that {model} does not have: {unexpected}"


def settings_places(places: Places, mismatch: Mismatch) -> Iterable[tuple[SizeSetting, str]]:
    """The places where sizes that differ are set, each with its words."""
    for setting in size_settings(places, mismatch)[0]:
        yield setting, f"{setting.name} is {setting.now} here"
