"""Which autocast a program trains its models under, as far as its text says: by torch itself, or a trainer's argument."""

from __future__ import annotations

import ast
from functools import lru_cache

from shapelens.stated.syntax_trees import last_name, program_of

_MIXED = {"bf16-mixed": "bfloat16", "bf16": "bfloat16", "16-mixed": "float16", "16": "float16", "fp16": "float16"}
_DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16"}
_PRECISION = {"Trainer": "precision", "Fabric": "precision", "Accelerator": "mixed_precision"}


@lru_cache(maxsize=8)  # The view of a model asks for it time and again.
def autocast_of(text: str) -> str | None:
    """ "bfloat16" or "float16" by the first autocast outside of classes with a `forward`, which says so itself; None where there is none,
    or where it depends on what only a run knows."""
    tree = program_of(text)
    for call in sorted(_calls_outside_of_models(tree), key=lambda node: (node.lineno, node.col_offset)):
        found = _of_call(call)
        if found is not None:
            return found
    return None


def _calls_outside_of_models(tree: ast.Module) -> list[ast.Call]:
    found: list[ast.Call] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef) and any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in node.body):
            continue
        if isinstance(node, ast.Call):
            found.append(node)
        waiting += ast.iter_child_nodes(node)
    return found


def _of_call(call: ast.Call) -> str | None:
    name = last_name(call.func)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _PRECISION:
        value = given.get(_PRECISION[name])
        return _MIXED.get(str(value.value)) if isinstance(value, ast.Constant) else None
    if name.endswith("TrainingArguments"):
        return next((dtype for flag, dtype in (("bf16", "bfloat16"), ("fp16", "float16")) if _is_true(given.get(flag))), None)
    if name != "autocast" or ("enabled" in given and not _is_true(given["enabled"])):
        return None
    dtype = given.get("dtype", call.args[1] if len(call.args) > 1 else None)
    if dtype is None:
        device = given.get("device_type", call.args[0] if call.args else None)
        return "bfloat16" if isinstance(device, ast.Constant) and device.value == "cpu" else "float16"
    return _DTYPES.get(last_name(dtype))


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
