"""Well-known models: their sizes, as `known_models.json` has them by family.

A model's entry is its family's configuration with the differences of the model. Names of models that once had no owner are known both ways.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_models.json")
_files: Dict[str, Dict[str, Dict[str, Any]]] = {}  # by name of a model: its files, by name

# Owners that models without an owner got in 2024; the old names go on.
FORMERLY_WITHOUT = (
    "google-bert", "distilbert", "FacebookAI", "albert", "openai-community", "google-t5", "xlnet", "almanach", "dbmdz",
    "transfo-xl", "sentence-transformers",
)  # fmt: skip


def _load() -> None:
    with open(_FILE, encoding="utf-8") as file:
        families = json.load(file)["families"]
    for family in families.values():
        name = family.get("file", "config.json")
        for model, differences in family["models"].items():
            content = {**family["config"], **differences}
            for each in (model, model.partition("/")[2] if model.partition("/")[0] in FORMERLY_WITHOUT else model):
                _files.setdefault(each.lower(), {})[name] = content
    for alias, model in _aliases().items():
        if model.lower() in _files:
            _files.setdefault(alias.lower(), _files[model.lower()])


def _aliases() -> Dict[str, str]:
    with open(_FILE, encoding="utf-8") as file:
        aliases: Dict[str, str] = json.load(file)["aliases"]
    return aliases


def file_of(model: str, name: str) -> Optional[Dict[str, Any]]:
    """The content of a configuration file of a model; None where it is not known."""
    if not _files:
        _load()
    return _files.get(model.lower(), {}).get(name)


def config_of(model: str) -> Optional[Dict[str, Any]]:
    """The main configuration of a model; None where it is not known."""
    return file_of(model, "config.json")
