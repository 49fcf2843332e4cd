"""Which code is about tensors, as its text tells."""

from __future__ import annotations

import ast

# Methods of tensors that nothing else has.
_METHODS = {
    *("to", "cuda", "cpu", "float", "long", "detach", "backward", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze"),
    *("size", "expand", "repeat", "gather", "flatten", "contiguous", "argmax", "softmax", "sigmoid", "masked_fill"),
}
_EINOPS = {"rearrange", "einsum"}


def is_of_tensors(node: ast.AST) -> bool:
    """True if code calls a method of tensors, multiplies matrices, or speaks of functions of torch or einops (`torch.stack`, `F.relu`)."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _EINOPS:
            return True
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in ("torch", "F"):
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _METHODS:
            return True
    return False
