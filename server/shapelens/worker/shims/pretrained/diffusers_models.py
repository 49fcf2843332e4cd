"""Models, pipelines and schedulers of `diffusers`: built of their configurations, from a folder, the cache or what is known."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Callable, Dict, List

import torch

from ...unknown import stand_ins
from ..compilers import Replacement, nothing
from .unsure_sizes import UnknownModel, unsure

OF_LOADING = (
    "cache_dir", "force_download", "local_files_only", "token", "revision", "proxies", "torch_dtype", "device_map", "max_memory",
    "offload_folder", "offload_state_dict", "low_cpu_mem_usage", "variant", "use_safetensors", "quantization_config",
    "ignore_mismatched_sizes", "output_loading_info", "custom_pipeline", "custom_revision", "provider", "sess_options",
    "safety_checker_kwargs", "use_onnx", "from_flax", "mirror", "disable_mmap", "trust_remote_code", "use_flashpack",
)  # fmt: skip
NOT_FOUND = (OSError, ImportError, ValueError)


def modeling(module: ModuleType) -> List[Replacement]:
    """The replacements in `diffusers.models.modeling_utils`."""
    model = module.ModelMixin
    return [(model, "from_pretrained", classmethod(_model)), (model, "save_pretrained", nothing)]


def _model(cls: Any, /, name: Any, **kwargs: Any) -> Any:
    """ModelMixin.from_pretrained"""
    options = {key: kwargs.pop(key) for key in OF_LOADING if key in kwargs}
    known = True
    try:
        config, left = cls.load_config(name, return_unused_kwargs=True, subfolder=kwargs.pop("subfolder", None), **kwargs)[:2]
    except NOT_FOUND:
        config, left, known = {}, kwargs, False
    model = cls.from_config(config, **left)
    if isinstance(options.get("torch_dtype"), torch.dtype):
        model = model.to(options["torch_dtype"])
    model.eval()
    return model if known else unsure(model)


def schedulers(module: ModuleType) -> List[Replacement]:
    """The replacements in `diffusers.schedulers.scheduling_utils`: one that is not known is as its class is by default."""
    cls = module.SchedulerMixin
    original: Callable[..., Any] = cls.__dict__["from_pretrained"].__func__

    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(cls, *args, **kwargs)
        except NOT_FOUND:
            return cls()

    return [(cls, "from_pretrained", classmethod(from_pretrained))]


def pipelines(module: ModuleType) -> List[Replacement]:
    """The replacements in `diffusers.pipelines.pipeline_utils`."""
    cls = module.DiffusionPipeline
    return [(cls, "from_pretrained", classmethod(_pipeline)), (cls, "save_pretrained", nothing)]


def auto_pipelines(module: ModuleType) -> List[Replacement]:
    """The replacements in `diffusers.pipelines.auto_pipeline`: of which pipeline is asked for, its parts are what counts."""
    own = [cls for cls in module.__dict__.values() if isinstance(cls, type) and cls.__module__ == module.__name__]
    return [(cls, "from_pretrained", classmethod(_auto_pipeline)) for cls in own if "from_pretrained" in cls.__dict__]


def _auto_pipeline(cls: Any, /, name: Any, **kwargs: Any) -> Any:
    import diffusers  # type: ignore[import-not-found]

    return _pipeline(diffusers.DiffusionPipeline, name, **kwargs)


def _pipeline(cls: Any, /, name: Any, **kwargs: Any) -> Any:
    """DiffusionPipeline.from_pretrained: its parts, each from its own configuration."""
    import diffusers

    dtype = kwargs.get("torch_dtype")
    try:
        config: Dict[str, Any] = dict(cls.load_config(name))
    except NOT_FOUND:
        return UnknownModel(str(name))
    own = getattr(diffusers, str(config.get("_class_name")), None)
    if cls.__name__ == "DiffusionPipeline" and own is not None:
        cls = own
    parts: Dict[str, Any] = {}
    for part, kind in config.items():
        if part in kwargs:
            parts[part] = kwargs[part]
        elif isinstance(kind, (list, tuple)) and len(kind) == 2:
            parts[part] = None if kind[0] is None else _part(name, part, kind[0], kind[1], dtype)
        elif not part.startswith("_"):
            parts[part] = kind
    wanted = cls._get_signature_keys(cls)
    expected = set(wanted[0]) | set(wanted[1])
    return cls(**{part: value for part, value in parts.items() if part in expected})


def _part(name: Any, part: str, library: str, class_name: str, dtype: Any) -> Any:
    try:
        cls = getattr(importlib.import_module(library), class_name)
    except (ImportError, AttributeError):
        return stand_ins.absent(part, "missing-file")
    options = {"torch_dtype": dtype} if dtype is not None and isinstance(cls, type) and issubclass(cls, torch.nn.Module) else {}
    try:
        return cls.from_pretrained(name, subfolder=part, **options)
    except NOT_FOUND:
        return stand_ins.absent(part, "missing-file")
