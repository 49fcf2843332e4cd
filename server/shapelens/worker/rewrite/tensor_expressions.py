"""Which expressions compute tensors, as far as the text tells: where nothing is known of their value, that is still worth a `?`."""

from __future__ import annotations

import ast
import re
from typing import List

_OF_MODELS = re.compile(r"(model|net|network|encoder|decoder|unet|vae|criterion|loss_fn|loss_func|loss_function)$")
# Methods that tensors have, and tables, arrays and texts have not.
_METHODS = {
    "argmax", "argmin", "bmm", "clamp", "clamp_", "contiguous", "cpu", "cuda", "cumsum", "detach", "expand", "flatten", "float", "gather",
    "half", "index_add", "index_select", "log_softmax", "logsumexp", "long", "masked_fill", "masked_fill_", "masked_select", "matmul",
    "mm", "new_ones", "new_tensor", "new_zeros", "permute", "relu", "repeat_interleave", "reshape", "scatter", "scatter_", "sigmoid",
    "softmax", "squeeze", "squeeze_", "tanh", "topk", "transpose", "type_as", "unsqueeze", "unsqueeze_", "view",
}  # fmt: skip
# Names of torch whose calls give no tensors.
_NO_TENSORS = {
    "Generator", "Size", "accelerator", "amp", "autocast", "backends", "compile", "cuda", "device", "distributed", "distributions", "dtype",
    "enable_grad", "fx", "hub", "inference_mode", "is_tensor", "jit", "load", "manual_seed", "mps", "multiprocessing", "nn", "no_grad",
    "onnx", "optim", "profiler", "quantization", "random", "save", "seed", "utils",
}  # fmt: skip


def computes_tensors(value: ast.AST) -> bool:
    """True if an expression calls something that gives a tensor, or a model."""
    return any(isinstance(part, ast.Call) and _gives_tensor(part) for part in ast.walk(value))


def _gives_tensor(call: ast.Call) -> bool:
    words = _words(call.func)
    if isinstance(call.func, ast.Call):  # `nn.Softmax(dim=1)(x)`
        layer = _words(call.func.func)
        return "nn" in layer[:-1] and layer[0] in ("torch", "nn") and layer[-1][:1].isupper()
    if not words:
        return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
    if words[0] in ("torch", "F", "nn", "functional"):
        inner = words[1:]
        if inner[:2] == ["nn", "functional"] or (words[0] == "nn" and inner[:1] == ["functional"]):
            return True
        return words[0] != "nn" and bool(inner) and inner[0] not in _NO_TENSORS and not inner[0].startswith(("set_", "get_", "is_", "use_"))
    if len(words) > 1 and words[-1] == "to":  # A model stays what it is.
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return not _OF_MODELS.search(words[-2]) and any(map(_is_device, given))
    return (len(words) > 1 and words[-1] in _METHODS and not _OF_MODELS.search(words[-2])) or _OF_MODELS.search(words[-1]) is not None


def _is_device(given: ast.expr) -> bool:
    """`device`, `self.device`, `"cuda"`, `torch.long`"""
    if isinstance(given, ast.Constant):
        return isinstance(given.value, str) and given.value.startswith(("cuda", "cpu", "mps"))
    words = _words(given)
    return bool(words) and (words[0] == "torch" or "device" in words[-1].lower())


def _words(node: ast.AST) -> List[str]:
    """["torch", "argmax"] of `torch.argmax`, ["", "to"] of `batch["x"].to`; [] of anything else."""
    words: List[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        words.append(node.id)
    elif words:
        words.append("")
    return words[::-1]
