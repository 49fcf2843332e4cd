"""Files of weights: the names, shapes and dtypes in them, never the numbers.

What torch has written is read as weights only, onto the meta device: a pickle that asks for more is not read. A file of safetensors says
all of it in its header. An index names the files that share a state.
"""

from __future__ import annotations

import json
import os
import re
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
_REFUSED = re.compile(r"(?:GLOBAL|class|function|instantiate) ([\w.]+\.\w+)")  # in what torch says of a pickle that is more than weights


class NoWeights(Exception):
    """A file says nothing of weights; the text says why, in words that follow the file's name."""


def read(path: str) -> Optional[Any]:
    """Returns what a file holds, in a list; None where it is not there, or does not say."""
    try:
        return [contents(path)]
    except NoWeights:
        return None


def contents(path: str) -> Any:
    """Returns what a file holds. Raises NoWeights."""
    opened.add(path)  # The run depends on it, even if it is not there.
    if not os.path.isfile(path):
        raise NoWeights("is a folder" if os.path.isdir(path) else "is not there")
    try:
        value = _of_index(path) if path.endswith(INDEX) else _header(path) if _is_safetensors(path) else _of_torch(path)
    except NoWeights:
        raise
    except Exception as error:  # A broken file, an older format, what is more than weights.
        raise NoWeights(_reason(path, error)) from error
    _mark(value, os.path.basename(path))
    return value


def _reason(path: str, error: Exception) -> str:
    """Why a file cannot be read."""
    if isinstance(error, OSError) and error.strerror:
        return "cannot be read: %s" % error.strerror
    if path.endswith(INDEX):
        return "is no index of files of weights"
    said = str(error)
    refused = _REFUSED.search(said)
    if refused is not None:
        return "holds more than weights (%s), which is not unpickled" % refused[1].rstrip(".")
    if "TorchScript" in said:
        return "is an archive of TorchScript, whose weights are not read"
    if "too large" in said:
        return "is of the format before torch 1.6 and larger than 1 GB"
    if is_zip(path) or path.endswith(SAFETENSORS):
        return "is broken, or no file of weights"
    return "is no file of weights that torch.save or safetensors has written"


def _of_torch(path: str) -> Any:
    with torch._C.DisableTorchFunction(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_zip(path):
            return _load(path, map_location="meta", mmap=True, weights_only=True)
        if os.path.getsize(path) > LARGEST_LEGACY:
            raise ValueError("too large")
        return _load(path, map_location="meta", weights_only=True)


def is_zip(path: str) -> bool:
    """True if torch has written a file since its version 1.6."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _is_safetensors(path: str) -> bool:
    """True if a file begins with the length of a header, and the header."""
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


def _of_index(path: str) -> Dict[str, Any]:
    """The state that several files share."""
    with open(path, encoding="utf-8") as file:
        weight_map = json.load(file)["weight_map"]
    state: Dict[str, Any] = {}
    for name in sorted(set(weight_map.values())):
        try:
            part = contents(os.path.join(os.path.dirname(path), os.path.basename(name)))
        except NoWeights as error:
            raise NoWeights("names %s, which %s" % (os.path.basename(name), error)) from error
        if not isinstance(part, dict):
            raise NoWeights("names %s, which holds no weights" % os.path.basename(name))
        state.update(part)
    return state


def _mark(value: Any, name: str) -> None:
    """Note on the tensors of a dict which file they come from."""
    if isinstance(value, torch.Tensor):
        value.__dict__[FROM] = name
    elif isinstance(value, dict):
        for each in value.values():
            _mark(each, name)
