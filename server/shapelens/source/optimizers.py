"""Which optimizer a program makes, as far as its text says."""

from __future__ import annotations

import ast
from functools import lru_cache

from shapelens.stated.syntax_trees import last_name, program_of

_KNOWN = {
    "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adadelta", "Adagrad", "RMSprop", "Rprop", "ASGD", "Adafactor",
    "Adam8bit", "AdamW8bit", "PagedAdam8bit", "PagedAdamW8bit", "Lion", "Lion8bit", "SGD8bit", "Muon",
}  # fmt: skip


@lru_cache(maxsize=8)  # The view of a model asks for it time and again.
def optimizer_of(text: str) -> str | None:
    """The optimizer that the first constructor call in a text names: "AdamW", or "momentum" for SGD with one; None where there is none."""
    tree = program_of(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        name = last_name(call.func)
        if name not in _KNOWN:
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if name == "SGD" and "momentum" in given and not _is_false(given["momentum"]):
            return "momentum"
        if name in ("Adam", "AdamW") and "amsgrad" in given and not _is_false(given["amsgrad"]):
            return "amsgrad"
        return name
    return None


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value
