"""The changes of names that make the keys of a state those of a module: a prefix less, more or another, or another word between dots.

There is no table of names: what makes the most keys fit is found in the keys themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple
from typing import Counter as Counted

from ...protocol import KeyChange

Shape = Tuple[int, ...]
MOST_CHANGES = 3  # of one state
MOST_TRIED = 8  # prefixes
MOST_WITH_END = 64  # keys: what more of them end with, "weight", tells nothing
LEAST_SHARE = 0.4  # of the keys that do not fit, that have to fit then


def changed(key: str, change: KeyChange) -> str:
    """The module's key for one of the state."""
    if change.kind == "prefix":
        return change.here + key[len(change.there) :] if key.startswith(change.there) else key
    return ".".join([change.here if part == change.there else part for part in key.split(".")])


def changes_of(there: Mapping[str, Shape], here: Mapping[str, Shape]) -> Tuple[List[KeyChange], Dict[str, Shape]]:
    """The changes after which the most keys fit, and what the state is then; no change where none makes many fit."""
    found: List[KeyChange] = []
    state = dict(there)
    for _ in range(MOST_CHANGES):
        change = _change(state, here)
        if change is None:
            break
        found.append(change)
        state = {changed(key, change): shape for key, shape in state.items()}
    return found, state


def _change(there: Mapping[str, Shape], here: Mapping[str, Shape]) -> Optional[KeyChange]:
    """The change after which the most keys fit; None where few of those fit then that do not, or the shapes of most do not."""
    unexpected = [key for key in there if key not in here]
    missing = [key for key in here if key not in there]
    if not unexpected or not missing:
        return None
    fitting = [key for key in there if key in here]
    best, most = None, 0
    for each in (*_prefixes(unexpected, missing), *_words(unexpected, missing, there, here)):
        count = each.count - len([key for key in fitting if changed(key, each) not in here])
        if count > most:
            best, most = each, count
    if best is None or most < LEAST_SHARE * min(len(unexpected), len(missing)):
        return None
    moved = [(key, changed(key, best)) for key in unexpected if changed(key, best) in here]
    if len([old for old, new in moved if there[old] == here[new]]) < LEAST_SHARE * len(moved):
        return None
    best.all_there, best.all_here = _only_in(best.there, there, here), _only_in(best.here, here, there)
    return best


def _only_in(prefix: str, keys: Iterable[str], others: Iterable[str]) -> bool:
    """True if all of these keys begin so, and none of the others."""
    return all(key.startswith(prefix) for key in keys) and not any(key.startswith(prefix) for key in others)


def _prefixes(unexpected: Sequence[str], missing: Sequence[str]) -> List[KeyChange]:
    """The prefixes that make the most keys fit, short ones first."""
    by_end: Dict[str, List[str]] = defaultdict(list)
    for key in unexpected:
        for _, end in _ends(key):
            by_end[end].append(key)
    counted: Counted[Tuple[str, str]] = Counter()
    for key in missing:
        for start, end in _ends(key):
            others = by_end.get(end, ())
            if len(others) <= MOST_WITH_END:
                counted.update((other[: len(other) - len(end)], start) for other in others)
    likely = sorted(counted.items(), key=lambda each: (-each[1], len(each[0][0]) + len(each[0][1])))
    return [KeyChange("prefix", *pair, count) for pair, count in likely[:MOST_TRIED] if not _differ_in_numbers(*pair)]


def _differ_in_numbers(there: str, here: str) -> bool:
    """True if two prefixes differ in numbers at most: those are other layers, which no renaming means."""
    words = [["" if word.isdigit() else word for word in prefix.split(".")] for prefix in (there, here)]
    return words[0] == words[1]


def _ends(key: str) -> List[Tuple[str, str]]:
    """A key cut in two at its start and behind each dot."""
    cuts = [0, *[place + 1 for place, letter in enumerate(key) if letter == "."]]
    return [(key[:cut], key[cut:]) for cut in cuts]


def _words(unexpected: Sequence[str], missing: Sequence[str], there: Mapping[str, Shape], here: Mapping[str, Shape]) -> List[KeyChange]:
    """The words between dots that are others in keys of the same shape."""
    by_rest: Dict[Tuple[str, ...], List[Tuple[str, str]]] = defaultdict(list)
    for key in unexpected:
        for rest, word in _without_a_word(key):
            by_rest[rest].append((key, word))
    pairs: Set[Tuple[str, str]] = set()
    for key in missing:
        for rest, word in _without_a_word(key):
            for other, named in by_rest.get(rest, ()):
                if there[other] == here[key] and not named.isdigit() and not word.isdigit():
                    pairs.add((named, word))
    changes = [KeyChange("part", old, new, 0) for old, new in sorted(pairs)[:64]]
    for each in changes:
        each.count = _fitting(unexpected, missing, each)
    return changes


def _without_a_word(key: str) -> List[Tuple[Tuple[str, ...], str]]:
    words = key.split(".")
    return [((*words[:place], "", *words[place + 1 :]), word) for place, word in enumerate(words)]


def _fitting(unexpected: Collection[str], missing: Collection[str], change: KeyChange) -> int:
    wanted = set(missing)
    return len([key for key in unexpected if changed(key, change) in wanted])
