"""Floating-point operations of layers, from the shapes of their calls.

As torch.utils.flop_counter counts them: the multiplications and additions of convolutions and matrix products, two for each
multiply-accumulate (MAC); biases, norms and activations are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shapelens.protocol import LayerCall, LayerSeen, Value

_RECURRENT = {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"}
_LINEAR = {"Linear", "NonDynamicallyQuantizableLinear", "LazyLinear"}
_PREFIXES = (("TFLOPs", 1e12), ("GFLOPs", 1e9), ("MFLOPs", 1e6), ("kFLOPs", 1e3))


def flops(layers: Iterable[LayerSeen], model: LayerSeen) -> tuple[int, bool]:
    """The operations of all calls of a layer in its example, those of the layers inside it included, and whether that is all of them.

    layers: all of the trace. What a model computes itself (`q @ k`) is not in it.
    """
    if own_flops(model) != 0:
        return own_flops(model) or 0, own_flops(model) is not None
    inside = f"{model.path}." if model.path else ""
    parts = [layer for layer in layers if layer.example == model.example and layer.path and layer.path.startswith(inside)]
    counted: dict[str, int | None] = {}
    for layer in sorted(parts, key=lambda layer: layer.path.count(".")):
        if layer is not model and not any(layer.path.startswith(f"{path}.") for path in counted):
            found = own_flops(layer)
            if found != 0:
                counted[layer.path] = found
    return sum(count or 0 for count in counted.values()), None not in counted.values()


def own_flops(layer: LayerSeen) -> int | None:
    """The operations of a layer of torch's own over all its calls; 0 for layers of which none are counted; None where a size is unknown."""
    if not layer.qualified_name.startswith("torch.nn."):
        return 0
    counts = [_of_call(layer, call) for call in layer.calls]
    if None in counts:
        return None
    return sum((count or 0) * call.count for count, call in zip(counts, layer.calls, strict=True))


def flops_text(count: int, *, exact: bool = True) -> str:
    """`9.41 MFLOPs (4.70 MMACs)`, after `at least` where not all are counted."""
    if not exact:
        return f"at least {flops_text(count)}"
    for unit, size in _PREFIXES:
        if count >= size:
            return f"{count / size:.3g} {unit} ({count / size / 2:.3g} {unit[0]}MACs)"
    return f"{count} FLOPs ({count // 2} MACs)"


def _of_call(layer: LayerSeen, call: LayerCall) -> int | None:
    kind = layer.class_name
    if kind != "MultiheadAttention" and kind not in _RECURRENT | _LINEAR and "Conv" not in kind:
        return 0
    weights = {parameter.name: parameter.shape for parameter in layer.parameters}
    given, made = [_sizes(value) for value in call.inputs], _sizes(call.output)
    if not given or given[0] is None:
        return None
    if kind == "MultiheadAttention":
        return _attention(weights, given, call)
    if kind in _RECURRENT:
        steps = math.prod(given[0][:-1])
        return 2 * steps * sum(math.prod(shape) for name, shape in weights.items() if name.startswith("weight"))
    weight = weights.get("weight")
    if weight is None or made is None:
        return None
    if kind in _LINEAR:
        return 2 * math.prod(made) * weight[1]
    if "ConvTranspose" in kind:
        return 2 * math.prod(given[0]) * math.prod(weight[1:])
    return 2 * math.prod(made) * math.prod(weight[1:])


def _attention(weights: dict[str, list[int]], given: Sequence[list[int] | None], call: LayerCall) -> int | None:
    """Projections of query, key, value and output, then two products of [length, source] each.

    The source's length is read off the attention weights, as the order of batch and time is not known here.
    """
    scores = call.output.items[1] if call.output.items and len(call.output.items) > 1 else None
    shape = _sizes(scores) if scores is not None else None
    source = shape[-1] if shape else None
    width = weights["out_proj.weight"][0] if "out_proj.weight" in weights else (given[0] or [0])[-1]
    if len(given) < 3 or None in given[:3] or source is None:
        return None
    query, key, value = (math.prod(shape) for shape in given[:3] if shape is not None)
    tokens = query // max(width, 1)
    return 2 * width * (query + key + value + tokens * width) + 4 * tokens * source * width


def _sizes(value: Value) -> list[int] | None:
    """The shape of a tensor, of the first one where there are several; None where a size is unknown."""
    while value.kind == "sequence" and value.items:
        value = value.items[0]
    known = [size for size in value.shape or [] if size is not None]
    return known if value.shape is not None and len(known) == len(value.shape) else None
