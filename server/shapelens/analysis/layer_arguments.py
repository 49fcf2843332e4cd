"""The names of the arguments of `torch.nn` layers, in order, and which values of one argument go with the others.

Names and order are those of torch 2.13's signatures; a layer that is not listed is one whose constructor takes no size that has to fit
its input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shapelens.protocol import LayerSeen

_CONV = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias", "padding_mode")
_CONV_TRANSPOSE = (*_CONV[:5], "output_padding", "groups", "bias", "dilation", "padding_mode")
_BATCH_NORM = ("num_features", "eps", "momentum", "affine", "track_running_stats")
_RNN = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size")
_RNN_CELL = ("input_size", "hidden_size", "bias")
_TRANSFORMER_LAYER = ("d_model", "nhead", "dim_feedforward", "dropout", "activation", "layer_norm_eps", "batch_first", "norm_first", "bias")

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features", "bias"),
    "NonDynamicallyQuantizableLinear": ("in_features", "out_features", "bias"),
    "Bilinear": ("in1_features", "in2_features", "out_features", "bias"),
    **{f"Conv{n}d": _CONV for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": _CONV_TRANSPOSE for n in (1, 2, 3)},
    **{f"LazyConv{n}d": _CONV[1:] for n in (1, 2, 3)},
    **{f"LazyConvTranspose{n}d": _CONV_TRANSPOSE[1:] for n in (1, 2, 3)},
    "LazyLinear": ("out_features", "bias"),
    **{f"{kind}Norm{n}d": _BATCH_NORM for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "SyncBatchNorm": _BATCH_NORM,
    "GroupNorm": ("num_groups", "num_channels", "eps", "affine"),
    "LayerNorm": ("normalized_shape", "eps", "elementwise_affine", "bias"),
    "RMSNorm": ("normalized_shape", "eps", "elementwise_affine"),
    "RNN": _RNN,
    "LSTM": _RNN,
    "GRU": _RNN,
    "RNNCell": _RNN_CELL,
    "LSTMCell": _RNN_CELL,
    "GRUCell": _RNN_CELL,
    "MultiheadAttention": ("embed_dim", "num_heads", "dropout", "bias", "add_bias_kv", "add_zero_attn", "kdim", "vdim", "batch_first"),
    "TransformerEncoderLayer": _TRANSFORMER_LAYER,
    "TransformerDecoderLayer": _TRANSFORMER_LAYER,
    "Transformer": ("d_model", "nhead", "num_encoder_layers", "num_decoder_layers", "dim_feedforward", "dropout"),
    "Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
    "EmbeddingBag": ("num_embeddings", "embedding_dim", "max_norm"),
    "PReLU": ("num_parameters", "init"),
    "Unflatten": ("dim", "unflattened_size"),
    "PixelShuffle": ("upscale_factor",),
    "PixelUnshuffle": ("downscale_factor",),
}

# What an argument of one of these layers is called where one counts its units.
_NOUNS = {
    "in_features": "features",
    "in1_features": "features in its first input",
    "in2_features": "features in its second input",
    "in_channels": "channels",
    "num_features": "channels",
    "num_channels": "channels",
    "num_parameters": "channels",
    "input_size": "features",
    "hidden_size": "hidden features",
    "embed_dim": "features",
    "d_model": "features",
    "kdim": "features in its key",
    "vdim": "features in its value",
}

_DIVISOR = {"num_channels": "num_groups", "in_channels": "groups", "out_channels": "groups", "embed_dim": "num_heads", "d_model": "nhead"}

# How many gates' rows a recurrent weight holds (torch's documentation of the layers' attributes).
_GATES = {"LSTM": "4·", "LSTMCell": "4·", "GRU": "3·", "GRUCell": "3·", "RNN": "", "RNNCell": ""}
_ATTENTION = {
    "in_proj_weight": "[3·embed, embed]",
    "in_proj_bias": "[3·embed]",
    "q_proj_weight": "[embed, embed]",
    "k_proj_weight": "[embed, kdim]",
    "v_proj_weight": "[embed, vdim]",
    "out_proj.weight": "[embed, embed]",
    "out_proj.bias": "[embed]",
}


def index_of(layer: LayerSeen, argument: str) -> int | None:
    """Returns the position of this argument in the constructor; None for a user's own subclass of a layer, whose order is unknown."""
    names = ARGUMENTS.get(layer.class_name, ()) if layer.qualified_name.startswith("torch.nn.") else ()
    return names.index(argument) if argument in names else None


def noun(layer: LayerSeen | None, argument: str) -> str:
    """Returns the plural noun that an argument counts: "features" for `in_features`; "" if there is none."""
    if argument == "num_features" and layer is not None and layer.class_name.endswith("1d"):
        return "features"
    return _NOUNS.get(argument, "")


def setting(layer: LayerSeen, argument: str) -> int | None:
    """Returns the number that a layer's repr shows for an argument: 8 for `groups` of `Conv2d(8, 8, kernel_size=(3, 3), groups=8)`."""
    if argument == "num_groups":
        found = re.match(r"\w+\((\d+)", layer.description)
    else:
        found = re.search(rf"\b{argument}=(\d+)\b", layer.description)
    return int(found.group(1)) if found else None


def normalized_shape(layer: LayerSeen) -> list[int]:
    """Returns the sizes that the repr of a LayerNorm or RMSNorm shows: [6, 8, 12] of `LayerNorm((6, 8, 12), eps=1e-05)`; [] for others."""
    described = re.match(r"\w+\(\(([\d, ]*)\)", layer.description)
    return [int(part) for part in described.group(1).split(",") if part.strip()] if described else []


def constructor_words(layer: LayerSeen, message: str) -> str:
    """Returns an error message with the argument names of the layer's own constructor: `d_model` for a Transformer's `embed_dim`."""
    if not layer.class_name.startswith("Transformer"):
        return message
    return message.replace("embed_dim", "d_model").replace("num_heads", "nhead")


def fits(layer: LayerSeen, argument: str, size: int) -> bool:
    """True if the constructor would take this size with the layer's other arguments as they are (channels divisible by groups, say)."""
    divisor = setting(layer, _DIVISOR[argument]) if argument in _DIVISOR else None
    return size > 0 and (divisor is None or size % divisor == 0)


def parameter_meaning(layer: LayerSeen, name: str) -> str:
    """Returns the shape of a parameter in words: `[4·hidden, input]` for an LSTM's `weight_ih_l0`; "" where the numbers say it all."""
    kind = layer.class_name
    if kind in _GATES:
        return _recurrent_meaning(layer, name)
    return _ATTENTION.get(name, "") if kind == "MultiheadAttention" else ""


def _recurrent_meaning(layer: LayerSeen, name: str) -> str:
    gates = _GATES[layer.class_name]
    found = re.match(r"(weight|bias)_(ih|hh|hr)(?:_l(\d+))?(?:_reverse)?$", name)
    if not found:
        return ""
    what, of, level = found.groups()
    if of == "hr":
        return "[proj, hidden]"
    if what == "bias":
        return f"[{gates}hidden]"
    state = "proj" if "proj_size=" in layer.description else "hidden"
    if of == "hh":
        return f"[{gates}hidden, {state}]"
    below = ("2·" if "bidirectional=True" in layer.description else "") + state
    return f"[{gates}hidden, {'input' if level in (None, '0') else below}]"


# The arguments that say the sizes of the dims of a layer's weight; of its bias and buffers it is the first one, or that in _OF_BIAS.
_OF_WEIGHT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Linear", "NonDynamicallyQuantizableLinear"), ("out_features", "in_features")),
    **{f"Conv{n}d": ("out_channels", "in_channels") for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": ("in_channels", "out_channels") for n in (1, 2, 3)},
    **{f"{kind}Norm{n}d": ("num_features",) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "SyncBatchNorm": ("num_features",),
    "GroupNorm": ("num_channels",),
    "LayerNorm": ("normalized_shape",),
    "RMSNorm": ("normalized_shape",),
    **dict.fromkeys(("Embedding", "EmbeddingBag"), ("num_embeddings", "embedding_dim")),
    "PReLU": ("num_parameters",),
}
_OF_BIAS = {f"ConvTranspose{n}d": "out_channels" for n in (1, 2, 3)}


def parameter_size(layer: LayerSeen, name: str, dim: int) -> tuple[str, int] | None:
    """The argument that says the size of a dim of a layer's parameter or buffer, and how many times it is in it; None for others."""
    kind = layer.class_name
    if not layer.qualified_name.startswith("torch.nn."):
        return None
    if kind in _GATES:
        return _recurrent_size(layer, name, dim)
    if kind == "MultiheadAttention":
        return {
            ("in_proj_weight", 0): ("embed_dim", 3),
            ("in_proj_weight", 1): ("embed_dim", 1),
            ("in_proj_bias", 0): ("embed_dim", 3),
        }.get((name, dim))
    names = _OF_WEIGHT.get(kind, ())
    if name != "weight":
        return (_OF_BIAS.get(kind, names[0]), 1) if names and dim == 0 else None
    if dim >= len(names) or (dim == 1 and (setting(layer, "groups") or 1) > 1):
        return None
    return names[dim], 1


def _recurrent_size(layer: LayerSeen, name: str, dim: int) -> tuple[str, int] | None:
    if "proj_size=" in layer.description or not name.startswith(("weight_", "bias_")):
        return None
    if dim == 0:
        return "hidden_size", {"4·": 4, "3·": 3}.get(_GATES[layer.class_name], 1)
    if name.startswith("weight_hh"):
        return "hidden_size", 1
    return ("input_size", 1) if name in ("weight_ih", "weight_ih_l0", "weight_ih_l0_reverse") else None
