"""Operations that run, but hardly do what their author meant: a broadcast that makes a matrix out of two vectors, say.

`WATCHED` maps torch functions to checks of what they were given; it is asked once an operation, and a check returns at once where nothing
is odd. What is found goes to the server as a `Remark`, with shapes and places; whether it is said is decided there.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

import torch

from ...protocol import Origin, Remark
from ..torch_calls import argument
from ..trace import provenance
from ..trace.dim_names import Sizes, name_shape
from ..trace.frames import Frames
from ..trace.layer_inputs import running_layers, size_setter
from ..trace.recorder import Recorder
from ..trace.tape import tape
from ..trace.value_summary import LAYER, key_of, value_of
from ..unknown import unknown_sizes
from .axis_checks import attends_to_heads, scores_of_heads, torn
from .odd_calls import (
    KEEPS_SHAPE,
    MOST_NODES,
    PICKS,
    REARRANGES,
    Args,
    Check,
    Kwargs,
    OddCall,
    Tensor,
    is_data,
    maker_of,
    node_of,
    plainly,
)

_functional = torch.nn.functional

MOST_REMARKS = 50
OF_AXES = ("torn-view", "attention-axis")
ENOUGH = 4  # random numbers, among which one is likely to be too large where some may be


def _assigned(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`x[i] = …`, which gives nothing that would tell of it."""
    if isinstance(args[0], Tensor):
        tape.assigned(args[0], args[2] if len(args) > 2 else None)
    return _changed(args, kwargs, result)


def _changed(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """An operation in place: what numbers a tensor may hold is not known any more."""
    node = node_of(args[0]) if args and isinstance(args[0], Tensor) else None
    while node is not None and node is not provenance.INPUT:
        node.largest = None
        node = node.parents[0][0] if node.parents and node.operation in PICKS else None
    return None


def _single_by_itself(tensor: Tensor) -> bool:
    """True if the last dim of a tensor, of size 1, is that of an input or of a layer's output, so that nobody asked for it here.

    A dim made by `unsqueeze`, `keepdim=True`, `[:, None]` or a view is there for the sake of a broadcast.
    """
    node = node_of(tensor)
    for _ in range(MOST_NODES):
        if node is None:
            return False
        if node is provenance.INPUT or node.operation in ("linear", "gather", "matmul", "__matmul__", "mm", "bilinear"):
            return True
        last = len(node.result) - 1
        if node.module is not None and size_setter(node.module, last, len(node.result)):
            return True
        if node.operation in REARRANGES - KEEPS_SHAPE:
            return False
        same = [parent for parent, shape in node.parents if shape == node.result]
        if not same:
            return False
        node = same[0]
    return False


# --- the checks ---


def _comparison(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    return _outer_product(args, kwargs, result) or _compared(args, kwargs, result)


def _outer_product(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`[N, 1] - [N]`: the vector is put along the other's last dim, and the result is `[N, N]`."""
    first, second = args[0] if args else kwargs.get("input"), args[1] if len(args) > 1 else kwargs.get("other")
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return None
    with plainly():
        return _outer(first, second) if first.dim() != second.dim() else None


def _outer(first: Tensor, second: Tensor) -> Optional[OddCall]:
    high, low = (first, second) if first.dim() > second.dim() else (second, first)
    if high.dim() != low.dim() + 1 or low.dim() == 0 or not high.is_meta:
        return None
    shape = tuple(high.shape)
    if shape[-1] != 1 or shape[:-1] != tuple(low.shape) or type(shape[-2]) is not int or shape[-2] <= 1:
        return None
    # Numbers of the code alone, as bins and frequencies, are laid along data on purpose; a curve and what is fitted to it are both such.
    is_of_data = is_data(low) or not is_data(high)
    return OddCall("outer-product", (first, second), 0 if high is first else 1) if is_of_data and _single_by_itself(high) else None


def _compared(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`pred == target` where the chosen classes keep a dim of size 1: what is right is counted too often."""
    first, second = args[0] if args else kwargs.get("input"), args[1] if len(args) > 1 else kwargs.get("other")
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return None
    with plainly():
        if first.dim() != second.dim() + 1 or first.is_floating_point() or second.is_floating_point():
            return None
        maker, shape = maker_of(first, {"__getitem__", "to", "long", "detach"}), tuple(first.shape)
        odd = maker is not None and maker.operation in _CHOOSES and shape[-1] == 1 and shape[:-1] == tuple(second.shape) != (1,)
        chosen = odd and maker_of(second, REARRANGES) is not maker
        return OddCall("outer-product", (first, second), 0) if chosen else None


_CHOOSES = {"argmax", "argmin", "max", "min", "topk"}


def _outer_loss(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """A loss of `[N, 1]` and `[N]` compares each with each, which no loss wants."""
    first, second = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "target")
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return None
    with plainly():
        if first.dim() == second.dim() or not first.dim() or not second.dim():
            return None
        high, low = (first, second) if first.dim() > second.dim() else (second, first)
        shape = tuple(high.shape)
        odd = shape[-1] == 1 and shape[:-1] == tuple(low.shape) and shape[-2] != 1
        return OddCall("outer-product", (first, second), 0 if high is first else 1) if odd else None


def _stretched_loss(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """A loss whose input and target broadcast: torch itself warns of it. A constant number is a target that is meant for all."""
    first, second = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "target")
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return None
    with plainly():
        if first.shape == second.shape or unknown_sizes.any_unknown([*first.shape, *second.shape]):
            return None
        sizes = first.numel(), second.numel()
        if max(sizes) == 1 or sizes[0] == sizes[1] == math.prod(torch.broadcast_shapes(first.shape, second.shape)):  # type: ignore[no-untyped-call]
            return None  # The same numbers each against its own, as `[1, 8]` and `[8]`.
        if min(sizes) == 1 and not _is_computed(first if sizes[0] == 1 else second):
            return None
        return OddCall("loss-broadcast", (first, second))


def _is_computed(tensor: Tensor) -> bool:
    """True if a single number is the sum or mean of others."""
    node = maker_of(tensor)
    return node is not None and node.operation in ("sum", "mean", "prod", "max", "min")


def _odd_loss(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    return _outer_loss(args, kwargs, result) or _stretched_loss(args, kwargs, result)


def _squeeze(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`squeeze()` takes away every dim of size 1, the batch's too."""
    if len(args) != 1 or kwargs:
        return None
    tensor = args[0]
    with plainly():
        odd = isinstance(tensor, Tensor) and tensor.is_meta and tensor.dim() > 0 and is_data(tensor)
        return OddCall("squeeze-batch", (tensor,)) if odd else None


def _exchanged(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`transpose(1, 1)` exchanges a dim with itself."""
    dims = [argument(args, kwargs, 1, "dim0"), argument(args, kwargs, 2, "dim1")]
    odd = bool(args) and isinstance(args[0], Tensor) and type(dims[0]) is int and dims[0] == dims[1]
    return OddCall("same-dim", (args[0],), dims[0]) if odd else None


def _batch_norm(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    tensor = argument(args, kwargs, 0, "input")
    with plainly():
        if isinstance(tensor, Tensor) and tensor.dim() > 1 and tensor.numel() == tensor.shape[1]:
            return OddCall("norm-single-value", (tensor,))
    return None


def _layer_norm(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    tensor, shape = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "normalized_shape")
    single = isinstance(shape, (tuple, list)) and len(shape) > 0 and all(size == 1 for size in shape)
    return OddCall("norm-single-value", (tensor,)) if single and isinstance(tensor, Tensor) else None


def _group_norm(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    tensor, groups = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "num_groups")
    with plainly():
        if not isinstance(tensor, Tensor) or tensor.dim() < 2 or tensor.numel() != tensor.shape[0] * groups:
            return None
        return OddCall("norm-single-value", (tensor,), tensor.dim() - 1 if tensor.dim() > 2 else None)


def _softmax(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    tensor, dim = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "dim")
    if not isinstance(tensor, Tensor):
        return None
    if dim is None:
        return OddCall("softmax-dim", (tensor,))
    of_heads = scores_of_heads(tensor, dim)
    if of_heads is not None:
        return of_heads
    with plainly():
        if not tensor.dim() or tensor.shape[dim] != 1:
            return None
        node, dim = node_of(tensor), dim % tensor.dim()
        setter = node is not None and node.module is not None and size_setter(node.module, dim, tensor.dim())
        return OddCall("softmax-single-value", (tensor,), dim) if setter else None


def _cross_entropy(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    return _class_numbers(args, kwargs) or _loss_of(args, kwargs, {"softmax", "Softmax", "Softmax2d"})


def _logits_entropy(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    return _loss_of(args, kwargs, {"sigmoid", "sigmoid_", "Sigmoid", "softmax", "Softmax"})


def _probabilities_entropy(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    return _loss_of(args, kwargs, {"linear", "Linear", "log_softmax", "LogSoftmax"})


def _nll(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    return _class_numbers(args, kwargs) or _loss_of(args, kwargs, _NO_LOG_PROBABILITIES)


_NO_LOG_PROBABILITIES = {"softmax", "Softmax", "Softmax2d", "sigmoid", "Sigmoid", "linear", "Linear", "relu", "ReLU"}


def _loss_of(args: Args, kwargs: Kwargs, operations: Set[str]) -> Optional[OddCall]:
    tensor = argument(args, kwargs, 0, "input")
    if not isinstance(tensor, Tensor):
        return None
    with plainly():
        maker = maker_of(tensor)
        return OddCall("loss-input", (tensor,), given=maker.operation) if maker is not None and maker.operation in operations else None


def _class_numbers(args: Args, kwargs: Kwargs) -> Optional[OddCall]:
    """Random numbers of classes that go further than there are scores for."""
    tensor, target = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "target")
    if not isinstance(tensor, Tensor) or not isinstance(target, Tensor):
        return None
    with plainly():
        if tensor.dim() == 0 or _largest(target) == argument(args, kwargs, 4, "ignore_index"):
            return None
        return _too_large(tensor, target, tensor.shape[1 if tensor.dim() > 1 else 0])


def _largest(indices: Tensor) -> Optional[int]:
    """The largest number that random integers may be; None for what is nothing else, and for few of them."""
    maker = maker_of(indices, PICKS)
    largest = maker.largest if maker is not None and not indices.is_floating_point() else None
    return None if largest is None or indices.numel() < ENOUGH or unknown_sizes.any_unknown(indices.shape) else largest


def _too_large(tensor: Tensor, indices: Tensor, count: Any) -> Optional[OddCall]:
    largest = _largest(indices)
    is_too_large = largest is not None and type(count) is int and not unknown_sizes.any_unknown([count]) and largest >= count
    return OddCall("class-index", (tensor, indices), largest=largest) if is_too_large else None


def _embedded(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """Random numbers that look rows of a table up which it does not have."""
    indices, table = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "weight")
    if not isinstance(indices, Tensor) or not isinstance(table, Tensor):
        return None
    with plainly():
        return _too_large(table, indices, table.shape[0]) if table.dim() else None


def _one_hot(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    indices, classes = argument(args, kwargs, 0, "tensor"), argument(args, kwargs, 1, "num_classes", default=-1)
    if not isinstance(indices, Tensor) or type(classes) is not int or classes < 1 or not isinstance(result, Tensor):
        return None
    with plainly():
        return _too_large(result, indices, classes)


def _gathered(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    tensor, dim, indices = (argument(args, kwargs, place, name) for place, name in enumerate(("input", "dim", "index")))
    if not isinstance(tensor, Tensor) or not isinstance(indices, Tensor) or type(dim) is not int:
        return None
    with plainly():
        return _too_large(tensor, indices, tensor.shape[dim]) if -tensor.dim() <= dim < tensor.dim() else None


def _functions(owner: Any, names: str) -> List[Any]:
    return [getattr(owner, name) for name in names.split() if hasattr(owner, name)]


_BINARY = "add sub subtract mul multiply div divide true_divide pow eq ne lt le gt ge maximum minimum"
_OPERATORS = "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__"

WATCHED: Dict[Any, Check] = {}
for _check, _watched in (
    (_outer_product, _functions(torch, _BINARY) + _functions(Tensor, _BINARY + " " + _OPERATORS)),
    (_odd_loss, _functions(_functional, "mse_loss l1_loss smooth_l1_loss huber_loss")),
    (_outer_loss, _functions(_functional, "poisson_nll_loss gaussian_nll_loss soft_margin_loss")),
    (_comparison, _functions(torch, "eq ne") + _functions(Tensor, "eq ne __eq__ __ne__")),
    (_assigned, [Tensor.__setitem__]),
    (_changed, _functions(Tensor, "clamp_ fill_ remainder_ fmod_ masked_fill_ random_ copy_ zero_ sub_ add_ mul_ scatter_")),
    (_squeeze, [torch.squeeze, Tensor.squeeze]),
    (_exchanged, [owner for place in (torch, Tensor) for owner in _functions(place, "transpose swapaxes swapdims")]),
    (_embedded, [_functional.embedding, torch.embedding]),
    (_one_hot, _functions(_functional, "one_hot")),
    (_gathered, [owner for place in (torch, Tensor) for owner in _functions(place, "gather index_select")]),
    (attends_to_heads, _functions(_functional, "scaled_dot_product_attention")),
    (torn, [torch.reshape, *_functions(Tensor, "view reshape view_as reshape_as")]),
    (_batch_norm, [_functional.batch_norm]),
    (_layer_norm, [_functional.layer_norm]),
    (_group_norm, [_functional.group_norm]),
    (_softmax, [owner for place in (_functional, torch, Tensor) for owner in _functions(place, "softmax log_softmax")]),
    (_cross_entropy, [_functional.cross_entropy]),
    (_logits_entropy, _functions(_functional, "binary_cross_entropy_with_logits")),
    (_probabilities_entropy, _functions(_functional, "binary_cross_entropy")),
    (_nll, [_functional.nll_loss]),
):
    WATCHED.update(dict.fromkeys(_watched, _check))


class Remarks:
    """The odd calls of an example, each place once."""

    def __init__(self, frames: Frames, recorder: Recorder) -> None:
        self._frames = frames
        self._recorder = recorder
        self.start_example(0)

    def start_example(self, example: int) -> None:
        """Forget the remarks of the last example."""
        self._example = example
        self._seen: Set[Any] = set()
        self.found: List[Remark] = []

    def add(self, func: Callable[..., Any], odd: OddCall) -> None:
        """Note what a check found, at the expression that is running."""
        trail = self._frames.trail()
        if not trail or len(self.found) >= MOST_REMARKS:
            return
        if odd.code in OF_AXES and not self._frames.is_user_frame(_calling_frame()):
            return  # What a library does with the axes of its tensors is its own affair.
        span = trail[-1]
        key = odd.code, span.file, span.line, span.column
        if key in self._seen:
            return
        self._seen.add(key)
        found = Remark(odd.code, getattr(func, "__name__", ""), span, self._example, dim=odd.dim, given=odd.given, largest=odd.largest)
        with plainly():
            found.inputs = [value_of(key_of(tensor)) for tensor in odd.tensors]
            if odd.code in ("softmax-single-value", "norm-single-value") and odd.dim is not None:
                found.origins = provenance.trace_back(odd.tensors[0], odd.dim, self._recorder)
            maker = maker_of(odd.tensors[0]) if odd.code == "loss-input" else None
            if maker is not None and maker.site >= 0:
                found.origins = [Origin(maker.operation, self._recorder.span_of(maker.site), [], [])]
        layer = next(running_layers(), None)
        found.layer = layer.__dict__.get(LAYER) if layer is not None else None
        self.found.append(found)


def _calling_frame() -> FrameType:
    """The frame that called the function of torch which a check is about: none of torch's, and none of ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] in (__name__.split(".")[0], "torch"):
        frame = frame.f_back
    return frame


def name_remarks(remarks: List[Remark], probes: Sequence[List[Remark]], sizes: Sequence[Sizes]) -> None:
    """Name the dims of what the remarks are about, where the probes came to the same remark. sizes[0] is the run's, then one a probe.

    An outer product that other sizes do not repeat is taken out of the list: two dims of different meaning happened to have one size.
    """
    for remark in list(remarks) if probes else ():
        same = [[other for other in probe if (other.code, other.span) == (remark.code, remark.span)] for probe in probes]
        if not all(same) and remark.code == "outer-product":
            remarks.remove(remark)
        elif all(same):
            for number, value in enumerate(remark.inputs):
                shapes = [found.inputs[number].shape for found in [remark] + [others[0] for others in same]]
                if all(shape is not None and len(shape) == len(shapes[0] or []) for shape in shapes):
                    remark.inputs[number] = replace(value, named=list(name_shape(shapes, sizes)))
