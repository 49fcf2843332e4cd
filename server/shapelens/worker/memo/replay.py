"""Takes over what the last evaluation of an example built and computed (recording.py), where the edit since then has nothing to do with it.

A module whose class is given the same is the very one that was built then; a call of it with what looks the same gives what looks the same,
and nothing of it runs. So an evaluation costs what the edit has changed, and says what is wrong; it does not see what the sites inside of
such modules hold. It is therefore followed by one that takes over nothing, and what that one says holds.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Hashable, Iterable, List, Optional, Set, Tuple

import torch

from ..meta import op_cache
from ..trace.module_memory import parts_of
from ..trace.provenance import INPUT, Node
from ..trace.value_summary import MODE, ORIGIN, STAND_IN
from .recording import GIVEN, HELD, HOOKS, TENSOR, VALUE, Built, Called, Mark, Recording, State, key_of
from .submodule_swap import grafted

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


class Reuse(Recording):
    """One evaluation that takes over what it can; a recording serves once, as its modules and origins become those of this one.

    gone: the sites of the user's functions that are no more, or have other code.
    """

    def __init__(self, before: Recording, gone: FrozenSet[int], calls: Any) -> None:
        super().__init__(calls)
        self.before = before
        self.gone = gone
        self.modules: List[Any] = list(before.calls.modules)  # by layer index
        self.spans: List[Any] = list(before.calls.spans)
        self.seen = before.calls.seen  # what the calls of these modules gave then
        self.husks = before.husks
        self._offered: Dict[Hashable, List[Built]] = {}  # what was built, by class and arguments, the first one last
        for built in reversed(list(before.built.values())):
            self._offered.setdefault(built.key, []).append(built)
        self._taken: Set[int] = set()  # ids of those modules that are part of this evaluation
        self._states.update({number: (state, -1) for number, (state, _) in before._states.items()})
        self._first: Dict[Hashable, Built] = {}  # what this evaluation has built, by class and arguments
        self._alike: Dict[Hashable, Called] = {}  # by class, arguments, and what a call was given

    # --- construction ---

    def construct(self, cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """What `Module.__new__` returns: a module that is built already, or one that its constructor builds now."""
        given = key_of(None, args, kwargs, [])
        built = None if given is None else self._offer((cls, given))
        if built is not None and self.gone.isdisjoint(built.reached):
            self.take(built.parts)
            return self.handed_out(built)
        like = self._first.get((cls, given))
        if like is not None and self.is_as_built(like):
            return self._copied(like)
        if built is not None and grafted(self, built):
            return self.handed_out(built)
        module = super().construct(cls, args, kwargs)
        if id(module) in self.built:
            self._first.setdefault((cls, given), self.built[id(module)])
        return module

    def take(self, parts: Iterable[int]) -> None:
        """The modules with these ids, which were built before, are part of this evaluation."""
        self._taken.update(parts)

    def give_back(self, parts: Iterable[int]) -> None:
        """They are not."""
        self._taken.difference_update(parts)

    def holds_now(self, holder: Any) -> None:
        """A module that was built before holds others now."""
        self._states[id(holder)] = State(holder, altogether=False), self._ended

    def rebuilt(self, built: Built) -> None:
        """A module that was built before is as if its constructor had run in this evaluation."""
        again = self.built[id(built.module)] = Built(built.module, built.key, built.reached, built.given, self._ended)
        self._first.setdefault(built.key, again)
        self._taken.discard(id(built.module))

    def handed_out(self, built: Built) -> Any:
        """A module that was built before, as its constructor left it."""
        self.before.set_back(built)
        self.recorder.reached |= built.reached
        self.calls.taken_over(built.module)
        object.__setattr__(built.module, "__class__", self.husk(type(built.module)))
        return built.module

    def _note_states(self, module: Any) -> None:
        """As of a recording, but nobody will ask for more than `holds_for`."""
        self._ended += 1
        for part in parts_of(module, self._taken):
            state, _ = self._states.get(id(part), (None, 0))
            if state is None or not state.holds_for(part):
                self._states[id(part)] = State(part, altogether=False), self._ended

    def _offer(self, key: Hashable) -> Optional[Built]:
        """A module that was built before from the same, of which all is left."""
        offered = self._offered.get(key)
        while offered:
            built = offered.pop()
            if self._taken.isdisjoint(built.parts):
                return built
        return None

    def _copied(self, like: Built) -> Any:
        """A module like one that this evaluation has built, with the same parameters: nobody looks at what they hold."""
        copies: Dict[int, Any] = {}
        for part in like.parts.values():
            copy = copies[id(part)] = object.__new__(type(part))
            own = copy.__dict__
            own.update(part.__dict__)
            for name in HELD + HOOKS:
                own[name] = own[name].copy()
            own["training"] = self._states[id(part)][0].training
            own.pop(MODE, None)
            self.calls.constructed(copy)
        for part in like.parts.values():
            held = copies[id(part)].__dict__["_modules"]
            for name, child in held.items():
                held[name] = copies.get(id(child))
        for part in like.parts.values():
            copy = copies[id(part)]
            self._states[id(copy)] = State(copy, altogether=False), self._ended
            inner = self.built.get(id(part))
            if inner is not None and inner.ended <= like.ended:
                self.built[id(copy)] = Built(copy, inner.key, inner.reached, inner.given, self._ended)
        module = copies[id(like.module)]
        self.recorder.reached |= like.reached
        object.__setattr__(module, "__class__", self.husk(type(module)))
        return module

    def _events(self) -> Any:
        """As of a recording, but for what was wrong: it would be in others like it, too."""
        return super()._events()[1:]

    # --- calls ---

    def result(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Any]]:
        """What a call gives, if that is known; None where it has to be made."""
        source: Recording = self.before if id(module) in self._taken else self
        built = source.built.get(id(module))
        if built is None:
            return None
        tensors: List[Tensor] = []
        key = key_of(module, args, kwargs, tensors)
        if key is None:
            return None
        called = self.before.called.get(id(module), {}).get(key) if source is self.before else None
        own = called is not None and self.gone.isdisjoint(called.reached)
        called = called if own else self._alike.get((built.key, key))
        if called is None or not source.is_as_built(built):
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
            return (_made(called.result, tensors, through),)

    def keep(self, module: Any, mark: Mark, reached: Set[int], args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """A call has given a result: it is that of others like it, too. What was wrong in it is said once."""
        super().keep(module, mark, reached, args, kwargs, result)
        source: Recording = self.before if id(module) in self._taken else self
        built = source.built.get(id(module))
        called = self.called.get(id(module), {}).get(mark.key)
        if built is not None and called is not None:
            self._alike.setdefault((built.key, mark.key), called)


def _follows(called: Called, nodes: List[Optional[Node]]) -> bool:
    """Let what a call computed follow from other inputs than it did; whether that can be said."""
    if any((before is None) is not (now is None) or (before is INPUT and now is not INPUT) for before, now in zip(called.nodes, nodes)):
        return False
    for before, now in zip(called.nodes, nodes):
        if before is not None and now is not None and before is not now:
            before.become(now)
    return True


def _made(described: Any, given: List[Tensor], through: Optional[List[Any]]) -> Any:
    """The result of a call as `recording` has described it, with tensors of its own.

    through: that of a call which another one was like: what it computed is not told apart, only from which inputs.
    """
    kind = described[0]
    if kind == GIVEN:
        return given[described[1]]
    if kind == TENSOR:
        _, shape, stride, dtype, requires_grad, stand_in, node = described
        tensor = op_cache.made((shape, stride, dtype, requires_grad))
        if stand_in:
            tensor.__dict__[STAND_IN] = stand_in
        if node is not None:
            tensor.__dict__[ORIGIN] = node.copy() if through is None else Node(node.operation, shape, through)
        return tensor
    if kind == VALUE:
        return described[1]
    if kind is dict:
        return dict(zip(described[1], [_made(item, given, through) for item in described[2]]))
    return kind([_made(item, given, through) for item in described[1]])
