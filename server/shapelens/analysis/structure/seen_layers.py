"""A model as a trace shows it before it is profiled: its modules, their shapes and parameters, what fails; no operations, no memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from shapelens.analysis.traces.shown import Shown
from shapelens.profiles import ModelProfile, ProfiledModule, Step
from shapelens.traces import LayerSeen, Mismatch, Trace, Value

NOTHING = Value("other")


def profile_of(trace: Trace, shown: Shown) -> ModelProfile | None:
    """The profile of an example as far as its trace tells it; None where that does not say what is a part of what.

    Modules are in the order in which they were made, as the order of their calls is not in a trace.
    """
    number = next((number for number, run in enumerate(trace.examples) if run is shown.example), None)
    every = [layer for layer in trace.layers if layer.example == number]
    model = _model(every, shown.example.target)
    layers = [layer for layer in every if layer.path or layer is model]
    paths = {layer.path: place for place, layer in enumerate(layers)}
    if model is None or len(paths) < len(layers):
        return None
    mismatches = [mismatch for mismatch in trace.mismatches if mismatch.example == number]
    amounts = _amounts(layers, paths)
    found = ModelProfile(dims=dict(shown.example.dims), mismatches=mismatches, is_complete=False)
    found.error = shown.example.error
    failed = _failures(mismatches, {layer.index: place for place, layer in enumerate(layers)})
    for place, layer in enumerate(layers):
        found.modules.append(
            ProfiledModule(
                layer.path, layer.class_name, layer.qualified_name, layer.description, layer.span, layer.parameter_count, *amounts[place]
            )
        )
        first = len(found.steps)
        for call in layer.calls:
            for _ in range(call.count):
                found.steps.append(Step("module", "", place, None, len(found.steps) + 1, layer.call_span, call.output))
        if place in failed and len(found.steps) == first:
            found.steps.append(Step("module", "", place, None, first + 1, layer.call_span, NOTHING))
        for mismatch, is_own in failed.get(place, ()):
            _mark(found, mismatch, is_own=is_own)
    return found


def _model(layers: Sequence[LayerSeen], target: str) -> LayerSeen | None:
    """The model, which has no path, as what else the example builds and what libraries do has none; None where that is not sure."""
    alone = [layer for layer in layers if not layer.path]
    of_class = [layer for layer in alone if layer.class_name == target.rpartition(".")[2]]
    for found in (of_class, alone):
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _amounts(layers: Sequence[LayerSeen], paths: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Of each layer, with those inside of it: how many parameters are trained, bytes of parameters, bytes of buffers."""
    found = [[0, 0, 0] for _ in layers]
    for layer in layers:
        own = [
            sum(prod(each.shape) for each in layer.parameters if each.trainable and not each.buffer),
            sum(each.bytes for each in layer.parameters if not each.buffer),
            sum(each.bytes for each in layer.parameters if each.buffer),
        ]
        path: str | None = layer.path
        while path is not None:
            if path in paths:
                total = found[paths[path]]
                total[:] = [one + other for one, other in zip(total, own, strict=True)]
            path = path.rpartition(".")[0] if path else None
    return [(trained, held, buffers) for trained, held, buffers in found]


def _failures(mismatches: Sequence[Mismatch], places: Mapping[int, int]) -> dict[int, list[tuple[int, bool]]]:
    """By the place of a module, the numbers of what failed there, and whether the module itself did, or an operation of its forward."""
    found: dict[int, list[tuple[int, bool]]] = {}
    for number, mismatch in enumerate(mismatches):
        if mismatch.layer is not None and mismatch.layer in places:
            found.setdefault(places[mismatch.layer], []).append((number, True))
        elif inside := [places[layer] for layer in mismatch.inside if layer in places]:
            found.setdefault(inside[0], []).append((number, False))
    return found


def _mark(profile: ModelProfile, mismatch: int, *, is_own: bool) -> None:
    """Have the last step, or an operation in it, be what failed."""
    call = max(number for number, step in enumerate(profile.steps) if step.kind == "module")
    if is_own:
        profile.steps[call].mismatch = mismatch
        return
    seen = profile.mismatches[mismatch]
    end = len(profile.steps) + 1
    profile.steps.append(Step("operation", seen.operation, None, call, end, seen.span, NOTHING, mismatch=mismatch))
    profile.steps[call].end = end
