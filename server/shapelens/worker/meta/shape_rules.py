"""Operations whose shapes come from their documentation: the meta device has no kernel for them, a slow one, or checks too little."""

from __future__ import annotations

from typing import Any, Callable, Set

import torch
import torch.nn.functional as F

from ..unknown import unknown_sizes
from . import eager_checks, op_cache
from .linked_results import PADDED, made_from, packed_anyway
from .mode import SPECIAL, Args, Kwargs, made, named, operation, together

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


def _recurrent(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """LSTM, GRU and RNN by their documentation's shapes: the meta kernels walk every time step (512 of them in six layers take seconds).

    (input, hx, weights, ...), or (data, batch_sizes, hx, weights, ...) of a packed sequence; an LSTM's hx is (h_0, c_0).
    """
    args, kwargs = together(func, args, kwargs)
    packed = isinstance(args[1], Tensor) and isinstance(args[2], (Tensor, list, tuple)) and not isinstance(args[3], bool)
    states = args[2] if packed else args[1]
    states = [states] if isinstance(states, Tensor) else list(states)
    layers, bidirectional = (args[5], args[8]) if packed else (args[4], args[7])
    with _plainly():
        if not args[0].is_meta:
            return func(*args, **kwargs)
        directions = 2 if bidirectional else 1
        if states[0].shape[0] != layers * directions:
            return func(*args, **kwargs)
        weights = args[3 if packed else 2]
        shapes = [(*args[0].shape[:-1], directions * states[0].shape[-1]), *(tuple(state.shape) for state in states)]
        return tuple(made_from([args[0], *states, *weights], shapes, args[0].dtype))


def _squeezed(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """squeeze(input, dim): in a program a dim of unknown size may be the one of a single sample, so that nothing is known of the result."""
    if op_cache.state.assumes_gradients and unknown_sizes.state.met and args and isinstance(args[0], Tensor):
        with _plainly():
            sizes = list(args[0].shape)
            wanted = args[1:] or tuple(kwargs.values())
            dims = [dim for each in wanted for dim in (each if isinstance(each, (tuple, list)) else (each,))]
            asked = [sizes[dim] for dim in dims if isinstance(dim, int) and -len(sizes) <= dim < len(sizes)] if dims else sizes
        if unknown_sizes.any_unknown(asked):
            raise NotImplementedError("whether a dim of unknown size is squeezed is data-dependent")
    key = op_cache.key_of(func, args, kwargs)
    known = op_cache.known(key, args) if key is not None else None
    return operation(key, func, args, kwargs) if known is None else known


def _istft(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.istft has no meta kernel: its check of the window reads values. The length is that of its documentation."""
    names = ("input", "n_fft", "hop_length", "win_length", "window", "center", "normalized", "onesided", "length", "return_complex")
    given = {"center": True, **dict(zip(names, args)), **kwargs}
    spectrum, size = given["input"], given["n_fft"]
    with _plainly():
        if not spectrum.is_meta or not spectrum.is_complex() or spectrum.dim() not in (2, 3):
            return func(*args, **kwargs)
        rows = size // 2 + 1 if given.get("onesided") is not False else size
        if spectrum.shape[-2] not in (rows, size):
            raise RuntimeError("istft: expected the frequency dimension to be %d, but got %d" % (rows, spectrum.shape[-2]))
        total = size + (given.get("hop_length") or size // 4) * (spectrum.shape[-1] - 1)
        length = given.get("length")
        if length is None:
            length = total - 2 * (size // 2) if given["center"] else total
        dtype = spectrum.dtype if given.get("return_complex") else spectrum.real.dtype
        return made_from([spectrum], [(*spectrum.shape[:-2], length)], dtype)[0]


def _grouped_mm(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Products of groups of rows, as mixtures of experts use them: the meta kernel takes bfloat16 only, eager on the CPU all floats.

    All rows are multiplied with the first group's matrix: that has the size, the operations and the gradients of the real product.
    """
    args, kwargs = together(func, args, kwargs)
    first, second = args[:2]
    offsets = args[2] if len(args) > 2 else kwargs.get("offs")
    with _plainly():
        if unknown_sizes.any_unknown((first.shape[-1], second.shape[-2])):
            groups = () if offsets is None or first.dim() + second.dim() != 4 else (offsets.shape[0],)
            batch = tuple(first.shape[:1]) if first.dim() == 3 and second.dim() == 3 else groups
            return made_from([first, second], [(*batch, first.shape[-2], second.shape[-1])], first.dtype)[0]
        repeats = offsets.shape[0] if first.dim() == second.dim() == 2 and offsets is not None else 0
        if first.dim() != second.dim():
            first, second = (first[0], second) if first.dim() == 3 else (first, second[0])
    product = torch.matmul(first, second)
    return product.repeat(repeats, 1, 1) if repeats else product


def _pack(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """(input, lengths, batch_first): known lengths say how many rows there are, and the batch sizes stay known."""
    sequence, lengths = args[:2]
    with _plainly():
        if sequence.dim() >= 2:
            first = args[2] if len(args) > 2 else kwargs.get("batch_first", False)
            batch, longest = (sequence.shape[0], sequence.shape[1]) if first else (sequence.shape[1], sequence.shape[0])
            if unknown_sizes.any_unknown((batch, longest, *lengths.shape)):
                return packed_anyway(sequence, lengths, first)
            if lengths.is_meta:
                # Lengths that depend on data: all sequences are taken to be as long as the longest may be.
                if tuple(lengths.shape) != (batch,):
                    return func(sequence, torch.ones(tuple(lengths.shape), dtype=torch.int64), *args[2:])
                lengths = torch.full((batch,), longest, dtype=torch.int64)
        if not sequence.is_meta:
            return func(sequence, lengths, *args[2:])
        rows, sizes = func(torch.zeros(*sequence.shape[:2], 1), lengths, *args[2:])
        return made_from([sequence], [(rows.shape[0], *sequence.shape[2:])], sequence.dtype)[0], sizes


def _pad(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """(data, batch_sizes, batch_first, padding_value, total_length), the other way round."""
    data, sizes = args[:2]
    with _plainly():
        if PADDED in sizes.__dict__:
            longest, batch = sizes.__dict__[PADDED]
            first, _, total = args[2:5]
            longest = total if total > sizes.shape[0] else longest  # It is that of the batch sizes where nobody asks for another one.
            shape = (batch, longest) if first else (longest, batch)
            return made_from([data], [(*shape, *data.shape[1:])], data.dtype)[0], made((batch,), torch.int64, False)
        if sizes.is_meta or not data.is_meta:
            return func(*together(func, args, kwargs)[0])
        padded, lengths = func(torch.zeros(data.shape[0], 1), sizes, *args[2:])
        return made_from([data], [(*padded.shape[:2], *data.shape[1:])], data.dtype)[0], lengths


OF_SHAPES = {eager_checks.convolution_fits, eager_checks.dim_in_range}  # what they ask is the same for the same key of `remembered`
Check = Callable[[Callable[..., Any], Args, Kwargs], None]


def _checked(check: Check, rule: Any = None) -> Callable[..., Any]:
    """A rule that makes a check before the operation; the meta device makes too few for it."""

    def checked(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
        key = op_cache.key_of(func, args, kwargs) if rule is None else None
        known = op_cache.known(key, args) if key is not None and check in OF_SHAPES else None
        if known is not None:
            return known
        with _plainly():
            check(func, args, kwargs)
        if rule is not None:
            return rule(func, args, kwargs)
        return operation(key, func, args, kwargs)

    return checked


def _everywhere(names: str) -> Set[Any]:
    """The functions of these names, as functions of torch, of torch.nn.functional and as methods, in place as well."""
    in_place = " ".join(name + "_" for name in names.split())
    return named(torch, names) | named(F, names) | named(torch.Tensor, names + " " + in_place)


LAX = _everywhere(
    "index_add index_reduce index_copy index_fill index_select index_put put take take_along_dim gather scatter scatter_add scatter_reduce "
    "select_scatter slice_scatter diagonal_scatter bucketize searchsorted addmm addmv cross soft_margin_loss nll_loss cross_entropy unfold "
    "pixel_unshuffle heaviside addbmm max_unpool1d max_unpool2d max_unpool3d embedding_bag one_hot"
)
for _check, _functions in (
    (eager_checks.as_eager, LAX),
    (eager_checks.dim_in_range, _everywhere("softmax softmin log_softmax sort argsort cummax cummin")),
    (eager_checks.convolution_fits, _everywhere("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")),
    (eager_checks.embedding_in_range, {F.embedding, torch.embedding}),
    (eager_checks.storage_suffices, named(torch, "as_strided") | named(torch.Tensor, "as_strided")),
    (eager_checks.samples_fit, {torch.multinomial, torch.Tensor.multinomial}),
):
    SPECIAL.update({function: _checked(_check, SPECIAL.get(function)) for function in _functions})

for _rule, _functions in (
    (_pack, named(torch, "_pack_padded_sequence")),
    (_pad, named(torch, "_pad_packed_sequence")),
    (_recurrent, named(torch, "lstm gru rnn_tanh rnn_relu")),
    (_squeezed, named(torch, "squeeze") | named(Tensor, "squeeze")),
    (_istft, named(torch, "istft") | named(Tensor, "istft")),
    (_grouped_mm, named(torch, "_grouped_mm") | named(F, "grouped_mm")),
):
    SPECIAL.update(dict.fromkeys(_functions, _rule))
