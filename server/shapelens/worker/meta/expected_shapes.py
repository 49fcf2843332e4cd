"""The shape that the result of a failed operation would have had, had its arguments fitted: as far as that is known.

A shape is a list of sizes, None where a size is not known. Functions of torch are told apart by their names, as a function and a method of
the same name do the same.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn

from ..torch_calls import argument, factors
from ..trace.provenance import tensors_in
from ..unknown import unknown_sizes

Tensor = torch.Tensor
Shape = Sequence[Optional[int]]
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]


def _words(text: str) -> Set[str]:
    return set(text.split())


SAME = _words(
    """softmax log_softmax gumbel_softmax softmin normalize layer_norm rms_norm group_norm batch_norm instance_norm local_response_norm
    dropout dropout1d dropout2d dropout3d alpha_dropout relu gelu silu elu selu celu leaky_relu prelu hardtanh softplus sigmoid tanh cumsum
    cumprod logcumsumexp flip roll masked_fill clamp clip scatter scatter_add index_add index_copy index_fill scatter_reduce masked_scatter
    tril triu renorm fftshift ifftshift contiguous clone detach to type_as neg abs exp log sqrt rsqrt sin cos nan_to_num"""
)
BINARY = _words(
    """add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow maximum minimum fmax fmin atan2 logaddexp lerp
    addcmul addcdiv where __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__
    __pow__ __rpow__ bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor __and__ __or__ __xor__ hypot cross dist"""
)
COMPARE = _words("eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__ greater less isclose")
MATMUL = _words("matmul mm bmm mv dot __matmul__ addmm baddbmm addbmm")
REDUCE = _words("sum mean prod amax amin norm logsumexp argmax argmin all any std var nanmean nansum count_nonzero")
MOST_UNKNOWN = 2  # sizes of one stand-in: torch counts its bytes in 64 bits
TWO = _words("max min median mode kthvalue std_mean var_mean")

_POOLING = re.compile(r"(?:adaptive_|lp_|fractional_)?(?:max|avg|lp)?_?(?:un)?pool(\d)d")
_POOLING_LAYER = re.compile(r"(?:Adaptive|LP|Fractional)?(?:Max|Avg)?(?:Un)?[pP]ool(\d)d")


def shapes_of(function: Callable[..., Any], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    """The shape of each result of a torch function; None where not even the number of dims is known."""
    name = getattr(function, "__name__", "")
    tensors = list(tensors_in((args, kwargs), 64))
    if not tensors:
        return None
    first = list(tensors[0].shape)
    if name in MATMUL or name == "linear":
        if not all(isinstance(factor, Tensor) for factor in args[: 3 if "add" in name else 2]):
            return None  # Of a product with something unknown not even the number of dims is known.
        left, right = factors(name, tensors) if len(tensors) > 1 else (tensors[0],) * 2
        return [_product(left, right.t() if name == "linear" and right.dim() == 2 else right)]
    if name.endswith(LOSSES):
        return [[] if kwargs.get("reduction", "mean") != "none" else first]
    found = _POOLING.match(name.replace("lp_", ""))
    if found:
        spatial = int(found.group(1))
        return [first[: len(first) - spatial] + [None] * spatial] if len(first) > spatial else None
    if name in _BY_NAME:
        try:
            return _BY_NAME[name](tensors, args, kwargs)
        except (IndexError, TypeError, ValueError, KeyError, AttributeError):
            return None  # Arguments that the function does not take.
    return None


def keeps_first(function: Callable[..., Any]) -> bool:
    """True if the shape of a result is that of the known operand, or follows from the function alone, also where others are unknown."""
    name = getattr(function, "__name__", "")
    return name in _FOLLOWS or name.endswith(LOSSES)


LOSSES = ("_loss", "entropy", "_logits", "kl_div")
_FOLLOWS = (SAME | BINARY | COMPARE | {"view", "reshape", "embedding"}) - {"type_as"}  # whose dtype would be a wrong one
_WHOLE = _words("sum mean prod amax amin norm any all std var max min median nanmean nansum count_nonzero")


def gives_number(function: Callable[..., Any], args: Args, kwargs: Kwargs) -> bool:
    """True if a function gives a single number, whatever the shape of its operands: a sum over all dims, a loss that is reduced."""
    name = getattr(function, "__name__", "")
    if name.endswith(LOSSES):
        return kwargs.get("reduction", "mean") in ("mean", "sum", "batchmean")
    return name in _WHOLE and len(args) == 1 and not kwargs


def dtype_of(function: Optional[Callable[..., Any]], args: Args, kwargs: Kwargs) -> torch.dtype:
    """The dtype of a torch function's result; None: of any function."""
    name = getattr(function, "__name__", "")
    tensors = list(tensors_in((args, kwargs), 64))
    if name in COMPARE:
        return torch.bool
    if name in ("argmax", "argmin"):
        return torch.int64
    if name == "embedding" and len(tensors) > 1:
        return tensors[1].dtype
    floating = [tensor.dtype for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    return (floating or [tensor.dtype for tensor in tensors] or [torch.get_default_dtype()])[0]


def broadcast(shapes: Sequence[Sequence[Any]]) -> List[Optional[int]]:
    """The shape that these broadcast to; None where two sizes differ and neither is 1."""
    out: List[Optional[int]] = []
    for back in range(1, max([len(shape) for shape in shapes] or [0]) + 1):
        sizes = {shape[-back] for shape in shapes if len(shape) >= back} - {1}
        out.insert(0, 1 if not sizes else sizes.pop() if len(sizes) == 1 else None)
    if None in out and len(shapes) == 2:  # `[B, C]` beside `[B, C, H, W]`: it lacks dims at its end.
        short, long = sorted(map(list, shapes), key=len)
        out = long if short and len(short) < len(long) and short == long[: len(short)] else out
        weights = [shape for shape in (short, long) if sum(size != 1 for size in shape) < 2]
        if len(weights) == 1:  # Numbers along one dim, as a scale for each channel, take after what they belong to.
            out = long if weights[0] is short else [*long[: len(long) - len(short)], *short]
    return out


def _product(left: Tensor, right: Tensor) -> List[Optional[int]]:
    """[..., n, k] @ [..., k, m] → [..., n, m], with a vector on either side as in numpy.

    Where a factor fits once it is transposed, that is what was forgotten.
    """
    a, b = list(left.shape), list(right.shape)
    if len(a) < 2 or len(b) < 2:
        return [*(a[:-1] if len(b) < 2 else b[:-2]), *(b[-1:] if len(b) > 1 else [])]
    rows, columns = a[-2], b[-1]
    if a[-1] == b[-1]:
        columns = b[-2]
    elif a[-2] == b[-2]:
        rows = a[-1]
    return [*broadcast([a[:-2], b[:-2]]), rows, columns]


def _sizes(args: Args, kwargs: Kwargs, *names: str) -> List[int]:
    """The sizes given as `view(2, 3)` or `view((2, 3))`."""
    given = args[1:] if len(args) > 1 else (next(kwargs[name] for name in names if name in kwargs),)
    return list(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else list(given)


def _viewed(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    """The sizes that were asked for, as far as the tensor has them too: the others are those that do not fit.

    Where these are too many for a stand-in it is as likely the tensor that does not fit, as in `qkv(x).reshape(B, N, 3, heads, -1)`: then a
    -1 stands for what is not known, or the largest of them do.
    """
    own = list(tensors[0].shape)
    asked = _sizes(args, kwargs, "size", "shape")
    left = sorted({size for size in asked if size not in own}, reverse=True)
    doubted = left if sum(size in left for size in asked) <= MOST_UNKNOWN else [-1] if -1 in left else left[:1]
    out: List[Optional[int]] = [None if size in doubted else size for size in asked]
    if asked and asked[0] == -1 and own and len(asked) > 1:
        out[0] = own[0]
    if len(asked) == len(own) and None not in out:
        out = [None] * len(out)
    return [out]


def _rank_and_dim(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[Tuple[int, int]]:
    """The one number of dims of tensors that are put together, and the dim to do it along; None where there is no such."""
    ranks = {tensor.dim() for tensor in tensors}
    dim = argument(args, kwargs, 1, "dim", "axis", default=0)
    return (ranks.pop(), dim) if len(ranks) == 1 and isinstance(dim, int) else None


def _joined(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    """Along the dim that is asked for; along the only one in which the tensors differ, where they agree in that. Of batches that differ, as
    an earlier one was joined along the batch or has its dims in another order, neither that nor the dim that is asked for is known."""
    found = _rank_and_dim(tensors, args, kwargs)
    if found is None:
        return None
    rank, dim = found
    if not -rank <= dim < rank:
        return [[None] * rank]
    columns = [[tensor.shape[index] for tensor in tensors] for index in range(rank)]
    differing = [index for index, sizes in enumerate(columns) if len(set(sizes)) > 1]
    others = [index for index in differing if index != dim % rank]
    is_wrong_elsewhere = differing == [0] or (0 in others and len(others) > 1)
    if is_wrong_elsewhere and dim % rank and not unknown_sizes.any_unknown(columns[0]):
        unknown = {*differing, dim % rank}
        return [[None if index in unknown else sizes[0] for index, sizes in enumerate(columns)]]
    dim = differing[0] if len(differing) == 1 and not unknown_sizes.any_unknown(columns[differing[0]]) else dim
    return [[sum(sizes) if index == dim % rank else sizes[0] if len(set(sizes)) == 1 else None for index, sizes in enumerate(columns)]]


def _stacked(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    found = _rank_and_dim(tensors, args, kwargs)
    if found is None:
        return None
    rank, dim = found
    sizes = [{tensor.shape[index] for tensor in tensors} for index in range(rank)]
    out: List[Optional[int]] = [column.pop() if len(column) == 1 else None for column in sizes]
    out.insert(dim % (rank + 1), len(tensors))
    return [out]


def _permuted(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    own = list(tensors[0].shape)
    dims = _sizes(args, kwargs, "dims")
    return [[own[dim] if -len(own) <= dim < len(own) and len(dims) == len(own) else None for dim in dims]]


def _same_rank(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    return [[None] * tensors[0].dim()]


def _one_more(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    return [[None] * (tensors[0].dim() + 1)]


def _reduced(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    dims = argument(args, kwargs, 1, "dim", "axis")
    if dims is None:
        return [[]]
    count = len(dims) if isinstance(dims, (tuple, list)) else 1
    keeps = argument(args, kwargs, 2, "keepdim", "keepdims", default=False)
    return [[None] * (tensors[0].dim() if keeps is True else max(tensors[0].dim() - count, 0))]


def _attended(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    return [[*tensors[0].shape[:-1], *tensors[2 if len(tensors) > 2 else 0].shape[-1:]]]


def _reduced_twice(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    return _reduced(tensors, args, kwargs) * 2 if len(args) > 1 else None


def _same_rank_twice(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    return _same_rank(tensors, args, kwargs) * 2 if len(args) > 1 else None


def _split(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    own = list(tensors[0].shape)
    sizes = argument(args, kwargs, 1, "split_size_or_sections", "split_size", "split_sizes")
    dim = argument(args, kwargs, 2, "dim", default=0)
    if not isinstance(sizes, (tuple, list)):
        return None
    if not -len(own) <= dim < len(own):
        return [[None] * len(own) for _ in sizes]
    return [[None if index == dim % len(own) else size for index, size in enumerate(own)] for _ in sizes]


def _chunked(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    return [[None] * tensors[0].dim() for _ in range(int(argument(args, kwargs, 1, "chunks")))]


def _expanded(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    own = list(tensors[0].shape)
    asked = _sizes(args, kwargs, "size")
    behind = len(asked) - len(own)
    return [[(own[index - behind] if index >= behind else None) if size == -1 else size for index, size in enumerate(asked)]]


def _convolved(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    own, weight = list(tensors[0].shape), tensors[1]
    spatial = weight.dim() - 2
    return [[*_batch(own, spatial), weight.shape[0], *[None] * spatial]]


def _batch(own: List[int], spatial: int) -> List[int]:
    """The batch of what a convolution gets, if it has one: an input of too few or too many dims most likely has."""
    return [] if len(own) == spatial + 1 else own[:1]


def _convolved_transposed(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    groups = argument(args, kwargs, 6, "groups", default=1)
    return [[*list(tensors[0].shape[:1]), tensors[1].shape[1] * groups, *[None] * (tensors[1].dim() - 2)]]


def _einsum(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    inputs, arrow, output = str(args[0]).replace(" ", "").partition("->")
    sizes: Dict[str, Set[Any]] = {}
    for letters, tensor in zip(inputs.split(","), tensors):
        if "." in letters:
            return None
        for letter, size in zip(letters, tensor.shape):
            sizes.setdefault(letter, set()).add(size)
    if not arrow:
        output = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    return [[next(iter(sizes[letter])) if len(sizes.get(letter, ())) == 1 else None for letter in output]]


def _embedded(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    return [[*tensors[0].shape, tensors[1].shape[-1]]]


def _gathered(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    index = list(tensors[1].shape)
    return [index + [1] * (tensors[0].dim() - len(index))]  # `[B]` for `[B, 1]`


def _resized(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> List[Shape]:
    own = list(tensors[0].shape)
    return [own[:2] + [None] * (len(own) - 2)]


def _indexed(tensors: List[Tensor], args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    """x[i] as it would be with an i inside of x."""
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    inside = tuple([0 if isinstance(part, int) and not isinstance(part, bool) else part for part in index])
    try:
        return [list(tensors[0][inside].shape)]
    except (IndexError, RuntimeError, TypeError):
        return None


_BY_NAME: Dict[str, Callable[[List[Tensor], Args, Kwargs], Optional[List[Shape]]]] = {
    **dict.fromkeys(TWO, _reduced_twice),
    **dict.fromkeys(("topk", "sort", "cummax", "cummin"), _same_rank_twice),
    **dict.fromkeys(REDUCE, _reduced),
    **dict.fromkeys(BINARY | COMPARE, lambda tensors, args, kwargs: [broadcast([tensor.shape for tensor in tensors])]),
    **dict.fromkeys(SAME, lambda tensors, args, kwargs: [list(tensors[0].shape)]),
    "scaled_dot_product_attention": _attended,
    **dict.fromkeys(("view", "reshape"), _viewed),
    **dict.fromkeys(("cat", "concat", "concatenate"), _joined),
    "stack": _stacked,
    "permute": _permuted,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "pad", "repeat_interleave"), _same_rank),
    "unsqueeze": _one_more,
    "unbind": lambda tensors, args, kwargs: None,
    **dict.fromkeys(("split", "tensor_split"), _split),
    "chunk": _chunked,
    "expand": _expanded,
    **dict.fromkeys(("expand_as", "view_as", "reshape_as"), _gathered),
    **{"conv%dd" % n: _convolved for n in (1, 2, 3)},
    **{"conv_transpose%dd" % n: _convolved_transposed for n in (1, 2, 3)},
    "einsum": _einsum,
    "embedding": _embedded,
    **dict.fromkeys(("gather", "take_along_dim", "take"), _gathered),
    "interpolate": _resized,
    "__getitem__": _indexed,
}  # fmt: skip


# --- layers ---


def layer_shapes(module: Any, args: Args, kwargs: Kwargs) -> Optional[List[Shape]]:
    """The shape of each result of a layer of torch; None where not even the number of dims is known."""
    tensors = list(tensors_in((args, kwargs)))
    if not tensors:
        return None
    own = list(tensors[0].shape)
    if isinstance(module, nn.modules.conv._ConvNd):
        spatial = len(module.kernel_size)
        return [[*_batch(own, spatial), module.out_channels, *[None] * spatial]]
    if isinstance(module, (nn.Linear, nn.Bilinear)):
        return [own[:-1] + [module.out_features]]
    if isinstance(module, nn.Embedding):
        return [own + [module.embedding_dim]]
    if isinstance(module, nn.RNNBase):
        width = (module.proj_size or module.hidden_size) * (2 if module.bidirectional else 1)
        return [own[:-1] + [width]]
    if isinstance(module, nn.RNNCellBase):
        state = own[:-1] + [module.hidden_size]
        return [state, state] if isinstance(module, nn.LSTMCell) else [state]
    if isinstance(module, nn.modules.loss._Loss):
        return [[] if module.reduction != "none" else own]
    found = _POOLING_LAYER.match(type(module).__name__)
    if found and len(own) > int(found.group(1)):
        return [own[: -int(found.group(1))] + [None] * int(found.group(1))]
    if isinstance(module, nn.modules.batchnorm._NormBase) or type(module).__module__ in (
        "torch.nn.modules.activation",
        "torch.nn.modules.normalization",
        "torch.nn.modules.dropout",
        "torch.nn.modules.transformer",
    ):
        return [own, [None] * 3] if isinstance(module, nn.MultiheadAttention) else [own]
    return None
