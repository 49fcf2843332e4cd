"""Shapes of operations that were computed before: the meta kernels of many are Python, and cost twenty times what looking them up does.

The key is what a result's shape, stride and dtype depend on: the function, the same of each tensor, the numbers. Functions that make new
tensors are remembered, and those that change a tensor in place: on the meta device that changes nothing. What gives a view runs as it is.
"""

from __future__ import annotations

import base64
import contextlib
import io
import pickle
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Key = Tuple[Any, ...]

MOST_KEYS = 20_000
ON_META = "meta"
_FIRST = "first"  # the result is the first argument, which is as it was
_ALIAS = "alias"  # the result shares memory with an argument, or is of another kind than a tensor
_PLAIN = (Tensor, torch.nn.Parameter)
VALUES = (int, float, bool, str, type(None), torch.dtype, torch.memory_format)

_FUNCTIONAL = """
linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d layer_norm batch_norm group_norm
instance_norm rms_norm normalize relu relu6 gelu silu mish elu selu celu leaky_relu hardswish hardsigmoid hardtanh softplus
softsign tanhshrink logsigmoid sigmoid tanh softmax log_softmax softmin glu prelu dropout dropout1d dropout2d dropout3d
alpha_dropout max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d interpolate upsample pad unfold fold embedding
scaled_dot_product_attention pixel_shuffle pixel_unshuffle grid_sample cosine_similarity one_hot local_response_norm lp_pool2d
"""
_TENSOR = """
add sub mul div __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ __rpow__ __neg__ __matmul__
__rmatmul__ true_divide pow matmul mm bmm addmm baddbmm mv dot einsum exp log log2 log1p sqrt rsqrt square abs neg reciprocal
sigmoid tanh relu softmax log_softmax sin cos erf clamp clip clamp_min clamp_max maximum minimum mean sum prod var std norm amax
amin logsumexp cumsum cumprod where cat concat stack roll flip lerp rsub addcmul addcdiv triu tril outer conv1d conv2d conv3d
layer_norm group_norm batch_norm round floor ceil sign eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__ logical_and
logical_or logical_not __and__ __or__ __invert__ bitwise_and bitwise_or masked_fill argmax argmin gather index_select
repeat reshape contiguous clone
"""

_IN_PLACE = """
add_ sub_ mul_ div_ pow_ neg_ abs_ exp_ log_ sqrt_ rsqrt_ square_ reciprocal_ clamp_ clamp_min_ clamp_max_ fill_ zero_ uniform_ normal_
exponential_ log_normal_ cauchy_ geometric_ bernoulli_ random_ erf_ erfinv_ relu_ sigmoid_ tanh_ floor_ ceil_ round_ trunc_ masked_fill_
addcmul_ addcdiv_ lerp_ copy_
"""


def _functions() -> Iterator[Any]:
    for name in _FUNCTIONAL.split():
        yield getattr(F, name, None)
    for name in _TENSOR.split():
        yield getattr(torch, name, None)
        yield getattr(Tensor, name, None)
    for name in _IN_PLACE.split():
        yield getattr(Tensor, name, None)
    yield torch.functional.einsum
    yield torch.functional.norm


# Of these, what only changes the numbers that a parameter holds, by how many numbers it takes.
_FILLING = {Tensor.add_: 1, Tensor.sub_: 1, Tensor.mul_: 1, Tensor.div_: 1, Tensor.fill_: 1, Tensor.zero_: 0, Tensor.erfinv_: 0}
_FILLS = {*_FILLING, Tensor.uniform_, Tensor.clamp_}
_ORDER = [function for function in dict.fromkeys(_functions()) if function is not None]
_REMEMBERED = {function: number for number, function in enumerate(_ORDER)}
_table: Dict[Key, Any] = {}
_new: List[Key] = []  # what this process has added to what it was forked with


def key_of(func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Key]:
    """Returns what tells this call from others; None for one that is not remembered, as it has real tensors or arguments of other kinds,
    say.
    """
    if func not in _REMEMBERED or state.off or torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    parts: List[Any] = [_REMEMBERED[func], torch.is_grad_enabled(), torch.get_default_dtype()]
    if not add_arguments(parts, args, kwargs):
        return None
    return tuple(parts) if ON_META in parts and not (args and type(args[0]) in _PLAIN and not args[0].is_meta) else None


def only_fills(func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """True if a call does no more than change what a parameter holds: most initialisers are made of such calls."""
    if func not in _FILLS:
        return False
    given = [*args[1:], *kwargs.values()]
    if func in _FILLING:
        fits = not kwargs and len(given) == _FILLING[func]
    elif func is Tensor.uniform_:
        fits = len(given) == 2 and not kwargs and given[0] <= given[1]
    else:
        fits = func is Tensor.clamp_ and 0 < len(given) <= 2 and kwargs.keys() <= {"min", "max"}
    parameter = args[0] if fits else None
    if type(parameter) is not torch.nn.Parameter or torch.is_grad_enabled():
        return False
    plain = parameter.is_meta and parameter.dtype.is_floating_point and parameter.layout is torch.strided
    return plain and all(type(number) in (int, float) for number in given)


def signature_of(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Key]:
    """Returns what shapes, strides, dtypes and numbers there are in arguments; None where there is something else that may count."""
    parts: List[Any] = [torch.get_default_dtype()]
    return tuple(parts) if add_arguments(parts, args, kwargs) else None


def add_arguments(
    parts: List[Any], args: Tuple[Any, ...], kwargs: Dict[str, Any], *, values: Tuple[type, ...] = VALUES, real: bool = True
) -> bool:
    """Add what counts of a call's arguments to a key; whether they are all of kinds that are known: tensors, lists and `values`.

    real: whether real tensors are, too. They go to the meta device where they meet others: only what they look like counts.
    """
    if not _add(parts, args, values, real):
        return False
    for name, value in kwargs.items():
        parts.append(name)
        if not _add(parts, (value,), values, real):
            return False
    return True


def _add(parts: List[Any], given: Any, values: Tuple[type, ...], real: bool) -> bool:
    for value in given:
        kind = type(value)
        if kind in _PLAIN:
            is_meta = value.is_meta
            if value.layout is not torch.strided or not (is_meta or real):
                return False
            if is_meta:
                parts.append(ON_META)
            parts.append((value.shape, value.stride(), value.dtype, value.requires_grad))
        elif kind in values:
            parts.append(kind.__name__)  # 1, 1.0 and True are the same key.
            parts.append(value)
        elif kind is tuple or kind is list or kind is torch.Size:
            parts.append(len(value))
            if not _add(parts, value, values, real):
                return False
        else:
            return False
    return True


def call(key: Key, func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The result of a call, remembered under its key from now on. Raises whatever the function raises."""
    if _table.get(key) == _ALIAS:
        return func(*args, **kwargs)
    looks = _look(args[0]) if args and type(args[0]) in _PLAIN else None
    result = func(*args, **kwargs)
    if len(_table) < MOST_KEYS:
        in_place = looks is not None and result is args[0] and looks == _look(result)
        _table[key] = _FIRST if in_place else _described(result, args, kwargs)
        _new.append(key)
    return result


def known(key: Key, args: Tuple[Any, ...]) -> Optional[Any]:
    """A new result of a call that was made before; None where it has to be made again."""
    found = _table.get(key)
    if found is None or found == _ALIAS:
        return None
    state.used = True
    if found == _FIRST:
        return args[0]
    return made(found)


def additions() -> str:
    """Returns what this process has learnt since this was asked last, for `learn` of another."""
    learnt = [(key, _table[key]) for key in _new]
    _new.clear()
    if not learnt:
        return ""
    stream = io.BytesIO()
    _Pickler(stream).dump(learnt)
    return base64.b64encode(stream.getvalue()).decode()


def learn(text: str) -> None:
    """Take over what another process has learnt; nothing of what cannot be read."""
    try:
        entries = _Unpickler(io.BytesIO(base64.b64decode(text))).load()
    except (pickle.UnpicklingError, ValueError, TypeError, AttributeError, EOFError):
        return
    for key, found in entries:
        if len(_table) < MOST_KEYS:
            _table.setdefault(key, found)


class _Pickler(pickle.Pickler):
    """Dtypes and the like are written by their names: pickle looks for them in any module that has imported torch."""

    def persistent_id(self, value: Any) -> Optional[str]:
        return str(value).rpartition(".")[2] if isinstance(value, (torch.dtype, torch.memory_format)) else None


class _Unpickler(pickle.Unpickler):
    """For keys only: it comes from a process that user code ran in."""

    def persistent_load(self, name: Any) -> Any:
        found = getattr(torch, name, None) if isinstance(name, str) else None
        if isinstance(found, (torch.dtype, torch.memory_format)):
            return found
        raise pickle.UnpicklingError("%s is no part of a key" % (name,))

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch", "Size"):
            return torch.Size
        raise pickle.UnpicklingError("%s.%s is no part of a key" % (module, name))


class NeedsGraph(BaseException):
    """Gradients are asked for, but what they go through was looked up and has no graph: the evaluation has to be made again."""


class _EvaluationState:
    off = False  # nothing is looked up for the rest of this run
    assumes_gradients = False  # nothing goes back through a graph: gradients are taken to be there (gradients.py)
    used = False  # something was, in this evaluation


state = _EvaluationState()


def start() -> None:
    """An evaluation begins."""
    state.used = False


@contextlib.contextmanager
def assuming_gradients() -> Iterator[None]:
    """Nothing goes back through a graph meanwhile: gradients are taken to be there."""
    before, state.assumes_gradients = state.assumes_gradients, True
    try:
        yield
    finally:
        state.assumes_gradients = before


def graph_is_needed() -> None:
    """Gradients are asked for. Raises NeedsGraph where there is no graph for them."""
    if state.used and not state.assumes_gradients:
        state.off = True
        raise NeedsGraph()


def _look(tensor: Tensor) -> Any:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.requires_grad


def _described(result: Any, args: Any, kwargs: Any) -> Any:
    if type(result) is not Tensor or not result.is_meta or result.layout is not torch.strided:
        return _ALIAS
    storage = result.untyped_storage()._cdata
    for value in (*args, *kwargs.values()):
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, Tensor) and (part is result or part.untyped_storage()._cdata == storage):
                return _ALIAS
    return tuple(result.shape), result.stride(), result.dtype, result.requires_grad


def made(found: Any) -> Tensor:
    """A meta tensor of this shape, stride and dtype, that requires a gradient or not, as an operation gives it."""
    shape, stride, dtype, requires_grad = found
    tensor = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
    # No leaf, so that it may be changed in place as the result of an operation may.
    return tensor.copy_(_LEAF) if requires_grad else tensor


_LEAF = torch.empty((), device="meta", requires_grad=True)
