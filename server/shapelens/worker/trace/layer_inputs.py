"""The needs of torch's own layers for their input, each with the constructor argument that sets it.

`expectations(module, args, kwargs)` lists the sizes that a layer's constructor fixed, next to those that arrived. The rules are those of
each layer's documentation ("Shape:" in the docstring of the class); subclasses that keep the layer's `forward` follow them too.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Type

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from .autocast import autocast_is_on
from .value_summary import HALF_BUILT

Tensor = torch.Tensor


class Expectation(NamedTuple):
    """One size that a layer needs: dim `dim` of argument `position` has to be `need`, as constructor argument `argument` says."""

    code: str
    argument: str
    position: Any  # of the argument of forward: an index, or a keyword
    tensor: Tensor
    dim: int
    need: int


Rule = Callable[[Any, Tuple[Any, ...], Dict[str, Any]], Iterator[Expectation]]

INTEGER_INDICES = (torch.int64, torch.int32)


def _given(args: Tuple[Any, ...], kwargs: Dict[str, Any], index: int, name: str) -> Tuple[Any, Optional[Tensor]]:
    """(where it is, the tensor) of an argument of forward; the tensor is None where there is none."""
    if len(args) > index:
        return index, args[index] if isinstance(args[index], Tensor) else None
    value = kwargs.get(name)
    return name, value if isinstance(value, Tensor) else None


def lone_picture(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tensor]:
    """Returns the input of a convolution where that has no dim for a batch; None otherwise."""
    if not isinstance(module, nn.modules.conv._ConvNd):
        return None
    _, tensor = _given(args, kwargs, 0, "input")
    return tensor if tensor is not None and tensor.dim() == len(module.kernel_size) + 1 else None


def _last(code: str, argument: str, attribute: str, index: int = 0, name: str = "input") -> Rule:
    """The last dim of an argument has the size that an attribute says."""

    def rule(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
        position, tensor = _given(args, kwargs, index, name)
        if tensor is not None and tensor.dim() > 0:
            yield Expectation(code, argument, position, tensor, tensor.dim() - 1, getattr(module, attribute))

    return rule


def _channels(code: str, argument: str, attribute: str, spatial: int) -> Rule:
    """Channels come after the batch, or first where there is no batch; `spatial` dims follow."""

    def rule(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
        position, tensor = _given(args, kwargs, 0, "input")
        if tensor is not None and tensor.dim() - spatial in (1, 2):
            yield Expectation(code, argument, position, tensor, tensor.dim() - spatial - 1, getattr(module, attribute))

    return rule


def _second(code: str, argument: str, attribute: str, ranks: Tuple[int, ...]) -> Rule:
    """Dim 1 of an input of one of these ranks."""

    def rule(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
        position, tensor = _given(args, kwargs, 0, "input")
        if tensor is not None and tensor.dim() in ranks:
            yield Expectation(code, argument, position, tensor, 1, getattr(module, attribute))

    return rule


def _instance_norm(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
    position, tensor = _given(args, kwargs, 0, "input")
    spatial = {nn.InstanceNorm1d: 1, nn.InstanceNorm2d: 2, nn.InstanceNorm3d: 3}
    for cls, dims in spatial.items():
        # Without affine parameters eager only warns.
        if isinstance(module, cls) and tensor is not None and module.affine and tensor.dim() - dims in (1, 2):
            yield Expectation("norm-num-features", "num_features", position, tensor, tensor.dim() - dims - 1, module.num_features)


def _prelu(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
    position, tensor = _given(args, kwargs, 0, "input")
    if tensor is not None and tensor.dim() > 1 and module.num_parameters != 1:
        yield Expectation("prelu-num-parameters", "num_parameters", position, tensor, 1, module.num_parameters)


def _normalized_shape(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
    position, tensor = _given(args, kwargs, 0, "input")
    shape = module.normalized_shape
    if tensor is not None and tensor.dim() >= len(shape):
        for offset, need in enumerate(shape):
            yield Expectation("norm-normalized-shape", "normalized_shape", position, tensor, tensor.dim() - len(shape) + offset, need)


def _bilinear(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
    yield from _last("bilinear-in-features", "in1_features", "in1_features", 0, "input1")(module, args, kwargs)
    yield from _last("bilinear-in-features", "in2_features", "in2_features", 1, "input2")(module, args, kwargs)


def _attention(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
    for index, name, argument, attribute in (
        (0, "query", "embed_dim", "embed_dim"),
        (1, "key", "kdim", "kdim"),
        (2, "value", "vdim", "vdim"),
    ):
        # kdim and vdim are embed_dim unless they are given.
        said = argument if getattr(module, attribute) != module.embed_dim else "embed_dim"
        yield from _last("attention-embed-dim", said, attribute, index, name)(module, args, kwargs)


def _transformer_layer(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Expectation]:
    for index, name in ((0, "src"), (1, "memory")) if hasattr(module, "multihead_attn") else ((0, "src"),):
        if name == "src" and index == 0 and not args and "tgt" in kwargs:
            name = "tgt"
        position, tensor = _given(args, kwargs, index, name)
        if tensor is not None and tensor.dim() > 0:
            yield Expectation("attention-embed-dim", "d_model", position, tensor, tensor.dim() - 1, module.self_attn.embed_dim)


RULES: List[Tuple[Type[Any], Rule]] = [
    (nn.Linear, _last("linear-in-features", "in_features", "in_features")),
    (nn.Bilinear, _bilinear),
    (nn.Conv1d, _channels("conv-in-channels", "in_channels", "in_channels", 1)),
    (nn.Conv2d, _channels("conv-in-channels", "in_channels", "in_channels", 2)),
    (nn.Conv3d, _channels("conv-in-channels", "in_channels", "in_channels", 3)),
    (nn.ConvTranspose1d, _channels("conv-in-channels", "in_channels", "in_channels", 1)),
    (nn.ConvTranspose2d, _channels("conv-in-channels", "in_channels", "in_channels", 2)),
    (nn.ConvTranspose3d, _channels("conv-in-channels", "in_channels", "in_channels", 3)),
    (nn.BatchNorm1d, _second("norm-num-features", "num_features", "num_features", (2, 3))),
    (nn.BatchNorm2d, _second("norm-num-features", "num_features", "num_features", (4,))),
    (nn.BatchNorm3d, _second("norm-num-features", "num_features", "num_features", (5,))),
    (nn.SyncBatchNorm, _second("norm-num-features", "num_features", "num_features", (2, 3, 4, 5))),
    (nn.InstanceNorm1d, _instance_norm),
    (nn.InstanceNorm2d, _instance_norm),
    (nn.InstanceNorm3d, _instance_norm),
    (nn.GroupNorm, _second("norm-num-channels", "num_channels", "num_channels", (2, 3, 4, 5))),
    (nn.LayerNorm, _normalized_shape),
    (nn.PReLU, _prelu),
    (nn.RNNBase, _last("rnn-input-size", "input_size", "input_size")),
    (nn.RNNCellBase, _last("rnn-input-size", "input_size", "input_size")),
    (nn.MultiheadAttention, _attention),
    (nn.TransformerEncoderLayer, _transformer_layer),
    (nn.TransformerDecoderLayer, _transformer_layer),
]
if hasattr(nn, "RMSNorm"):  # torch 2.4
    RULES.append((nn.RMSNorm, _normalized_shape))

# Layer -> the argument that says the size of a dim of its result; dims count from the back, or are "channels".
SETTERS: List[Tuple[Tuple[Type[Any], ...], Any, str]] = [
    ((nn.Linear, nn.Bilinear), -1, "out_features"),
    ((nn.Conv1d, nn.ConvTranspose1d), -2, "out_channels"),
    ((nn.Conv2d, nn.ConvTranspose2d), -3, "out_channels"),
    ((nn.Conv3d, nn.ConvTranspose3d), -4, "out_channels"),
    ((nn.Embedding, nn.EmbeddingBag), -1, "embedding_dim"),
    ((nn.RNNBase, nn.RNNCellBase), -1, "hidden_size"),
]

NORMALISATIONS = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
# Layers whose input has to have the dtype of their weight.
SAME_DTYPE = (nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd, nn.RNNBase, nn.RNNCellBase, *NORMALISATIONS)
_WEIGHTS = dict.fromkeys(("RNN", "LSTM", "GRU"), "weight_ih_l0") | dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell"), "weight_ih")

_CACHE: Dict[type, Optional[Rule]] = {}


def rule_of(module: Any) -> Optional[Rule]:
    """Returns the rule for a module's input; None where nothing is known, or where a subclass brings its own `forward`."""
    cls = type(module)
    if cls not in _CACHE:
        _CACHE[cls] = None
        for base, rule in RULES:
            if isinstance(module, base) and _torch_owns(cls.forward) and not isinstance(module, LazyModuleMixin):
                _CACHE[cls] = rule
    return _CACHE[cls]


def _torch_owns(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("torch.nn.")


def is_torch_layer(module: Any) -> bool:
    """True if a module's forward is torch's own and calls no user code (a Sequential does)."""
    return _torch_owns(type(module).forward) and not isinstance(module, (nn.Sequential, nn.ModuleList, nn.ModuleDict))


def running_layers() -> Iterator[nn.Module]:
    """The layers of torch's whose forward is running, the innermost first, up to the module of the user's that called them."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if isinstance(owner, nn.Module):
            if not is_torch_layer(owner):
                return
            yield owner
        frame = frame.f_back


def outermost_layer() -> Optional[nn.Module]:
    """The layer of torch's that user code called; None where it called the function itself."""
    return next(iter(list(running_layers())[-1:]), None)


def expectations(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Expectation]:
    """The sizes that a layer's constructor says of these arguments of its forward; [] where nothing is known."""
    rule = rule_of(module)
    if rule is None or HALF_BUILT in module.__dict__ or not _weight_agrees(module):
        return []
    return [expected for expected in rule(module, args, kwargs) if type(expected.need) is int]


def is_unmet(expected: Expectation) -> bool:
    """True if the size differs from the needed one; that of a nested tensor is no number."""
    size = expected.tensor.shape[expected.dim]
    return type(size) is int and size != expected.need


def _weight_agrees(module: Any) -> bool:
    """True if the weight has the sizes of the attributes: eager goes by the weight, which user code may have replaced."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor):
        return True
    if isinstance(module, nn.Linear):
        return weight.dim() == 2 and weight.shape[1] == module.in_features
    if isinstance(module, nn.modules.conv._ConvNd):
        channels = weight.shape[0] if module.transposed else weight.shape[1] * module.groups
        return bool(channels == module.in_channels)
    return True


def wrong_dtype(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Any, Tensor, torch.dtype]]:
    """(position, tensor, dtype that is needed) where eager would refuse the dtype of a layer's input; the meta device accepts it."""
    position, tensor = _given(args, kwargs, 0, "input")
    if tensor is None or autocast_is_on() or not _torch_owns(type(module).forward):
        return None
    if isinstance(module, nn.Embedding):
        return None if tensor.dtype in INTEGER_INDICES else (position, tensor, torch.int64)
    weight = getattr(module, _WEIGHTS.get(type(module).__name__, "weight"), None)
    if not isinstance(weight, Tensor) or not isinstance(module, SAME_DTYPE) or tensor.dtype == weight.dtype:
        return None
    if isinstance(module, NORMALISATIONS) and weight.dtype == torch.float32 and tensor.dtype in (torch.float16, torch.bfloat16):
        return None  # These mix half floats with parameters in full.
    return position, tensor, weight.dtype


def size_setter(module: Any, dim: int, rank: int) -> str:
    """The constructor argument that says the size of dim `dim` of a layer's result of `rank` dims; "" if none does."""
    for classes, back, argument in SETTERS:
        if isinstance(module, classes) and dim == rank + back:
            return argument
    return ""
