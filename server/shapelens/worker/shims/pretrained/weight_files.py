"""Files of weights: the names, shapes and dtypes in them, never the numbers.

What torch has written is read as weights only, onto the meta device: a pickle that asks for more is not read. A file of safetensors says
all of it in its header. An index names the files that share a state.
"""

from __future__ import annotations

import json
import os
import struct
import warnings
from typing import Any, Dict, Optional

import torch

from ...calls.state_dicts import FROM
from ...meta.mode import made
from ...sandbox.audit_hook import opened

_load = torch.load

INDEX = ".index.json"
SAFETENSORS = ".safetensors"
LONGEST_HEADER = 100 << 20  # bytes, as in the library
LARGEST_LEGACY = 1 << 30  # bytes: of the format before torch 1.6 all of the file is gone through
_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "C64": "complex64",
}  # fmt: skip


def read(path: str) -> Optional[Any]:
    """What a file holds, in a list; None where it is not there, or does not say."""
    opened.add(path)  # The run depends on it, even if it is not there.
    if not os.path.isfile(path):
        return None
    try:
        if path.endswith(INDEX):
            return _of_index(path)
        value = _header(path) if _is_safetensors(path) else _of_torch(path)
    except Exception:  # A broken file, an older format, what is more than weights.
        return None
    _mark(value, os.path.basename(path))
    return [value]


def _of_torch(path: str) -> Any:
    with torch._C.DisableTorchFunction(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_zip(path):
            return _load(path, map_location="meta", mmap=True, weights_only=True)
        if os.path.getsize(path) > LARGEST_LEGACY:
            raise ValueError("too large")
        return _load(path, map_location="meta", weights_only=True)


def is_zip(path: str) -> bool:
    """Whether torch has written a file since its version 1.6."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _is_safetensors(path: str) -> bool:
    """Whether a file begins with the length of a header, and the header."""
    if path.endswith(SAFETENSORS):
        return True
    with open(path, "rb") as file:
        start = file.read(9)
    return len(start) == 9 and start[8:] == b"{" and struct.unpack("<Q", start[:8])[0] <= LONGEST_HEADER


def _header(path: str) -> Dict[str, Any]:
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > LONGEST_HEADER:
            raise ValueError("too long a header")
        header: Dict[str, Any] = json.loads(file.read(length))
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    return {name: made(entry["shape"], _dtype(entry["dtype"])) for name, entry in entries.items()}


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, _DTYPES.get(name, ""), torch.float32)


def _of_index(path: str) -> Optional[Any]:
    """The state that several files share. None where one of them cannot be read."""
    with open(path, encoding="utf-8") as file:
        weight_map = json.load(file)["weight_map"]
    state: Dict[str, Any] = {}
    for name in sorted(set(weight_map.values())):
        part = read(os.path.join(os.path.dirname(path), os.path.basename(name)))
        if part is None or not isinstance(part[0], dict):
            return None
        state.update(part[0])
    _mark(state, os.path.basename(path))
    return [state]


def _mark(value: Any, name: str) -> None:
    """Note on the tensors of a dict which file they come from."""
    if isinstance(value, torch.Tensor):
        value.__dict__[FROM] = name
    elif isinstance(value, dict):
        for each in value.values():
            _mark(each, name)
