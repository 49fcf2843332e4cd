"""`safetensors`: a file of the user's own is the shapes in its header; of one that is not here nothing is known."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from types import ModuleType
from typing import Any, Dict, List

import torch

from ...meta.mode import made
from ...unknown import stand_ins
from ..compilers import Replacement, nothing
from ..imported_names import wherever_imported

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
    "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
LONGEST_HEADER = 100 << 20  # bytes, as in the library


def _loaded(filename: Any, *args: Any, **kwargs: Any) -> Any:
    """safetensors.torch.load_file"""
    path = os.fspath(filename)
    if os.path.isfile(path) and not os.path.realpath(path).startswith(os.path.realpath(tempfile.gettempdir())):
        try:
            with open(path, "rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header: Dict[str, Any] = json.loads(file.read(length)) if length <= LONGEST_HEADER else {}
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            return {name: made(entry["shape"], DTYPES.get(entry["dtype"], torch.float32)) for name, entry in entries.items()}
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            pass
    return stand_ins.absent("what %s holds" % os.path.basename(path), "missing-file")


def safetensors(module: ModuleType) -> List[Replacement]:
    """The replacements in `safetensors.torch`."""
    out = wherever_imported(module, "load_file", _loaded)
    for name in ("save_file", "save_model"):
        out += wherever_imported(module, name, nothing)
    return out + wherever_imported(module, "load_model", lambda *args, **kwargs: (set(), []))
