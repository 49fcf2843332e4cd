"""The recorder of the values at the sites of a run, as keys (value_summary.py)."""

from __future__ import annotations

import bisect
import sys
from types import FrameType
from typing import Any, Callable, Container, Dict, Iterable, List, Optional, Set, Tuple

import torch

from ...protocol import FileSpan, Observation, Value
from ..rewrite.site_table import SiteTable
from ..rewrite.sites import BOUND, NAMES, READ, SCALAR, UNKNOWN_AT, UNWATCHED, VALUE, Site
from ..unknown import unknown_sizes
from ..unknown.stand_ins import is_absent, is_unknown_tensor
from .definition_time import executing
from .value_summary import KINDS, ORIGIN, Key, key_of, kind_of, number_key, tensor_key, value_of

MOST_PARTS = 64  # of a tuple or list of tensors that came from one place
LONGEST_SEQUENCE = 512  # occurrences of a site that are kept in order, for the comparison with a probe
OFTEN = 256  # calls of a function after which it is asked whether it still has to report anything
MOST_NUMBERS = 16  # distinct ones of a site

_plainly = torch._C.DisableTorchFunction


class SeenValues:
    """The values of one site (or one layer): counts of distinct keys, and the order in which they came."""

    __slots__ = ("counts", "sequence", "total")

    def __init__(self) -> None:
        self.counts: Dict[Key, int] = {}
        self.sequence: List[Key] = []
        self.total = 0

    def add(self, key: Key) -> None:
        self.total += 1
        self.counts[key] = self.counts.get(key, 0) + 1
        if len(self.sequence) < LONGEST_SEQUENCE:
            self.sequence.append(key)


class Recorder:
    """Takes what rewritten code reports, for one example at a time."""

    def __init__(self, table: SiteTable, on_module: Callable[[Any, Site], None]) -> None:
        self.sites: List[Site] = table.sites
        self.files: List[Tuple[int, str]] = table.files  # the first site of each file, and the file
        self.rewritten: Dict[str, int] = {}  # the first site of each file that is in use
        self._first_sites: List[int] = [first for first, _ in self.files]
        self.pieces: Tuple[str, List[range]] = ("", [])  # a file whose sites are not in one range, and the ranges in the order of its text
        self.seen: Dict[int, SeenValues] = {}
        self.defined: Dict[int, SeenValues] = {}  # of the sites that run once, with the definitions
        self.unknown: Set[int] = set()  # sites of tensors that have held something of which nothing is known
        self.failed: Set[FileSpan] = set()  # where something did not fit in this example
        self.last = -1  # the site that reported last: before Python 3.11, what tells where a statement failed
        self.reached: Set[int] = set()  # sites of functions that ran since this was emptied
        self.called: Set[int] = set()  # those that definitions called: what they gave belongs to all examples
        self.is_brief = False  # what sites hold is not wanted, only where tensors came from
        self.met = 0  # how often a tensor, a layer, an array or something unknown was reported, or what holds one
        self.news = 0  # how often a site held what it had not held before, numbers not counted
        self.made, self.used = 0, 0  # how many modules were constructed, and how often one was called
        self.watches = 0  # code under way that may go on without reports, if it meets none of these (loading/unobserved.py)
        self.on_entry: Optional[Callable[[FrameType], None]] = None  # is told of functions that begin, while one of these is under way
        self.on_often: Optional[Callable[[FrameType], None]] = None  # of one that was called often and has met nothing meanwhile
        self.on_end: Callable[[], None] = lambda: None  # is told that an evaluation is over
        self._calls: Dict[int, List[int]] = {}  # of functions, by their first sites: how many calls, and `met` as it was at the first one
        self._on_module = on_module

    def add_file(self, file: str, first: Optional[int] = None) -> None:
        """The sites that are added from now on are of this file, or those from `first` on, which are there already."""
        self.rewritten[file] = len(self.sites) if first is None else first
        if first is not None:
            return
        self.files.append((len(self.sites), file))
        self._first_sites.append(len(self.sites))

    def add_program(self, file: str) -> None:
        """The sites that are added from now on are of this file too, which is rewritten once more as a program."""
        self.files.append((len(self.sites), file))
        self._first_sites.append(len(self.sites))

    def end_program(self, file: str, first: int) -> None:
        """The sites from `first` on are those of the program."""
        if self.pieces[0] == file:
            self.pieces = file, [*self.pieces[1], range(first, len(self.sites))]

    def forget_files(self, files: Container[str]) -> None:
        """These files are loaded anew: forget their sites. The numbers of the others stay."""
        self.rewritten = {file: first for file, first in self.rewritten.items() if file not in files}
        self.defined = {number: seen for number, seen in self.defined.items() if self.file_of(number) not in files}
        self.called = {number for number in self.called if self.file_of(number) not in files}

    def start_example(self) -> None:
        """Forget what the sites held; the sites themselves stay."""
        self.seen = {}
        self.failed = set()
        self.last = -1
        self._calls.clear()

    def reporters(self) -> Dict[str, Any]:
        """The functions that rewritten code calls, by name."""
        reporters = {VALUE: self.value, SCALAR: self.scalar, NAMES: self.names, BOUND: self.bound, READ: self.read}
        return {**reporters, UNKNOWN_AT: self.unknown.add}

    # The reporters are called from rewritten code. They are on the path of every expression that runs.

    def value(self, number: int, value: Any) -> Any:
        """Report the value of a site, and hand it back."""
        self.last = number
        cls = type(value)
        kind = KINDS.get(cls)
        if kind is None:
            kind = kind_of(cls)
        if not kind:
            if self.watches and _is_unknown(value, cls):
                self.met += 1
            if (self.sites[number].tensor and is_absent(value)) or is_unknown_tensor(value):
                self.unknown.add(number)
            return value
        if kind == "tensor":
            self.met += 1
            origin = value.__dict__.get(ORIGIN)
            if origin is not None and origin.site < 0:
                origin.site = number
            if self.is_brief:
                return value
            key: Optional[Key] = tensor_key(value)
        else:
            if kind == "layer" or kind == "array":
                self.met += 1
            if kind == "layer" and self.sites[number].is_call:
                self._on_module(value, self.sites[number])
            try:
                key = None if self.is_brief else key_of(value)
            except Exception:  # An object that is not what its class says must not end the user's code.
                key = None
            if isinstance(value, (tuple, list)) and (key is not None or self.is_brief):
                self._mark_parts(number, value)
        if key is not None:
            self.met += kind not in ("tensor", "layer", "array")
            self._add(number, key)
        elif kind == "tensor":
            self.unknown.add(number)
        return value

    def scalar(self, number: int, value: Any) -> Any:
        """Report the value of a site where numbers count, and hand it back."""
        key = None if self.is_brief else number_key(value)
        if key is None:
            return self.value(number, value)
        self.last = number
        if self.watches and (key[2] is None and value is not None if key[0] == "scalar" else unknown_sizes.any_unknown(value)):
            self.met += 1
        self._add(number, key)
        return value

    def _mark_parts(self, number: int, parts: Any) -> None:
        """The tensors of a tuple or list came from a site: the parts of a `chunk`, say."""
        for part in parts[:MOST_PARTS]:
            if isinstance(part, torch.Tensor):
                origin = part.__dict__.get(ORIGIN)
                if origin is not None and origin.site < 0:
                    origin.site = number

    def names(self, first: int, *values: Any) -> bool:
        """Report the values of several sites that follow each other. Every function begins with that."""
        (self.called if executing.depth else self.reached).add(first)
        if self.on_entry is not None:
            self.on_entry(sys._getframe(1))
        calls = self._calls.get(first)
        if calls is None:
            self._calls[first] = [1, self.met]
        else:
            calls[0] += 1
            if calls[0] == OFTEN:
                if calls[1] == self.met and self.on_often is not None:
                    self.on_often(sys._getframe(1))
                calls[:] = 0, self.met
        for number, value in enumerate(values, start=first):
            self.scalar(number, value)
        return True

    def bound(self, first: int, *values: Any) -> bool:
        """Report the tensors among the values of several sites that follow each other."""
        for number, value in enumerate(values, start=first):
            self.value(number, value)
        return True

    def read(self, number: int, function: Callable[[], Any]) -> None:
        """Report what a target holds now; nothing where it cannot be read."""
        try:
            with _plainly():
                value = function()
        except Exception:  # A property without a getter, an index that only data says.
            return
        self.scalar(number, value)

    def _add(self, number: int, key: Key) -> None:
        seen = self.seen.get(number)
        if seen is None:
            seen = (
                self.defined.setdefault(number, SeenValues()) if self.sites[number].defining else self.seen.setdefault(number, SeenValues())
            )
        if key[0] == "scalar" and len(seen.counts) >= MOST_NUMBERS and key not in seen.counts:
            seen.total += 1
        else:
            self.news += key not in seen.counts and key[0] != "scalar"
            seen.add(key)

    def functions(self, file: str, also: Optional[Iterable[str]] = None) -> Optional[List[str]]:
        """The functions of a file that ran, and these; None where it is not watched."""
        return sorted({*self._functions_at(file, self.reached), *(also or [])}) if file in self.rewritten else None

    def always_reached(self, file: str) -> Optional[List[str]]:
        """The functions of a file that definitions called, and those that cannot be watched; None where none of the file is."""
        if file not in self.rewritten:
            return None
        sites = self.sites
        unwatched = {number for number in self.sites_of(file) if sites[number].kind == "entry" and sites[number].name == UNWATCHED}
        return sorted(self._functions_at(file, self.called | unwatched))

    def _functions_at(self, file: str, numbers: Iterable[int]) -> Set[str]:
        own = self.sites_of(file)
        return {self.sites[number].function for number in numbers if number in own}

    def file_of(self, number: int) -> str:
        """The file that a site is in."""
        return self.files[bisect.bisect_right(self._first_sites, number) - 1][1]

    def sites_of(self, file: str) -> Iterable[int]:
        """The sites of a file."""
        if file == self.pieces[0]:
            return [number for piece in self.pieces[1] for number in piece]
        first = self.rewritten[file]
        behind = bisect.bisect_right(self._first_sites, first)
        return range(first, self._first_sites[behind] if behind < len(self._first_sites) else len(self.sites))

    def _in_order(self, numbers: Iterable[int]) -> List[int]:
        """Sites in the order of evaluation, or else of the text."""
        pieces = sorted((piece.start, place) for place, piece in enumerate(self.pieces[1]) if piece)
        starts = [start for start, _ in pieces]
        if [place for _, place in pieces] == sorted(place for _, place in pieces):
            return sorted(numbers)

        def order(number: int) -> Tuple[int, int]:
            return (pieces[bisect.bisect_right(starts, number) - 1][1] if number >= starts[0] else -1), number

        return sorted(numbers, key=order)

    def span_of(self, number: int) -> FileSpan:
        """Where a site is."""
        return FileSpan(self.file_of(number), *self.sites[number].place)

    def unknown_observations(self, numbers: Iterable[int], example: int, known: Container[FileSpan]) -> List[Observation]:
        """Of these sites: what nothing is known of, but that it is a tensor or holds tensors, where it does not stand in `known` places."""
        out = []
        for number in self._in_order(numbers):
            site, file, span = self.sites[number], self.file_of(number), self.span_of(number)
            if span not in known:
                statement = None if site.statement is None else FileSpan(file, *site.statement)
                out.append(Observation(span, site.kind, site.name, site.function, example, [Value("unknown")], 1, statement))
        return out

    def observations(
        self, example: int, name: Callable[[int, SeenValues], List[Tuple[Key, Optional[Key]]]], files: Container[str]
    ) -> List[Observation]:
        """Returns the values of these files' sites in this example, and with the first one those of the definitions.

        `name(site, seen)` gives the distinct keys of a site, with the named dims where they are known.
        """
        out = []
        every = {**self.defined, **self.seen} if example == 0 else self.seen
        for number in self._in_order(every):
            seen, site = every[number], self.sites[number]
            file = self.file_of(number)
            if file not in files:
                continue
            values = [value_of(key, named, site.size) for key, named in name(number, seen)]
            statement = None if site.statement is None else FileSpan(file, *site.statement)
            out.append(
                Observation(FileSpan(file, *site.place), site.kind, site.name, site.function, example, values, seen.total, statement)
            )
        return out


def _is_unknown(value: Any, cls: type) -> bool:
    """True if a value that is no tensor stands in for an unknown one, or is a number that depends on data."""
    if cls is int or cls is float or cls is str or cls is bool:
        return unknown_sizes.state.met and cls is int and unknown_sizes.is_unknown(value)
    return cls in unknown_sizes.UNKNOWN_NUMBERS or cls in unknown_sizes.STAND_INS or is_absent(value)
