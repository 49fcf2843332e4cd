"""Functions that other modules have imported by name (`from huggingface_hub import hf_hub_download`): replaced in each of them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, List

from .compilers import Replacement


def wherever_imported(module: ModuleType, name: str, value: Any) -> List[Replacement]:
    """The replacement of a module's function, in the module and in all others that hold the function under this name."""
    original = module.__dict__[name]
    holders = [each for each in list(sys.modules.values()) if isinstance(each, ModuleType) and each.__dict__.get(name) is original]
    return [(holder, name, value) for holder in holders]
