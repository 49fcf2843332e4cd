"""Operations whose shapes come from their documentation: the meta device has no kernel for them, a slow one, or checks too little."""

from __future__ import annotations

from typing import Any, Callable

import torch

from .meta import SPECIAL, Args, Kwargs, made, named, together

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


# eager's (C++) names of dtypes, where they differ from Python's.
_SCALAR_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long",
}


def _same_dtype(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Products whose factors have different dtypes: eager refuses them, the meta device does not."""
    args, kwargs = together(func, args, kwargs)
    with _plainly():
        tensors = [part for part in (*args, *kwargs.values()) if isinstance(part, Tensor)]
        dtypes = [tensor.dtype for tensor in tensors[:2]]
        if len(dtypes) == 2 and dtypes[0] != dtypes[1] and not torch.is_autocast_enabled():
            words = tuple(_SCALAR_TYPES.get(dtype, str(dtype)[6:]) for dtype in dtypes)
            raise RuntimeError("expected m1 and m2 to have the same dtype, but got: %s != %s" % words)
    return func(*args, **kwargs)


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
        grad = torch.is_grad_enabled()
        output = made((*args[0].shape[:-1], directions * states[0].shape[-1]), args[0].dtype, grad)
        return (output, *(made(tuple(state.shape), state.dtype, grad) for state in states))


def _istft(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.istft has no meta kernel: its check of the window reads values. The length is that of its documentation."""
    names = ("input", "n_fft", "hop_length", "win_length", "window", "center", "normalized", "onesided", "length", "return_complex")
    given = {"center": True, **dict(zip(names, args)), **kwargs}
    spectrum, size = given["input"], given["n_fft"]
    with _plainly():
        if not spectrum.is_meta or not spectrum.is_complex() or spectrum.dim() not in (2, 3):
            return func(*args, **kwargs)
        total = size + (given.get("hop_length") or size // 4) * (spectrum.shape[-1] - 1)
        length = given.get("length")
        if length is None:
            length = total - 2 * (size // 2) if given["center"] else total
        dtype = spectrum.dtype if given.get("return_complex") else spectrum.real.dtype
        return made((*spectrum.shape[:-2], length), dtype, torch.is_grad_enabled())


def _grouped_mm(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Products of groups of rows, as mixtures of experts use them: the meta kernel takes bfloat16 only, eager on the CPU all floats."""
    args, kwargs = together(func, args, kwargs)
    first, second = args[:2]
    offsets = args[2] if len(args) > 2 else kwargs.get("offs")
    with _plainly():
        groups = () if offsets is None or first.dim() + second.dim() != 4 else (offsets.shape[0],)
        batch = tuple(first.shape[:1]) if first.dim() == 3 and second.dim() == 3 else groups
        return made((*batch, first.shape[-2], second.shape[-1]), first.dtype, torch.is_grad_enabled())


def _pack(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """(input, lengths, batch_first): known lengths say how many rows there are, and the batch sizes stay known."""
    sequence, lengths = args[:2]
    with _plainly():
        if lengths.is_meta or not sequence.is_meta:
            return func(*together(func, args, kwargs)[0])
        rows, sizes = func(torch.zeros(*sequence.shape[:2], 1), lengths, *args[2:])
        return made((rows.shape[0], *sequence.shape[2:]), sequence.dtype, sequence.requires_grad), sizes


def _pad(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """(data, batch_sizes, batch_first, padding_value, total_length), the other way round."""
    data, sizes = args[:2]
    with _plainly():
        if sizes.is_meta or not data.is_meta:
            return func(*together(func, args, kwargs)[0])
        padded, lengths = func(torch.zeros(data.shape[0], 1), sizes, *args[2:])
        return made((*padded.shape[:2], *data.shape[1:]), data.dtype, data.requires_grad), lengths


for _rule, _functions in (
    (_pack, named(torch, "_pack_padded_sequence")),
    (_pad, named(torch, "_pad_packed_sequence")),
    (_same_dtype, named(torch, "matmul mm bmm mv dot") | named(Tensor, "matmul mm bmm mv dot __matmul__ __rmatmul__")),
    (_same_dtype, {torch.nn.functional.linear}),
    (_recurrent, named(torch, "lstm gru rnn_tanh rnn_relu")),
    (_istft, named(torch, "istft") | named(Tensor, "istft")),
    (_grouped_mm, named(torch, "_grouped_mm") | named(torch.nn.functional, "grouped_mm")),
):
    SPECIAL.update(dict.fromkeys(_functions, _rule))
