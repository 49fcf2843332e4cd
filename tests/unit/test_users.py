"""How other files use the classes of a document: by whatever names they import them."""

import ast
from textwrap import dedent

import pytest

from shapelens.worker.search.usages.importing_files import usages_elsewhere

DOCUMENT = ast.parse(
    dedent("""
    import torch.nn as nn
    class Config:
        dim = 8
    class Net(nn.Module):
        def __init__(self, dim): ...
    def build(dim=4):
        return Net(dim)
    """)
)


def found(text: str, file: str = "/work/train.py", document: str = "/work/models/net.py") -> list[tuple[str, str | None, str]]:
    candidates = usages_elsewhere(dedent(text), file, ["Net"], DOCUMENT, document)
    return [(one.constructor, one.arguments, one.where) for one in candidates]


@pytest.mark.parametrize(
    ("importing", "called"),
    [
        ("from models.net import Net", "Net"),
        ("from models.net import Net as Model", "Model"),
        ("from models.net import *", "Net"),
        ("from models import Net", "Net"),
        ("from models import net", "net.Net"),
        ("from . import net", "net.Net"),
        ("from .net import Net", "Net"),
        ("from ..models.net import Net", "Net"),
        ("import models.net", "models.net.Net"),
        ("import models.net as m", "m.Net"),
        ("import net", "net.Net"),
    ],
)
def test_ways_to_import_a_class(importing: str, called: str):
    file = "/work/models/train.py" if importing.startswith(("from .net", "from . ")) else "/work/scripts/train.py"
    file = file if importing.startswith("from .") else "/work/train.py"
    assert found(f"import torch\n{importing}\nmodel = {called}(5)\ny = model(torch.rand(2, 5))", file) == [
        ("Net(5)", "f32[B:2, 5]", "train.py:4")
    ]


@pytest.mark.parametrize(
    "importing",
    [
        "from other.net import Net",
        "from models.nets import Net",
        "from torchvision import Net",
        "import other",
        "from .net import Net",  # /work/net.py
        "from ..models.net import Net",  # /models/net.py
    ],
)
def test_another_class_of_the_same_name(importing: str):
    assert found(f"import torch\n{importing}\nmodel = Net(5)\ny = model(torch.rand(2, 5))") == []


def test_the_files_own_names_are_put_in():
    text = """
    import torch as t
    from torch import randn
    from models.net import Net, Config
    SIZE = 32
    def make(cfg): return Net(cfg.dim)
    def extra(): return randn(2, SIZE)
    if __name__ == "__main__":
        model = make(Config(dim=SIZE))
        model(extra(), t.arange(4))
        model(extra(), load())
    """
    assert found(text) == [("Net(Config(dim=32).dim)", "f32[B:2, 32], torch.arange(4)", "train.py:10")]


def test_a_factory_of_the_document():
    assert found("import torch\nfrom models.net import build\nbuild(dim=9)(torch.rand(2, 9))") == [
        ("build(dim=9)", "f32[B:2, 9]", "train.py:3")
    ]


def test_a_file_that_does_not_parse():
    assert found("from models.net import Net\nNet(") == []
