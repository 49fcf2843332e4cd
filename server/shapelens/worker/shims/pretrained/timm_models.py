"""Models of `timm`, and of what is built on it: the architecture is in the library, its weights are not asked for."""

from __future__ import annotations

from types import ModuleType
from typing import Any, List

from ..compilers import Replacement, nothing
from ..imported_names import wherever_imported


def builder(module: ModuleType) -> List[Replacement]:
    """The replacements in `timm.models._builder`."""
    names = ("load_pretrained", "load_custom_pretrained")
    return [each for name in names if name in module.__dict__ for each in wherever_imported(module, name, nothing)]


def checkpoints(module: ModuleType) -> List[Replacement]:
    """The replacements in `timm.models._helpers`: `checkpoint_path=…`, `load_checkpoint(…)`."""
    return wherever_imported(module, "load_checkpoint", nothing) if "load_checkpoint" in module.__dict__ else []


def hub_configs(module: ModuleType) -> List[Replacement]:
    """The replacements in `timm.models._hub`: `hf-hub:timm/NAME` is the architecture NAME where its configuration is not here."""
    original = module.load_model_config_from_hf

    def load_model_config_from_hf(model_id: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(model_id, *args, **kwargs)
        except Exception:
            from timm.models import is_model  # type: ignore[import-not-found]

            owner, _, name = str(model_id).partition("@")[0].rpartition("/")
            if owner != "timm" or not is_model(name.partition(".")[0]):
                raise
            from timm.models import get_pretrained_cfg

            known = get_pretrained_cfg(name)
            return (known.to_dict() if known is not None else {}), name.partition(".")[0], {}

    return wherever_imported(module, "load_model_config_from_hf", load_model_config_from_hf)
