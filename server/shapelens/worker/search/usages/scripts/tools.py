"""Tools that call a model themselves: tracers, exporters, summaries, counters of operations. What they are given tells how it is called."""

from __future__ import annotations

import ast
from typing import List, Optional

from .scope import CallArguments
from .tensors import shorthand
from .values import ScriptValue, constant

OF_TORCH = {"trace": "example_inputs", "export": "args"}  # whose names others have too
CALLS_IT = {
    "FlopCountAnalysis": "inputs", "flop_count": "inputs", "profile": "inputs", "add_graph": "input_to_model", "build_graph": "args",
    "draw_graph": "input_data",
}  # fmt: skip
SIZES = {"summary", "get_model_complexity_info"}
BATCH = 2  # where a tool adds one itself


def inputs_of_tool(name: str, given: CallArguments) -> Optional[CallArguments]:
    """Returns the arguments of the model; None where the tool is none of these, or does not say them."""
    tail = name.rpartition(".")[2]
    keyword = CALLS_IT.get(tail) or (OF_TORCH.get(tail) if name.startswith("torch.") else None)
    if keyword is not None:
        found = given.by_name(keyword, 1)
        if found is None:
            return None
        if found.items is not None and isinstance(found.node, (ast.Tuple, type(None))):
            return CallArguments(list(found.items), [])
        return CallArguments([found], [])
    if tail in SIZES:
        return _by_size(name, given)
    return None


def _by_size(name: str, given: CallArguments) -> Optional[CallArguments]:
    ready = given.by_name("input_data")
    if ready is not None:
        return CallArguments(list(ready.items) if ready.items is not None else [ready], [])
    sizes = given.by_name("input_size") or given.by_name("input_res") or (given.positional[1] if len(given.positional) > 1 else None)
    known = sizes.known() if sizes is not None else None
    if not isinstance(known, (ast.Tuple, ast.List)) or not known.elts:
        return None
    shapes = [part for part in known.elts if isinstance(part, (ast.Tuple, ast.List))]
    has_batch = name.startswith("torchinfo")
    return CallArguments([_tensor(part.elts, has_batch) for part in shapes] if shapes else [_tensor(known.elts, has_batch)], [])


def _tensor(sizes: List[ast.expr], has_batch: bool) -> ScriptValue:
    return ScriptValue(shorthand("f32", list(sizes) if has_batch else [constant(BATCH)] + list(sizes)))
