"""`safetensors`: a file of the user's own is the shapes in its header; of one that is not here nothing is known."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any, Dict, List

from ...unknown import stand_ins
from .. import checkpoints
from ..compilers import Replacement
from ..imported_names import wherever_imported


def _saved(tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> None:
    """safetensors.torch.save_file"""
    checkpoints.keep(tensors, filename)


class Opened:
    """safetensors.safe_open, which gives one tensor after the other."""

    def __init__(self, filename: Any = "", *args: Any, **kwargs: Any) -> None:
        found = checkpoints.load(filename)
        self._state: Any = found if isinstance(found, dict) else None
        self._name = os.path.basename(os.fspath(filename))

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *args: Any) -> None:
        """Nothing is open."""

    def keys(self) -> Any:
        """The names of the tensors."""
        return self._unknown() if self._state is None else list(self._state)

    offset_keys = keys

    def __iter__(self) -> Any:
        return iter(self.keys())

    def get_tensor(self, name: str) -> Any:
        """The tensor of a name."""
        return self._unknown() if self._state is None else self._state[name]

    get_slice = get_tensor

    def metadata(self) -> Dict[str, str]:
        """Returns what else the file says."""
        return {}

    def _unknown(self) -> Any:
        return stand_ins.absent("what %s holds" % self._name, "missing-file")


# What takes the place of the library's functions where it is not installed.
stand_ins.BEHAVIOURS.update({"safetensors.torch.load_file": checkpoints.load, "safetensors.safe_open": Opened})
stand_ins.BEHAVIOURS.update({"safetensors.torch.save_file": _saved, "safetensors.torch.safe_open": Opened})


def safetensors(module: ModuleType) -> List[Replacement]:
    """The replacements in `safetensors.torch`."""
    out = wherever_imported(module, "load_file", checkpoints.load) + wherever_imported(module, "save_file", _saved)
    out += wherever_imported(module, "save_model", lambda *args, **kwargs: None)
    if "safe_open" in module.__dict__:
        out += wherever_imported(module, "safe_open", Opened)
    return out + wherever_imported(module, "load_model", lambda *args, **kwargs: (set(), []))
