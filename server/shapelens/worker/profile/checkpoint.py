"""The state of a model beside what a file of weights holds: each tensor of either, and what `load_state_dict` says of the two."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import torch

from ...profiles import CheckpointSeen, StatePair
from ...traces import Value
from ..calls.state_dicts import Compared, compared_with, finding_of, may_be_same, owners, shapes_in, shapes_of, state_inside
from ..calls.state_names import changed
from ..shims.pretrained import weight_files
from ..trace.value_summary import key_of, value_of

_plainly = torch._C.DisableTorchFunction


def compare(file: str, module: Any, calls: Any) -> CheckpointSeen:
    """Returns how the state of a module goes with a file; nothing is copied. calls: the layers that the evaluation has seen."""
    found = CheckpointSeen()
    try:
        held = weight_files.contents(file)
    except weight_files.NoWeights as error:
        found.error = str(error)
        return found
    with _plainly():
        if not isinstance(held, Mapping):
            found.error = "holds no state, but a value of type %s" % type(held).__name__
            return found
        own = shapes_of(module)
        shapes = shapes_in({name: value for name, value in held.items() if type(name) is str})
        count, inside, inner = state_inside({name: value for name, value in held.items() if type(name) is str}, own)
        if count > len(own.keys() & shapes.keys()):
            found.inside, held = inside, inner
        elif not shapes:
            found.error = "holds no tensors under names, but %s" % ", ".join([str(name) for name in list(held)[:6]] or ["nothing"])
            return found
        compared = compared_with(module, held)
        if compared is None:
            found.error = "cannot be compared: not all that %s holds is known here" % type(module).__name__
            return found
        if compared.refuses(True):
            found.mismatch = finding_of(module, held, compared, True)
            layers = {origin.layer for origin in found.mismatch.origins if origin.layer is not None}
            found.layers = calls.layers(0, lambda number, seen: [], layers)
            _number_anew(found)
        found.pairs = _pairs(module, held, compared, found)
    return found


def _number_anew(found: CheckpointSeen) -> None:
    """Have the mismatch speak of layers by their places among those that are sent."""
    places = {layer.index: place for place, layer in enumerate(found.layers)}
    mismatch = found.mismatch
    assert mismatch is not None
    mismatch.layer = places.get(mismatch.layer) if mismatch.layer is not None else None
    for origin in mismatch.origins:
        origin.layer = places.get(origin.layer) if origin.layer is not None else None


def _pairs(module: Any, state: Mapping[str, Any], compared: Compared, found: CheckpointSeen) -> List[StatePair]:
    seen = found.mismatch.state if found.mismatch is not None else None
    changes = seen.changes if seen is not None else []
    names_there: Dict[str, str] = {}
    for name_there in state:
        name = name_there
        for change in changes:
            name = changed(name, change)
        names_there.setdefault(name, name_there)
    differing = {name for name, _, _ in compared.sizes}
    pairs = []
    for name, _, _, tensor in owners(module):
        if name not in names_there:
            status = "missing" if changes or name in compared.missing else "own"
            pairs.append(StatePair(name, _value(tensor), None, status))
            continue
        name_there = names_there.pop(name)
        there = state[name_there]
        if changes:
            fits = isinstance(there, torch.Tensor) and may_be_same(tuple(there.shape), tuple(tensor.shape))
        else:
            fits = name not in differing
        other_name = name_there if name_there != name else ""
        pairs.append(StatePair(name, _value(tensor), _value(there), "fits" if fits else "differs", other_name))
    for name_there in names_there.values():
        status = "unexpected" if changes or name_there in compared.unexpected else "own"
        pairs.append(StatePair(name_there, None, _value(state[name_there]), status))
    return pairs


def _value(value: Any) -> Optional[Value]:
    return value_of(key_of(value)) if isinstance(value, torch.Tensor) else Value("other", type(value).__name__)
