"""Takes over what the last evaluation of an example built and computed (its memo), where the edit since then has nothing to do with it.

A module whose class is given the same is the very one that was built then; a call of it with what looks the same gives what looks the same,
and nothing of it runs. So an evaluation costs what the edit has changed, and says what is wrong; it does not see what the sites inside of
such modules hold. It is therefore followed by one that takes over nothing, and what that one says holds.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Hashable, List, Optional, Set, Tuple

import torch

from ..calls.module_calls import Calls
from ..meta import op_cache
from ..trace.provenance import INPUT, Derivation
from ..trace.value_summary import LAYER, MODE, OF_EXAMPLE, ORIGIN
from .construction import inert_class_of
from .memo import BuiltModule, KnownCall, Memo, is_as_built, key_of, result_from
from .module_state import HELD, HOOKS, ModuleState, have_the_same_attributes
from .recording import Pending, Recording
from .submodule_swap import plan_swap

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


class Replay(Recording):
    """One evaluation that takes over what it can. What it builds and computes itself is recorded for what is like it: repeated blocks.

    replaced: the sites of the user's functions that have other code than they had for the memo.
    """

    def __init__(self, memo: Memo, replaced: FrozenSet[int], calls: Calls) -> None:
        super().__init__(calls)
        self.earlier = memo
        self.replaced = replaced
        self.modules = list(memo.modules)  # by layer index
        self.spans = list(memo.spans)
        self.seen = dict(memo.seen)  # what the calls of these modules gave then
        self._offered: Dict[Hashable, List[BuiltModule]] = {}  # what was built, by class and arguments, the first one last
        for built in reversed(list(memo.built.values())):
            self._offered.setdefault(built.key, []).append(built)
        self._taken: Set[int] = set()  # ids of modules of the memo that are part of this evaluation
        self.states.update({number: (state, -1) for number, (state, _) in memo.states.items()})
        self._first: Dict[Hashable, BuiltModule] = {}  # what this evaluation has built, by class and arguments
        self._alike: Dict[Hashable, KnownCall] = {}  # by class, arguments, and what a call was given

    # --- construction ---

    def construct(self, cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Returns what `Module.__new__` returns: a module that is built already, or one that its constructor builds now."""
        given = key_of(None, args, kwargs, [])
        built = None if given is None else self._offer((cls, given))
        if built is not None and self.replaced.isdisjoint(built.reached):
            self._taken.update(built.parts)
            return self._taken_over(built)
        like = self._first.get((cls, given))
        if like is not None and is_as_built(like, self.states):
            return self._copied(like)
        if built is not None and self._swapped(built):
            return self._taken_over(built)
        module = super().construct(cls, args, kwargs)
        if id(module) in self.built:
            self._first.setdefault((cls, given), self.built[id(module)])
        return module

    def _offer(self, key: Hashable) -> Optional[BuiltModule]:
        """A module that was built before from the same, of which all is left."""
        offered = self._offered.get(key)
        while offered:
            built = offered.pop()
            if self._taken.isdisjoint(built.parts):
                return built
        return None

    def _taken_over(self, built: BuiltModule) -> Any:
        """A module that was built before, as its constructor left it."""
        self.earlier.restore(built)
        self.recorder.reached |= built.reached
        self.calls.taken_over(built.module)
        return _inert(built.module)

    def _known_parts(self) -> Set[int]:
        return self._taken

    def _state_of(self, module: Any) -> ModuleState:
        return ModuleState(module, thorough=False)  # This evaluation has no memo.

    def _copied(self, like: BuiltModule) -> Any:
        """A module like one that this evaluation has built, with the same parameters: nobody looks at what they hold."""
        copies: Dict[int, Any] = {}
        for part in like.parts.values():
            copy = copies[id(part)] = object.__new__(type(part))
            own = copy.__dict__
            own.update(part.__dict__)
            for name in HELD + HOOKS:
                own[name] = own[name].copy()
            own["training"] = self.states[id(part)][0].training
            for name in (MODE, OF_EXAMPLE):
                own.pop(name, None)
            self.calls.constructed(copy)
        for part in like.parts.values():
            held = copies[id(part)].__dict__["_modules"]
            for name, child in held.items():
                held[name] = copies.get(id(child))
        for part in like.parts.values():
            copy = copies[id(part)]
            self.states[id(copy)] = self._state_of(copy), self._ended
            inner = self.built.get(id(part))
            if inner is not None and inner.ended <= like.ended:
                self.built[id(copy)] = BuiltModule(copy, inner.key, inner.reached, inner.given, self._ended)
        self.recorder.reached |= like.reached
        return _inert(copies[id(like.module)])

    def _events(self) -> Any:
        """As of a recording, but for what was wrong: it would be in others like it, too."""
        return super()._events()[1:]

    # --- a model that stays, but for some of its modules ---

    def _swapped(self, model: BuiltModule) -> bool:
        """Construct anew in a model of the memo what has to be; whether the model is the one that its constructor would build now."""
        swap = plan_swap(self.earlier, self.replaced, model)
        if swap is None:
            return False
        self._taken.update(swap.staying)
        fresh: List[Any] = []
        for stale in swap.stale:
            module = self._constructed_like(stale)
            if module is None:
                self._taken.difference_update(swap.staying)
                return False
            fresh.append(module)
        for (holder, name), module in zip(swap.slots, fresh):
            holder.__dict__["_modules"][name] = module
            self.states[id(holder)] = self._state_of(holder), self._ended
        for built in swap.around:  # As if its constructor had run in this evaluation.
            again = self.built[id(built.module)] = BuiltModule(built.module, built.key, built.reached, built.given, self._ended)
            self._first.setdefault(built.key, again)
            self._taken.discard(id(built.module))
        return True

    def _constructed_like(self, before: BuiltModule) -> Optional[Any]:
        """A module like one before, by the constructor that is there now; None where something is wrong with that, or it differs."""
        args, kwargs = before.given
        if key_of(None, args, kwargs, []) != before.key[1]:
            return None  # What it was given has changed since.
        calls, meta = self.calls, self.calls.meta
        mismatches, met, vague, failure = list(calls.mismatches), dict(calls.recovery.met), meta.vague, meta.failure
        on_mismatch, calls.on_mismatch = calls.on_mismatch, None
        module = None
        try:
            module = self.construct(type(before.module), args, kwargs)
            module.__init__()  # It is there: this only gives it its class, as Python does next.
        except Exception:  # It will be raised again where the model's own constructor runs.
            module = None
        finally:
            calls.on_mismatch = on_mismatch
        if module is not None and calls.mismatches == mismatches and have_the_same_attributes(before.module, module):
            calls.spans[module.__dict__[LAYER]] = self.spans[before.module.__dict__[LAYER]]
            return module
        calls.mismatches[:], calls.recovery.met, meta.vague, meta.failure = mismatches, met, vague, failure
        return None

    # --- calls ---

    def result(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Any]]:
        """Returns what a call gives, if that is known; None where it has to be made."""
        is_earlier = id(module) in self._taken
        built = self._built(module)
        if built is None:
            return None
        tensors: List[Tensor] = []
        key = key_of(module, args, kwargs, tensors)
        if key is None:
            return None
        called = self.earlier.called.get(id(module), {}).get(key) if is_earlier else None
        own = called is not None and self.replaced.isdisjoint(called.reached)
        called = called if own else self._alike.get((built.key, key))
        if called is None or not is_as_built(built, self.earlier.states if is_earlier else self.states):
            return None
        with _plainly():
            nodes = [tensor.__dict__.get(ORIGIN) for tensor in tensors]
            if own and not _follows(called, nodes):
                return None
            self.recorder.reached |= called.reached
            op_cache.state.used = True  # There is no graph for gradients.
            if own:
                self._alike.setdefault((built.key, key), called)
            through = None if own else [(node, tuple(tensor.shape)) for node, tensor in zip(nodes, tensors)]
            return (result_from(called.result, tensors, through),)

    def keep(self, module: Any, call: Pending, reached: Set[int], args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """A call has given a result: it is that of others like it, too. What was wrong in it is said once."""
        super().keep(module, call, reached, args, kwargs, result)
        built = self._built(module)
        called = self.called.get(id(module), {}).get(call.key)
        if built is not None and called is not None:
            self._alike.setdefault((built.key, call.key), called)

    def _built(self, module: Any) -> Optional[BuiltModule]:
        return (self.earlier.built if id(module) in self._taken else self.built).get(id(module))


def _inert(module: Any) -> Any:
    """A module that is built, so that Python may call its constructor."""
    object.__setattr__(module, "__class__", inert_class_of(type(module)))
    return module


def _follows(called: KnownCall, nodes: List[Optional[Derivation]]) -> bool:
    """Let what a call computed follow from other inputs than it did; whether that can be said."""
    if any((before is None) is not (now is None) or (before is INPUT and now is not INPUT) for before, now in zip(called.nodes, nodes)):
        return False
    for before, now in zip(called.nodes, nodes):
        if before is not None and now is not None and before is not now:
            before.become(now)
    return True
