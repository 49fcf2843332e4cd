"""Which files import a file (examples/importing_files.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapelens.examples.importing_files import ImportingFiles, models_around
from shapelens.examples.programs import speaking_of
from shapelens.examples.settings import Settings
from shapelens.source.module import Module, parse


def importers_of(folder: Path, path: str, files: dict[str, str]) -> list[str]:
    for name, text in {path: "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = ImportingFiles().of(str(folder / path), str(folder), Settings(), {})
    return sorted(Path(each.path).relative_to(folder).as_posix() for each in found)


@pytest.mark.parametrize(
    ("statement", "imports"),
    [
        ("import nets.blocks", True),
        ("import os, nets.blocks as blocks", True),
        ("import nets", False),  # nets/__init__.py is not there
        ("from nets import blocks", True),
        ("from nets import (  # parts\n    heads,\n    blocks as parts,\n)", True),
        ("from nets import heads, \\\n    blocks", True),
        ("from nets.blocks import *", True),
        ("from blocks import Block", True),  # nets may stand on sys.path
        ("from src.nets.blocks import Block", False),
        ("from other.blocks import Block", False),
        ("from other import blocks", False),
        ("import torch.nn as blocks", False),
        ("from torch import nn  # blocks", False),
        ("from .nets.blocks import Block", True),
        ("from .blocks import Block", False),
        ("from . import nets", False),
        ("from .......... import blocks", False),
        ("    from nets.blocks import Block", True),
    ],
)
def test_an_import_leads_to_the_file_that_it_may_name(statement: str, imports: bool, tmp_path: Path) -> None:
    assert importers_of(tmp_path, "nets/blocks.py", {"train.py": statement + "\n"}) == (["train.py"] if imports else [])


def test_a_script_imports_the_file_beside_it_rather_than_one_of_that_name_elsewhere(tmp_path: Path) -> None:
    files = {
        "first/train.py": "from utils import train_one_epoch\n",
        "second/utils.py": "",
        "second/train.py": "from utils import train_one_epoch\n",
        "third/utils/__init__.py": "",
        "third/train.py": "import utils\n",
        "tools/train.py": "from utils import train_one_epoch\n",  # its sys.path may say where
    }
    assert importers_of(tmp_path, "first/utils.py", files) == ["first/train.py", "tools/train.py"]
    assert importers_of(tmp_path, "third/utils/__init__.py", files) == ["third/train.py", "tools/train.py"]


def test_relative_imports_lead_to_the_file_beside_the_one_that_imports(tmp_path: Path) -> None:
    files = {
        "a/blocks/__init__.py": "from .conv import Conv\n",
        "a/model.py": "from .blocks import Conv\n",
        "a/deep/model.py": "from ..blocks.conv import Conv\n",
        "b/blocks/__init__.py": "from .conv import Conv\n",
        "b/blocks/conv.py": "",
        "b/model.py": "from .blocks import Conv\n",
    }
    assert importers_of(tmp_path, "a/blocks/conv.py", files) == ["a/blocks/__init__.py", "a/deep/model.py", "a/model.py"]


def test_who_imports_a_module_of_a_package_imports_the_package(tmp_path: Path) -> None:
    files = {"nets/blocks.py": "", "train.py": "import nets.blocks\n"}
    assert importers_of(tmp_path, "nets/__init__.py", files) == ["train.py"]


def test_models_of_models_come_first_as_they_say_most_of_how_parts_are_built(tmp_path: Path) -> None:
    files = {
        "layers.py": (
            "from torch import nn\nfrom parts import Part\nclass Layer(nn.Module):\n    def __init__(self):\n        self.part = Part(3)\n"
        ),
        "model.py": (
            "from torch import nn\nfrom layers import Layer\n"
            "class Inner(nn.Module):\n    def __init__(self):\n        self.layer = Layer()\n"
            "class Model(nn.Module):\n    def __init__(self):\n        self.inner = Inner()\n"
        ),
        "other.py": "from torch import nn\nimport parts\nclass Other(nn.Module):\n    pass\n",
    }
    for name, text in {"parts.py": "", **files}.items():
        (tmp_path / name).write_text(text)
    importers = ImportingFiles().of(str(tmp_path / "parts.py"), str(tmp_path), Settings(), {}, ["Part"])
    modules: dict[str, Module] = {str(tmp_path / name): parse(text) for name, text in files.items()}
    around = models_around(importers, modules.get, {"Part"})
    assert [(Path(each.importer.path).name, each.classes) for each in around] == [
        ("model.py", ["Inner", "Model"]),
        ("layers.py", ["Layer"]),
    ]


def test_a_script_that_calls_what_builds_a_model_speaks_of_its_class() -> None:
    texts = [
        ("networks.py", "def network_of(name):\n    from nets import Net\n    return Net()\n\ndef main():\n    Net()\n"),
        ("train.py", "net = network_of('net')\n"),
        ("other.py", "main()\n"),
    ]
    assert [path for path, _ in speaking_of(texts, {"Net"})] == ["networks.py", "train.py"]
