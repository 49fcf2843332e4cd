"""The short names of dtypes in examples (`f32`), by what torch calls the dtypes and the types of tensors."""

from __future__ import annotations

from typing import Dict

import torch

from ..meta.legacy_constructors import DTYPES

SHORTHANDS: Dict[str, torch.dtype] = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
    "c64": torch.complex64,
    "c128": torch.complex128,
}
_OF = {dtype: shorthand for shorthand, dtype in SHORTHANDS.items()}

BY_NAME = {name: _OF[dtype] for name, dtype in vars(torch).items() if isinstance(dtype, torch.dtype) and dtype in _OF}
"""`float32`, `float`, `long`, …: the attributes of torch that are dtypes."""

BY_TENSOR_TYPE = {name: _OF[dtype] for name, dtype in DTYPES.items()}
"""`FloatTensor`, `LongTensor`, …"""
