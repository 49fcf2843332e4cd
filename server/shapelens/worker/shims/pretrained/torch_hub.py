"""`torch.hub.load`: a repository that is here is used; of well-known ones the models are built by the libraries that have them."""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Dict, Optional

import torch
import torch.hub

from ...unknown import stand_ins
from .unsure_sizes import UnknownModel

_load: Callable[..., Any] = torch.hub.load
OF_LOADING = ("source", "trust_repo", "force_reload", "verbose", "skip_validation", "pretrained", "weights", "progress")


def _of_torchvision(name: str, *args: Any, **kwargs: Any) -> Any:
    models = importlib.import_module("torchvision.models")
    for place in (models, *(getattr(models, part, None) for part in ("segmentation", "detection", "video", "quantization"))):
        if hasattr(place, name):
            return getattr(place, name)(*args, **kwargs)
    return None


def _of_timm(name: str, *args: Any, **kwargs: Any) -> Any:
    timm = importlib.import_module("timm")
    return timm.create_model(name, **kwargs) if timm.is_model(name) else None


def _features_of_timm(names: Dict[str, str]) -> Callable[..., Any]:
    return lambda name, *args, **kwargs: _of_timm(names[name], num_classes=0) if name in names else None


def _of_transformers(name: str, *args: Any, **kwargs: Any) -> Any:
    classes = {"model": "AutoModel", "tokenizer": "AutoTokenizer", "config": "AutoConfig", "modelForCausalLM": "AutoModelForCausalLM"}
    classes.update({"modelForSequenceClassification": "AutoModelForSequenceClassification", "modelForMaskedLM": "AutoModelForMaskedLM"})
    library = importlib.import_module("transformers")
    return getattr(library, classes[name]).from_pretrained(*args, **kwargs) if name in classes else None


class Dinov2(torch.nn.Module):
    """The backbones of facebookresearch/dinov2, whose methods give names to their parts."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone
        self.embed_dim = self.num_features = backbone.embed_dim
        self.patch_size, self.num_heads, self.n_blocks = 14, backbone.embed_dim // 64, len(backbone.blocks)

    def forward_features(self, x: Any, masks: Any = None) -> Dict[str, Any]:
        """The tokens, by name."""
        tokens = self.backbone.forward_features(x)
        extra = self.backbone.num_prefix_tokens
        return {
            "x_norm_clstoken": tokens[:, 0],
            "x_norm_regtokens": tokens[:, 1:extra],
            "x_norm_patchtokens": tokens[:, extra:],
            "x_prenorm": tokens,
            "masks": masks,
        }

    def get_intermediate_layers(
        self, x: Any, n: Any = 1, reshape: bool = False, return_class_token: bool = False, norm: bool = True
    ) -> Any:
        """The patches' tokens after the last layers, or after those that are named."""
        found = self.forward_features(x)
        patches, first = found["x_norm_patchtokens"], found["x_norm_clstoken"]
        if reshape:
            height, width = x.shape[-2] // 14, x.shape[-1] // 14
            patches = patches.reshape(x.shape[0], height, width, -1).permute(0, 3, 1, 2).contiguous()
        count = n if isinstance(n, int) else len(n)
        return tuple([(patches, first) if return_class_token else patches for _ in range(count)])

    def forward(self, x: Any, *args: Any, is_training: bool = False, **kwargs: Any) -> Any:
        """The class token; all tokens in training."""
        found = self.forward_features(x)
        return found if is_training else found["x_norm_clstoken"]


def _dinov2(name: str, *args: Any, **kwargs: Any) -> Any:
    sizes = {"vits14": "small", "vitb14": "base", "vitl14": "large", "vitg14": "giant"}
    size = sizes.get(name.replace("dinov2_", "").partition("_")[0])
    if size is None or name.endswith("lc"):
        return None
    registers = "_reg4" if name.endswith("_reg") else ""
    backbone = _of_timm("vit_%s_patch14%s_dinov2" % (size, registers), num_classes=0, dynamic_img_size=True)
    return None if backbone is None else Dinov2(backbone)


DINO = {
    "dino_vits16": "vit_small_patch16_224", "dino_vits8": "vit_small_patch8_224", "dino_vitb16": "vit_base_patch16_224",
    "dino_vitb8": "vit_base_patch8_224", "dino_resnet50": "resnet50",
}  # fmt: skip
# By repository, without its version: (name, *args, **kwargs) -> the model, None where it is not known.
REPOSITORIES: Dict[str, Callable[..., Any]] = {
    "pytorch/vision": _of_torchvision,
    "huggingface/pytorch-image-models": _of_timm,
    "rwightman/pytorch-image-models": _of_timm,
    "rwightman/gen-efficientnet-pytorch": _of_timm,
    "facebookresearch/deit": _of_timm,
    "facebookresearch/dino": _features_of_timm(DINO),
    "facebookresearch/dinov2": _dinov2,
    "huggingface/pytorch-transformers": _of_transformers,
    "huggingface/transformers": _of_transformers,
}


def load(repository: Any = "", model: Any = "", *args: Any, **kwargs: Any) -> Any:
    """torch.hub.load"""
    if kwargs.get("source") == "local" or os.path.isdir(str(repository)):
        return _load(repository, model, *args, **{**kwargs, "source": "local"})
    own = {key: value for key, value in kwargs.items() if key not in OF_LOADING}
    owner, _, _ = str(repository).partition(":")
    built: Optional[Any] = None
    build = REPOSITORIES.get(owner)
    if build is not None:
        try:
            built = build(str(model), *args, **own)
        except ImportError:
            pass
    if built is None:
        folder = _cached(owner, str(repository).partition(":")[2])
        if folder is not None:
            return _load(folder, model, *args, **{**kwargs, "source": "local", "force_reload": False})
        is_model = not str(model).startswith(("tokenizer", "utils", "config", "get_"))
        name = "%s from %s" % (model, repository)
        built = UnknownModel(name) if is_model else stand_ins.absent(name, "missing-file")
    return built


def _cached(repository: str, version: str) -> Optional[str]:
    """The folder of a repository that was loaded before."""
    stem = os.path.join(str(torch.hub.get_dir()), repository.replace("/", "_"))
    for branch in [version] if version else ["main", "master"]:
        if os.path.isfile(os.path.join("%s_%s" % (stem, branch.replace("/", "_")), "hubconfig.py")):
            return "%s_%s" % (stem, branch.replace("/", "_"))
    return None
