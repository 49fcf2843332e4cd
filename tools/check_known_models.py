"""Checks server/shapelens/worker/shims/pretrained/known_models.json against the libraries: run it with an interpreter that has them.

    .user-environment/bin/python tools/check_known_models.py

Each configuration has to be one that its library takes, with sizes that go together, and none of its names may be unknown to the library.
What a library's class says of itself (`@auto_docstring(checkpoint="google-bert/bert-base-uncased")`: its defaults are this model's) has to
be what the table says of the model. Prints what differs; the exit code is 1 where anything does.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TABLE = Path(__file__).parent.parent / "server/shapelens/worker/shims/pretrained/known_models.json"
NO_ATTRIBUTE = {"architectures", "model_type", "num_labels", "torch_dtype", "text_config", "vision_config"}
# What only some versions of the library have an attribute for, or see as always true.
OF_SOME_VERSIONS = {
    "rotary_pct",
    "partial_rotary_factor",
    "decoder_start_token_id",
    "use_timm_backbone",
    "use_pretrained_backbone",
    "backbone",
}
OF_SOME_VERSIONS |= {"position_buckets", "norm_rel_ebd", "share_att_key"}  # read by the model where the configuration has them
ALWAYS_TRUE = {"tie_word_embeddings"}
# Classes whose defaults are not those of the model that they name: the releases say otherwise.
OTHER_DEFAULTS = {"google/pegasus-large", "Helsinki-NLP/opus-mt-en-de", "facebook/opt-350m", "Qwen/Qwen2-7B", "Qwen/Qwen3-8B"}
# Sizes that make a difference to shapes. The other defaults of a class (ids of tokens, rates) are not compared.
SIZES = re.compile(r"vocab|hidden|layers|heads|dim|size|depths|positions|ffn|embd|kernel|stride")
# Where the class's defaults are older than the checkpoint that it names, the checkpoint's own configuration counts.
DIFFERS = {"vocab_size", "type_vocab_size", "num_labels", "max_position_embeddings", "image_size"}


def configurations() -> list[tuple[str, str, dict[str, Any]]]:
    """(file, model, configuration) of all entries."""
    families = json.loads(TABLE.read_text(encoding="utf-8"))["families"].values()
    return [
        (family.get("file", "config.json"), model, {**family["config"], **differences})
        for family in families
        for model, differences in family["models"].items()
    ]


def checked(file: str, model: str, config: dict[str, Any]) -> list[str]:
    """What is wrong with a configuration."""
    if "model_type" in config:
        known = CONFIG_MAPPING[config["model_type"]]
        made = known.from_dict(dict(config))
        unknown = [name for name in config if name not in NO_ATTRIBUTE | OF_SOME_VERSIONS and not hasattr(known(), name)]
        wrong = [f"{name} is {getattr(made, name)!r}, not {value!r}" for name, value in config.items() if not _holds(made, name, value)]
        return [f"{known.__name__} has no {name}" for name in unknown] + wrong + _against_defaults(known, model, config)
    if file == "model_index.json":
        return [] if hasattr(diffusers, config["_class_name"]) else [f"diffusers has no {config['_class_name']}"]
    with torch.device("meta"):
        getattr(diffusers, config["_class_name"]).from_config(config)
    return []


def _holds(made: Any, name: str, value: Any) -> bool:
    if name in NO_ATTRIBUTE | ALWAYS_TRUE or not hasattr(made, name):
        return True
    held = getattr(made, name)
    return bool(held == value or list(held if isinstance(held, (list, tuple)) else [held]) == value)


def _against_defaults(known: type, model: str, config: dict[str, Any]) -> list[str]:
    """What the class's defaults say otherwise, where they are those of this model."""
    source = Path(sys.modules[known.__module__].__file__ or "").read_text(encoding="utf-8")
    names = re.findall(r"@auto_docstring\(checkpoint=\"([^\"]+)\"", source)
    if model in OTHER_DEFAULTS or model not in names[:1] or source.count("model_type = ") != 1:
        return []
    default = known()
    compared = [name for name in config if SIZES.search(name) and name not in DIFFERS | NO_ATTRIBUTE and hasattr(default, name)]
    return [f"{name} is {getattr(default, name)!r} by default" for name in compared if not _holds(default, name, config[name])]


def main() -> int:
    transformers.logging.set_verbosity_error()
    wrong = compared = 0
    for file, model, config in configurations():
        compared += 1
        try:
            found = checked(file, model, config)
        except Exception as error:  # What the library refuses.
            found = [f"{type(error).__name__}: {error}"]
        for each in found:
            wrong += 1
            print(f"{model} ({file}): {each}")
    print(f"{compared} configurations, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
