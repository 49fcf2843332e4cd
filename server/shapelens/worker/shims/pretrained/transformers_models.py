"""Models of `transformers`: `from_pretrained` builds what the configuration says, and reads no weights.

A configuration comes by the library's own ways, from a folder, the hub's cache or what is known of the model (hub.py). Where there is none,
the class may still be known, by the class that was asked or by the model's name: then its sizes are unknown.
"""

from __future__ import annotations

import contextlib
import copy
import re
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ...meta.mode import made
from ...unknown import unknown_sizes
from ..compilers import Replacement, nothing
from .unsure_sizes import UnknownModel, is_unsure, unknown_output, unsure, unsure_config

# What `from_pretrained` takes that has nothing to do with the model.
OF_LOADING = (
    "cache_dir", "force_download", "local_files_only", "token", "use_auth_token", "revision", "code_revision", "proxies",
    "resume_download", "subfolder", "mirror", "from_tf", "from_flax", "state_dict", "variant", "use_safetensors", "weights_only",
    "low_cpu_mem_usage", "_fast_init", "device_map", "max_memory", "offload_folder", "offload_state_dict", "offload_buffers",
    "quantization_config", "load_in_8bit", "load_in_4bit", "ignore_mismatched_sizes", "adapter_kwargs", "adapter_name",
    "generation_config", "gguf_file", "tp_plan", "tp_size", "device_mesh", "distributed_config", "trust_remote_code", "use_kernels",
    "kernel_config", "key_mapping", "allow_all_kernels", "fusion_config", "disable_mmap", "tqdm_class", "_from_auto",
    "_from_pipeline", "_commit_hash", "user_agent",
)  # fmt: skip
OF_THE_HUB = ("cache_dir", "revision", "subfolder", "token")
GENERATED_FROM = ("input_ids", "inputs", "inputs_embeds", "input_features", "input_values", "pixel_values")
NOT_FOUND = (OSError, ImportError)  # what the libraries raise where there is no configuration


def modeling(module: ModuleType) -> List[Replacement]:
    """The replacements in `transformers.modeling_utils`."""
    model = module.PreTrainedModel
    out: List[Replacement] = [(model, "from_pretrained", classmethod(_from_pretrained)), (model, "save_pretrained", nothing)]
    out += [(model, name, nothing) for name in ("initialize_weights", "_initialize_weights", "warn_if_padding_and_no_attention_mask")]
    out += [(model, name, nothing) for name in ("push_to_hub", "load_adapter", "warnings_issued") if name in model.__dict__]
    if "_init_weights" in module.__dict__:  # Before version 5: whether weights are initialised.
        out.append((module, "_init_weights", False))
    return [(owner, name, value) for owner, name, value in out if name in owner.__dict__]


def _from_pretrained(cls: Any, /, name: Any = None, *args: Any, config: Any = None, **kwargs: Any) -> Any:
    """PreTrainedModel.from_pretrained"""
    with_info = kwargs.pop("output_loading_info", False)
    hub = {key: kwargs[key] for key in OF_THE_HUB if kwargs.get(key) is not None}
    options = {key: kwargs.pop(key) for key in OF_LOADING if key in kwargs}
    dtype = kwargs.pop("torch_dtype", None) or kwargs.pop("dtype", None)
    kwargs.pop("dtype", None)
    kwargs.pop("adapter_name", None)
    is_known = not is_unsure(config)
    if config is None or isinstance(config, (str, bytes)) or hasattr(config, "__fspath__"):
        try:
            config, kwargs = cls.config_class.from_pretrained(
                name if config is None else config, return_unused_kwargs=True, **hub, **kwargs
            )
        except NOT_FOUND:
            config, kwargs, is_known = _by_default(cls.config_class, kwargs)
    else:
        config = copy.deepcopy(config)
    attention = kwargs.pop("attn_implementation", None)
    kwargs.pop("experts_implementation", None)
    if attention != "sdpa":  # The others give what attention there was, whoever asks for it; that makes no difference to any other shape.
        config._attn_implementation = "eager"
    model = (_built if is_known else _built_by_default)(cls, config, args, kwargs, _dtype_of(dtype, config))
    if model is None:
        model = UnknownModel(str(name), _outputs_of(cls.__name__, kwargs.get("num_labels")))
    model.eval()
    if not is_known and not isinstance(model, UnknownModel):
        unsure(model)
        model.config = unsure_config(config, "transformers")
    if options.get("load_in_8bit") or options.get("load_in_4bit") or options.get("quantization_config") is not None:
        model.__dict__.setdefault("is_quantized", True)
    info: Dict[str, List[str]] = {"missing_keys": [], "unexpected_keys": [], "mismatched_keys": [], "error_msgs": []}
    return (model, info) if with_info else model


def _by_default(cls: Any, values: Dict[str, Any]) -> Tuple[Any, Dict[str, Any], bool]:
    """A configuration of a model that nobody knows: the class's own sizes, and what was asked for."""
    config = cls()
    left = {}
    for name, value in values.items():
        if hasattr(config, name):
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                setattr(config, name, value)
        else:
            left[name] = value
    return config, left, False


def _dtype_of(asked: Any, config: Any) -> Optional[torch.dtype]:
    """The dtype that a model's weights have: the one that was asked for, or since version 5 the one that they were saved in."""
    if isinstance(asked, str) and asked != "auto":
        asked = getattr(torch, asked, None)
    if isinstance(asked, torch.dtype):
        return asked
    import transformers  # type: ignore[import-not-found]

    if asked == "auto" or int(transformers.__version__.partition(".")[0]) >= 5:
        saved = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
        saved = getattr(torch, saved, None) if isinstance(saved, str) else saved
        return saved if isinstance(saved, torch.dtype) else None
    return None


def _built(cls: Any, config: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], dtype: Optional[torch.dtype]) -> Any:
    before = torch.get_default_dtype()
    if dtype is not None and dtype.is_floating_point:
        torch.set_default_dtype(dtype)
    try:
        return cls(config, *args, **kwargs)
    finally:
        torch.set_default_dtype(before)


def _built_by_default(cls: Any, config: Any, *given: Any) -> Any:
    """A model with the sizes of its class, as nobody knows its own; None where the class makes no model of these: that is no mistake."""
    state = unknown_sizes.state
    silent, in_library = state.silent, state.in_library
    state.in_library = True
    try:
        model = _built(cls, config, *given)
    except Exception:
        if state.silent == silent:
            raise
        return None
    finally:
        state.in_library = in_library
    return model if state.silent == silent else None


def configurations(module: ModuleType) -> List[Replacement]:
    """The replacements in `transformers.configuration_utils`: labels out of data that is not here are of unknown number."""
    owner = module.__dict__.get("PreTrainedConfig") or module.PretrainedConfig
    held = owner.__dict__.get("num_labels")
    if not isinstance(held, property) or held.fget is None or held.fset is None:
        return []
    get, put = held.fget, held.fset

    def count(config: Any) -> Any:
        known = get(config)
        return unknown_sizes.count() if known == 0 else known

    def set_count(config: Any, labels: Any) -> None:
        put(config, unknown_sizes.count() if labels == 0 or unknown_sizes.is_unknown(labels) else labels)

    return [(owner, "num_labels", property(count, set_count))]


# --- Auto classes ---


def auto_models(module: ModuleType) -> List[Replacement]:
    """The replacements in `transformers.models.auto.modeling_auto`: a model of which there is no configuration is an unknown one."""
    classes = [cls for cls in module.__dict__.values() if isinstance(cls, type) and "_model_mapping" in cls.__dict__]
    held = [(cls, cls.__dict__["from_pretrained"].__func__) for cls in classes if "from_pretrained" in cls.__dict__]
    return [(cls, "from_pretrained", classmethod(_or_unknown(original))) for cls, original in held]


def _or_unknown(original: Callable[..., Any]) -> Callable[..., Any]:
    def from_pretrained(cls: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("trust_remote_code"):
            kwargs = {**kwargs, "trust_remote_code": None}
        kwargs.pop("force_download", None)
        try:
            return original(cls, name, *args, **kwargs)
        except (*NOT_FOUND, KeyError, ValueError) as error:
            if not _is_unknown(error) and not isinstance(error, NOT_FOUND):
                raise
            config = kwargs.get("config") or guessed_config(str(name))
            if config is not None and type(config) in cls._model_mapping:
                with contextlib.suppress(Exception):
                    return original(cls, name, *args, **{**kwargs, "config": config})
            return UnknownModel(str(name), _outputs_of(cls.__name__, kwargs.get("num_labels")))

    return from_pretrained


# By the end of the name of an Auto class: the name of its output, its dims, and whether the last one is the number of labels.
OUTPUTS: Dict[str, Tuple[str, int, bool]] = {
    "ForSequenceClassification": ("logits", 2, True), "ForImageClassification": ("logits", 2, True), "ForCausalLM": ("logits", 3, False),
    "ForAudioClassification": ("logits", 2, True), "ForTokenClassification": ("logits", 3, True), "ForMaskedLM": ("logits", 3, False),
    "ForSeq2SeqLM": ("logits", 3, False), "ForVideoClassification": ("logits", 2, True), "ForSemanticSegmentation": ("logits", 4, False),
}  # fmt: skip


def _outputs_of(auto_class: str, labels: Any) -> Callable[[Optional[torch.Tensor]], Any]:
    """Returns what is known of the output of a model of unknown class, by the Auto class that was asked for it."""
    from transformers.utils import ModelOutput  # type: ignore[import-not-found]

    def gives(given: Optional[torch.Tensor]) -> Any:
        is_text = given is not None and given.dim() == 2 and not given.is_floating_point()
        for end, (name, rank, has_labels) in OUTPUTS.items():
            if auto_class.endswith(end):
                return ModelOutput({name: unknown_output(given, rank, labels if has_labels and isinstance(labels, int) else None)})
        if auto_class == "AutoModel" and is_text:
            return ModelOutput(last_hidden_state=unknown_output(given, 3), pooler_output=unknown_output(given, 2))
        return None

    return gives


def _is_unknown(error: BaseException) -> bool:
    return re.search(r"Unrecognized model in|does not recognize this architecture|trust_remote_code|UnknownModel", str(error)) is not None


def auto_config(module: ModuleType) -> List[Replacement]:
    """The replacements in `transformers.models.auto.configuration_auto`."""
    original = module.AutoConfig.__dict__["from_pretrained"].__func__

    def from_pretrained(cls: Any, /, name: Any = None, **kwargs: Any) -> Any:
        try:
            return original(cls, name, **kwargs)
        except NOT_FOUND:
            config = guessed_config(str(name))
            if config is None:
                raise
            values = {key: value for key, value in kwargs.items() if key not in OF_LOADING and key != "return_unused_kwargs"}
            left = {}
            for key, value in values.items():
                if hasattr(config, key):
                    setattr(config, key, value)
                else:
                    left[key] = value
            return (config, left) if kwargs.get("return_unused_kwargs") else config

    return [(module.AutoConfig, "from_pretrained", classmethod(from_pretrained))]


def guessed_config(name: str) -> Any:
    """The configuration of a model's family, with sizes that nobody knows; None where the name does not say which family it is."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES  # type: ignore[import-not-found]

    words = re.sub(r"[^a-z0-9]", "", name.lower().rpartition("/")[2])
    fitting = [kind for kind in CONFIG_MAPPING_NAMES if len(kind) > 2 and re.sub(r"[^a-z0-9]", "", kind) in words]
    for kind in sorted(fitting, key=len, reverse=True)[:1]:
        with contextlib.suppress(Exception):
            return unsure_config(CONFIG_MAPPING[kind](), "transformers")
    return None


# --- generation ---


def generation(module: ModuleType) -> List[Replacement]:
    """The replacements in `transformers.generation.utils`: how many tokens are made depends on what they are."""
    return [(module.GenerationMixin, "generate", _generate)]


def _generate(model: Any, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """GenerationMixin.generate"""
    given = next((value for value in (inputs, *map(kwargs.get, GENERATED_FROM)) if isinstance(value, torch.Tensor)), None)
    count = 1 if given is None else int(given.shape[0])
    several = kwargs.get("num_return_sequences")
    if isinstance(several, int):
        count *= several
    sequences = made([count, unknown_sizes.size()], torch.int64)
    if not kwargs.get("return_dict_in_generate"):
        return sequences
    from transformers.utils import ModelOutput

    return ModelOutput(sequences=sequences)
