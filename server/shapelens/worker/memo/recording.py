"""Writes down what an evaluation builds and computes, so that the next one can take it over (replay.py).

That is done while an example is rehearsed, when nobody waits: each construction of a module with what its class was given, each call with
what it was given and gave, and which of the user's functions ran on the way. Only what left no other traces counts: a call in which
something failed or depended on data is made again, and so is one of a module that is not as its constructor left it.
"""

from __future__ import annotations

from typing import Any, Dict, Hashable, List, Set, Tuple

import torch

from ..calls.module_calls import Calls
from ..sandbox.originals import time
from ..shims.data_sets import absences
from ..trace.module_memory import parts_of
from ..trace.value_summary import ORIGIN
from ..unknown import unknown_sizes
from ..unknown.conditions import branches
from .construction import inert_class_of, unconstructed
from .fingerprints import NoFingerprint
from .memo import BuiltModule, KnownCall, Memo, key_of, result_description
from .module_state import PLAIN, ModuleState

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

MOST_MODULES = 4000  # of one evaluation
_FIXED = {*PLAIN, Tensor, torch.nn.Parameter}  # of these only the shape of a tensor can change


class Pending:
    """A construction or a call under way."""

    __slots__ = ("built", "called", "events", "inside", "key", "nodes", "outer", "reached", "shapes", "start", "tensors")

    def __init__(self, outer: Set[int], events: Any, key: Hashable, tensors: List[Tensor]) -> None:
        self.start = time.perf_counter()
        self.inside = 0.0  # seconds of the constructions and calls in it
        self.built: List[BuiltModule] = []  # by the constructions in it
        self.reached: Set[int] = set()  # the sites that these reached
        self.called = False  # whether modules were called in it
        self.outer = outer
        self.events = events
        self.key = key
        self.tensors = tensors
        self.shapes = [tensor.shape for tensor in tensors]
        self.nodes = [tensor.__dict__.get(ORIGIN) for tensor in tensors]


class Recording:
    """The memo of an evaluation under way. `calls` is what watches its modules."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.recorder = calls.recorder
        self.built: Dict[int, BuiltModule] = {}  # by id of the module, in the order in which they were constructed
        self.called: Dict[int, Dict[Hashable, KnownCall]] = {}  # by id of the module, then by what it was given
        self.states: Dict[int, Tuple[ModuleState, int]] = {}  # with the number of the construction since which a module is so
        self._pending: List[Pending] = []  # all that is under way
        self._spent: List[Tuple[float, Set[int]]] = []  # seconds of each construction and call, without those in it, and what ran for it
        self._ended = 0  # the number of constructions that are over

    def memo(self) -> Memo:
        """All of it, once the evaluation is over; what is no longer as it was built is left out."""
        parts = {number: part for built in self.built.values() for number, part in built.parts.items()}
        same = {number for number, (state, _) in self.states.items() if number in parts and state.is_unchanged(parts[number])}
        built = {
            number: built
            for number, built in self.built.items()
            if all(part in same and self.states[part][1] <= built.ended for part in built.parts)
        }
        calls = self.calls
        return Memo(built, self.called, self.states, calls.modules, calls.spans, calls.seen, self._spent)

    # --- construction ---

    def construct(self, cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """A new module of a class; what `Module.__new__` returns."""
        module = unconstructed(cls)
        inert_class = inert_class_of(cls)
        if inert_class is None or len(self.states) > MOST_MODULES:
            return module
        pending = self.begin(None, args, kwargs)
        built = None
        try:
            module.__init__(*args, **kwargs)
            if "_modules" in module.__dict__:
                self._note_states(module)
                if not pending.tensors and self._was_uneventful(pending, args, kwargs):
                    own = self.recorder.reached
                    built = BuiltModule(module, (cls, pending.key), own | pending.reached, (args, kwargs), self._ended)
                    self.built[id(module)] = built
                    built.own, built.inner = None if pending.called else own, pending.built
        finally:
            self._end_construction(pending, built)
        object.__setattr__(module, "__class__", inert_class)
        return module

    def _end_construction(self, pending: Pending, built: Any) -> None:
        """A construction can be told apart from the one around it if its module can be built again."""
        own = self.recorder.reached
        self._close(pending, own)
        outer = self._pending[-1] if self._pending else None
        if outer is not None and built is not None:
            outer.reached |= built.reached
            outer.built.append(built)
            return
        self.recorder.reached |= own | pending.reached
        if outer is not None:
            outer.called |= pending.called
            outer.built += pending.built

    def _note_states(self, module: Any) -> None:
        """A construction is over, which may have changed what it holds: a list of modules got its items, say."""
        self._ended += 1
        for part in parts_of(module, self._known_parts()):
            known = self.states.get(id(part))
            if known is None or not known[0].holds_the_same(part):
                self.states[id(part)] = self._state_of(part), self._ended

    def _known_parts(self) -> Set[int]:
        """The ids of modules that need not be looked at after a construction."""
        return set()

    def _state_of(self, module: Any) -> ModuleState:
        return ModuleState(module)

    # --- calls ---

    def begin(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Pending:
        """A construction or a call begins; `end` has to follow a call."""
        tensors: List[Tensor] = []
        key = key_of(module, args, kwargs, tensors)
        with _plainly():
            pending = Pending(self.recorder.reached, self._events(), key, tensors)
        self.recorder.reached = set()
        self._pending.append(pending)
        return pending

    def end(self, call: Pending) -> Set[int]:
        """A call is over, however it ended: the sites of the functions that ran."""
        reached: Set[int] = self.recorder.reached | call.reached
        self._close(call, reached)
        self.recorder.reached |= reached
        if self._pending:
            self._pending[-1].called = True
        return reached

    def _close(self, pending: Pending, reached: Set[int]) -> None:
        self._pending.pop()
        self.recorder.reached = pending.outer
        seconds = time.perf_counter() - pending.start
        self._spent.append((seconds - pending.inside, reached))
        if self._pending:
            self._pending[-1].inside += seconds

    def keep(self, module: Any, call: Pending, reached: Set[int], args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """A call has given a result. To be called before anything is noted on it."""
        if self._was_uneventful(call, args, kwargs, module):
            try:
                with _plainly():
                    described = result_description(result, call.tensors)
            except NoFingerprint:
                return
            self.called.setdefault(id(module), {})[call.key] = KnownCall(call.nodes, reached, described, (module, args, kwargs))

    def _was_uneventful(self, pending: Pending, args: Tuple[Any, ...], kwargs: Dict[str, Any], module: Any = None) -> bool:
        if pending.key is None or self._events() != pending.events:
            return False
        if all(type(value) in _FIXED for value in (*args, *kwargs.values())):
            with _plainly():
                return [tensor.shape for tensor in pending.tensors] == pending.shapes
        return key_of(module, args, kwargs, []) == pending.key

    def _events(self) -> Any:
        """Returns what is another one after something that cannot be taken over."""
        calls, state = self.calls, unknown_sizes.state
        recovered = sum(calls.recovery.met.values())
        failed = len(calls.mismatches), id(calls.meta.failure), recovered, calls.meta.vague, len(absences.said)
        return failed, state.met, state.cut, sum(branches.asked.values())
