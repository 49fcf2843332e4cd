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
    kept, peak = _amounts(_profiled(model, args, kwargs, optimizer.step))
    found = {
        "activations": kept,
        "kept": kept + there,
        "peak": peak + there,
        "parameters": _bytes(model.parameters()),
        "gradients": _bytes(parameter.grad for parameter in parameters),
        "state": state,
        "flops": counter.get_total_flops(),
        "parameter_count": sum(parameter.numel() for parameter in model.parameters()),
        "modules": _of_modules(model, args, kwargs, optimizer),
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


def _profiled(model: Any, args: list[Any], kwargs: dict[str, Any], update: Callable[[], Any] = lambda: None) -> list[dict[str, Any]]:
    """What the profiler saw of a step, memory included."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        with record_function("phase forward"):
            result = model(*args, **kwargs)
        loss = _loss(result)
        del result
        loss.backward()
        update()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(file))
        return list(json.loads(file.read_text())["traceEvents"])


def _amounts(events: list[dict[str, Any]]) -> tuple[int, int]:
    """What is allocated once forward has ended, and at most, in bytes, beside what was there."""
    end = _end_of_forward(events)
    kept = live = peak = 0
    for time, size in sorted((float(event["ts"]), int(event["args"]["Bytes"])) for event in events if event.get("name") == "[memory]"):
        live += size
        peak = max(peak, live)
        kept = live if time <= end else kept
    return kept, peak


def _end_of_forward(events: list[dict[str, Any]]) -> float:
    return next(float(event["ts"]) + float(event["dur"]) for event in events if event.get("name") == "phase forward" and "dur" in event)


def _of_modules(model: Any, args: list[Any], kwargs: dict[str, Any], optimizer: Any) -> dict[str, list[int]]:
    """By the path of each module that is called: bytes of gradients, of AdamW's state, of what is kept, of the most that is temporary."""
    optimizer.zero_grad(set_to_none=True)
    handles = []
    nodes: list[tuple[int, int, str]] = []  # of each call: the numbers of autograd's first node, and of the one after its last
    for path, module in model.named_modules():
        ranges: list[tuple[Any, int]] = []

        def begin(module: Any, given: Any, path: str = path, ranges: list[tuple[Any, int]] = ranges) -> None:
            ranges.append((record_function(f"module {path}"), torch.autograd._get_sequence_nr()))  # type: ignore[attr-defined]
            ranges[-1][0].__enter__()

        def end(module: Any, given: Any, result: Any, path: str = path, ranges: list[tuple[Any, int]] = ranges) -> None:
            recorded, first = ranges.pop()
            recorded.__exit__(None, None, None)
            nodes.append((first, torch.autograd._get_sequence_nr(), path))  # type: ignore[attr-defined]

        handles += [module.register_forward_pre_hook(begin, prepend=True), module.register_forward_hook(end, always_call=True)]
    events = _profiled(model, args, kwargs)
    for handle in handles:
        handle.remove()
    found: dict[str, list[int]] = {}
    amounts = _amounts_of_modules(events, nodes)
    for path, module in model.named_modules():
        if path in amounts:
            parameters = list(module.parameters())
            state = [value for each in parameters for value in optimizer.state.get(each, {}).values()]
            found[path] = [_bytes(each.grad for each in parameters), _bytes(state), *amounts[path]]
    return found


def _amounts_of_modules(events: list[dict[str, Any]], nodes: list[tuple[int, int, str]]) -> dict[str, tuple[int, int]]:
    """By path: what was allocated in a module's calls and is there when forward has ended, and the most of all else at one moment.

    A part of backward is of the modules in whose calls its node was made.
    """
    end = _end_of_forward(events)
    timed = [(float(event["ts"]), float(event["ts"]) + float(event["dur"]), event) for event in events if "dur" in event and "ts" in event]
    calls = [(first, last, event["name"][7:]) for first, last, event in timed if str(event["name"]).startswith("module ")]
    backward = [
        (first, last, {path for begin, stop, path in nodes if begin <= event["args"]["Sequence number"] < stop})
        for first, last, event in timed
        if "evaluate_function" in str(event["name"]) and "Sequence number" in event.get("args", {})
    ]
    living: dict[int, tuple[float, int]] = {}
    lives: list[tuple[float, float | None, int]] = []
    for event in sorted((event for event in events if event.get("name") == "[memory]"), key=lambda event: float(event["ts"])):
        time, size, address = float(event["ts"]), int(event["args"]["Bytes"]), int(event["args"]["Addr"])
        if size > 0:
            living[address] = time, size
        elif address in living:
            born, made = living.pop(address)
            lives.append((born, time, made))
    lives += [(born, None, size) for born, size in living.values()]
    kept: dict[str, int] = {path: 0 for _, _, path in calls}
    changes: dict[str, list[tuple[float, int]]] = {path: [] for _, _, path in calls}
    for born, died, size in lives:
        is_kept = born <= end and (died is None or died > end)
        if born <= end:
            owners = {path for first, last, path in calls if first <= born <= last}
        else:
            owners = {path for first, last, paths in backward if first <= born <= last for path in paths}
        for path in owners:
            if is_kept:
                kept[path] += size
            elif died is not None:  # What stays is the gradient of a parameter.
                changes[path] += [(born, size), (died, -size)]
    return {path: (kept[path], _most(changes[path])) for path in kept}


def _most(changes: list[tuple[float, int]]) -> int:
    live = most = 0
    for _, change in sorted(changes):
        live += change
        most = max(most, live)
    return most


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
