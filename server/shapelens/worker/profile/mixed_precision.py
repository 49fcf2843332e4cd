"""Autocast on the meta device: torch's own leaves tensors of that device as they are, but what a training step keeps depends on it.

Kernels in Python stand above autograd, as torch's do, under the dispatch key of a device that the meta device is not, so that nothing else
is changed. The lists are AT_FORALL_LOWER_PRECISION_FP and its like in torch's ATen/autocast_mode.h, and those for a CPU in
autocast_mode.cpp. Before torch 2.6 no such key can be given a way past: autocast is left alone there.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ..trace import autocast

_aten = torch.ops.aten
_plainly = torch._C.DisableTorchFunction
_NAME = "AutocastPrivateUse1"
_KEY: Any = getattr(torch._C.DispatchKey, _NAME, None)
_FALLTHROUGH = getattr(torch.library, "fallthrough_kernel", None)
IS_POSSIBLE = _KEY is not None and _FALLTHROUGH is not None and hasattr(torch.library.Library, "fallback")

_LOWER = (
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "convolution",
    "prelu", "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm",
    "chain_matmul", "linalg_multi_dot", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "scaled_dot_product_attention",
)  # fmt: skip
_FULL = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan",
    "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "layer_norm", "native_layer_norm", "rms_norm", "group_norm",
    "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss", "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "cdist", "renorm", "logsumexp", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
)  # fmt: skip
# They compute in float32 by their argument `dtype`, without a copy of what they are given.
_FULL_BY_ARGUMENT = (
    "prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "linalg_vector_norm", "sum", "sum.dim_IntList",
)  # fmt: skip
_WIDEST = ("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "tensordot", "scatter_add")
_FULL_ON_A_CPU = (
    "avg_pool3d", "binary_cross_entropy", "grid_sampler", "polar", "prod", "prod.dim_int", "quantile", "nanquantile", "stft", "cdist",
    "trace", "mse_loss", "cosine_embedding_loss", "nll_loss", "nll_loss2d", "hinge_embedding_loss", "poisson_nll_loss", "smooth_l1_loss",
    "l1_loss", "huber_loss", "cross_entropy_loss", "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
    "ctc_loss.IntList", "ctc_loss.Tensor", "kl_div", "multilabel_margin_loss", "binary_cross_entropy_with_logits",
)  # fmt: skip
_NOT_LOWER_ON_A_CPU = {
    "addmv",
    "addr",
    "einsum",
    "mv",
    "chain_matmul",
    "linalg_multi_dot",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
}
_WIDEST_ON_A_CPU = ("stack", "cat", "index_copy")

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_SHORT = (torch.float16, torch.bfloat16)

Cast = Callable[[Any], Any]


class _CastingLibrary:
    def __init__(self) -> None:
        self.library: Optional[Any] = None
        self.fallback: Optional[Any] = None
        self.device = ""  # whose lists are registered
        self.copies: Dict[int, Tuple[Any, Any]] = {}  # of parameters, by the id of each, which is kept alive; until autocast ends


_state = _CastingLibrary()


def cast_lower(value: Any) -> Any:
    """Returns what autocast makes of an argument of a matrix product, where one is under way; parameters are cast once."""
    dtype = autocast.autocast_dtype()
    return _each(value, lambda tensor: _lower(tensor, dtype)) if dtype is not None else value


@contextlib.contextmanager
def respected(device: str) -> Iterator[None]:
    """Have autocasts in user code bring dtypes together as they do for a device, "cuda" or "cpu"."""
    if not IS_POSSIBLE:
        yield
        return
    before = autocast.state.changed
    autocast.state.changed = lambda: _switch(device)
    _switch(device)
    try:
        yield
    finally:
        autocast.state.changed = before
        _set(False)
        _state.copies.clear()


def _switch(device: str) -> None:
    dtype = autocast.autocast_dtype()
    if dtype is None:
        _set(False)
        if not autocast.is_under_way():
            _state.copies.clear()
        return
    _register(device)
    _set(True)


def _set(is_on: bool) -> None:
    torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, not is_on)
    torch._C._dispatch_tls_set_dispatch_key_included(_KEY, is_on)


def _register(device: str) -> None:
    if _state.device == device:
        return
    if _state.fallback is None:
        _state.fallback = _library("_")
        _state.fallback.fallback(_FALLTHROUGH, _NAME)
    _state.library, _state.device = _library("aten"), device  # The library before it takes its kernels along.
    on_a_cpu = device == "cpu"
    _implement([name for name in _LOWER if not (on_a_cpu and name in _NOT_LOWER_ON_A_CPU)], _in_lower_precision)
    _implement(_FULL_ON_A_CPU if on_a_cpu else _FULL, _in_full_precision)
    _implement(() if on_a_cpu else _FULL_BY_ARGUMENT, _in_full_precision_by_argument)
    _implement(_WIDEST_ON_A_CPU if on_a_cpu else _WIDEST, _in_widest)


def _library(namespace: str) -> Any:
    return torch.library.Library(namespace, "IMPL")  # type: ignore[no-untyped-call]


def _implement(names: Any, policy: Callable[[Any], Callable[..., Any]]) -> None:
    key = "AutocastCPU" if _state.device == "cpu" else "AutocastCUDA"  # What this version of torch has in its lists.
    for name in names:
        packet, _, overload = name.partition(".")
        operation = getattr(getattr(_aten, packet, None), overload or "default", None)
        if operation is not None and torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key):
            _state.library.impl(name, policy(operation), _NAME)  # type: ignore[union-attr]


def _in_lower_precision(operation: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _below(), _plainly():
            return operation(*cast_lower(args), **cast_lower(kwargs))

    return kernel


def _in_full_precision(operation: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _below(), _plainly():
            return operation(*_each(args, _full), **_each(kwargs, _full))

    return kernel


def _in_full_precision_by_argument(operation: Any) -> Callable[..., Any]:
    place = next((place for place, argument in enumerate(operation._schema.arguments) if argument.name == "dtype"), -1)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _below(), _plainly():
            given = kwargs.get("dtype") if len(args) <= place else args[place]
            if given is None and isinstance(args[0], torch.Tensor) and args[0].dtype in _SHORT and len(args) <= place:
                kwargs = {**kwargs, "dtype": torch.float32}
            return operation(*args, **kwargs)

    return kernel


def _in_widest(operation: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _below(), _plainly():
            found: List[torch.dtype] = []

            def note(tensor: Any) -> Any:
                found.append(tensor.dtype)
                return tensor

            _each((args, kwargs), note)
            if torch.float32 in found and any(dtype in _SHORT for dtype in found):
                return operation(*_each(args, _full), **_each(kwargs, _full))
            return operation(*args, **kwargs)

    return kernel


def _below() -> Any:
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_KEY))


def _lower(tensor: Any, dtype: torch.dtype) -> Any:
    if tensor.dtype is dtype:
        return tensor
    if not (tensor.dtype is torch.float32 and tensor.requires_grad and tensor.is_leaf and not tensor._is_view()):
        return tensor.to(dtype)
    known = _state.copies.get(id(tensor))
    if known is None or known[0] is not tensor or known[1].dtype is not dtype or (known[1].grad_fn is None) == torch.is_grad_enabled():
        known = _state.copies[id(tensor)] = tensor, tensor.to(dtype)
    return known[1]


def _full(tensor: Any) -> Any:
    return tensor.to(torch.float32) if tensor.dtype in _SHORT else tensor


def _each(value: Any, cast: Cast) -> Any:
    """The same with each tensor of floats on the meta device cast."""
    if isinstance(value, torch.Tensor):
        return cast(value) if value.is_meta and value.dtype in _FLOATS else value
    if type(value) in (list, tuple):
        return type(value)(_each(inner, cast) for inner in value)
    if type(value) is dict:
        return {name: _each(inner, cast) for name, inner in value.items()}
    return value
