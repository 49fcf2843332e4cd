"""Follows the axes of tensors through one evaluation: what an operation makes of the dims that it is given.

The mode of the run hands over each call of a torch function, with its result. Rules (`views.py`, `products.py`, `reductions.py`) say what
its dims are made of; a function without a rule is elementwise where its result has the shape that its tensors broadcast to. Of anything
else the axes are unknown, and nothing is said of what is unknown.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Callable, Container, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ...protocol import FileSpan
from ..torch_calls import argument, is_named_in_place
from ..trace.frames import Frames
from ..trace.layer_inputs import outermost_layer
from ..trace.provenance import INPUT as INPUT_NODE
from ..trace.provenance import tensors_in
from ..trace.value_summary import ORIGIN
from .evidence import names_steps, note_names, note_positions
from .factors import FEATURES, INPUT, UNKNOWN, Axis, Dim, Dims, Tear, is_known, new_dim, note_used, roots_of, size_of, whole

Tensor = torch.Tensor
AXES = "_shapelens_axes"
_MADE = ("rand", "randn", "randint", "normal", "ones", "zeros", "full", "empty", "rand_like", "randn_like", "arange")
MOST_EVENTS = 60
LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu", "multi_head_attention_forward")
MIXES = {
    "scaled_dot_product_attention", "softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod", "layer_norm", "sum", "amax",
    "logsumexp", "norm", "mean", "std", "var", *LAYERS,
}  # fmt: skip
"""The operations of which it is told that they put samples together."""

_plainly = torch._C.DisableTorchFunction


class KnownDims:
    """The knowledge of a tensor: its dims, what happened on the way to it, and the dim that a softmax made a distribution of."""

    __slots__ = ("are_scores", "dims", "events", "softmax")

    def __init__(
        self, dims: Dims, events: FrozenSet["AxisEvent"] = frozenset(), softmax: Optional["Softmax"] = None, are_scores: bool = False
    ) -> None:
        self.dims = dims
        self.events = events
        self.softmax = softmax
        self.are_scores = are_scores  # a product of two tensors that follow from inputs: queries and keys

    def __deepcopy__(self, memo: Dict[int, Any]) -> "KnownDims":
        return self  # It is an attribute of tensors, which user code copies and saves.

    def __reduce__(self) -> Tuple[Any, ...]:
        return KnownDims, ((),)


class Softmax(NamedTuple):
    """A softmax of attention's scores over a dim, whose weights some product is about to sum over."""

    place: int  # of the dim
    span: Optional[FileSpan]
    call: "TorchCall"
    layer: Any


class AxisEvent:
    """Something that happened to axes at an expression of the user's."""

    def __init__(self, kind: str, call: "TorchCall", span: Optional[FileSpan], dim: Optional[int] = None) -> None:
        self.kind = kind  # "torn", "mix" or "softmax"
        self.operation = call.name
        self.tensors: List[Tensor] = [*call.tensors[:1], *call.results[:1]]
        self.span = span
        self.dim = dim
        self.tear: Optional[Tear] = None
        self.axes: FrozenSet[Axis] = frozenset()  # whose numbers are mixed
        self.dims: Dims = call.tracking.dims_of(call.tensors[0]) if call.tensors else ()
        self.layer: Any = None  # the layer of torch's whose code ran


class TorchCall(NamedTuple):
    """A call of a torch function, with what it gave."""

    tracking: "Tracking"
    name: str
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    tensors: List[Tensor]
    results: List[Tensor]

    def argument(self, index: int, *names: str, default: Any = None) -> Any:
        """The argument at a position or of one of these names."""
        return argument(self.args, self.kwargs, index, *names, default=default)

    def dims(self, tensor: Tensor) -> Dims:
        """Returns the axes of a tensor's dims."""
        return self.tracking.dims_of(tensor)


Rule = Callable[[TorchCall], Optional[Sequence[Dims]]]  # the dims of each tensor of the result; None where the default has to do
RULES: Dict[str, Rule] = {}


def rule(names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for functions of these names."""

    def register(function: Rule) -> Rule:
        for name in names.split():
            RULES[name] = function
        return function

    return register


class Tracking:
    """The axes of one evaluation. `names` are the sizes of the example's named dims, each of which only that dim has.

    samples: the names of those of which it is known that they are the samples of a batch.
    """

    def __init__(self, names: Dict[str, int], frames: Frames, *, samples: Container[str] = ()) -> None:
        self.named = {size: Axis(size, INPUT, name=name) for name, size in names.items()}
        for axis in self.named.values():
            axis.is_steps, axis.is_samples = names_steps(axis.name), axis.name in samples
        self.events: List[AxisEvent] = []
        self._mixes: Dict[Tuple[Any, ...], AxisEvent] = {}  # by what is told of them: a loop and a block of many layers repeat themselves
        self._names_noted = 0
        self.inputs: Dict[Tuple[int, int], Axis] = {}  # by place and size
        self._frames = frames
        self._sources: FrozenSet[AxisEvent] = frozenset()

    # --- what is known of tensors ---

    def traced(self, tensor: Tensor) -> KnownDims:
        """Returns the known dims of a tensor; one that is met for the first time has axes of its own."""
        found = tensor.__dict__.get(AXES)
        if isinstance(found, KnownDims) and tuple(map(size_of, found.dims)) == tuple(tensor.shape):
            return found
        made = KnownDims(self._first_dims(tensor))
        tensor.__dict__[AXES] = made
        return made

    def dims_of(self, tensor: Tensor) -> Dims:
        """Returns the axes of a tensor's dims."""
        return self.traced(tensor).dims

    def _first_dims(self, tensor: Tensor) -> Dims:
        shape = tuple(tensor.shape)
        if not self._is_input(tensor):
            return tuple([new_dim(size, FEATURES) for size in shape])
        return self._input_dims(shape)

    def _input_dims(self, shape: Tuple[int, ...]) -> Dims:
        return tuple([self._input_dim(place, size) for place, size in enumerate(shape)])

    def _is_input(self, tensor: Tensor) -> bool:
        if isinstance(tensor, torch.nn.Parameter):
            return False
        return tensor.__dict__.get(ORIGIN) is INPUT_NODE

    def _input_dim(self, place: int, size: int) -> Dim:
        if size == 1:
            return ()
        axis = self.named.get(size) or self.inputs.setdefault((place, size), Axis(size, INPUT))
        return whole(axis)

    # --- what happens ---

    def event(self, kind: str, call: TorchCall, axes: Iterable[Axis], *, dim: Optional[int] = None, tear: Optional[Tear] = None) -> None:
        """Note that something happened to axes of inputs, at the expression that runs."""
        found = frozenset(axes)
        if not found and tear is None:
            return
        span, layer = self._frames.innermost(), outermost_layer()
        key = kind, call.name, span, dim, id(layer), found
        event = self._mixes.get(key) if tear is None else None
        if event is None:
            if len(self.events) >= MOST_EVENTS:
                return
            event = AxisEvent(kind, call, span, dim)
            event.axes, event.tear, event.layer = found, tear, layer
            if tear is None:
                self._mixes[key] = event
            self._note_names(found if kind == "mix" else ())
            self.events.append(event)
        self._sources |= {event}

    def _note_names(self, axes: Iterable[Axis]) -> None:
        sizes = [axis.size for axis in {*self.named.values(), *self.inputs.values()}]
        for axis in axes:
            if sizes.count(axis.size) < 2:  # Else a variable of that size may be another dim's.
                note_names(axis, self._frames.is_user_frame)

    def softmax_over_another(self, softmax: Softmax, dims: Dims) -> None:
        """A product sums over another dim of attention's weights than the softmax was over."""
        event = AxisEvent("softmax", softmax.call, softmax.span, softmax.place)
        event.dims, event.axes, event.layer = dims, roots_of(dims), softmax.layer
        if event.axes and len(self.events) < MOST_EVENTS:
            self.events.append(event)
            self._sources |= {event}

    def mixed(self, call: TorchCall, tensor: Tensor, dim: int) -> None:
        """The numbers along a dim are put into one, or depend on each other from now on."""
        dims = self.dims_of(tensor)
        if not dims or not -len(dims) <= dim < len(dims):
            return
        note_used(dims[dim])
        axes = roots_of([dims[dim]]) if is_known([dims[dim]]) else frozenset()
        if call.name in MIXES:
            self.event("mix", call, axes, dim=dim % len(dims))
        elif axes and self._names_noted < MOST_EVENTS:
            self._names_noted += 1
            self._note_names(axes)

    def observed(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """An operation has run: note what its result is made of."""
        with _plainly():
            if name == "__iter__":
                name, result = "unbind", list(copy(result))  # An iterator over a tuple, of which the copy is used up.
            results = list(tensors_in(result, 64))
            if not results:
                return
            call = TorchCall(self, name, args, kwargs, list(tensors_in((args, kwargs), 64)), results)
            given = [self.traced(tensor) for tensor in call.tensors]
            self._sources = frozenset().union(*[each.events for each in given])
            try:
                dims = self._made(call)
            except Exception:  # A rule that does not know this form of the call: nothing is known of the result.
                dims = None
            softmax, are_scores = self._softmax(call, given), self._are_scores(call, given)
            for number, tensor in enumerate(results):
                made = dims[number] if dims is not None and number < len(dims) else None
                if made is None or tuple(map(size_of, made)) != tuple(tensor.shape):
                    roots = roots_of([dim for each in given for dim in each.dims])
                    made = tuple([new_dim(size, UNKNOWN, roots) for size in tensor.shape])
                tensor.__dict__[AXES] = KnownDims(made, self._sources, softmax, are_scores)

    def _made(self, call: TorchCall) -> Optional[Sequence[Dims]]:
        own = RULES.get(call.name)
        if own is not None:
            found = own(call)
            if found is not None:
                return found
        if is_named_in_place(call.name) and call.results and call.tensors and call.results[0] is call.tensors[0]:
            return [combined(call, [each for each in call.tensors if each.dim() <= call.results[0].dim()], tuple(call.results[0].shape))]
        if not call.tensors and call.name in _MADE and self._frames.called_by_example():
            return [self._input_dims(tuple(tensor.shape)) for tensor in call.results]
        if not call.tensors:
            return [tuple([new_dim(size, FEATURES) for size in tensor.shape]) for tensor in call.results]
        try:
            shape = tuple(torch.broadcast_shapes(*[tensor.shape for tensor in call.tensors]))  # type: ignore[no-untyped-call]
        except RuntimeError:
            return None
        if call.name in NOT_ELEMENTWISE or any(tuple(tensor.shape) != shape for tensor in call.results):
            return None
        return [combined(call, call.tensors, shape)] * len(call.results)

    def _softmax(self, call: TorchCall, given: List[KnownDims]) -> Optional[Softmax]:
        """Returns the softmax of which a tensor is still a distribution: masks, dropout and casts leave it one."""
        if call.name in ("softmax", "softmax_") and call.tensors:
            dim = call.argument(1, "dim")
            dims = given[0].dims
            if type(dim) is int and -len(dims) <= dim < len(dims) and is_known(dims) and given[0].are_scores:
                return Softmax(dim % len(dims), self._frames.innermost(), call, outermost_layer())
        if call.name in _KEEPS_DISTRIBUTION and given:
            return given[0].softmax
        return None

    def _are_scores(self, call: TorchCall, given: List[KnownDims]) -> bool:
        """True if the result are scores of queries and keys, scaled or masked perhaps."""
        if call.name in _PRODUCTS:
            return len(given) == 2 and all(roots_of(each.dims) for each in given)
        return call.name in _KEEPS_SCORES and any(each.are_scores for each in given)


_PRODUCTS = ("matmul", "__matmul__", "bmm", "einsum")
_ADDS = ("add", "__add__", "__radd__", "__iadd__", "add_")
_KEEPS_SCORES = {
    "masked_fill", "masked_fill_", "where", "sub", "__sub__", "__isub__", "sub_", "mul", "__mul__", "__rmul__", "__imul__", "mul_", "div",
    "__truediv__", "true_divide", "div_", "__itruediv__", "float", "to", "type_as", "view", "reshape", "contiguous", "clamp", "tanh",
    "transpose", "permute", *_ADDS,
}  # fmt: skip
_KEEPS_DISTRIBUTION = {"masked_fill", "dropout", "to", "type_as", "float", "half", "contiguous", "clone"}
NOT_ELEMENTWISE = {"inverse", "svd", "cholesky", "qr", "sort", "argsort", "rfft", "fft", "ifft", "as_strided", "lstsq", "solve", "pinv"}


def combined(call: TorchCall, tensors: Sequence[Tensor], shape: Sequence[int]) -> Dims:
    """The dims of what tensors broadcast to: those that are known best."""
    found: List[Dim] = []
    for place, size in enumerate(shape):
        given = []
        for tensor in tensors:
            own = tensor.dim() - len(shape) + place
            if own >= 0 and tensor.shape[own] == size and size != 1:
                given.append(call.dims(tensor)[own])
        found.append(best(given, size))
    if call.name in _ADDS and len(tensors) == 2:
        note_positions([call.dims(tensor) for tensor in tensors], tuple(found))
    return tuple(found)


def best(given: Sequence[Dim], size: int) -> Dim:
    """Of dims that meet, the one whose axes stem from inputs; a known one before an unknown one."""
    if not given:
        return new_dim(size, FEATURES)
    return max(given, key=lambda dim: (bool(roots_of([dim])) and is_known([dim]), bool(roots_of([dim])), len(dim)))


class State:
    """The tracking that is under way; None where axes are not asked for. may_mix: something ran that may mix samples."""

    tracking: Optional[Tracking] = None
    may_mix = False


state = State()


def _functions(names: str) -> Set[Any]:
    owners = (torch, torch.nn.functional, Tensor, torch._C._VariableFunctions)
    return {getattr(owner, name) for owner in owners for name in names.split() if hasattr(owner, name)}


# What may put the numbers of several samples together. An example that runs none of it, and no odd view, need not be followed.
MAY_MIX = _functions(
    "softmax log_softmax softmin normalize cumsum cumprod logsumexp norm amax sum mean std var scaled_dot_product_attention"
    " multi_head_attention_forward lstm gru rnn_tanh rnn_relu"
)
