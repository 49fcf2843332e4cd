"""The memo of an example: what its evaluation built and computed, as a table (`recording` writes it, `replay` reads it).

A module is told by the class and the arguments that it was built from, the result of a call by its module and what that was given.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ...protocol import FileSpan
from ..meta import op_cache
from ..trace.autocast import autocast_is_on
from ..trace.module_memory import parts_of
from ..trace.provenance import Derivation
from ..trace.recorder import SeenValues
from ..trace.value_summary import MODE, ORIGIN, STAND_IN, VAGUE
from ..unknown import unknown_sizes
from .fingerprints import NoFingerprint, fingerprint
from .module_state import PLAIN, ModuleState

Tensor = torch.Tensor

_GIVEN = "given"  # a result that is a tensor that the call was given: (_GIVEN, its number)
_TENSOR = "tensor"  # (_TENSOR, shape, stride, dtype, whether it requires a gradient, what it stands in for, where it came from)
_VALUE = "value"


class BuiltModule:
    """A module that was constructed; `reached` are the sites of the user's functions that ran for it.

    own: those that ran outside of the constructions of `inner`; None where what these gave was called as well.
    """

    __slots__ = ("ended", "given", "inner", "key", "module", "own", "parts", "reached")

    def __init__(self, module: Any, key: Any, reached: Set[int], given: Any, ended: int) -> None:
        self.module = module
        self.own: Optional[Set[int]] = None
        self.inner: List[BuiltModule] = []
        self.parts: Dict[int, Any] = {id(part): part for part in parts_of(module)}  # the module and all that it holds
        self.key = key  # its class and what that was given: modules of the same key are alike
        self.ended = ended  # the number of constructions that were over then
        self.reached = reached
        self.given = given  # what is told by its identity has to stay alive


class KnownCall(NamedTuple):
    """A call of a module. `nodes`: where the tensors that it was given came from."""

    nodes: List[Optional[Derivation]]
    reached: Set[int]
    result: Any  # as `describe` gives it
    given: Any  # what is told by its identity has to stay alive


States = Mapping[int, Tuple[ModuleState, int]]  # by id of the module, with the number of the construction since which a module is so


class Memo(NamedTuple):
    """Holds what one evaluation of an example built and computed. It serves once: its modules become those of the evaluation that replays
    it.
    """

    built: Mapping[int, BuiltModule]  # by id of the module, in the order in which they were constructed
    called: Mapping[int, Mapping[Hashable, KnownCall]]  # by id of the module, then by what it was given
    states: States
    modules: Sequence[Any]  # all of the example, by layer index
    spans: Sequence[Optional[FileSpan]]  # where these were constructed
    seen: Mapping[int, SeenValues]  # what their calls gave, by layer index
    spent: Sequence[Tuple[float, Set[int]]]  # seconds of each construction and call, without those in it, and what ran for it

    @property
    def seconds(self) -> float:
        """Returns how long all of it took."""
        return sum(seconds for seconds, _ in self.spent)

    def seconds_without(self, replaced: FrozenSet[int]) -> float:
        """Returns how much of that was spent where none of these functions ran."""
        return sum(seconds for seconds, reached in self.spent if replaced.isdisjoint(reached))

    def restore(self, built: BuiltModule) -> None:
        """Make a module the one that its constructor has left, where that has not been found to be another one."""
        for number, part in built.parts.items():
            part.__dict__.pop(MODE, None)
            part.__dict__["training"] = self.states[number][0].training


def is_as_built(built: BuiltModule, states: States) -> bool:
    """True if a module, and all that it holds, still are as they were when it had been constructed."""
    for number, part in built.parts.items():
        known = states.get(number)
        if known is None or known[1] > built.ended or not known[0].holds_the_same(part):
            return False
    return True


def key_of(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], tensors: List[Tensor]) -> Optional[Hashable]:
    """Returns what a construction or a call depends on, but for the module's own state; None where that cannot be told.

    The tensors that it is given are added to `tensors`.
    """
    if torch._C._functorch.peek_interpreter_stack() is not None or autocast_is_on():
        return None
    training = None if module is None else module.__dict__.get("training")
    try:
        given = fingerprint(args, tensors), fingerprint(kwargs, tensors)
    except NoFingerprint:
        return None
    return given, training, unknown_sizes.state.met, torch.get_default_dtype(), torch.is_grad_enabled()


# --- results ---


def result_description(value: Any, given: List[Tensor]) -> Any:
    """A result, as `make` makes it again; `given` are the tensors that the call got. Raises NoFingerprint where it cannot be made again."""
    cls = type(value)
    if cls is Tensor:
        for number, tensor in enumerate(given):
            if tensor is value:
                return _GIVEN, number
        stand_in = value.__dict__.get(STAND_IN, False)
        if not value.is_meta or value.layout is not torch.strided or stand_in == VAGUE:
            raise NoFingerprint
        node = value.__dict__.get(ORIGIN)
        return _TENSOR, tuple(value.shape), value.stride(), value.dtype, value.requires_grad, stand_in, node and node.copy()
    if cls in PLAIN:
        return _VALUE, value
    if cls is tuple or cls is list:
        return cls, [result_description(item, given) for item in value]
    if cls is dict and all(type(name) in PLAIN for name in value):
        return cls, list(value), [result_description(item, given) for item in value.values()]
    raise NoFingerprint


def result_from(described: Any, given: List[Tensor], through: Optional[List[Any]]) -> Any:
    """A result as `describe` has described it, with tensors of its own.

    through: of a call that was like the one described: from which inputs its result comes, as what it computed is not told apart.
    """
    kind = described[0]
    if kind == _GIVEN:
        return given[described[1]]
    if kind == _TENSOR:
        _, shape, stride, dtype, requires_grad, stand_in, node = described
        tensor = op_cache.made((shape, stride, dtype, requires_grad))
        if stand_in:
            tensor.__dict__[STAND_IN] = stand_in
        if node is not None:
            tensor.__dict__[ORIGIN] = node.copy() if through is None else Derivation(node.operation, shape, through)
        return tensor
    if kind == _VALUE:
        return described[1]
    if kind is dict:
        return dict(zip(described[1], [result_from(item, given, through) for item in described[2]]))
    return kind([result_from(item, given, through) for item in described[1]])
