"""What an evaluation builds and computes, written down so that the next one can take it over (replay.py).

It is written down while an example is rehearsed, when nobody waits: each construction of a module with what its class was given, each call
with what it was given and gave, and which of the user's functions ran on the way. Only what left no other traces counts: a call in which
something failed or depended on data is made again, and so is one of a module that is not as its constructor left it.
"""

from __future__ import annotations

import sys
import time
import types
from abc import ABCMeta
from operator import is_
from typing import Any, Dict, FrozenSet, Hashable, List, Optional, Set, Tuple

import torch

from ..shims.data_sets import absences
from ..trace.autocast import autocast_is_on
from ..trace.module_memory import parts_of
from ..trace.provenance import Node
from ..trace.value_summary import LAYER, MODE, ORIGIN, STAND_IN, VAGUE
from ..unknown import unknown_sizes
from ..unknown.conditions import branches
from .fingerprints import NoFingerprint, fingerprint

Module = torch.nn.Module
Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

MOST_MODULES = 4000  # of one evaluation
_OURS = {"training", LAYER, MODE}  # in a module's __dict__: what may change after its constructor
HELD = ("_parameters", "_buffers", "_modules")
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
SAME_AGAIN = (int, float, bool, str, type(None))  # of what a call gives, what may be given again as it is
OF_ALL = {*Module().__dict__, *_OURS}  # attributes that every module has
_FIXED = {*SAME_AGAIN, Tensor, torch.nn.Parameter}  # of these only the shape of a tensor can change

GIVEN = "given"  # a result that is a tensor that the call was given: (GIVEN, its number)
TENSOR = "tensor"  # (TENSOR, shape, stride, dtype, whether it requires a gradient, where it came from)
VALUE = "value"


class Mark:
    """A construction or a call under way."""

    __slots__ = ("built", "called", "events", "inside", "key", "nodes", "outer", "reached", "shapes", "start", "tensors")

    def __init__(self, outer: Set[int], events: Any, key: Hashable, tensors: List[Tensor]) -> None:
        self.start = time.perf_counter()
        self.inside = 0.0  # seconds of the constructions and calls in it
        self.built: List[Built] = []  # by the constructions in it
        self.reached: Set[int] = set()  # the sites that these reached
        self.called = False  # whether modules were called in it
        self.outer = outer
        self.events = events
        self.key = key
        self.tensors = tensors
        self.shapes = [tensor.shape for tensor in tensors]
        self.nodes = [tensor.__dict__.get(ORIGIN) for tensor in tensors]


class State:
    """A module as its constructor left it.

    altogether: with the contents of its attributes and the shapes of its parameters, for `holds_altogether`.
    """

    __slots__ = ("described", "held", "names", "shapes", "training", "values")

    def __init__(self, module: Any, *, altogether: bool = True) -> None:
        own = module.__dict__
        self.names = tuple([name for name in own if name not in _OURS])
        self.values = list(map(own.get, self.names))
        self.held = [(tuple(own[name]), tuple(own[name].values())) for name in HELD]
        self.training = own["training"]
        self.described = _describe(module) if altogether else None
        self.shapes = _shapes(module) if altogether else None

    def holds_for(self, module: Any) -> bool:
        """Whether a module still has the same parts and attributes, and no hooks."""
        own = module.__dict__
        if len(own) > len(self.names) + len(_OURS) or not all(map(is_, map(own.get, self.names), self.values)):
            return False
        for name, (names, values) in zip(HELD, self.held):
            now = own[name]
            if len(now) != len(names) or not all(map(is_, map(now.get, names), values)):
                return False
        return not any(own[name] for name in HOOKS)

    def holds_altogether(self, module: Any) -> bool:
        """Also: what its attributes contain and the shapes of its parameters are the same."""
        return self.holds_for(module) and self.described == _describe(module) and self.shapes == _shapes(module)


def _describe(module: Any) -> Any:
    """The attributes that can change in place."""
    found: List[Any] = []
    for name, value in module.__dict__.items():
        if type(value) in SAME_AGAIN or name in OF_ALL:
            continue
        if isinstance(value, (list, tuple, set)) and any(isinstance(item, (Module, Tensor)) for item in value):
            found.append((name, type(value), [id(item) for item in value]))
            continue
        try:
            found.append((name, fingerprint(value, [])))
        except NoFingerprint:
            found.append((name, id(value)))
    return found


def _shapes(module: Any) -> Any:
    """The shapes of parameters and buffers; of real ones also how often they were changed."""
    with _plainly():
        return [
            (tensor.shape, tensor.dtype, None if tensor.is_meta or tensor.is_inference() else tensor._version)
            for held in (module._parameters, module._buffers)
            for tensor in held.values()
            if isinstance(tensor, Tensor)
        ]


class Built:
    """A module that was constructed; `reached` are the sites of the user's functions that ran for it.

    own: those that ran outside of the constructions of `inner`; None where what these gave was called as well.
    """

    __slots__ = ("ended", "given", "inner", "key", "module", "own", "parts", "reached")

    def __init__(self, module: Any, key: Any, reached: Set[int], given: Any, ended: int) -> None:
        self.module = module
        self.own: Optional[Set[int]] = None
        self.inner: List[Built] = []
        self.parts: Dict[int, Any] = {id(part): part for part in parts_of(module)}  # it and all that it holds
        self.key = key  # its class and what that was given: modules of the same key are alike
        self.ended = ended  # the number of constructions that were over then
        self.reached = reached
        self.given = given  # what is told by its identity has to stay alive


class Called:
    """A call of a module. `nodes`: where the tensors that it was given came from."""

    __slots__ = ("given", "nodes", "reached", "result")

    def __init__(self, nodes: List[Optional[Node]], reached: Set[int], result: Any, given: Any) -> None:
        self.given = given  # what is told by its identity has to stay alive
        self.nodes = nodes
        self.reached = reached
        self.result = result


class Recording:
    """What one evaluation of an example built and computed. `calls` is what watches its modules."""

    def __init__(self, calls: Any) -> None:
        self.calls = calls
        self.recorder = calls.recorder
        self.built: Dict[int, Built] = {}  # by id of the module, in the order in which they were constructed
        self.called: Dict[int, Dict[Hashable, Called]] = {}  # by id of the module, then by what it was given
        self.husks: Dict[type, Any] = {}
        self._states: Dict[int, Tuple[State, int]] = {}  # with the number of the construction since which a module is so
        self._marks: List[Mark] = []  # of all that is under way
        self.seconds = 0.0  # that all took which was written down
        self._spent: List[Tuple[float, Set[int]]] = []  # seconds of each construction and call, without those in it, and what ran for it
        self._ended = 0  # the number of constructions that are over

    # --- construction ---

    def construct(self, cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """A new module of a class; what `Module.__new__` returns."""
        module = _bare(cls)
        husk = self.husk(cls)
        if husk is None or len(self._states) > MOST_MODULES:
            return module
        mark = self.begin(None, args, kwargs)
        built = None
        try:
            module.__init__(*args, **kwargs)
            if "_modules" in module.__dict__:
                self._note_states(module)
                if not mark.tensors and self._was_uneventful(mark, args, kwargs):
                    own = self.recorder.reached
                    built = self.built[id(module)] = Built(module, (cls, mark.key), own | mark.reached, (args, kwargs), self._ended)
                    built.own, built.inner = None if mark.called else own, mark.built
        finally:
            self._end_construction(mark, built)
        object.__setattr__(module, "__class__", husk)
        return module

    def _end_construction(self, mark: Mark, built: Optional[Built]) -> None:
        """It can be told apart from the one around it if its module can be built again."""
        own = self.recorder.reached
        self._close(mark, own)
        outer = self._marks[-1] if self._marks else None
        if outer is not None and built is not None:
            outer.reached |= built.reached
            outer.built.append(built)
            return
        self.recorder.reached |= own | mark.reached
        if outer is not None:
            outer.called |= mark.called
            outer.built += mark.built

    def _note_states(self, module: Any) -> None:
        """A construction is over, which may have changed what it holds: a list of modules got its items, say."""
        self._ended += 1
        for part in parts_of(module):
            state, _ = self._states.get(id(part), (None, 0))
            if state is None or not state.holds_for(part):
                self._states[id(part)] = State(part), self._ended

    def husk(self, cls: Any) -> Any:
        """A subclass whose constructor does nothing but make the module one of `cls`; None where there cannot be one."""
        if cls not in self.husks:
            self.husks[cls] = _husk_of(cls)
        return self.husks[cls]

    def is_as_built(self, built: Built) -> bool:
        """Whether a module, and all that it holds, still are as they were when it had been constructed."""
        for number, part in built.parts.items():
            state, since = self._states.get(number, (None, 0))
            if state is None or since > built.ended or not state.holds_for(part):
                return False
        return True

    def set_back(self, built: Built) -> None:
        """Make a module the one that its constructor has left, where that has not been found to be another one."""
        for number, part in built.parts.items():
            part.__dict__.pop(MODE, None)
            part.__dict__["training"] = self._states[number][0].training

    # --- calls ---

    def begin(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Mark:
        """A construction or a call begins; `end` has to follow a call."""
        tensors: List[Tensor] = []
        key = key_of(module, args, kwargs, tensors)
        with _plainly():
            mark = Mark(self.recorder.reached, self._events(), key, tensors)
        self.recorder.reached = set()
        self._marks.append(mark)
        return mark

    def end(self, mark: Mark) -> Set[int]:
        """A call is over, however it ended: the sites of the functions that ran."""
        reached: Set[int] = self.recorder.reached | mark.reached
        self._close(mark, reached)
        self.recorder.reached |= reached
        if self._marks:
            self._marks[-1].called = True
        return reached

    def _close(self, mark: Mark, reached: Set[int]) -> None:
        self._marks.pop()
        self.recorder.reached = mark.outer
        seconds = time.perf_counter() - mark.start
        self.seconds += seconds - mark.inside
        self._spent.append((seconds - mark.inside, reached))
        if self._marks:
            self._marks[-1].inside += seconds

    def keep(self, module: Any, mark: Mark, reached: Set[int], args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """A call has given a result. To be called before anything is noted on it."""
        if self._was_uneventful(mark, args, kwargs, module):
            try:
                with _plainly():
                    described = _describe_result(result, mark.tensors)
            except NoFingerprint:
                return
            self.called.setdefault(id(module), {})[mark.key] = Called(mark.nodes, reached, described, (module, args, kwargs))

    def _was_uneventful(self, mark: Mark, args: Tuple[Any, ...], kwargs: Dict[str, Any], module: Any = None) -> bool:
        if mark.key is None or self._events() != mark.events:
            return False
        if all(type(value) in _FIXED for value in (*args, *kwargs.values())):
            with _plainly():
                return [tensor.shape for tensor in mark.tensors] == mark.shapes
        return key_of(module, args, kwargs, []) == mark.key

    def _events(self) -> Any:
        """What is another one after something that cannot be taken over."""
        calls, state = self.calls, unknown_sizes.state
        recovered = sum(calls.recovery.met.values())
        failed = len(calls.mismatches), id(calls.meta.failure), recovered, calls.meta.vague, len(absences.said)
        return failed, state.met, state.cut, sum(branches.asked.values())

    # --- the end ---

    def seconds_without(self, gone: FrozenSet[int]) -> float:
        """How much of `seconds` was spent where none of these functions ran."""
        return sum(seconds for seconds, reached in self._spent if gone.isdisjoint(reached))

    def finish(self) -> None:
        """The evaluation is over: what is no longer as it was built is not taken over."""
        parts = {number: part for built in self.built.values() for number, part in built.parts.items()}
        same = {number for number, (state, _) in self._states.items() if number in parts and state.holds_altogether(parts[number])}
        for number, built in list(self.built.items()):
            if not all(part in same and self._states[part][1] <= built.ended for part in built.parts):
                del self.built[number]


def key_of(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], tensors: List[Tensor]) -> Optional[Hashable]:
    """What a construction or a call depends on, but for the module's own state; None where that cannot be told."""
    if torch._C._functorch.peek_interpreter_stack() is not None or autocast_is_on():
        return None
    training = None if module is None else module.__dict__.get("training")
    try:
        given = fingerprint(args, tensors), fingerprint(kwargs, tensors)
    except NoFingerprint:
        return None
    return given, training, unknown_sizes.state.met, torch.get_default_dtype(), torch.is_grad_enabled()


def _describe_result(value: Any, given: List[Tensor]) -> Any:
    """A result, as `reuse` makes it again. Raises NoFingerprint where it cannot."""
    cls = type(value)
    if cls is Tensor:
        for number, tensor in enumerate(given):
            if tensor is value:
                return GIVEN, number
        stand_in = value.__dict__.get(STAND_IN, False)
        if not value.is_meta or value.layout is not torch.strided or stand_in == VAGUE:
            raise NoFingerprint
        node = value.__dict__.get(ORIGIN)
        return TENSOR, tuple(value.shape), value.stride(), value.dtype, value.requires_grad, stand_in, node and node.copy()
    if cls in SAME_AGAIN:
        return VALUE, value
    if cls is tuple or cls is list:
        return cls, [_describe_result(item, given) for item in value]
    if cls is dict and all(type(name) in SAME_AGAIN for name in value):
        return cls, list(value), [_describe_result(item, given) for item in value.values()]
    raise NoFingerprint


# --- taking part in the construction of modules ---

_current: List[Any] = []  # the Recording or Reuse under way, at most one


def set_current(watch: Any) -> None:
    """From now on the construction of modules is a matter of this Recording or Reuse, or of none.

    The first time it changes `Module.__new__` for good, which only a process that ends with its run should do.
    """
    _current[:] = [] if watch is None else [watch]
    if watch is not None and Module.__dict__.get("__new__") is None:
        Module.__new__ = _new  # type: ignore[method-assign]


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`Module.__new__`: Python calls `__init__` of what it returns next, which does nothing for a module that is built already."""
    if not _current or cls.__new__ is not _new or "__new__" in sys._getframe(1).f_code.co_names:  # As `copy.deepcopy` calls it.
        return _bare(cls)
    return _current[0].construct(cls, args, kwargs)


def _bare(cls: Any) -> Any:
    return super(Module, cls).__new__(cls)


def _husk_of(cls: Any) -> Any:
    if type(cls) not in (type, ABCMeta) or not isinstance(cls.__init_subclass__, types.BuiltinMethodType):
        return None  # Making a subclass may do anything.

    def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(module, "__class__", cls)

    names = {"__init__": __init__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    try:
        return type(cls)(cls.__name__, (cls,), names)
    except TypeError:
        return None
