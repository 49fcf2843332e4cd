"""One training step on the CPU with real tensors, and what it allocates: `training_step.py FILE EXPRESSION` prints it as JSON.

For training_memory.py. The expression is an example, `Net()(f32[B:2, 3])`: its call is taken apart, so that the model is in training mode.
Beside it what torch's MemTracker sees of another such step, and what torchinfo counts, where it is installed.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "bool": torch.bool,
}


class Maker:
    """`f32[2, 3]`: random numbers, or zeros where they are no floats."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __getitem__(self, dims: Any) -> torch.Tensor:
        sizes = dims if isinstance(dims, tuple) else (dims,)
        return torch.rand(sizes, dtype=self.dtype) if self.dtype.is_floating_point else torch.zeros(sizes, dtype=self.dtype)


def main(path: Path, expression: str) -> None:
    """Take the step, and print what it allocated."""
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    names = _loaded(path)
    call = ast.parse(re.sub(r"([A-Za-z_]\w*):(\d+)", r"\2", expression), mode="eval").body
    assert isinstance(call, ast.Call)

    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<example>", "eval"), names)

    model = value(call.func).train()
    args: list[Any] = []
    for argument in call.args:
        args += value(argument.value) if isinstance(argument, ast.Starred) else [value(argument)]
    kwargs = {str(keyword.arg): value(keyword.value) for keyword in call.keywords}
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, foreach=False)
    _loss(model(*args, **kwargs)).backward()  # The first step makes the optimizer's state.
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with FlopCounterMode(display=False, custom_mapping=_attention_on_the_cpu()) as counter:
        model(*args, **kwargs)
    gc.collect()
    state = _bytes(tensor for kept in optimizer.state.values() for tensor in kept.values())
    attributes = [value for module in model.modules() for value in vars(module).values()]  # Tensors that are no buffers are there, too.
    there = _bytes([*model.parameters(), *model.buffers(), *attributes, *tree_leaves((args, kwargs))]) + state
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        with record_function("phase forward"):
            result = model(*args, **kwargs)
        loss = _loss(result)
        del result
        loss.backward()
        optimizer.step()
    kept, peak = _amounts(profiled)
    found = {
        "activations": kept,
        "kept": kept + there,
        "peak": peak + there,
        "parameters": _bytes(model.parameters()),
        "gradients": _bytes(parameter.grad for parameter in parameters),
        "state": state,
        "flops": counter.get_total_flops(),
        "parameter_count": sum(parameter.numel() for parameter in model.parameters()),
        **_tracked(model, lambda: model(*args, **kwargs), optimizer, tree_leaves((args, kwargs))),
        **_torchinfo(model, args, kwargs),
    }
    print("RESULT" + json.dumps(found))


def _tracked(model: Any, forward: Callable[[], Any], optimizer: Any, inputs: list[Any]) -> dict[str, Any]:
    """What is there after forward, and at most, as MemTracker sees the storages that operations make: not what kernels allocate inside."""
    optimizer.zero_grad(set_to_none=True)
    tracker = MemTracker()
    try:
        tracker.track_external(model, optimizer, *[leaf for leaf in inputs if isinstance(leaf, torch.Tensor)])
        with tracker:
            result = forward()
            kept = _total(tracker.get_tracker_snapshot("current"))
            loss = _loss(result)
            del result
            loss.backward()
            optimizer.step()
        return {"tracked_kept": kept, "tracked_peak": _total(tracker.get_tracker_snapshot("peak"))}
    except Exception as error:
        return {"tracker_error": f"{type(error).__name__}: {error}"}


def _total(snapshot: dict[Any, dict[str, int]]) -> int:
    return sum(amounts["Total"] for amounts in snapshot.values())


def _torchinfo(model: Any, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Parameters and multiplications with additions as torchinfo counts them: those of layers with parameters alone."""
    try:
        import torchinfo
    except ImportError:
        return {}
    try:
        found = torchinfo.summary(model, input_data=args, verbose=0, device="cpu", mode="train", **kwargs)
    except Exception as error:
        return {"torchinfo_error": f"{type(error).__name__}: {error}"}
    return {"torchinfo_parameters": found.total_params, "torchinfo_mult_adds": found.total_mult_adds}


def _attention_on_the_cpu() -> dict[Any, Any]:
    """The rule of torch's counter for attention, for the kernel that a CPU has for it: the counter knows those of CUDA devices only."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return {kernel: lambda query, key, value, *args, **kwargs: sdpa_flop_count(query, key, value)}


def _loaded(path: Path) -> dict[str, Any]:
    """The names of a file, which is imported as a part of the package that it is in."""
    folder, name = path.parent, path.stem
    while (folder / "__init__.py").exists():
        folder, name = folder.parent, f"{folder.name}.{name}"
    sys.path.insert(0, str(folder))
    names: dict[str, Any] = dict(vars(importlib.import_module(name)))
    for shorthand, dtype in DTYPES.items():
        names.setdefault(shorthand, Maker(dtype))
    return {"torch": torch, "nn": torch.nn, **names}


def _loss(result: Any) -> torch.Tensor:
    """A single number that needs a gradient as it is; else the sum of all that do."""
    leaves = tree_leaves(result.to_tuple() if hasattr(result, "to_tuple") else result)
    found = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if len(found) == 1 and not found[0].dim():
        return found[0]
    sums = [leaf.real.sum() if leaf.is_complex() else leaf.sum() for leaf in found]
    total = sums[0]
    for each in sums[1:]:
        total = total + each
    return total


def _bytes(values: Any) -> int:
    storages = [value.untyped_storage() for value in values if isinstance(value, torch.Tensor)]
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def _amounts(profiled: Any) -> tuple[int, int]:
    """What is allocated once forward has ended, and at most, in bytes, beside what was there."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    end = next(float(event["ts"]) + float(event["dur"]) for event in events if event.get("name") == "phase forward" and "dur" in event)
    kept = live = peak = 0
    for time, size in sorted((float(event["ts"]), int(event["args"]["Bytes"])) for event in events if event.get("name") == "[memory]"):
        live += size
        peak = max(peak, live)
        kept = live if time <= end else kept
    return kept, peak


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
