"""Models of pictures whose architecture their library holds: `torchvision`, `open_clip`,
`segmentation_models_pytorch`, `efficientnet_pytorch`."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Dict, List

from ..compilers import Replacement, nothing
from ..imported_names import wherever_imported


def _no_weights(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    return {}


def torchvision_weights(module: ModuleType) -> List[Replacement]:
    """The replacements in `torchvision.models._api`."""
    return [(module.WeightsEnum, "get_state_dict", _no_weights)]


def torchvision_urls(module: ModuleType) -> List[Replacement]:
    """The replacements in `torchvision._internally_replaced_utils`."""
    return wherever_imported(module, "load_state_dict_from_url", _no_weights)


def open_clip_weights(module: ModuleType) -> List[Replacement]:
    """The replacements in `open_clip.pretrained`: a path for weights that nobody reads."""
    out: List[Replacement] = []
    for name in ("download_pretrained", "download_pretrained_from_url"):
        if name in module.__dict__:
            out += wherever_imported(module, name, lambda *args, **kwargs: "open_clip_model.safetensors")
    return out


def open_clip_loading(module: ModuleType) -> List[Replacement]:
    """The replacements in `open_clip.factory`."""
    out = wherever_imported(module, "load_checkpoint", nothing)
    if "load_state_dict" in module.__dict__:
        out += wherever_imported(module, "load_state_dict", _no_weights)
    if "_get_hf_config" in module.__dict__:
        out.append((module, "_get_hf_config", _open_clip_config(module, module._get_hf_config)))
    return out


def _open_clip_config(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    """The configuration of a repository, or the one that the library has of the weights in it."""

    def get_hf_config(model_id: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(model_id, *args, **kwargs)
        except Exception:
            from open_clip.pretrained import _PRETRAINED  # type: ignore[import-not-found]

            for architecture, weights in _PRETRAINED.items():
                if any(str(each.get("hf_hub", "")).rstrip("/") == str(model_id) for each in weights.values()):
                    return {"model_cfg": module.get_model_config(architecture), "preprocess_cfg": {}}
            raise

    return get_hf_config


def segmentation_weights(module: ModuleType) -> List[Replacement]:
    """The replacements in `segmentation_models_pytorch.encoders`."""
    names: Dict[str, Any] = {"hf_hub_download": lambda *args, **kwargs: "", "load_file": _no_weights}
    return [(module, name, value) for name, value in names.items() if name in module.__dict__]


def efficientnet_weights(module: ModuleType) -> List[Replacement]:
    """The replacements in `efficientnet_pytorch.utils`."""
    return wherever_imported(module, "load_pretrained_weights", nothing) if "load_pretrained_weights" in module.__dict__ else []
