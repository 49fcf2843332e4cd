"""The tape: what `backward` of a program goes back through, told from where its tensors came from (provenance.py), as no graph is kept.

An operation that keeps a tensor for its gradient fails in `backward` where that was changed in place meanwhile, or where it was gone back
through before. What is not sure to be on the way of a gradient, or not known to be kept, is passed over in silence.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ...protocol import FileSpan, Origin
from ..torch_calls import is_named_in_place
from . import saved_tensors
from .frames import Frames
from .provenance import INPUT, Derivation, known_sizes, tape_clock
from .recorder import Recorder
from .value_summary import ORIGIN, STAND_IN

Tensor = torch.Tensor

CHANGED = "one of the variables needed for gradient computation has been modified by an inplace operation"  # as torch words it
SECOND_TIME = "Trying to backward through the graph a second time"  # as torch words it
MOST_NODES = 4000
NEAR = 12  # operations between a loss and what it is added to
# Changed in place as a whole, but for their numbers.
_KEEPS_NUMBERS = {"requires_grad_", "detach_", "rename_", "share_memory_", "squeeze_", "unsqueeze_", "t_", "transpose_", "resize_", "set_"}
_SETS_ITEM = "__setitem__"


class _Change(NamedTuple):
    """An operation that changed the tensor of a node in place, and where."""

    node: Derivation
    operation: str
    span: Optional[FileSpan]
    by: Any = None  # the layer that did it


class Tape:
    """The record of a program's changes in place and backward passes. It follows the program while it is `active`."""

    def __init__(self) -> None:
        self.active = False
        self._forget()

    def _forget(self) -> None:
        self.origins: List[Origin] = []  # the places that have to do with what `go_back` has raised last
        self.optimizers: List[int] = []  # ids of those that were made, in this order
        self.resets_gradients = False  # whether something has set gradients back to zero
        self.adds_up: Optional[FileSpan] = None  # where an optimizer steps in a loop that trains, and that it was not made in
        self._last_step: Tuple[int, Optional[FileSpan]] = -1, None  # the place of an optimizer among them, and where it stepped last
        self.kept: Dict[str, FileSpan] = {}  # where names were made sums of what was gone back through, and keep the graph of it
        self._frames: Optional[Frames] = None
        self._recorder: Optional[Recorder] = None
        self._stale: Dict[int, _Change] = {}  # by the id of a node: it was changed after what used it then
        self._overwritten: Dict[int, _Change] = {}  # the same, of each node that the changed tensor has had since
        # By the id of what operations were given: gone back through, where, and by which `backward` of the program.
        self._freed: Dict[int, Tuple[Any, Optional[FileSpan], int]] = {}
        self.backwards = 0  # how often the program went back
        self._stepped: Dict[int, Tuple[int, Optional[FileSpan]]] = {}  # by the id of a parameter: when an optimizer changed it, and where
        self.reached: Set[int] = set()  # ids of the parameters that have a gradient

    @contextlib.contextmanager
    def watching(self, frames: Frames, recorder: Recorder) -> Iterator[None]:
        """A program is followed meanwhile."""
        self._forget()
        self._frames, self._recorder = frames, recorder
        try:
            with self._switched(True):
                yield
        finally:
            reached = self.reached
            self._forget()
            self.reached = reached

    def aside(self) -> Any:
        """A context in which the tape does not look."""
        return self._switched(False)

    @contextlib.contextmanager
    def _switched(self, active: bool) -> Iterator[None]:
        before, self.active = self.active, active
        tape_clock.on_change = self.gave_back if active else None
        try:
            yield
        finally:
            self.active = before
            tape_clock.on_change = self.gave_back if before else None

    # --- what changes tensors ---

    def gave_back(self, operation: str, tensor: Tensor, arguments: Any, module: Any) -> None:
        """An operation or a layer gave back one of the tensors that it was given."""
        args, kwargs = arguments
        if operation == "detach_":
            other = tensor.__dict__[ORIGIN].copy()
            other.learns, tensor.__dict__[ORIGIN] = False, other
            return
        if module is not None:
            changes = getattr(module, "inplace", False) is True and (getattr(module, "p", None) is None or module.training)
        elif is_named_in_place(operation):
            changes = operation not in _KEEPS_NUMBERS
        else:
            changes = kwargs.get("inplace") is True and operation not in ("dropout", "feature_dropout", "alpha_dropout")
        if changes and any(tensor is each for each in (*args, *kwargs.values())):
            self.changed(operation, tensor, module)

    def assigned(self, tensor: Tensor, value: Any) -> None:
        """`tensor[i] = value`"""
        if not self.active:
            return
        self.changed(_SETS_ITEM, tensor)
        given = value.__dict__.get(ORIGIN) if isinstance(value, Tensor) else None
        for each in (tensor, tensor._base) if given is not None and given.learns else ():
            node = each.__dict__.get(ORIGIN) if each is not None else None
            if node is not None and node is not INPUT:  # Gradients go to what was assigned from now on.
                node.learns, node.written = True, (*node.written, given)

    def changed(self, operation: str, tensor: Tensor, module: Any = None) -> None:
        """A tensor was changed in place, and what it is a view of."""
        span = self._frames.innermost() if self._frames is not None else None
        for each in (tensor, tensor._base):
            node = each.__dict__.get(ORIGIN) if each is not None else None
            if each is None or node is None or node is INPUT:
                continue
            change = _Change(node, operation, span, module)
            self._stale[id(node)] = self._overwritten[id(node)] = change
            other = node.copy()  # What uses the tensor from now on uses this one.
            self._overwritten[id(other)] = change._replace(node=other)
            each.__dict__[ORIGIN] = other

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has changed the parameters that have a gradient."""
        if not self.active or not self.reached:
            return
        tape_clock.time += 1
        span = self._frames.innermost() if self._frames is not None else None
        self._last_step = (self.optimizers.index(id(optimizer)) if id(optimizer) in self.optimizers else len(self.optimizers)), span
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) in self.reached:
                    self._stepped[id(parameter)] = tape_clock.time, span

    def turned(self, optimizers: int, time: int) -> None:
        """A loop has taken a turn that trained. It began when there were so many optimizers, which had made `time` steps."""
        place, span = self._last_step
        if self.active and tape_clock.time > time and place < optimizers and self.adds_up is None:
            self.adds_up = span

    # --- what goes back ---

    def go_back(self, tensors: Sequence[Tensor], *, keeps_graph: bool) -> None:
        """`backward` of some tensors. Raises RuntimeError, as torch words it, where what it needs was changed or is gone."""
        span = self._frames.innermost() if self._frames is not None else None
        self.backwards += 1
        todo = [tensor.__dict__.get(ORIGIN) for tensor in tensors]
        seen: Set[int] = set()
        visited: List[Derivation] = []
        while todo and len(seen) < MOST_NODES:
            node = todo.pop()
            if node is None or not node.learns or id(node) in seen:
                continue
            seen.add(id(node))
            todo += node.written
            if not saved_tensors.is_known(node):
                continue
            freed = self._freed.get(id(node.parents))
            if freed is not None and saved_tensors.keeps_any(node):
                self.origins = [*self._saved(node), _at("backward", freed[1])]
                raise RuntimeError(SECOND_TIME)
            change = self._changed_since(node)
            if change is not None:
                self.origins = [*self._saved(node), _at(change.operation, change.span)]
                raise RuntimeError(CHANGED)
            visited.append(node)
            todo += [parent for parent, _ in node.parents]
        for node in visited:
            if node.module is not None:
                self.reached.update(id(parameter) for parameter in node.module.parameters() if parameter.requires_grad)
            if not keeps_graph:
                self._freed[id(node.parents)] = node.parents, span, self.backwards

    def _changed_since(self, node: Derivation) -> Optional[_Change]:
        """Returns the change of a tensor that an operation keeps; None where there is none."""
        change = self._overwritten.get(id(node)) if saved_tensors.keeps_result(node) else None
        if change is not None:
            return change
        for index in saved_tensors.kept_of_given(node):
            parent = node.parents[index][0] if index < len(node.parents) else None
            while parent is not None:
                change = self._stale.get(id(parent))
                if change is not None and (change.by is None or change.by is not node.module):
                    return change
                parent = parent.parents[0][0] if saved_tensors.is_view(parent) else None
        for parameter in saved_tensors.kept_weights(node):
            stepped = self._stepped.get(id(parameter))
            if stepped is not None and stepped[0] > node.time:
                return _Change(node, "step", stepped[1])
        return None

    def _saved(self, node: Derivation) -> List[Origin]:
        """The operation that needs what was changed, or is gone."""
        span = self._recorder.span_of(node.site) if self._recorder is not None and node.site >= 0 else None
        return [Origin(saved_tensors.name_of(node), span, [], known_sizes(node.result), node.layer)]

    def keeps_graph_of(self, name: str, tensor: Tensor) -> None:
        """Note it where a tensor that nobody went back from was made of one that somebody did: `total += loss`, `loss.backward()`."""
        last: Optional[Derivation] = tensor.__dict__.get(ORIGIN)
        todo, seen = [last], 0
        if last is None or not tensor.requires_grad or id(last.parents) in self._freed or self._recorder is None:
            return
        while todo and seen < NEAR:
            node = todo.pop(0)
            seen += 1
            if node is not None and node.learns:
                if id(node.parents) in self._freed and last.site >= 0:
                    self.kept.setdefault(name, self._recorder.span_of(last.site))
                    return
                todo += [parent for parent, _ in node.parents]

    def has_freed(self, tensor: Tensor, since: int) -> bool:
        """True if `backward` has gone back through a tensor's operation, and freed the tensors kept there. since: `backwards` before
        that."""
        node = tensor.__dict__.get(ORIGIN)
        freed = self._freed.get(id(node.parents)) if node is not None and node.learns and STAND_IN not in tensor.__dict__ else None
        return freed is not None and freed[2] > since

    def requires_gradient(self, tensor: Tensor) -> bool:
        """True if a tensor surely requires a gradient in eager as well."""
        node = tensor.__dict__.get(ORIGIN)
        if not self.active or not tensor.requires_grad or STAND_IN in tensor.__dict__:
            return False
        return tensor.is_leaf if node is None else node.learns and saved_tensors.is_known(node)


def _at(operation: str, span: Optional[FileSpan]) -> Origin:
    return Origin(operation, span, [], [])


tape = Tape()
