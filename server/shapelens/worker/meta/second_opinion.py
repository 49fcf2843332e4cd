"""The second opinion: an operation that fails on the meta device is tried as eager would do it, on small real tensors.

The meta device has no kernel for some operations, refuses some that eager accepts, and words its complaints poorly. Where the result
depends on values, eager's answer for made-up ones would be a lie, so those operations are left alone.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch

from ..sandbox.exceptions import message_of, traceback_of
from ..trace.provenance import tensors_in
from . import op_cache

Tensor = torch.Tensor
META = torch.device("meta")
MOST_ELEMENTS = 1 << 24  # of all arguments together
MOST_OF_ATTENTION = 1 << 22  # the same, of an attention, whose work grows faster than its arguments
MOST_OPINIONS = 2000  # that are kept: a block that is wrong is often repeated

_opinions: Dict[Any, "Opinion"] = {}


class _Asking:
    is_asked = False


state = _Asking()  # whether eager is asked right now: what that computes is no part of the user's program

_GENERATOR = torch.Generator()  # so that the user's random numbers stay what they are
_DRAWN = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

# By name of the torch function: what is known of their result's shape depends on values, or they are values.
BY_VALUE = {
    "nonzero", "argwhere", "unique", "_unique", "_unique2", "unique_dim", "unique_consecutive", "_unique_impl", "_return_output",
    "masked_select", "bincount", "repeat_interleave", "histogram", "item", "tolist", "numpy", "equal", "allclose", "is_nonzero", "__bool__",
    "__int__", "__float__", "__index__", "__complex__", "__contains__", "__array__", "__len__", "__iter__", "__repr__", "__format__",
    "__getitem__", "__setitem__", "where", "combinations", "nms", "set_", "data", "__set__", "get_device", "masked_scatter",
    "_pack_padded_sequence", "_pad_packed_sequence",
}  # fmt: skip
# What these say never depends on the numbers in their arguments.
BY_SHAPE = {
    "view", "reshape", "permute", "transpose", "t", "swapaxes", "movedim", "flatten", "unflatten", "squeeze", "unsqueeze", "expand",
    "repeat", "cat", "concat", "stack", "hstack", "vstack", "chunk", "split", "tensor_split", "unbind", "narrow", "select", "unfold",
    "roll", "flip", "add", "sub", "mul", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__iadd__", "__isub__",
    "__imul__", "add_", "sub_", "mul_", "matmul", "__matmul__", "mm", "bmm", "linear", "addmm", "baddbmm", "einsum", "layer_norm",
    "batch_norm", "group_norm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "scaled_dot_product_attention", "softmax",
}  # fmt: skip


class Opinion:
    """Holds what eager says of an operation: a result (on the meta device), or the exception that it raises."""

    __slots__ = ("error", "result")

    def __init__(self, result: Any, error: Optional[Exception]) -> None:
        self.result = result
        self.error = error

    def again(self) -> Opinion:
        """The same opinion of another operation that looks alike: its tensors and its exception are new ones."""
        error = self.error
        return Opinion(_moved(self.result, torch.empty_like), error if error is None else type(error)(*error.args))

    def may_be_kept(self) -> bool:
        """True if there can be another one like it: of what torch's Python code raises it also counts where that was."""
        error, traceback = self.error, traceback_of(self.error) if self.error is not None else None
        return error is None or (type(error).__module__ == "builtins" and (traceback is None or traceback.tb_next is None))


def ask(
    func: Callable[..., Any],
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    resize: Optional[Callable[[Tensor], Tensor]] = None,
    cast: Optional[Callable[[torch.dtype], torch.dtype]] = None,
) -> Optional[Opinion]:
    """Eager's opinion; None where the operation is one of values, too large to be tried, or inside of `vmap` or `grad`.

    resize gives a tensor of the size that is to be tried in the place of another, cast the dtype.
    """
    if getattr(func, "__name__", "") in BY_VALUE or _inside_transform():
        return None
    with torch._C.DisableTorchFunction(), torch.no_grad(), warnings.catch_warnings(), _asked():
        warnings.simplefilter("ignore")
        if resize is not None:
            args, kwargs = _moved(args, resize), _moved(kwargs, resize)
        if cast is not None:
            wanted = cast
            args, kwargs = _moved((args, kwargs), lambda tensor: tensor.to(wanted(tensor.dtype)))
        tensors = list(tensors_in((args, kwargs), 64))
        is_attention = getattr(func, "__name__", "") in ("multi_head_attention_forward", "scaled_dot_product_attention")
        if sum(tensor.numel() for tensor in tensors) > (MOST_OF_ATTENTION if is_attention else MOST_ELEMENTS):
            return None
        look = op_cache.signature_of(args, kwargs) if all(tensor.is_meta for tensor in tensors) else None
        opinion = _opinions.get((func, look)) if look is not None else None
        if opinion is None:
            opinion = _formed(func, args, kwargs)
            if not opinion.may_be_kept():
                return opinion
            opinion = opinion.again()  # The exception of the first one holds its frames, and the tensors there.
            if look is None or len(_opinions) >= MOST_OPINIONS:
                return opinion
            _opinions[func, look] = opinion
        return opinion.again()


@contextlib.contextmanager
def _asked() -> Iterator[None]:
    before, state.is_asked = state.is_asked, True
    try:
        yield
    finally:
        state.is_asked = before


def _formed(func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Opinion:
    real = _unset if getattr(func, "__name__", "") in BY_SHAPE else _drawn
    try:
        result = func(*_moved(args, real), **_moved(kwargs, real))
    except Exception as error:
        if isinstance(error, NotImplementedError) and "not implemented for '" in message_of(error):
            error = RuntimeError(message_of(error))  # It refuses a dtype; of no kernel at all it says something else.
        return Opinion(None, error)
    return Opinion(_moved(result, lambda tensor: tensor.to(META)), None)


# What is on the stack of torch.func's transforms, whose tensors are not what they seem to be; None for none.
_inside_transform: Callable[[], Any] = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)


def _unset(tensor: Tensor) -> Tensor:
    """A real tensor with the strides of another, as a view depends on them. Nobody looks at its numbers, so that it costs no time."""
    return _strided(tensor, torch.empty) if tensor.is_meta else tensor.clone()


def _drawn(tensor: Tensor) -> Tensor:
    """As `_unset`, with positive numbers, or zeros where they may be indices."""
    if not tensor.is_meta:
        return tensor.clone()
    if tensor.dtype in _DRAWN:
        return _strided(tensor, lambda size, dtype: torch.empty(size, dtype=dtype).uniform_(0.1, 0.9, generator=_GENERATOR))
    if tensor.dtype.is_complex:
        return _strided(tensor, lambda size, dtype: torch.empty(size, dtype=dtype).normal_(generator=_GENERATOR))
    return _strided(tensor, torch.zeros)


def _strided(like: Tensor, made: Callable[..., Tensor]) -> Tensor:
    """A tensor on numbers that are `made(count, dtype=dtype)`, with the sizes and strides of another."""
    sizes, strides = tuple(like.shape), like.stride()
    length = 0 if 0 in sizes else sum((size - 1) * stride for size, stride in zip(sizes, strides)) + 1
    return made(length, dtype=like.dtype).as_strided(sizes, strides)


def _moved(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return move(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_moved(item, move) for item in value])
    if isinstance(value, (tuple, list)):
        # A torch.return_types result takes its items as one sequence.
        return type(value)([_moved(item, move) for item in value])
    if type(value) is dict:
        return {name: _moved(item, move) for name, item in value.items()}
    return value
