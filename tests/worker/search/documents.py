"""Texts that are loaded as modules, and what is found out about their classes."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from shapelens.worker.search.candidates.build_plans import build_plans

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


class Document:
    """A text that is loaded as a module."""

    def __init__(self, name: str, text: str, folder: Path) -> None:
        self.text = HEAD + text
        file = folder / (name + ".py")
        file.write_text(self.text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self.module
        spec.loader.exec_module(self.module)
        self.names = vars(self.module)
        self.tree = ast.parse(self.text)

    def ways(self, cls: str = "Net") -> list[str]:
        return [way.text() for way in build_plans(self.names[cls], self.names, self.tree)]

    def build(self, text: str) -> Any:
        with torch.device("meta"):
            return eval(text, dict(self.names), {"SimpleNamespace": SimpleNamespace, "torch": torch})
