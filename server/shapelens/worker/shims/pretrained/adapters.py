"""Adapters of `peft`: they are put into the model as their configuration says; a model whose adapter is not here stays as it is."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any, Dict, List

from ..compilers import Replacement, nothing, unchanged
from ..imported_names import wherever_imported


def _no_weights(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    return {}


def _loaded(*args: Any, **kwargs: Any) -> Any:
    """Returns what loading weights says of them: nothing was missing."""
    return SimpleNamespace(missing_keys=[], unexpected_keys=[], mismatched_keys=[])


def weights(module: ModuleType) -> List[Replacement]:
    """The replacements in `peft.utils.save_and_load`."""
    out = wherever_imported(module, "load_peft_weights", _no_weights)
    return out + wherever_imported(module, "set_peft_model_state_dict", _loaded)


def model(module: ModuleType) -> List[Replacement]:
    """The replacements in `peft.peft_model`."""
    cls = module.PeftModel
    original = cls.__dict__["from_pretrained"].__func__

    def from_pretrained(cls: Any, base: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(cls, base, *args, **kwargs)
        except (OSError, ValueError, ImportError):  # Its configuration is not here: an adapter changes no shapes.
            for name in ("merge_and_unload", "unload"):
                base.__dict__.setdefault(name, lambda *args, **kwargs: base)
            for name in ("print_trainable_parameters", "set_adapter", "load_adapter"):
                base.__dict__.setdefault(name, nothing)
            return unchanged(base)

    return [(cls, "from_pretrained", classmethod(from_pretrained)), (cls, "save_pretrained", nothing)]
